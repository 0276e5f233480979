//! Calls that are refused, and calls that change nothing.

use std::{fs, time::Instant};

use serde_json::json;
use standin::Standin;

use crate::bench::{app, make, run, with_settings, writes};

#[test]
fn wrong_periods_are_refused_and_nothing_is_changed() {
    let standin = Standin::start();
    for (period, why) in [
        ("180x", "`180x` is not a duration"),
        ("500ms", "`500ms` is under a second"),
        ("1.5s", "`1.5s` is not a whole number of seconds"),
        ("", "`` is not a duration"),
        ("9223372037s", "is not a duration"),
        ("ôff", "is not a duration"),
    ] {
        assert!(run(&standin, &[period]).refusal(2).contains(why), "{period}");
    }
    assert!(run(&standin, &["30s", "--jitter", "off"]).refusal(2).contains("the jitter `off` is not a duration"));
    assert_eq!(standin.requests().len(), 0, "the cluster is not even asked");
}

#[test]
fn what_does_not_exist_is_named_before_anything_is_changed() {
    let standin = Standin::start();
    for (words, why) in [
        (&["30s", "--hard-refresh", "nope"][..], "applications.argoproj.io argocd/nope"),
        (&["30s", "--refresh", "team/nope"], "applications.argoproj.io team/nope"),
        (&["30s", "--hard-refresh-selector", "team=red"], "no Application has the labels team=red"),
        (&["30s", "-n", "elsewhere"], "no ConfigMap elsewhere/argocd-cm"),
        (&["30s", "--controller", "deployment/nope"], "there is no deployment/nope"),
        (&["30s", "--line-out", "/nowhere/at/all"], "cannot write /nowhere/at/all"),
        (&["--restore", "/nowhere/at/all"], "cannot read /nowhere/at/all"),
    ] {
        let ended = run(&standin, words);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:#?}");
        assert!(ended.stderr.contains(why), "{ended:#?}");
    }
    assert_eq!(writes(&standin), [""; 0]);
}

#[test]
fn a_dry_run_prints_the_patches_and_changes_nothing() {
    let standin = with_settings(&[("timeout.reconciliation.jitter", "5s")]);
    make(&standin, app("evt", "https://git.example.com/evt.git"));
    let before = standin.store().get("configmaps", "argocd", "argocd-cm");
    let words = ["2m30s", "--jitter", "default", "--hard-refresh", "evt", "--dry-run"];
    let object = run(&standin, &words).object(0);
    assert_eq!(object["outcome"], "dry-run");
    let patches = object["patches"].as_array().unwrap();
    let names: Vec<_> =
        patches.iter().map(|patch| format!("{}/{}", patch["resource"], patch["name"]).replace('"', "")).collect();
    assert_eq!(
        names,
        [
            "configmaps/argocd-cm",
            "deployments.apps/argocd-repo-server",
            "statefulsets.apps/argocd-application-controller",
            "applications.argoproj.io/evt",
        ]
    );
    let data = json!({"timeout.reconciliation": "150s", "timeout.reconciliation.jitter": null});
    assert_eq!(patches[0]["patch"], json!({"data": data}));
    assert_eq!(writes(&standin), [""; 0]);
    assert_eq!(standin.store().get("configmaps", "argocd", "argocd-cm"), before);
}

#[test]
fn an_api_server_that_cannot_be_reached_is_no_answer() {
    let standin = Standin::start();
    standin.cluster().faults.refuse_connections(true);
    let began = Instant::now();
    let ended = run(&standin, &["30s", "--request-timeout", "3s"]);
    assert!(ended.refusal(3).contains("cannot get configmaps argocd/argocd-cm"), "{ended:#?}");
    assert!(began.elapsed().as_secs() < 8);
}

#[test]
fn a_missing_right_is_named_and_nothing_is_changed() {
    let standin = Standin::start();
    standin.cluster().faults.fail(
        standin::Matcher::any().method("GET").path("/log"),
        usize::MAX,
        standin::Outcome::Refused { code: 403, retry_after_s: None },
    );
    let ended = run(&standin, &["30s"]);
    assert!(ended.refusal(4).contains("needs the verb `get` on `pods/log` in namespace argocd"), "{ended:#?}");
    assert_eq!(writes(&standin), [""; 0]);
}

#[test]
fn an_admission_webhook_that_refuses_every_dry_run_is_in_nobodys_way() {
    let standin = Standin::start();
    for path in ["/configmaps/argocd-cm", "/deployments/", "/statefulsets/"] {
        let refused = standin::Outcome::Refused { code: 400, retry_after_s: None };
        standin.cluster().faults.fail(standin::Matcher::any().method("PATCH").path(path), 1, refused);
    }
    run(&standin, &["30s"]).object(0);
}

#[test]
fn a_line_out_file_is_left_alone_when_the_job_is_refused() {
    let standin = Standin::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("interval.txt");
    fs::write(&file, "old").unwrap();
    run(&standin, &["30s", "--hard-refresh", "nope", "--line-out", file.to_str().unwrap()]).refusal(2);
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
}
