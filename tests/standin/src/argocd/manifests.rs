//! Plain manifests: from the files of a folder to objects, and what the cluster calls them.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{git::File, version::Version};

/// The objects in the YAML and JSON files of a folder.
///
/// # Errors
/// A file that is neither, or a folder that another tool would have to render.
pub fn of_files(files: Vec<File>) -> Result<Vec<Value>, String> {
    let name = |file: &File| file.path.rsplit('/').next().unwrap_or_default().to_owned();
    if let Some(tool) = files.iter().map(name).find(|name| matches!(name.as_str(), "Chart.yaml" | "kustomization.yaml"))
    {
        return Err(format!("the stand-in renders folders of plain manifests only, and there is a {tool}"));
    }
    let mut objects = Vec::new();
    for file in files {
        let Some((_, extension)) = file.path.rsplit_once('.') else { continue };
        if !matches!(extension, "yaml" | "yml" | "json") {
            continue;
        }
        for document in serde_yaml_ng::Deserializer::from_slice(&file.bytes) {
            let object = Value::deserialize(document)
                .map_err(|error| format!("failed to unmarshal {:?}: {error}", file.path))?;
            match object {
                Value::Null => {}
                Value::Object(_) if object["items"].is_array() => {
                    objects.extend(object["items"].as_array().cloned().unwrap_or_default());
                }
                Value::Object(_) if is_object(&object) => objects.push(object),
                _ => return Err(format!("failed to unmarshal {:?}: not a Kubernetes object", file.path)),
            }
        }
    }
    Ok(objects)
}

fn is_object(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let map = |field: &str| metadata[field].is_null() || metadata[field].is_object();
    object["kind"].is_string() && metadata["name"].is_string() && map("annotations") && map("labels")
}

/// One value of a Secret, decoded.
pub fn secret_value(secret: &Value, key: &str) -> Option<String> {
    let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}

/// What an object is to the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for an object of the whole cluster.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// Kinds that belong to no namespace.
const CLUSTER_SCOPED: [&str; 8] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "IngressClass",
    "Namespace",
    "PersistentVolume",
    "PriorityClass",
    "StorageClass",
];

impl Identity {
    /// Of an object that goes to `namespace` unless it names its own.
    pub fn of(object: &Value, namespace: &str) -> Identity {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = object["kind"].as_str().unwrap_or_default();
        let own = object["metadata"]["namespace"].as_str().unwrap_or(namespace);
        let namespace = if CLUSTER_SCOPED.contains(&kind) { "" } else { own };
        Identity {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: object["metadata"]["name"].as_str().unwrap_or_default().into(),
        }
    }

    /// Of an entry of `status.resources`.
    pub fn of_status(resource: &Value) -> Identity {
        let text = |field: &str| resource[field].as_str().unwrap_or_default().to_owned();
        Identity {
            group: text("group"),
            version: text("version"),
            kind: text("kind"),
            namespace: text("namespace"),
            name: text("name"),
        }
    }

    /// `configmaps`, `deployments.apps`: the name of its resource in the store.
    pub fn resource(&self) -> String {
        let kind = self.kind.to_lowercase();
        let plural = match kind.as_str() {
            "endpoints" => kind,
            _ if kind.ends_with('y') && !kind.ends_with("ay") => format!("{}ies", &kind[..kind.len() - 1]),
            _ if kind.ends_with('s') || kind.ends_with("ch") => format!("{kind}es"),
            _ => format!("{kind}s"),
        };
        if self.group.is_empty() { plural } else { format!("{plural}.{}", self.group) }
    }

    /// `configmap/signal`, as messages of a sync name it.
    pub fn short(&self) -> String {
        let kind = self.kind.to_lowercase();
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        format!("{kind}{group}/{}", self.name)
    }
}

const TRACKING: &str = "argocd.argoproj.io/tracking-id";
const INSTANCE: &str = "app.kubernetes.io/instance";

/// Marks an object as the Application's: by annotation since v3.0, by label before.
pub fn track(object: &mut Value, application: &str, version: Version) {
    let identity = Identity::of(object, "");
    if version.at_least(3, 0) {
        let Identity { group, kind, namespace, name, .. } = identity;
        object["metadata"]["annotations"][TRACKING] = json!(format!("{application}:{group}/{kind}:{namespace}/{name}"));
    } else {
        object["metadata"]["labels"][INSTANCE] = json!(application);
    }
}

/// Whose an object is.
pub fn tracked_by(object: &Value) -> Option<&str> {
    let id = object["metadata"]["annotations"][TRACKING].as_str();
    id.and_then(|id| id.split(':').next()).or(object["metadata"]["labels"][INSTANCE].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), bytes: text.into() }
    }

    #[test]
    fn a_folder_of_yaml_and_json_becomes_objects() {
        let files = vec![
            file("a/x.yaml", "kind: A\nmetadata: {name: x}\n---\n# nothing\n---\nkind: B\nmetadata: {name: x}\n"),
            file("a/y.json", r#"{"kind":"List","items":[{"kind":"C"}]}"#),
            file("a/README.md", "kind: D"),
        ];
        let kinds: Vec<_> = of_files(files).unwrap().iter().map(|object| object["kind"].clone()).collect();
        assert_eq!(kinds, ["A", "B", "C"]);
        assert!(of_files(vec![file("a/x.yaml", "a: [")]).unwrap_err().contains("a/x.yaml"));
        assert!(of_files(vec![file("a/x.yaml", "just text")]).is_err());
    }

    #[test]
    fn objects_have_their_place_in_the_store() {
        let resource = |api: &str, kind: &str| {
            let identity = Identity::of(&json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x"}}), "ns");
            format!("{} {:?}", identity.resource(), identity.namespace)
        };
        assert_eq!(resource("v1", "ConfigMap"), "configmaps \"ns\"");
        assert_eq!(resource("apps/v1", "Deployment"), "deployments.apps \"ns\"");
        assert_eq!(resource("networking.k8s.io/v1", "NetworkPolicy"), "networkpolicies.networking.k8s.io \"ns\"");
        assert_eq!(resource("networking.k8s.io/v1", "Ingress"), "ingresses.networking.k8s.io \"ns\"");
        assert_eq!(resource("v1", "Namespace"), "namespaces \"\"");
    }

    #[test]
    fn tracking_went_from_a_label_to_an_annotation() {
        let tracked = |version: &str| {
            let mut object = json!({"kind": "ConfigMap", "metadata": {"name": "signal", "namespace": "evt"}});
            track(&mut object, "evt", Version::of_tag(version));
            assert_eq!(tracked_by(&object), Some("evt"));
            object["metadata"].clone()
        };
        assert_eq!(tracked("v3.0.0")["annotations"][TRACKING], "evt:/ConfigMap:evt/signal");
        assert_eq!(tracked("v2.14.0")["labels"][INSTANCE], "evt");
    }
}
