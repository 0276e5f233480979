//! To a port of one pod, as `kubectl port-forward` does it: one local connection, passed on through the API server.

use std::net::{Ipv4Addr, SocketAddr};

use k8s_openapi::api::core::v1::Pod;
use kit::{
    cluster::{Ask, Cluster},
    error::Error,
    exit::Exit,
};
use kube::{Api, client::UpgradeConnectionError};
use tokio::net::TcpListener;

use super::{Direct, PodPort, Trouble};

/// Opens the way; its local end takes one connection.
pub(super) async fn open(to: &PodPort) -> Result<Direct, Trouble> {
    let local = forward(&to.cluster, &to.pod, to.port).await?;
    Direct::to_forward(&to.cluster, local, &to.path, to.tls.clone()).map_err(Trouble::Fatal)
}

async fn forward(cluster: &Cluster, pod: &str, port: u16) -> Result<SocketAddr, Trouble> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let mut forward = match tokio::time::timeout(cluster.limit, api.portforward(pod, &[port])).await {
        Ok(Ok(forward)) => forward,
        Ok(Err(error)) => return Err(refused(cluster, pod, &error)),
        Err(_) => return Err(Trouble::TimedOut(cluster.limit)),
    };
    let local = async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok::<_, std::io::Error>((listener.local_addr()?, listener))
    };
    let (address, listener) = local.await.map_err(|error| {
        Trouble::Fatal(Error::unknown("no-port", format!("cannot listen on the loopback address: {error}")))
    })?;
    let Some(mut stream) = forward.take_stream(port) else {
        return Err(Trouble::NotConnected(format!("the port-forward to {pod} has no port {port}")));
    };
    tokio::spawn(async move {
        if let Ok((mut connection, _)) = listener.accept().await {
            drop(listener);
            // How it ended shows on the connection itself.
            let _ = tokio::io::copy_bidirectional(&mut connection, &mut stream).await;
        }
        drop(stream);
        let _ = forward.join().await;
    });
    Ok(address)
}

fn refused(cluster: &Cluster, pod: &str, error: &kube::Error) -> Trouble {
    // A WebSocket begins with a GET; newer API servers ask for `create` as well, and say so.
    let verb = match error {
        kube::Error::Api(status) if status.message.contains("cannot create ") => "create",
        _ => "get",
    };
    let ask = Ask { verb, resource: "pods/portforward", namespace: &cluster.namespace, name: pod };
    if let kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(status)) = error {
        let what = format!("cannot forward a port of pod {}/{pod} (context {})", cluster.namespace, cluster.context);
        return match status.as_u16() {
            401 | 403 => Trouble::Fatal(Error::new(Exit::Denied, "forbidden", format!("{what}: {status}")).hint(
                format!("needs the verbs `get` and `create` on `pods/portforward` in namespace {}", cluster.namespace),
            )),
            _ => Trouble::NotConnected(format!("{what}: {status}")),
        };
    }
    let refused = cluster.refused(ask, error).error;
    if refused.exit == Exit::Unknown { Trouble::NotConnected(refused.message) } else { Trouble::Fatal(refused) }
}
