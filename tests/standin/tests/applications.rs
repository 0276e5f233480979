//! What happens to an Application, seen through its object as everybody sees it.

mod world;

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use standin::{
    Install, Options,
    processes::{Component, Process},
};
use world::{APPLICATIONS, PATIENCE, REFRESH, World};

/// A world in which `evt` is synced at its first commit.
fn synced(options: Options, change: impl FnOnce(&mut Value)) -> (World, String) {
    let world = World::with(options);
    let first = world.commit("r1");
    let mut evt = world.evt();
    change(&mut evt);
    world.create(evt);
    wait_for_sync(&world, &first);
    (world, first)
}

fn wait_for_sync(world: &World, commit: &str) {
    world.wait_for("a sync", PATIENCE, |app| {
        let status = &app["status"];
        status["sync"]["status"] == "Synced"
            && status["sync"]["revision"] == commit
            && status["operationState"]["phase"] == "Succeeded"
            && app["operation"].is_null()
    });
}

fn options(settings: &[(&str, &str)]) -> Options {
    let settings: BTreeMap<String, String> =
        settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Options { settings, ..Options::default() }
}

/// Polls each second.
fn polling() -> Options {
    options(&[("timeout.reconciliation", "1s"), ("timeout.reconciliation.jitter", "0s")])
}

