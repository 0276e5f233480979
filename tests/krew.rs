//! The archives and the manifests, by the rules of krew, and with krew itself where it can be had.
//!
//! The rules are those of krew v0.4.3: internal/index/validation/validate.go, internal/download/downloader.go,
//! internal/installation/move.go.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod release;

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
};

use release::{COMMANDS, have, path_with, root, said, succeeds};
use serde_json::Value;

const PLUGINS: [&str; 3] = ["argo-resync", "argo-waitrev", "argo-webhook"];

/// The version of krew that the Go module proxy serves.
const KREW: &str = "sigs.k8s.io/krew/cmd/krew@v0.4.3";

const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

fn manifest(path: &Path) -> Value {
    serde_yaml_ng::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The manifests with version, uri and sha256 of the archive for this machine, in a folder `plugins`.
fn filled_in(folder: &Path, uri: &str) -> PathBuf {
    let plugins = folder.join("plugins");
    fs::create_dir_all(&plugins).unwrap();
    let files: Vec<_> = PLUGINS.map(|plugin| plugins.join(format!("{plugin}.yaml"))).to_vec();
    for file in &files {
        fs::copy(root().join("plugins").join(file.file_name().unwrap()), file).unwrap();
    }
    let mut script = Command::new("sh");
    script.arg(root().join("release/manifests.sh")).args(["--partial", &version(), uri]);
    succeeds(script.arg(release::archive().with_file_name("SHA256SUMS")).args(files));
    plugins
}

fn version() -> String {
    format!("v{}", env!("CARGO_PKG_VERSION"))
}

/// `linux` and `amd64`, as krew names this machine.
fn machine() -> (&'static str, &'static str) {
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    (os, if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" })
}

/// The entry of a manifest for this machine.
fn platform(manifest: &Value) -> Value {
    let (os, arch) = machine();
    let wanted = serde_json::json!({"os": os, "arch": arch});
    let mut platforms = manifest["spec"]["platforms"].as_array().unwrap().iter();
    platforms.find(|platform| platform["selector"]["matchLabels"] == wanted).unwrap().clone()
}

#[test]
fn the_manifests_keep_krews_rules_and_name_every_platform() {
    for plugin in PLUGINS {
        let manifest = manifest(&root().join(format!("plugins/{plugin}.yaml")));
        assert_eq!(manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
        assert_eq!(manifest["kind"], "Plugin");
        assert_eq!(manifest["metadata"]["name"], plugin);
        let spec = &manifest["spec"];
        let short = spec["shortDescription"].as_str().unwrap();
        // kubectl krew search shows 50 characters (docs of krew: naming and describing plugins).
        assert!(!short.contains('\n') && (1..=50).contains(&short.len()), "{short}");
        let version = spec["version"].as_str().unwrap();
        let numbers: Vec<_> = version.strip_prefix('v').unwrap().split('.').collect();
        assert!(numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok()), "{version}");
        let mut platforms = Vec::new();
        for platform in spec["platforms"].as_array().unwrap() {
            let labels = platform["selector"]["matchLabels"].as_object().unwrap();
            assert_eq!(labels.keys().collect::<Vec<_>>(), ["os", "arch"]);
            let name = format!("{}-{}", labels["os"].as_str().unwrap(), labels["arch"].as_str().unwrap());
            let uri = platform["uri"].as_str().unwrap();
            assert!(uri.starts_with("https://"), "{uri}");
            assert!(uri.ends_with(&format!("/argo-evt-{version}-{name}.tar.gz")), "{uri}");
            let sum = platform["sha256"].as_str().unwrap();
            assert!(sum.len() == 64 && sum.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c)), "{sum}");
            assert_eq!(platform["bin"], format!("kubectl-{plugin}"));
            platforms.push(name);
        }
        assert_eq!(platforms, ["linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"]);
    }
}

