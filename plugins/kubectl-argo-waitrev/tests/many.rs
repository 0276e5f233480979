//! Several Applications with one list and one watch.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bench;

use std::process::Stdio;

use bench::{Bench, R1, R2, R3, Running, URL, record};
use serde_json::{Value, json};

fn outcomes(object: &Value) -> Vec<(String, String)> {
    let text = |result: &Value, key: &str| result[key].as_str().unwrap().to_owned();
    object["results"].as_array().unwrap().iter().map(|result| (text(result, "app"), text(result, "outcome"))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(app, outcome)| ((*app).to_owned(), (*outcome).to_owned())).collect()
}

#[test]
fn all_of_them_have_to_get_there() {
    let bench = Bench::start();
    for name in ["a", "b", "c"] {
        bench.app(name, R1);
    }
    let running = bench.watching(&["a", "b", "--revision", R2]);
    bench.compare("c", R3, "Synced");
    bench.compare("b", R2, "Synced");
    bench.compare("a", R2, "Synced");
    let object = running.end().object(0);
    assert_eq!(object["outcome"], "reached");
    assert_eq!(outcomes(&object), pairs(&[("a", "reached"), ("b", "reached")]));
    assert_eq!(bench.requests(), (1, 1));
}

#[test]
fn the_worst_of_them_decides() {
    let bench = Bench::start();
    for name in ["a", "b", "c"] {
        bench.app(name, R1);
    }
    let running = bench.watching(&["--all", "--revision", R2, "--timeout", "2s"]);
    bench.0.store().delete(bench::APPLICATIONS, "argocd", "a").unwrap();
    bench.compare("b", R2, "Synced");
    let object = running.end().object(1);
    assert_eq!(object["outcome"], "deleted");
    assert_eq!(outcomes(&object), pairs(&[("a", "deleted"), ("b", "reached"), ("c", "deadline")]));
    assert_eq!(object["results"][2]["error"]["code"], "deadline");
}

#[test]
fn one_of_them_is_enough_when_any_will_do() {
    let bench = Bench::start();
    for name in ["a", "b"] {
        bench.app(name, R1);
    }
    let running = bench.watching(&["-l", "team=blue", "--any", "--revision", R2]);
    bench.compare("b", R2, "Synced");
    let object = running.end().object(0);
    assert_eq!(outcomes(&object), pairs(&[("a", "pending"), ("b", "reached")]));
}

#[test]
fn a_selector_finds_its_own_and_counts_them() {
    let bench = Bench::start();
    bench.app("a", R2);
    bench.app("other", R1);
    bench.patch("other", json!({"metadata": {"labels": {"team": "red"}}}));
    let object = bench.run(&["-l", "team=blue", "--revision", R2]).object(0);
    assert_eq!(outcomes(&object), pairs(&[("a", "already")]));

    let object =
        bench.run(&["-l", "team=blue", "--revision", R2, "--expect-count", "2", "--timeout", "500ms"]).object(124);
    assert_eq!(object["error"]["message"], "1 Applications where 2 are expected");

    let running = bench.watching(&["-l", "team=blue", "--revision", R2, "--expect-count", "2"]);
    bench.app("b", R2);
    let object = running.end().object(0);
    assert_eq!(outcomes(&object), pairs(&[("a", "already"), ("b", "reached")]));
}

#[test]
fn a_selector_that_finds_nothing_is_a_wrong_call_unless_some_are_expected() {
    let bench = Bench::start();
    let ended = bench.run(&["-l", "team=blue", "--revision", R2]);
    assert_eq!(ended.code, 2, "{}", ended.said);
    assert!(ended.said.contains("no Application matches in namespace argocd"), "{}", ended.said);
    let running = bench.watching(&["-l", "team=blue", "--revision", R2, "--expect-count", "1"]);
    bench.app("a", R2);
    running.end().object(0);
    let ended = bench.run(&["-l", "a b c=", "--revision", R2]);
    assert_eq!(ended.code, 2, "{}", ended.said);
}

#[test]
fn namespaces_are_no_limit() {
    let bench = Bench::start();
    bench.app("a", R1);
    bench.app_in("team", "a", R1);
    bench.app_in("other", "a", R1);
    let running = bench.watching(&["a", "team/a", "--revision", R2]);
    bench.patch_in("team", "a", json!({"status": {"sync": {"revision": R2}}}));
    bench.compare("a", R2, "Synced");
    let object = running.end().object(0);
    let namespaces: Vec<&Value> = object["results"].as_array().unwrap().iter().map(|r| &r["namespace"]).collect();
    assert_eq!(namespaces, ["argocd", "team"]);
    assert_eq!(bench.requests(), (1, 1));
    assert_eq!(bench.run(&["--all", "-A", "--revision", R2, "--timeout", "0"]).object(1)["outcome"], "not-at-revision");
}