fn condition(app: &Value, name: &str) -> String {
    let all = app["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|condition| condition["type"] == name);
    found.map_or_else(String::new, |condition| condition["message"].as_str().unwrap_or_default().to_owned())
}

fn signal(world: &World) -> Value {
    world.standin.store().get("configmaps", "evt", "signal").unwrap_or_default()["data"]["rev"].clone()
}

#[test]
fn an_automated_sync_is_seen_in_the_order_of_the_real_one() {
    let (world, _) = synced(Options::default(), |_| {});
    let (_, before) = world.standin.store().list(APPLICATIONS, None);
    let second = world.commit("r2");
    world.ask_for_refresh("normal");
    wait_for_sync(&world, &second);
    let events = world.standin.store().since(APPLICATIONS, before).expect("the log reaches back");
    let mut seen: Vec<String> = Vec::new();
    for event in events {
        let (app, status) = (&event.object, &event.object["status"]);
        let line = format!(
            "operation:{} phase:{} revision:{} status:{} history:{}",
            app["operation"].is_object(),
            status["operationState"]["phase"].as_str().unwrap_or("none"),
            if status["sync"]["revision"] == second.as_str() { "new" } else { "old" },
            status["sync"]["status"].as_str().unwrap_or_default(),
            status["history"].as_array().map_or(0, Vec::len),
        );
        if seen.last() != Some(&line) {
            seen.push(line);
        }
    }
    assert_eq!(
        seen,
        [
            "operation:false phase:Succeeded revision:old status:Synced history:1",
            "operation:true phase:none revision:old status:Synced history:1",
            "operation:true phase:none revision:new status:OutOfSync history:1",
            "operation:true phase:Running revision:new status:OutOfSync history:1",
            "operation:true phase:Running revision:new status:OutOfSync history:2",
            "operation:false phase:Succeeded revision:new status:OutOfSync history:2",
            "operation:false phase:Succeeded revision:new status:Synced history:2",
        ]
    );
    let app = world.application("evt");
    assert_eq!(app["status"]["history"][1]["id"], 1);
    assert_eq!(app["status"]["history"][1]["initiatedBy"], json!({"automated": true}));
    assert_eq!(app["status"]["sync"]["comparedTo"]["source"], app["spec"]["source"]);
}

#[test]
fn a_revision_that_does_not_resolve_is_a_comparison_error_with_the_name_in_its_place() {
    let (world, _) = synced(Options::default(), |_| {});
    world.patch_evt(&json!({"spec": {"source": {"targetRevision": "nope"}}}));
    world.wait_for("an error", PATIENCE, |app| app["status"]["sync"]["status"] == "Unknown");
    let app = world.application("evt");
    assert_eq!(app["status"]["sync"]["revision"], "nope");
    let message = condition(&app, "ComparisonError");
    assert!(message.contains("unable to resolve 'nope' to a commit SHA"), "{message}");
    world.patch_evt(&json!({"spec": {"source": {"targetRevision": "main"}}}));
    world.wait_for("no error", PATIENCE, |app| condition(app, "ComparisonError").is_empty());
}

#[test]
fn repo_errors_are_kept_quiet_on_schedule_and_told_when_asked() {
    let (world, first) = synced(polling(), |_| {});
    world.standin.cluster().faults.argo.fail_repositories(Some("repository not found"));
    let quiet = "Ignoring temporary failed attempt to compare app state against repo";
    world.wait_until("a quiet error", PATIENCE, || world.controller_log().iter().any(|line| line == quiet));
    let app = world.application("evt");
    let (reconciled, status) = (&app["status"]["reconciledAt"], &app["status"]["sync"]["status"]);
    world.wait_until("another", PATIENCE, || world.controller_log().iter().filter(|line| *line == quiet).count() > 1);
    assert_eq!(world.application("evt")["status"]["reconciledAt"], *reconciled, "nothing is written");
    assert_eq!(status, "Synced");
    world.refresh();
    let app = world.application("evt");
    assert!(condition(&app, "ComparisonError").contains("repository not found"));
    assert_eq!(
        app["status"]["sync"],
        json!({
            "comparedTo": {"source": app["spec"]["source"], "destination": app["spec"]["destination"]},
            "revision": "main",
            "status": "Unknown",
        })
    );
    world.standin.cluster().faults.argo.fail_repositories(None);
    world.refresh();
    world.wait_for_revision(&first, PATIENCE);
}

#[test]
fn a_spec_that_is_not_valid_is_not_compared() {
    let (world, _) = synced(Options::default(), |_| {});
    let before = world.application("evt")["status"]["reconciledAt"].clone();
    world.patch_evt(&json!({"spec": {"project": "nope"}, "metadata": {"annotations": {REFRESH: "normal"}}}));
    world.wait_for("an error", PATIENCE, |app| !condition(app, "InvalidSpecError").is_empty());
    let app = world.application("evt");
    assert_eq!(condition(&app, "InvalidSpecError"), "Application referencing project nope which does not exist");
    assert_eq!([&app["status"]["sync"]["status"], &app["status"]["health"]["status"]], ["Unknown", "Unknown"]);
    assert!(app["metadata"]["annotations"][REFRESH].is_null());
    assert_eq!(app["status"]["reconciledAt"], before);
}

#[test]
fn an_older_refresh_removes_the_annotation_of_a_newer_request() {
    let (world, _) = synced(Options::default(), |_| {});
    let asked = |world: &World, kind: &str| {
        let reason = format!("({kind} refresh requested)");
        world.controller_log().iter().filter(|line| line.contains(&reason)).count()
    };
    world.standin.cluster().faults.argo.slow_comparisons(Duration::from_millis(400));
    world.ask_for_refresh("normal");
    world.wait_until("the first one to begin", PATIENCE, || asked(&world, "normal") == 1);
    world.ask_for_refresh("hard");
    world.wait_for("the annotation to go", PATIENCE, |app| app["metadata"]["annotations"][REFRESH].is_null());
    world.standin.cluster().faults.argo.slow_comparisons(Duration::ZERO);
    world.refresh();
    assert_eq!((asked(&world, "normal"), asked(&world, "hard")), (2, 0), "nobody ever saw the request for a hard one");
}

#[test]
fn a_swallowed_request_leaves_everything_as_it_was() {
    let (world, first) = synced(Options::default(), |_| {});
    world.commit("r2");
    world.standin.cluster().faults.argo.swallow_refreshes(1);
    let before = world.application("evt")["status"].clone();
    world.refresh();
    assert_eq!(world.application("evt")["status"], before);
    assert_eq!(before["sync"]["revision"], first.as_str());
}

#[test]
fn nobody_looks_at_an_application_that_is_skipped_or_elsewhere() {
    let (world, first) = synced(Options::default(), |_| {});
    world.patch_evt(&json!({"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": "True"}}}));
    let mut elsewhere = world.evt();
    elsewhere["metadata"]["namespace"] = json!("team-a");
    world.create(elsewhere);
    world.commit("r2");
    world.ask_for_refresh("normal");
    world.stays_at(&first, Duration::from_millis(500));
    assert_eq!(world.application("evt")["metadata"]["annotations"][REFRESH], "normal");
    let other = world.standin.store().get(APPLICATIONS, "team-a", "evt").expect("it is there");
    assert!(other["status"].is_null());
    world.patch_evt(&json!({"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": null}}}));
    world.wait_for("a look", PATIENCE, |app| app["metadata"]["annotations"][REFRESH].is_null());
}