#[test]
fn the_archive_holds_plain_files_that_krew_can_unpack_and_move() {
    let list = succeeds(Command::new("tar").args(["--numeric-owner", "-tvzf"]).arg(release::archive()));
    let text = String::from_utf8(list.stdout).unwrap();
    let mut names = Vec::new();
    for line in text.lines() {
        assert!(
            line.starts_with("-rw-r--r-- 0/0 ")
                || line.starts_with("-rwxr-xr-x 0/0 ")
                || line.starts_with("drwxr-xr-x 0/0 "),
            "{line}"
        );
        let name = line.rsplit(' ').next().unwrap();
        assert!(!name.starts_with('/') && !name.contains(".."), "{name}");
        names.push(name.to_owned());
    }
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(names, sorted, "the order does not depend on the file system");

    let scratch = tempfile::tempdir().unwrap();
    let unpacked = release::unpack(scratch.path());
    let (os, arch) = machine();
    assert_eq!(unpacked.file_name().unwrap().to_str().unwrap(), format!("argo-evt-{}-{os}-{arch}", version()));
    for name in ["LICENSE", "README.md", "install.sh", "SHA256SUMS"] {
        assert!(unpacked.join(name).is_file(), "{name}");
    }
    let sum = succeeds(Command::new("sha256sum").arg(release::archive()));
    let sum = said(&sum).split(' ').next().unwrap().to_owned();
    for plugin in PLUGINS {
        let manifest = manifest(&filled_in(scratch.path(), "https://example.com/v").join(format!("{plugin}.yaml")));
        let platform = platform(&manifest);
        assert_eq!(platform["sha256"], sum);
        let (bin, files) = (platform["bin"].as_str().unwrap(), platform["files"].as_array().unwrap());
        let from: Vec<_> = files.iter().map(|file| file["from"].as_str().unwrap()).collect();
        // The glob matches the one folder of the archive.
        assert_eq!(from, [format!("argo-evt-*/bin/{bin}"), "argo-evt-*/LICENSE".into()]);
        assert!(files.iter().all(|file| file["to"] == "."));
        assert!(unpacked.join("bin").join(bin).is_file());
    }
}

#[test]
fn an_archive_made_twice_has_the_same_bytes_and_no_path_of_the_machine() {
    let again = tempfile::tempdir().unwrap();
    let again = release::archive_in(again.path());
    assert!(fs::read(release::archive()).unwrap() == fs::read(again).unwrap(), "the two archives differ");
    let home = std::env::home_dir().unwrap();
    let places = [root(), &std::env::var_os("CARGO_HOME").map_or(home.join(".cargo"), PathBuf::from)];
    for command in COMMANDS {
        let bytes = fs::read(release::commands().join(command)).unwrap();
        for place in places.map(|place| place.as_os_str().as_encoded_bytes()) {
            assert!(!bytes.windows(place.len()).any(|part| part == place), "{command} names {place:?}");
        }
    }
}

#[test]
fn a_command_built_in_another_place_has_the_same_bytes() {
    let scratch = tempfile::tempdir().unwrap();
    let elsewhere = scratch.path().join("somewhere else");
    let files = "git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -xf - -C \"$1\"";
    fs::create_dir(&elsewhere).unwrap();
    succeeds(Command::new("bash").args(["-c", files, "bash"]).arg(&elsewhere).current_dir(root()));
    let mut build = Command::new("sh");
    build.arg(elsewhere.join("release/build.sh")).args(["--package", "git-evt-push"]).env_remove("CARGO_TARGET_DIR");
    let output = succeeds(&mut build);
    let built = Path::new(String::from_utf8(output.stdout).unwrap().trim_end()).join("git-evt-push");
    let here = release::commands().join("git-evt-push");
    assert!(fs::read(built).unwrap() == fs::read(here).unwrap(), "the bytes depend on the place");
}

#[test]
fn a_release_without_one_of_its_archives_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let plugins = filled_in(scratch.path(), "https://example.com/v");
    let file = plugins.join("argo-webhook.yaml");
    let before = fs::read(&file).unwrap();
    let mut script = Command::new("sh");
    script.arg(root().join("release/manifests.sh")).args([&version(), "https://example.com/v"]);
    let output = script.arg(release::archive().with_file_name("SHA256SUMS")).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains(&format!("has no argo-evt-{}-", version())), "{}", said(&output));
    assert_eq!(fs::read(&file).unwrap(), before, "the manifest is as it was");
    assert_eq!(fs::read_dir(plugins).unwrap().count(), 3, "nothing else is left");
}

