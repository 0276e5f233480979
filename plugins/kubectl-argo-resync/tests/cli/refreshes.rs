//! Refreshes, and the proof that each was done after it was asked for.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use standin::{Matcher, Options, Outcome, Standin};

use crate::bench::{APPLICATIONS, app, change, head, make, repository, run, writes};

const REFRESH: &str = "argocd.argoproj.io/refresh";

fn one(object: &Value) -> &Value {
    assert_eq!(object["refreshed"].as_array().unwrap().len(), 1, "{object}");
    &object["refreshed"][0]
}

#[test]
fn a_hard_refresh_ends_with_a_comparison_that_began_after_the_request() {
    let standin = Standin::start();
    make(&standin, app("evt", &repository(&standin, "evt.git")));
    let object = run(&standin, &["--hard-refresh", "evt"]).object(0);
    assert_eq!(object["outcome"], "refreshed");
    let entry = one(&object);
    assert_eq!((&entry["outcome"], &entry["kind"]), (&json!("refreshed"), &json!("hard")));
    assert!(entry["reconciled_at"].as_i64() >= entry["asked_at"].as_i64(), "{entry}");
    assert_eq!(entry["revision"].as_str().unwrap().len(), 40);
    assert!(writes(&standin).iter().all(|write| write.ends_with("/applications/evt")), "nothing else is touched");
}

#[test]
fn a_request_that_an_older_run_swallowed_is_made_again() {
    let standin = Standin::start();
    make(&standin, app("evt", &repository(&standin, "evt.git")));
    standin.cluster().faults.argo.swallow_refreshes(2);
    let object = run(&standin, &["--hard-refresh", "argocd/evt"]).object(0);
    let entry = one(&object);
    assert!(entry["asked"].as_u64().unwrap() >= 2, "{entry}");
    assert!(entry["reconciled_at"].as_i64() >= entry["asked_at"].as_i64(), "{entry}");
}

#[test]
fn a_controller_whose_clock_is_wrong_does_not_fool_or_block_the_proof() {
    for skew in [-30, 30] {
        let standin = Standin::start();
        make(&standin, app("evt", &repository(&standin, "evt.git")));
        standin.cluster().faults.skew_clock(skew);
        let object = run(&standin, &["--hard-refresh", "evt", "--timeout", "30s"]).object(0);
        assert_eq!(one(&object)["outcome"], "refreshed", "{skew}: {object}");
        assert_eq!(one(&object)["asked"], 2, "the second answer counts, whatever the clocks say: {object}");
    }
}

#[test]
fn a_pending_hard_refresh_is_never_weakened() {
    let standin = Standin::start();
    // The controller is at it, and does not end.
    standin.cluster().faults.argo.slow_comparisons(Duration::from_secs(600));
    let mut object = app("evt", "https://git.example.com/evt.git");
    object["metadata"]["annotations"] = json!({REFRESH: "hard"});
    make(&standin, object);
    let ended = run(&standin, &["--refresh", "evt", "--timeout", "2s"]);
    let object = ended.object(124);
    assert_eq!((&object["outcome"], &one(&object)["outcome"]), (&json!("timeout"), &json!("no-answer")));
    assert!(object["error"]["message"].as_str().unwrap().contains("argocd/evt did not answer in time"), "{object}");
    assert_eq!(writes(&standin), [""; 0]);
    let app = standin.store().get(APPLICATIONS, "argocd", "evt").unwrap();
    assert_eq!(app["metadata"]["annotations"][REFRESH], "hard");
}

