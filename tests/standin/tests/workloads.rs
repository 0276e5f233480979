//! Rollouts that do not go through, seen as kubectl sees them.

use std::{process::Output, time::Duration};

use serde_json::{Value, json};
use standin::{Options, PodFault, Standin, processes::Component};

const CONTROLLER: &str = "argocd-application-controller";

fn kubectl(standin: &Standin, arguments: &str) -> Output {
    let mut command = standin.kubectl();
    command.args(["-n", "argocd"]).args(arguments.split(' '));
    command.output().expect("kubectl is there")
}

#[track_caller]
fn ok(standin: &Standin, arguments: &str) -> String {
    let output = kubectl(standin, arguments);
    assert!(output.status.success(), "kubectl {arguments}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[track_caller]
fn fails(standin: &Standin, arguments: &str) -> String {
    let output = kubectl(standin, arguments);
    assert!(!output.status.success(), "kubectl {arguments}: {output:?}");
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

fn get(standin: &Standin, resource: &str, name: &str) -> Value {
    standin.store().get(resource, "argocd", name).expect("it is there")
}

fn change(standin: &Standin, resource: &str, name: &str, change: impl FnOnce(&mut Value)) {
    let changed = standin.store().update(resource, "argocd", name, |object| {
        change(object);
        Ok(())
    });
    changed.expect("it is there");
}

/// Waits for a state of an object.
fn until(standin: &Standin, resource: &str, name: &str, reached: impl Fn(&Value) -> bool) {
    let object = || standin.store().get(resource, "argocd", name);
    standin.until(&format!("{resource} {name}"), || object().is_some_and(|object| reached(&object)));
}

/// kubectl itself is not asked to wait: when a pod of the same name is there again before it looks, it waits for ever.
fn delete_pod(standin: &Standin, name: &str) {
    let before = get(standin, "pods", name)["metadata"]["uid"].clone();
    ok(standin, &format!("delete pod {name} --wait=false"));
    until(standin, "pods", name, |pod| pod["metadata"]["uid"] != before);
}

#[test]
fn a_deployment_that_makes_no_progress_says_so_after_its_deadline() {
    let standin = Standin::start();
    change(&standin, "deployments.apps", "argocd-repo-server", |deployment| {
        deployment["spec"]["progressDeadlineSeconds"] = json!(1);
    });
    standin.cluster().faults.break_pods("argocd-repo-server", PodFault::ImagePull);
    ok(&standin, "rollout restart deployment/argocd-repo-server");
    let error = fails(&standin, "rollout status deployment/argocd-repo-server --timeout=20s");
    assert_eq!(error, "error: deployment \"argocd-repo-server\" exceeded its progress deadline");
    assert_eq!(standin.cluster().processes.of(Component::RepoServer).len(), 1, "the old pod goes on");
    standin.cluster().faults.heal_pods();
    ok(&standin, "rollout status deployment/argocd-repo-server --timeout=20s");
}

#[test]
fn a_paused_deployment_does_not_roll() {
    let standin = Standin::start();
    let pods = || standin.cluster().processes.of(Component::RepoServer).remove(0).pod;
    let before = pods();
    ok(&standin, "rollout pause deployment/argocd-repo-server");
    assert!(
        fails(&standin, "rollout restart deployment/argocd-repo-server").contains("can't restart paused deployment")
    );
    ok(&standin, "set env deployment/argocd-repo-server A=b");
    until(&standin, "deployments.apps", "argocd-repo-server", |deployment| {
        deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
    });
    let deployment = get(&standin, "deployments.apps", "argocd-repo-server");
    assert_eq!((pods(), &deployment["status"]["updatedReplicas"]), (before.clone(), &Value::Null));
    ok(&standin, "rollout resume deployment/argocd-repo-server");
    ok(&standin, "rollout status deployment/argocd-repo-server --timeout=20s");
    assert_ne!(pods(), before);
}

#[test]
fn a_deployment_with_replicas_keeps_enough_of_them() {
    let standin = Standin::with(Options { repo_servers: 4, ..Options::default() });
    ok(&standin, "rollout restart deployment/argocd-repo-server");
    ok(&standin, "rollout status deployment/argocd-repo-server --timeout=20s");
    let events = standin.store().since("deployments.apps", 0).expect("the log is complete");
    let of = |field: &str| -> Vec<u64> {
        let rolling = events.iter().filter(|event| {
            event.object["metadata"]["name"] == "argocd-repo-server" && event.object["metadata"]["generation"] == 2
        });
        rolling.map(|event| event.object["status"][field].as_u64().unwrap_or(0)).collect()
    };
    assert!(of("availableReplicas").into_iter().all(|available| available >= 3));
    assert!(of("replicas").into_iter().all(|replicas| replicas <= 5));
    assert_eq!(of("updatedReplicas").last(), Some(&4));
}

#[test]
fn a_statefulset_rolls_from_the_highest_ordinal_down_to_its_partition() {
    let standin = Standin::with(Options { controllers: 3, ..Options::default() });
    let uids = || [0, 1, 2].map(|n| get(&standin, "pods", &format!("{CONTROLLER}-{n}"))["metadata"]["uid"].clone());
    let before = uids();
    change(&standin, "statefulsets.apps", CONTROLLER, |set| {
        set["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = json!(1);
    });
    ok(&standin, &format!("rollout restart statefulset/{CONTROLLER}"));
    let text = ok(&standin, &format!("rollout status statefulset/{CONTROLLER} --timeout=20s"));
    assert!(text.contains("partitioned roll out complete: 2 new pods have been updated"), "{text}");
    let after = uids();
    assert_eq!([0, 1, 2].map(|n| before[n] == after[n]), [true, false, false]);
    let status = get(&standin, "statefulsets.apps", CONTROLLER)["status"].clone();
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    let deleted: Vec<_> = standin
        .store()
        .since("pods", 0)
        .expect("the log is complete")
        .iter()
        .filter(|event| event.change == standin::store::Change::Deleted)
        .map(|event| event.object["metadata"]["name"].clone())
        .collect();
    assert_eq!(deleted, [2, 1].map(|n| json!(format!("{CONTROLLER}-{n}"))));
}

#[test]
fn a_statefulset_on_delete_waits_for_the_deletion() {
    let standin = Standin::start();
    change(&standin, "statefulsets.apps", CONTROLLER, |set| {
        set["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    });
    ok(&standin, &format!("rollout restart statefulset/{CONTROLLER}"));
    until(&standin, "statefulsets.apps", CONTROLLER, |set| {
        set["status"]["observedGeneration"] == set["metadata"]["generation"]
    });
    let status = get(&standin, "statefulsets.apps", CONTROLLER)["status"].clone();
    assert_eq!(status["updatedReplicas"], Value::Null);
    delete_pod(&standin, &format!("{CONTROLLER}-0"));
    until(&standin, "statefulsets.apps", CONTROLLER, |set| set["status"]["updatedReplicas"] == 1);
}

#[test]
fn a_broken_pod_holds_up_its_statefulset_until_it_is_deleted() {
    let standin = Standin::start();
    let faults = &standin.cluster().faults;
    faults.break_pods(CONTROLLER, PodFault::CrashLoop { lines: vec!["no".into()], exit_code: 1 });
    ok(&standin, &format!("rollout restart statefulset/{CONTROLLER}"));
    let broken =
        |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff";
    until(&standin, "pods", &format!("{CONTROLLER}-0"), broken);
    let error = fails(&standin, &format!("rollout status statefulset/{CONTROLLER} --timeout=1s"));
    assert!(error.contains("timed out waiting for the condition"), "{error}");
    ok(&standin, &format!("set env statefulset/{CONTROLLER} FIXED=1"));
    let error = fails(&standin, &format!("rollout status statefulset/{CONTROLLER} --timeout=1s"));
    assert!(error.contains("timed out waiting for the condition"), "{error}");
    faults.heal_pods();
    delete_pod(&standin, &format!("{CONTROLLER}-0"));
    ok(&standin, &format!("rollout status statefulset/{CONTROLLER} --timeout=20s"));
}

#[test]
fn slow_pods_make_slow_rollouts() {
    let standin = Standin::start();
    standin.cluster().faults.break_pods("argocd-repo-server", PodFault::Slow(Duration::from_secs(2)));
    ok(&standin, "rollout restart deployment/argocd-repo-server");
    let error = fails(&standin, "rollout status deployment/argocd-repo-server --timeout=1s");
    assert!(error.contains("timed out waiting for the condition"), "{error}");
    ok(&standin, "rollout status deployment/argocd-repo-server --timeout=20s");
}

#[test]
fn a_missing_reference_keeps_a_pod_from_starting_until_it_is_there() {
    let standin = Standin::start();
    let env = json!({"name": "X", "valueFrom": {"configMapKeyRef": {"name": "mine", "key": "k"}}});
    change(&standin, "statefulsets.apps", CONTROLLER, |set| {
        set["spec"]["template"]["spec"]["containers"][0]["env"].as_array_mut().expect("it has variables").push(env);
    });
    let name = format!("{CONTROLLER}-0");
    let waiting = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone();
    until(&standin, "pods", &name, |pod| waiting(pod)["reason"] == "CreateContainerConfigError");
    assert_eq!(waiting(&get(&standin, "pods", &name))["message"], "configmap \"mine\" not found");
    ok(&standin, "create configmap mine --from-literal=k=v");
    ok(&standin, &format!("rollout status statefulset/{CONTROLLER} --timeout=20s"));
    assert_eq!(standin.cluster().processes.of(Component::Controller)[0].env["X"], "v");
}

#[test]
fn a_process_that_refuses_its_settings_crashes_and_says_why() {
    let standin = Standin::start();
    let patch = r#"{"data":{"timeout.reconciliation":"99999999999999999999s"}}"#;
    ok(&standin, &format!("patch configmap argocd-cm --type merge -p {patch}"));
    ok(&standin, &format!("rollout restart statefulset/{CONTROLLER}"));
    let name = format!("{CONTROLLER}-0");
    until(&standin, "pods", &name, |pod| {
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    });
    assert!(ok(&standin, &format!("logs {name}")).contains("value out of range"));
    ok(&standin, r#"patch configmap argocd-cm --type merge -p {"data":null}"#);
    until(&standin, "pods", &name, |pod| pod["status"]["containerStatuses"][0]["ready"] == true);
}

#[test]
fn a_rotated_log_has_lost_its_beginning() {
    let standin = Standin::start();
    let process = standin.cluster().processes.of(Component::Controller).remove(0);
    assert!(ok(&standin, &format!("logs {CONTROLLER}-0")).contains("appResyncPeriod="));
    process.log.rotate();
    process.print("later");
    assert_eq!(ok(&standin, &format!("logs {CONTROLLER}-0")), "later");
}

#[test]
fn what_a_deleted_workload_owned_goes_with_it() {
    let standin = Standin::start();
    ok(&standin, "delete deployment argocd-repo-server");
    ok(&standin, "wait pod -l app.kubernetes.io/name=argocd-repo-server --for=delete --timeout=20s");
    assert_eq!(standin.cluster().processes.of(Component::RepoServer).len(), 0);
    assert!(!ok(&standin, "get replicasets -o name").contains("repo-server"));
}
