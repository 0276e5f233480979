//! Deployments: one ReplicaSet for each pod template, and the rollout from the old ones to the new one.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Memory, condition, number, owned, owner_reference, place, uid};
use crate::{Cluster, names, store::Store};

const REVISION: &str = "deployment.kubernetes.io/revision";

/// One look at all Deployments; returns when the next progress deadline passes.
pub(super) fn reconcile(cluster: &Cluster, memory: &mut Memory) -> Option<Instant> {
    let store = &cluster.store;
    let deployments = store.list("deployments.apps", None).0;
    deployments.iter().filter_map(|deployment| roll(store, deployment, memory)).min()
}

fn roll(store: &Store, deployment: &Value, memory: &mut Memory) -> Option<Instant> {
    let template = &deployment["spec"]["template"];
    let hash = names::hash_of(template, 10);
    let is_new = |set: &Value| set["metadata"]["labels"]["pod-template-hash"] == hash.as_str();
    let wanted = number(&deployment["spec"]["replicas"]);
    let mut sets = owned(store, "replicasets.apps", deployment);
    let paused = deployment["spec"]["paused"] == true;
    if !paused {
        if !sets.iter().any(|set| is_new(set)) {
            create_set(store, deployment, &sets, &hash);
            sets = owned(store, "replicasets.apps", deployment);
        }
        let (new, old): (Vec<_>, Vec<_>) = sets.iter().cloned().partition(|set| is_new(set));
        if let Some(new) = new.first() {
            scale(store, deployment, new, &old);
        }
    } else if let [only] = sets.as_slice() {
        set_replicas(store, only, wanted);
    }
    let sets = owned(store, "replicasets.apps", deployment);
    write_status(store, deployment, &sets, sets.iter().find(|set| is_new(set)), memory)
}

fn create_set(store: &Store, deployment: &Value, old: &[Arc<Value>], hash: &str) {
    let (namespace, name) = place(deployment);
    let revision = |set: &Value| -> u64 {
        set["metadata"]["annotations"][REVISION].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let revision = (old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1).to_string();
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"]["pod-template-hash"] = json!(hash);
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"]["pod-template-hash"] = json!(hash);
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{name}-{hash}"), "namespace": namespace, "labels": template["metadata"]["labels"],
            "annotations": {REVISION: revision}, "ownerReferences": owner_reference(deployment),
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
        "status": {"replicas": 0},
    });
    // The only writer of ReplicaSets is this loop, and it has just seen that there is none.
    let _ = store.create("replicasets.apps", set);
    let _ = store.update("deployments.apps", namespace, name, |deployment| {
        deployment["metadata"]["annotations"][REVISION] = json!(revision);
        Ok(())
    });
}

/// One step of a rolling update, or of `Recreate` (kubernetes pkg/controller/deployment/rolling.go, recreate.go).
fn scale(store: &Store, deployment: &Value, new: &Value, old: &[Arc<Value>]) {
    let wanted = number(&deployment["spec"]["replicas"]);
    let replicas = |set: &Value| number(&set["spec"]["replicas"]);
    let old_total: u64 = old.iter().map(|set| replicas(set)).sum();
    if deployment["spec"]["strategy"]["type"] == "Recreate" {
        old.iter().for_each(|set| set_replicas(store, set, 0));
        if old_total == 0 && old.iter().all(|set| owned(store, "pods", set).is_empty()) {
            set_replicas(store, new, wanted);
        }
        return;
    }
    let limits = &deployment["spec"]["strategy"]["rollingUpdate"];
    let surge = share(&limits["maxSurge"], wanted, true);
    let mut unavailable = share(&limits["maxUnavailable"], wanted, false);
    if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    let current = replicas(new);
    let room = (wanted + surge).saturating_sub(current + old_total);
    let grown = if current > wanted { wanted } else { current + room.min(wanted - current) };
    set_replicas(store, new, grown);

    // Old pods that are not ready go at once, ready ones as far as enough remain.
    let available = |set: &Value| number(&set["status"]["availableReplicas"]);
    let all_available: u64 = available(new) + old.iter().map(|set| available(set)).sum::<u64>();
    let needed = wanted.saturating_sub(unavailable);
    let mut spare = all_available.saturating_sub(needed);
    for set in old {
        let broken = replicas(set).saturating_sub(available(set));
        let ready = replicas(set) - broken;
        let going = ready.min(spare);
        spare -= going;
        set_replicas(store, set, ready - going);
    }
}

