//! The application controller: each of its containers follows the Applications it serves, compares them, and syncs
//! them.

mod app;
mod autosync;
mod compare;
mod conditions;
mod hydrator;
mod live;
mod need;
mod operation;
mod patch;
mod sync;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::{Instant, SystemTime},
};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    Argo,
    log::Logger,
    manifests::tracked_by,
    settings::{self, ControllerSettings},
    version::Version,
    webhook::namespaces::serves,
};
use crate::{
    processes::{Component, Process},
    store::{Change, Event},
};

pub use need::{HYDRATE, Level, REFRESH, is_multi_source, is_true, single_source};
pub use patch::APPLICATIONS;

/// What one container of the controller works with.
struct Controller {
    argo: Arc<Argo>,
    process: Process,
    version: Version,
    settings: ControllerSettings,
    logger: Logger,
    started: Instant,
    /// The resources in which its Applications have objects.
    watched: Mutex<HashSet<String>>,
    /// How many comparisons run at once: `--status-processors`.
    comparisons: tokio::sync::Semaphore,
}

/// What an Application's own task is told.
enum Message {
    /// The object changed: before (if it was known) and after.
    Changed(Option<Arc<Value>>, Arc<Value>),
    /// An object of its own changed in the cluster.
    Live,
}

struct Handle {
    sender: mpsc::UnboundedSender<Message>,
    last: Arc<Value>,
}

type Key = (String, String);

/// Runs one container of the controller until it is dropped.
pub async fn run(argo: Arc<Argo>, process: Process) {
    let Ok(settings) = settings::controller(&process).settings else { return };
    let controller = Arc::new(Controller {
        version: Version::of_tag(&process.version),
        logger: Logger::of(&process),
        started: Instant::now(),
        watched: Mutex::default(),
        comparisons: tokio::sync::Semaphore::new(20),
        argo,
        process,
        settings,
    });
    let mut tasks = JoinSet::new();
    let mut apps: HashMap<Key, Handle> = HashMap::new();
    let mut newest = controller.argo.cluster.store.newest();
    let mut seen = controller.relist(&mut apps, &mut tasks);
    loop {
        let now = *newest.borrow_and_update();
        let store = &controller.argo.cluster.store;
        let events = store.since(APPLICATIONS, seen);
        let watched: Vec<String> = {
            let watched = controller.watched.lock().expect("no thread panics while it holds the names");
            watched.iter().cloned().collect()
        };
        let live: Vec<Event> = watched.iter().filter_map(|resource| store.since(resource, seen)).flatten().collect();
        match events {
            None => seen = controller.relist(&mut apps, &mut tasks),
            Some(events) => {
                for event in events.into_iter().filter(|event| event.version <= now) {
                    controller.dispatch(&mut apps, &mut tasks, event.change, event.object);
                }
                seen = now;
            }
        }
        for event in live.into_iter().filter(|event| event.version <= now) {
            let Some(name) = tracked_by(&event.object) else { continue };
            let key = match name.split_once('_') {
                Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
                None => (controller.process.namespace.clone(), name.to_owned()),
            };
            if let Some(handle) = apps.get(&key) {
                let _ = handle.sender.send(Message::Live);
            }
        }
        if newest.changed().await.is_err() {
            return;
        }
    }
}

impl Controller {
    /// Reads all Applications anew; returns the version at which that was true.
    fn relist(self: &Arc<Self>, apps: &mut HashMap<Key, Handle>, tasks: &mut JoinSet<()>) -> u64 {
        let (objects, version) = self.argo.cluster.store.list(APPLICATIONS, None);
        let there: HashSet<Key> = objects.iter().map(|object| key(object)).collect();
        apps.retain(|key, _| there.contains(key));
        for object in objects {
            self.dispatch(apps, tasks, Change::Modified, object);
        }
        version
    }

