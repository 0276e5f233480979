//! A watch that survives: each fault, a wait that still ends right, and a number of requests that stays small.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bench;

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use bench::{Bench, R1, R2, R3, Running};
use serde_json::{Value, json};
use standin::{Matcher, Options, Outcome, api::access::Identity};

fn applications() -> Matcher {
    Matcher::any().path("/applications")
}

fn refused(code: u16, retry_after_s: Option<u64>) -> Outcome {
    Outcome::Refused { code, retry_after_s }
}

#[track_caller]
fn reached(running: Running) -> Value {
    let object = running.end().object(0);
    assert_eq!((&object["outcome"], &object["revision"]), (&json!("reached"), &json!(R2)));
    object
}

#[test]
fn a_watch_that_is_closed_or_cut_is_resumed_without_a_gap() {
    let bench = Bench::start();
    for (name, cut) in [("closed", false), ("cut", true)] {
        bench.app(name, R1);
        let (lists, watches) = bench.requests();
        let running = bench.watched(name, &[name, "--revision", R2]);
        if cut {
            bench.faults().abort_watches();
        } else {
            bench.faults().close_watches();
        }
        // Both versions are told of although no watch was open: there and back would not be missed.
        bench.compare(name, R2, "Synced");
        bench.compare(name, R3, "Synced");
        let object = reached(running);
        assert_eq!((&object["watch_restarts"], &object["watch_gaps"]), (&json!(1), &json!(0)), "{name}");
        assert_eq!(bench.requests(), (lists + 1, watches + 2), "{name}");
    }
}

#[test]
fn a_watch_that_breaks_again_and_again_is_not_asked_for_without_a_pause() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watched("evt", &["evt", "--revision", R2, "--timeout", "4s"]);
    bench.faults().fail(applications().watch(true), usize::MAX, Outcome::Cut);
    bench.faults().abort_watches();
    let object = running.end().object(3);
    assert_eq!(object["outcome"], "unreachable");
    assert_eq!(object["revision"], R1, "what was learned is in the output");
    let (lists, watches) = bench.requests();
    assert_eq!(lists, 1);
    assert!((3..=9).contains(&watches), "{watches} watches in 4 s");
}

#[test]
fn a_version_that_is_too_old_leads_to_a_fresh_list() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watched("evt", &["evt", "--revision", R2]);
    bench.faults().expire_watches();
    bench.compare("evt", R2, "Synced");
    let object = reached(running);
    assert_eq!((&object["watch_restarts"], &object["watch_gaps"]), (&json!(1), &json!(1)));
    assert_eq!(bench.requests(), (2, 1));
}

#[test]
fn a_watch_that_is_answered_410_leads_to_a_fresh_list() {
    let bench = Bench::start();
    bench.app("evt", R1);
    bench.faults().fail(applications().watch(true), 1, refused(410, None));
    let mut running = bench.watching(&["evt", "--revision", R2]);
    running.until("watch=true");
    bench.compare("evt", R2, "Synced");
    let object = reached(running);
    assert_eq!(object["watch_gaps"], 1);
    assert_eq!(bench.requests(), (2, 2));
}

#[test]
fn a_list_that_expired_between_its_pages_is_begun_again() {
    let bench = Bench::start();
    for number in 0..251 {
        bench.app(&format!("evt-{number}"), R2);
    }
    bench.faults().fail(applications().watch(false), 1, refused(410, None));
    let object = bench.run(&["--all", "--revision", R2]).object(0);
    assert_eq!(object["results"].as_array().unwrap().len(), 251);
    assert_eq!(bench.requests(), (3, 0));
}

#[test]
fn a_server_that_has_just_started_is_given_time_to_know_its_resources_and_roles() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watched("evt", &["evt", "--revision", R2]);
    for code in [403, 404] {
        bench.faults().fail(applications().watch(true), 1, refused(code, None));
    }
    bench.faults().close_watches();
    bench.compare("evt", R2, "Synced");
    let object = reached(running);
    assert_eq!(object["polled"], false);
    assert_eq!(bench.requests(), (1, 4));
}

