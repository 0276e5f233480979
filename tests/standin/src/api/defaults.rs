//! What the API server fills in, and what it refuses, before it stores an object.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{resources::Resource, status::Status};

/// Checks the type and the place of an object that was sent, and completes them.
///
/// # Errors
/// 400 when they are not those of the URL.
pub fn place(resource: &Resource, namespace: &str, object: &mut Value) -> Result<(), Status> {
    if !object.is_object() {
        return Err(Status::bad_request("the object provided is unrecognized (must be of type object)"));
    }
    for (field, expected, words) in
        [("apiVersion", resource.api_version(), "API version"), ("kind", resource.kind.to_owned(), "kind")]
    {
        match object[field].as_str() {
            None => object[field] = json!(expected),
            Some(found) if found == expected => {}
            Some(found) => {
                let message =
                    format!("the {words} in the data ({found}) does not match the expected {words} ({expected})");
                return Err(Status::bad_request(message));
            }
        }
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    if !resource.namespaced {
        return Ok(());
    }
    match object["metadata"]["namespace"].as_str() {
        None | Some("") => object["metadata"]["namespace"] = json!(namespace),
        Some(found) if found == namespace => {}
        Some(_) => {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(message));
        }
    }
    Ok(())
}

/// Checks the contents of an object and fills in the defaults.
///
/// # Errors
/// 400 for values of a wrong type, 422 for values that are not allowed.
pub fn complete(resource: &Resource, object: &mut Value) -> Result<(), Status> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    for field in ["labels", "annotations"] {
        strings(resource, object, &["metadata", field])?;
    }
    if resource.group != "rbac.authorization.k8s.io" && !is_subdomain(&name) {
        let cause = format!(
            "metadata.name: Invalid value: \"{name}\": a lowercase RFC 1123 subdomain must consist of lower case \
             alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
        );
        return Err(Status::invalid(resource, &name, &cause));
    }
    match resource.kind {
        "ConfigMap" => strings(resource, object, &["data"])?,
        "Secret" => secret(resource, &name, object)?,
        "Namespace" => {
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
            default(&mut object["spec"], "finalizers", json!(["kubernetes"]));
            default(&mut object["status"], "phase", json!("Active"));
        }
        "Service" => {
            default(&mut object["spec"], "type", json!("ClusterIP"));
            default(&mut object["spec"], "clusterIP", json!("127.0.0.1"));
            for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
                default(port, "protocol", json!("TCP"));
                let target = port["port"].clone();
                default(port, "targetPort", target);
            }
        }
        "Deployment" | "StatefulSet" => workload(resource, &name, object)?,
        "Application" => {
            for field in ["destination", "project"] {
                if object["spec"][field].is_null() {
                    let cause = format!("spec.{field}: Required value");
                    return Err(Status::invalid(resource, &name, &cause));
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn default(object: &mut Value, field: &str, value: Value) {
    if !object.is_object() {
        *object = json!({});
    }
    if object[field].is_null() {
        object[field] = value;
    }
}

/// 400 unless a field is absent or a map of texts, in the words of Go's decoder.
fn strings(resource: &Resource, object: &Value, path: &[&str]) -> Result<(), Status> {
    let map = path.iter().fold(object, |value, field| &value[field]);
    let wrong = match map {
        Value::Null => None,
        Value::Object(map) => map.values().find(|value| !value.is_string()).map(type_name),
        other => Some(type_name(other)),
    };
    wrong.map_or(Ok(()), |found| {
        Err(Status::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: json: cannot unmarshal {found} into Go struct \
             field {kind}.{path} of type string",
            kind = resource.kind,
            version = resource.version,
            path = path.join(".")
        )))
    })
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn secret(resource: &Resource, name: &str, object: &mut Value) -> Result<(), Status> {
    strings(resource, object, &["data"])?;
    strings(resource, object, &["stringData"])?;
    default(object, "type", json!("Opaque"));
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        if STANDARD.decode(value.as_str().unwrap_or_default()).is_err() {
            let message = format!(
                "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte 0 (data.{key} \
                 of {name})"
            );
            return Err(Status::bad_request(message));
        }
    }
    let plain = object.as_object_mut().and_then(|object| object.shift_remove("stringData"));
    for (key, value) in plain.as_ref().and_then(Value::as_object).into_iter().flatten() {
        object["data"][key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    }
    Ok(())
}

fn workload(resource: &Resource, name: &str, object: &mut Value) -> Result<(), Status> {
    let spec = &mut object["spec"];
    default(spec, "replicas", json!(1));
    if spec["selector"]["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty) {
        return Err(Status::invalid(resource, name, "spec.selector: Required value"));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let selected = spec["selector"]["matchLabels"].as_object().into_iter().flatten().all(|(k, v)| labels[k] == *v);
    if !selected {
        let cause = "spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`";
        return Err(Status::invalid(resource, name, cause));
    }
    if resource.kind == "StatefulSet" {
        default(spec, "podManagementPolicy", json!("OrderedReady"));
        default(spec, "revisionHistoryLimit", json!(10));
        // The partition is filled in only where no strategy was named (kubernetes pkg/apis/apps/v1/defaults.go).
        if spec["updateStrategy"]["type"].is_null() {
            spec["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
        }
        return Ok(());
    }
    default(spec, "progressDeadlineSeconds", json!(600));
    default(spec, "revisionHistoryLimit", json!(10));
    default(&mut spec["strategy"], "type", json!("RollingUpdate"));
    if spec["strategy"]["type"] == "RollingUpdate" {
        default(&mut spec["strategy"]["rollingUpdate"], "maxSurge", json!("25%"));
        default(&mut spec["strategy"]["rollingUpdate"], "maxUnavailable", json!("25%"));
    }
    Ok(())
}

fn is_subdomain(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let label =
        |part: &str| !part.is_empty() && part.chars().all(inner) && !part.starts_with('-') && !part.ends_with('-');
    name.len() <= 253 && name.split('.').all(label)
}
