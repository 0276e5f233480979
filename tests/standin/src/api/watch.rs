//! Watches: what changes from a resource version on, as one stream of JSON lines.

use std::{io, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::header,
    response::Response,
};
use futures::stream;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch::Receiver},
    time::{Instant, sleep_until},
};

use super::{Call, status::Status};
use crate::{
    faults::WatchFaults,
    store::{Change, Event},
};

/// What is sent between two looks at the store may wait here until the client reads it.
const BUFFER: usize = 256;

/// Opens a watch.
///
/// # Errors
/// 400 for bad parameters, 422 for `sendInitialEvents`, as a server without streaming lists says it.
pub fn watch(call: Call) -> Result<Response, Status> {
    if !call.query.get("sendInitialEvents").is_empty() {
        let cause = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature \
                     gate is enabled";
        return Err(Status::invalid(call.resource(), "", cause));
    }
    let timeout = call.query.number("timeoutSeconds")?.map(Duration::from_secs);
    let text = call.query.get("resourceVersion");
    let start = match text {
        "" | "0" => None,
        text => Some(text.parse().map_err(|_| {
            let message = format!(
                "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
            );
            Status::bad_request(message)
        })?),
    };
    let (sender, receiver) = mpsc::channel(BUFFER);
    // Before the answer, so that a fault after it finds the watch open.
    let faults = call.cluster.faults.watches();
    let opened = *faults.borrow();
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    tokio::spawn(run(call, start, deadline, (opened, faults), sender));
    let lines = stream::unfold(receiver, |mut receiver| async { receiver.recv().await.map(|line| (line, receiver)) });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}

type Lines = mpsc::Sender<io::Result<Bytes>>;

/// Ends when the client goes, the time is over, or a fault ends it.
async fn run(
    call: Call,
    start: Option<u64>,
    deadline: Option<Instant>,
    (opened, mut faults): (WatchFaults, Receiver<WatchFaults>),
    lines: Lines,
) {
    let key = call.resource().key();
    let store = &call.cluster.store;
    let mut newest = store.newest();
    let every = call.cluster.options.bookmarks_every;
    let bookmarks = call.query.get("allowWatchBookmarks") == "true";
    let mut bookmark_at = Instant::now() + every;
    let mut version = match start {
        Some(version) => version,
        None => {
            let (objects, version) = store.list(&key, call.namespace());
            for object in objects.iter().filter(|object| call.selector.matches(object)) {
                if send(&lines, event("ADDED", &call.shape.object(call.resource(), object))).await.is_err() {
                    return;
                }
            }
            version
        }
    };
    loop {
        let now = *faults.borrow_and_update();
        if now.stalled != opened.stalled {
            lines.closed().await;
            return;
        }
        if now.aborted != opened.aborted {
            let _ = lines.send(Err(io::Error::other("the connection is cut"))).await;
            return;
        }
        if now.closed != opened.closed {
            return;
        }
        let seen = *newest.borrow_and_update();
        let Some(events) = store.since(&key, version).filter(|_| now.expired == opened.expired) else {
            let status = Status::expired(format!("too old resource version: {version} ({seen})"));
            let _ = send(&lines, event("ERROR", &status.object())).await;
            return;
        };
        for change in events {
            version = change.version;
            if let Some((kind, object)) = visible(&call, &change)
                && send(&lines, event(kind, &call.shape.object(call.resource(), &object))).await.is_err()
            {
                return;
            }
        }
        version = version.max(seen);
        let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if bookmarks && (over || Instant::now() >= bookmark_at) {
            bookmark_at = Instant::now() + every;
            if send(&lines, bookmark(&call, version)).await.is_err() {
                return;
            }
        }
        if over {
            return;
        }
        tokio::select! {
            _ = newest.changed() => {}
            _ = faults.changed() => {}
            () = lines.closed() => return,
            () = sleep_until(bookmark_at), if bookmarks => {}
            () = sleep_until(deadline.unwrap_or(bookmark_at)), if deadline.is_some() => {}
        }
    }
}

/// What the watch says of a change: an object that begins or ceases to be selected is added or deleted for it.
fn visible(call: &Call, change: &Event) -> Option<(&'static str, Arc<Value>)> {
    let in_namespace = call.namespace().is_none_or(|namespace| change.object["metadata"]["namespace"] == namespace);
    if !in_namespace {
        return None;
    }
    let before = change.before.as_ref().is_some_and(|object| call.selector.matches(object));
    let after = change.change != Change::Deleted && call.selector.matches(&change.object);
    let kind = match (before, after) {
        (false, true) => "ADDED",
        (true, true) => "MODIFIED",
        (true, false) => "DELETED",
        (false, false) => return None,
    };
    Some((kind, change.object.clone()))
}

fn event(kind: &str, object: &Value) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn bookmark(call: &Call, version: u64) -> String {
    let object = json!({
        "kind": call.resource().kind, "apiVersion": call.resource().api_version(),
        "metadata": {"resourceVersion": version.to_string(), "creationTimestamp": null},
    });
    event("BOOKMARK", &call.shape.object(call.resource(), &object))
}

async fn send(lines: &Lines, line: String) -> Result<(), ()> {
    lines.send(Ok(Bytes::from(line))).await.map_err(drop)
}