#[test]
fn bookmarks_keep_a_quiet_watch_from_growing_old() {
    let bench = Bench::with(Options { bookmarks_every: Duration::from_millis(100), ..Options::default() });
    bench.app("evt", R1);
    let mut running = bench.watched("evt", &["evt", "--revision", R2]);
    // Other objects move the version on; then the server forgets everything up to there.
    let last = bench.0.store().create("configmaps", json!({"metadata": {"name": "x", "namespace": "argocd"}})).unwrap();
    let version = last["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    std::thread::sleep(Duration::from_millis(400));
    bench.0.store().compact();
    bench.faults().close_watches();
    running.until(&format!("resourceVersion={version}"));
    bench.compare("evt", R2, "Synced");
    assert_eq!(reached(running)["watch_gaps"], 0);
}

#[test]
fn a_server_that_asks_for_patience_gets_it() {
    let bench = Bench::start();
    bench.app("evt", R1);
    bench.faults().fail(applications().watch(false), 2, refused(429, Some(1)));
    bench.faults().fail(applications().watch(true), 1, refused(429, Some(1)));
    let began = Instant::now();
    let running = bench.watching(&["evt", "--revision", R2]);
    bench.compare("evt", R2, "Synced");
    let object = reached(running);
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(object["watch_restarts"], 0, "a watch that never opened did not break");
    assert_eq!(bench.requests(), (3, 2));
}

#[test]
fn server_errors_are_waited_out() {
    let bench = Bench::start();
    bench.app("evt", R1);
    bench.faults().fail(applications().watch(false), 1, refused(500, None));
    bench.faults().fail(applications().watch(false), 1, refused(503, None));
    bench.faults().fail(applications().watch(true), 2, refused(504, None));
    let running = bench.watching(&["evt", "--revision", R2]);
    bench.compare("evt", R2, "Synced");
    reached(running);
    assert_eq!(bench.requests(), (3, 3));
}

#[test]
fn server_errors_that_last_end_with_the_deadline() {
    let bench = Bench::start();
    bench.app("evt", R1);
    bench.faults().fail(applications(), usize::MAX, refused(500, None));
    let began = Instant::now();
    let object = bench.run(&["evt", "--revision", R2, "--timeout", "2s"]).object(3);
    assert!(began.elapsed() < Duration::from_secs(4));
    assert_eq!((&object["outcome"], &object["app"]), (&json!("unreachable"), &json!("evt")));
    assert!(object["error"]["message"].as_str().unwrap().contains("cannot list applications.argoproj.io"), "{object}");
    let (lists, watches) = bench.requests();
    assert!((3..=7).contains(&lists) && watches == 0, "{lists} lists in 2 s");
}

#[test]
fn a_server_that_restarts_is_waited_for() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let mut running = bench.watched("evt", &["evt", "--revision", R2]);
    bench.faults().refuse_connections(true);
    running.until("trying again").until("trying again");
    bench.compare("evt", R2, "Synced");
    bench.faults().refuse_connections(false);
    let object = reached(running);
    assert_eq!(object["watch_restarts"], 1);
    assert_eq!(bench.requests(), (1, 2));
}

#[test]
fn a_server_that_does_not_come_back_ends_with_the_deadline() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watched("evt", &["evt", "--revision", R2, "--timeout", "3s"]);
    bench.faults().refuse_connections(true);
    let object = running.end().object(3);
    assert_eq!((&object["outcome"], &object["revision"]), (&json!("unreachable"), &json!(R1)));
}

#[test]
fn a_connection_that_died_without_a_word_is_noticed_within_half_a_minute() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watched("evt", &["evt", "--revision", R2, "--timeout", "60s"]);
    bench.faults().stall_watches();
    let wrote = bench.compare("evt", R2, "Synced");
    let object = reached(running);
    let late = object["synced_at_ms"].as_u64().unwrap() - wrote;
    assert!(late < 30_000, "{late} ms");
    assert_eq!(object["watch_restarts"], 1);
    assert_eq!(bench.requests(), (1, 2));
}