#[test]
fn a_change_in_the_cluster_is_healed_where_that_is_on() {
    let (world, first) = synced(Options::default(), |_| {});
    let break_it = || {
        let changed = world.standin.store().update("configmaps", "evt", "signal", |signal| {
            signal["data"]["rev"] = json!("by hand");
            Ok(())
        });
        changed.expect("it is there");
    };
    break_it();
    world.wait_until("healing", PATIENCE, || signal(&world) == "r1");
    wait_for_sync(&world, &first);
    assert_eq!(world.application("evt")["status"]["history"].as_array().map(Vec::len), Some(1), "a partial sync");
    world.patch_evt(&json!({"spec": {"syncPolicy": {"automated": {"selfHeal": false}}}}));
    break_it();
    world.wait_for("the difference", PATIENCE, |app| app["status"]["sync"]["status"] == "OutOfSync");
    assert_eq!(signal(&world), "by hand");
    assert!(world.controller_log().contains(&format!("Skipping auto-sync: most recent sync already to [{first}]")));
}

#[test]
fn what_git_lost_is_pruned() {
    let (world, _) = synced(Options::default(), |evt| evt["spec"]["revisionHistoryLimit"] = json!(1));
    world.write("app/other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\n");
    world.git(&["rm", "--quiet", "app/signal.yaml"]);
    let second = world.push("rename");
    world.refresh();
    wait_for_sync(&world, &second);
    assert!(world.standin.store().get("configmaps", "evt", "signal").is_none());
    assert!(world.standin.store().get("configmaps", "evt", "other").is_some());
    let history = world.application("evt")["status"]["history"].clone();
    assert_eq!(history.as_array().map(Vec::len), Some(1), "the older entry is cut off");
    assert_eq!((&history[0]["id"], &history[0]["revision"]), (&json!(1), &json!(second)));
}

#[test]
fn a_sync_that_fails_is_retried_and_then_left_alone() {
    let (world, first) = synced(Options::default(), |evt| {
        evt["spec"]["syncPolicy"]["retry"] = json!({"limit": 1, "backoff": {"duration": "1s"}});
    });
    world.standin.cluster().faults.argo.fail_syncs(Some("no luck"));
    let second = world.commit("r2");
    world.refresh();
    world.wait_for("a retry", PATIENCE, |app| {
        let state = &app["status"]["operationState"];
        state["phase"] == "Running" && state["finishedAt"].is_string() && state["retryCount"] == 1
    });
    world.wait_for("the end", PATIENCE, |app| app["status"]["operationState"]["phase"] == "Failed");
    let state = world.application("evt")["status"]["operationState"].clone();
    let message = "one or more objects failed to apply, reason: no luck (retried 1 times).";
    assert_eq!((&state["message"], &state["syncResult"]["revision"]), (&json!(message), &json!(second)));
    world.wait_for("the condition", PATIENCE, |app| condition(app, "SyncError").contains(&second));
    world.standin.cluster().faults.argo.fail_syncs(None);
    world.refresh();
    assert_eq!(signal(&world), "r1", "not tried again for the same commit");
    assert_ne!(first, second);
    let third = world.commit("r3");
    world.refresh();
    wait_for_sync(&world, &third);
    assert!(condition(&world.application("evt"), "SyncError").is_empty());
}

#[test]
fn a_requested_sync_without_automation_ends_in_the_history_under_its_user() {
    let world = World::new();
    let first = world.commit("r1");
    let mut evt = world.evt();
    evt["spec"]["syncPolicy"] = json!({"syncOptions": ["CreateNamespace=true"]});
    world.create(evt);
    world.wait_for("a comparison", PATIENCE, |app| app["status"]["sync"]["status"] == "OutOfSync");
    assert_eq!(world.application("evt")["status"]["health"]["status"], "Missing");
    world.patch_evt(&json!({"operation": {"initiatedBy": {"username": "me"}, "sync": {
        "syncOptions": ["CreateNamespace=true"]}}}));
    wait_for_sync(&world, &first);
    let app = world.application("evt");
    assert_eq!(app["status"]["history"][0]["initiatedBy"], json!({"username": "me"}));
    assert_eq!(app["status"]["health"]["status"], "Healthy");
}

