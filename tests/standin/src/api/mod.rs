//! The Kubernetes API server: HTTPS, HTTP/1.1, bearer tokens.
//!
//! A request is identified, authorized, and answered by the module of its kind; what no module knows is answered 501 and
//! recorded.

pub mod access;
mod defaults;
mod discovery;
mod logs;
mod managed_fields;
mod objects;
mod patch;
mod portforward;
mod protobuf;
mod proxy;
pub mod resources;
mod reviews;
mod route;
mod selector;
mod serve;
pub mod status;
mod table;
mod watch;

use std::{io, sync::Arc, time::SystemTime};

use axum::{
    body::{Body, to_bytes},
    extract::{Query as AxumQuery, Request},
    http::{HeaderMap, HeaderValue, Method, header},
    response::{IntoResponse, Response},
};

use serde_json::{Value, json};
use tokio::time::sleep;

use self::{
    access::{Attempt, Identity, identify},
    resources::Resource,
    route::Route,
    selector::Selector,
    status::{Status, json_response},
    table::Shape,
};
use crate::{Cluster, Outcome, requests};

pub(crate) use proxy::backends;
pub(crate) use serve::serve;

/// The API server's own limit for a body (kubernetes staging/src/k8s.io/apiserver/pkg/server/config.go).
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The query of a URL.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    fn of(request: &Request) -> Query {
        AxumQuery::try_from_uri(request.uri()).map(|AxumQuery(pairs)| Query(pairs)).unwrap_or_default()
    }

    /// The first value; empty when there is none.
    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), "true" | "1")
    }

    /// # Errors
    /// 400: not a number.
    fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        match self.get(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Status::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax ({name})"))
            }),
        }
    }
}

/// A request to a resource.
pub(crate) struct Call {
    cluster: Arc<Cluster>,
    route: Route,
    query: Query,
    selector: Selector,
    shape: Shape,
    /// The field manager: the parameter, else the program's name from `User-Agent`.
    manager: String,
    api_version: String,
}

impl Call {
    fn resource(&self) -> &'static Resource {
        self.route.resource
    }

    /// The namespace of the path; `None` for all and for cluster-scoped resources.
    fn namespace(&self) -> Option<&str> {
        Some(self.route.namespace.as_str()).filter(|namespace| !namespace.is_empty())
    }

    /// # Errors
    /// 400 for anything but `All`.
    fn dry_run(&self) -> Result<bool, Status> {
        match self.query.get("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => {
                let message = format!("dryRun: Unsupported value: \"{other}\": supported values: \"All\"");
                Err(Status::new(422, "Invalid", message))
            }
        }
    }
}

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

