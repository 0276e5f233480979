//! Wrong input, missing rights, no server: the exit code says what to do, the message names the thing.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bench;

use std::process::Stdio;

use bench::{Bench, R1, R2, Running};
use serde_json::json;

#[test]
fn an_unknown_application_is_named_with_those_that_are_like_it() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let ended = bench.run(&["evr", "--revision", R2]);
    assert_eq!(ended.code, 2, "{}", ended.said);
    assert!(ended.said.contains("error: no Application argocd/evr"), "{}", ended.said);
    assert!(ended.said.contains("hint: did you mean evt?"), "{}", ended.said);
}

#[test]
fn input_that_is_no_record_of_a_commit_is_refused() {
    let bench = Bench::start();
    bench.app("evt", R1);
    for (input, why) in [
        ("", "the command before the pipe probably failed"),
        ("{\"ref\":\"refs/heads/main\"}", "has no `commit`"),
        ("{\"commit\":\"main\"}", "not a commit id: main"),
        ("{\"commit\":7}", "`commit` of the event record is not a string"),
        ("{\"commit\":\"0000000000000000000000000000000000000000\"}", "a deleted branch"),
        ("[]", "not an object"),
    ] {
        let mut running = Running::start(bench.command(&["evt", "-f", "-"]).stdin(Stdio::piped()));
        running.feed(input);
        let ended = running.end();
        assert_eq!(ended.code, 2, "{input}: {}", ended.said);
        assert!(
            ended.said.contains(why) && ended.said.contains("hint:") || ended.said.contains("string"),
            "{input}: {}",
            ended.said
        );
        assert_eq!(ended.stdout, "", "{input}");
    }
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let bench = Bench::start();
    for words in [
        vec!["evt"],
        vec!["--revision", R2],
        vec!["evt", "--revision", "main"],
        vec!["evt", "--revision", R2, "-f", "-"],
        vec!["evt", "--all", "--revision", R2],
        vec!["evt", "--revision", R2, "--timeout", "180x"],
        vec!["evt", "--revision", R2, "--hold", "1s", "--until", "synced"],
        vec!["evt", "--revision", R2, "--source", "0"],
    ] {
        let ended = bench.run(&words);
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.said);
        assert_eq!(ended.stdout, "", "{words:?}");
    }
    assert_eq!(bench.requests(), (0, 0));
}

#[test]
fn an_application_of_another_repository_is_a_wrong_call() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let record = json!({"commit": R2, "repo_url": "https://git.example.com/team/other"});
    let mut running = Running::start(bench.command(&["evt", "-f", "-"]).stdin(Stdio::piped()));
    running.feed(&record.to_string());
    let ended = running.end();
    assert_eq!(ended.code, 2, "{}", ended.said);
    assert!(
        ended.said.contains("does not read the repository of the commit, but https://git.example.com/team/app.git")
    );
}

#[test]
fn what_is_forbidden_is_named() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let kubeconfig = bench.0.kubeconfig_for("nobody");
    let output = bench.command_as(&kubeconfig, &["evt", "--revision", R2]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("`get`") && said.contains("`applications.argoproj.io`"), "{said}");
}

#[test]
fn a_server_that_is_not_there_is_found_out_within_the_request_timeout() {
    let bench = Bench::start();
    bench.0.cluster().faults.refuse_connections(true);
    let began = std::time::Instant::now();
    let ended = bench.run(&["evt", "--revision", R2, "--request-timeout", "5s"]);
    assert!(began.elapsed() < std::time::Duration::from_secs(6));
    assert_eq!(ended.code, 3, "{}", ended.said);
    assert!(ended.said.contains("hint: is https://127.0.0.1"), "{}", ended.said);
}
