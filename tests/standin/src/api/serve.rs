//! The listener: TLS, connections, and the time in which there is none.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{body::Body, http::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};
use tokio_rustls::TlsAcceptor;

use super::gate::answer;
use crate::Cluster;

/// Serves until the runtime ends. While connections are refused, the port is closed and the open ones are cut; then it
/// listens on the same port again.
pub(crate) async fn serve(cluster: Arc<Cluster>, listener: TcpListener, tls: Arc<ServerConfig>) -> io::Result<()> {
    let address = listener.local_addr()?;
    let acceptor = TlsAcceptor::from(tls);
    let mut unreachable = cluster.faults.unreachable();
    let mut listener = Some(listener);
    loop {
        let open = match listener.take() {
            Some(listener) => listener,
            None => listen_again(address).await,
        };
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = open.accept() => {
                    if let Ok((stream, _)) = accepted {
                        connections.spawn(connection(cluster.clone(), acceptor.clone(), stream));
                    }
                }
                Some(_) = connections.join_next() => {}
                _ = unreachable.wait_for(|refused| *refused) => break,
            }
        }
        drop(open);
        connections.shutdown().await;
        if unreachable.wait_for(|refused| !*refused).await.is_err() {
            return Ok(());
        }
    }
}

async fn listen_again(address: SocketAddr) -> TcpListener {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            // Somebody's outgoing connection has the port for the moment.
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn connection(cluster: Arc<Cluster>, acceptor: TlsAcceptor, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let cluster = cluster.clone();
        async move { answer(cluster, request.map(Body::new)).await }
    });
    // An error here is the client's, which went away, or was asked for.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}
