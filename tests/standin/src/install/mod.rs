//! The objects of an Argo CD install, as its manifests, its Helm chart or its operator make them.

mod kind;
mod workloads;

use std::time::{Duration, SystemTime};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

pub use self::kind::Install;
use self::kind::{Part, Shape};
use crate::{Cluster, LogFormat, certificates, clock::rfc3339, names, processes::Component};

/// How long ago the install was made.
const AGE: Duration = Duration::from_secs(3600);

/// Puts everything into the store; the workloads then start the pods.
pub(crate) fn install(cluster: &Cluster) {
    let options = &cluster.options;
    let shape = Shape::of(options);
    for namespace in ["default", "kube-system", &options.namespace] {
        let labels = json!({"kubernetes.io/metadata.name": namespace});
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        });
        put(cluster, "namespaces", object);
    }
    put(cluster, "configmaps", config_map(cluster, "argocd-cm", shape.settings()));
    put(cluster, "configmaps", config_map(cluster, "argocd-cmd-params-cm", parameters(cluster)));
    put(cluster, "secrets", secret(cluster, &shape));
    let redis = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "argocd-redis", "namespace": options.namespace},
        "data": {"auth": STANDARD.encode(names::hash(&options.namespace, 16))},
    });
    put(cluster, "secrets", redis);
    put(cluster, "appprojects.argoproj.io", default_project(&options.namespace));
    for name in ["applications", "applicationsets", "appprojects"] {
        put(cluster, "customresourcedefinitions.apiextensions.k8s.io", definition(name));
    }
    if let Some(server) = shape.part(Component::Server) {
        put(cluster, "services", service(cluster, &server));
    }
    for (resource, object) in workloads::workloads(options, &shape) {
        put(cluster, resource, object);
    }
}

fn put(cluster: &Cluster, resource: &str, mut object: Value) {
    let manager = json!([{
        "manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": object["apiVersion"],
        "time": rfc3339(SystemTime::now() - AGE), "fieldsType": "FieldsV1", "fieldsV1": owned(&object),
    }]);
    object["metadata"]["managedFields"] = manager;
    cluster.store.create(resource, object).expect("the store of a new cluster has every name free");
}

/// The keys of `data`, which are what is changed later.
fn owned(object: &Value) -> Value {
    let data = object["data"].as_object().into_iter().flatten();
    let fields: Map<String, Value> = data.map(|(key, _)| (format!("f:{key}"), json!({}))).collect();
    if fields.is_empty() { json!({}) } else { json!({"f:data": fields}) }
}

fn labels(name: &str) -> Value {
    json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"})
}

fn config_map(cluster: &Cluster, name: &str, data: Map<String, Value>) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": cluster.options.namespace, "labels": labels(name)},
    });
    kind::mark(&cluster.options, &mut object["metadata"]);
    if !data.is_empty() {
        object["data"] = Value::Object(data);
    }
    object
}

/// `argocd-cmd-params-cm`: the log format, when one was chosen, and what the options add.
fn parameters(cluster: &Cluster) -> Map<String, Value> {
    let format = match cluster.options.log_format {
        Some(LogFormat::Json) => Some("json"),
        Some(LogFormat::Text) => Some("text"),
        None => matches!(cluster.options.install, Install::Helm { .. }).then_some("text"),
    };
    let formats = format.into_iter().flat_map(|format| {
        ["controller", "reposerver", "server"].map(|component| (format!("{component}.log.format"), json!(format)))
    });
    formats.chain(cluster.options.parameters.iter().map(|(key, value)| (key.clone(), json!(value)))).collect()
}

/// `argocd-secret` with the self-signed certificate that argocd-server puts there.
fn secret(cluster: &Cluster, shape: &Shape) -> Value {
    let namespace = &cluster.options.namespace;
    let mut data = json!({
        "admin.password": STANDARD.encode("$2a$10$standinstandinstandinstandinstandinstandinstandins"),
        "server.secretkey": STANDARD.encode(names::hash(namespace, 32)),
    });
    if let Some(server) = shape.part(Component::Server) {
        let name = &server.workload;
        let mut names: Vec<String> = vec!["localhost".into(), "argocd-server".into()];
        names.extend(["", ".svc", ".svc.cluster.local"].map(|domain| format!("argocd-server.{namespace}{domain}")));
        if name != "argocd-server" {
            names.push(name.clone());
        }
        let (certificate, key) = certificates::self_signed(&names);
        data["tls.crt"] = json!(STANDARD.encode(certificate));
        data["tls.key"] = json!(STANDARD.encode(key));
    }
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "argocd-secret", "namespace": namespace, "labels": labels("argocd-secret")},
        "data": data,
    })
}

fn default_project(namespace: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": namespace},
        "spec": {
            "sourceRepos": ["*"], "destinations": [{"namespace": "*", "server": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    })
}

fn definition(plural: &str) -> Value {
    let kind = match plural {
        "applications" => "Application",
        "applicationsets" => "ApplicationSet",
        _ => "AppProject",
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.argoproj.io"), "labels": {"app.kubernetes.io/part-of": "argocd"}},
        "spec": {
            "group": "argoproj.io", "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true}],
        },
        "status": {"conditions": [
            {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts"},
            {"type": "Established", "status": "True", "reason": "InitialNamesAccepted"},
        ]},
    })
}

/// The ports are those that are open on the loopback address; both lead to port 8080 of the pods, as in the manifests.
fn service(cluster: &Cluster, server: &Part) -> Value {
    let (http, https) = cluster.service_ports;
    let port = |name: &str, port: u16| json!({"name": name, "port": port, "protocol": "TCP", "targetPort": 8080});
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": server.workload, "namespace": cluster.options.namespace, "labels": server.labels},
        "spec": {
            "type": "ClusterIP", "clusterIP": "127.0.0.1", "clusterIPs": ["127.0.0.1"],
            "ports": [port("http", http), port("https", https)], "selector": server.selector,
        },
        "status": {"loadBalancer": {}},
    })
}
