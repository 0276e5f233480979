//! Killed after any step, the same command ends in the same state.

use std::{
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use standin::{Options, Request, Standin, processes::Component};

use crate::bench::{
    CONTROLLER, Ended, REPO_SERVER, app, command, config, env, make, owned, repository, run, writes, writes_to,
};

/// Waits for the n-th write since `before`; false when the command ended first.
fn reaches(standin: &Standin, child: &mut Child, before: usize, n: usize) -> bool {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        if writes(standin).len() >= before + n {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(Instant::now() < patience, "write {n} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the command right after each of its writes in turn, runs it again, and checks the end.
fn killed_after_each_write(words: &[&str], settings: &[(&str, &str)], period: Option<&str>) -> usize {
    let mut kills = 0;
    loop {
        let standin = Standin::with(Options { settings: owned(settings), ..Options::default() });
        make(&standin, app("evt", &repository(&standin, "evt.git")));
        let before = writes(&standin).len();
        let mut child = command(&standin, words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let killed = reaches(&standin, &mut child, before, kills + 1);
        if killed {
            child.kill().unwrap();
        }
        child.wait().unwrap();
        let at = writes(&standin).last().cloned();
        let object = run(&standin, words).object(0);
        assert_eq!(object["drift"], json!([]), "killed after {at:?}: {object}");
        assert_eq!(config(&standin)["timeout.reconciliation"], json!(period), "killed after {at:?}");
        assert_eq!(config(&standin)["url"], "https://x", "killed after {at:?}");
        let given = [period.map(str::to_owned)];
        for component in [Component::Controller, Component::RepoServer] {
            assert_eq!(env(&standin, component, "ARGOCD_RECONCILIATION_TIMEOUT"), given, "killed after {at:?}");
        }
        let restarts = writes_to(&standin, CONTROLLER) + writes_to(&standin, REPO_SERVER);
        assert!(restarts <= 3, "killed after {at:?}: {restarts} restarts");
        if !killed {
            return kills;
        }
        kills += 1;
    }
}

#[test]
fn killed_after_each_write_the_same_command_sets_a_period() {
    let words = ["30s", "--jitter", "0s", "--hard-refresh", "evt"];
    let kills = killed_after_each_write(&words, &[("url", "https://x")], Some("30s"));
    assert!(kills >= 4, "argocd-cm, two restarts and a refresh: {kills}");
}

#[test]
fn killed_after_each_write_the_same_command_deletes_the_keys() {
    let before = [("url", "https://x"), ("timeout.reconciliation", "30s"), ("timeout.reconciliation.jitter", "0s")];
    let kills = killed_after_each_write(&["default", "--jitter", "default"], &before, None);
    assert!(kills >= 3, "{kills}");
}

#[test]
fn a_run_that_has_nothing_to_do_restarts_nothing() {
    let standin = Standin::with(Options { pod_start: Duration::from_millis(1_100), ..Options::default() });
    let words = ["30s", "--jitter", "0s"];
    run(&standin, &words).object(0);
    let before = writes(&standin).len();
    let object = run(&standin, &words).object(0);
    assert_eq!(object["outcome"], "unchanged");
    assert_eq!(writes(&standin).len(), before);
    let object = run(&standin, &["30s", "--jitter", "0s", "--restart"]).object(0);
    assert_eq!(object["outcome"], "restarted");
    assert_eq!(writes(&standin).len(), before + 2);
}

#[test]
fn a_jitter_alone_restarts_the_controller_alone() {
    let standin = Standin::with(Options { pod_start: Duration::from_millis(1_100), ..Options::default() });
    run(&standin, &["30s", "--jitter", "0s"]).object(0);
    let repo_server = writes_to(&standin, REPO_SERVER);
    let object = run(&standin, &["--jitter", "5s"]).object(0);
    assert_eq!(object["controllers"][0]["jitter_s"], 5);
    assert_eq!(writes_to(&standin, REPO_SERVER), repo_server);
}

#[test]
fn an_interrupt_prints_what_was_done() {
    let standin = Standin::with(Options { pod_start: Duration::from_secs(5), ..Options::default() });
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let of_repo_server = |request: &Request| request.path.ends_with("/deployments/argocd-repo-server");
        let restarts = || writes_to(&standin, REPO_SERVER);
        let before = restarts();
        // The rollout is looked at after the restart.
        let waits = || {
            let last = standin.requests().into_iter().rfind(of_repo_server);
            restarts() > before && last.is_some_and(|request| request.method == "GET")
        };
        let mut child =
            command(&standin, &["30s", "--restart"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while !waits() {
            assert!(child.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(5));
        }
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        let object = Ended::of(child.wait_with_output().unwrap()).object(code);
        assert_eq!(object["outcome"], "interrupted");
        assert_eq!(object["period"], "30s");
        assert_eq!(object["workloads"][0]["restarted"], true);
    }
}
