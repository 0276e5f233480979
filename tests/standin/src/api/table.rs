//! How objects are shown: whole, as the Tables that `kubectl get` prints, or as metadata only.

use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::resources::Resource;

/// What the `Accept` header asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The object itself.
    Object,
    /// `as=Table`.
    Table,
    /// `as=PartialObjectMetadata` or `as=PartialObjectMetadataList`.
    Metadata,
}

impl Shape {
    /// The first shape named.
    pub fn of(accept: &str) -> Shape {
        let first = accept.split(',').next().unwrap_or_default();
        if first.contains("as=Table") {
            Shape::Table
        } else if first.contains("as=PartialObjectMetadata") {
            Shape::Metadata
        } else {
            Shape::Object
        }
    }

    /// One object in this shape.
    pub fn object(self, resource: &Resource, object: &Value) -> Value {
        match self {
            Shape::Object => object.clone(),
            Shape::Table => {
                table(resource, json!({"resourceVersion": object["metadata"]["resourceVersion"]}), &[object])
            }
            Shape::Metadata => metadata(object),
        }
    }

    /// A list in this shape, as text: lists of thousands are written piece by piece.
    pub fn list(self, resource: &Resource, list_metadata: Value, objects: &[&Value]) -> String {
        let (kind, api_version, items): (_, _, Vec<String>) = match self {
            Shape::Table => return table(resource, list_metadata, objects).to_string(),
            Shape::Object => (
                format!("{}List", resource.kind),
                resource.api_version(),
                objects.iter().map(|object| object.to_string()).collect(),
            ),
            Shape::Metadata => (
                "PartialObjectMetadataList".into(),
                "meta.k8s.io/v1".into(),
                objects.iter().map(|object| metadata(object).to_string()).collect(),
            ),
        };
        let mut text =
            format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{list_metadata},\"items\":[");
        text.push_str(&items.join(","));
        text.push_str("]}\n");
        text
    }
}

fn metadata(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn table(resource: &Resource, list_metadata: Value, objects: &[&Value]) -> Value {
    let columns: Vec<Value> = columns(resource)
        .iter()
        .map(|(name, priority)| {
            let format = if *name == "Name" { "name" } else { "" };
            json!({"name": name, "type": "string", "format": format, "description": "", "priority": priority})
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<Value> = self::columns(resource).iter().map(|(name, _)| cell(object, name)).collect();
            json!({"cells": cells, "object": metadata(object)})
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list_metadata,
        "columnDefinitions": columns, "rows": rows,
    })
}

/// Title and priority; kubectl shows priority 0, and the others with `-o wide`.
fn columns(resource: &Resource) -> &'static [(&'static str, u8)] {
    match resource.kind {
        "Pod" => &[("Name", 0), ("Ready", 0), ("Status", 0), ("Restarts", 0), ("Age", 0), ("IP", 1)],
        "Deployment" => &[("Name", 0), ("Ready", 0), ("Up-to-date", 0), ("Available", 0), ("Age", 0)],
        "StatefulSet" => &[("Name", 0), ("Ready", 0), ("Age", 0)],
        "ReplicaSet" => &[("Name", 0), ("Desired", 0), ("Current", 0), ("Ready", 0), ("Age", 0)],
        "ConfigMap" => &[("Name", 0), ("Data", 0), ("Age", 0)],
        "Secret" => &[("Name", 0), ("Type", 0), ("Data", 0), ("Age", 0)],
        "Service" => &[("Name", 0), ("Type", 0), ("Cluster-IP", 0), ("External-IP", 0), ("Port(s)", 0), ("Age", 0)],
        "Namespace" => &[("Name", 0), ("Phase", 0), ("Age", 0)],
        "Application" => &[("Name", 0), ("Sync Status", 0), ("Health Status", 0), ("Revision", 10), ("Project", 10)],
        "Event" => &[("Last Seen", 0), ("Type", 0), ("Reason", 0), ("Object", 0), ("Message", 0), ("Name", 1)],
        _ => &[("Name", 0), ("Age", 0)],
    }
}

fn cell(object: &Value, column: &str) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    let count = |value: &Value| value.as_u64().unwrap_or(0).to_string();
    let text = |value: &Value| json!(value.as_str().unwrap_or_default());
    match column {
        "Name" => text(&object["metadata"]["name"]),
        "Age" => json!(age(&object["metadata"]["creationTimestamp"])),
        "Last Seen" => json!(age(&object["lastTimestamp"])),
        "Ready" if object["kind"] == "Pod" => {
            json!(format!("{}/{}", ready_containers(object), containers(object).count()))
        }
        "Ready" if object["kind"] == "ReplicaSet" => json!(count(&status["readyReplicas"])),
        "Ready" => json!(format!("{}/{}", count(&status["readyReplicas"]), count(&spec["replicas"]))),
        "Status" => json!(pod_status(object)),
        "Restarts" => json!(containers(object).filter_map(|c| c["restartCount"].as_u64()).sum::<u64>().to_string()),
        "IP" => text(&status["podIP"]),
        "Up-to-date" => json!(count(&status["updatedReplicas"])),
        "Available" => json!(count(&status["availableReplicas"])),
        "Desired" => json!(count(&spec["replicas"])),
        "Current" => json!(count(&status["replicas"])),
        "Data" => json!(object["data"].as_object().map_or(0, serde_json::Map::len).to_string()),
        "Type" if object["kind"] == "Service" => text(&spec["type"]),
        "Type" => text(&object["type"]),
        "Cluster-IP" => text(&spec["clusterIP"]),
        "External-IP" => json!("<none>"),
        "Port(s)" => {
            let ports = spec["ports"].as_array().into_iter().flatten();
            let port = |p: &Value| format!("{}/{}", count(&p["port"]), p["protocol"].as_str().unwrap_or("TCP"));
            json!(ports.map(port).collect::<Vec<_>>().join(","))
        }
        "Phase" => text(&status["phase"]),
        "Sync Status" => text(&status["sync"]["status"]),
        "Health Status" => text(&status["health"]["status"]),
        "Revision" => text(&status["sync"]["revision"]),
        "Project" => text(&spec["project"]),
        "Reason" => text(&object["reason"]),
        "Message" => text(&object["message"]),
        "Object" => {
            let kind = object["involvedObject"]["kind"].as_str().unwrap_or_default().to_lowercase();
            json!(format!("{kind}/{}", object["involvedObject"]["name"].as_str().unwrap_or_default()))
        }
        _ => Value::Null,
    }
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["status"]["containerStatuses"].as_array().into_iter().flatten()
}

fn ready_containers(pod: &Value) -> usize {
    containers(pod).filter(|container| container["ready"] == true).count()
}

fn pod_status(pod: &Value) -> String {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return "Terminating".into();
    }
    let waiting = containers(pod).find_map(|container| container["state"]["waiting"]["reason"].as_str());
    waiting.or(pod["status"]["phase"].as_str()).unwrap_or_default().into()
}

fn age(since: &Value) -> String {
    let Some(since) = since.as_str().and_then(|text| text.parse::<Timestamp>().ok()) else { return "<unknown>".into() };
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or(since);
    let seconds = now.as_second().saturating_sub(since.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