/// A count or a percentage of the replicas; a surge is rounded up.
fn share(value: &Value, of: u64, up: bool) -> u64 {
    match value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<u64>().ok()) {
        Some(percent) if up => (of * percent).div_ceil(100),
        Some(percent) => of * percent / 100,
        None => number(value),
    }
}

fn set_replicas(store: &Store, set: &Value, replicas: u64) {
    let (namespace, name) = place(set);
    // A ReplicaSet that is gone needs no replicas.
    let _ = store.update("replicasets.apps", namespace, name, |set| {
        set["spec"]["replicas"] = json!(replicas);
        Ok(())
    });
}

fn write_status(
    store: &Store,
    deployment: &Value,
    sets: &[Arc<Value>],
    new: Option<&Arc<Value>>,
    memory: &mut Memory,
) -> Option<Instant> {
    let (namespace, name) = place(deployment);
    let wanted = number(&deployment["spec"]["replicas"]);
    let sum = |field: &str| sets.iter().map(|set| number(&set["status"][field])).sum::<u64>();
    let asked: u64 = sets.iter().map(|set| number(&set["spec"]["replicas"])).sum();
    let (replicas, ready, available) = (sum("replicas"), sum("readyReplicas"), sum("availableReplicas"));
    let updated = new.map_or(0, |set| number(&set["status"]["replicas"]));
    let complete = updated == wanted && replicas == wanted && available == wanted;
    let new_name = new.map_or(String::new(), |set| place(set).1.to_owned());

    let counts = json!([replicas, ready, available, updated, new_name]);
    let deadline = Duration::from_secs(deployment["spec"]["progressDeadlineSeconds"].as_u64().unwrap_or(600));
    let now = Instant::now();
    let seen = memory.progress.entry(uid(deployment).to_owned()).or_insert_with(|| (now, counts.clone()));
    if seen.1 != counts {
        *seen = (now, counts);
    }
    let due = seen.0 + deadline;
    let paused = deployment["spec"]["paused"] == true;
    let (good, reason, message) = if paused {
        (true, "DeploymentPaused", "Deployment is paused".to_owned())
    } else if complete {
        (true, "NewReplicaSetAvailable", format!("ReplicaSet \"{new_name}\" has successfully progressed."))
    } else if now >= due {
        (false, "ProgressDeadlineExceeded", format!("ReplicaSet \"{new_name}\" has timed out progressing."))
    } else if updated == 0 {
        (true, "NewReplicaSetCreated", format!("Created new replica set \"{new_name}\""))
    } else {
        (true, "ReplicaSetUpdated", format!("ReplicaSet \"{new_name}\" is progressing."))
    };
    // A status is written onto the newest state of the Deployment, but claims only the generation that was looked at.
    let _ = store.update("deployments.apps", namespace, name, |current| {
        let unavailable = share(&deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], wanted, false);
        let enough = available >= wanted.saturating_sub(unavailable);
        let available_condition = if enough {
            condition(current, "Available", true, "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            let message = "Deployment does not have minimum availability.";
            condition(current, "Available", false, "MinimumReplicasUnavailable", message)
        };
        let progressing = condition(current, "Progressing", good, reason, &message);
        let mut status = json!({"observedGeneration": deployment["metadata"]["generation"]});
        for (field, count) in [
            ("replicas", replicas),
            ("updatedReplicas", updated),
            ("readyReplicas", ready),
            ("availableReplicas", available),
            ("unavailableReplicas", asked.max(wanted).saturating_sub(available)),
        ] {
            // Zero is left out, as Go's `omitempty` does.
            if count > 0 {
                status[field] = json!(count);
            }
        }
        status["conditions"] = json!([available_condition, progressing]);
        current["status"] = status;
        Ok(())
    });
    (!paused && !complete && now < due).then_some(due)
}
