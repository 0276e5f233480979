//! The environment of a container, resolved at the moment at which it starts.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::place;
use crate::store::Store;

/// The variables of a container of a pod.
///
/// # Errors
/// What the kubelet says when a reference that is not optional leads nowhere (`CreateContainerConfigError`).
pub(super) fn resolve(store: &Store, pod: &Value, container: &Value) -> Result<BTreeMap<String, String>, String> {
    let (namespace, _) = place(pod);
    let mut variables = BTreeMap::new();
    for source in container["envFrom"].as_array().into_iter().flatten() {
        let prefix = source["prefix"].as_str().unwrap_or_default();
        for (reference, resource) in [("configMapRef", "configmaps"), ("secretRef", "secrets")] {
            let reference = &source[reference];
            let Some(name) = reference["name"].as_str() else { continue };
            match data(store, resource, namespace, name) {
                Some(data) => variables.extend(data.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value))),
                None if reference["optional"] == true => {}
                None => return Err(missing(resource, name)),
            }
        }
    }
    for variable in container["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap_or_default();
        if let Some(value) = value(store, pod, variable)? {
            variables.insert(name.to_owned(), value);
        }
    }
    Ok(variables)
}

fn value(store: &Store, pod: &Value, variable: &Value) -> Result<Option<String>, String> {
    let (namespace, _) = place(pod);
    let from = &variable["valueFrom"];
    for (reference, resource, kind) in
        [("configMapKeyRef", "configmaps", "ConfigMap"), ("secretKeyRef", "secrets", "Secret")]
    {
        let reference = &from[reference];
        let (Some(name), Some(key)) = (reference["name"].as_str(), reference["key"].as_str()) else { continue };
        let optional = reference["optional"] == true;
        let Some(mut data) = data(store, resource, namespace, name) else {
            return if optional { Ok(None) } else { Err(missing(resource, name)) };
        };
        return match data.remove(key) {
            None if !optional => Err(format!("couldn't find key {key} in {kind} {namespace}/{name}")),
            value => Ok(value),
        };
    }
    if let Some(path) = from["fieldRef"]["fieldPath"].as_str() {
        let value = path.split('.').fold(pod, |value, part| &value[part]);
        return Ok(Some(value.as_str().unwrap_or_default().to_owned()));
    }
    Ok(Some(variable["value"].as_str().unwrap_or_default().to_owned()))
}

fn data(store: &Store, resource: &str, namespace: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let object = store.get(resource, namespace, name)?;
    let text = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        if resource == "configmaps" {
            return text.to_owned();
        }
        String::from_utf8_lossy(&STANDARD.decode(text).unwrap_or_default()).into_owned()
    };
    Some(object["data"].as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect())
}

fn missing(resource: &str, name: &str) -> String {
    format!("{} \"{name}\" not found", resource.trim_end_matches('s'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resolved(container: Value) -> Result<BTreeMap<String, String>, String> {
        let store = Store::default();
        let metadata = |name: &str| json!({"name": name, "namespace": "argocd"});
        for (resource, object) in [
            ("configmaps", json!({"metadata": metadata("cm"), "data": {"a": "1", "b": "2"}})),
            ("secrets", json!({"metadata": metadata("s"), "data": {"k": "djE="}})),
        ] {
            store.create(resource, object).expect("the name is free");
        }
        let pod = json!({"metadata": metadata("p"), "status": {"podIP": "127.0.0.1"}});
        resolve(&store, &pod, &container)
    }

    fn reference(kind: &str, name: &str, key: &str, optional: bool) -> Value {
        json!({"env": [{"name": "X", "valueFrom": {kind: {"name": name, "key": key, "optional": optional}}}]})
    }

    #[test]
    fn references_literals_and_fields_are_resolved() {
        let container = json!({
            "envFrom": [{"configMapRef": {"name": "cm"}, "prefix": "CM_"}],
            "env": [
                {"name": "LITERAL", "value": "v"},
                {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
        });
        let expected = [("CM_a", "1"), ("CM_b", "2"), ("KEY", "v1"), ("LITERAL", "v"), ("NAME", "p")];
        let expected = expected.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        assert_eq!(resolved(container), Ok(expected));
    }

    #[test]
    fn what_is_optional_may_be_missing_and_the_rest_is_an_error() {
        assert_eq!(resolved(reference("configMapKeyRef", "cm", "none", true)), Ok(BTreeMap::new()));
        assert_eq!(resolved(reference("configMapKeyRef", "none", "a", true)), Ok(BTreeMap::new()));
        assert_eq!(
            resolved(reference("configMapKeyRef", "cm", "none", false)),
            Err("couldn't find key none in ConfigMap argocd/cm".into())
        );
        assert_eq!(resolved(reference("secretKeyRef", "none", "k", false)), Err("secret \"none\" not found".into()));
    }
}
