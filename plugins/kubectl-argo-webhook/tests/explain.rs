//! Explanations, and whether the server does as they say.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod hook;

use std::{fs, time::Duration};

use hook::{Hook, REPO, record};
use serde_json::{Value, json};

/// Fifty Applications: ten addresses, and with each five revisions and paths.
fn fleet() -> Vec<(String, Value, Value)> {
    let urls = [
        REPO,
        "https://git.example.com/team/app.git",
        "git@git.example.com:team/app.git",
        "git.example.com/team/app",
        "ssh://git@ssh.git.example.com:443/team/app",
        "https://git.example.com/team/app/",
        "https://me:pw@git.example.com/team/app",
        "https://git.example.com/team/other",
        "https://mirror.example.com/team/app",
        "https://GIT.example.com:8443/TEAM/app",
    ];
    let rest = [
        ("main", "app", "."),
        ("HEAD", "other", "/app"),
        ("dev", "app", ""),
        ("refs/heads/main", "other", "."),
        ("", "", "/x/*;/app/*.yaml"),
    ];
    let mut apps = Vec::new();
    for (i, url) in urls.iter().enumerate() {
        for (j, (revision, path, paths)) in rest.iter().enumerate() {
            let source = json!({"repoURL": url, "targetRevision": revision, "path": path});
            let spec = match j {
                3 => {
                    json!({"sources": [{"repoURL": "https://charts.example.com", "chart": "c", "targetRevision": "1.*"}, source]})
                }
                _ => json!({"source": source}),
            };
            apps.push((format!("app-{i}-{j}"), spec, json!({"argocd.argoproj.io/manifest-generate-paths": paths})));
        }
    }
    apps
}

#[test]
fn what_is_explained_is_what_the_server_does_with_a_fleet_of_fifty() {
    let hook = Hook::start();
    for (name, spec, annotations) in fleet() {
        hook.make_app(&name, &spec, &annotations);
    }
    hook.app("last", REPO, "main");
    let explained = hook.run(&["explain", "-f", "push.json"]).code(0);
    hook.run(&["-f", "push.json"]).code(0);
    // Events are handled in the order of the Applications' names, and this one is the last.
    assert!(hook.refreshed_within("last", Duration::from_secs(5)));
    let apps = explained.object["applications"].as_array().unwrap();
    assert_eq!(apps.len(), 51);
    let mut asked = 1;
    for app in apps.iter().filter(|app| app["app"] != "last") {
        let name = app["app"].as_str().unwrap();
        let refreshed = if app["refresh"] == true {
            hook.refreshed_within(name, Duration::from_secs(5))
        } else {
            hook.is_asked_to_refresh(name)
        };
        assert_eq!(app["refresh"], refreshed, "{app}");
        asked += u64::from(refreshed);
    }
    assert_eq!(explained.object["refreshes"], asked);
    assert!(asked > 10 && asked < 40, "the fleet is mixed: {asked}");
}

fn explained(hook: &Hook, app: Value, edit: Value, words: &[&str]) -> Value {
    let mut record = record();
    record.as_object_mut().unwrap().extend(edit.as_object().unwrap().clone());
    fs::write(hook.path("event.json"), record.to_string()).unwrap();
    fs::write(hook.path("apps.json"), app.to_string()).unwrap();
    let words = [&["explain", "-f", "event.json", "--applications", "apps.json"], words].concat();
    hook.run(&words).object
}

fn app(source: Value) -> Value {
    json!({"kind": "Application", "metadata": {"name": "a"}, "spec": {"source": source}})
}

