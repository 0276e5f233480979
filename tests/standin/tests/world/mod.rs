//! What the tests of the Argo CD half share: a stand-in, a repository with a clone, and the real programs.
#![allow(dead_code, reason = "each test uses its part")]

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use standin::{Options, Standin, processes::Component};

/// The store's name for Applications.
pub const APPLICATIONS: &str = "applications.argoproj.io";
pub const REFRESH: &str = "argocd.argoproj.io/refresh";
/// What a test waits at most for something that has to happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A stand-in with the repository `evt.git` and a clone of it.
pub struct World {
    pub standin: Standin,
    clone: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

/// An answer of argocd-server.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub body: String,
}

impl World {
    pub fn new() -> World {
        World::with(Options::default())
    }

    pub fn with(options: Options) -> World {
        let standin = Standin::with(options);
        let bare = standin.git_root().join("evt.git");
        let clone = tempfile::tempdir().expect("a temporary folder");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let world = World { standin, clone, runtime };
        run(Command::new("git").args(["init", "--quiet", "--bare", "--initial-branch=main"]).arg(bare));
        world.git(&["clone", "--quiet", &world.standin.git_url("evt.git"), "."]);
        world
    }

    /// Runs git in the clone.
    pub fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(arguments)
            .current_dir(self.dir())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs([("GIT_AUTHOR_NAME", "t"), ("GIT_AUTHOR_EMAIL", "t@example.com")])
            .envs([("GIT_COMMITTER_NAME", "t"), ("GIT_COMMITTER_EMAIL", "t@example.com")]);
        run(&mut git)
    }

    pub fn dir(&self) -> &Path {
        self.clone.path()
    }

    /// Writes a file of the clone.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.dir().join(path);
        std::fs::create_dir_all(path.parent().expect("is inside the clone")).expect("may write");
        std::fs::write(path, text).expect("may write");
    }

    /// Commits `app/signal.yaml` with `rev` and pushes it; returns the commit.
    pub fn commit(&self, rev: &str) -> String {
        let manifest = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: signal\ndata:\n  rev: {rev}\n");
        self.write("app/signal.yaml", &manifest);
        self.push(rev)
    }

    /// Commits everything and pushes it to `main`; returns the commit.
    pub fn push(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.git(&["push", "--quiet", "origin", "HEAD:main"]);
        self.commit_of_branch()
    }

    pub fn commit_of_branch(&self) -> String {
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// The real kubectl against the stand-in; what it prints.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        run(self.standin.kubectl().args(arguments))
    }

    pub fn apply(&self, object: &Value) {
        let file = self.clone.path().join(".git/applied.json");
        std::fs::write(&file, object.to_string()).expect("may write");
        self.kubectl(&["apply", "-f", &file.display().to_string()]);
    }

    /// The Application of the lab.
    pub fn evt(&self) -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "evt", "namespace": "argocd"},
            "spec": {
                "project": "default",
                "source": {"repoURL": self.standin.git_url("evt.git"), "targetRevision": "main", "path": "app"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "evt"},
                "syncPolicy": {
                    "automated": {"prune": true, "selfHeal": true},
                    "syncOptions": ["CreateNamespace=true"],
                },
            },
        })
    }

    pub fn apply_evt(&self) {
        self.apply(&self.evt());
    }

    /// Adds an Application without the help of kubectl.
    pub fn create(&self, application: Value) {
        self.standin.store().create(APPLICATIONS, application).expect("the name is free");
    }

    /// Applies a merge patch to the Application `evt`.
    pub fn patch_evt(&self, patch: &Value) {
        let patched = self.standin.store().update(APPLICATIONS, "argocd", "evt", |app| {
            merge(app, patch);
            Ok(())
        });
        patched.expect("it is there");
    }

    /// Asks for a refresh of `evt`.
    pub fn ask_for_refresh(&self, kind: &str) {
        self.patch_evt(&json!({"metadata": {"annotations": {REFRESH: kind}}}));
    }

    /// Asks for a refresh of `evt` and waits until the annotation is gone.
    pub fn refresh(&self) {
        self.ask_for_refresh("normal");
        self.wait_for("the refresh", PATIENCE, |app| app["metadata"]["annotations"][REFRESH].is_null());
    }

    /// The messages in the log of the controller.
    pub fn controller_log(&self) -> Vec<String> {
        self.log_of(Component::Controller)
    }

    /// The messages in the logs of a component, pod after pod.
    pub fn log_of(&self, component: Component) -> Vec<String> {
        let all = self.standin.cluster().processes.of(component);
        let lines = all.iter().flat_map(|process| process.log.lines());
        let message = |line: String| match serde_json::from_str::<Value>(&line) {
            Ok(object) => object["msg"].as_str().unwrap_or_default().to_owned(),
            Err(_) => line,
        };
        lines.map(message).collect()
    }

    pub fn application(&self, name: &str) -> Value {
        self.standin.store().get(APPLICATIONS, "argocd", name).unwrap_or_default()
    }

    /// Waits, change by change, until the Application `evt` is as wanted.
    pub fn wait_for(&self, what: &str, patience: Duration, is_so: impl Fn(&Value) -> bool) {
        self.wait_until(what, patience, || is_so(&self.application("evt")));
    }

    /// Waits until something holds. It is looked at after each write to the store, and now and then for what is not
    /// there: logs, answers.
    pub fn wait_until(&self, what: &str, patience: Duration, holds: impl Fn() -> bool) {
        let mut newest = self.standin.store().newest();
        let began = Instant::now();
        while !holds() {
            let app = &self.application("evt");
            assert!(began.elapsed() < patience, "waited {patience:?} for: {what}\n{app:#}");
            let tick = Duration::from_millis(20);
            let _ = self.runtime.block_on(async { tokio::time::timeout(tick, newest.changed()).await });
        }
    }

    pub fn wait_for_revision(&self, commit: &str, patience: Duration) {
        self.wait_for(commit, patience, |app| app["status"]["sync"]["revision"] == commit);
    }

    /// The Application stays at a commit for so long.
    pub fn stays_at(&self, commit: &str, time: Duration) {
        let (_, before) = self.standin.store().list(APPLICATIONS, None);
        std::thread::sleep(time);
        let events = self.standin.store().since(APPLICATIONS, before).expect("the log reaches back");
        let seen = events.iter().map(|event| event.object["status"]["sync"]["revision"].clone());
        let moved: Vec<Value> = seen.filter(|revision| revision != commit).collect();
        assert!(moved.is_empty(), "moved to {moved:?}");
        assert_eq!(self.application("evt")["status"]["sync"]["revision"], commit);
    }

    /// The body of GitHub's event for a push to `main`.
    pub fn push_event(&self, before: &str, after: &str) -> String {
        let url = self.standin.git_url("evt.git");
        json!({
            "ref": "refs/heads/main",
            "before": before,
            "after": after,
            "repository": {"html_url": url.trim_end_matches(".git"), "default_branch": "main"},
            "commits": [],
        })
        .to_string()
    }

    /// Posts a push event of GitHub to the Service of argocd-server.
    pub fn post(&self, body: &str, arguments: &[&str]) -> Reply {
        self.post_with(body, &[&["-H", "X-GitHub-Event: push"], arguments].concat())
    }

    /// Posts a body with curl, which knows the certificate.
    pub fn post_with(&self, body: &str, arguments: &[&str]) -> Reply {
        let port = self.standin.cluster().service_ports.1;
        let resolve = format!("argocd-server:{port}:127.0.0.1");
        let url = format!("https://argocd-server:{port}/api/webhook");
        let certificate = self.standin.store().get("secrets", "argocd", "argocd-secret").unwrap_or_default();
        let certificate = run_with(
            Command::new("base64").arg("-d"),
            certificate["data"]["tls.crt"].as_str().unwrap_or_default().as_bytes(),
        );
        let file = self.dir().join(".git/server.pem");
        std::fs::write(&file, certificate).expect("may write");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "20", "--noproxy", "*", "-w", "\n%{http_code}", "--resolve", &resolve])
            .arg("--cacert")
            .arg(&file)
            .args(["-H", "Content-Type: application/json", "--data-binary", "@-"])
            .args(arguments)
            .arg(url);
        curl_reply(&mut curl, body)
    }

    /// Writes a key of `argocd-secret`.
    pub fn set_secret(&self, key: &str, value: &str) {
        let patch = json!({"stringData": {key: value}}).to_string();
        self.kubectl(&["patch", "secret", "argocd-secret", "-n", "argocd", "--type", "merge", "-p", &patch]);
    }

    /// By openssl.
    pub fn hmac_sha256(&self, key: &str, body: &str) -> String {
        let out = run_with(Command::new("openssl").args(["dgst", "-sha256", "-hmac", key]), body.as_bytes());
        out.trim().rsplit(' ').next().expect("openssl prints the digest last").to_owned()
    }
}

/// A merge patch (RFC 7396).
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            object.as_object_mut().expect("was made one").remove(key);
        } else {
            merge(&mut object[key], value);
        }
    }
}

/// Runs curl, which ends its output with the status; 0 when there was no answer.
pub fn curl_reply(curl: &mut Command, body: &str) -> Reply {
    let mut child = curl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("curl");
    let _ = child.stdin.take().expect("is piped").write_all(body.as_bytes());
    let output = child.wait_with_output().expect("curl");
    let text = String::from_utf8(output.stdout).expect("is text");
    let (body, status) = text.rsplit_once('\n').unwrap_or(("", "0"));
    Reply { status: status.parse().unwrap_or(0), body: body.to_owned() }
}

/// Runs a command that has to succeed; what it prints.
pub fn run(command: &mut Command) -> String {
    run_with(command, b"")
}

/// The same, with something to read.
pub fn run_with(command: &mut Command, input: &[u8]) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    child.stdin.take().expect("is piped").write_all(input).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("is text")
}
