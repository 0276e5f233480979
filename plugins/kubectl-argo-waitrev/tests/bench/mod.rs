//! Applications in a stand-in without controllers, so that a test alone decides what happens to them, and the command.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStderr, Command, Output, Stdio},
};

use serde_json::{Value, json};
use standin::{Options, Standin};

pub const APPLICATIONS: &str = "applications.argoproj.io";
pub const R1: &str = "1111111111111111111111111111111111111111";
pub const R2: &str = "2222222222222222222222222222222222222222";
pub const R3: &str = "3333333333333333333333333333333333333333";
pub const URL: &str = "https://git.example.com/team/app.git";

/// A cluster whose Applications nobody touches.
pub struct Bench(pub Standin);

impl Bench {
    pub fn start() -> Bench {
        Bench::with(Options::default())
    }

    pub fn with(options: Options) -> Bench {
        Bench(Standin::with(Options { controllers: 0, repo_servers: 0, servers: 0, ..options }))
    }

    pub fn faults(&self) -> &standin::Faults {
        &self.0.cluster().faults
    }

    /// A user with these verbs on Applications of a namespace, and only on those named, if any are.
    pub fn user(&self, name: &str, namespace: &str, verbs: &[&str], names: &[&str]) -> std::path::PathBuf {
        let store = self.0.store();
        let mut rule = json!({"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": verbs});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        let metadata = json!({"name": name, "namespace": namespace});
        store.create("roles.rbac.authorization.k8s.io", json!({"metadata": metadata, "rules": [rule]})).unwrap();
        let binding = json!({
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}],
        });
        store.create("rolebindings.rbac.authorization.k8s.io", binding).unwrap();
        self.0.kubeconfig_for(name)
    }

    /// Makes `argocd/NAME` at a revision, Synced and Healthy.
    pub fn app(&self, name: &str, revision: &str) {
        self.app_in("argocd", name, revision);
    }

    pub fn app_in(&self, namespace: &str, name: &str, revision: &str) {
        self.make(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": namespace, "labels": {"team": "blue"}},
            "spec": {
                "project": "default",
                "source": {"repoURL": URL, "targetRevision": "main", "path": "app"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
                "syncPolicy": {"automated": {}},
            },
            "status": {
                "sync": {"status": "Synced", "revision": revision},
                "health": {"status": "Healthy"},
                "reconciledAt": now(),
            },
        }));
    }

    pub fn make(&self, object: Value) {
        self.0.store().create(APPLICATIONS, object).unwrap();
    }

    /// Changes `argocd/NAME` by a merge patch; UNIX ms of the write.
    pub fn patch(&self, name: &str, patch: Value) -> u64 {
        self.patch_in("argocd", name, patch)
    }

    pub fn patch_in(&self, namespace: &str, name: &str, patch: Value) -> u64 {
        self.0
            .store()
            .update(APPLICATIONS, namespace, name, |object| {
                merge(object, &patch);
                Ok(())
            })
            .unwrap();
        now_ms()
    }

    /// The controller compares: the revision moves.
    pub fn compare(&self, name: &str, revision: &str, status: &str) -> u64 {
        let sync = json!({"revision": revision, "status": status});
        self.patch(name, json!({"status": {"sync": sync, "reconciledAt": now()}}))
    }

    /// The command with these words.
    pub fn command(&self, words: &[&str]) -> Command {
        self.command_as(self.0.kubeconfig(), words)
    }

    pub fn command_as(&self, kubeconfig: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-argo-waitrev"));
        command.args(words).env("KUBECONFIG", kubeconfig).env_remove("NO_COLOR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, words: &[&str]) -> Ended {
        Ended::from(self.command(words).output().unwrap())
    }

    /// Starts the command and returns when it watches.
    pub fn watching(&self, words: &[&str]) -> Running {
        let mut running = Running::start(self.command(words).arg("-v"));
        running.until("watch=true");
        running
    }

    /// Starts the command and returns when its watch has told it of a change: then it is open on both sides.
    pub fn watched(&self, name: &str, words: &[&str]) -> Running {
        let mut running = self.watching(words);
        self.tell(name, &mut running);
        running
    }

    /// Changes something that does not matter, and returns when the command has seen it.
    pub fn tell(&self, name: &str, running: &mut Running) {
        let health = format!("Progressing-{}", now_ms());
        self.patch(name, json!({"status": {"health": {"status": health}}}));
        running.until(&health);
    }

    /// How many requests for Applications were made, by verb: lists and gets, watches.
    pub fn requests(&self) -> (usize, usize) {
        let all = self.0.requests();
        let ours = all.iter().filter(|request| request.path.contains("/applications"));
        let (watches, reads): (Vec<_>, Vec<_>) = ours.partition(|request| request.query.contains("watch=true"));
        (reads.len(), watches.len())
    }
}

/// The command while it runs.
pub struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    said: String,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running { child, stderr, said: String::new() }
    }

    /// Reads what it says until a line contains `text`.
    pub fn until(&mut self, text: &str) -> &mut Self {
        loop {
            let mut line = String::new();
            let length = self.stderr.read_line(&mut line).unwrap();
            self.said.push_str(&line);
            if line.contains(text) {
                return self;
            }
            assert!(length > 0, "it ended without saying {text:?}:\n{}", self.said);
        }
    }

    /// Writes to its stdin and closes it.
    pub fn feed(&mut self, text: &str) {
        self.child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        let mut ended = Ended::from(self.child.wait_with_output().unwrap());
        ended.said = self.said + &rest;
        ended
    }
}

/// What the command left behind.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub said: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Ended {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            said: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ended {
    /// The object on stdout, after checking the exit code.
    #[track_caller]
    pub fn object(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.said);
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {:?}\n{}", self.stdout, self.said))
    }
}

pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_millis().try_into().unwrap()
}

/// Now, as the controller writes it.
pub fn now() -> String {
    standin::clock::rfc3339(std::time::SystemTime::now())
}

/// An event record of a push of `commit`.
pub fn record(commit: &str) -> Value {
    json!({
        "commit": commit, "before": R1, "ref": "refs/heads/main", "branch": "main", "default_branch": "main",
        "repo_url": "https://git.example.com/team/app", "files_complete": false, "extra": [1, null, "x"],
        "pushed_at": now_ms() / 1000, "pushed_at_ms": now_ms(),
    })
}

/// JSON merge patch, RFC 7396.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}
