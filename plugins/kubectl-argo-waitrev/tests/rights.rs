//! What each set of rights is enough for.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bench;

use bench::{Bench, Ended, R1, R2, Running};
use serde_json::json;

#[test]
fn a_role_for_one_application_is_enough() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let kubeconfig = bench.user("ci", "argocd", &["list", "watch"], &["evt"]);
    let mut running = Running::start(bench.command_as(&kubeconfig, &["evt", "--revision", R2]).arg("-v"));
    running.until("watch=true");
    bench.compare("evt", R2, "Synced");
    let object = running.end().object(0);
    assert_eq!((&object["outcome"], &object["polled"]), (&json!("reached"), &json!(false)));
}

#[test]
fn the_role_that_is_shipped_is_enough() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let role = concat!(env!("CARGO_MANIFEST_DIR"), "/../../share/argo-evt/rbac/argo-waitrev.yaml");
    let kubectl = |words: &[&str]| {
        let output = bench.0.kubectl().args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    kubectl(&["apply", "-f", role]);
    kubectl(&["-n", "argocd", "create", "rolebinding", "argo-waitrev", "--role=argo-waitrev", "--user=ci"]);
    let kubeconfig = bench.0.kubeconfig_for("ci");
    let mut running =
        Running::start(bench.command_as(&kubeconfig, &["evt", "--revision", R2, "--until", "synced"]).arg("-v"));
    running.until("watch=true");
    bench.compare("evt", R2, "OutOfSync");
    bench.compare("evt", R2, "Synced");
    assert_eq!(running.end().object(0)["outcome"], "reached");
}

#[test]
fn without_watch_it_polls_and_says_so() {
    for verbs in [&["get", "list"][..], &["get"]] {
        let bench = Bench::start();
        bench.app("evt", R1);
        let kubeconfig = bench.user("ci", "argocd", verbs, &[]);
        let mut running =
            Running::start(&mut bench.command_as(&kubeconfig, &["evt", "--revision", R2, "--timeout", "20s"]));
        running.until("looked at every second");
        bench.compare("evt", R2, "Synced");
        let object = running.end().object(0);
        assert_eq!((&object["outcome"], &object["polled"]), (&json!("reached"), &json!(true)), "{verbs:?}");
    }
}

#[test]
fn get_and_watch_are_enough_for_one_application() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let kubeconfig = bench.user("ci", "argocd", &["get", "watch"], &["evt"]);
    let mut running = Running::start(bench.command_as(&kubeconfig, &["evt", "--revision", R2]).arg("-v"));
    running.until("watch=true");
    bench.compare("evt", R2, "Synced");
    assert_eq!(running.end().object(0)["polled"], false);
}

#[test]
fn names_in_several_namespaces_are_read_one_by_one_where_the_cluster_may_not_be_listed() {
    let bench = Bench::start();
    bench.app("a", R1);
    bench.app_in("team", "a", R2);
    let kubeconfig = bench.user("ci", "argocd", &["get"], &[]);
    bench.user("ci", "team", &["get"], &[]);
    let mut running = Running::start(&mut bench.command_as(&kubeconfig, &["a", "team/a", "--revision", R2]));
    running.until("looked at every second");
    bench.compare("a", R2, "Synced");
    let object = running.end().object(0);
    assert_eq!(
        (&object["results"][0]["outcome"], &object["results"][1]["outcome"]),
        (&json!("reached"), &json!("already"))
    );
}

#[test]
fn stillness_can_be_watched_for_by_polling_too() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let kubeconfig = bench.user("ci", "argocd", &["get", "list"], &[]);
    let output = bench.command_as(&kubeconfig, &["evt", "--revision", R2, "--hold", "2s"]).output().unwrap();
    let object = Ended::from(output).object(0);
    assert_eq!((&object["outcome"], &object["polled"]), (&json!("held"), &json!(true)));
}

#[test]
fn a_selector_needs_list() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let kubeconfig = bench.user("ci", "argocd", &["get", "watch"], &[]);
    let ended = Ended::from(bench.command_as(&kubeconfig, &["--all", "--revision", R2]).output().unwrap());
    assert_eq!(ended.code, 4, "{}", ended.said);
    assert!(ended.said.contains("`list` on `applications.argoproj.io` in namespace argocd"), "{}", ended.said);
}
