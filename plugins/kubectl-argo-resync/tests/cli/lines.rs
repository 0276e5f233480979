//! The startup line: kept as it is, and what counts when it is gone.

use std::{fs, process::Command, time::Duration};

use serde_json::json;
use standin::{Options, Standin, processes::Component};

use crate::bench::{CONTROLLER, change, run, with_settings, writes};

#[test]
fn the_file_holds_the_line_of_each_pod_as_kubectl_logs_shows_it() {
    let standin = Standin::with(Options { controllers: 3, ..Options::default() });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("interval.txt");
    run(&standin, &["30s", "--jitter", "0s", "--line-out", file.to_str().unwrap()]).object(0);
    let mut expected = Vec::new();
    for ordinal in 0..3 {
        let pod = format!("{CONTROLLER}-{ordinal}");
        let words = ["-n", "argocd", "logs", &pod, "-c", CONTROLLER];
        let logs = Command::new("kubectl").args(words).env("KUBECONFIG", standin.kubeconfig()).output().unwrap();
        let lines = logs.stdout.split_inclusive(|byte| *byte == b'\n');
        let of_pod: Vec<_> = lines.filter(|line| String::from_utf8_lossy(line).contains("appResyncPeriod=")).collect();
        assert_eq!(of_pod.len(), 1);
        expected.extend_from_slice(of_pod[0]);
    }
    assert_eq!(fs::read(&file).unwrap(), expected);
}

#[test]
fn off_is_proven_by_a_hundred_years() {
    let standin = Standin::start();
    let object = run(&standin, &["off"]).object(0);
    assert!(object["controllers"][0]["line"].as_str().unwrap().contains("appResyncPeriod=876000h0m0s"));
    assert_eq!(object["controllers"][0]["period_s"], 0);
}

#[test]
fn a_rotated_line_leaves_the_spec_as_proof_and_no_restart() {
    // Containers that started after the values were written: that is what the spec proves.
    let standin = with_settings(&[("timeout.reconciliation", "30s"), ("timeout.reconciliation.jitter", "0s")]);
    for process in standin.cluster().processes.of(Component::Controller) {
        process.log.rotate();
    }
    let object = run(&standin, &["30s", "--jitter", "0s"]).object(0);
    assert_eq!(object["outcome"], "unchanged");
    let pod = &object["controllers"][0];
    assert_eq!((&pod["proof"], &pod["line"], &pod["period_s"]), (&json!("spec"), &json!(null), &json!(30)));
    assert!(pod["how"].as_str().unwrap().contains("the startup line is not in the log any more"), "{pod}");
    assert_eq!(writes(&standin), [""; 0]);
}

#[test]
fn a_scheduled_comparison_in_the_log_shows_the_period_after_the_line_is_gone() {
    let standin = with_settings(&[("timeout.reconciliation", "30s")]);
    for process in standin.cluster().processes.of(Component::Controller) {
        process.log.rotate();
        process.print(
            r#"{"level":"info","msg":"Refreshing app status (comparison expired, requesting refresh. reconciledAt: 2026-08-12 09:30:00 +0000 UTC, expiry: 2m0s), level (2)"}"#,
        );
    }
    let object = run(&standin, &[]).object(0);
    let pod = &object["controllers"][0];
    assert_eq!((&pod["proof"], &pod["period_s"]), (&json!("log"), &json!(120)));
    assert!(object["drift"][0].as_str().unwrap().contains("runs with 2m0s"), "{object}");
}

#[test]
fn a_log_level_that_hides_the_line_is_named_and_the_spec_counts() {
    let standin = Standin::with(Options { pod_start: Duration::from_millis(1_100), ..Options::default() });
    change(&standin, "configmaps", "argocd-cmd-params-cm", |object| {
        object["data"] = json!({"controller.log.level": "warn"});
    });
    let object = run(&standin, &["30s", "--jitter", "0s"]).object(0);
    let pod = &object["controllers"][0];
    assert_eq!((&pod["proof"], &pod["line"], &pod["period_s"]), (&json!("spec"), &json!(null), &json!(30)));
    assert!(pod["how"].as_str().unwrap().contains("the log level `warn` hides the startup line"), "{pod}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("line");
    let ended = run(&standin, &["30s", "--jitter", "0s", "--line-out", file.to_str().unwrap()]);
    assert_eq!(ended.object(3)["error"]["code"], "no-line");
    assert!(!file.exists());
}

#[test]
fn without_a_restart_the_values_are_written_and_the_drift_is_shown() {
    let standin = Standin::start();
    let object = run(&standin, &["30s", "--jitter", "0s", "--no-restart"]).object(0);
    assert_eq!(object["outcome"], "changed");
    let drift = object["drift"].to_string();
    assert!(drift.contains("runs with 2m0s and a jitter of 1m0s, not with 30s and a jitter of 0s: it started before argocd-cm was changed"), "{drift}");
    assert_eq!(writes(&standin).len(), 1);
}
