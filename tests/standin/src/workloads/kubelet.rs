//! The kubelet: a pod starts some time after it was made, and goes some time after it was told to.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Memory, containers, is_ready, is_terminating, now, orphaned, place, terminate, uid};
use crate::{Cluster, store::Store};

/// Where a pod is, as the kubelet knows it.
pub(crate) struct Run {
    /// When it was first seen.
    seen: Instant,
    /// When its containers started.
    started: Option<Instant>,
    /// When it was told to go.
    stopped: Option<Instant>,
}

/// One look at all pods; returns when the next step is due.
pub(super) fn reconcile(cluster: &Cluster, memory: &mut Memory) -> Option<Instant> {
    let store = &cluster.store;
    let pods = store.list("pods", None).0;
    memory.pods.retain(|id, _| pods.iter().any(|pod| uid(pod) == id));
    let mut wakes = Vec::new();
    for pod in &pods {
        if orphaned(store, pod) {
            terminate(store, pod);
        }
        let run = memory.pods.entry(uid(pod).to_owned()).or_insert_with(|| {
            show(store, pod, "Pending", &json!({"waiting": {"reason": "ContainerCreating"}}), false);
            Run { seen: Instant::now(), started: None, stopped: None }
        });
        wakes.extend(step(cluster, pod, run));
    }
    wakes.into_iter().min()
}

fn step(cluster: &Cluster, pod: &Value, run: &mut Run) -> Option<Instant> {
    let (namespace, name) = place(pod);
    let delay = cluster.options.pod_start;
    if is_terminating(pod) {
        let stopped = *run.stopped.get_or_insert_with(|| {
            cluster.processes.stop(namespace, name);
            let state = json!({"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now()}});
            show(&cluster.store, pod, "Running", &state, false);
            Instant::now()
        });
        return at(stopped + delay, || {
            cluster.logs.forget(namespace, name);
            // Removed by somebody else is as good.
            let _ = cluster.store.delete("pods", namespace, name);
        });
    }
    if run.started.is_none() {
        return at(run.seen + delay, || start(cluster, pod, run));
    }
    if !is_ready(pod) {
        let state = pod["status"]["containerStatuses"][0]["state"].clone();
        show(&cluster.store, pod, "Running", &state, true);
    }
    None
}

/// Does what is due, or says when it will be.
fn at(due: Instant, step: impl FnOnce()) -> Option<Instant> {
    if Instant::now() < due {
        return Some(due);
    }
    step();
    None
}

fn start(cluster: &Cluster, pod: &Value, run: &mut Run) {
    match containers::start(cluster, pod) {
        Ok(()) => {
            run.started = Some(Instant::now());
            show(&cluster.store, pod, "Running", &json!({"running": {"startedAt": now()}}), false);
        }
        Err((container, why)) => {
            let _ = container;
            let state = json!({"waiting": {"reason": "CreateContainerConfigError", "message": why}});
            show(&cluster.store, pod, "Pending", &state, false);
        }
    }
}

fn show(store: &Store, pod: &Value, phase: &str, state: &Value, ready: bool) {
    let (namespace, name) = place(pod);
    // A pod that is gone meanwhile needs no status.
    let _ = store.update("pods", namespace, name, |pod| {
        let containers = containers::statuses(pod, state, ready);
        let condition = |kind: &str, status: bool| {
            let status = if status { "True" } else { "False" };
            let before = pod["status"]["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == kind);
            let same = before.filter(|before| before["status"] == status);
            let since = same.map_or_else(|| json!(now()), |before| before["lastTransitionTime"].clone());
            let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": since});
            if status == "False" {
                condition["reason"] = json!("ContainersNotReady");
                condition["message"] = json!("containers with unready status");
            }
            condition
        };
        let conditions = json!([
            condition("PodScheduled", true),
            condition("Initialized", true),
            condition("ContainersReady", ready),
            condition("Ready", ready),
        ]);
        let start = pod["status"]["startTime"].as_str().map_or_else(now, str::to_owned);
        pod["status"] = json!({
            "phase": phase, "conditions": conditions, "hostIP": "127.0.0.1", "podIP": "127.0.0.1",
            "podIPs": [{"ip": "127.0.0.1"}], "startTime": start, "containerStatuses": containers, "qosClass": "BestEffort",
        });
        pod["spec"]["nodeName"] = json!("standin");
        Ok(())
    });
}
