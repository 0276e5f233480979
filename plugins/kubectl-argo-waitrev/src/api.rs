//! The requests: a list in pieces, one watch, one object. Each is made once; the back-off is the caller's.

use std::time::Duration;

use http_body_util::BodyExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kit::{
    application::AppName,
    cluster::{Ask, Cluster, Refused},
    error::Error,
};
use kube::{
    api::{GetParams, ListParams, WatchParams},
    client::Body,
    core::{Request, Status},
};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{scope::Scope, view::View, windows::Project};

const RESOURCE: &str = "applications.argoproj.io";

/// Applications in one piece of a list: a MB or two, since some are large.
const PAGE: u32 = 250;

/// How long the API server keeps a watch open. Short, so that a connection on which nothing arrives any more is noticed
/// soon: the server ends a healthy one by itself at this time.
const WATCH_SECONDS: u32 = 20;

/// When a watch that the server should have ended by itself is given up. Together with [`WATCH_SECONDS`], a half-open
/// connection is noticed within 25 s.
const WATCH_GRACE: Duration = Duration::from_secs(5);

/// A request that did not succeed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The status and what to tell the user.
    pub refused: Refused,
    /// When the server wants to be asked again.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// The HTTP status, or that of the event in the stream.
    pub fn status(&self) -> Option<u16> {
        self.refused.status
    }

    /// Whether there is no such Application; a server that does not serve the resource (yet) answers 404 too.
    pub fn is_missing(&self, name: &AppName) -> bool {
        self.status() == Some(404) && self.refused.error.message.contains(&format!("\"{}\" not found", name.name))
    }
}

/// All Applications of a scope, and the version at which this was so.
#[derive(Debug)]
pub struct Listed {
    /// The Applications.
    pub views: Vec<Box<View>>,
    /// The resource version.
    pub version: String,
}

/// What a watch tells.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
pub enum Told {
    /// A new Application, or one that came into the scope.
    Added(Box<View>),
    /// A changed one.
    Modified(Box<View>),
    /// One that is gone, or left the scope.
    Deleted(Box<View>),
    /// Nothing but a newer version.
    Bookmark(Box<View>),
    /// The end of the watch.
    Error(Box<Status>),
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default)]
    items: Vec<Box<View>>,
}

/// Lists the Applications of a scope; at the first look, without the histories that nothing is held against.
///
/// # Errors
/// The first request that failed.
pub async fn list(cluster: &Cluster, scope: &Scope, first: bool) -> Result<Listed, Failure> {
    let ask = scope.ask("list");
    let mut params = ListParams { limit: Some(PAGE), ..ListParams::default() };
    params.label_selector = scope.labels().map(str::to_owned);
    params.field_selector = scope.fields();
    let mut views = Vec::new();
    loop {
        let request = Request::new(scope.path()).list(&params).map_err(|error| unsendable(cluster, ask, error))?;
        let mut page: Page = one(cluster, ask, request).await?;
        if first {
            page.items.iter_mut().for_each(|view| view.forget_history());
        }
        views.extend(page.items.into_iter().filter(|view| scope.contains(&view.name())));
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params.continue_token = Some(token),
            _ => return Ok(Listed { views, version: page.metadata.resource_version.unwrap_or_default() }),
        }
    }
}

/// Reads one Application.
///
/// # Errors
/// The request failed; 404 when there is none.
pub async fn get(cluster: &Cluster, name: &AppName) -> Result<Box<View>, Failure> {
    let ask = Ask { verb: "get", resource: RESOURCE, namespace: &name.namespace, name: &name.name };
    let request = Request::new(crate::scope::namespaced(&name.namespace)).get(&name.name, &GetParams::default());
    one(cluster, ask, request.map_err(|error| unsendable(cluster, ask, error))?).await
}

/// Reads an AppProject.
///
/// # Errors
/// The request failed.
pub async fn project(cluster: &Cluster, namespace: &str, name: &str) -> Result<Project, Failure> {
    let ask = Ask { verb: "get", resource: "appprojects.argoproj.io", namespace, name };
    let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/appprojects");
    let request = Request::new(path).get(name, &GetParams::default());
    one(cluster, ask, request.map_err(|error| unsendable(cluster, ask, error))?).await
}

/// The names of all Applications of a namespace, for a hint.
pub async fn names(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let ask = Ask { verb: "list", resource: RESOURCE, namespace, name: "" };
    let params = ListParams { limit: Some(PAGE), ..ListParams::default() };
    let Ok(request) = Request::new(crate::scope::namespaced(namespace)).list(&params) else { return Vec::new() };
    let page = one::<Page>(cluster, ask, request).await;
    page.map(|page| page.items.into_iter().map(|view| view.metadata.name).collect()).unwrap_or_default()
}

/// A watch that is open.
pub struct Watch<'a> {
    cluster: &'a Cluster,
    ask: Ask<'a>,
    body: Body,
    /// What arrived of the lines that are not complete.
    buffer: Vec<u8>,
    /// Where the first line that was not handed out begins.
    start: usize,
    until: tokio::time::Instant,
}

