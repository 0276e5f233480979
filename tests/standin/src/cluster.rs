//! What all parts share, and how it is set up.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::sync::watch;

use crate::{
    api::access::Tokens, faults::Faults, git_http::GitServer, install::Install, logs::Logs, processes::Processes,
    requests::Requests, store::Store,
};

/// How the containers write their logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line: the default since v3.0.
    Json,
    /// logrus text: the default before.
    Text,
}

/// What kind of cluster to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// The version of Argo CD, as in its image tag: `v3.5.1`.
    pub version: String,
    /// The namespace of the Argo CD install.
    pub namespace: String,
    /// The log format; `None` is the default of the version.
    pub log_format: Option<LogFormat>,
    /// Replicas of the application controller.
    pub controllers: u32,
    /// Replicas of the repo-server.
    pub repo_servers: u32,
    /// Replicas of argocd-server.
    pub servers: u32,
    /// How Argo CD was installed.
    pub install: Install,
    /// `data` of `argocd-cm`, beyond what the kind of install puts there.
    pub settings: BTreeMap<String, String>,
    /// `data` of `argocd-cmd-params-cm`, beyond what follows from `log_format`.
    pub parameters: BTreeMap<String, String>,
    /// Arguments of the application controller beyond its program: `--app-resync=60`.
    pub controller_args: Vec<String>,
    /// Entries of the controller's `env` that replace those of the same name, or come after all: a literal value, or a
    /// reference to another ConfigMap.
    pub controller_env: Vec<Value>,
    /// How long a new pod takes to become ready, and an old one to go.
    pub pod_start: Duration,
    /// How often a watch that allows bookmarks gets one.
    pub bookmarks_every: Duration,
    /// How long argocd-server takes to act on a changed `argocd-secret`.
    pub secret_reload: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            version: "v3.5.1".into(),
            namespace: "argocd".into(),
            log_format: None,
            controllers: 1,
            repo_servers: 1,
            servers: 1,
            install: Install::Stock,
            settings: BTreeMap::new(),
            parameters: BTreeMap::new(),
            controller_args: Vec::new(),
            controller_env: Vec::new(),
            pod_start: Duration::from_millis(50),
            bookmarks_every: Duration::from_secs(10),
            secret_reload: Duration::from_millis(300),
        }
    }
}

impl Options {
    /// The log format: as chosen, else the default of the version.
    pub fn log_format(&self) -> LogFormat {
        let old = self.version.trim_start_matches('v').starts_with("2.");
        self.log_format.unwrap_or(if old { LogFormat::Text } else { LogFormat::Json })
    }
}

/// Where the argocd-server of each pod listens, by namespace and pod. argocd-server writes it; the Service (its cluster
/// IP ports), the service proxy and port-forward read it.
#[derive(Default)]
pub struct Endpoints(watch::Sender<Addresses>);

type Addresses = BTreeMap<(String, String), SocketAddr>;

impl Endpoints {
    /// The server of a pod listens at `address`.
    pub fn open(&self, namespace: &str, pod: &str, address: SocketAddr) {
        self.0.send_modify(|all| {
            all.insert((namespace.into(), pod.into()), address);
        });
    }

    /// The server of a pod no longer listens.
    pub fn close(&self, namespace: &str, pod: &str) {
        self.0.send_modify(|all| {
            all.remove(&(namespace.into(), pod.into()));
        });
    }

    /// Where the server of a pod listens.
    pub fn get(&self, namespace: &str, pod: &str) -> Option<SocketAddr> {
        self.0.borrow().get(&(namespace.to_owned(), pod.to_owned())).copied()
    }

    /// All that listen in a namespace, in the order of the pods' names.
    pub fn of(&self, namespace: &str) -> Vec<SocketAddr> {
        self.0.borrow().iter().filter(|((ns, _), _)| ns == namespace).map(|(_, address)| *address).collect()
    }

    /// Changes when a server begins or ceases to listen.
    pub fn changes(&self) -> watch::Receiver<Addresses> {
        self.0.subscribe()
    }
}

/// What all parts share.
pub struct Cluster {
    /// The objects.
    pub store: Store,
    /// The running containers.
    pub processes: Processes,
    /// What kind of cluster it is.
    pub options: Options,
    /// Where each argocd-server listens.
    pub endpoints: Endpoints,
    /// What goes wrong at the moment.
    pub faults: Faults,
    /// What the API was asked for.
    pub requests: Requests,
    /// The bearer tokens that the API accepts.
    pub tokens: Tokens,
    /// What the containers have written.
    pub logs: Logs,
    /// The folder whose bare repositories are served over HTTP.
    pub git_root: PathBuf,
    /// `http://127.0.0.1:PORT/cgi-bin/git/`: the address of `git_root`.
    pub git_url: String,
    /// The server behind that address.
    pub git_server: Arc<GitServer>,
    /// The cluster IP ports of the Service argocd-server: `http` and `https`.
    pub service_ports: (u16, u16),
    /// Becomes true when the stand-in stops.
    pub(crate) stopping: watch::Sender<bool>,
}

impl Cluster {
    /// The state of a cluster without objects.
    pub(crate) fn new(options: Options, git_root: PathBuf, git_url: String, service_ports: (u16, u16)) -> Arc<Self> {
        Arc::new(Cluster {
            store: Store::default(),
            processes: Processes::default(),
            options,
            endpoints: Endpoints::default(),
            faults: Faults::default(),
            requests: Requests::default(),
            tokens: Tokens::default(),
            logs: Logs::default(),
            git_root,
            git_url,
            git_server: Arc::default(),
            service_ports,
            stopping: watch::Sender::new(false),
        })
    }
}