#[test]
fn many_sources_have_a_revision_each_and_none_after_an_error() {
    let world = World::new();
    let first = world.commit("r1");
    let url = world.standin.git_url("evt.git");
    let mut evt = world.evt();
    evt["spec"]["sources"] = json!([
        {"repoURL": "https://charts.example.com", "chart": "redis", "targetRevision": "1.2.3"},
        {"repoURL": url, "targetRevision": "main", "path": "app"},
        {"repoURL": url, "targetRevision": "main", "ref": "values"},
    ]);
    world.create(evt);
    world.wait_for("a sync", PATIENCE, |app| app["status"]["operationState"]["phase"] == "Succeeded");
    let app = world.application("evt");
    assert_eq!(app["status"]["sync"]["revisions"], json!(["1.2.3", first, first]));
    assert!(app["status"]["sync"]["revision"].is_null());
    assert_eq!(app["status"]["sourceTypes"], json!(["Helm", "Directory", "Directory"]));
    assert_eq!(app["status"]["history"][0]["revisions"], json!(["1.2.3", first, first]));
    world.standin.cluster().faults.argo.fail_repositories(Some("gone"));
    world.refresh();
    let app = world.application("evt");
    assert_eq!(app["status"]["sync"]["status"], "Unknown");
    assert!(app["status"]["sync"]["revisions"].as_array().is_none_or(Vec::is_empty));
}

#[test]
fn a_wrong_clock_shows_in_the_time_of_the_comparison() {
    let (world, _) = synced(Options::default(), |_| {});
    let now = world.application("evt")["status"]["reconciledAt"].clone();
    world.standin.cluster().faults.skew_clock(-3600);
    world.refresh();
    let then = world.application("evt")["status"]["reconciledAt"].clone();
    assert!(then.as_str() < now.as_str(), "{then} {now}");
}

#[test]
fn the_three_releases_that_do_not_poll_say_that_they_do() {
    let mut slow = polling();
    slow.version = "v3.3.7".into();
    let (world, first) = synced(slow, |_| {});
    assert!(world.controller_log().iter().any(|line| line.starts_with("appResyncPeriod=1s")));
    let second = world.commit("r2");
    world.stays_at(&first, Duration::from_millis(2500));
    world.refresh();
    wait_for_sync(&world, &second);
}

#[test]
fn refs_are_read_from_the_cache_on_schedule_and_afresh_when_asked() {
    // The controller polls each second, the repo-server keeps refs for 24 hours.
    let slow = Options {
        controller_args: vec!["--app-resync".into(), "1".into(), "--app-resync-jitter".into(), "0".into()],
        ..options(&[("timeout.reconciliation", "0s")])
    };
    let (world, first) = synced(slow, |_| {});
    let asked = || {
        let requests = world.standin.cluster().git_server.requests();
        requests.iter().filter(|line| line.contains("service=git-upload-pack")).count()
    };
    let before = asked();
    let polls = || world.controller_log().iter().filter(|line| line.contains("comparison expired")).count();
    let polled = polls();
    world.commit("r2");
    world.wait_until("two polls", PATIENCE, || polls() >= polled + 2);
    assert_eq!(world.application("evt")["status"]["sync"]["revision"], first.as_str());
    assert_eq!(asked(), before, "no look at the remote");
    world.refresh();
    assert!(asked() > before);
}

#[test]
fn without_a_repo_server_nothing_resolves() {
    let (world, _) = synced(Options::default(), |_| {});
    world.kubectl(&["scale", "deployment/argocd-repo-server", "-n", "argocd", "--replicas", "0"]);
    let running = || world.standin.cluster().processes.of(Component::RepoServer).len();
    world.wait_until("it to go", PATIENCE, || running() == 0);
    world.refresh();
    assert!(condition(&world.application("evt"), "ComparisonError").contains("connection refused"));
}

