//! The way in: each request is recorded, its fault happens to it, and its caller is identified.

use std::{io, sync::Arc, time::SystemTime};

use axum::{
    extract::Request,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde_json::json;
use tokio::time::sleep;

use super::{
    Query,
    access::{Attempt, Identity, identify},
    route,
    route::Route,
    selector::Selector,
    status::Status,
    text,
};
use crate::{Cluster, Outcome, requests};

/// Answers one request.
///
/// # Errors
/// When the connection is to be cut.
pub(crate) async fn answer(cluster: Arc<Cluster>, request: Request) -> io::Result<Response> {
    let identity = identify(&cluster.tokens, &cluster.store, request.headers());
    record(&cluster, &request);
    if matches!(request.uri().path(), "/healthz" | "/livez" | "/readyz") {
        return Ok("ok".into_response());
    }
    let watch = Query::of(&request).is_true("watch");
    let fault = cluster.faults.take(request.method().as_str(), request.uri().path(), watch);
    let cut = || io::Error::other("the connection is cut");
    match &fault {
        Some(Outcome::Refused { code: 403, .. }) => return Ok(forbidden(&identity, &request, watch)),
        Some(Outcome::Refused { code, retry_after_s }) => return Ok(refusal(*code, *retry_after_s)),
        Some(Outcome::Delayed(delay)) => sleep(*delay).await,
        Some(Outcome::Hung) => std::future::pending().await,
        Some(Outcome::Cut) => return Err(cut()),
        Some(Outcome::CutAfterwards | Outcome::HungAfterwards) | None => {}
    }
    let response = match identity {
        Ok(identity) => route(cluster, &identity, request).await.unwrap_or_else(IntoResponse::into_response),
        Err(status) => status.into_response(),
    };
    match fault {
        Some(Outcome::CutAfterwards) => Err(cut()),
        Some(Outcome::HungAfterwards) => std::future::pending().await,
        _ => Ok(response),
    }
}

/// The refusal of somebody who has no right to a request, whatever the Roles say.
fn forbidden(identity: &Result<Identity, Status>, request: &Request, watch: bool) -> Response {
    let user = identity.as_ref().map(|identity| identity.name.as_str()).unwrap_or_default();
    let Some(route) = Route::parse(request.uri().path()) else {
        let path = request.uri().path();
        return Status::new(403, "Forbidden", format!("forbidden: User \"{user}\" cannot get path \"{path}\""))
            .into_response();
    };
    let query = Query::of(request);
    let selector = Selector::parse(route.resource, query.get("labelSelector"), query.get("fieldSelector"));
    Attempt::of(request.method(), &route, watch, &selector.unwrap_or_default()).refused(user).into_response()
}

fn refusal(code: u16, retry_after_s: Option<u64>) -> Response {
    let (reason, message) = match code {
        401 => ("Unauthorized", "Unauthorized"),
        404 => ("NotFound", "the server could not find the requested resource"),
        409 => (
            "Conflict",
            "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version \
             and try again",
        ),
        410 => ("Expired", "The provided continue parameter is too old, or the resource version is"),
        429 => ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => ("Timeout", "the server was unable to return a response in the time allotted"),
        _ => ("InternalError", "Internal error occurred: etcdserver: request timed out"),
    };
    let mut status = Status::new(code, reason, message);
    if let Some(seconds) = retry_after_s {
        status.details = json!({"retryAfterSeconds": seconds});
    }
    let mut response = status.into_response();
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn record(cluster: &Cluster, request: &Request) {
    let as_user = text(request.headers(), "impersonate-user");
    cluster.requests.add(requests::Request {
        method: request.method().to_string(),
        path: request.uri().path().into(),
        query: request.uri().query().unwrap_or_default().into(),
        user: cluster.tokens.bearer(request.headers()).map(|bearer| bearer.name).unwrap_or_default(),
        as_user: Some(as_user).filter(|user| !user.is_empty()),
        at: SystemTime::now(),
    });
}
