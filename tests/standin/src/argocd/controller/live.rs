//! Target state against live state: what differs, what a sync writes, how healthy it is.

use serde_json::{Value, json};

use crate::{
    argocd::{
        manifests::{Identity, track, tracked_by},
        version::Version,
    },
    store::{Refusal, Store},
};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One object in Git, in the cluster, or in both.
#[derive(Clone, Debug)]
pub struct Managed {
    /// What it is.
    pub identity: Identity,
    /// As Git has it.
    pub target: Option<Value>,
    /// As the cluster has it.
    pub live: Option<Value>,
}

impl Managed {
    /// Whether the cluster has what Git says.
    pub fn is_synced(&self) -> bool {
        match (&self.target, &self.live) {
            (Some(target), Some(live)) => contains(live, target) && !was_applied_more(live, target),
            _ => false,
        }
    }

    /// Its entry in `status.resources`.
    pub fn status(&self) -> Value {
        let Identity { group, version, kind, namespace, name } = &self.identity;
        let status = if self.is_synced() { "Synced" } else { "OutOfSync" };
        let mut entry = json!({"kind": kind, "name": name, "status": status, "version": version});
        for (field, value) in [("group", group), ("namespace", namespace)] {
            if !value.is_empty() {
                entry[field] = json!(value);
            }
        }
        if self.target.is_none() {
            entry["requiresPruning"] = json!(true);
        }
        entry
    }

    /// Its health; `None` when its kind has none.
    pub fn health(&self) -> Option<&'static str> {
        let Some(live) = &self.live else { return Some("Missing") };
        let number = |value: &Value| value.as_i64().unwrap_or(0);
        let (spec, status) = (&live["spec"], &live["status"]);
        match self.identity.kind.as_str() {
            "Deployment" | "StatefulSet" => {
                let wanted = spec["replicas"].as_i64().unwrap_or(1);
                let observed = number(&status["observedGeneration"]) >= number(&live["metadata"]["generation"]);
                let rolled = number(&status["updatedReplicas"]) >= wanted && number(&status["readyReplicas"]) >= wanted;
                Some(if observed && rolled { "Healthy" } else { "Progressing" })
            }
            _ => None,
        }
    }
}

/// Pairs the objects of Git with those of the cluster; tracked objects that Git no longer has come along.
pub fn pair(
    store: &Store,
    targets: &[Value],
    known: &[Identity],
    application: &str,
    namespace: &str,
    version: Version,
) -> Vec<Managed> {
    let mut all: Vec<Managed> = targets
        .iter()
        .map(|target| {
            let identity = Identity::of(target, namespace);
            let mut target = target.clone();
            if !identity.namespace.is_empty() {
                target["metadata"]["namespace"] = json!(identity.namespace);
            }
            track(&mut target, application, version);
            let live = store.get(&identity.resource(), &identity.namespace, &identity.name);
            Managed { identity, target: Some(target), live }
        })
        .collect();
    for identity in known {
        let is_known =
            |one: &Managed| one.identity.short() == identity.short() && one.identity.namespace == identity.namespace;
        if all.iter().any(is_known) {
            continue;
        }
        let live = store.get(&identity.resource(), &identity.namespace, &identity.name);
        if let Some(live) = live.filter(|live| tracked_by(live) == Some(application)) {
            all.push(Managed { identity: identity.clone(), target: None, live: Some(live) });
        }
    }
    all.sort_by(|one, other| one.identity.cmp(&other.identity));
    all
}

/// Whether everything in `part` is in `whole`; lists are compared as they are.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|own| contains(own, value)))
        }
        _ => whole == part,
    }
}

/// Whether a field that was applied last time is no longer in Git.
fn was_applied_more(live: &Value, target: &Value) -> bool {
    let applied = live["metadata"]["annotations"][LAST_APPLIED].as_str();
    applied.and_then(|text| serde_json::from_str::<Value>(text).ok()).is_some_and(|applied| has_more(&applied, target))
}

fn has_more(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.iter().any(|(key, value)| new.get(key).is_none_or(|own| has_more(value, own)))
        }
        _ => false,
    }
}

