//! The whole lab on the stand-in: what it measures and what it leaves.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod lab;
mod suite;

use std::{fs, os::unix::fs::PermissionsExt, process::Output};

use lab::Lab;
use serde_json::{Value, json};

const CONTROLLER: [&str; 3] = ["logs", "-n", "argocd"];

#[test]
fn the_lab_measures_polling_against_webhooks_and_proves_both() {
    let lab = Lab::new();
    let mut said = Vec::new();

    said.push(lab.run(&["--to", "2"]));
    assert_eq!(lab.text("interval.txt").trim_end_matches('\n'), period_line(&lab), "interval.txt is the line verbatim");
    assert!(period_line(&lab).contains("appResyncPeriod=3s, appHardResyncPeriod=0s, appResyncJitter=0s"));

    said.push(lab.run(&["--from", "3", "--to", "4"]));
    assert!(period_line(&lab).contains("appResyncPeriod=876000h0m0s"), "the proof of `off` is the longest period");

    said.push(lab.run(&["--from", "5"]));
    assert_eq!(lab.text("restored.txt").trim_end_matches('\n'), period_line(&lab));
    assert!(period_line(&lab).contains("appResyncPeriod=2m0s, appHardResyncPeriod=0s, appResyncJitter=1m0s"));
    let settings: Value =
        serde_json::from_str(&lab.kubectl(&["get", "cm", "argocd-cm", "-n", "argocd", "-o", "json"])).unwrap();
    assert_eq!(settings["data"]["timeout.reconciliation"], "120s");
    assert_eq!(settings["data"].get("timeout.reconciliation.jitter"), None, "the jitter key is deleted");

    let report = lab.json("report.json");
    let poll_seconds = report["poll_seconds"].as_u64().unwrap();
    assert!(poll_seconds <= 3 + 3, "found by polling after {poll_seconds} s");
    let webhook_seconds = report["webhook_seconds"].as_u64().unwrap();
    assert!(webhook_seconds <= 1, "found by the webhook after {webhook_seconds} s");
    assert_eq!(
        report,
        json!({
            "poll_seconds": poll_seconds, "nopoll_synced": false, "webhook_seconds": webhook_seconds,
            "unsigned_accepted": false, "trigger": "webhook", "safety_net": "timeout.reconciliation",
        })
    );
    assert_eq!(lab.json("poll.json")["refresh_requested"], false, "nothing but polling found it");
    let (nopoll, secret) = (lab.json("nopoll.json"), lab.json("secret.json"));
    assert_eq!(lab.json("webhook.json")["commit"], nopoll["commit"]);
    assert_eq!(lab.json("webhook.json")["http_status"], 200);
    assert_eq!(secret["unsigned_status"], 400);
    assert_eq!(secret["signed_status"], 200);
    assert_eq!(secret["revision_after_unsigned"], nopoll["commit"], "the unsigned event left it at r3");

    let key = lab.text("webhook-secret");
    assert_eq!(key.trim_end().len(), 32);
    for output in &said {
        assert!(!mentions(output, key.trim_end()), "the lab printed the webhook secret");
    }
    for entry in fs::read_dir(lab.file("")).unwrap().map(|entry| entry.unwrap().path()) {
        assert!(
            !entry.is_file()
                || entry.ends_with("webhook-secret")
                || !fs::read_to_string(&entry).unwrap().contains(key.trim_end()),
            "{} holds the webhook secret",
            entry.display()
        );
    }
    assert_graded_well(&lab.check());
}

#[test]
fn every_step_can_be_repeated_and_chosen() {
    let lab = Lab::new();
    lab.run(&[]);
    for step in ["1", "3", "4", "5", "6", "7", "6", "7", "8"] {
        lab.run(&["--from", step, "--to", step]);
    }
    assert_graded_well(&lab.check());
}

#[test]
fn what_is_missing_is_named_before_anything_is_started() {
    let lab = Lab::new();
    let only_sh = tempfile::tempdir().unwrap();
    let output = lab.command("/bin/sh").arg(lab::share("lab.sh")).env("PATH", only_sh.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        message,
        "lab.sh: not on the PATH: git kubectl jq git-evt-push kubectl-argo_resync kubectl-argo_webhook \
         kubectl-argo_waitrev\n"
    );
    assert!(lab.standin.requests().is_empty());
}

#[test]
fn a_wrong_call_of_the_lab_begins_nothing() {
    let lab = Lab::new();
    for (arguments, code, named) in [
        (vec!["--poll-period", "180x"], 2, "180x is not a duration"),
        (vec!["--to", "9"], 2, "there is no step 9"),
        (vec!["--from", "5", "--to", "3"], 2, "--from 5 comes after --to 3"),
        (vec!["--nosuch", "1"], 2, "unknown flag --nosuch"),
        (vec!["--context", "nosuch"], 3, "cannot read argocd-cm in namespace argocd"),
        (vec!["--namespace", "nowhere"], 3, "cannot read argocd-cm in namespace nowhere"),
        (vec!["--from", "8"], 2, "poll.json is not there: step 3 makes it (--from 3)"),
    ] {
        let output = lab.lab_sh(&arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(named) && !stderr.contains("was not finished"), "{arguments:?}: {stderr}");
    }
    assert!(!lab.standin.git_root().join("evt.git").exists());
    assert!(lab.standin.requests().iter().all(|request| request.method == "GET"));
}

#[test]
fn a_step_that_fails_leaves_no_artifact_and_says_how_to_continue() {
    let lab = Lab::new();
    lab.run(&["--to", "2"]);
    let hook = lab.standin.git_root().join("evt.git/hooks/pre-receive");
    fs::write(&hook, "#!/bin/sh\necho closed today >&2\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let output = lab.lab_sh(&["--from", "3"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "the push was refused, and the wait after it is not to blame: {stderr}");
    assert!(stderr.ends_with("lab.sh: step 3 was not finished (exit 1): continue with --from 3\n"), "{stderr}");
    assert!(!lab.file("poll.json").exists());
    let left: Vec<_> = fs::read_dir(lab.file("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".lab")), "{left:?}");
}

/// The controller's own words about its period, as `kubectl logs` shows them.
fn period_line(lab: &Lab) -> String {
    let log = lab.kubectl(&[&CONTROLLER[..], &["statefulset/argocd-application-controller"]].concat());
    log.lines().find(|line| line.contains("appResyncPeriod=")).unwrap().to_owned()
}

fn mentions(output: &Output, text: &str) -> bool {
    [&output.stdout, &output.stderr].iter().any(|stream| String::from_utf8_lossy(stream).contains(text))
}

fn assert_graded_well(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
