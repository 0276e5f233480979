//! Answers beyond yes and no: newer commits, pushes without effect, what moved the revision.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bench;

use std::{
    path::Path,
    process::{Command, Stdio},
};

use bench::{Bench, Ended, R1, R2, R3, Running, now_ms, record};
use serde_json::{Value, json};

/// A clone with three commits; their ids, the oldest first.
fn history(dir: &Path) -> Vec<String> {
    let git = |words: &[&str]| {
        let output =
            Command::new("git").arg("-C").arg(dir).args(words).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet"]);
    let commit = |number: i32| {
        let message = format!("r{number}");
        git(&[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            &message,
        ]);
        git(&["rev-parse", "HEAD"])
    };
    (1..=3).map(commit).collect()
}

fn fed(bench: &Bench, words: &[&str], record: &Value) -> Running {
    let mut running = Running::start(bench.command(words).arg("-v").stdin(Stdio::piped()));
    running.feed(&record.to_string());
    running
}

#[test]
fn a_newer_commit_that_contains_it_counts_when_a_clone_proves_it() {
    let bench = Bench::start();
    let clone = tempfile::tempdir().unwrap();
    let ids = history(clone.path());
    let dir = clone.path().to_str().unwrap();
    bench.app("evt", &ids[0]);
    let running = bench.watching(&["evt", "--revision", &ids[1], "--git-dir", dir]);
    bench.compare("evt", &ids[2], "Synced");
    let object = running.end().object(0);
    assert_eq!((&object["outcome"], &object["revision"]), (&json!("superseded"), &json!(ids[2])));

    // Without the clone it is another commit, and an older one is another with it too.
    let running = bench.watching(&["evt", "--revision", &ids[1], "--timeout", "1s"]);
    running.end().object(124);
    bench.compare("evt", &ids[0], "Synced");
    let object = bench.run(&["evt", "--revision", &ids[1], "--git-dir", dir, "--timeout", "1s"]).object(124);
    assert_eq!(object["outcome"], "deadline");
}

#[test]
fn a_clone_tells_which_commit_an_abbreviated_id_means() {
    let bench = Bench::start();
    let clone = tempfile::tempdir().unwrap();
    let ids = history(clone.path());
    let dir = clone.path().to_str().unwrap();
    // Another commit that begins alike.
    let other = format!("{}{}", &ids[1][..7], &ids[0][7..]);
    bench.app("evt", &other);
    let words = ["evt", "--revision", &ids[1][..7], "--timeout", "0"];
    bench.run(&words).object(0);
    bench.run(&[&words[..], &["--git-dir", dir]].concat()).object(1);
}

#[test]
fn a_commit_that_the_clone_does_not_have_proves_nothing() {
    let bench = Bench::start();
    let clone = tempfile::tempdir().unwrap();
    let ids = history(clone.path());
    bench.app("evt", R3);
    let dir = clone.path().to_str().unwrap();
    let ended = bench.run(&["evt", "--revision", &ids[1], "--git-dir", dir, "--timeout", "1s"]);
    assert_eq!(ended.code, 124, "{}", ended.said);
    assert!(ended.said.contains("fetch` brings it"), "{}", ended.said);
}

#[test]
fn a_folder_that_is_no_clone_is_refused() {
    let bench = Bench::start();
    let folder = tempfile::tempdir().unwrap();
    let ended = bench.run(&["evt", "--revision", R2, "--git-dir", folder.path().to_str().unwrap()]);
    assert_eq!(ended.code, 2, "{}", ended.said);
    assert!(ended.said.contains("is no Git repository"), "{}", ended.said);
    assert_eq!(bench.requests(), (0, 0));
}

#[test]
fn a_revision_that_moved_on_to_something_else_is_reported_as_such() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2, "--timeout", "1s"]);
    bench.compare("evt", R3, "Synced");
    let object = running.end().object(124);
    assert_eq!((&object["outcome"], &object["revision"]), (&json!("moved"), &json!(R3)));
    assert!(object["error"]["hint"].as_str().unwrap().contains("--git-dir"));
}

#[test]
fn a_push_that_touches_none_of_the_paths_is_not_waited_for() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let paths = json!({"argocd.argoproj.io/manifest-generate-paths": ".;/shared"});
    bench.patch("evt", json!({"metadata": {"annotations": paths}}));
    let mut push = record(R2);
    push["files_complete"] = json!(true);
    push["commits"] = json!([{"id": R2, "added": ["docs/x.md"], "modified": [], "removed": []}]);
    assert_eq!(fed(&bench, &["evt", "-f", "-"], &push).end().object(1)["outcome"], "no-effect");
    let words = ["evt", "-f", "-", "--no-effect", "ok"];
    assert_eq!(fed(&bench, &words, &push).end().object(0)["outcome"], "no-effect");
    let words = ["evt", "-f", "-", "--no-effect", "wait", "--timeout", "1s"];
    assert_eq!(fed(&bench, &words, &push).end().object(124)["outcome"], "no-effect");
    push["commits"][0]["modified"] = json!(["shared/y.yaml"]);
    assert_eq!(fed(&bench, &["evt", "-f", "-", "--timeout", "1s"], &push).end().object(124)["outcome"], "deadline");
}

