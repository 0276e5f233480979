//! delete, of one object or of many.

use std::time::SystemTime;

use axum::response::Response;
use serde_json::{Value, json};

use super::{
    Call,
    list::list,
    objects::{read, refused},
    resources::RESOURCES,
    status::{Status, json_response},
};
use crate::{
    clock::rfc3339,
    store::{Refusal, Store},
};

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
        for resource in RESOURCES.iter().filter(|resource| resource.namespaced) {
            for object in store.list(&resource.key(), Some(&name)).0 {
                let _ = remove_object(store, &resource.key(), &object);
            }
        }
    }
    Ok(())
}
