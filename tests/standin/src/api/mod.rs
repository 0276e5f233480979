//! The Kubernetes API server: HTTPS, HTTP/1.1, bearer tokens.
//!
//! A request is identified, authorized, and answered by the module of its kind; what no module knows is answered 501 and
//! recorded.

pub mod access;
mod defaults;
mod delete;
mod discovery;
mod gate;
mod list;
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

use std::sync::Arc;

use axum::{
    body::{Body, to_bytes},
    extract::{Query as AxumQuery, Request},
    http::{HeaderMap, HeaderValue, Method, header},
    response::Response,
};

use serde_json::Value;

use self::{
    access::{Attempt, Identity},
    resources::Resource,
    route::Route,
    selector::Selector,
    status::{Status, json_response},
    table::Shape,
};
use crate::Cluster;

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

/// Answers one request of somebody who is known.
///
/// # Errors
/// Whatever the request is refused with.
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
        && let Some(answer) = reviews::review(&cluster, identity, &path, &mut request).await
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
        Method::GET if collection => list::list(&call),
        Method::GET => objects::get(&call),
        Method::POST if collection => objects::create(&call, decode(&media_type, &body)?),
        Method::PUT if !collection => objects::update(&call, &decode(&media_type, &body)?),
        Method::PATCH if !collection => objects::patch(&call, &media_type, &body),
        Method::DELETE if collection => delete::delete_collection(&call),
        Method::DELETE if body.is_empty() => delete::delete(&call, &Value::Null),
        Method::DELETE => delete::delete(&call, &decode(&media_type, &body)?),
        _ => Err(Status::method_not_allowed()),
    }
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
