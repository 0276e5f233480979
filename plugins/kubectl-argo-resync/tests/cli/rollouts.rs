//! Rollouts that do not end.

use std::time::{Duration, Instant};

use serde_json::json;
use standin::{Options, PodFault, Standin};

use crate::bench::{CONTROLLER, REPO_SERVER, change, config, run, writes, writes_to};

#[test]
fn a_pod_that_fails_ends_the_wait_with_its_reason_and_its_last_words() {
    let crash = PodFault::CrashLoop { lines: vec!["fatal: no room".into()], exit_code: 20 };
    for (prefix, fault, reasons) in [
        (CONTROLLER, crash, &["CrashLoopBackOff", "last exit code 20", "fatal: no room"][..]),
        (REPO_SERVER, PodFault::ImagePull, &["ImagePullBackOff"]),
        (REPO_SERVER, PodFault::Unschedulable, &["Unschedulable"]),
    ] {
        let standin = Standin::start();
        standin.cluster().faults.break_pods(prefix, fault.clone());
        let began = Instant::now();
        let ended = run(&standin, &["30s", "--error-grace", "1s"]);
        let object = ended.object(1);
        assert!(began.elapsed() < Duration::from_secs(30), "{fault:?}");
        assert_eq!((&object["outcome"], &object["error"]["code"]), (&json!("failed"), &json!("rollout-failed")));
        for reason in reasons {
            assert!(object["error"]["message"].as_str().unwrap().contains(reason), "{reason}: {object}");
        }
        let hint = object["error"]["hint"].as_str().unwrap();
        assert!(hint.contains("argocd-cm was changed (timeout.reconciliation: 30s (was unset))"), "{hint}");
        assert!(hint.contains("`kubectl argo-resync default` puts it back"), "{hint}");
    }
}

#[test]
fn a_failure_that_passes_within_the_grace_is_no_failure() {
    let standin = Standin::start();
    let crash = PodFault::CrashLoop { lines: vec![], exit_code: 1 };
    standin.cluster().faults.break_pods(CONTROLLER, crash);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while writes_to(&standin, CONTROLLER) == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
            std::thread::sleep(Duration::from_secs(1));
            standin.cluster().faults.heal_pods();
        });
        run(&standin, &["30s", "--error-grace", "1m"]).object(0);
    });
}

#[test]
fn the_deadline_ends_the_wait_with_the_last_state_seen_and_the_same_command_goes_on() {
    let standin = Standin::start();
    standin.cluster().faults.break_pods(CONTROLLER, PodFault::NeverReady);
    let ended = run(&standin, &["30s", "--timeout", "4s"]);
    let object = ended.object(124);
    assert_eq!(object["outcome"], "timeout");
    assert!(object["error"]["message"].as_str().unwrap().contains("0 of 1 pods ready"), "{object}");
    let restarts = writes_to(&standin, CONTROLLER);
    let object = run(&standin, &["30s", "--timeout", "2s"]).object(124);
    assert!(object["error"]["message"].as_str().unwrap().contains("0 of 1 pods ready"), "{object}");
    standin.cluster().faults.heal_pods();
    let object = run(&standin, &["30s"]).object(0);
    assert_eq!(object["controllers"][0]["period_s"], 30);
    assert_eq!(writes_to(&standin, CONTROLLER), restarts, "the rollout is waited for, not begun again");
}

#[test]
fn a_deployment_past_its_progress_deadline_ends_the_wait() {
    let standin = Standin::start();
    change(&standin, "deployments.apps", REPO_SERVER, |object| {
        object["spec"]["progressDeadlineSeconds"] = json!(2);
    });
    standin.cluster().faults.break_pods(REPO_SERVER, PodFault::NeverReady);
    let object = run(&standin, &["30s"]).object(1);
    assert!(object["error"]["message"].as_str().unwrap().contains("ProgressDeadlineExceeded"), "{object}");
}

#[test]
fn slow_rollouts_of_many_replicas_are_waited_for_to_the_last_old_pod() {
    let standin = Standin::with(Options {
        controllers: 3,
        repo_servers: 3,
        pod_start: Duration::from_millis(300),
        ..Options::default()
    });
    let object = run(&standin, &["30s"]).object(0);
    assert_eq!(object["controllers"].as_array().unwrap().len(), 3);
    for resource in ["controllers", "repo_servers"] {
        for pod in object[resource].as_array().unwrap() {
            let found = standin.store().get("pods", "argocd", pod["pod"].as_str().unwrap()).unwrap();
            assert!(found["metadata"]["deletionTimestamp"].is_null());
            assert!(found["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"].is_string());
        }
    }
    let pods = standin.store().list("pods", Some("argocd")).0;
    assert_eq!(pods.len(), 3 + 3 + 1, "no old pod is left, and argocd-server was left alone");
}

#[test]
fn workloads_that_a_restart_would_not_replace_are_refused_before_anything_is_changed() {
    for (resource, name, spec, why) in [
        ("statefulsets.apps", CONTROLLER, json!({"updateStrategy": {"type": "OnDelete"}}), "OnDelete"),
        (
            "statefulsets.apps",
            CONTROLLER,
            json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}),
            "partition of 1",
        ),
        ("deployments.apps", REPO_SERVER, json!({"paused": true}), "is paused"),
        ("statefulsets.apps", CONTROLLER, json!({"replicas": 0}), "has 0 replicas"),
    ] {
        let standin = Standin::start();
        change(&standin, resource, name, |object| {
            for (key, value) in spec.as_object().unwrap() {
                object["spec"][key] = value.clone();
            }
        });
        let ended = run(&standin, &["30s"]);
        assert!(ended.refusal(2).contains(why), "{ended:#?}");
        assert_eq!(writes(&standin), [""; 0]);
    }
}

#[test]
fn after_the_pods_of_an_on_delete_workload_were_replaced_by_hand_the_same_command_is_content() {
    let standin = Standin::with(Options { pod_start: Duration::from_millis(1_100), ..Options::default() });
    change(&standin, "statefulsets.apps", CONTROLLER, |object| {
        object["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    });
    run(&standin, &["30s", "--no-restart"]).object(0);
    for pod in standin.store().list("pods", Some("argocd")).0 {
        let words = ["-n", "argocd", "delete", "pod", pod["metadata"]["name"].as_str().unwrap()];
        let mut kubectl = std::process::Command::new("kubectl");
        assert!(kubectl.args(words).env("KUBECONFIG", standin.kubeconfig()).output().unwrap().status.success());
    }
    let before = writes(&standin).len();
    let object = run(&standin, &["30s"]).object(0);
    assert_eq!(object["outcome"], "unchanged");
    assert_eq!(object["controllers"][0]["period_s"], 30);
    assert_eq!(writes(&standin).len(), before);
    assert_eq!(config(&standin)["timeout.reconciliation"], "30s");
}

#[test]
fn an_api_server_that_is_away_for_a_moment_does_not_end_the_wait() {
    let standin = Standin::start();
    let matcher = standin::Matcher::any().method("GET").path("/statefulsets/");
    standin.cluster().faults.fail(matcher, 3, standin::Outcome::Refused { code: 503, retry_after_s: None });
    run(&standin, &["30s"]).object(0);
}