#[test]
fn the_first_failing_rule_comes_with_what_was_compared_and_a_hint() {
    let hook = Hook::start();
    let repo = |url: &str| app(json!({"repoURL": url, "targetRevision": "main"}));
    let revision = |revision: &str| app(json!({"repoURL": REPO, "targetRevision": revision}));
    let cases = [
        (repo("https://git.example.com/team/app/"), json!({}), "url", "ends in a slash"),
        (repo("https://me:pw@git.example.com/team/app"), json!({}), "url", "holds a password"),
        (repo("https://ssh.example.com/team/app"), json!({}), "url", "same path on another host"),
        (repo("git@git.example.com:app"), json!({}), "url", "a folder before it"),
        (repo("git@git.example.com:/team/app"), json!({}), "url", "write repoURL as https://git.example.com/team/app"),
        (repo(REPO), json!({"repo_url": "https://git.example.com/team/app.git"}), "url", "ends in .git"),
        (
            repo("git@ssh.dev.azure.com:v3/o/p/r"),
            json!({"repo_url": "https://dev.azure.com/o/p/_git/r"}),
            "url",
            "Azure's SSH address",
        ),
        (
            repo("https://git.example.com/my app"),
            json!({"repo_url": "https://git.example.com/my app"}),
            "url",
            "escapes",
        ),
        (revision("dev"), json!({}), "ref", "another branch"),
        (revision("1111111111111111111111111111111111111111"), json!({}), "ref", "pinned to a commit"),
        (revision("Main"), json!({}), "ref", "letter case"),
        (revision("1.*"), json!({}), "ref", "version range"),
        (revision("HEAD"), json!({"default_branch": "master"}), "ref", "not to the default branch"),
    ];
    for (app, edit, rule, hint) in cases {
        let object = explained(&hook, app, edit, &[]);
        let source = &object["applications"][0]["sources"][0];
        assert_eq!(source["rule"], rule, "{source}");
        assert!(source["hint"].as_str().is_some_and(|text| text.contains(hint)), "{hint}: {source}");
        assert!(!source["detail"].as_str().unwrap().is_empty());
        assert_eq!(object["refreshes"], 0);
    }
    let old =
        explained(&hook, repo("https://me@git.example.com/team/app"), json!({}), &["--server-version", "v2.14.0"]);
    assert!(old["applications"][0]["sources"][0]["hint"].as_str().unwrap().contains("only from Argo CD v3.0"), "{old}");
    let mut missed = app(json!({"repoURL": REPO, "targetRevision": "main", "path": "other"}));
    missed["metadata"]["annotations"] = json!({"argocd.argoproj.io/manifest-generate-paths": "."});
    let missed = explained(&hook, missed, json!({}), &[]);
    let source = &missed["applications"][0]["sources"][0];
    assert_eq!(source["rule"], "paths");
    assert!(source["hint"].as_str().unwrap().contains("moves the cached manifests"), "{source}");
}

#[test]
fn applications_are_read_from_yaml_documents_json_and_lists() {
    let hook = Hook::start();
    let before = hook.standin.requests().len();
    let yaml = format!(
        "# a fleet\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata: {{spec: y}}\n---\n\
         apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: one\nspec:\n  source: {{repoURL: {REPO}, \
         targetRevision: main}}\n---\napiVersion: v1\nkind: List\nitems:\n- kind: Application\n  metadata: {{name: two, \
         namespace: team-a}}\n  spec: {{sources: [{{repoURL: {REPO}, targetRevision: dev}}]}}\n"
    );
    fs::write(hook.path("apps.yaml"), yaml).unwrap();
    let words = ["explain", "-f", "push.json", "--applications", "apps.yaml"];
    let object = hook.run(&words).code(0).object;
    let names: Vec<&Value> = object["applications"].as_array().unwrap().iter().map(|app| &app["app"]).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(object["applications"][0]["namespace"], "argocd");
    assert_eq!(object["refreshes"], 1);
    let gaps = format!(
        "kind: Application\nmetadata: {{name: a, annotations: {{n: 1}}}}\nspec: {{source: {{repoURL: {REPO}, targetRevision: , path: }}}}\n---\nkind: List\nitems:\n"
    );
    fs::write(hook.path("gaps.yaml"), gaps).unwrap();
    hook.run(&["explain", "-f", "push.json", "--applications", "gaps.yaml"]).code(0);
    fs::write(hook.path("none.yaml"), "kind: ConfigMap\n").unwrap();
    assert_eq!(hook.run(&["explain", "-f", "push.json", "--applications", "none.yaml"]).code, 2);
    fs::write(hook.path("bad.yaml"), "a: [").unwrap();
    assert_eq!(hook.run(&["explain", "-f", "push.json", "--applications", "bad.yaml"]).code, 2);
    assert_eq!(hook.standin.requests().len(), before, "with a file the cluster is not asked");
}

#[test]
fn an_application_outside_the_served_namespaces_is_not_reached() {
    let hook = Hook::start();
    let mut outside = app(json!({"repoURL": REPO, "targetRevision": "main"}));
    outside["metadata"]["namespace"] = json!("team-a");
    let object = explained(&hook, outside.clone(), json!({}), &["--application-namespaces", "team-b,apps-*"]);
    assert_eq!(object["applications"][0]["refresh"], false);
    assert!(object["applications"][0]["notes"][0].as_str().unwrap().contains("application.namespaces"), "{object}");
    let object = explained(&hook, outside, json!({}), &["--application-namespaces", "team-*"]);
    assert_eq!(object["applications"][0]["refresh"], true);
}

#[test]
fn a_captured_delivery_can_be_explained_too() {
    let hook = Hook::start();
    hook.app("app", REPO, "main");
    let body = json!({"ref": "refs/heads/main", "project": {"web_url": REPO, "default_branch": "main"}});
    fs::write(hook.path("delivery.json"), body.to_string()).unwrap();
    let object = hook.run(&["explain", "--body-file", "delivery.json", "--provider", "gitlab"]).code(0).object;
    assert_eq!((&object["refreshes"], &object["server_version"]), (&json!(1), &json!("3.5.1")));
    let nothing = hook.run(&["explain", "--body-file", "delivery.json"]).code(1);
    assert_eq!(nothing.object["applications"][0]["sources"][0]["rule"], "url", "as GitHub's it names no repository");
}
