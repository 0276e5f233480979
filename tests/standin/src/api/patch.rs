//! The three kinds of patch: JSON merge patch, JSON patch, strategic merge patch.

use serde_json::{Map, Value};

use super::{resources::Resource, status::Status};

/// A patch as it was sent.
pub enum Patch {
    /// `application/merge-patch+json`.
    Merge(Value),
    /// `application/strategic-merge-patch+json`.
    Strategic(Value),
    /// `application/json-patch+json`.
    Json(json_patch::Patch),
}

impl Patch {
    /// Reads a body by its media type.
    ///
    /// # Errors
    /// 415 for a type that the resource does not take, 400 for a body that cannot be read.
    pub fn parse(resource: &Resource, media_type: &str, body: &[u8]) -> Result<Patch, Status> {
        let unreadable = |error: serde_json::Error| Status::bad_request(format!("error decoding patch: {error}"));
        match media_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => serde_json::from_slice(body).map(Patch::Merge).map_err(unreadable),
            "application/json-patch+json" => serde_json::from_slice(body).map(Patch::Json).map_err(unreadable),
            "application/strategic-merge-patch+json" if !resource.custom() => {
                serde_json::from_slice(body).map(Patch::Strategic).map_err(unreadable)
            }
            _ if resource.custom() => {
                Err(Status::unsupported_media_type("application/json-patch+json, application/merge-patch+json"))
            }
            _ => Err(Status::unsupported_media_type(
                "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json",
            )),
        }
    }

    /// Changes an object.
    ///
    /// # Errors
    /// 422 when a JSON patch does not apply (its `test` fails, say).
    pub fn apply(&self, resource: &Resource, name: &str, object: &mut Value) -> Result<(), Status> {
        match self {
            Patch::Merge(patch) => json_patch::merge(object, patch),
            Patch::Strategic(patch) => strategic(object, patch, resource.plural),
            Patch::Json(patch) => json_patch::patch(object, patch).map_err(|_| {
                let mut status =
                    Status::new(422, "Invalid", "the server rejected our request due to an error in our request");
                status.details = serde_json::json!({"name": name, "group": resource.group, "kind": resource.plural});
                status
            })?,
        }
        Ok(())
    }
}

/// The key by which the elements of a list are merged; `None` for a list that is replaced as a whole. (kubernetes
/// staging/src/k8s.io/api/core/v1/types.go, the `patchMergeKey` tags)
fn merge_key(plural: &str, field: &str) -> Option<&'static str> {
    match field {
        "containers" | "initContainers" | "env" | "volumes" | "imagePullSecrets" | "secrets" => Some("name"),
        "ports" if plural == "services" => Some("port"),
        "ports" => Some("containerPort"),
        "volumeMounts" => Some("mountPath"),
        "conditions" => Some("type"),
        "ownerReferences" => Some("uid"),
        _ => None,
    }
}

fn strategic(target: &mut Value, patch: &Value, plural: &str) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if patch.get("$patch").is_some_and(|directive| directive == "replace") {
        *target = Value::Object(without_directives(patch));
        return;
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (field, change) in patch {
        if let Some(list) = field.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(list), Some(gone)) = (target[list].as_array_mut(), change.as_array()) {
                list.retain(|value| !gone.contains(value));
            }
            continue;
        }
        if let Some(kept) = (field == "$retainKeys").then(|| change.as_array()).flatten() {
            if let Some(target) = target.as_object_mut() {
                target.retain(|key, _| kept.iter().any(|k| k == key.as_str()));
            }
            continue;
        }
        if field.starts_with('$') {
            continue;
        }
        let fields = target.as_object_mut().expect("it was made an object above");
        match (change, merge_key(plural, field)) {
            (Value::Null, _) => {
                fields.shift_remove(field);
            }
            (Value::Array(changes), Some(key)) => {
                merge_list(fields.entry(field.clone()).or_insert(Value::Null), changes, key, plural);
            }
            (Value::Array(changes), None) if field == "finalizers" => {
                let list = fields.entry(field.clone()).or_insert_with(|| Value::Array(Vec::new()));
                if let Some(list) = list.as_array_mut() {
                    let new: Vec<_> = changes.iter().filter(|value| !list.contains(value)).cloned().collect();
                    list.extend(new);
                }
            }
            (Value::Object(_), _) => strategic(fields.entry(field.clone()).or_insert(Value::Null), change, plural),
            _ => {
                fields.insert(field.clone(), change.clone());
            }
        }
    }
}

fn merge_list(list: &mut Value, changes: &[Value], key: &str, plural: &str) {
    if changes.iter().any(|change| change["$patch"] == "replace") {
        let new = changes.iter().filter(|change| change["$patch"].is_null()).cloned().collect();
        *list = Value::Array(new);
        return;
    }
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let list = list.as_array_mut().expect("it was made an array above");
    for change in changes {
        let at = list.iter().position(|element| element[key] == change[key]);
        match (at, change["$patch"].as_str()) {
            (Some(at), Some("delete")) => {
                list.remove(at);
            }
            (None, Some("delete")) => {}
            (Some(at), _) => strategic(&mut list[at], change, plural),
            (None, _) => list.push(change.clone()),
        }
    }
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    patch.iter().filter(|(key, _)| !key.starts_with('$')).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::resources::by_key;

    fn patched(media_type: &str, object: Value, patch: Value) -> Result<Value, u16> {
        let resource = by_key("deployments.apps").expect("Deployments are known");
        let mut object = object;
        Patch::parse(resource, media_type, patch.to_string().as_bytes())
            .and_then(|patch| patch.apply(resource, "d", &mut object))
            .map(|()| object)
            .map_err(|status| status.code)
    }

    #[test]
    fn a_strategic_patch_merges_lists_by_their_key() {
        let object = json!({"spec": {"containers": [
            {"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}], "args": ["1", "2"]},
            {"name": "b"},
        ]}});
        let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [
            {"name": "a", "env": [{"name": "X", "value": "9"}, {"name": "Y", "$patch": "delete"}, {"name": "Z"}], "args": ["3"]},
        ]}});
        let expected = json!({"spec": {"containers": [
            {"name": "a", "env": [{"name": "X", "value": "9"}, {"name": "Z"}], "args": ["3"]},
            {"name": "b"},
        ]}});
        assert_eq!(patched("application/strategic-merge-patch+json", object, patch), Ok(expected));
    }

    #[test]
    fn a_merge_patch_removes_what_it_gives_as_null_and_replaces_lists() {
        let object = json!({"data": {"a": "1", "b": "2"}, "list": [1, 2]});
        let patch = json!({"data": {"a": null, "c": "3"}, "list": [3]});
        let expected = json!({"data": {"b": "2", "c": "3"}, "list": [3]});
        assert_eq!(patched("application/merge-patch+json", object, patch), Ok(expected));
    }

    #[test]
    fn a_json_patch_whose_test_fails_is_refused() {
        let patch = json!([{"op": "test", "path": "/a", "value": 2}, {"op": "remove", "path": "/a"}]);
        assert_eq!(patched("application/json-patch+json", json!({"a": 1}), patch), Err(422));
    }

    #[test]
    fn an_apply_patch_is_an_unknown_format() {
        assert_eq!(patched("application/apply-patch+yaml", json!({}), json!({})), Err(415));
    }
}
