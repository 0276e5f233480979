//! The four commands on a PATH, as a user has them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

const PLUGINS: [&str; 3] = ["argo-resync", "argo-waitrev", "argo-webhook"];

/// A folder with both names of each plugin and `git-evt-push`, built from the tree as it is.
pub fn bin() -> &'static Path {
    static BIN: OnceLock<PathBuf> = OnceLock::new();
    BIN.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "--workspace", "--bins"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(built.success(), "the commands do not build");
        let bin = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bin");
        fs::create_dir_all(&bin).unwrap();
        let debug = env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned();
        for plugin in PLUGINS {
            let program = debug.join(format!("kubectl-{plugin}"));
            link(&program, &bin.join(format!("kubectl-{plugin}")));
            link(&program, &bin.join(format!("kubectl-{}", plugin.replace('-', "_"))));
        }
        link(&debug.join("git-evt-push"), &bin.join("git-evt-push"));
        bin
    })
}

/// `$PATH` with the commands before everything else.
pub fn path() -> std::ffi::OsString {
    let rest = env::var_os("PATH").unwrap_or_default();
    env::join_paths([bin().to_owned()].into_iter().chain(env::split_paths(&rest))).unwrap()
}

/// Other test processes may be making the same link; the last one wins and all are the same.
fn link(program: &Path, name: &Path) {
    let fresh = name.with_extension(std::process::id().to_string());
    std::os::unix::fs::symlink(program, &fresh).unwrap();
    fs::rename(&fresh, name).unwrap();
}
