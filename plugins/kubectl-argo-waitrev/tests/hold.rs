//! Proving that an Application stays where it is.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bench;

use std::process::Stdio;

use bench::{Bench, R1, R2, R3, Running, now_ms, record};
use serde_json::json;

#[test]
fn stillness_is_proven_by_an_unbroken_account() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let mut running = Running::start(bench.command(&["evt", "-f", "-", "--hold", "1s"]).stdin(Stdio::piped()));
    let began = now_ms();
    running.feed(&record(R2).to_string());
    let object = running.end().object(0);
    assert_eq!(object["outcome"], "held");
    assert_eq!(object["moved"], false);
    assert_eq!(object["revision_at_check"], R1);
    assert!(object["checked_at_ms"].as_u64().unwrap() >= began + 1_000);
    assert_eq!(object["checked_at"].as_u64().unwrap(), object["checked_at_ms"].as_u64().unwrap() / 1000);
    assert_eq!(bench.requests(), (2, 1), "one look more at the end, since silence alone proves nothing");
}

#[test]
fn coming_to_the_commit_ends_the_hold_at_that_moment() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2, "--hold", "60s"]);
    let wrote = bench.compare("evt", R2, "OutOfSync");
    let object = running.end().object(1);
    assert_eq!(object["outcome"], "moved");
    assert_eq!(object["moved"], true);
    assert_eq!(object["revision_at_check"], R2);
    assert!(object["checked_at_ms"].as_u64().unwrap() < wrote + 2_000);
}

#[test]
fn moving_to_another_commit_is_no_stillness() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2, "--hold", "60s"]);
    bench.compare("evt", R3, "OutOfSync");
    let object = running.end().object(1);
    assert_eq!((&object["outcome"], &object["moved"]), (&json!("moved"), &json!(true)));
}

#[test]
fn an_application_at_the_commit_cannot_be_held_away_from_it() {
    let bench = Bench::start();
    bench.app("evt", R2);
    let object = bench.run(&["evt", "--revision", R2, "--hold", "60s"]).object(1);
    assert_eq!((&object["outcome"], &object["moved"]), (&json!("already"), &json!(false)));
}

#[test]
fn a_comparison_error_is_no_move() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2, "--hold", "1s", "--error-grace", "0"]);
    let condition = json!([{"type": "ComparisonError", "message": "no answer from Git"}]);
    bench.patch("evt", json!({"status": {"sync": {"status": "Unknown", "revision": "main"}, "conditions": condition}}));
    assert_eq!(running.end().object(0)["moved"], false);
}