/// Opens a watch of a scope from a version on.
///
/// # Errors
/// The request failed; 410 when the version is too old.
pub async fn watch<'a>(cluster: &'a Cluster, scope: &'a Scope, version: &str) -> Result<Watch<'a>, Failure> {
    let ask = scope.ask("watch");
    let params = WatchParams {
        label_selector: scope.labels().map(str::to_owned),
        field_selector: scope.fields(),
        timeout: Some(WATCH_SECONDS),
        ..WatchParams::default()
    };
    let mut request =
        Request::new(scope.path()).watch(&params, version).map_err(|error| unsendable(cluster, ask, error))?;
    // A compressed stream would be held back until a block is full.
    request.headers_mut().insert(http::header::ACCEPT_ENCODING, http::HeaderValue::from_static("identity"));
    let until = tokio::time::Instant::now() + Duration::from_secs(WATCH_SECONDS.into()) + WATCH_GRACE;
    let limit = cluster.limit.min(Duration::from_secs(WATCH_SECONDS.into()));
    let body = tokio::time::timeout(limit, send(cluster, ask, request)).await.map_err(|_| silent(cluster, ask))??;
    Ok(Watch { cluster, ask, body, buffer: Vec::new(), start: 0, until })
}

impl Watch<'_> {
    /// The next event; `None` when the server ended the watch as agreed.
    ///
    /// # Errors
    /// The connection broke, went silent, or said what cannot be read.
    pub async fn next(&mut self) -> Result<Option<Told>, Failure> {
        loop {
            if let Some(line) = self.line() {
                let told = serde_json::from_slice(&self.buffer[line]);
                return told.map(Some).map_err(|error| unreadable(self.cluster, self.ask, &error));
            }
            let frame = tokio::time::timeout_at(self.until, self.body.frame());
            match frame.await.map_err(|_| silent(self.cluster, self.ask))? {
                None => return Ok(None),
                Some(Ok(frame)) => self.buffer.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Some(Err(error)) => return Err(failure(self.cluster, self.ask, &error)),
            }
        }
    }

    /// Where in the buffer the next line is; what comes before it is forgotten once no whole line is left.
    fn line(&mut self) -> Option<std::ops::Range<usize>> {
        while let Some(length) = self.buffer[self.start..].iter().position(|byte| *byte == b'\n') {
            let line = self.start..self.start + length;
            self.start = line.end + 1;
            if !self.buffer[line.clone()].trim_ascii().is_empty() {
                return Some(line);
            }
        }
        self.buffer.drain(..std::mem::take(&mut self.start));
        None
    }
}

async fn one<T: DeserializeOwned>(
    cluster: &Cluster,
    ask: Ask<'_>,
    request: http::Request<Vec<u8>>,
) -> Result<T, Failure> {
    let whole = async {
        let body = send(cluster, ask, request).await?;
        let bytes = body.collect_bytes().await.map_err(|error| failure(cluster, ask, &error))?;
        serde_json::from_slice(&bytes).map_err(|error| unreadable(cluster, ask, &error))
    };
    tokio::time::timeout(cluster.limit, whole).await.map_err(|_| silent(cluster, ask))?
}

/// Sends a request and keeps what the server says about when to come back, which the client's own calls drop.
async fn send(cluster: &Cluster, ask: Ask<'_>, request: http::Request<Vec<u8>>) -> Result<Body, Failure> {
    let response = cluster.client.send(request.map(Body::from)).await.map_err(|error| failure(cluster, ask, &error))?;
    if response.status().is_success() {
        return Ok(response.into_body());
    }
    let code = response.status().as_u16();
    let header = response.headers().get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let bytes = response.into_body().collect_bytes().await.unwrap_or_default();
    // A proxy in between answers with a page of its own.
    let mut status: Status = serde_json::from_slice(&bytes).unwrap_or_default();
    status.code = code;
    if status.message.is_empty() && status.reason.is_empty() {
        let text = String::from_utf8_lossy(&bytes);
        status.message = format!("HTTP {code} {}", text.trim().chars().take(200).collect::<String>()).trim().into();
    }
    let retry_after = header.or_else(|| status.details.as_ref().map(|details| u64::from(details.retry_after_seconds)));
    let mut failed = failure(cluster, ask, &kube::Error::Api(Box::new(status)));
    failed.retry_after = retry_after.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    Err(failed)
}

/// The error that a watch told of.
pub fn told(cluster: &Cluster, scope: &Scope, status: Box<Status>) -> Failure {
    failure(cluster, scope.ask("watch"), &kube::Error::Api(status))
}

fn failure(cluster: &Cluster, ask: Ask<'_>, error: &kube::Error) -> Failure {
    Failure { refused: cluster.refused(ask, error), retry_after: None }
}

fn plain(cluster: &Cluster, code: &'static str, message: String) -> Failure {
    let error =
        Error::unknown(code, message).hint(format!("is {} reachable? --request-timeout sets the limit", cluster.url));
    Failure { refused: Refused { status: None, error }, retry_after: None }
}

fn silent(cluster: &Cluster, ask: Ask<'_>) -> Failure {
    plain(
        cluster,
        "timeout",
        format!("cannot {} {RESOURCE} (context {}): no answer in time", ask.verb, cluster.context),
    )
}

fn unreadable(cluster: &Cluster, ask: Ask<'_>, error: &serde_json::Error) -> Failure {
    let message = format!("cannot {} {RESOURCE} (context {}): not an Application: {error}", ask.verb, cluster.context);
    plain(cluster, "unreadable", message)
}

fn unsendable(cluster: &Cluster, ask: Ask<'_>, error: kube::core::request::Error) -> Failure {
    plain(cluster, "bad-request", format!("cannot {} {RESOURCE}: {error}", ask.verb))
}