#[test]
fn those_without_a_source_for_the_commit_are_left_out() {
    let bench = Bench::start();
    bench.app("a", R2);
    bench.app("chart", "1.2.3");
    bench.patch("chart", json!({"spec": {"source": {"repoURL": "https://charts.example.com", "chart": "c"}}}));
    bench.app("elsewhere", R1);
    bench.patch("elsewhere", json!({"spec": {"source": {"repoURL": "https://git.example.com/team/other"}}}));
    let mut running = Running::start(bench.command(&["--all", "-f", "-"]).stdin(Stdio::piped()));
    running.feed(&record(R2).to_string());
    let object = running.end().object(0);
    assert_eq!(object["outcome"], "already");
    assert_eq!(outcomes(&object), pairs(&[("a", "already"), ("chart", "skipped"), ("elsewhere", "skipped")]));

    let mut input = record(R2);
    input["repo_url"] = json!("https://git.example.com/team/nobody");
    let mut running = Running::start(bench.command(&["--all", "-f", "-"]).stdin(Stdio::piped()));
    running.feed(&input.to_string());
    let object = running.end().object(2);
    assert_eq!(object["error"]["code"], "no-source");
}

#[test]
fn a_stream_has_a_line_for_each_change_that_matters() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2, "--until", "synced", "--stream"]);
    bench.patch("evt", json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}));
    bench.patch("evt", json!({"status": {"reconciledAt": bench::now(), "summary": {"images": ["x"]}}}));
    bench.patch(
        "evt",
        json!({"metadata": {"annotations": null}, "status": {"sync": {"revision": R2, "status": "OutOfSync"}}}),
    );
    bench.compare("evt", R2, "Synced");
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.said);
    let lines: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let changed: Vec<&Value> = lines.iter().map(|line| &line["changed"]).collect();
    assert_eq!(
        changed,
        [
            &json!(["revision", "sync_status", "health_status"]),
            &json!(["refresh"]),
            &json!(["revision", "sync_status", "refresh"]),
            &json!(["sync_status", "outcome"]),
            &Value::Null,
        ]
    );
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["outcome"]), (&json!("result"), &json!("reached")));
    assert_eq!(last.as_object().unwrap().keys().next().unwrap(), "type");
}

#[test]
fn a_hold_ends_with_the_first_that_moves() {
    let bench = Bench::start();
    for name in ["a", "b"] {
        bench.app(name, R1);
    }
    let running = bench.watching(&["--all", "--hold", "60s", "--revision", R2]);
    bench.compare("b", R2, "OutOfSync");
    let object = running.end().object(1);
    assert_eq!(outcomes(&object), pairs(&[("a", "pending"), ("b", "moved")]));
    assert_eq!(bench.run(&["--all", "--hold", "500ms", "--revision", R3]).object(0)["outcome"], "held");
}

#[test]
fn the_source_that_shows_the_commit_is_found_among_several() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let chart = json!({"repoURL": "https://charts.example.com", "chart": "c", "targetRevision": "1.2.3"});
    let values = json!({"repoURL": URL, "ref": "values", "targetRevision": "main"});
    bench.patch("evt", json!({"spec": {"source": null, "sources": [chart, values]}}));
    bench.patch("evt", json!({"status": {"sync": {"revision": null, "revisions": ["1.2.3", R1]}}}));
    let mut running = Running::start(bench.command(&["evt", "-f", "-", "-v"]).stdin(Stdio::piped()));
    running.feed(&record(R2).to_string());
    running.until("watch=true");
    bench.patch("evt", json!({"status": {"sync": {"revisions": ["1.2.4", R1]}}}));
    bench.patch("evt", json!({"status": {"sync": {"revisions": ["1.2.4", R2]}}}));
    let object = running.end().object(0);
    assert_eq!((&object["revision_before"], &object["revision"]), (&json!(R1), &json!(R2)));

    let ended = bench.run(&["evt", "--revision", R2, "--source", "1"]);
    assert_eq!(ended.code, 2, "{}", ended.said);
    assert!(ended.said.contains("that source of argocd/evt is not in Git"), "{}", ended.said);
}