#[test]
fn the_trace_shows_what_moved_the_revision_and_when() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let mut event = record(R2);
    event["sent_at_ms"] = json!(now_ms());
    event["sent_at"] = json!(now_ms() / 1000);
    event["http_status"] = json!(200);
    let mut running = fed(&bench, &["evt", "-f", "-", "--until", "healthy"], &event);
    running.until("watch=true");
    bench.patch("evt", json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}));
    bench.patch(
        "evt",
        json!({"metadata": {"annotations": null}, "status": {"sync": {"revision": R2, "status": "OutOfSync"}}}),
    );
    bench.compare("evt", R2, "Synced");
    let object = running.end().object(0);
    assert_eq!(object["trigger"], "webhook", "{object}");
    let trace = object["trace"].as_object().unwrap();
    let marks = [
        "pushed_at_ms",
        "sent_at_ms",
        "refresh_seen_at_ms",
        "refresh_cleared_at_ms",
        "revision_moved_at_ms",
        "synced_at_ms",
        "deployed_at_ms",
        "healthy_at_ms",
    ];
    assert_eq!(trace.keys().collect::<Vec<_>>(), marks);
    let times: Vec<u64> = marks.iter().map(|mark| trace[*mark].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_refresh_that_was_cleared_without_the_revision_moving_is_lost() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let mut event = record(R2);
    event["sent_at_ms"] = json!(now_ms());
    let mut running = fed(&bench, &["evt", "-f", "-", "--timeout", "2s"], &event);
    running.until("watch=true");
    bench.patch("evt", json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}));
    bench.patch("evt", json!({"metadata": {"annotations": null}}));
    let object = running.end().object(124);
    assert_eq!(object["outcome"], "lost");
    assert!(object["trace"]["lost_at_ms"].is_u64());
}

#[test]
fn an_application_that_nobody_compares_is_stale() {
    let bench = Bench::start();
    bench.app("evt", R1);
    bench.patch("evt", json!({"status": {"reconciledAt": "2026-01-01T00:00:00Z"}}));
    let object = bench.run(&["evt", "--revision", R2, "--timeout", "1s"]).object(124);
    assert_eq!(object["outcome"], "stale");
    let object = bench.run(&["evt", "--revision", R2, "--timeout", "1s", "--stale-after", "200000h"]).object(124);
    assert_eq!(object["outcome"], "deadline");
}

#[test]
fn the_dry_commit_of_a_hydrated_application_can_be_waited_for() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let source = json!({"repoURL": bench::URL, "targetRevision": "main", "path": "app"});
    let hydrator = json!({"drySource": source, "syncSource": {"targetBranch": "env/prod", "path": "app"}});
    bench.patch("evt", json!({"spec": {"source": null, "sourceHydrator": hydrator}}));
    let running = bench.watching(&["evt", "--revision", R2, "--dry", "--until", "synced"]);
    let last = json!({"drySHA": R2, "hydratedSHA": R3});
    bench.patch("evt", json!({"status": {"sourceHydrator": {"lastSuccessfulOperation": last}}}));
    bench.compare("evt", R3, "Synced");
    let object = running.end().object(0);
    assert_eq!((&object["outcome"], &object["revision"]), (&json!("reached"), &json!(R2)));
}

#[test]
fn stability_is_asked_for_and_flips_are_counted() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let running = bench.watching(&["evt", "--revision", R2, "--stable", "1s"]);
    bench.compare("evt", R2, "Synced");
    bench.compare("evt", R1, "Synced");
    let wrote = bench.compare("evt", R2, "Synced");
    let object = running.end().object(0);
    assert_eq!((&object["outcome"], &object["flips"]), (&json!("reached"), &json!(1)));
    assert!(object["synced_at_ms"].as_u64().unwrap() + 50 >= wrote);
    assert!(object["waited_ms"].as_u64().is_some());
}

#[test]
fn degraded_ends_the_wait_only_when_asked_to() {
    let bench = Bench::start();
    bench.app("evt", R2);
    bench.patch("evt", json!({"status": {"health": {"status": "Degraded"}}}));
    let words = ["evt", "--revision", R2, "--until", "healthy", "--timeout", "1s"];
    assert_eq!(bench.run(&words).object(124)["reason"], "degraded");
    let ended: Ended = bench.run(&[&words[..], &["--fail-on-degraded"]].concat());
    assert_eq!(ended.object(1)["outcome"], "degraded");
}

#[test]
fn sync_windows_that_stay_closed_are_warned_of() {
    let bench = Bench::start();
    bench.app("evt", R1);
    let window = json!({"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["evt"]});
    let words = ["evt", "--revision", R2, "--until", "synced", "--timeout", "2s"];
    let mut warned = Vec::new();
    for windows in [json!([]), json!([window])] {
        let project = |project: &mut Value| {
            project["spec"]["syncWindows"] = windows.clone();
            Ok(())
        };
        bench.0.store().update("appprojects.argoproj.io", "argocd", "default", project).unwrap();
        bench.compare("evt", R1, "Synced");
        let running = bench.watching(&words);
        bench.compare("evt", R2, "OutOfSync");
        let ended = running.end();
        assert_eq!(ended.object(124)["reason"], "out-of-sync");
        warned.push(ended.said.contains("warning: the sync windows of its project keep argocd/evt from being synced"));
    }
    assert_eq!(warned, [false, true]);
}
