//! `pods/portforward` over WebSocket, in the sub-protocol `v4.channel.k8s.io`.
//!
//! Each port has two channels, `2n` for data and `2n + 1` for an error text; a message is one byte of channel and then
//! bytes. The first message on each channel from the server is the port, 16 bits, low byte first. (kubernetes
//! pkg/kubelet/cri/streaming/portforward/websocket.go)

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Bytes,
    extract::{
        FromRequest, Request,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    response::{IntoResponse, Response},
};
use futures::{SinkExt, StreamExt, stream::SplitSink};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, tcp::OwnedWriteHalf},
    sync::Mutex,
    task::JoinSet,
};

use super::{Call, status::Status};

const PROTOCOL: &str = "v4.channel.k8s.io";

type Sink = Arc<Mutex<SplitSink<WebSocket, Message>>>;

/// Opens the tunnel.
///
/// # Errors
/// 400 without WebSocket, sub-protocol or port, 404 without the pod.
pub async fn portforward(call: Call, request: Request) -> Result<Response, Status> {
    let (namespace, name) = (call.route.namespace.clone(), call.route.name.clone());
    if call.cluster.store.get("pods", &namespace, &name).is_none() {
        return Err(Status::not_found(call.resource(), &name));
    }
    let ports: Vec<u16> = call
        .query
        .0
        .iter()
        .filter(|(key, _)| key == "ports" || key == "port")
        .flat_map(|(_, ports)| ports.split(','))
        .map(|port| port.parse().map_err(|_| Status::bad_request(format!("invalid port '{port}'"))))
        .collect::<Result<_, _>>()?;
    if ports.is_empty() {
        return Err(Status::bad_request("query parameter \"port\" is required"));
    }
    let upgrade = WebSocketUpgrade::from_request(request, &())
        .await
        .map_err(|_| Status::bad_request("unable to upgrade: only WebSocket is served"))?
        .protocols([PROTOCOL]);
    if upgrade.selected_protocol().is_none() {
        return Err(Status::bad_request(format!("unable to upgrade: the sub-protocol must be {PROTOCOL}")));
    }
    let targets: Vec<(u16, Option<SocketAddr>)> =
        ports.into_iter().map(|port| (port, listener(&call, &namespace, &name, port))).collect();
    Ok(upgrade.on_upgrade(move |socket| tunnel(socket, name, targets)).into_response())
}

/// The listener behind a port of the pod: argocd-server's is 8080 in every install.
fn listener(call: &Call, namespace: &str, name: &str, port: u16) -> Option<SocketAddr> {
    call.cluster.endpoints.get(namespace, name).filter(|_| port == 8080)
}

async fn tunnel(socket: WebSocket, pod: String, targets: Vec<(u16, Option<SocketAddr>)>) {
    let (sink, mut messages) = socket.split();
    let sink = Arc::new(Mutex::new(sink));
    let mut writers: Vec<Option<OwnedWriteHalf>> = Vec::new();
    let mut readers = JoinSet::new();
    for (index, (port, target)) in targets.into_iter().enumerate() {
        let data = u8::try_from(index * 2).unwrap_or(u8::MAX - 1);
        for channel in [data, data + 1] {
            send(&sink, channel, &port.to_le_bytes()).await;
        }
        let connected = match target {
            Some(target) => TcpStream::connect(target).await.ok(),
            None => None,
        };
        let Some(stream) = connected else {
            let text = format!(
                "error forwarding port {port} to pod {pod}: failed to connect to localhost:{port} inside namespace: dial tcp4 \
                 127.0.0.1:{port}: connect: connection refused"
            );
            send(&sink, data + 1, text.as_bytes()).await;
            writers.push(None);
            continue;
        };
        let (mut reader, writer) = stream.into_split();
        writers.push(Some(writer));
        let sink = sink.clone();
        readers.spawn(async move {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(read @ 1..) = reader.read(&mut buffer).await {
                send(&sink, data, &buffer[..read]).await;
            }
        });
    }
    // Once all streams are done, the kubelet closes the connection.
    let done = sink.clone();
    tokio::spawn(async move {
        readers.join_all().await;
        let _ = done.lock().await.close().await;
    });
    while let Some(Ok(message)) = messages.next().await {
        let Message::Binary(bytes) = message else { continue };
        let Some((channel, bytes)) = bytes.split_first() else { continue };
        if channel % 2 == 0
            && let Some(Some(writer)) = writers.get_mut(usize::from(channel / 2))
            && writer.write_all(bytes).await.is_err()
        {
            return;
        }
    }
}

async fn send(sink: &Sink, channel: u8, bytes: &[u8]) {
    let message = [&[channel], bytes].concat();
    // The client may have gone; the reading side notices that.
    let _ = sink.lock().await.send(Message::Binary(Bytes::from(message))).await;
}
