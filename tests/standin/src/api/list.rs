//! list, whole or in chunks.

use std::sync::Arc;

use axum::{body::Body, http::header, response::Response};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{Call, status::Status};

/// The objects of a resource, or one chunk of them.
///
/// # Errors
/// 400 for bad parameters, 410 for a `continue` from before what the log keeps.
pub fn list(call: &Call) -> Result<Response, Status> {
    let (all, newest) = call.cluster.store.list(&call.resource().key(), call.namespace());
    let chunk = Chunk::parse(call, newest)?;
    let selected = all.iter().filter(|object| chunk.is_after(object) && call.selector.matches(object));
    let mut objects: Vec<&Value> = selected.map(Arc::as_ref).collect();
    let mut metadata = json!({"resourceVersion": chunk.version.to_string()});
    if let Some(limit) = chunk.limit.filter(|limit| *limit < objects.len()) {
        let rest = objects.split_off(limit);
        metadata["continue"] = json!(chunk.after(objects[limit - 1]));
        if call.selector.is_empty() {
            metadata["remainingItemCount"] = json!(rest.len());
        }
    }
    let mut response = Response::new(Body::from(call.shape.list(call.resource(), metadata, &objects)));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Where in a list a request is, and how much it wants. A chunk repeats the resource version of the first one, but shows
/// the objects as they are now; a watch from that version tells of the difference.
struct Chunk {
    version: u64,
    start: Option<(String, String)>,
    limit: Option<usize>,
}

impl Chunk {
    fn parse(call: &Call, newest: u64) -> Result<Chunk, Status> {
        let limit = call.query.number("limit")?.filter(|limit| *limit > 0);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let token = call.query.get("continue");
        if token.is_empty() {
            return Ok(Chunk { version: newest, start: None, limit });
        }
        let invalid = || Status::bad_request("continue key is not valid: illegal base64 data");
        let token: Value =
            STANDARD.decode(token).ok().and_then(|text| serde_json::from_slice(&text).ok()).ok_or_else(invalid)?;
        let version = token["rv"].as_u64().ok_or_else(invalid)?;
        if call.cluster.store.since(&call.resource().key(), version).is_none() {
            let message = "The provided continue parameter is too old to display a consistent list result. You can start a \
                           new list without the continue parameter.";
            return Err(Status::expired(message));
        }
        let text = |field: &str| token[field].as_str().unwrap_or_default().to_owned();
        Ok(Chunk { version, start: Some((text("namespace"), text("name"))), limit })
    }

    fn is_after(&self, object: &Value) -> bool {
        self.start.as_ref().is_none_or(|(namespace, name)| {
            let metadata = &object["metadata"];
            let key =
                (metadata["namespace"].as_str().unwrap_or_default(), metadata["name"].as_str().unwrap_or_default());
            key > (namespace.as_str(), name.as_str())
        })
    }

    fn after(&self, last: &Value) -> String {
        let metadata = &last["metadata"];
        STANDARD.encode(
            json!({"rv": self.version, "namespace": metadata["namespace"], "name": metadata["name"]}).to_string(),
        )
    }
}
