//! What there is of Argo CD in the namespace, as the API server has it.

use futures::AsyncReadExt as _;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, ContainerStatus, Pod},
    },
    jiff::Timestamp,
};
use kit::{
    cluster::{Ask, Cluster},
    error::Error,
    version::Version,
};
use kube::{
    Api, Client,
    api::{ListParams, LogParams},
};

use crate::{
    find::find,
    origin::{CONFIG, PARAMS},
    workload::{Component, Kind, Workload},
};

/// The startup line is among the first lines of a log.
const HEAD_BYTES: i64 = 1 << 20;
/// Enough of a busy controller's log to hold a scheduled comparison.
const TAIL_LINES: i64 = 5_000;

/// One install of Argo CD.
#[derive(Clone, Debug)]
pub struct Install {
    /// `argocd-cm`.
    pub config: ConfigMap,
    /// `argocd-cmd-params-cm`, where there is one.
    pub params: Option<ConfigMap>,
    /// The controller's workload.
    pub controller: Workload,
    /// The repo-server's workload.
    pub repo_server: Workload,
    /// The version in the tag of the controller's image; `None` for `latest`, digests and names of one's own.
    pub version: Option<Version>,
}

impl Install {
    /// Reads the ConfigMaps and finds the workloads.
    ///
    /// # Errors
    /// When something is missing, ambiguous, forbidden or unreachable.
    pub async fn read(cluster: &Cluster, controller: Option<&str>, repo_server: Option<&str>) -> Result<Self, Error> {
        let namespace = &cluster.namespace;
        let config = config_map(cluster, CONFIG).await?.ok_or_else(|| {
            Error::usage("no-argo-cd", format!("no ConfigMap {namespace}/{CONFIG} (context {})", cluster.context))
                .hint("-n names the namespace that Argo CD is installed in")
        })?;
        let params = config_map(cluster, PARAMS).await?;
        let all = workloads(cluster).await?;
        let controller = find(Component::Controller, &all, controller)?;
        let repo_server = find(Component::RepoServer, &all, repo_server)?;
        let image = controller.container(Component::Controller).and_then(|container| container.image.as_deref());
        let version = image.and_then(Version::of_image);
        Ok(Install { config, params, controller, repo_server, version })
    }

    /// The value of a key of `argocd-cm`.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.config.data.as_ref()?.get(key).map(String::as_str)
    }

    /// The workload of a component.
    pub fn workload(&self, component: Component) -> &Workload {
        match component {
            Component::Controller => &self.controller,
            Component::RepoServer => &self.repo_server,
        }
    }
}

/// Reads a ConfigMap of the namespace.
///
/// # Errors
/// As [`Cluster::find`].
pub async fn config_map(cluster: &Cluster, name: &str) -> Result<Option<ConfigMap>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let ask = Ask { verb: "get", resource: "configmaps", namespace: &cluster.namespace, name };
    Ok(cluster.find(ask, api.get(name)).await?)
}

async fn workloads(cluster: &Cluster) -> Result<Vec<Workload>, Error> {
    let everything = ListParams::default();
    let ask = |kind: Kind| Ask { verb: "list", resource: kind.resource(), namespace: &cluster.namespace, name: "" };
    let (deployments, stateful_sets) = futures::future::try_join(
        cluster.call(ask(Kind::Deployment), deployments(cluster).list(&everything)),
        cluster.call(ask(Kind::StatefulSet), stateful_sets(cluster).list(&everything)),
    )
    .await?;
    let deployments = deployments.items.into_iter().map(Workload::from);
    Ok(deployments.chain(stateful_sets.items.into_iter().map(Workload::from)).collect())
}

/// Reads a workload again.
///
/// # Errors
/// As [`Cluster::call`].
pub async fn again(cluster: &Cluster, workload: &Workload) -> Result<Workload, kit::cluster::Refused> {
    let name = workload.name();
    let ask = Ask { verb: "get", resource: workload.kind.resource(), namespace: &cluster.namespace, name };
    match workload.kind {
        Kind::Deployment => cluster.call(ask, deployments(cluster).get(name)).await.map(Workload::from),
        Kind::StatefulSet => cluster.call(ask, stateful_sets(cluster).get(name)).await.map(Workload::from),
    }
}

/// The Deployments of the namespace.
pub fn deployments(cluster: &Cluster) -> Api<Deployment> {
    Api::namespaced(cluster.client.clone(), &cluster.namespace)
}

/// The StatefulSets of the namespace.
pub fn stateful_sets(cluster: &Cluster) -> Api<StatefulSet> {
    Api::namespaced(cluster.client.clone(), &cluster.namespace)
}

/// The pods of a workload, terminating ones too, in the order of their ordinals or names.
///
/// # Errors
/// As [`Cluster::call`].
pub async fn pods(cluster: &Cluster, workload: &Workload) -> Result<Vec<Pod>, kit::cluster::Refused> {
    let ask = Ask { verb: "list", resource: "pods", namespace: &cluster.namespace, name: "" };
    let found = cluster
        .call(
            ask,
            pods_of(&cluster.client, &cluster.namespace).list(&ListParams::default().labels(&workload.pod_query())),
        )
        .await?;
    let mut pods: Vec<_> = found.items.into_iter().filter(|pod| workload.owns(pod)).collect();
    // `-10` comes after `-9`.
    pods.sort_by_key(|pod| {
        let name = pod_name(pod).to_owned();
        (name.len(), name)
    });
    Ok(pods)
}

fn pods_of(client: &Client, namespace: &str) -> Api<Pod> {
    Api::namespaced(client.clone(), namespace)
}

/// A pod's name.
pub fn pod_name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// When the container of a pod started, if it runs.
pub fn started_at(pod: &Pod, container: &str) -> Option<Timestamp> {
    let statuses: &[ContainerStatus] = pod.status.as_ref()?.container_statuses.as_deref()?;
    let status = statuses.iter().find(|status| status.name == container)?;
    Some(status.state.as_ref()?.running.as_ref()?.started_at.as_ref()?.0)
}

/// Which part of a log to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The beginning.
    Head,
    /// The end.
    Tail,
    /// The last lines of the container before this one.
    LastWords,
}

/// Reads the log of a container, byte for byte as `kubectl logs` shows it.
///
/// # Errors
/// As [`Cluster::call`].
pub async fn log(cluster: &Cluster, pod: &str, container: &str, part: Part) -> Result<Vec<u8>, kit::cluster::Refused> {
    let params = LogParams {
        container: Some(container.into()),
        limit_bytes: (part == Part::Head).then_some(HEAD_BYTES),
        tail_lines: match part {
            Part::Head => None,
            Part::Tail => Some(TAIL_LINES),
            Part::LastWords => Some(10),
        },
        previous: part == Part::LastWords,
        ..LogParams::default()
    };
    let api = pods_of(&cluster.client, &cluster.namespace);
    let ask = Ask { verb: "get", resource: "pods/log", namespace: &cluster.namespace, name: pod };
    cluster
        .call(ask, async {
            let mut bytes = Vec::new();
            let mut stream = std::pin::pin!(api.log_stream(pod, &params).await?);
            stream.read_to_end(&mut bytes).await.map_err(|error| kube::Error::Service(Box::new(error)))?;
            Ok(bytes)
        })
        .await
}
