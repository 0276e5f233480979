//! The containers that run: the seam between the workloads, which start and stop them, and Argo CD, which is what
//! happens inside them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use tokio::sync::watch;

/// The parts of Argo CD that the stand-in acts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// `argocd-application-controller`.
    Controller,
    /// `argocd-repo-server`.
    RepoServer,
    /// `argocd-server`.
    Server,
}

/// One running container of a component.
#[derive(Clone, Debug)]
pub struct Process {
    /// The pod's namespace and name.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// What runs in it.
    pub component: Component,
    /// The environment as it was resolved when the container started; nothing re-reads it.
    pub env: BTreeMap<String, String>,
    /// `spec.containers[].args`, and `command` before them.
    pub args: Vec<String>,
    /// `v3.5.1`: the tag of its image.
    pub version: String,
    /// When it started.
    pub started_at: SystemTime,
    /// What it has written to its log.
    pub log: Arc<Log>,
}

impl Process {
    /// Adds a line to the log.
    pub fn print(&self, line: impl Into<String>) {
        self.log.print(line);
    }
}

/// What a container has written, with the time of each line.
#[derive(Debug, Default)]
pub struct Log(watch::Sender<Vec<(SystemTime, String)>>);

impl Log {
    /// Adds a line.
    pub fn print(&self, line: impl Into<String>) {
        self.0.send_modify(|lines| lines.push((SystemTime::now(), line.into())));
    }

    /// All lines, without their times.
    pub fn lines(&self) -> Vec<String> {
        self.0.borrow().iter().map(|(_, line)| line.clone()).collect()
    }

    /// Changes with every line.
    pub fn changes(&self) -> watch::Receiver<Vec<(SystemTime, String)>> {
        self.0.subscribe()
    }

    /// Forgets all lines so far, as the rotation of a log file does for `kubectl logs`.
    pub fn rotate(&self) {
        self.0.send_modify(Vec::clear);
    }
}

/// All running containers, by namespace and pod.
#[derive(Default)]
pub struct Processes {
    running: watch::Sender<BTreeMap<(String, String), Process>>,
    exits: Mutex<BTreeMap<(String, String), i32>>,
}

impl Processes {
    /// Adds a started container.
    pub fn start(&self, process: Process) {
        self.running.send_modify(|all| {
            all.insert((process.namespace.clone(), process.pod.clone()), process);
        });
    }

    /// Forgets the container of a pod; its log goes with it.
    pub fn stop(&self, namespace: &str, pod: &str) {
        self.running.send_modify(|all| {
            all.remove(&(namespace.to_owned(), pod.to_owned()));
        });
    }

    /// The running containers of a component, in the order of their names.
    pub fn of(&self, component: Component) -> Vec<Process> {
        self.running.borrow().values().filter(|process| process.component == component).cloned().collect()
    }

    /// The container of a pod.
    pub fn get(&self, namespace: &str, pod: &str) -> Option<Process> {
        self.running.borrow().get(&(namespace.to_owned(), pod.to_owned())).cloned()
    }

    /// Changes whenever a container starts or stops.
    pub fn changes(&self) -> watch::Receiver<BTreeMap<(String, String), Process>> {
        self.running.subscribe()
    }

    /// The process in the container of a pod has ended by itself. The kubelet shows that and starts the container again,
    /// in place: the pod stays, and the environment is read again.
    pub fn exit(&self, namespace: &str, pod: &str, code: i32) {
        let key = (namespace.to_owned(), pod.to_owned());
        self.exits.lock().expect("no thread panics while it holds the exits").insert(key, code);
        self.stop(namespace, pod);
    }

    /// The code with which the process of a pod has ended since the last time this was asked.
    pub(crate) fn take_exit(&self, namespace: &str, pod: &str) -> Option<i32> {
        let key = (namespace.to_owned(), pod.to_owned());
        self.exits.lock().expect("no thread panics while it holds the exits").remove(&key)
    }
}
