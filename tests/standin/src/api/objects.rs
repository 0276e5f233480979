//! get, list, create, update, patch, delete.

use std::{sync::Arc, time::SystemTime};

use axum::{body::Body, http::header, response::Response};
use base64::{Engine, engine::general_purpose::STANDARD};
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

/// The objects of a resource, or one chunk of them.
///
/// # Errors
/// 400 for bad parameters, 410 for a `continue` from before what the log keeps.
pub fn list(call: &Call) -> Result<Response, Status> {
    let (all, newest) = call.cluster.store.list(&call.resource().key(), call.namespace());
    let chunk = Chunk::parse(call, newest)?;
    let selected = all.iter().filter(|object| chunk.is_after(object) && call.selector.matches(object));
    let mut objects: Vec<&Value> = selected.map(Arc::as_ref).collect();
    let mut metadata = json!({"resourceVersion": chunk.version.to_string()});
    if let Some(limit) = chunk.limit.filter(|limit| *limit < objects.len()) {
        let rest = objects.split_off(limit);
        metadata["continue"] = json!(chunk.after(objects[limit - 1]));
        if call.selector.is_empty() {
            metadata["remainingItemCount"] = json!(rest.len());
        }
    }
    let mut response = Response::new(Body::from(call.shape.list(call.resource(), metadata, &objects)));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Where in a list a request is, and how much it wants. A chunk repeats the resource version of the first one, but shows
/// the objects as they are now; a watch from that version tells of the difference.
struct Chunk {
    version: u64,
    start: Option<(String, String)>,
    limit: Option<usize>,
}

impl Chunk {
    fn parse(call: &Call, newest: u64) -> Result<Chunk, Status> {
        let limit = call.query.number("limit")?.filter(|limit| *limit > 0);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let token = call.query.get("continue");
        if token.is_empty() {
            return Ok(Chunk { version: newest, start: None, limit });
        }
        let invalid = || Status::bad_request("continue key is not valid: illegal base64 data");
        let token: Value =
            STANDARD.decode(token).ok().and_then(|text| serde_json::from_slice(&text).ok()).ok_or_else(invalid)?;
        let version = token["rv"].as_u64().ok_or_else(invalid)?;
        if call.cluster.store.since(&call.resource().key(), version).is_none() {
            let message = "The provided continue parameter is too old to display a consistent list result. You can start a \
                           new list without the continue parameter.";
            return Err(Status::expired(message));
        }
        let text = |field: &str| token[field].as_str().unwrap_or_default().to_owned();
        Ok(Chunk { version, start: Some((text("namespace"), text("name"))), limit })
    }

    fn is_after(&self, object: &Value) -> bool {
        self.start.as_ref().is_none_or(|(namespace, name)| {
            let metadata = &object["metadata"];
            let key =
                (metadata["namespace"].as_str().unwrap_or_default(), metadata["name"].as_str().unwrap_or_default());
            key > (namespace.as_str(), name.as_str())
        })
    }

    fn after(&self, last: &Value) -> String {
        let metadata = &last["metadata"];
        STANDARD.encode(
            json!({"rv": self.version, "namespace": metadata["namespace"], "name": metadata["name"]}).to_string(),
        )
    }
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

/// Removes an object; one with finalizers is only marked.
///
/// # Errors
/// 404, or 409 when it is not the object that the preconditions name.
pub fn delete(call: &Call, options: &Value) -> Result<Response, Status> {
    let object = read(call)?;
    for precondition in ["uid", "resourceVersion"] {
        let (wanted, found) = (&options["preconditions"][precondition], &object["metadata"][precondition]);
        if !wanted.is_null() && wanted != found {
            let why = format!("Precondition failed: {precondition} in precondition: {wanted}, in object meta: {found}");
            return Err(Status::conflict(call.resource(), &call.route.name, &why));
        }
    }
    let dry_run = call.dry_run()? || options["dryRun"].as_array().is_some_and(|dry_run| !dry_run.is_empty());
    let key = call.resource().key();
    if !dry_run {
        remove_object(&call.cluster.store, &key, &object)
            .map_err(|refusal| refused(call, &call.route.name, refusal))?;
    }
    let marked = call.cluster.store.get(&key, &call.route.namespace, &call.route.name);
    if let Some(marked) = marked.filter(|marked| !marked["metadata"]["deletionTimestamp"].is_null()) {
        return Ok(json_response(200, &marked));
    }
    let details = json!({
        "name": call.route.name, "group": call.resource().group, "kind": call.resource().plural,
        "uid": object["metadata"]["uid"],
    });
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    Ok(json_response(200, &status))
}

/// Removes all objects that are selected.
///
/// # Errors
/// 400.
pub fn delete_collection(call: &Call) -> Result<Response, Status> {
    let key = call.resource().key();
    let response = list(call)?;
    if !call.dry_run()? {
        let (all, _) = call.cluster.store.list(&key, call.namespace());
        for object in all.iter().filter(|object| call.selector.matches(object)) {
            // Gone already is as good as removed.
            let _ = remove_object(&call.cluster.store, &key, object);
        }
    }
    Ok(response)
}

/// Marks an object that has finalizers, and every pod, which then has its grace period; removes any other, and with a
/// Namespace all that is in it.
fn remove_object(store: &Store, key: &str, object: &Value) -> Result<(), Refusal> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    let finalizers = object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    if finalizers || key == "pods" {
        let now = json!(rfc3339(SystemTime::now()));
        store.update(key, &namespace, &name, |object| {
            if object["metadata"]["deletionTimestamp"].is_null() {
                object["metadata"]["deletionTimestamp"] = now;
                object["metadata"]["deletionGracePeriodSeconds"] = json!(if key == "pods" { 30 } else { 0 });
            }
            Ok(())
        })?;
        return Ok(());
    }
    store.delete(key, &namespace, &name)?;
    if key == "namespaces" {
        for resource in super::resources::RESOURCES.iter().filter(|resource| resource.namespaced) {
            for object in store.list(&resource.key(), Some(&name)).0 {
                let _ = remove_object(store, &resource.key(), &object);
            }
        }
    }
    Ok(())
}

fn read(call: &Call) -> Result<Value, Status> {
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

fn refused(call: &Call, name: &str, refusal: Refusal) -> Status {
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
