//! The objects of the cluster: JSON by resource, namespace and name, one counter of resource versions, and the log
//! that watches read.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::SystemTime,
};

use serde_json::{Value, json};
use tokio::sync::watch;

/// How many changes the log keeps; a watch from before them is answered 410.
const LOG_LENGTH: usize = 100_000;

/// Resources whose `status` is a subresource: for them only a changed `spec` is a new generation. For the others (an
/// Application has no status subresource) every change outside `metadata` is.
const WITH_STATUS: [&str; 4] = ["deployments.apps", "statefulsets.apps", "replicasets.apps", "pods"];

/// What happened to an object, in the words of the watch protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It has other contents.
    Modified,
    /// It is gone; the event holds its last state under a new resource version.
    Deleted,
}

/// One line of the log.
#[derive(Clone, Debug)]
pub struct Event {
    /// The resource version that the change made.
    pub version: u64,
    /// What happened.
    pub change: Change,
    /// `configmaps`, `deployments.apps`, `applications.argoproj.io`: the plural name and, unless it is the core group,
    /// the API group.
    pub resource: String,
    /// The object after the change.
    pub object: Arc<Value>,
    /// The object before the change; `None` for a new one.
    pub before: Option<Arc<Value>>,
    /// When it was written.
    pub at: SystemTime,
}

/// Why a change was not made, as the API server would say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 404.
    NotFound,
    /// 409 `AlreadyExists`.
    Exists,
    /// 409 `Conflict`: the resource version sent is not the current one.
    Conflict,
    /// 400 or 422 with this text.
    Invalid(String),
}

type Key = (String, String, String);

#[derive(Default)]
struct Inner {
    version: u64,
    uids: u64,
    objects: BTreeMap<Key, Arc<Value>>,
    log: VecDeque<Event>,
    /// Everything up to this version has been dropped from the log.
    forgotten: u64,
}

/// The store. Cheap to share; every method takes the lock for its own duration only.
pub struct Store {
    inner: Mutex<Inner>,
    newest: watch::Sender<u64>,
}

impl Default for Store {
    fn default() -> Self {
        Store { inner: Mutex::default(), newest: watch::Sender::new(0) }
    }
}

