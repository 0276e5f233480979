//! The logs of containers, by pod and container: of the one that runs, and of the one before it in the same pod.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::watch;

use crate::processes::Log;

type Key = (String, String, String);

#[derive(Clone, Debug, Default)]
struct OfContainer {
    current: Option<Arc<Log>>,
    previous: Option<Arc<Log>>,
}

/// All logs that `kubectl logs` can show.
#[derive(Default)]
pub struct Logs(watch::Sender<BTreeMap<Key, OfContainer>>);

impl Logs {
    /// A container has started and writes to `log`; what it wrote before, in the same pod, becomes the previous log.
    pub fn start(&self, namespace: &str, pod: &str, container: &str, log: Arc<Log>) {
        self.0.send_modify(|all| {
            let entry = all.entry(key(namespace, pod, container)).or_default();
            entry.previous = entry.current.replace(log);
        });
    }

    /// The container has ended; until it starts again, its log is the current and the previous one.
    pub fn end(&self, namespace: &str, pod: &str, container: &str) {
        self.0.send_modify(|all| {
            if let Some(entry) = all.get_mut(&key(namespace, pod, container)) {
                entry.previous.clone_from(&entry.current);
            }
        });
    }

    /// The pod is gone, and its logs with it.
    pub fn forget(&self, namespace: &str, pod: &str) {
        self.0.send_modify(|all| all.retain(|(ns, name, _), _| ns != namespace || name != pod));
    }

    /// What a container has written since it started last.
    pub fn current(&self, namespace: &str, pod: &str, container: &str) -> Option<Arc<Log>> {
        self.0.borrow().get(&key(namespace, pod, container))?.current.clone()
    }

    /// What it had written before that.
    pub fn previous(&self, namespace: &str, pod: &str, container: &str) -> Option<Arc<Log>> {
        self.0.borrow().get(&key(namespace, pod, container))?.previous.clone()
    }

    /// Changes when a container starts or a pod goes.
    pub fn changes(&self) -> watch::Receiver<impl Sized + use<>> {
        self.0.subscribe()
    }
}

fn key(namespace: &str, pod: &str, container: &str) -> Key {
    (namespace.into(), pod.into(), container.into())
}
