//! The command, a cluster, and Applications in it.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use standin::{Options, Request, Standin, processes::Component};

pub const APPLICATIONS: &str = "applications.argoproj.io";
pub const CONTROLLER: &str = "argocd-application-controller";
pub const REPO_SERVER: &str = "argocd-repo-server";

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn of(output: Output) -> Ended {
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The object, after the expected exit code.
    #[track_caller]
    pub fn object(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "{self:#?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The error, after a call that changed nothing and printed nothing.
    #[track_caller]
    pub fn refusal(&self, code: i32) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:#?}");
        assert!(self.stderr.contains("error: ") && self.stderr.contains("hint: "), "{self:#?}");
        &self.stderr
    }
}

/// The command with these words.
pub fn command(standin: &Standin, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-argo-resync"));
    command.args(words).env("KUBECONFIG", standin.kubeconfig()).stdin(Stdio::null());
    command
}

pub fn run(standin: &Standin, words: &[&str]) -> Ended {
    Ended::of(command(standin, words).output().unwrap())
}

/// A stock cluster with these values in `argocd-cm`.
pub fn with_settings(settings: &[(&str, &str)]) -> Standin {
    Standin::with(Options { settings: owned(settings), ..Options::default() })
}

pub fn owned(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
    settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// `data` of `argocd-cm`.
pub fn config(standin: &Standin) -> Value {
    standin.store().get("configmaps", "argocd", "argocd-cm").unwrap()["data"].clone()
}

/// Changes an object in place.
pub fn change(standin: &Standin, resource: &str, name: &str, change: impl FnOnce(&mut Value)) {
    standin
        .store()
        .update(resource, "argocd", name, |object| {
            change(object);
            Ok(())
        })
        .unwrap();
}

/// What a variable of each running container of a component is.
pub fn env(standin: &Standin, component: Component, variable: &str) -> Vec<Option<String>> {
    standin.cluster().processes.of(component).into_iter().map(|process| process.env.get(variable).cloned()).collect()
}

/// `METHOD /path` of every request that changes something; a dry run does not.
pub fn writes(standin: &Standin) -> Vec<String> {
    let changes = |request: &Request| request.method != "GET" && !request.query.contains("dryRun=All");
    let all = standin.requests().into_iter().filter(changes);
    all.map(|request| format!("{} {}", request.method, request.path)).collect()
}

/// How many writes went to objects whose path ends so.
pub fn writes_to(standin: &Standin, name: &str) -> usize {
    writes(standin).iter().filter(|write| write.ends_with(name)).count()
}

/// A bare repository with one commit; its URL.
pub fn repository(standin: &Standin, name: &str) -> String {
    let bare = standin.git_root().join(name);
    let work = tempfile::tempdir().unwrap();
    let git = |folder: &Path, words: &[&str]| {
        let output = Command::new("git")
            .current_dir(folder)
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"])
            .args(words)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {words:?}: {output:?}");
    };
    fs::create_dir(&bare).unwrap();
    git(&bare, &["init", "-q", "--bare"]);
    git(work.path(), &["init", "-q"]);
    fs::create_dir(work.path().join("app")).unwrap();
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: signal\ndata:\n  rev: r1\n";
    fs::write(work.path().join("app/signal.yaml"), manifest).unwrap();
    git(work.path(), &["add", "."]);
    git(work.path(), &["commit", "-qm", "r1"]);
    git(work.path(), &["push", "-q", bare.to_str().unwrap(), "main"]);
    standin.git_url(name)
}

/// The commit at the head of a repository made by [`repository`].
pub fn head(standin: &Standin, name: &str) -> String {
    let output =
        Command::new("git").arg("-C").arg(standin.git_root().join(name)).args(["rev-parse", "main"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// An Application of this repository, without automated sync.
pub fn app(name: &str, url: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "labels": {"team": "blue"}},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "targetRevision": "main", "path": "app"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        },
    })
}

pub fn make(standin: &Standin, object: Value) {
    standin.store().create(APPLICATIONS, object).unwrap();
}
