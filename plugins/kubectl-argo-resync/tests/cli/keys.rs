//! Every other key of `argocd-cm` survives byte for byte.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use standin::{Matcher, Options, Outcome, Standin};

use crate::bench::{config, owned, run};

const ODD: &[(&str, &str)] = &[
    ("url", "https://argocd.example.com"),
    ("resource.customizations", "apps/Deployment:\n  health.lua: |\n    -- tabs\tand \"quotes\" \\ ü\n"),
    ("timeout.hard.reconciliation", "0s"),
    ("empty", ""),
    ("trailing", "blank \n\n"),
];

fn without_ours(data: &Value) -> Value {
    let mut data = data.clone();
    data.as_object_mut().unwrap().retain(|key, _| {
        !["timeout.reconciliation", "timeout.reconciliation.jitter"].contains(&key.as_str())
            && !key.starts_with("other.")
    });
    data
}

#[test]
fn other_keys_survive_also_when_somebody_else_changes_some_of_them_meanwhile() {
    let standin = Standin::with(Options { settings: owned(ODD), ..Options::default() });
    let before = without_ours(&config(&standin));
    let over = AtomicBool::new(false);
    let changed = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut count = 0;
            while !over.load(Ordering::Relaxed) {
                count += 1;
                let patch = json!({"data": {"other.count": count.to_string()}}).to_string();
                let words = ["-n", "argocd", "patch", "cm", "argocd-cm", "--type", "merge", "-p", &patch];
                let output =
                    Command::new("kubectl").args(words).env("KUBECONFIG", standin.kubeconfig()).output().unwrap();
                assert!(output.status.success(), "{output:?}");
            }
            count
        });
        for words in [&["30s", "--jitter", "0s"][..], &["off"], &["default", "--jitter", "default"]] {
            run(&standin, words).object(0);
        }
        over.store(true, Ordering::Relaxed);
        other.join().unwrap()
    });
    assert!(changed > 3);
    assert_eq!(config(&standin)["other.count"], changed.to_string());
    assert_eq!(without_ours(&config(&standin)), before);
}

#[test]
fn two_runs_at_once_do_not_lose_each_others_keys() {
    let standin = Standin::with(Options { settings: owned(ODD), ..Options::default() });
    let before = without_ours(&config(&standin));
    std::thread::scope(|scope| {
        let period = scope.spawn(|| run(&standin, &["45s", "--no-restart"]));
        let jitter = scope.spawn(|| run(&standin, &["--jitter", "5s", "--no-restart"]));
        period.join().unwrap().object(0);
        jitter.join().unwrap().object(0);
    });
    let data = config(&standin);
    assert_eq!(data["timeout.reconciliation"], "45s");
    assert_eq!(data["timeout.reconciliation.jitter"], "5s");
    assert_eq!(without_ours(&data), before);
}

#[test]
fn two_full_runs_at_once_both_end_with_the_same_values() {
    let standin = Standin::with(Options { settings: owned(ODD), ..Options::default() });
    std::thread::scope(|scope| {
        let runs = [0, 1].map(|_| scope.spawn(|| run(&standin, &["45s", "--jitter", "5s"])));
        for run in runs {
            let object = run.join().unwrap().object(0);
            assert_eq!(object["controllers"][0]["period_s"], 45);
        }
    });
}

#[test]
fn conflicts_are_tried_again() {
    let standin = Standin::start();
    let conflict = Outcome::Refused { code: 409, retry_after_s: None };
    for path in ["/configmaps/argocd-cm", "/deployments/argocd-repo-server", "/statefulsets/"] {
        standin.cluster().faults.fail(Matcher::any().method("PATCH").path(path), 2, conflict.clone());
    }
    run(&standin, &["30s"]).object(0);
    assert_eq!(config(&standin)["timeout.reconciliation"], "30s");
}

#[test]
fn an_answer_that_is_lost_after_it_took_effect_is_finished_by_the_same_command() {
    for path in ["/configmaps/argocd-cm", "/deployments/argocd-repo-server", "/statefulsets/"] {
        let standin = Standin::start();
        standin.cluster().faults.fail(Matcher::any().method("PATCH").path(path), 1, Outcome::CutAfterwards);
        let first = run(&standin, &["30s"]);
        assert!([0, 3].contains(&first.code), "{first:#?}");
        let object = run(&standin, &["30s"]).object(0);
        assert_eq!(object["controllers"][0]["period_s"], 30);
    }
}
