//! What happens inside the containers of Argo CD.

use std::{collections::HashMap, io, sync::Arc, time::SystemTime};

use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    Cluster,
    processes::{Component, Process},
};

mod controller;
mod duration;
mod faults;
mod git;
mod gopath;
mod gourl;
mod log;
mod manifests;
mod repo_server;
mod semver;
mod server;
pub mod settings;
mod startup;
pub mod version;
pub mod webhook;

pub use faults::ArgoFaults;
pub use startup::startup_log;

/// What the parts of Argo CD share.
pub(crate) struct Argo {
    cluster: Arc<Cluster>,
    repo: repo_server::RepoServer,
    _dir: tempfile::TempDir,
}

/// Starts the Git server on `git`, and everything that follows the containers in `cluster.processes`: a listener for
/// each argocd-server (it tells `cluster.endpoints` where), the controllers, the repo-servers. Called once, in the
/// runtime of the stand-in, before anything is installed; what it spawns ends with the runtime.
///
/// # Errors
/// What keeps a part from starting.
pub async fn start(cluster: Arc<Cluster>, git: TcpListener) -> io::Result<()> {
    tokio::spawn(cluster.git_server.clone().serve(git, cluster.git_root.clone()));
    let dir = tempfile::Builder::new().prefix("standin-repos-").tempdir()?;
    let repo = repo_server::RepoServer::new(cluster.clone(), dir.path().to_owned());
    let argo = Arc::new(Argo { cluster, repo, _dir: dir });
    for component in [Component::Controller, Component::RepoServer, Component::Server] {
        tokio::spawn(follow(argo.clone(), component));
    }
    Ok(())
}

/// What happens in one container until it is stopped.
async fn run(argo: Arc<Argo>, process: Process) {
    if settings::refuses_to_start(&process).is_some() {
        argo.cluster.processes.exit(&process.namespace, &process.pod, 1);
        return;
    }
    match process.component {
        Component::Controller => controller::run(argo, process).await,
        // Its work is done when a controller asks for it.
        Component::RepoServer => {}
        Component::Server => server::run(argo, process).await,
    }
}

/// Keeps a task for each running container of a component.
async fn follow(argo: Arc<Argo>, component: Component) {
    let mut tasks: HashMap<(String, String, SystemTime), JoinHandle<()>> = HashMap::new();
    let mut changes = argo.cluster.processes.changes();
    loop {
        changes.mark_unchanged();
        let running = argo.cluster.processes.of(component);
        let key = |process: &Process| (process.namespace.clone(), process.pod.clone(), process.started_at);
        tasks.retain(|known, task| {
            let runs = running.iter().any(|process| key(process) == *known);
            if !runs {
                task.abort();
            }
            runs
        });
        for process in running {
            tasks.entry(key(&process)).or_insert_with(|| tokio::spawn(run(argo.clone(), process)));
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// A number from 0 up to 1, for pauses that are random in Argo CD, too.
fn random() -> f64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
