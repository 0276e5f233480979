//! Waiting for one Application.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bench;

use std::process::Stdio;

use bench::{Bench, R1, R2, R3, Running, now_ms, record};
use serde_json::json;

#[test]
fn an_application_that_is_there_already_is_reported_at_once() {
    let bench = Bench::start();
    bench.app("evt", R2);
    let before = now_ms();
    let object = bench.run(&["evt", "--revision", &R2[..10]]).object(0);
    assert_eq!(object["outcome"], "already");
    assert_eq!(object["revision"], R2);
    assert_eq!(object["revision_before"], R2);
    assert_eq!(object["refresh_requested"], false);
    assert_eq!(object["waited_ms"].as_u64().map(|ms| ms < 5_000), Some(true));
    assert!(object["synced_at_ms"].as_u64().unwrap() >= before);
    assert_eq!(object["synced_at"].as_u64().unwrap(), object["synced_at_ms"].as_u64().unwrap() / 1000);
    assert_eq!(bench.requests(), (1, 0), "one look is enough");
}

#[test]
fn the_commit_is_reported_when_it_arrives() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2]);
    let wrote = bench.compare("evt", R2, "OutOfSync");
    let object = running.end().object(0);
    assert_eq!(object["outcome"], "reached");
    assert_eq!(object["revision_before"], R1);
    assert_eq!(object["sync_status"], "OutOfSync");
    let late = object["synced_at_ms"].as_i64().unwrap() - i64::try_from(wrote).unwrap();
    assert!((-50..2_000).contains(&late), "{late} ms after the write");
    assert_eq!(bench.requests(), (1, 1));
}

#[test]
fn synced_needs_both_parts_in_one_version_of_the_object() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2, "--until", "synced"]);
    bench.compare("evt", R2, "OutOfSync");
    bench.compare("evt", R3, "Synced");
    bench.compare("evt", R2, "Synced");
    let object = running.end().object(0);
    assert_eq!((&object["revision"], &object["sync_status"]), (&json!(R2), &json!("Synced")));
}

#[test]
fn an_application_that_moved_before_the_record_came_gets_the_time_at_which_it_moved() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let mut running = Running::start(bench.command(&["evt", "-f", "-", "-v"]).stdin(Stdio::piped()));
    running.until("watch=true");
    let record = record(R2);
    let moved = bench.compare("evt", R2, "Synced");
    // Another change after it: the record is not there yet, and what counts is the first.
    bench.patch("evt", json!({"status": {"health": {"status": "Progressing"}}}));
    std::thread::sleep(std::time::Duration::from_millis(700));
    let fed = now_ms();
    running.feed(&record.to_string());
    let object = running.end().object(0);
    let synced = object["synced_at_ms"].as_u64().unwrap();
    assert!(synced + 500 < fed && synced + 50 >= moved, "moved {moved}, synced {synced}, record {fed}");
    assert_eq!(object["outcome"], "reached");
    assert_eq!(object["waited_ms"], 0);
}

#[test]
fn the_record_passes_through_first_and_in_order() {
    let bench = Bench::start();
    bench.app("evt", R2);
    let mut input = record(R2);
    input["synced_at"] = json!(1);
    input["outcome"] = json!("deadline");
    input["error"] = json!({"code": "old"});
    let mut running = Running::start(bench.command(&["evt", "-f", "-"]).stdin(Stdio::piped()));
    running.feed(&input.to_string());
    let object = running.end().object(0);
    let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
    let expected = "commit before ref branch default_branch repo_url files_complete extra pushed_at pushed_at_ms \
                    app namespace revision_before revision sync_status health_status operation_phase outcome synced_at \
                    synced_at_ms waited_ms refresh_requested";
    let expected: Vec<&str> = expected.split_whitespace().collect();
    assert_eq!(keys[..expected.len()], expected);
    assert_eq!(object["extra"], input["extra"]);
    assert!(object.get("error").is_none(), "what ended an earlier command is not what ended this one");
    assert_ne!(object["synced_at"], 1);
}

#[test]
fn another_commit_is_no_success_and_the_deadline_shows_the_last_state() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2, "--timeout", "1s"]);
    let object = running.end().object(124);
    assert_eq!(object["outcome"], "deadline");
    assert_eq!(object["revision"], R1);
    assert!(object.get("synced_at").is_none());
    let message = object["error"]["message"].as_str().unwrap();
    assert!(message.contains("at 111111111, Synced, Healthy"), "{message}");
}

#[test]
fn a_timeout_of_nothing_looks_once() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let object = bench.run(&["evt", "--revision", R2, "--timeout", "0"]).object(1);
    assert_eq!(object["outcome"], "not-at-revision");
    assert_eq!(bench.run(&["evt", "--revision", R1, "--timeout", "0"]).object(0)["outcome"], "already");
    assert_eq!(bench.requests(), (2, 0));
}

#[test]
fn a_deleted_application_ends_the_wait() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2]);
    bench.0.store().delete(bench::APPLICATIONS, "argocd", "evt").unwrap();
    let object = running.end().object(1);
    assert_eq!(object["outcome"], "deleted");
    assert_eq!(object["error"]["message"], "Application argocd/evt was deleted");
}

#[test]
fn an_error_condition_ends_the_wait_after_its_grace() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2, "--error-grace", "300ms"]);
    let condition = json!([{"type": "ComparisonError", "message": "app path does not exist"}]);
    bench.patch("evt", json!({"status": {"sync": {"status": "Unknown", "revision": "main"}, "conditions": condition}}));
    let object = running.end().object(1);
    assert_eq!(object["outcome"], "error");
    assert_eq!(object["revision"], "main");
    let message = object["error"]["message"].as_str().unwrap();
    assert!(message.contains("ComparisonError: app path does not exist"), "{message}");
}

#[test]
fn a_refresh_seen_meanwhile_is_reported() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2]);
    bench.patch("evt", json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": ""}}}));
    bench.patch("evt", json!({"metadata": {"annotations": null}, "status": {"sync": {"revision": R2}}}));
    assert_eq!(running.end().object(0)["refresh_requested"], true);
}

#[test]
fn a_refresh_can_be_forbidden() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2, "--forbid-refresh"]);
    bench.patch("evt", json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}}));
    assert_eq!(running.end().object(1)["outcome"], "refreshed");
}

#[test]
fn an_interrupt_prints_what_was_learned() {
    let bench = Bench::start();
    bench.app("evt", R1);
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let running = bench.watching(&["evt", "--revision", R2]);
        running.signal(signal);
        let object = running.end().object(code);
        assert_eq!(object["outcome"], "interrupted");
        assert_eq!(object["revision"], R1);
    }
}