#[test]
fn a_request_that_is_never_answered_ends_with_the_request_timeout() {
    let bench = Bench::start();
    bench.app("evt", R1);
    bench.faults().fail(applications().watch(false), usize::MAX, Outcome::Hung);
    let began = Instant::now();
    let ended = bench.run(&["evt", "--revision", R2, "--request-timeout", "1s"]);
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(ended.code, 3, "{}", ended.said);
    bench.faults().answer_all();

    bench.faults().fail(applications().watch(true), 1, Outcome::Hung);
    let mut running = bench.watching(&["evt", "--revision", R2, "--request-timeout", "1s"]);
    running.until("trying again");
    bench.compare("evt", R2, "Synced");
    reached(running);
}

#[test]
fn a_token_that_ran_out_is_read_again() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let kubeconfig = bench.user("ci", "argocd", &["list", "watch"], &["evt"]);
    let mut running = Running::start(bench.command_as(&kubeconfig, &["evt", "--revision", R2]).arg("-v"));
    running.until("watch=true");
    bench.tell("evt", &mut running);
    let tokens = &bench.0.cluster().tokens;
    tokens.grant("renewed", Identity::user("ci"));
    let text = fs::read_to_string(&kubeconfig).unwrap();
    fs::write(&kubeconfig, text.replace("standin-ci", "renewed")).unwrap();
    tokens.revoke("standin-ci");
    bench.faults().close_watches();
    running.until("watch=true").until("watch=true");
    bench.compare("evt", R2, "Synced");
    reached(running);
    assert_eq!(bench.requests(), (1, 3), "one watch was answered 401");
}

#[test]
fn a_token_that_stays_invalid_ends_the_wait() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let kubeconfig = bench.user("ci", "argocd", &["list", "watch"], &["evt"]);
    let mut running = Running::start(bench.command_as(&kubeconfig, &["evt", "--revision", R2]).arg("-v"));
    running.until("watch=true");
    bench.tell("evt", &mut running);
    bench.0.cluster().tokens.revoke("standin-ci");
    bench.faults().close_watches();
    let object = running.end().object(4);
    assert_eq!((&object["error"]["code"], &object["revision"]), (&json!("unauthorized"), &json!(R1)));
    assert_eq!(bench.requests(), (1, 3));
}

#[test]
fn a_hold_is_not_proven_by_a_connection_that_died() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watched("evt", &["evt", "--revision", R2, "--hold", "2s"]);
    bench.faults().stall_watches();
    bench.compare("evt", R2, "Synced");
    let object = running.end().object(1);
    assert_eq!((&object["outcome"], &object["revision_at_check"]), (&json!("moved"), &json!(R2)));
    assert_eq!(bench.requests(), (2, 1));
}

#[test]
fn a_hold_is_not_proven_while_the_server_is_away() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let words = ["evt", "--revision", R2, "--hold", "2s", "--request-timeout", "2s"];
    let running = bench.watched("evt", &words);
    bench.faults().refuse_connections(true);
    let object = running.end().object(3);
    assert_eq!((&object["outcome"], &object["moved"]), (&json!("unreachable"), &json!(false)));
}

#[test]
fn there_and_back_in_a_gap_is_seen_in_the_history() {
    let bench = Bench::start();
    bench.app("evt", R1);
    bench.patch("evt", json!({"status": {"history": [{"id": 3, "revision": R1}]}}));
    let running = bench.watched("evt", &["evt", "--revision", R2, "--hold", "30s"]);
    bench.faults().expire_watches();
    let history = json!([{"id": 3, "revision": R1}, {"id": 4, "revision": R2}, {"id": 5, "revision": R1}]);
    bench.patch("evt", json!({"status": {"history": history}}));
    let object = running.end().object(1);
    assert_eq!((&object["outcome"], &object["revision_at_check"]), (&json!("moved"), &json!(R1)));
}

#[test]
fn the_record_comes_through_when_nothing_can_be_found_out() {
    let bench = Bench::start();
    bench.faults().refuse_connections(true);
    let mut running = Running::start(bench.command(&["evt", "-f", "-"]).stdin(Stdio::piped()));
    running.feed(&bench::record(R2).to_string());
    let object = running.end().object(3);
    assert_eq!((&object["commit"], &object["outcome"]), (&json!(R2), &json!("unreachable")));
}
