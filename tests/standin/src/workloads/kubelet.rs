//! The kubelet: a pod starts some time after it was made, starts again when it ends by itself, and goes some time after
//! it was told to.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Memory,
    containers::{self, Shown},
    is_ready, is_terminating, now, orphaned, place, terminate, uid,
};
use crate::{Cluster, PodFault, processes::Component, store::Store};

/// Where a pod is, as the kubelet knows it.
pub(crate) struct Run {
    /// When the containers are to start next; `None` while they run.
    due: Option<Instant>,
    /// When it was told to go.
    stopped: Option<Instant>,
    /// How often its containers have started again.
    restarts: u64,
    /// `lastState`.
    last: Value,
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
            let run = Run { due: Some(first_start(cluster, pod)), stopped: None, restarts: 0, last: json!({}) };
            wait(store, pod, &run, "ContainerCreating", "");
            run
        });
        wakes.extend(step(cluster, pod, run));
    }
    wakes.into_iter().min()
}

fn first_start(cluster: &Cluster, pod: &Value) -> Instant {
    let slow = match cluster.faults.of_pod(place(pod).1) {
        Some(PodFault::Slow(delay)) => delay,
        _ => std::time::Duration::ZERO,
    };
    Instant::now() + cluster.options.pod_start + slow
}

fn step(cluster: &Cluster, pod: &Value, run: &mut Run) -> Option<Instant> {
    let (namespace, name) = place(pod);
    let store = &cluster.store;
    if is_terminating(pod) {
        return go(cluster, pod, run);
    }
    let fault = cluster.faults.of_pod(name);
    let Some(due) = run.due else {
        if let Some(code) = cluster.processes.take_exit(namespace, name) {
            return Some(crashed(cluster, pod, run, code));
        }
        if !is_ready(pod) && fault != Some(PodFault::NeverReady) && is_serving(cluster, namespace, name) {
            let state = pod["status"]["containerStatuses"][0]["state"].clone();
            show(store, pod, run, "Running", state, true);
        }
        return None;
    };
    match fault {
        Some(PodFault::Unschedulable) => {
            unschedulable(store, pod);
            return None;
        }
        Some(PodFault::ImagePull) => {
            let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
            wait(store, pod, run, "ImagePullBackOff", &format!("Back-off pulling image \"{image}\""));
            return None;
        }
        _ => {}
    }
    if Instant::now() < due {
        return Some(due);
    }
    match containers::start(cluster, pod) {
        Ok(()) => {
            run.due = None;
            show(store, pod, run, "Running", json!({"running": {"startedAt": now()}}), false);
        }
        Err(why) => wait(store, pod, run, "CreateContainerConfigError", &why),
    }
    if let (None, Some(PodFault::CrashLoop { lines, exit_code })) = (run.due, fault) {
        for container in containers::names(pod) {
            if let Some(log) = cluster.logs.current(namespace, name, &container) {
                lines.iter().for_each(|line| log.print(line));
            }
        }
        cluster.processes.stop(namespace, name);
        return Some(crashed(cluster, pod, run, exit_code));
    }
    None
}

/// The process has ended by itself: the container waits and starts again.
fn crashed(cluster: &Cluster, pod: &Value, run: &mut Run, code: i32) -> Instant {
    let (namespace, name) = place(pod);
    for container in containers::names(pod) {
        cluster.logs.end(namespace, name, &container);
    }
    let reason = if code == 0 { "Completed" } else { "Error" };
    run.last = json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": now(), "finishedAt": now()}});
    let message =
        format!("back-off 10s restarting failed container={} pod={name}_{namespace}", containers::names(pod).concat());
    wait(&cluster.store, pod, run, "CrashLoopBackOff", &message);
    run.restarts += 1;
    let due = Instant::now() + cluster.options.pod_start * 2;
    run.due = Some(due);
    due
}

fn go(cluster: &Cluster, pod: &Value, run: &mut Run) -> Option<Instant> {
    let (namespace, name) = place(pod);
    if run.stopped.is_none() {
        run.stopped = Some(Instant::now());
        cluster.processes.stop(namespace, name);
        let state = json!({"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now()}});
        show(&cluster.store, pod, run, "Running", state, false);
    }
    let due = run.stopped? + cluster.options.pod_start;
    if Instant::now() < due {
        return Some(due);
    }
    cluster.logs.forget(namespace, name);
    // Removed by somebody else is as good.
    let _ = cluster.store.delete("pods", namespace, name);
    None
}

/// The readiness probe: an argocd-server must listen; of the others nothing can be asked.
fn is_serving(cluster: &Cluster, namespace: &str, name: &str) -> bool {
    match cluster.processes.get(namespace, name) {
        Some(process) if process.component == Component::Server => cluster.endpoints.get(namespace, name).is_some(),
        _ => true,
    }
}

fn wait(store: &Store, pod: &Value, run: &Run, reason: &str, message: &str) {
    let mut state = json!({"waiting": {"reason": reason}});
    if !message.is_empty() {
        state["waiting"]["message"] = json!(message);
    }
    let phase = if run.restarts > 0 || reason == "CrashLoopBackOff" { "Running" } else { "Pending" };
    show(store, pod, run, phase, state, false);
}

fn unschedulable(store: &Store, pod: &Value) {
    let (namespace, name) = place(pod);
    // A pod that is gone meanwhile needs no status.
    let _ = store.update("pods", namespace, name, |pod| {
        let message = "0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available: 1 No \
                       preemption victims found for incoming pod.";
        let mut condition = condition(pod, "PodScheduled", false);
        condition["reason"] = json!("Unschedulable");
        condition["message"] = json!(message);
        pod["status"] = json!({"phase": "Pending", "conditions": [condition], "qosClass": "BestEffort"});
        Ok(())
    });
}

fn show(store: &Store, pod: &Value, run: &Run, phase: &str, state: Value, ready: bool) {
    let (namespace, name) = place(pod);
    let shown = Shown { state, ready, restarts: run.restarts, last: run.last.clone() };
    // A pod that is gone meanwhile needs no status.
    let _ = store.update("pods", namespace, name, |pod| {
        let conditions = json!([
            condition(pod, "PodScheduled", true),
            condition(pod, "Initialized", true),
            condition(pod, "ContainersReady", ready),
            condition(pod, "Ready", ready),
        ]);
        let start = pod["status"]["startTime"].as_str().map_or_else(now, str::to_owned);
        pod["status"] = json!({
            "phase": phase, "conditions": conditions, "hostIP": "127.0.0.1", "podIP": "127.0.0.1",
            "podIPs": [{"ip": "127.0.0.1"}], "startTime": start, "containerStatuses": shown.statuses(pod),
            "qosClass": "BestEffort",
        });
        pod["spec"]["nodeName"] = json!("standin");
        Ok(())
    });
}

fn condition(pod: &Value, kind: &str, status: bool) -> Value {
    let text = if status { "True" } else { "False" };
    let before = pod["status"]["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == kind);
    let same = before.filter(|before| before["status"] == text);
    let since = same.map_or_else(|| json!(now()), |before| before["lastTransitionTime"].clone());
    let mut condition = json!({"type": kind, "status": text, "lastTransitionTime": since});
    if !status {
        let names = containers::names(pod).join(" ");
        condition["reason"] = json!("ContainersNotReady");
        condition["message"] = json!(format!("containers with unready status: [{names}]"));
    }
    condition
}