impl Store {
    /// The object, if there is one. `namespace` is empty for cluster-scoped resources.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.lock().objects.get(&key(resource, namespace, name)).map(|object| (**object).clone())
    }

    /// All objects of a resource, in one namespace or in all, and the version at which this is true.
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> (Vec<Arc<Value>>, u64) {
        let inner = self.lock();
        let from = key(resource, namespace.unwrap_or_default(), "");
        let objects = inner
            .objects
            .range(from..)
            .take_while(|((r, ns, _), _)| r == resource && namespace.is_none_or(|wanted| ns == wanted))
            .map(|(_, object)| object.clone())
            .collect();
        (objects, inner.version)
    }

    /// Adds an object; `uid`, `creationTimestamp`, `resourceVersion` and `generation` are set here.
    ///
    /// # Errors
    /// [`Refusal::Exists`] when the name is taken, [`Refusal::Invalid`] when there is no name.
    pub fn create(&self, resource: &str, mut object: Value) -> Result<Value, Refusal> {
        let (namespace, name) = (text(&object, "namespace"), text(&object, "name"));
        if name.is_empty() {
            return Err(Refusal::Invalid("metadata.name: Required value".into()));
        }
        let mut inner = self.lock();
        let key = key(resource, &namespace, &name);
        if inner.objects.contains_key(&key) {
            return Err(Refusal::Exists);
        }
        inner.uids += 1;
        let uid = format!("00000000-0000-4000-8000-{:012}", inner.uids);
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(uid);
        metadata["creationTimestamp"] = json!(crate::clock::rfc3339(SystemTime::now()));
        if has_generation(resource) {
            metadata["generation"] = json!(1);
        }
        Ok(self.write(&mut inner, Change::Added, key, object, None))
    }

    /// Reads, changes and writes an object under one lock. A change that leaves it as it was writes nothing and makes
    /// no new version, as the API server does. A `resourceVersion` put there by `change` must be the current one.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Conflict`], or what `change` refuses.
    pub fn update(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value) -> Result<(), Refusal>,
    ) -> Result<Value, Refusal> {
        let mut inner = self.lock();
        let key = key(resource, namespace, name);
        let old = inner.objects.get(&key).cloned().ok_or(Refusal::NotFound)?;
        let mut new = (*old).clone();
        change(&mut new)?;
        if new["metadata"]["resourceVersion"].is_null() {
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        }
        if new["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"] {
            return Err(Refusal::Conflict);
        }
        for fixed in ["uid", "creationTimestamp", "generation"] {
            if let Some(value) = old["metadata"].get(fixed) {
                new["metadata"][fixed] = value.clone();
            }
        }
        if new == *old {
            return Ok(new);
        }
        if has_generation(resource) && is_new_generation(resource, &old, &new) {
            new["metadata"]["generation"] = json!(old["metadata"]["generation"].as_u64().unwrap_or(0) + 1);
        }
        Ok(self.write(&mut inner, Change::Modified, key, new, Some(old)))
    }

    /// Removes an object and returns its last state.
    ///
    /// # Errors
    /// [`Refusal::NotFound`].
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, Refusal> {
        let mut inner = self.lock();
        let key = key(resource, namespace, name);
        let old = inner.objects.remove(&key).ok_or(Refusal::NotFound)?;
        Ok(self.write(&mut inner, Change::Deleted, key, (*old).clone(), Some(old)))
    }

    /// The changes of a resource after `version`; `None` when the log no longer reaches back so far (410 Gone).
    pub fn since(&self, resource: &str, version: u64) -> Option<Vec<Event>> {
        let inner = self.lock();
        if version < inner.forgotten {
            return None;
        }
        let first = inner.log.partition_point(|event| event.version <= version);
        Some(inner.log.range(first..).filter(|event| event.resource == resource).cloned().collect())
    }

    /// Whether any of these resources has changed after `version`; true as well when the log does not reach back so far.
    pub fn changed_since(&self, resources: &[&str], version: u64) -> bool {
        let inner = self.lock();
        let first = inner.log.partition_point(|event| event.version <= version);
        version < inner.forgotten || inner.log.range(first..).any(|event| resources.contains(&event.resource.as_str()))
    }

    /// Empties the log, as etcd's compaction does: every watch from before this moment is answered 410.
    pub fn compact(&self) {
        let mut inner = self.lock();
        inner.forgotten = inner.version;
        inner.log.clear();
    }

    /// The newest version; changes with every write, so that whoever awaits it can look again.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    fn write(
        &self,
        inner: &mut Inner,
        change: Change,
        key: Key,
        mut object: Value,
        before: Option<Arc<Value>>,
    ) -> Value {
        inner.version += 1;
        object["metadata"]["resourceVersion"] = json!(inner.version.to_string());
        let event = Event {
            version: inner.version,
            change,
            resource: key.0.clone(),
            object: Arc::new(object.clone()),
            before,
            at: SystemTime::now(),
        };
        if change != Change::Deleted {
            inner.objects.insert(key, event.object.clone());
        }
        inner.log.push_back(event);
        while inner.log.len() > LOG_LENGTH {
            inner.forgotten = inner.log.pop_front().map_or(inner.forgotten, |event| event.version);
        }
        self.newest.send_replace(inner.version);
        object
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no thread panics while it holds the store")
    }
}

fn key(resource: &str, namespace: &str, name: &str) -> Key {
    (resource.into(), namespace.into(), name.into())
}

fn text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or_default().into()
}

/// ConfigMaps, Secrets, Roles and their like have none.
fn has_generation(resource: &str) -> bool {
    WITH_STATUS.contains(&resource) || resource.ends_with(".argoproj.io") || resource.ends_with(".apiextensions.k8s.io")
}

fn is_new_generation(resource: &str, old: &Value, new: &Value) -> bool {
    if WITH_STATUS.contains(&resource) {
        return old["spec"] != new["spec"];
    }
    let without_metadata = |object: &Value| {
        let mut object = object.clone();
        object["metadata"] = Value::Null;
        object
    };
    without_metadata(old) != without_metadata(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configmap(name: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "argocd"}, "data": {}})
    }

    #[test]
    fn a_write_that_changes_nothing_makes_no_version() {
        let store = Store::default();
        let first = store.create("configmaps", configmap("a")).unwrap();
        let second = store.update("configmaps", "argocd", "a", |_| Ok(())).unwrap();
        assert_eq!(first, second);
    }

    #[test]
    fn an_old_resource_version_is_a_conflict() {
        let store = Store::default();
        store.create("configmaps", configmap("a")).unwrap();
        let with_version = |version: &'static str| {
            store.update("configmaps", "argocd", "a", move |object| {
                object["metadata"]["resourceVersion"] = json!(version);
                object["data"]["k"] = json!(version);
                Ok(())
            })
        };
        assert!(with_version("1").is_ok());
        assert_eq!(with_version("1"), Err(Refusal::Conflict));
    }

    #[test]
    fn the_log_says_gone_after_a_compaction() {
        let store = Store::default();
        store.create("configmaps", configmap("a")).unwrap();
        assert_eq!(store.since("configmaps", 0).map(|events| events.len()), Some(1));
        store.compact();
        assert!(store.since("configmaps", 0).is_none());
        assert_eq!(store.since("configmaps", 1).map(|events| events.len()), Some(0));
    }
}
