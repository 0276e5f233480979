//! The containers of a pod: what runs in them, and how `containerStatuses` show it.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use super::{environment, place};
use crate::{
    Cluster,
    argocd::{self, settings},
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

/// The names of the containers of a pod.
pub(super) fn names(pod: &Value) -> Vec<String> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers.filter_map(|container| container["name"].as_str().map(str::to_owned)).collect()
}

/// Starts all containers of a pod; each writes what its program says at first.
///
/// # Errors
/// Why a container cannot start.
pub(super) fn start(cluster: &Cluster, pod: &Value) -> Result<(), String> {
    let (namespace, pod_name) = place(pod);
    let containers: Vec<&Value> = pod["spec"]["containers"].as_array().into_iter().flatten().collect();
    let environments = containers
        .iter()
        .map(|container| environment::resolve(&cluster.store, pod, container))
        .collect::<Result<Vec<_>, _>>()?;
    for container in pod["spec"]["initContainers"].as_array().into_iter().flatten() {
        let name = container["name"].as_str().unwrap_or_default();
        cluster.logs.start(namespace, pod_name, name, Arc::new(Log::default()));
    }
    for (container, env) in containers.into_iter().zip(environments) {
        let log = Arc::new(Log::default());
        run(cluster, pod, container, env, log.clone());
        cluster.logs.start(namespace, pod_name, container["name"].as_str().unwrap_or_default(), log);
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
    if refuses_to_run(&process) {
        cluster.processes.exit(namespace, pod_name, 1);
    } else {
        cluster.processes.start(process);
    }
}

/// Whether a process ends over its settings; it has said why.
fn refuses_to_run(process: &Process) -> bool {
    match process.component {
        Component::Controller => settings::controller(process).settings.is_err(),
        Component::RepoServer => settings::revision_cache(process).settings.is_err(),
        Component::Server => false,
    }
}

/// How the containers of a pod are: all alike.
pub(super) struct Shown {
    /// `state`.
    pub state: Value,
    pub ready: bool,
    /// `restartCount`.
    pub restarts: u64,
    /// `lastState`.
    pub last: Value,
}

impl Shown {
    /// `status.containerStatuses`.
    pub(super) fn statuses(&self, pod: &Value) -> Value {
        let id = pod["metadata"]["uid"].as_str().unwrap_or_default();
        let status = |(index, container): (usize, &Value)| {
            let running = !self.state["running"].is_null();
            let mut status = json!({
                "name": container["name"], "image": container["image"], "ready": self.ready, "started": running,
                "restartCount": self.restarts, "state": self.state, "lastState": self.last,
                "imageID": "", "containerID": "",
            });
            if running {
                status["imageID"] = container["image"].clone();
                status["containerID"] = json!(format!("containerd://{id}-{index}-{}", self.restarts));
            }
            status
        };
        pod["spec"]["containers"].as_array().into_iter().flatten().enumerate().map(status).collect()
    }
}