#[test]
fn an_application_that_cannot_be_compared_has_answered() {
    let standin = Standin::start();
    let mut bad = app("bad", "https://git.example.com/evt.git");
    bad["spec"]["destination"] = json!({"server": "https://elsewhere", "namespace": "x"});
    make(&standin, bad);
    make(&standin, app("gone", &standin.git_url("gone.git")));
    for (name, condition) in [("bad", "InvalidSpecError"), ("gone", "ComparisonError")] {
        let object = run(&standin, &["--hard-refresh", name, "--timeout", "30s"]).object(1);
        let entry = one(&object);
        assert_eq!((&entry["outcome"], &entry["error"]["code"]), (&json!("failed"), &json!("comparison-failed")));
        let message = object["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("argocd/{name} cannot be compared: {condition}")), "{message}");
    }
}

#[test]
fn an_application_that_nobody_would_answer_for_is_refused_by_name_and_skipped_by_label() {
    let standin = Standin::start();
    let url = repository(&standin, "evt.git");
    let mut skipped = app("skipped", &url);
    skipped["metadata"]["annotations"] = json!({"argocd.argoproj.io/skip-reconcile": "true"});
    make(&standin, skipped);
    let mut elsewhere = app("elsewhere", &url);
    elsewhere["metadata"]["namespace"] = json!("team");
    make(&standin, elsewhere);
    make(&standin, app("evt", &url));
    let ended = run(&standin, &["30s", "--hard-refresh", "skipped"]);
    assert!(ended.refusal(2).contains("skip-reconcile is true"), "{ended:#?}");
    let ended = run(&standin, &["30s", "--hard-refresh", "team/elsewhere"]);
    assert!(ended.refusal(2).contains("does not serve its namespace"), "{ended:#?}");
    assert_eq!(writes(&standin), [""; 0]);
    let object = run(&standin, &["--refresh-selector", "team=blue", "-A"]).object(0);
    assert_eq!(one(&object)["app"], "evt");
    assert_eq!(object["skipped"].as_array().unwrap().len(), 2, "{object}");
}

#[test]
fn an_api_server_that_is_away_for_a_moment_does_not_end_a_refresh() {
    let standin = Standin::start();
    make(&standin, app("evt", &repository(&standin, "evt.git")));
    let away = Outcome::Refused { code: 503, retry_after_s: None };
    standin.cluster().faults.fail(Matcher::any().method("PATCH").path("/applications/evt"), 2, away);
    let object = run(&standin, &["--hard-refresh", "evt"]).object(0);
    assert_eq!(one(&object)["outcome"], "refreshed");
}

#[test]
fn without_a_controller_nobody_answers() {
    let standin = Standin::with(Options { controllers: 0, ..Options::default() });
    make(&standin, app("evt", "https://git.example.com/evt.git"));
    let ended = run(&standin, &["--hard-refresh", "evt"]);
    assert!(ended.refusal(2).contains("has 0 replicas: nobody would refresh an Application"), "{ended:#?}");
}

#[test]
fn two_hundred_hard_refreshes_stay_bounded_and_the_ones_without_an_answer_are_named() {
    let standin = Standin::start();
    let urls: Vec<_> = (0..8).map(|n| repository(&standin, &format!("r{n}.git"))).collect();
    for n in 0..200_usize {
        let mut object = app(&format!("app-{n:03}"), &urls[n % urls.len()]);
        // A commit is not looked up, which keeps the first comparisons of all of them short.
        object["spec"]["source"]["targetRevision"] = json!(head(&standin, &format!("r{}.git", n % urls.len())));
        make(&standin, object);
    }
    compared(&standin, 200);
    for dead in ["dead-1", "dead-2"] {
        let mut object = app(dead, &urls[0]);
        // No controller has this cluster: the request stays.
        object["metadata"]["namespace"] = json!("team");
        object["metadata"]["labels"] = json!({"team": "blue"});
        make(&standin, object);
    }
    change(&standin, "configmaps", "argocd-cmd-params-cm", |object| {
        object["data"] = json!({"application.namespaces": "team"});
    });
    let first = standin.store().newest().borrow().to_owned();
    let words = ["--hard-refresh-selector", "team=blue", "-A", "--max-in-flight", "7", "--app-timeout", "20s"];
    let ended = run(&standin, &words);
    let object = ended.object(124);
    let message = object["error"]["message"].as_str().unwrap();
    assert_eq!(message, "2 of 202 Applications were not refreshed: team/dead-1, team/dead-2");
    assert!(ended.stderr.contains("of 202 Applications"), "progress is shown: {ended:#?}");
    let refreshed = object["refreshed"].as_array().unwrap();
    assert_eq!(refreshed.iter().filter(|one| one["outcome"] == "refreshed").count(), 200);

    let mut pending = BTreeSet::new();
    let mut most = 0;
    let mut asked = Vec::new();
    let mut known = BTreeSet::new();
    for event in standin.store().since(APPLICATIONS, first).unwrap() {
        let name = event.object["metadata"]["name"].as_str().unwrap().to_owned();
        if event.object["metadata"]["annotations"][REFRESH].is_string() {
            pending.insert(name.clone());
            // One that an older comparison took along is asked again, in its turn.
            if known.insert(name) {
                asked.push(event.object["spec"]["source"]["repoURL"].as_str().unwrap().to_owned());
            }
        } else {
            pending.remove(&name);
        }
        most = most.max(pending.len());
    }
    assert!((2..=7).contains(&most), "{most} at a time");
    let first: BTreeSet<_> = asked[..urls.len()].iter().collect();
    assert_eq!(first.len(), urls.len(), "one Application of each repository first");
}

/// Waits until this many Applications have been compared.
fn compared(standin: &Standin, count: usize) {
    let mut newest = standin.store().newest();
    let done = || {
        let apps = standin.store().list(APPLICATIONS, None).0;
        apps.iter().filter(|app| app["status"]["reconciledAt"].is_string()).count() >= count
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        while !done() {
            newest.changed().await.unwrap();
        }
    });
}

#[test]
fn a_slow_comparison_is_waited_for() {
    let standin = Standin::start();
    make(&standin, app("evt", &repository(&standin, "evt.git")));
    standin.cluster().faults.argo.slow_comparisons(Duration::from_secs(3));
    let object = run(&standin, &["30s", "--jitter", "0s", "--hard-refresh", "evt"]).object(0);
    assert_eq!(one(&object)["outcome"], "refreshed");
}
