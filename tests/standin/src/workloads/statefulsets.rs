//! StatefulSets: pods with ordinals, replaced one at a time from the highest ordinal down.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{is_ready, is_terminating, number, orphaned, owned, owner_reference, place, pod, set_status, terminate};
use crate::{Cluster, names, store::Store};

const REVISIONS: &str = "controllerrevisions.apps";
const REVISION: &str = "controller-revision-hash";

/// One look at all StatefulSets.
pub(super) fn reconcile(cluster: &Cluster) -> Option<Instant> {
    let store = &cluster.store;
    for revision in store.list(REVISIONS, None).0.iter().filter(|revision| orphaned(store, revision)) {
        let (namespace, name) = place(revision);
        // Gone already is as good as removed.
        let _ = store.delete(REVISIONS, namespace, name);
    }
    for set in store.list("statefulsets.apps", None).0 {
        let name = place(&set).1;
        let update = format!("{name}-{}", names::hash_of(&set["spec"]["template"], 10));
        keep_revision(store, &set, &update);
        let current = set["status"]["currentRevision"].as_str().unwrap_or(&update).to_owned();
        let revisions = Revisions { current, update };
        step(store, &set, &revisions);
        write_status(store, &set, revisions);
    }
    None
}

/// Keeps the pod template as a ControllerRevision, for pods below the partition and for `kubectl rollout undo`; one that
/// comes back is the newest again.
fn keep_revision(store: &Store, set: &Value, name: &str) {
    let known = owned(store, REVISIONS, set);
    let newest = known.iter().map(|revision| number(&revision["revision"])).max().unwrap_or(0);
    match known.iter().find(|revision| place(revision).1 == name) {
        Some(revision) if number(&revision["revision"]) == newest => {}
        Some(_) => {
            let _ = store.update(REVISIONS, place(set).0, name, |revision| {
                revision["revision"] = json!(newest + 1);
                Ok(())
            });
        }
        None => {
            let mut template = set["spec"]["template"].clone();
            template["$patch"] = json!("replace");
            let mut labels = set["spec"]["selector"]["matchLabels"].clone();
            labels["controller.kubernetes.io/hash"] = json!(name.rsplit('-').next());
            let revision = json!({
                "apiVersion": "apps/v1", "kind": "ControllerRevision",
                "metadata": {
                    "name": name, "namespace": place(set).0, "labels": labels, "ownerReferences": owner_reference(set),
                },
                "data": {"spec": {"template": template}}, "revision": newest + 1,
            });
            // The only writer is this loop, and it has just seen that there is none.
            let _ = store.create(REVISIONS, revision);
        }
    }
}

/// The revision that rolls out, and the one from before.
struct Revisions {
    current: String,
    update: String,
}

/// One change at most (kubernetes pkg/controller/statefulset/stateful_set_control.go).
fn step(store: &Store, set: &Value, revisions: &Revisions) {
    let wanted = number(&set["spec"]["replicas"]);
    let strategy = &set["spec"]["updateStrategy"];
    let partition = number(&strategy["rollingUpdate"]["partition"]);
    let parallel = set["spec"]["podManagementPolicy"] == "Parallel";
    let pods = by_ordinal(store, set);
    let at = |ordinal: u64| pods.iter().find(|(n, _)| *n == ordinal).map(|(_, pod)| pod);
    for ordinal in 0..wanted {
        match at(ordinal) {
            None => {
                create(store, set, ordinal, revisions, ordinal < partition && strategy["type"] == "RollingUpdate");
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

fn create(store: &Store, set: &Value, ordinal: u64, revisions: &Revisions, keep_current: bool) {
    let revision = if keep_current { &revisions.current } else { &revisions.update };
    let kept = store.get(REVISIONS, place(set).0, revision).map(|mut kept| kept["data"]["spec"]["template"].take());
    let template = kept.unwrap_or_else(|| set["spec"]["template"].clone());
    let name = format!("{}-{ordinal}", place(set).1);
    let index = ordinal.to_string();
    let labels = [
        (REVISION, revision.as_str()),
        ("statefulset.kubernetes.io/pod-name", &name),
        ("apps.kubernetes.io/pod-index", &index),
    ];
    let mut pod = pod(set, &template, &name, &labels);
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
