//! Putting things back.

use std::fs;

use serde_json::json;
use standin::{Options, PodFault, Standin};

use crate::bench::{CONTROLLER, config, owned, run, with_settings};

#[test]
fn restore_puts_back_what_was_there() {
    for before in [
        json!({"timeout.reconciliation": "5m", "timeout.reconciliation.jitter": "10s", "url": "https://x"}),
        json!({"timeout.reconciliation": "2m30s", "url": "https://x"}),
        json!({"url": "https://x"}),
    ] {
        let settings = before.as_object().unwrap().iter().map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned()));
        let standin = Standin::with(Options { settings: settings.collect(), ..Options::default() });
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("before.json");
        let ended = run(&standin, &["30s", "--jitter", "0s"]);
        assert_eq!(ended.object(0)["previous"]["timeout.reconciliation"], before["timeout.reconciliation"]);
        fs::write(&output, &ended.stdout).unwrap();
        let object = run(&standin, &["--restore", output.to_str().unwrap()]).object(0);
        assert_eq!(config(&standin), before);
        assert_eq!(object["drift"], json!([]), "{object}");
    }
}

#[test]
fn a_value_that_was_ignored_is_not_written_again() {
    let standin = with_settings(&[("timeout.reconciliation", "180")]);
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("before.json");
    fs::write(&output, run(&standin, &["30s"]).stdout).unwrap();
    let object = run(&standin, &["--restore", output.to_str().unwrap()]).object(0);
    assert!(config(&standin).get("timeout.reconciliation").is_none());
    assert!(object["warnings"][0].as_str().unwrap().contains("was `180`, which Argo CD 3.5.1 ignores"), "{object}");
}

#[test]
fn a_failed_restart_is_rolled_back_on_request() {
    let settings = owned(&[("timeout.reconciliation", "5m"), ("url", "https://x")]);
    let standin = Standin::with(Options { settings, ..Options::default() });
    // The controller does not start with the new value; it does with the old one.
    standin.cluster().faults.break_pods(CONTROLLER, PodFault::CrashLoop { lines: vec!["bad".into()], exit_code: 1 });
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&standin, &["30s", "--jitter", "0s", "--rollback", "--error-grace", "1s"]));
        while config(&standin)["timeout.reconciliation"] != "30s" {
            std::thread::yield_now();
        }
        while config(&standin)["timeout.reconciliation"] != "5m" {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        standin.cluster().faults.heal_pods();
        running.join().unwrap()
    });
    let object = ended.object(1);
    assert_eq!((&object["outcome"], &object["rolled_back"]), (&json!("rolled-back"), &json!(true)));
    assert_eq!(object["error"]["code"], "rollout-failed");
    assert_eq!(config(&standin), json!({"timeout.reconciliation": "5m", "url": "https://x"}));
    assert_eq!(object["controllers"][0]["period_s"], 300);
}

#[test]
fn values_that_somebody_puts_back_meanwhile_are_noticed() {
    let standin = with_settings(&[("timeout.reconciliation", "5m")]);
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&standin, &["30s"]));
        while config(&standin)["timeout.reconciliation"] != "30s" {
            std::thread::yield_now();
        }
        let words =
            ["-n", "argocd", "patch", "cm", "argocd-cm", "--type", "merge", "--field-manager", "argocd-operator"];
        let patch = ["-p", r#"{"data":{"timeout.reconciliation":"5m"}}"#];
        assert!(standin.kubectl().args(words).args(patch).output().unwrap().status.success());
        running.join().unwrap()
    });
    let object = ended.object(1);
    assert_eq!(object["error"]["code"], "changed-meanwhile");
    let message = object["error"]["message"].as_str().unwrap();
    assert!(message.contains("was changed meanwhile, by argocd-operator: timeout.reconciliation is `5m`"), "{message}");
}