/// Writes the target of one object as `kubectl apply` would, and says what that did.
///
/// # Errors
/// As the API server would say it.
pub fn apply(store: &Store, managed: &Managed) -> Result<String, String> {
    let Managed { identity, target, live } = managed;
    let Some(target) = target else { return Ok(format!("{} unchanged", identity.short())) };
    let resource = identity.resource();
    if !identity.namespace.is_empty() && store.get("namespaces", "", &identity.namespace).is_none() {
        return Err(format!("namespaces {:?} not found", identity.namespace));
    }
    let mut wanted = target.clone();
    wanted["metadata"]["annotations"][LAST_APPLIED] = json!(target.to_string());
    let failed = |refusal: Refusal| format!("{}: {refusal:?}", identity.short());
    let Some(live) = live else {
        store.create(&resource, wanted).map_err(failed)?;
        return Ok(format!("{} created", identity.short()));
    };
    let before = live["metadata"]["resourceVersion"].clone();
    let written = store
        .update(&resource, &identity.namespace, &identity.name, |object| {
            let applied = object["metadata"]["annotations"][LAST_APPLIED].as_str();
            if let Some(applied) = applied.and_then(|text| serde_json::from_str(text).ok()) {
                remove_gone(object, &applied, target);
            }
            merge(object, &wanted);
            Ok(())
        })
        .map_err(failed)?;
    let what = if written["metadata"]["resourceVersion"] == before { "unchanged" } else { "configured" };
    Ok(format!("{} {what}", identity.short()))
}

fn merge(object: &mut Value, wanted: &Value) {
    match (object, wanted) {
        (Value::Object(object), Value::Object(wanted)) => {
            for (key, value) in wanted {
                merge(object.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, wanted) => *object = wanted.clone(),
    }
}

fn remove_gone(object: &mut Value, applied: &Value, target: &Value) {
    let (Value::Object(object), Value::Object(applied)) = (object, applied) else { return };
    for (key, old) in applied {
        match target.get(key) {
            None => {
                object.remove(key);
            }
            Some(new) => {
                if let Some(own) = object.get_mut(key) {
                    remove_gone(own, old, new);
                }
            }
        }
    }
}

/// The health of the whole: the worst of its parts.
pub fn health(all: &[Managed]) -> &'static str {
    const WORST_FIRST: [&str; 4] = ["Degraded", "Missing", "Progressing", "Suspended"];
    let parts: Vec<&str> = all.iter().filter(|one| one.target.is_some()).filter_map(Managed::health).collect();
    WORST_FIRST.into_iter().find(|word| parts.contains(word)).unwrap_or("Healthy")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "signal"}, "data": data})
    }

    fn pair_up(store: &Store, target: &Value) -> Managed {
        let all = pair(store, std::slice::from_ref(target), &[], "evt", "evt", Version::of_tag("v3.5.1"));
        all.into_iter().next().unwrap()
    }

    #[test]
    fn what_was_applied_and_is_gone_from_git_is_out_of_sync_until_the_next_apply() {
        let store = Store::default();
        let first = pair_up(&store, &signal(&json!({"rev": "r1", "old": "x"})));
        assert_eq!((first.is_synced(), first.health()), (false, Some("Missing")));
        assert_eq!(apply(&store, &first), Err("namespaces \"evt\" not found".into()));
        store.create("namespaces", json!({"metadata": {"name": "evt"}})).unwrap();
        assert_eq!(apply(&store, &first).unwrap(), "configmap/signal created");
        let second = pair_up(&store, &signal(&json!({"rev": "r1"})));
        assert!(!second.is_synced());
        assert_eq!(apply(&store, &second).unwrap(), "configmap/signal configured");
        let third = pair_up(&store, &signal(&json!({"rev": "r1"})));
        assert!(third.is_synced());
        assert_eq!(third.live.as_ref().unwrap()["data"], json!({"rev": "r1"}));
        assert_eq!(apply(&store, &third).unwrap(), "configmap/signal unchanged");
    }

    #[test]
    fn a_tracked_object_that_git_lost_has_to_be_pruned() {
        let store = Store::default();
        store.create("namespaces", json!({"metadata": {"name": "evt"}})).unwrap();
        let first = pair_up(&store, &signal(&json!({})));
        apply(&store, &first).unwrap();
        let all = pair(&store, &[], &[first.identity], "evt", "evt", Version::of_tag("v3.5.1"));
        assert_eq!(all[0].status()["requiresPruning"], true);
    }
}
