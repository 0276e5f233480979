//! `status.conditions`, and what is wrong with a spec before anything is compared.

use serde_json::{Value, json};

use crate::{
    argocd::{version::Version, webhook::namespaces::serves},
    store::Store,
};

/// A condition's type and message.
pub type Condition = (&'static str, String);

/// Conditions that a comparison writes anew.
pub const OF_COMPARISON: [&str; 4] =
    ["ComparisonError", "SharedResourceWarning", "RepeatedResourceWarning", "ExcludedResourceWarning"];
/// Conditions that the check before it writes anew.
pub const OF_SPEC: [&str; 2] = ["InvalidSpecError", "UnknownError"];

/// Replaces the conditions of the given types; one that stays keeps its time.
pub fn set(status: &mut Value, types: &[&str], conditions: &[Condition], now: &str) {
    let old = status["conditions"].as_array().cloned().unwrap_or_default();
    let is_of_types = |condition: &Value| condition["type"].as_str().is_some_and(|name| types.contains(&name));
    let mut all: Vec<Value> = old.iter().filter(|condition| !is_of_types(condition)).cloned().collect();
    for (name, message) in conditions {
        let same = old.iter().find(|one| one["type"] == *name && one["message"] == *message);
        let fresh = || json!({"type": name, "message": message, "lastTransitionTime": now});
        all.push(same.cloned().unwrap_or_else(fresh));
    }
    all.sort_by_key(|condition| condition["type"].as_str().unwrap_or_default().to_owned());
    if let Some(status) = status.as_object_mut() {
        if all.is_empty() {
            status.remove("conditions");
        } else {
            status.insert("conditions".into(), all.into());
        }
    }
}

/// What keeps an Application from being compared at all (argo-cd util/argo/argo.go, `ValidatePermissions`, and the
/// lookup of the project).
pub fn of_spec(store: &Store, install: &str, app: &Value, version: Version) -> Vec<Condition> {
    let spec = &app["spec"];
    let project = spec["project"].as_str().filter(|name| !name.is_empty()).unwrap_or("default");
    let found = store.get("appprojects.argoproj.io", install, project);
    let namespace = app["metadata"]["namespace"].as_str().unwrap_or_default();
    match &found {
        None if project != "default" => {
            let message = format!("Application referencing project {project} which does not exist");
            return vec![("InvalidSpecError", message)];
        }
        project_object if namespace != install => {
            let allowed = |name: &str| {
                let list = project_object.as_ref().and_then(|object| object["spec"]["sourceNamespaces"].as_array());
                let list = list.map_or(&[][..], Vec::as_slice);
                let patterns: Vec<String> = list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
                serves(name, install, &patterns, version)
            };
            if !allowed(namespace) {
                let name = app["metadata"]["name"].as_str().unwrap_or_default();
                let message =
                    format!("app is not allowed in project {project:?}, or the project does not exist: {name}");
                return vec![("UnknownError", message)];
            }
        }
        _ => {}
    }
    let mut conditions = Vec::new();
    let sources = spec["sources"].as_array().filter(|sources| !sources.is_empty());
    match sources {
        _ if spec["sourceHydrator"].is_object() => {}
        Some(sources) if sources.iter().any(|source| source["repoURL"].as_str().is_none_or(str::is_empty)) => {
            conditions.push(("InvalidSpecError", "spec.source.repoURL is required".into()));
        }
        Some(_) => {}
        None if spec["source"]["repoURL"].as_str().is_none_or(str::is_empty) => {
            let message = "spec.source.repoURL and either spec.source.path, spec.source.chart, or spec.source.ref are \
                           required";
            conditions.push(("InvalidSpecError", message.into()));
        }
        None => {}
    }
    let destination = &spec["destination"];
    match (destination["server"].as_str(), destination["name"].as_str()) {
        (Some("https://kubernetes.default.svc"), None | Some("")) | (None | Some(""), Some("in-cluster")) => {}
        (None | Some(""), None | Some("")) => {
            conditions.push(("InvalidSpecError", "Destination server missing from app spec".into()));
        }
        (Some(server), None | Some("")) => {
            let message = format!("there are no clusters with this URL: {server}");
            conditions.push(("InvalidSpecError", message));
        }
        (None | Some(""), Some(name)) => {
            conditions.push(("InvalidSpecError", format!("there are no clusters with this name: {name}")));
        }
        (Some(server), Some(name)) => {
            let message = format!("can't have both name and server defined: {name} {server}");
            conditions.push(("InvalidSpecError", message));
        }
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_stays_keeps_its_time() {
        let mut status = json!({});
        let error = ("ComparisonError", "no".to_owned());
        set(&mut status, &OF_COMPARISON, std::slice::from_ref(&error), "t1");
        set(&mut status, &OF_SPEC, &[("InvalidSpecError", "bad".into())], "t2");
        set(&mut status, &OF_COMPARISON, &[error], "t3");
        let times: Vec<_> =
            status["conditions"].as_array().unwrap().iter().map(|one| one["lastTransitionTime"].clone()).collect();
        assert_eq!(times, ["t1", "t2"]);
        set(&mut status, &OF_COMPARISON, &[], "t4");
        set(&mut status, &OF_SPEC, &[], "t4");
        assert_eq!(status, json!({}));
    }

    #[test]
    fn an_unknown_project_or_cluster_is_an_invalid_spec() {
        let store = Store::default();
        let types = |app: &Value| -> Vec<Condition> { of_spec(&store, "argocd", app, Version::of_tag("v3.5.1")) };
        let mut app = json!({
            "metadata": {"namespace": "argocd", "name": "evt"},
            "spec": {"project": "default", "source": {"repoURL": "u"}, "destination": {"name": "in-cluster"}},
        });
        assert_eq!(types(&app), []);
        app["spec"]["destination"] = json!({"server": "https://elsewhere"});
        assert_eq!(types(&app)[0].1, "there are no clusters with this URL: https://elsewhere");
        app["spec"]["project"] = json!("nope");
        assert_eq!(types(&app)[0].1, "Application referencing project nope which does not exist");
        app["spec"]["project"] = json!("default");
        app["metadata"]["namespace"] = json!("team");
        assert_eq!(types(&app)[0].0, "UnknownError");
    }
}
