//! The containers of a pod: what runs in them, and how `containerStatuses` show it.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use super::{environment, place};
use crate::{
    Cluster, argocd,
    processes::{Component, Log, Process},
};

/// The part of Argo CD that a container is, by the program that it runs; `None` for Redis, Dex and others.
fn component(arguments: &[String]) -> Option<Component> {
    let program = arguments.first()?.rsplit('/').next()?;
    match program {
        "argocd-application-controller" => Some(Component::Controller),
        "argocd-repo-server" => Some(Component::RepoServer),
        "argocd-server" => Some(Component::Server),
        _ => None,
    }
}

fn arguments(container: &Value) -> Vec<String> {
    let texts = |field: &str| {
        let list = container[field].as_array().into_iter().flatten();
        list.filter_map(|text| text.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    [texts("command"), texts("args")].concat()
}

/// `v3.5.1` of `quay.io/argoproj/argocd:v3.5.1@sha256:…`.
fn tag(image: &str) -> String {
    let image = image.split('@').next().unwrap_or_default();
    image.rsplit('/').next().and_then(|name| name.split_once(':')).map_or("latest", |(_, tag)| tag).to_owned()
}

/// Starts all containers of a pod; each writes what its program says at first.
///
/// # Errors
/// The container that cannot start, and why.
pub(super) fn start(cluster: &Cluster, pod: &Value) -> Result<(), (String, String)> {
    let (namespace, pod_name) = place(pod);
    for container in pod["spec"]["initContainers"].as_array().into_iter().flatten() {
        let name = container["name"].as_str().unwrap_or_default();
        cluster.logs.start(namespace, pod_name, name, Arc::new(Log::default()));
    }
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        let name = container["name"].as_str().unwrap_or_default();
        let env = environment::resolve(&cluster.store, pod, container).map_err(|why| (name.to_owned(), why))?;
        let log = Arc::new(Log::default());
        run(cluster, pod, container, env, log.clone());
        cluster.logs.start(namespace, pod_name, name, log);
    }
    Ok(())
}

fn run(cluster: &Cluster, pod: &Value, container: &Value, env: BTreeMap<String, String>, log: Arc<Log>) {
    let (namespace, pod_name) = place(pod);
    let args = arguments(container);
    let Some(component) = component(&args) else { return };
    let process = Process {
        namespace: namespace.into(),
        pod: pod_name.into(),
        component,
        env,
        args,
        version: tag(container["image"].as_str().unwrap_or_default()),
        started_at: SystemTime::now(),
        log,
    };
    for line in argocd::startup_log(&process) {
        process.print(line);
    }
    cluster.processes.start(process);
}

/// The same state for every container of a pod.
pub(super) fn statuses(pod: &Value, state: &Value, ready: bool) -> Value {
    let old = &pod["status"]["containerStatuses"];
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten().enumerate();
    let status = |(index, container): (usize, &Value)| {
        let image = container["image"].as_str().unwrap_or_default();
        let running = !state["running"].is_null();
        let before = &old[index];
        let mut status = json!({
            "name": container["name"], "image": image, "ready": ready, "started": running,
            "restartCount": before["restartCount"].as_u64().unwrap_or(0), "state": state,
            "lastState": if before["lastState"].is_null() { json!({}) } else { before["lastState"].clone() },
            "imageID": "", "containerID": "",
        });
        if running {
            let id = pod["metadata"]["uid"].as_str().unwrap_or_default();
            status["imageID"] = json!(image);
            status["containerID"] = json!(format!("containerd://{id}-{index}-{}", status["restartCount"]));
        }
        status
    };
    containers.map(status).collect()
}
