//! get, create, update, patch.

use std::time::SystemTime;

use axum::response::Response;
use serde_json::{Value, json};

use super::{
    Call,
    defaults::{complete, place},
    managed_fields::{self, Manager},
    patch::Patch,
    status::{Status, json_response},
};
use crate::{
    clock::rfc3339,
    store::{Refusal, Store},
};

/// One object.
///
/// # Errors
/// 404.
pub fn get(call: &Call) -> Result<Response, Status> {
    let object = read(call)?;
    let object =
        if call.route.subresource == "scale" { scale(&object) } else { call.shape.object(call.resource(), &object) };
    Ok(json_response(200, &object))
}

/// A new object.
///
/// # Errors
/// 400, 404 for a missing namespace, 409, 422.
pub fn create(call: &Call, mut object: Value) -> Result<Response, Status> {
    let resource = call.resource();
    let store = &call.cluster.store;
    place(resource, &call.route.namespace, &mut object)?;
    generate_name(store, &mut object);
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        let kind = format!(
            "resource name may not be empty: metadata.name: Required value: name or generateName is required of {}",
            resource.kind
        );
        return Err(Status::invalid(resource, "", &kind));
    }
    if !call.route.namespace.is_empty() && store.get("namespaces", "", &call.route.namespace).is_none() {
        let namespaces = super::resources::by_key("namespaces").expect("namespaces are known");
        return Err(Status::not_found(namespaces, &call.route.namespace));
    }
    if !object["metadata"]["resourceVersion"].as_str().unwrap_or_default().is_empty() {
        return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
    }
    for unset in ["uid", "creationTimestamp", "generation", "managedFields", "deletionTimestamp", "resourceVersion"] {
        remove(&mut object["metadata"], unset);
    }
    if resource.status {
        remove(&mut object, "status");
    }
    complete(resource, &mut object)?;
    managed_fields::record(&Value::Null, &mut object, &manager(call));
    if call.dry_run()? {
        if store.get(&resource.key(), &call.route.namespace, &name).is_some() {
            return Err(Status::already_exists(resource, &name));
        }
        object["metadata"]["creationTimestamp"] = json!(rfc3339(SystemTime::now()));
        return Ok(json_response(201, &call.shape.object(resource, &object)));
    }
    let object = store.create(&resource.key(), object).map_err(|refusal| refused(call, &name, refusal))?;
    Ok(json_response(201, &call.shape.object(resource, &object)))
}

/// The object as a whole, replaced.
///
/// # Errors
/// 400, 404, 409, 422.
pub fn update(call: &Call, sent: &Value) -> Result<Response, Status> {
    let resource = call.resource();
    if call.route.subresource == "scale" {
        let object = write(call, |object| set_scale(object, &sent["spec"]["replicas"]))?;
        return Ok(json_response(200, &scale(&object)));
    }
    let name = sent["metadata"]["name"].as_str().unwrap_or_default();
    if name != call.route.name {
        let message =
            format!("the name of the object ({name}) does not match the name on the URL ({})", call.route.name);
        return Err(Status::bad_request(message));
    }
    let version = sent["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if resource.custom() && version.is_empty() {
        let cause = "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update";
        return Err(Status::invalid(resource, name, cause));
    }
    let object = write(call, |object| {
        let stored = std::mem::replace(object, sent.clone());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = stored["metadata"]["uid"].clone();
        }
        Ok(())
    })?;
    Ok(json_response(200, &call.shape.object(resource, &object)))
}

/// The object, changed.
///
/// # Errors
/// 400, 404, 409, 415, 422.
pub fn patch(call: &Call, media_type: &str, body: &[u8]) -> Result<Response, Status> {
    let patch = Patch::parse(call.resource(), media_type, body)?;
    let resource = call.resource();
    if call.route.subresource == "scale" {
        let object = write(call, |object| {
            let mut scale = scale(object);
            patch.apply(resource, &call.route.name, &mut scale)?;
            set_scale(object, &scale["spec"]["replicas"])
        })?;
        return Ok(json_response(200, &scale(&object)));
    }
    let object = write(call, |object| patch.apply(resource, &call.route.name, object))?;
    Ok(json_response(200, &call.shape.object(resource, &object)))
}