#[test]
fn a_value_that_ends_the_process_is_a_crash_loop() {
    let world = World::new();
    let patch = r#"{"data":{"timeout.reconciliation":"9223372036854775808s"}}"#;
    world.kubectl(&["patch", "configmap", "argocd-cm", "-n", "argocd", "--type", "merge", "-p", patch]);
    world.kubectl(&["rollout", "restart", "statefulset/argocd-application-controller", "-n", "argocd"]);
    let pod = || world.standin.store().get("pods", "argocd", "argocd-application-controller-0").unwrap_or_default();
    world.wait_until("a crash loop", PATIENCE, || {
        pod()["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    });
}

#[test]
fn a_hydrated_application_is_rendered_to_another_branch_and_synced_from_there() {
    let enabled = json!({"name": "ARGOCD_HYDRATOR_ENABLED", "value": "true"});
    let world = World::with(Options { controller_env: vec![enabled], ..Options::default() });
    let first = world.commit("r1");
    let url = world.standin.git_url("evt.git");
    let mut evt = world.evt();
    evt["spec"].as_object_mut().expect("is an object").remove("source");
    evt["spec"]["sourceHydrator"] = json!({
        "drySource": {"repoURL": url, "targetRevision": "main", "path": "app"},
        "syncSource": {"targetBranch": "env/prod", "path": "out"},
    });
    world.create(evt);
    let hydrated = |dry: &str| {
        world.wait_for("a hydration and a sync", PATIENCE, |app| {
            let last = &app["status"]["sourceHydrator"]["lastSuccessfulOperation"];
            last["drySHA"] == dry
                && app["status"]["sync"]["revision"] == last["hydratedSHA"]
                && app["status"]["sync"]["status"] == "Synced"
        });
        world.application("evt")["status"].clone()
    };
    let status = hydrated(&first);
    assert_eq!(status["sourceHydrator"]["currentOperation"]["phase"], "Hydrated");
    assert_eq!(status["sourceHydrator"]["lastComparedDryRevision"], first.as_str());
    assert_ne!(status["sync"]["revision"], first.as_str());
    assert_eq!(signal(&world), "r1");
    let second = world.commit("r2");
    assert_eq!(world.post(&world.push_event(&first, &second), &[]).status, 200);
    hydrated(&second);
    assert_eq!(signal(&world), "r2");
    let remote = world.git(&["ls-remote", "origin", "refs/heads/env/prod"]);
    assert!(remote.starts_with(world.application("evt")["status"]["sync"]["revision"].as_str().expect("is text")));
}

#[test]
fn an_application_with_the_finalizer_takes_its_objects_along() {
    let (world, _) = synced(Options::default(), |evt| {
        evt["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    });
    world.kubectl(&["delete", "application", "evt", "-n", "argocd", "--timeout", "20s"]);
    assert!(world.standin.store().get("configmaps", "evt", "signal").is_none());
    assert!(world.application("evt").is_null());
}

#[test]
fn a_running_sync_can_be_terminated() {
    let (world, _) = synced(Options::default(), |_| {});
    world.standin.cluster().faults.argo.slow_syncs(Duration::from_secs(60));
    world.commit("r2");
    world.refresh();
    world.wait_for("a sync", PATIENCE, |app| app["status"]["operationState"]["phase"] == "Running");
    world.patch_evt(&json!({"status": {"operationState": {"phase": "Terminating"}}}));
    world.wait_for("its end", PATIENCE, |app| app["status"]["operationState"]["phase"] == "Failed");
    let app = world.application("evt");
    assert_eq!(app["status"]["operationState"]["message"], "Operation terminated");
    assert!(app["operation"].is_null());
}

#[test]
fn one_of_several_controllers_has_the_cluster() {
    for install in [Install::Stock, Install::Dynamic] {
        let world = World::with(Options { controllers: 2, install, ..Options::default() });
        let running = || world.standin.cluster().processes.of(Component::Controller);
        world.wait_until("both", PATIENCE, || running().len() == 2);
        let first = world.commit("r1");
        world.create(world.evt());
        wait_for_sync(&world, &first);
        world.refresh();
        let looks = |process: &Process| process.log.lines().join("\n").contains("Refreshing app status");
        assert_eq!(running().iter().filter(|process| looks(process)).count(), 1);
    }
}

#[test]
fn further_namespaces_are_served_where_controller_server_and_project_say_so() {
    let world = World::new();
    let first = world.commit("r1");
    let params = r#"{"data":{"application.namespaces":"team-*"}}"#;
    world.kubectl(&["patch", "configmap", "argocd-cmd-params-cm", "-n", "argocd", "--type", "merge", "-p", params]);
    for workload in ["statefulset/argocd-application-controller", "deployment/argocd-server"] {
        world.kubectl(&["rollout", "restart", workload, "-n", "argocd"]);
        world.kubectl(&["rollout", "status", workload, "-n", "argocd", "--timeout", "30s"]);
    }
    let mut evt = world.evt();
    evt["metadata"]["namespace"] = json!("team-a");
    world.create(evt);
    let app = || world.standin.store().get(APPLICATIONS, "team-a", "evt").unwrap_or_default();
    world.wait_until("a refusal", PATIENCE, || condition(&app(), "UnknownError").contains("is not allowed in project"));
    let project = r#"{"spec":{"sourceNamespaces":["team-*"]}}"#;
    world.kubectl(&["patch", "appproject", "default", "-n", "argocd", "--type", "merge", "-p", project]);
    assert_eq!(world.post(&world.push_event(&first, &first), &[]).status, 200);
    world.wait_until("a sync", PATIENCE, || app()["status"]["sync"]["revision"] == first.as_str());
    assert_eq!(app()["status"]["controllerNamespace"], "argocd");
}
