//! The Roles in `share/argo-evt/rbac` are enough, and no verb in them is too much. That of `argo-resync` is tested beside
//! its other rights.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod suite;

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::{Value, json};
use standin::{Options, Standin};

const ROLES: &str = "roles.rbac.authorization.k8s.io";
const APPLICATIONS: &str = "applications.argoproj.io";
const BEFORE: &str = "1111111111111111111111111111111111111111";
const AFTER: &str = "2222222222222222222222222222222222222222";

/// A cluster with argocd-server alone, one Application, and a user who has the Role of one file.
struct Bench {
    standin: Standin,
    role: &'static str,
    kubeconfig: PathBuf,
}

/// What a command left behind.
#[derive(Debug)]
struct Ended {
    code: i32,
    object: Value,
    said: String,
}

impl Bench {
    fn with(role: &'static str) -> Bench {
        let standin = Standin::with(Options { controllers: 0, repo_servers: 0, ..Options::default() });
        let application = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "argocd", "name": "evt"},
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://git.example.com/team/app", "path": ".", "targetRevision": "main"},
                "destination": {"namespace": "evt", "server": "https://kubernetes.default.svc"},
            },
            "status": {"sync": {"status": "Synced", "revision": BEFORE}},
        });
        standin.store().create(APPLICATIONS, application).unwrap();
        let file = format!("{}/share/argo-evt/rbac/{role}.yaml", env!("CARGO_MANIFEST_DIR"));
        for words in [
            vec!["apply", "-f", &file],
            vec!["-n", "argocd", "create", "rolebinding", role, &format!("--role={role}"), "--user=dev"],
        ] {
            let output = standin.kubectl().args(words).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        let kubeconfig = standin.kubeconfig_for("dev");
        Bench { standin, role, kubeconfig }
    }

    fn run(&self, command: &str, words: &[&str]) -> Ended {
        let mut command = kubectl(command);
        let Output { status, stdout, stderr } =
            command.args(words).env("KUBECONFIG", &self.kubeconfig).output().unwrap();
        Ended {
            code: status.code().unwrap(),
            object: serde_json::from_slice(&stdout).unwrap_or_default(),
            said: String::from_utf8(stderr).unwrap(),
        }
    }

    /// Runs `check` with each verb of the Role taken away, one at a time; gives how many there are.
    fn without_each(&self, mut check: impl FnMut(&str, &str)) -> usize {
        let whole = self.standin.store().get(ROLES, "argocd", self.role).unwrap();
        let mut count = 0;
        for (index, rule) in whole["rules"].as_array().unwrap().iter().enumerate() {
            for (place, verb) in rule["verbs"].as_array().unwrap().iter().enumerate() {
                let mut less = whole["rules"].clone();
                less[index]["verbs"].as_array_mut().unwrap().remove(place);
                let replace = |role: &mut Value| {
                    role["rules"] = less;
                    Ok(())
                };
                self.standin.store().update(ROLES, "argocd", self.role, replace).unwrap();
                check(verb.as_str().unwrap(), rule["resources"][0].as_str().unwrap());
                count += 1;
            }
        }
        count
    }
}

impl Ended {
    fn is_refused(&self, verb: &str, resource: &str) {
        assert_eq!(self.code, 4, "without {verb} on {resource}: {self:#?}");
        let named = format!("needs the verb `{verb}` on `{resource}");
        assert!(self.said.contains(&named), "without {verb} on {resource}: {self:#?}");
    }
}

/// kubectl with one of our commands.
fn kubectl(plugin: &str) -> Command {
    let mut command = Command::new("kubectl");
    command.arg(plugin).env("PATH", suite::path());
    command
}

const EVENT: [&str; 6] =
    ["--repo-url", "https://git.example.com/team/app", "--ref", "refs/heads/main", "--after", AFTER];

#[test]
fn sending_a_signed_event_needs_the_key_and_the_way_to_the_server() {
    let bench = Bench::with("argo-webhook");
    let admin = |words: &[&str]| {
        let mut command = kubectl("argo-webhook");
        let output = command.args(words).env("KUBECONFIG", bench.standin.kubeconfig()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    admin(&["secret", "set", "--generate"]);
    let send = || bench.run("argo-webhook", &[&EVENT[..], &["--sign"]].concat());
    let ended = send();
    assert_eq!((ended.code, &ended.object["http_status"]), (0, &json!(200)), "{ended:#?}");
    assert_eq!(bench.without_each(|verb, resource| send().is_refused(verb, resource)), 2);
}

#[test]
fn explaining_an_event_needs_the_applications() {
    let bench = Bench::with("argo-webhook-explain");
    let explain = || bench.run("argo-webhook", &[&["explain"], &EVENT[..]].concat());
    let ended = explain();
    assert_eq!((ended.code, &ended.object["refreshes"]), (0, &json!(1)), "{ended:#?}");
    assert_eq!(bench.without_each(|verb, resource| explain().is_refused(verb, resource)), 1);
}

#[test]
fn setting_the_key_needs_the_secret_and_every_pod() {
    let bench = Bench::with("argo-webhook-secret");
    let set = || bench.run("argo-webhook", &["secret", "set", "--generate"]);
    let ended = set();
    assert_eq!(ended.code, 0, "{ended:#?}");
    let secret = || bench.standin.store().get("secrets", "argocd", "argocd-secret").unwrap()["data"].clone();
    let before = secret();
    let verbs = bench.without_each(|verb, resource| {
        // The stand-in checks a port-forward over WebSocket as older API servers do: by `get` alone.
        if (verb, resource) == ("create", "pods/portforward") {
            return;
        }
        set().is_refused(verb, resource);
        assert_eq!(secret(), before, "without {verb} on {resource} nothing is changed");
    });
    assert_eq!(verbs, 6);
}

#[test]
fn waiting_needs_list_and_without_watch_it_looks_every_second() {
    let bench = Bench::with("argo-waitrev");
    let hold = || bench.run("argo-waitrev", &["evt", "--revision", AFTER, "--hold", "1s"]);
    let ended = hold();
    assert_eq!((ended.code, &ended.object["polled"]), (0, &json!(false)), "{ended:#?}");
    let verbs = bench.without_each(|verb, resource| {
        let ended = hold();
        match verb {
            "watch" => {
                assert_eq!((ended.code, &ended.object["polled"]), (0, &json!(true)), "{ended:#?}");
                assert!(ended.said.contains("every second"), "{ended:#?}");
            }
            _ => assert_eq!(ended.code, 4, "without {verb} on {resource}: {ended:#?}"),
        }
    });
    assert_eq!(verbs, 2);
}
