//! Merge patches on one Application, as the controller writes them.

use serde_json::{Map, Value, json};

use crate::store::{Refusal, Store};

/// The store's name for Applications.
pub const APPLICATIONS: &str = "applications.argoproj.io";

/// The merge patch that makes `new` of `old`; `None` when there is nothing to do.
pub fn difference(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = after.iter().filter_map(|(key, value)| {
        let change = match before.get(key) {
            Some(old) => difference(old, value)?,
            None => value.clone(),
        };
        Some((key.clone(), change))
    });
    let patch: Map<String, Value> = gone.chain(changed).collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Applies a merge patch to an Application; `None` when it is gone.
pub fn apply(store: &Store, namespace: &str, name: &str, patch: &Value) -> Option<Value> {
    let applied = store.update(APPLICATIONS, namespace, name, |app| {
        // The state before may be a `null` of our own making, which the API server would never have kept.
        json_patch::merge(app, patch);
        Ok(())
    });
    applied.ok()
}

/// Starts an operation unless one is on: it is set and the state of the last one removed, in one update (argo-cd
/// util/argo/argo.go, `SetAppOperation`).
pub fn start_operation(store: &Store, namespace: &str, name: &str, operation: &Value) -> Result<(), Refusal> {
    let busy = || Refusal::Invalid("another operation is already in progress".into());
    let update = store.update(APPLICATIONS, namespace, name, |app| {
        if app["operation"].is_object() {
            return Err(busy());
        }
        json_patch::merge(app, &json!({"operation": operation, "status": {"operationState": null}}));
        Ok(())
    });
    update.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_applied_makes_the_new_of_the_old() {
        let old = json!({"a": {"b": 1, "c": [1, 2]}, "d": "x", "e": {"f": 1}});
        let new = json!({"a": {"b": 1, "c": [1]}, "e": {"f": 1}, "g": {"h": {}}});
        let patch = difference(&old, &new).unwrap();
        assert_eq!(patch, json!({"d": null, "a": {"c": [1]}, "g": {"h": {}}}));
        let mut patched = old;
        json_patch::merge(&mut patched, &patch);
        assert_eq!(patched, new);
        assert_eq!(difference(&new, &new), None);
    }
}
