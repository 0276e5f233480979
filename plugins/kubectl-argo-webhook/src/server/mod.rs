//! argocd-server in the cluster: its Service, its pods, and the settings that decide how it is spoken to.

mod settings;

use std::{collections::BTreeMap, net::IpAddr};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod, Service, ServicePort},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kit::{
    cluster::{Ask, Cluster, Refused},
    error::Error,
    talk::Talk,
    version::Version,
};
use kube::{
    Api,
    api::{ListParams, LogParams},
};

use settings::Settings;
pub use settings::{body_limit, matching_settings};

/// Where `/api/webhook` is served.
#[derive(Clone, Debug)]
pub struct Server {
    /// The Service's name.
    pub service: String,
    /// Its cluster IP; `None` for a headless one.
    pub cluster_ip: Option<IpAddr>,
    /// The port of the Service that is used.
    pub port: u16,
    /// The port of the containers behind it.
    pub target_port: u16,
    /// Whether it speaks TLS (`server.insecure` is not set).
    pub tls: bool,
    /// `/api/webhook` below `server.rootpath`.
    pub path: String,
    /// What selects its pods.
    pub selector: String,
    /// The pods that are ready, in the order of their names.
    pub pods: Vec<String>,
    /// The container in them, for its log.
    pub container: Option<String>,
    /// The version, from the image; `None` when it has no such tag or the pods cannot be listed.
    pub version: Option<Version>,
}

const NAME_LABEL: &str = "app.kubernetes.io/name=argocd-server";
/// For installs whose names were overridden (argo-helm `nameOverride`).
const COMPONENT_LABEL: &str = "app.kubernetes.io/component=server,app.kubernetes.io/part-of=argocd";

/// Finds the server. Only the Service is needed; what else cannot be read is taken to be as in the stock manifests.
///
/// # Errors
/// When there is no server, or the cluster cannot be asked.
pub async fn find(cluster: &Cluster, talk: &Talk) -> Result<Server, Error> {
    let service = match service(cluster).await {
        Err(refused) if refused.status == Some(403) => {
            talk.detail(format!("{}; taking the stock Service argocd-server", refused.error));
            None
        }
        Err(refused) => return Err(refused.error),
        Ok(None) => return Err(none(cluster)),
        Ok(Some(service)) => Some(service),
    };
    let spec = service.as_ref().and_then(|service| service.spec.clone()).unwrap_or_default();
    let selector = spec.selector.as_ref().map_or_else(
        || NAME_LABEL.to_owned(),
        |labels| labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(","),
    );
    let pods = optional(pods(cluster, &selector).await, talk).unwrap_or_default();
    let params = optional(config_map(cluster, "argocd-cmd-params-cm").await, talk).flatten().unwrap_or_default();
    let settings = Settings::of(&pods, &params);
    let port = port(spec.ports.as_deref().unwrap_or_default(), settings.tls);
    Ok(Server {
        service: service.and_then(|service| service.metadata.name).unwrap_or_else(|| "argocd-server".into()),
        cluster_ip: spec.cluster_ip.and_then(|ip| ip.parse().ok()),
        target_port: port.as_ref().and_then(|port| target_port(port, &pods)).unwrap_or(8080),
        port: port.map_or(if settings.tls { 443 } else { 80 }, |port| u16::try_from(port.port).unwrap_or_default()),
        tls: settings.tls,
        path: match settings.root.trim_matches('/') {
            "" => "/api/webhook".into(),
            root => format!("/{root}/api/webhook"),
        },
        version: pods.iter().find_map(version),
        container: pods.iter().find_map(|pod| Some(pod.spec.as_ref()?.containers.first()?.name.clone())),
        selector,
        pods: pods.into_iter().filter(is_ready).filter_map(|pod| pod.metadata.name).collect(),
    })
}

/// The lines that the ready pods logged in the last seconds; nothing where they cannot be read.
pub async fn recent_log(cluster: &Cluster, server: &Server, talk: &Talk) -> Vec<String> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let params = LogParams { container: server.container.clone(), since_seconds: Some(3), ..LogParams::default() };
    let mut lines = Vec::new();
    for pod in &server.pods {
        let ask = Ask { verb: "get", resource: "pods/log", namespace: &cluster.namespace, name: pod };
        let log = optional(cluster.call(ask, api.logs(pod, &params)).await, talk).unwrap_or_default();
        lines.extend(log.lines().map(str::to_owned));
    }
    lines
}