async fn route(cluster: Arc<Cluster>, identity: &Identity, mut request: Request) -> Result<Response, Status> {
    let path = request.uri().path().to_owned();
    let accept = text(request.headers(), "accept");
    if request.method() == Method::GET {
        if let Some((media_type, document)) = discovery::document(&path, &accept) {
            let mut response = json_response(200, &document);
            if let Ok(media_type) = HeaderValue::from_str(&media_type) {
                response.headers_mut().insert(header::CONTENT_TYPE, media_type);
            }
            return Ok(response);
        }
        if path == "/openapi/v2" {
            // `swagger: "2.0"` and no definitions, in protobuf: kubectl falls back to what is built into it, and kubectl
            // before 1.24, which knows no version 3, validates nothing.
            let mut response = Response::new(Body::from("\x0a\x032.0"));
            let media_type = HeaderValue::from_static("application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
            response.headers_mut().insert(header::CONTENT_TYPE, media_type);
            return Ok(response);
        }
    }
    if request.method() == Method::POST
        && let Some(answer) = review(&cluster, identity, &path, &mut request).await
    {
        return answer.map(|answer| json_response(201, &answer));
    }
    let Some(route) = Route::parse(&path) else { return Err(unknown(&cluster, request.method(), &path)) };
    let query = Query::of(&request);
    let selector = Selector::parse(route.resource, query.get("labelSelector"), query.get("fieldSelector"))?;
    let watch = query.is_true("watch");
    Attempt::of(request.method(), &route, watch, &selector).authorize(&cluster.store, identity)?;

    let manager = match query.get("fieldManager") {
        "" => text(request.headers(), "user-agent").split('/').next().unwrap_or_default().to_owned(),
        manager => manager.to_owned(),
    };
    let api_version = route.resource.api_version();
    let call = Call { cluster, route, query, selector, shape: Shape::of(&accept), manager, api_version };
    match call.route.subresource.as_str() {
        "proxy" => return proxy::proxy(call, request).await,
        "log" => return logs::logs(call),
        "portforward" => return portforward::portforward(call, request).await,
        _ => {}
    }
    let media_type = text(request.headers(), "content-type");
    let method = request.method().clone();
    let body = read_body(request.into_body()).await?;
    let collection = call.route.name.is_empty();
    match method {
        Method::GET if collection && watch => watch::watch(call),
        Method::GET if collection => objects::list(&call),
        Method::GET => objects::get(&call),
        Method::POST if collection => objects::create(&call, decode(&media_type, &body)?),
        Method::PUT if !collection => objects::update(&call, &decode(&media_type, &body)?),
        Method::PATCH if !collection => objects::patch(&call, &media_type, &body),
        Method::DELETE if collection => objects::delete_collection(&call),
        Method::DELETE if body.is_empty() => objects::delete(&call, &Value::Null),
        Method::DELETE => objects::delete(&call, &decode(&media_type, &body)?),
        _ => Err(Status::method_not_allowed()),
    }
}

/// The answer to what is created and not kept; `None` for any other path.
async fn review(
    cluster: &Cluster,
    identity: &Identity,
    path: &str,
    request: &mut Request,
) -> Option<Result<Value, Status>> {
    if path == "/apis/authentication.k8s.io/v1/selfsubjectreviews" {
        return Some(Ok(reviews::subject(identity)));
    }
    if path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
        let media_type = text(request.headers(), "content-type");
        let body = read_body(std::mem::take(request.body_mut())).await;
        let review = body.and_then(|body| decode(&media_type, &body));
        return Some(review.map(|review| reviews::access(cluster, identity, &review)));
    }
    let parts: Vec<&str> = path.split('/').collect();
    let &["", "api", "v1", "namespaces", namespace, "serviceaccounts", name, "token"] = parts.as_slice() else {
        return None;
    };
    let attempt = Attempt {
        verb: "create".into(),
        group: String::new(),
        resource: "serviceaccounts/token".into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    let allowed = attempt.authorize(&cluster.store, identity);
    Some(allowed.and_then(|()| reviews::token(cluster, namespace, name)))
}

fn unknown(cluster: &Cluster, method: &Method, path: &str) -> Status {
    cluster.requests.add_unknown(format!("{method} {path}"));
    Status::new(501, "NotImplemented", format!("the stand-in does not know {method} {path}"))
}

async fn read_body(body: Body) -> Result<axum::body::Bytes, Status> {
    to_bytes(body, BODY_LIMIT).await.map_err(|_| {
        Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {BODY_LIMIT}"))
    })
}

/// # Errors
/// 400 for what cannot be read, 415 for other media types.
fn decode(media_type: &str, body: &[u8]) -> Result<Value, Status> {
    match media_type.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" => serde_json::from_slice(body).map_err(|error| {
            let message =
                format!("the object provided is unrecognized: couldn't get version/kind; json parse error: {error}");
            Status::bad_request(message)
        }),
        "application/vnd.kubernetes.protobuf" => protobuf::decode(body).ok_or_else(|| {
            Status::unsupported_media_type("application/json (protobuf for Secrets, ConfigMaps and RBAC only)")
        }),
        _ => Err(Status::unsupported_media_type("application/json, application/vnd.kubernetes.protobuf")),
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}
