//! The controllers and the kubelet: Deployments, ReplicaSets, StatefulSets, pods.
//!
//! One loop looks at everything again after each change, takes the steps that are due, and writes the status fields as
//! the real controllers do. Each step is one write, so that a watch sees the states between.

mod containers;
mod deployments;
mod environment;
mod kubelet;
mod replicasets;
mod statefulsets;

use std::{
    collections::HashMap,
    io,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use crate::{Cluster, clock::rfc3339, store::Store};

/// What the loop remembers between two looks.
#[derive(Default)]
pub(crate) struct Memory {
    /// By uid of the pod.
    pods: HashMap<String, kubelet::Run>,
    /// By uid of the Deployment: when it last came nearer to its goal, and what it looked like then.
    progress: HashMap<String, (Instant, Value)>,
}

/// What the controllers and the kubelet look at. Of the rest, such as Applications by the thousand, they need not know.
const WATCHED: [&str; 6] =
    ["deployments.apps", "replicasets.apps", "statefulsets.apps", "pods", "configmaps", "secrets"];

/// Runs until the runtime ends.
pub(crate) async fn run(cluster: Arc<Cluster>) {
    let mut newest = cluster.store.newest();
    let mut endpoints = cluster.endpoints.changes();
    let mut faults = cluster.faults.pods();
    let mut processes = cluster.processes.changes();
    let mut memory = Memory::default();
    loop {
        let mut seen = *newest.borrow_and_update();
        endpoints.mark_unchanged();
        faults.mark_unchanged();
        processes.mark_unchanged();
        let wakes = [
            deployments::reconcile(&cluster, &mut memory),
            replicasets::reconcile(&cluster),
            statefulsets::reconcile(&cluster),
            kubelet::reconcile(&cluster, &mut memory),
        ];
        let wake = wakes.into_iter().flatten().min();
        let concerned = async {
            while newest.changed().await.is_ok() {
                // Read before the look: what is written in between is found by the next one.
                let now = *newest.borrow_and_update();
                if cluster.store.changed_since(&WATCHED, seen) {
                    return;
                }
                seen = now;
            }
        };
        tokio::select! {
            () = concerned => {}
            _ = endpoints.changed() => {}
            _ = faults.changed() => {}
            _ = processes.changed() => {}
            () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
        }
    }
}

/// Waits until every workload has all its pods, ready.
///
/// # Errors
/// When that takes too long; names the workloads that are not ready.
pub(crate) async fn settled(cluster: &Cluster) -> io::Result<()> {
    let patience = cluster.options.pod_start * 20 + Duration::from_secs(10);
    let waiting = || {
        let resources = ["deployments.apps", "statefulsets.apps"];
        let all = resources.into_iter().flat_map(|resource| cluster.store.list(resource, None).0);
        let behind = all.filter(|w| number(&w["status"]["readyReplicas"]) != number(&w["spec"]["replicas"]));
        behind.map(|workload| place(&workload).1.to_owned()).collect::<Vec<_>>()
    };
    let mut newest = cluster.store.newest();
    let all_ready = async { while !waiting().is_empty() && newest.changed().await.is_ok() {} };
    timeout(patience, all_ready)
        .await
        .map_err(|_| io::Error::other(format!("these workloads do not become ready: {}", waiting().join(", "))))
}

/// `metadata.namespace` and `metadata.name`.
fn place(object: &Value) -> (&str, &str) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// The objects of a resource whose controller is `owner`.
fn owned(store: &Store, resource: &str, owner: &Value) -> Vec<Arc<Value>> {
    let (all, _) = store.list(resource, Some(place(owner).0));
    all.into_iter()
        .filter(|object| object["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"])
        .collect()
}

/// Whether the controller of an object is gone, so that the garbage collector takes it.
fn orphaned(store: &Store, object: &Value) -> bool {
    let owner = &object["metadata"]["ownerReferences"][0];
    let resource = match owner["kind"].as_str() {
        Some("Deployment") => "deployments.apps",
        Some("ReplicaSet") => "replicasets.apps",
        Some("StatefulSet") => "statefulsets.apps",
        _ => return false,
    };
    let found = store.get(resource, place(object).0, owner["name"].as_str().unwrap_or_default());
    found.is_none_or(|found| found["metadata"]["uid"] != owner["uid"])
}

fn owner_reference(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

/// A pod of a template, not yet stored.
fn pod(owner: &Value, template: &Value, name: &str, labels: &[(&str, &str)]) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": owner["metadata"]["namespace"],
            "labels": template["metadata"]["labels"], "ownerReferences": owner_reference(owner),
        },
        "spec": template["spec"],
        "status": {"phase": "Pending"},
    });
    if !template["metadata"]["annotations"].is_null() {
        pod["metadata"]["annotations"] = template["metadata"]["annotations"].clone();
    }
    for (key, value) in labels {
        pod["metadata"]["labels"][*key] = json!(value);
    }
    pod
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Gives a pod its grace period; the kubelet removes it.
fn terminate(store: &Store, pod: &Value) {
    let (namespace, name) = place(pod);
    let now = json!(now());
    // A pod that is gone meanwhile needs nothing more.
    let _ = store.update("pods", namespace, name, |pod| {
        if !is_terminating(pod) {
            pod["metadata"]["deletionTimestamp"] = now;
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        }
        Ok(())
    });
}

/// Writes `status` when it differs.
fn set_status(store: &Store, resource: &str, object: &Value, status: Value) {
    let (namespace, name) = place(object);
    // An object that is gone meanwhile needs no status.
    let _ = store.update(resource, namespace, name, |object| {
        object["status"] = status;
        Ok(())
    });
}

/// A condition with its times: `lastTransitionTime` moves with the status only.
fn condition(old: &Value, kind: &str, status: bool, reason: &str, message: &str) -> Value {
    let status = if status { "True" } else { "False" };
    let before = old["status"]["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == kind);
    let now = json!(now());
    let same = before.is_some_and(|c| c["status"] == status);
    let unchanged = before.is_some_and(|c| c["reason"] == reason && c["message"] == message) && same;
    let transition = before.filter(|_| same).map_or(now.clone(), |c| c["lastTransitionTime"].clone());
    let update = before.filter(|_| unchanged).map_or(now, |c| c["lastUpdateTime"].clone());
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": update, "lastTransitionTime": transition,
    })
}

fn now() -> String {
    rfc3339(SystemTime::now())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
