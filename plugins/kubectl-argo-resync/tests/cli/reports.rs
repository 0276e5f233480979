//! The report without a period: what there is, what the pods run with, and why they differ.

use serde_json::json;
use standin::{Install, Options, Standin};

use crate::bench::{CONTROLLER, REPO_SERVER, app, change, make, owned, run, with_settings, writes};

#[test]
fn the_report_shows_the_values_the_pods_and_the_load_and_changes_nothing() {
    let standin = with_settings(&[("timeout.reconciliation", "60s"), ("timeout.reconciliation.jitter", "10s")]);
    for name in ["a", "b", "c"] {
        let url = if name == "c" { "https://git.example.com/c.git" } else { "https://git.example.com/ab.git" };
        make(&standin, app(name, url));
    }
    let object = run(&standin, &[]).object(0);
    assert_eq!(object["outcome"], "report");
    assert_eq!((&object["period"], &object["jitter"]), (&json!("60s"), &json!("10s")));
    assert_eq!(object["next_restart"], json!({"period_s": 60, "jitter_s": 10, "ref_age_s": 60}));
    assert_eq!(object["worst_case_s"], 2 * 60 + 10 + 60);
    assert_eq!(object["repo_servers"][0]["ref_age_s"], 60);
    assert_eq!(object["drift"], json!([]));
    let load = json!({"applications": 3, "repositories": 2, "comparisons_per_hour": 180, "git_requests_per_hour": 120});
    assert_eq!(object["load"], load);
    assert_eq!(writes(&standin), [""; 0]);
}

#[test]
fn pods_that_are_older_than_the_change_drift() {
    let standin = Standin::start();
    let words = [
        "-n",
        "argocd",
        "patch",
        "cm",
        "argocd-cm",
        "--type",
        "merge",
        "-p",
        r#"{"data":{"timeout.reconciliation":"30s"}}"#,
    ];
    let status = standin.kubectl().args(words).output().unwrap();
    assert!(status.status.success());
    let object = run(&standin, &[]).object(0);
    let drift: Vec<_> = object["drift"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(
        drift[0].contains("argocd-application-controller-0 runs with 2m0s and a jitter of 1m0s, not with 30s"),
        "{drift:?}"
    );
    assert!(drift[1].contains("what repo-server pod") && drift[1].contains("argocd-cm was changed at"), "{drift:?}");
    assert_eq!(object["controllers"][0]["period_s"], 120);
    assert_eq!(object["next_restart"]["period_s"], 30);
}

#[test]
fn an_ignored_value_is_named_with_the_warning_of_the_pod() {
    for (version, value) in [("v3.5.1", "180"), ("v2.13.0", "2m30s"), ("v3.2.12", "1d")] {
        let settings = owned(&[("timeout.reconciliation", value)]);
        let standin = Standin::with(Options { version: version.into(), settings, ..Options::default() });
        let object = run(&standin, &[]).object(0);
        let drift = object["drift"].to_string();
        assert!(drift.contains(&format!("timeout.reconciliation: `{value}`, which Argo CD")), "{drift}");
        assert!(drift.contains("ignores: its default counts"), "{drift}");
        assert_eq!(object["controllers"][0]["period_s"], object["next_restart"]["period_s"]);
        for pods in ["controllers", "repo_servers"] {
            let ignored = object[pods][0]["ignored"][0].as_str().unwrap();
            assert!(ignored.starts_with(&format!("Could not parse '{value}' as a duration")), "{ignored}");
        }
    }
}

#[test]
fn a_key_in_the_wrong_config_map_is_named() {
    let standin = Standin::start();
    change(&standin, "configmaps", "argocd-cmd-params-cm", |object| {
        object["data"] = json!({"timeout.reconciliation": "30s"});
    });
    let object = run(&standin, &[]).object(0);
    assert!(
        object["drift"][0].as_str().unwrap().contains("which nothing reads there: it belongs in argocd-cm"),
        "{object}"
    );
}

/// Puts an argument or a variable into the template of a workload, and waits for the pods.
fn overridden(standin: &Standin, resource: &str, name: &str, container: &str, value: serde_json::Value) {
    change(standin, resource, name, |object| {
        let containers = object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
        let found = containers.iter_mut().find(|one| one["name"] == container).unwrap();
        match value {
            serde_json::Value::String(argument) => found["args"].as_array_mut().unwrap().push(json!(argument)),
            variable => {
                let env = found["env"].as_array_mut().unwrap();
                env.retain(|one| one["name"] != variable["name"]);
                env.push(variable);
            }
        }
    });
    let kind = resource.trim_end_matches("s.apps");
    let words = ["-n", "argocd", "rollout", "status", &format!("{kind}/{name}"), "--timeout=60s"];
    let output = standin.kubectl().args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_wins_over_argocd_cm_is_named_and_a_period_that_nobody_would_read_is_refused() {
    let variable = |value: serde_json::Value| {
        let mut variable = json!({"name": "ARGOCD_RECONCILIATION_TIMEOUT"});
        variable.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        variable
    };
    let other = json!({"configMapKeyRef": {"name": "other", "key": "period", "optional": true}});
    for (resource, name, value, from) in [
        ("statefulsets.apps", CONTROLLER, json!("--app-resync=45"), "its argument `--app-resync 45`"),
        ("statefulsets.apps", CONTROLLER, variable(json!({"value": "45s"})), "the literal `45s` in its environment"),
        ("deployments.apps", REPO_SERVER, variable(json!({"valueFrom": other})), "`period` of ConfigMap other"),
    ] {
        let standin = Standin::start();
        overridden(&standin, resource, name, name, value);
        let object = run(&standin, &[]).object(0);
        let shown = object["workloads"].to_string();
        assert!(shown.contains(from), "{from}: {shown}");
        if resource == "statefulsets.apps" {
            let drift = object["drift"].to_string();
            assert!(drift.contains("runs with 45s") && drift.contains(from), "{drift}");
        }
        let ended = run(&standin, &["30s"]);
        assert!(ended.refusal(2).contains("argocd-cm would have no effect: "), "{ended:#?}");
        assert!(ended.stderr.contains(from), "{ended:#?}");
        assert_eq!(writes(&standin), [""; 0]);
        let object = run(&standin, &["30s", "--no-restart"]).object(0);
        assert!(object["warnings"][0].as_str().unwrap().contains("argocd-cm would have no effect: "), "{object}");
    }
}

#[test]
fn a_fixed_value_that_is_the_wanted_one_does_no_harm() {
    let standin = Standin::start();
    overridden(&standin, "statefulsets.apps", CONTROLLER, CONTROLLER, json!("--app-resync=45"));
    let object = run(&standin, &["45s"]).object(0);
    assert_eq!(object["controllers"][0]["period_s"], 45);
}

#[test]
fn the_operator_is_named_where_it_owns_the_workload() {
    let install = Install::Operator { name: "gitops".into() };
    let standin = Standin::with(Options { install, ..Options::default() });
    let controller = "gitops-application-controller";
    change(&standin, "statefulsets.apps", controller, |object| {
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD",
            "name": "gitops", "uid": "1", "controller": true}]);
    });
    overridden(&standin, "statefulsets.apps", controller, CONTROLLER, json!("--app-resync=45"));
    let ended = run(&standin, &["30s"]);
    assert!(ended.refusal(2).contains("it belongs to the operator, from ArgoCD gitops: change it there"), "{ended:#?}");
}

