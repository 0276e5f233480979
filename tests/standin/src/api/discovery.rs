//! What there is: versions, groups, resources, and as much of OpenAPI as `kubectl apply` looks at.

use serde_json::{Value, json};

use super::resources::{RESOURCES, Resource, groups};

/// The version of Kubernetes that the stand-in says it is.
const MINOR: &str = "33";

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The document of a discovery path, if it is one, with its media type.
pub fn document(path: &str, accept: &str) -> Option<(String, Value)> {
    let json_type = "application/json".to_owned();
    let aggregated = accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2");
    let aggregated_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList".to_owned();
    let document = match path {
        "/version" | "/version/" => version(),
        "/api" if aggregated => return Some((aggregated_type, aggregate(|group| group.is_empty()))),
        "/apis" if aggregated => return Some((aggregated_type, aggregate(|group| !group.is_empty()))),
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        "/apis" => {
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": named_groups().map(group).collect::<Vec<_>>()})
        }
        "/api/v1" => resource_list("", "v1"),
        "/openapi/v3" => openapi_index(),
        _ => {
            if let Some(rest) = path.strip_prefix("/openapi/v3/") {
                let (name, version) =
                    groups().into_iter().find(|(name, version)| openapi_path(name, version) == rest)?;
                openapi(name, version)
            } else {
                let mut parts = path.strip_prefix("/apis/")?.trim_end_matches('/').split('/');
                let wanted = parts.next()?;
                let (name, version) = named_groups().find(|(name, _)| *name == wanted)?;
                match (parts.next(), parts.next()) {
                    (None, _) => group((name, version)),
                    (Some(found), None) if found == version => resource_list(name, version),
                    _ => return None,
                }
            }
        }
    };
    Some((json_type, document))
}

fn named_groups() -> impl Iterator<Item = (&'static str, &'static str)> {
    groups().into_iter().filter(|(name, _)| !name.is_empty())
}

fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR, "gitVersion": format!("v1.{MINOR}.0"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2025-04-23T13:26:52Z", "goVersion": "go1.24.2", "compiler": "gc", "platform": "linux/amd64",
    })
}

fn group((name, version): (&str, &str)) -> Value {
    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": [version], "preferredVersion": version})
}

fn of_group(name: &str) -> impl Iterator<Item = &'static Resource> {
    RESOURCES.iter().filter(move |resource| resource.group == name)
}

fn subresources(resource: &Resource) -> Vec<&'static str> {
    let status = resource.status.then_some("status");
    status.into_iter().chain(resource.subresources.iter().copied()).collect()
}

fn subresource_verbs(subresource: &str) -> &'static [&'static str] {
    match subresource {
        "log" => &["get"],
        "proxy" => &["create", "delete", "get", "patch", "update"],
        "portforward" => &["create", "get"],
        _ => &["get", "patch", "update"],
    }
}

fn resource_list(name: &str, version: &str) -> Value {
    let mut resources = Vec::new();
    for resource in of_group(name) {
        resources.push(json!({
            "name": resource.plural, "singularName": resource.singular(), "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": VERBS, "shortNames": resource.short,
            "categories": categories(resource),
        }));
        for subresource in subresources(resource) {
            resources.push(json!({
                "name": format!("{}/{subresource}", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": if subresource == "scale" { "Scale" } else { resource.kind },
                "verbs": subresource_verbs(subresource),
            }));
        }
    }
    let group_version = if name.is_empty() { version.to_owned() } else { format!("{name}/{version}") };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
}

fn aggregate(wanted: impl Fn(&str) -> bool) -> Value {
    let items: Vec<Value> = groups()
        .into_iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, version)| {
            let resources: Vec<Value> = of_group(name).map(aggregate_resource).collect();
            json!({
                "metadata": {"name": name, "creationTimestamp": null},
                "versions": [{"version": version, "freshness": "Current", "resources": resources}],
            })
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregate_resource(resource: &'static Resource) -> Value {
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let below: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|subresource| {
            let kind = match subresource {
                "scale" => json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
                _ => kind.clone(),
            };
            json!({"subresource": subresource, "responseKind": kind, "verbs": subresource_verbs(subresource)})
        })
        .collect();
    json!({
        "resource": resource.plural, "singularResource": resource.singular(), "responseKind": kind,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" }, "shortNames": resource.short,
        "verbs": VERBS, "subresources": below, "categories": categories(resource),
    })
}

fn categories(resource: &Resource) -> &'static [&'static str] {
    let all = ["pods", "services", "deployments", "statefulsets", "replicasets"].contains(&resource.plural);
    if all { &["all"] } else { &[] }
}

fn openapi_path(name: &str, version: &str) -> String {
    if name.is_empty() { format!("api/{version}") } else { format!("apis/{name}/{version}") }
}

fn openapi_index() -> Value {
    let paths: serde_json::Map<String, Value> = groups()
        .into_iter()
        .map(|(name, version)| {
            let path = openapi_path(name, version);
            (path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash=1")}))
        })
        .collect();
    json!({"paths": paths})
}

/// Only the patch operations: in them kubectl looks up whether the server validates fields and knows dry runs, and
/// then leaves both to it.
fn openapi(name: &str, version: &str) -> Value {
    let paths: serde_json::Map<String, Value> = of_group(name)
        .map(|resource| {
            let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
            let path = format!("/{}{namespace}/{}/{{name}}", openapi_path(name, version), resource.plural);
            let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
            let parameters = ["dryRun", "fieldManager", "fieldValidation"].map(parameter);
            let operation = json!({"patch": {
                "operationId": format!("patch{}", resource.kind),
                "parameters": parameters,
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-action": "patch",
                "x-kubernetes-group-version-kind":
                    {"group": resource.group, "version": resource.version, "kind": resource.kind},
            }});
            (path, operation)
        })
        .collect();
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": format!("v1.{MINOR}.0")}, "paths": paths})
}
