//! The commands as they are released. Building them takes minutes the first time, and a second after that.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    ffi::OsString,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

/// The four commands.
pub const COMMANDS: [&str; 4] = ["git-evt-push", "kubectl-argo-resync", "kubectl-argo-waitrev", "kubectl-argo-webhook"];

/// The root of the checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the commands, built by `release/build.sh`.
pub fn commands() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let output = succeeds(Command::new("sh").arg(root().join("release/build.sh")));
        String::from_utf8(output.stdout).unwrap().trim_end().into()
    })
}

/// The archive for this machine, made by `release/archive.sh`; `SHA256SUMS` lies beside it.
pub fn archive() -> &'static Path {
    static MADE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, archive) = MADE.get_or_init(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let archive = archive_in(folder.path());
        (folder, archive)
    });
    archive
}

/// Makes the archive for this machine in a folder.
pub fn archive_in(folder: &Path) -> PathBuf {
    let script = root().join("release/archive.sh");
    let output = succeeds(Command::new("sh").arg(script).arg("--out").arg(folder));
    String::from_utf8(output.stdout).unwrap().trim_end().into()
}

/// Unpacks the archive, and gives the one folder in it.
pub fn unpack(folder: &Path) -> PathBuf {
    succeeds(Command::new("tar").arg("-xzf").arg(archive()).arg("-C").arg(folder));
    let mut inside = std::fs::read_dir(folder).unwrap();
    let unpacked = inside.next().unwrap().unwrap().path();
    assert!(inside.next().is_none(), "the archive holds one folder");
    unpacked
}

/// Runs a command that has to succeed.
pub fn succeeds(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, said(&output));
    output
}

/// Everything that a command printed.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The folders of `$PATH` that exist, less those that hold one of our commands, with `first` before them.
pub fn path_with(first: &[&Path]) -> OsString {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let rest = std::env::split_paths(&rest).filter(|folder| {
        folder.is_dir() && !folder.join("git-evt-push").exists() && !folder.join("kubectl-argo-webhook").exists()
    });
    std::env::join_paths(first.iter().map(|folder| folder.to_path_buf()).chain(rest)).unwrap()
}

/// Whether a program is on `$PATH`; says that a part of the test is skipped when it is not.
pub fn have(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| {
        std::fs::metadata(folder.join(program))
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    });
    if !found {
        println!("skipped: {program} is not on this machine");
    }
    found
}

/// Whether kubectl completes the words of plugins, as it does since 1.26; says that a part is skipped when it does not.
pub fn kubectl_completes_plugins() -> bool {
    let output = succeeds(Command::new("kubectl").args(["version", "--client", "-o", "json"]));
    let version: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let minor = version["clientVersion"]["minor"].as_str().unwrap().trim_end_matches('+').parse::<u32>().unwrap();
    if minor < 26 {
        println!("skipped: kubectl 1.{minor} does not complete the words of plugins");
    }
    minor >= 26
}