#[test]
fn a_number_of_shards_that_differs_from_the_replicas_is_warned_of() {
    let standin = Standin::with(Options { controllers: 2, ..Options::default() });
    overridden(
        &standin,
        "statefulsets.apps",
        CONTROLLER,
        CONTROLLER,
        json!({"name": "ARGOCD_CONTROLLER_REPLICAS", "value": "3"}),
    );
    let object = run(&standin, &[]).object(0);
    assert!(
        object["warnings"][0].as_str().unwrap().contains("has 2 replicas, but ARGOCD_CONTROLLER_REPLICAS is 3"),
        "{object}"
    );
}

#[test]
fn a_container_that_does_not_read_argocd_cm_at_all_is_named() {
    let install = Install::Operator { name: "gitops".into() };
    let standin = Standin::with(Options { install, ..Options::default() });
    change(&standin, "deployments.apps", "gitops-repo-server", |object| {
        let container = &mut object["spec"]["template"]["spec"]["containers"][0];
        container["env"].as_array_mut().unwrap().retain(|variable| variable["name"] != "ARGOCD_RECONCILIATION_TIMEOUT");
    });
    let ended = run(&standin, &["30s"]);
    let refusal = ended.refusal(2);
    assert!(refusal.contains("deployment/gitops-repo-server takes `timeout.reconciliation` from nothing"), "{refusal}");
    let object = run(&standin, &[]).object(0);
    assert!(
        object["workloads"][0]["ref_age_from"].as_str().unwrap().contains("nothing: the default counts"),
        "{object}"
    );
}

#[test]
fn the_version_is_read_from_the_log_where_the_image_does_not_name_it() {
    let standin = Standin::with(Options { version: "latest".into(), ..Options::default() });
    for process in standin.cluster().processes.of(standin::processes::Component::Controller) {
        process.log.rotate();
        process.print(r#"time="2026-08-12T09:30:00Z" level=info msg="ArgoCD Application Controller is starting" built=x commit=y namespace=argocd version=v2.13.4+abc"#);
        process.print(r#"time="2026-08-12T09:30:00Z" level=info msg="appResyncPeriod=3m0s, appHardResyncPeriod=0s, appResyncJitter=0s""#);
    }
    let object = run(&standin, &[]).object(0);
    assert_eq!(object["version"], "2.13.4");
    assert_eq!(object["next_restart"], json!({"period_s": 180, "jitter_s": 0, "ref_age_s": 180}));
    assert_eq!(object["warnings"], json!([]));
}

#[test]
fn an_owner_of_argocd_cm_is_reported() {
    let standin = Standin::start();
    change(&standin, "configmaps", "argocd-cm", |object| {
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!("argo");
    });
    assert_eq!(run(&standin, &[]).object(0)["managed_by"], "the Helm release argo");
}
