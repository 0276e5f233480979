//! `metadata.managedFields`: which manager last wrote which field, and when.

use std::{collections::BTreeSet, time::SystemTime};

use serde_json::{Map, Value, json};

use crate::clock::rfc3339;

/// Who writes: the manager's name, and the subresource written through (empty for the object itself).
pub struct Manager<'a> {
    /// `kubectl-patch`.
    pub name: &'a str,
    /// `apps/v1`.
    pub api_version: &'a str,
    /// `status`.
    pub subresource: &'a str,
}

/// Gives the manager the fields that differ between `old` and `new`, and takes them from all others. Lists count as one
/// field.
pub fn record(old: &Value, new: &mut Value, manager: &Manager) {
    let (before, after) = (leaves(old), leaves(new));
    let changed: BTreeSet<_> =
        after.iter().filter(|leaf| !before.contains(*leaf)).map(|(path, _)| path.clone()).collect();
    let present: BTreeSet<_> = after.iter().map(|(path, _)| path.clone()).collect();
    let gone = before.iter().any(|(path, _)| !present.contains(path));
    new["metadata"]["managedFields"] = old["metadata"]["managedFields"].clone();
    if changed.is_empty() && !gone {
        return;
    }
    let mut entries: Vec<(Value, BTreeSet<Vec<String>>)> = new["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| (entry.clone(), paths(&entry["fieldsV1"])))
        .collect();
    let is_own = |entry: &Value| {
        entry["manager"] == manager.name && entry["subresource"].as_str().unwrap_or_default() == manager.subresource
    };
    if !entries.iter().any(|(entry, _)| is_own(entry)) {
        let mut entry = json!({
            "manager": manager.name, "operation": "Update", "apiVersion": manager.api_version, "fieldsType": "FieldsV1",
        });
        if !manager.subresource.is_empty() {
            entry["subresource"] = json!(manager.subresource);
        }
        entries.push((entry, BTreeSet::new()));
    }
    for (entry, fields) in &mut entries {
        if is_own(entry) {
            fields.extend(changed.iter().cloned());
            entry["time"] = json!(rfc3339(SystemTime::now()));
        } else {
            fields.retain(|path| !changed.contains(path));
        }
        fields.retain(|path| present.contains(path));
        entry["fieldsV1"] = tree(fields);
    }
    let kept =
        entries.into_iter().filter(|(entry, fields)| is_own(entry) || !fields.is_empty()).map(|(entry, _)| entry);
    new["metadata"]["managedFields"] = kept.collect();
}

/// The path and text of each leaf that a manager can own.
fn leaves(object: &Value) -> BTreeSet<(Vec<String>, String)> {
    fn walk(value: &Value, path: &mut Vec<String>, found: &mut BTreeSet<(Vec<String>, String)>) {
        match value.as_object() {
            Some(fields) if !fields.is_empty() => {
                for (key, value) in fields {
                    path.push(key.clone());
                    walk(value, path, found);
                    path.pop();
                }
            }
            _ if value.is_null() => {}
            _ => {
                found.insert((path.clone(), value.to_string()));
            }
        }
    }
    let mut found = BTreeSet::new();
    for (field, value) in object.as_object().into_iter().flatten() {
        match field.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
                    walk(&value[field], &mut vec!["metadata".into(), field.into()], &mut found);
                }
            }
            _ => walk(value, &mut vec![field.clone()], &mut found),
        }
    }
    found
}

fn paths(fields: &Value) -> BTreeSet<Vec<String>> {
    fn walk(fields: &Value, path: &mut Vec<String>, found: &mut BTreeSet<Vec<String>>) {
        let below: Vec<_> = fields.as_object().into_iter().flatten().collect();
        if below.is_empty() && !path.is_empty() {
            found.insert(path.clone());
        }
        for (key, fields) in below {
            path.push(key.strip_prefix("f:").unwrap_or(key).into());
            walk(fields, path, found);
            path.pop();
        }
    }
    let mut found = BTreeSet::new();
    walk(fields, &mut Vec::new(), &mut found);
    found
}

fn tree(paths: &BTreeSet<Vec<String>>) -> Value {
    let mut root = Map::new();
    for path in paths {
        let mut at = &mut root;
        for part in path {
            let below = at.entry(format!("f:{part}")).or_insert_with(|| json!({}));
            at = below.as_object_mut().expect("every node of the tree is an object");
        }
    }
    Value::Object(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(old: &Value, mut new: Value, name: &str) -> Value {
        record(old, &mut new, &Manager { name, api_version: "v1", subresource: "" });
        new
    }

    #[test]
    fn a_field_belongs_to_whoever_changed_it_last() {
        let first = write(&Value::Null, json!({"metadata": {}, "data": {"a": "1", "b": "1"}}), "helm");
        let second = write(&first, json!({"metadata": {}, "data": {"a": "2", "b": "1"}}), "kubectl-patch");
        let owners: Vec<_> = second["metadata"]["managedFields"]
            .as_array()
            .expect("a write leaves entries")
            .iter()
            .map(|entry| (entry["manager"].clone(), entry["fieldsV1"].clone()))
            .collect();
        assert_eq!(
            owners,
            [(json!("helm"), json!({"f:data": {"f:b": {}}})), (json!("kubectl-patch"), json!({"f:data": {"f:a": {}}})),]
        );
    }

    #[test]
    fn a_write_that_changes_nothing_leaves_the_times_alone() {
        let first = write(&Value::Null, json!({"metadata": {}, "data": {"a": "1"}}), "helm");
        assert_eq!(write(&first, first.clone(), "kubectl"), first);
    }
}
