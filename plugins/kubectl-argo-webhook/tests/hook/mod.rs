//! The command against a stand-in.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use standin::{Options, Standin};

pub const BEFORE: &str = "1111111111111111111111111111111111111111";
pub const AFTER: &str = "2222222222222222222222222222222222222222";
pub const REPO: &str = "https://git.example.com/team/app";
const APPLICATIONS: &str = "applications.argoproj.io";
const REFRESH: &str = "argocd.argoproj.io/refresh";

/// A cluster with argocd-server alone: an Application that is asked to refresh stays asked.
pub struct Hook {
    pub standin: Standin,
    pub folder: tempfile::TempDir,
}

/// What the command left behind.
pub struct Ended {
    pub code: i32,
    /// `null` when nothing was printed.
    pub object: Value,
    pub said: String,
}

impl Hook {
    pub fn start() -> Hook {
        Hook::with(Options::default())
    }

    pub fn with(options: Options) -> Hook {
        let standin = Standin::with(Options { controllers: 0, repo_servers: 0, ..options });
        let hook = Hook { standin, folder: tempfile::tempdir().unwrap() };
        fs::write(hook.path("push.json"), record().to_string()).unwrap();
        hook
    }

    /// A file in the test's own folder, which is the command's working directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-argo-webhook"));
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("KUBECONFIG", self.standin.kubeconfig()).env_remove("NO_COLOR");
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, words: &[&str]) -> Ended {
        Ended::of(self.command(words))
    }

    pub fn run_as(&self, user: &str, words: &[&str]) -> Ended {
        let mut command = self.command(words);
        command.env("KUBECONFIG", self.standin.kubeconfig_for(user));
        Ended::of(command)
    }

    /// Runs a line in a shell, in the test's own folder; panics when it fails.
    pub fn shell(&self, line: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-euc", line]).current_dir(self.folder.path()).env("KUBECONFIG", self.standin.kubeconfig());
        let output = command.env("HOME", self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Sets keys of argocd-secret.
    pub fn set_secret(&self, data: &[(&str, Option<&str>)]) {
        let store = self.standin.store();
        store
            .update("secrets", "argocd", "argocd-secret", |secret| {
                for (key, value) in data {
                    match value {
                        Some(value) => secret["data"][key] = json!(base64(value)),
                        None => drop(secret["data"].as_object_mut().unwrap().remove(*key)),
                    }
                }
                Ok(())
            })
            .unwrap();
    }

    /// The data of a Secret, still encoded.
    pub fn secret(&self, name: &str) -> Value {
        self.standin.store().get("secrets", "argocd", name).unwrap()["data"].clone()
    }

    /// Makes an Application of one source.
    pub fn app(&self, name: &str, repo_url: &str, target_revision: &str) {
        self.make_app(
            name,
            &json!({"source": {"repoURL": repo_url, "targetRevision": target_revision, "path": "app"}}),
            &json!({}),
        );
    }

    pub fn make_app(&self, name: &str, spec: &Value, annotations: &Value) {
        let mut spec = spec.clone();
        spec["project"] = json!("default");
        spec["destination"] = json!({"server": "https://kubernetes.default.svc", "namespace": "default"});
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd", "annotations": annotations},
            "spec": spec,
        });
        self.standin.store().create(APPLICATIONS, object).unwrap();
    }

    pub fn is_asked_to_refresh(&self, name: &str) -> bool {
        let app = self.standin.store().get(APPLICATIONS, "argocd", name).unwrap();
        app["metadata"]["annotations"][REFRESH].is_string()
    }

    /// Waits until an Application is asked to refresh, and takes the request away again.
    pub fn refreshed_within(&self, name: &str, limit: Duration) -> bool {
        let mut newest = self.standin.store().newest();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let asked = runtime.block_on(async {
            let asked = async {
                while !self.is_asked_to_refresh(name) {
                    newest.changed().await.unwrap();
                }
            };
            tokio::time::timeout(limit, asked).await
        });
        if asked.is_err() {
            return false;
        }
        let store = self.standin.store();
        store
            .update(APPLICATIONS, "argocd", name, |app| {
                app["metadata"]["annotations"].as_object_mut().unwrap().remove(REFRESH);
                Ok(())
            })
            .unwrap();
        true
    }
}

impl Ended {
    pub fn of(mut command: Command) -> Ended {
        Ended::from(command.output().unwrap())
    }

    pub fn from(output: std::process::Output) -> Ended {
        let text = String::from_utf8(output.stdout).unwrap();
        Ended {
            code: output.status.code().unwrap(),
            object: if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() },
            said: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Fails with everything that was said when the exit code is another.
    #[track_caller]
    pub fn code(self, expected: i32) -> Ended {
        assert_eq!(self.code, expected, "{}\n{}", self.said, self.object);
        self
    }
}

/// A push of one commit that changed `app/signal.yaml`.
pub fn record() -> Value {
    json!({
        "commit": AFTER, "before": BEFORE, "ref": "refs/heads/main", "branch": "main", "default_branch": "main",
        "repo_url": REPO, "files_complete": true,
        "commits": [{"id": AFTER, "message": "r2", "added": [], "modified": ["app/signal.yaml"], "removed": []}],
        "pushed_at": 1, "mine": {"kept": [1]},
    })
}

pub fn write(path: &Path, contents: &str) {
    fs::write(path, contents).unwrap();
}

/// By another program than ours.
pub fn base64(text: &str) -> String {
    piped("base64 -w 0", text.as_bytes())
}

/// What a shell line prints about its stdin, without the newline at its end.
pub fn piped(line: &str, input: &[u8]) -> String {
    use std::io::Write;
    let mut child =
        Command::new("sh").args(["-euc", line]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{line}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// `openssl dgst -sha256 -hmac`.
pub fn openssl_hmac(key: &str, body: &[u8]) -> String {
    let line = format!("openssl dgst -sha256 -hmac '{key}' -r | cut -d' ' -f1");
    piped(&line, body)
}