/// # Errors
/// 404.
pub(super) fn read(call: &Call) -> Result<Value, Status> {
    let found = call.cluster.store.get(&call.resource().key(), &call.route.namespace, &call.route.name);
    found.ok_or_else(|| Status::not_found(call.resource(), &call.route.name))
}

/// One change under the store's lock, with everything that the API server adds to it.
fn write(call: &Call, change: impl FnOnce(&mut Value) -> Result<(), Status>) -> Result<Value, Status> {
    let resource = call.resource();
    let Route { namespace, name } = Route { namespace: &call.route.namespace, name: &call.route.name };
    let mut failure = None;
    let dry_run = call.dry_run()?;
    let apply = |object: &mut Value| -> Result<(), Status> {
        let old = object.clone();
        change(object)?;
        place(resource, namespace, object)?;
        if object["metadata"]["name"] != *name {
            return Err(Status::bad_request("the name of the object does not match the name on the URL"));
        }
        if object["metadata"]["uid"] != old["metadata"]["uid"] {
            let why = format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: {}",
                object["metadata"]["uid"].as_str().unwrap_or_default(),
                old["metadata"]["uid"].as_str().unwrap_or_default()
            );
            return Err(Status::conflict(resource, name, &why));
        }
        for fixed in ["creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            keep(&old["metadata"], &mut object["metadata"], fixed);
        }
        if call.route.subresource == "status" {
            let status = object["status"].take();
            let version = object["metadata"]["resourceVersion"].take();
            *object = old.clone();
            object["status"] = status;
            object["metadata"]["resourceVersion"] = version;
        } else if resource.status {
            keep(&old, object, "status");
        }
        complete(resource, object)?;
        managed_fields::record(&old, object, &manager(call));
        Ok(())
    };
    let key = resource.key();
    let store = &call.cluster.store;
    let written = if dry_run {
        let mut object = read(call)?;
        let version = object["metadata"]["resourceVersion"].clone();
        apply(&mut object)?;
        let sent = &object["metadata"]["resourceVersion"];
        if sent.is_null() || *sent == version { Ok(object) } else { Err(Refusal::Conflict) }
    } else {
        store.update(&key, namespace, name, |object| {
            apply(object).map_err(|status| {
                failure = Some(status);
                Refusal::Invalid(String::new())
            })
        })
    };
    let object = written.map_err(|refusal| failure.unwrap_or_else(|| refused(call, name, refusal)))?;
    let finalized = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    if !object["metadata"]["deletionTimestamp"].is_null() && finalized && key != "pods" && !dry_run {
        let _ = store.delete(&key, namespace, name);
    }
    Ok(object)
}

struct Route<'a> {
    namespace: &'a str,
    name: &'a str,
}

fn manager(call: &Call) -> Manager<'_> {
    let api_version = &call.api_version;
    let subresource = if call.route.subresource == "scale" { "scale" } else { &call.route.subresource };
    Manager { name: &call.manager, api_version, subresource }
}

/// A refusal of the store in the words of the API.
pub(super) fn refused(call: &Call, name: &str, refusal: Refusal) -> Status {
    match refusal {
        Refusal::NotFound => Status::not_found(call.resource(), name),
        Refusal::Exists => Status::already_exists(call.resource(), name),
        Refusal::Conflict => Status::conflict(
            call.resource(),
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        Refusal::Invalid(cause) => Status::invalid(call.resource(), name, &cause),
    }
}

fn generate_name(store: &Store, object: &mut Value) {
    let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
    if object["metadata"]["name"].as_str().unwrap_or_default().is_empty() && !prefix.is_empty() {
        let suffix = crate::names::suffix(*store.newest().borrow(), 5);
        object["metadata"]["name"] = json!(format!("{prefix}{suffix}"));
    }
}

fn scale(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": object["spec"]["replicas"]},
        "status": {"replicas": object["status"]["replicas"].as_u64().unwrap_or(0)},
    })
}

fn set_scale(object: &mut Value, replicas: &Value) -> Result<(), Status> {
    let replicas = replicas.as_u64().ok_or_else(|| Status::bad_request("spec.replicas must be a number"))?;
    object["spec"]["replicas"] = json!(replicas);
    Ok(())
}

fn keep(old: &Value, new: &mut Value, field: &str) {
    match old.get(field) {
        Some(value) => new[field] = value.clone(),
        None => remove(new, field),
    }
}

fn remove(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut() {
        object.shift_remove(field);
    }
}
