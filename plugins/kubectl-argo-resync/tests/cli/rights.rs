//! The Role in `share/argo-evt/rbac` is enough, and nothing in it is too much.

use std::process::Command;

use serde_json::Value;
use standin::Standin;

use crate::bench::{Ended, app, change, config, make, repository};

const ROLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../share/argo-evt/rbac/argo-resync.yaml");
const ROLES: &str = "roles.rbac.authorization.k8s.io";

fn run_as(standin: &Standin, user: &str, words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-argo-resync"));
    Ended::of(command.args(words).env("KUBECONFIG", standin.kubeconfig_for(user)).output().unwrap())
}

/// Every verb of every rule, taken away one at a time.
fn lesser(rules: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (index, rule) in rules.as_array().unwrap().iter().enumerate() {
        for (place, verb) in rule["verbs"].as_array().unwrap().iter().enumerate() {
            let mut less = rules.clone();
            less[index]["verbs"].as_array_mut().unwrap().remove(place);
            let resource = rule["resources"][0].as_str().unwrap().to_owned();
            all.push((verb.as_str().unwrap().to_owned(), resource, less));
        }
    }
    all
}

#[test]
fn the_role_is_enough_and_each_verb_of_it_is_needed_and_named_when_it_is_missing() {
    let standin = Standin::start();
    make(&standin, app("evt", &repository(&standin, "evt.git")));
    let kubectl = |words: &[&str]| {
        let output = standin.kubectl().args(["-n", "argocd"]).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    kubectl(&["apply", "-f", ROLE]);
    kubectl(&["create", "rolebinding", "argo-resync", "--role=argo-resync", "--user=dev"]);
    run_as(&standin, "dev", &["30s", "--jitter", "0s", "--hard-refresh", "evt"]).object(0);
    run_as(&standin, "dev", &[]).object(0);

    let rules = standin.store().get(ROLES, "argocd", "argo-resync").unwrap()["rules"].clone();
    let before = config(&standin);
    for (verb, resource, less) in lesser(&rules) {
        change(&standin, ROLES, "argo-resync", |role| role["rules"] = less);
        let words: &[&str] = match (verb.as_str(), resource.as_str()) {
            ("list", "applications") => &[],
            // It comes last, when everything else is done.
            ("patch", "applications") => &["--hard-refresh", "evt"],
            _ => &["45s", "--hard-refresh", "evt"],
        };
        let ended = run_as(&standin, "dev", words);
        assert_eq!(ended.code, 4, "without {verb} on {resource}: {ended:#?}");
        let named = format!("needs the verb `{verb}` on `{resource}");
        assert!(ended.stderr.contains(&named), "{named}: {ended:#?}");
        assert_eq!(config(&standin), before, "without {verb} on {resource}");
    }
    assert_eq!(lesser(&rules).len(), 14);
}
