//! StatefulSets: pods with ordinals, replaced one at a time from the highest ordinal down.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Memory, is_ready, is_terminating, number, owned, place, pod, set_status, terminate};
use crate::{Cluster, names, store::Store};

const REVISION: &str = "controller-revision-hash";

/// One look at all StatefulSets.
pub(super) fn reconcile(cluster: &Cluster, memory: &mut Memory) -> Option<Instant> {
    let store = &cluster.store;
    for set in store.list("statefulsets.apps", None).0 {
        let name = place(&set).1;
        let update = format!("{name}-{}", names::hash_of(&set["spec"]["template"], 10));
        memory.revisions.entry(update.clone()).or_insert_with(|| set["spec"]["template"].clone());
        let current = set["status"]["currentRevision"].as_str().unwrap_or(&update).to_owned();
        let revisions = Revisions { current, update };
        step(store, &set, &revisions, memory);
        write_status(store, &set, revisions);
    }
    None
}

/// The revision that rolls out, and the one from before.
struct Revisions {
    current: String,
    update: String,
}

/// One change at most (kubernetes pkg/controller/statefulset/stateful_set_control.go).
fn step(store: &Store, set: &Value, revisions: &Revisions, memory: &Memory) {
    let wanted = number(&set["spec"]["replicas"]);
    let strategy = &set["spec"]["updateStrategy"];
    let partition = number(&strategy["rollingUpdate"]["partition"]);
    let parallel = set["spec"]["podManagementPolicy"] == "Parallel";
    let pods = by_ordinal(store, set);
    let at = |ordinal: u64| pods.iter().find(|(n, _)| *n == ordinal).map(|(_, pod)| pod);
    for ordinal in 0..wanted {
        match at(ordinal) {
            None => {
                create(
                    store,
                    set,
                    ordinal,
                    revisions,
                    ordinal < partition && strategy["type"] == "RollingUpdate",
                    memory,
                );
                if !parallel {
                    return;
                }
            }
            // A pod that does not become ready holds up all after it, also when a newer template would repair it.
            Some(pod) if !parallel && (is_terminating(pod) || !is_ready(pod)) => return,
            Some(_) => {}
        }
    }
    for (ordinal, pod) in pods.iter().rev().filter(|(ordinal, _)| *ordinal >= wanted) {
        let _ = ordinal;
        terminate(store, pod);
        if !parallel {
            return;
        }
    }
    if strategy["type"] == "OnDelete" {
        return;
    }
    for (_, pod) in pods.iter().rev().filter(|(ordinal, _)| (partition..wanted).contains(ordinal)) {
        if pod["metadata"]["labels"][REVISION] != revisions.update.as_str() {
            terminate(store, pod);
            return;
        }
        if is_terminating(pod) || !is_ready(pod) {
            return;
        }
    }
}

fn create(store: &Store, set: &Value, ordinal: u64, revisions: &Revisions, keep_current: bool, memory: &Memory) {
    let revision = if keep_current { &revisions.current } else { &revisions.update };
    let template = memory.revisions.get(revision).unwrap_or(&set["spec"]["template"]);
    let name = format!("{}-{ordinal}", place(set).1);
    let index = ordinal.to_string();
    let labels = [
        (REVISION, revision.as_str()),
        ("statefulset.kubernetes.io/pod-name", &name),
        ("apps.kubernetes.io/pod-index", &index),
    ];
    let mut pod = pod(set, template, &name, &labels);
    pod["spec"]["hostname"] = json!(name);
    // Taken by another pod: the next look sees it go.
    let _ = store.create("pods", pod);
}

fn by_ordinal(store: &Store, set: &Value) -> Vec<(u64, Arc<Value>)> {
    let mut pods: Vec<_> = owned(store, "pods", set)
        .into_iter()
        .filter_map(|pod| Some((place(&pod).1.rsplit('-').next()?.parse().ok()?, pod)))
        .collect();
    pods.sort_by_key(|(ordinal, _)| *ordinal);
    pods
}

fn write_status(store: &Store, set: &Value, mut revisions: Revisions) {
    let pods = by_ordinal(store, set);
    let of = |revision: &str| {
        let alive = pods.iter().filter(|(_, pod)| !is_terminating(pod));
        alive.filter(|(_, pod)| pod["metadata"]["labels"][REVISION] == revision).count()
    };
    let ready = pods.iter().filter(|(_, pod)| is_ready(pod)).count();
    let updated = of(&revisions.update);
    let rolling = set["spec"]["updateStrategy"]["type"] == "RollingUpdate";
    if rolling && updated == pods.len() && ready == pods.len() {
        revisions.current.clone_from(&revisions.update);
    }
    let mut status = json!({
        "observedGeneration": set["metadata"]["generation"], "replicas": pods.len(), "collisionCount": 0,
        "currentRevision": revisions.current, "updateRevision": revisions.update, "availableReplicas": ready,
    });
    for (field, count) in
        [("readyReplicas", ready), ("currentReplicas", of(&revisions.current)), ("updatedReplicas", updated)]
    {
        if count > 0 {
            status[field] = json!(count);
        }
    }
    set_status(store, "statefulsets.apps", set, status);
}