/// A pod of the server.
#[derive(Clone, Debug)]
pub struct ServerPod {
    /// Its name.
    pub name: String,
    /// Whether it gets traffic.
    pub ready: bool,
}

/// The pods of the server, now; those that are being deleted are gone.
///
/// # Errors
/// When they cannot be listed.
pub async fn pods_of(cluster: &Cluster, server: &Server) -> Result<Vec<ServerPod>, Error> {
    let pods = pods(cluster, &server.selector).await?;
    let alive = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(alive.filter_map(|pod| Some(ServerPod { ready: is_ready(&pod), name: pod.metadata.name? })).collect())
}

async fn service(cluster: &Cluster) -> Result<Option<Service>, Refused> {
    let api: Api<Service> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    for labels in [NAME_LABEL, COMPONENT_LABEL] {
        let ask = Ask { verb: "list", resource: "services", namespace: &cluster.namespace, name: "" };
        let found = cluster.call(ask, api.list(&ListParams::default().labels(labels))).await?;
        // The Service for metrics may carry the same labels, but has none of these ports.
        let serves = |service: &Service| {
            let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
            ports.iter().any(|port| matches!(port.name.as_deref(), Some("http" | "https")) || port.port == 443)
        };
        if let Some(service) = found.items.into_iter().find(serves) {
            return Ok(Some(service));
        }
    }
    Ok(None)
}

async fn pods(cluster: &Cluster, selector: &str) -> Result<Vec<Pod>, Refused> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let ask = Ask { verb: "list", resource: "pods", namespace: &cluster.namespace, name: "" };
    Ok(cluster.call(ask, api.list(&ListParams::default().labels(selector))).await?.items)
}

async fn config_map(cluster: &Cluster, name: &str) -> Result<Option<BTreeMap<String, String>>, Refused> {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let ask = Ask { verb: "get", resource: "configmaps", namespace: &cluster.namespace, name };
    Ok(cluster.find(ask, api.get(name)).await?.and_then(|map| map.data))
}

/// What can be done without is only mentioned.
fn optional<T>(result: Result<T, Refused>, talk: &Talk) -> Option<T> {
    result.map_err(|refused| talk.detail(format!("{}; going on without", refused.error))).ok()
}

fn port(ports: &[ServicePort], tls: bool) -> Option<ServicePort> {
    let (name, number) = if tls { ("https", 443) } else { ("http", 80) };
    let named = ports.iter().find(|port| port.name.as_deref() == Some(name));
    named.or_else(|| ports.iter().find(|port| port.port == number)).or_else(|| ports.first()).cloned()
}

fn target_port(port: &ServicePort, pods: &[Pod]) -> Option<u16> {
    match port.target_port.as_ref()? {
        IntOrString::Int(number) => u16::try_from(*number).ok(),
        IntOrString::String(name) => pods.iter().find_map(|pod| {
            let ports = pod.spec.as_ref()?.containers.iter().filter_map(|container| container.ports.as_ref()).flatten();
            let found = ports.into_iter().find(|port| port.name.as_deref() == Some(name));
            u16::try_from(found?.container_port).ok()
        }),
    }
}

fn version(pod: &Pod) -> Option<Version> {
    pod.spec.as_ref()?.containers.iter().find_map(|container| Version::of_image(container.image.as_deref()?))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    pod.metadata.deletion_timestamp.is_none()
        && conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn none(cluster: &Cluster) -> Error {
    Error::usage(
        "no-server",
        format!("no argocd-server in namespace {} (context {})", cluster.namespace, cluster.context),
    )
    .hint(
        "-n names Argo CD's namespace; a core install has no argocd-server and so takes no webhooks: \
         `kubectl annotate applications.argoproj.io APP argocd.argoproj.io/refresh=normal` asks for a look instead",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(container: serde_json::Value) -> Vec<Pod> {
        vec![serde_json::from_value(json!({"spec": {"containers": [container]}})).unwrap()]
    }

    #[test]
    fn a_named_target_port_is_looked_up_in_the_pod() {
        let port: ServicePort = serde_json::from_value(json!({"port": 443, "targetPort": "server"})).unwrap();
        let pods = pod(json!({"name": "server", "ports": [{"name": "server", "containerPort": 9090}]}));
        assert_eq!(target_port(&port, &pods), Some(9090));
    }
}
