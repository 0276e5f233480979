//! What happens inside the containers of Argo CD.

use std::{io, sync::Arc};

use tokio::net::TcpListener;

use crate::{Cluster, processes::Process};

mod duration;
mod gopath;
mod gourl;
mod log;
mod semver;
pub mod settings;
pub mod version;
pub mod webhook;

/// Starts the Git server on `git`, and everything that follows the containers in `cluster.processes`: a listener for
/// each argocd-server (it tells `cluster.endpoints` where), the controllers, the repo-servers. Called once, in the
/// runtime of the stand-in, before anything is installed; what it spawns ends with the runtime.
///
/// # Errors
/// What keeps a part from starting.
pub async fn start(cluster: Arc<Cluster>, git: TcpListener) -> io::Result<()> {
    tokio::spawn(cluster.git_server.clone().serve(git, cluster.git_root.clone()));
    Ok(())
}

/// The lines that the container prints when it starts.
pub fn startup_log(process: &Process) -> Vec<String> {
    settings::startup_log(process)
}