/// krew under the name that kubectl looks for, or the reason why there is none.
fn krew() -> Result<PathBuf, String> {
    if !have("go") {
        return Err("Go is not on this machine".into());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("krew-v0.4.3");
    let program = folder.join("kubectl-krew");
    if !program.exists() {
        fs::create_dir_all(&folder).unwrap();
        let output = Command::new("go").args(["install", KREW]).env("GOBIN", &folder).output().unwrap();
        if !output.status.success() {
            return Err(format!("{KREW} cannot be had: {}", said(&output)));
        }
        fs::rename(folder.join("krew"), &program).unwrap();
    }
    Ok(folder)
}

/// A scratch krew.
struct Krew {
    tools: PathBuf,
    root: tempfile::TempDir,
}

impl Krew {
    fn new() -> Option<Self> {
        match krew() {
            Ok(tools) => Some(Krew { tools, root: tempfile::tempdir().unwrap() }),
            Err(reason) => {
                println!("skipped: {reason}");
                None
            }
        }
    }

    fn kubectl(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(words).env("KREW_ROOT", self.root.path()).env("KREW_NO_UPGRADE_CHECK", "1");
        command.env("PATH", path_with(&[&self.tools, &self.root.path().join("bin")]));
        command
    }

    fn answers(&self, plugin: &str) {
        let output = succeeds(&mut self.kubectl(&[plugin, "--version"]));
        let expected = format!("kubectl-{plugin} {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}

#[test]
fn krew_installs_each_plugin_from_a_manifest_and_an_archive_without_a_network() {
    let Some(krew) = Krew::new() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let plugins = filled_in(scratch.path(), "https://example.com/v");
    for plugin in PLUGINS {
        let manifest = format!("--manifest={}", plugins.join(format!("{plugin}.yaml")).display());
        let archive = format!("--archive={}", release::archive().display());
        succeeds(&mut krew.kubectl(&["krew", "install", &manifest, &archive]));
        krew.answers(plugin);
    }
    let list = succeeds(&mut krew.kubectl(&["plugin", "list"]));
    assert!(!said(&list).to_lowercase().contains("warning"), "{}", said(&list));
}

#[test]
fn the_repository_is_a_krew_index() {
    let Some(krew) = Krew::new() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let repository = scratch.path().join("argo-evt");
    let archive = fs::read(release::archive()).unwrap();
    let name = release::archive().file_name().unwrap().to_str().unwrap().to_owned();
    let address = serve(name, archive);

    let clone = Command::new("git").args(["clone", "-q"]).arg(root()).arg(&repository).output().unwrap();
    assert!(clone.status.success(), "{}", said(&clone));
    // What a release does: the manifests with its archives, committed.
    filled_in(&repository, &format!("http://{address}/download"));
    let commit = "git add plugins && git -c user.name=a -c user.email=a@example.com commit -qm release";
    succeeds(Command::new("sh").args(["-c", commit]).current_dir(&repository));

    succeeds(&mut krew.kubectl(&["krew", "index", "add", "argo-evt", repository.to_str().unwrap()]));
    let found = succeeds(&mut krew.kubectl(&["krew", "search", "argo"]));
    for plugin in PLUGINS {
        assert!(said(&found).contains(&format!("argo-evt/{plugin} ")), "{}", said(&found));
        succeeds(&mut krew.kubectl(&["krew", "install", &format!("argo-evt/{plugin}")]));
        krew.answers(plugin);
    }
}

#[test]
fn krew_refuses_an_archive_that_is_not_the_one_in_the_manifest() {
    let Some(krew) = Krew::new() else { return };
    let manifest = root().join("plugins/argo-webhook.yaml");
    let scratch = tempfile::tempdir().unwrap();
    let changed = scratch.path().join("argo-webhook.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let zeros: String = text
        .lines()
        .map(|line| match line.split_once("sha256:") {
            Some((indent, _)) => format!("{indent}sha256: \"{ZEROS}\"\n"),
            None => format!("{line}\n"),
        })
        .collect();
    fs::write(&changed, zeros).unwrap();
    let (manifest, archive) =
        (format!("--manifest={}", changed.display()), format!("--archive={}", release::archive().display()));
    let output = krew.kubectl(&["krew", "install", &manifest, &archive]).output().unwrap();
    assert!(!output.status.success() && said(&output).contains("checksum"), "{}", said(&output));
}

/// Serves one file on the loopback address, to whoever asks for its name. Ends with the test.
fn serve(name: String, contents: Vec<u8>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let contents = Arc::new(contents);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (name, contents) = (name.clone(), contents.clone());
            thread::spawn(move || {
                let mut request = [0; 4096];
                let read = stream.read(&mut request).unwrap_or(0);
                let found = String::from_utf8_lossy(&request[..read]).starts_with(&format!("GET /download/{name} "));
                let (status, body) = if found { ("200 OK", contents.as_slice()) } else { ("404 Not Found", &b""[..]) };
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
            });
        }
    });
    address
}