    fn dispatch(
        self: &Arc<Self>,
        apps: &mut HashMap<Key, Handle>,
        tasks: &mut JoinSet<()>,
        change: Change,
        object: Arc<Value>,
    ) {
        let key = key(&object);
        // A task whose sender is gone ends.
        if change == Change::Deleted || !self.may_process(&object) {
            apps.remove(&key);
            return;
        }
        while tasks.try_join_next().is_some() {}
        let handle = apps.entry(key.clone()).or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            tasks.spawn(app::App::new(self.clone(), key).run(receiver));
            Handle { sender, last: Arc::new(Value::Null) }
        });
        let before = std::mem::replace(&mut handle.last, object.clone());
        if before.is_null() {
            let _ = handle.sender.send(Message::Changed(None, object));
        } else if before["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            let _ = handle.sender.send(Message::Changed(Some(before), object));
        }
    }

    /// Whether this container has to look at an Application at all.
    fn may_process(&self, app: &Value) -> bool {
        let namespace = app["metadata"]["namespace"].as_str().unwrap_or_default();
        let skips = is_true(&app["metadata"]["annotations"]["argocd.argoproj.io/skip-reconcile"]);
        let served = serves(namespace, &self.process.namespace, &self.settings.application_namespaces, self.version);
        served && !skips && self.owns_the_cluster()
    }

    /// Whether the one cluster that there is falls to this container. It has no id of its own, so it is shard 0.
    fn owns_the_cluster(&self) -> bool {
        let env = |name: &str| self.process.env.get(name).map(String::as_str);
        if env("ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            let all = self.argo.cluster.processes.of(Component::Controller);
            let first = all.iter().find(|process| process.namespace == self.process.namespace);
            return first.is_none_or(|first| first.pod == self.process.pod);
        }
        let replicas: u32 = env("ARGOCD_CONTROLLER_REPLICAS").and_then(|text| text.parse().ok()).unwrap_or(1);
        replicas <= 1 || settings::shard(&self.process).unwrap_or(0) == 0
    }

    /// The controller's clock, which may be wrong.
    fn now(&self) -> Timestamp {
        let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH);
        let skew = jiff::SignedDuration::from_secs(self.argo.cluster.faults.clock_skew_seconds());
        now.checked_add(skew).unwrap_or(now)
    }

    /// The fields that name an Application in its log lines.
    fn fields(&self, app: &Value) -> Vec<(&'static str, Value)> {
        fields(app, self.version)
    }

    /// The name under which an Application tracks its objects.
    fn instance_name(&self, namespace: &str, name: &str) -> String {
        if namespace == self.process.namespace { name.to_owned() } else { format!("{namespace}_{name}") }
    }
}

/// `2026-08-12T09:30:00Z`.
fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn key(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

fn fields(app: &Value, version: Version) -> Vec<(&'static str, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text(&app["metadata"]["namespace"]), text(&app["metadata"]["name"]));
    let qualified = format!("{namespace}/{name}");
    if !version.at_least(2, 12) {
        return vec![("application", json!(qualified))];
    }
    let mut fields = vec![
        ("app-namespace", json!(namespace)),
        ("application", json!(name)),
        ("project", json!(text(&app["spec"]["project"]))),
    ];
    if !version.at_least(3, 1) {
        fields.push(("app-qualified-name", json!(qualified)));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_named_in_the_log_as_each_version_does() {
        let app = json!({"metadata": {"namespace": "argocd", "name": "evt"}, "spec": {"project": "default"}});
        let named = |tag| {
            let fields = fields(&app, Version::of_tag(tag));
            fields
                .iter()
                .map(|(name, value)| format!("{name}={}", value.as_str().unwrap()))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(named("v2.11.0"), "application=argocd/evt");
        let old = "app-namespace=argocd application=evt project=default app-qualified-name=argocd/evt";
        assert_eq!(named("v3.0.0"), old);
        assert_eq!(named("v3.5.1"), "app-namespace=argocd application=evt project=default");
    }
}
