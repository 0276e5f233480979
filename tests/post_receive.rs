//! `hooks/post-receive`: a plain Git server tells Argo CD of a push, and a push never fails because of it.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod lab;
mod suite;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Output,
    thread,
    time::{Duration, Instant},
};

use lab::Lab;
use serde_json::Value;

/// The lab after its first step, with the hook in the bare repository that is served over HTTP.
struct Server {
    lab: Lab,
    bare: PathBuf,
}

impl Server {
    fn new() -> Self {
        let lab = Lab::new();
        lab.run(&["--to", "1"]);
        // Nothing but an event can tell Argo CD of a commit within the time of a test.
        let polling = lab.kubectl(&["argo-resync", "off"]);
        assert!(polling.contains("876000h0m0s"), "{polling}");
        let bare = lab.standin.git_root().join("evt.git");
        let server = Server { lab, bare };
        let hook = server.bare.join("hooks/post-receive");
        let _ = fs::remove_file(&hook);
        std::os::unix::fs::symlink(lab::share("hooks/post-receive"), hook).unwrap();
        server.config("evt.repoUrl", &server.lab.standin.git_url("evt"));
        server.config("evt.path", suite::bin().to_str().unwrap());
        server
    }

    fn config(&self, key: &str, value: &str) {
        let output = self.lab.command("git").arg("-C").arg(&self.bare).args(["config", key, value]).output().unwrap();
        assert!(output.status.success());
    }

    /// Commits, and pushes over HTTP with git alone; the commit and what git said.
    fn push(&self, refspecs: &[&str]) -> (String, String) {
        let git = |arguments: &[&str]| -> Output {
            let output = self.lab.command("git").arg("-C").arg(self.lab.file("repo")).args(arguments).output().unwrap();
            assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            output
        };
        git(&["commit", "--quiet", "--allow-empty", "--message=plain"]);
        let pushed = git(&[&["push", "origin"], refspecs].concat());
        let commit = String::from_utf8(git(&["rev-parse", "HEAD"]).stdout).unwrap().trim().to_owned();
        (commit, String::from_utf8(pushed.stderr).unwrap())
    }

    fn await_revision(&self, commit: &str) {
        let waited = self.lab.kubectl(&["argo-waitrev", "evt", "--revision", commit, "--timeout", "30s"]);
        let waited: Value = serde_json::from_str(&waited).unwrap();
        assert_eq!(waited["revision"], commit, "{}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.bare.join("argo-evt.log")).unwrap_or_default()
    }

    /// The log, once it says how often something was delivered.
    fn log_of(&self, deliveries: usize) -> String {
        let begun = Instant::now();
        loop {
            let log = self.log();
            if log.matches(" exit code ").count() >= deliveries {
                return log;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "the log ends here:\n{log}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_server_with_access_to_the_cluster_signs_with_the_key_there() {
    let server = Server::new();
    let secret = server.lab.file("key");
    server.lab.kubectl(&["argo-webhook", "secret", "set", "--generate", "--out", secret.to_str().unwrap()]);
    server.config("evt.kubeconfig", server.lab.standin.kubeconfig().to_str().unwrap());
    let (commit, _) = server.push(&["main", "HEAD:refs/heads/other"]);
    server.await_revision(&commit);
    let log = server.log_of(2);
    let records: Vec<Value> =
        log.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 2, "{log}");
    for (record, branch) in records.iter().zip(["main", "other"]) {
        assert_eq!((&record["branch"], &record["commit"]), (&Value::from(branch), &Value::from(commit.as_str())));
        assert_eq!((&record["http_status"], &record["signed"]), (&Value::from(200), &Value::from(true)));
    }
    let key = fs::read_to_string(secret).unwrap();
    assert!(!log.contains(key.trim()), "the key is in the log");

    let (_, said) = server.push(&["main", ":refs/heads/other"]);
    assert!(!said.contains("argo-evt"), "{said}");
    assert!(server.log_of(3).contains("refs/heads/other was deleted"), "{}", server.log());
}

#[test]
fn a_server_without_access_to_the_cluster_signs_with_the_key_in_a_file() {
    let server = Server::new();
    let secret = server.lab.file("key");
    server.lab.kubectl(&["argo-webhook", "secret", "set", "--generate", "--out", secret.to_str().unwrap()]);
    let port = "jsonpath={.spec.ports[?(@.name==\"https\")].port}";
    let port = server.lab.kubectl(&["get", "service", "argocd-server", "-n", "argocd", "-o", port]);
    let certificate = "go-template={{index .data \"tls.crt\" | base64decode}}";
    let certificate = server.lab.kubectl(&["get", "secret", "argocd-secret", "-n", "argocd", "-o", certificate]);
    fs::write(server.lab.file("ca.pem"), certificate).unwrap();
    server.config("evt.kubeconfig", "/nowhere/kubeconfig");
    server.config("evt.argocdUrl", &format!("https://localhost:{port}"));
    server.config("evt.secretFile", secret.to_str().unwrap());
    server.config("evt.caFile", server.lab.file("ca.pem").to_str().unwrap());
    let (commit, _) = server.push(&["main"]);
    server.await_revision(&commit);
    assert!(server.log_of(1).contains("exit code 0"), "{}", server.log());
}

#[test]
fn a_push_never_fails_because_of_the_hook() {
    let server = Server::new();
    server.config("evt.kubeconfig", "/nowhere/kubeconfig");
    server.push(&["main"]);
    let log = server.log_of(1);
    assert!(log.contains("error: ") && !log.contains("exit code 0"), "{log}");

    server.config("evt.log", "/nowhere/log");
    assert!(server.push(&["main"]).1.contains("argo-evt: cannot write /nowhere/log"));
    server.config("evt.repoUrl", "");
    assert!(server.push(&["main"]).1.contains("argo-evt: this repository has no address"));
    let empty = server.lab.file("empty");
    fs::create_dir(&empty).unwrap();
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o755)).unwrap();
    server.config("evt.path", empty.to_str().unwrap());
    assert!(server.push(&["main"]).1.contains("is not on the PATH of this server"));
}
