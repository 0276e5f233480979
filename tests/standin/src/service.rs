//! The cluster IP of a Service: connections to its ports are passed on to a ready pod, bytes for bytes.

use std::{io, sync::Arc};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use crate::{Cluster, api::backends};

/// Serves one port of the cluster IP until the runtime ends. Without a ready pod the connection is closed at once.
pub(crate) async fn serve(cluster: Arc<Cluster>, listener: TcpListener) -> io::Result<()> {
    let port = listener.local_addr()?.port();
    let mut turn = 0;
    loop {
        let Ok((mut client, _)) = listener.accept().await else { continue };
        let service = cluster.store.list("services", None).0.into_iter().find(|service| {
            let ports = service["spec"]["ports"].as_array().into_iter().flatten();
            ports.into_iter().any(|candidate| candidate["port"] == port)
        });
        let backends = service.map(|service| backends(&cluster, &service)).unwrap_or_default();
        turn += 1;
        let Some(backend) = backends.get(turn % backends.len().max(1)).copied() else { continue };
        tokio::spawn(async move {
            let Ok(mut server) = TcpStream::connect(backend).await else { return };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            // Either side may end it at any time.
            let _ = copy_bidirectional(&mut client, &mut server).await;
        });
    }
}
