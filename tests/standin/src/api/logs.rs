//! `pods/log`.

use std::{sync::Arc, time::SystemTime};

use axum::{
    body::{Body, Bytes},
    http::header,
    response::Response,
};
use futures::stream;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Call, status::Status};
use crate::processes::Log;

/// The log of a container, as text; with `follow` it goes on until the container ends.
///
/// # Errors
/// 400 when it is not clear which container is meant or it has not started, 404 without the pod.
pub fn logs(call: Call) -> Result<Response, Status> {
    let (namespace, name) = (&call.route.namespace, &call.route.name);
    let pod =
        call.cluster.store.get("pods", namespace, name).ok_or_else(|| Status::not_found(call.resource(), name))?;
    let container = container(&pod, name, call.query.get("container"))?;
    let log = if call.query.is_true("previous") {
        call.cluster.logs.previous(namespace, name, &container).ok_or_else(|| {
            let message = format!("previous terminated container \"{container}\" in pod \"{name}\" not found");
            Status::bad_request(message)
        })?
    } else {
        call.cluster.logs.current(namespace, name, &container).ok_or_else(|| {
            let message = format!(
                "container \"{container}\" in pod \"{name}\" is waiting to start: {}",
                waiting(&pod, &container)
            );
            Status::bad_request(message)
        })?
    };
    let timestamps = call.query.is_true("timestamps");
    let tail = call.query.number("tailLines")?;
    let since = since(&call)?;
    let changes = log.changes();
    let lines = changes.borrow().clone();
    let mut chosen: Vec<_> = lines.iter().filter(|(at, _)| since.is_none_or(|since| *at >= since)).collect();
    if let Some(tail) = tail.and_then(|tail| usize::try_from(tail).ok()) {
        chosen.drain(..chosen.len().saturating_sub(tail));
    }
    let mut text: String = chosen.into_iter().map(|line| printed(line, timestamps)).collect();
    if let Some(limit) = call.query.number("limitBytes")?.and_then(|limit| usize::try_from(limit).ok()) {
        let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
    }
    let follow = call.query.is_true("follow") && !call.query.is_true("previous");
    let body = if follow { follow_from(call, container, log, text, lines.len(), timestamps) } else { Body::from(text) };
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain"));
    Ok(response)
}

fn container(pod: &Value, pod_name: &str, wanted: &str) -> Result<String, Status> {
    let names = |field: &str| -> Vec<String> {
        let containers = pod["spec"][field].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).map(str::to_owned).collect()
    };
    let (containers, init) = (names("containers"), names("initContainers"));
    match (wanted, containers.as_slice()) {
        ("", [only]) => Ok(only.clone()),
        ("", _) => {
            let mut message = format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                containers.join(" ")
            );
            if !init.is_empty() {
                message.push_str(&format!(" or one of the init containers: [{}]", init.join(" ")));
            }
            Err(Status::bad_request(message))
        }
        (wanted, _) if containers.iter().chain(&init).any(|name| name == wanted) => Ok(wanted.into()),
        (wanted, _) => Err(Status::bad_request(format!("container {wanted} is not valid for pod {pod_name}"))),
    }
}

fn waiting(pod: &Value, container: &str) -> String {
    let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let status =
        statuses.filter(|status| status["name"] == container).find_map(|s| s["state"]["waiting"]["reason"].as_str());
    let reason = status.unwrap_or("ContainerCreating");
    match reason {
        "ImagePullBackOff" | "ErrImagePull" => format!("trying and failing to pull image ({reason})"),
        reason => reason.into(),
    }
}

fn since(call: &Call) -> Result<Option<SystemTime>, Status> {
    if let Some(seconds) = call.query.number("sinceSeconds")? {
        return Ok(Some(SystemTime::now() - std::time::Duration::from_secs(seconds)));
    }
    match call.query.get("sinceTime") {
        "" => Ok(None),
        text => {
            let time: Timestamp =
                text.parse().map_err(|_| Status::bad_request(format!("invalid sinceTime: {text}")))?;
            Ok(Some(time.into()))
        }
    }
}

fn printed((at, line): &(SystemTime, String), timestamps: bool) -> String {
    if !timestamps {
        return format!("{line}\n");
    }
    let at = Timestamp::try_from(*at).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{} {line}\n", at.strftime("%Y-%m-%dT%H:%M:%S.%9fZ"))
}

fn follow_from(call: Call, container: String, log: Arc<Log>, first: String, mut seen: usize, timestamps: bool) -> Body {
    let (sender, receiver) = mpsc::channel::<Result<Bytes, std::io::Error>>(64);
    tokio::spawn(async move {
        let mut changes = log.changes();
        let mut started_or_stopped = call.cluster.logs.changes();
        let mut text = first;
        loop {
            if !text.is_empty() && sender.send(Ok(Bytes::from(text))).await.is_err() {
                return;
            }
            let current = call.cluster.logs.current(&call.route.namespace, &call.route.name, &container);
            let over = current.is_none_or(|current| !Arc::ptr_eq(&current, &log));
            text = {
                let lines = changes.borrow_and_update();
                // After a rotation the log is shorter than what was sent.
                let new = lines.get(seen..).unwrap_or(lines.as_slice()).iter();
                let text = new.map(|line| printed(line, timestamps)).collect();
                seen = lines.len();
                text
            };
            if !text.is_empty() {
                continue;
            }
            if over {
                return;
            }
            tokio::select! {
                _ = changes.changed() => {}
                _ = started_or_stopped.changed() => {}
                () = sender.closed() => return,
            }
        }
    });
    Body::from_stream(stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|text| (text, receiver))
    }))
}
