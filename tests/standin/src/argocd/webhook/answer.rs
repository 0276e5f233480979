//! What argocd-server answers to a request, before anything is looked up: which parser takes it, what that one checks
//! and in which order (argo-cd v3.5.1 util/webhook/scm.go, ghcr.go; go-playground/webhooks v6.4.0, and the older ones).

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{KeyInit, Mac};
use hyper::{HeaderMap, Method, StatusCode};
use serde_json::Value;

use super::{event::Provider, secrets::Secrets, types};
use crate::argocd::{log::Level, version::Version};

/// A request as far as the checks look at it.
pub struct Request<'a> {
    /// The method.
    pub method: &'a Method,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body; `None` when it is longer than the limit.
    pub body: Option<&'a [u8]>,
}

/// What is handed to the workers.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// A push.
    Push(Provider, Value),
    /// A ping, or an event that concerns no repository.
    Other,
    /// A container image, with its repository at ghcr.io and its tag.
    Image(String, String),
}

/// A line for the log; whether it is marked as one about security.
pub type Line = (Level, String, bool);

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// 200 without a body.
    Accepted(Option<Payload>),
    /// A status, a line of text, and lines for the log.
    Refused(StatusCode, String, Vec<Line>),
    /// The handler panics, and the connection ends without an answer.
    HangUp,
}

/// Why a parser refuses.
#[derive(Clone, Debug, PartialEq)]
enum Fault {
    Method,
    Event,
    UnknownEvent(String),
    SystemHook,
    Missing(&'static str),
    /// With the name that the log has for the provider.
    Hmac(&'static str),
    Token,
    Uuid,
    BasicAuth,
    /// No body, too long a body, or Azure's that is no JSON.
    Payload,
    Json(String),
    Registry,
    Panic,
}

/// Answers a request.
pub fn answer(request: &Request, secrets: &Secrets, version: Version, limit_mb: u64) -> Answer {
    let parsed = match parser(request, version) {
        None => {
            let line = (Level::Debug, "Ignoring unknown webhook event".into(), false);
            return Answer::Refused(StatusCode::BAD_REQUEST, "Unknown webhook event".into(), vec![line]);
        }
        Some(parse) => parse(request, secrets, version),
    };
    parsed.map_or_else(|fault| refuse(&fault, request.method, version, limit_mb), Answer::Accepted)
}

type Parsed = Result<Option<Payload>, Fault>;
type Parser = fn(&Request, &Secrets, Version) -> Parsed;

/// The first parser whose header is there takes the request.
fn parser(request: &Request, version: Version) -> Option<Parser> {
    let has = |name: &str| request.header(name).is_some();
    let package = version.at_least(3, 5) && request.header("x-github-event") == Some("package");
    let table: [(bool, Parser); 7] = [
        (version.at_least(2, 9) && has("x-vss-activityid"), azure),
        (has("x-gogs-event"), gogs),
        (has("x-github-event") && !package, github),
        (has("x-gitlab-event"), gitlab),
        (has("x-hook-uuid"), bitbucket),
        (has("x-event-key"), bitbucket_server),
        (package, ghcr),
    ];
    table.into_iter().find_map(|(takes, parser)| takes.then_some(parser))
}

impl Request<'_> {
    /// A header's value; an empty one is as good as none.
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty())
    }

    fn must_be_post(&self) -> Result<(), Fault> {
        if self.method == Method::POST { Ok(()) } else { Err(Fault::Method) }
    }

    fn body(&self) -> Result<&[u8], Fault> {
        self.body.filter(|body| !body.is_empty()).ok_or(Fault::Payload)
    }
}

fn github(request: &Request, secrets: &Secrets, version: Version) -> Parsed {
    request.must_be_post()?;
    let event = request.header("x-github-event").unwrap_or_default();
    if !matches!(event, "push" | "ping") {
        return Err(Fault::Event);
    }
    let body = request.body()?;
    if !secrets.github.is_empty() {
        if version.at_least(2, 13) {
            let signature = request.header("x-hub-signature-256").ok_or(Fault::Missing("X-Hub-Signature-256"))?;
            let signature = signature.strip_prefix("sha256=").unwrap_or(signature);
            check(signature == sha256(&secrets.github, body), Fault::Hmac("GitHub"))?;
        } else {
            // The older library: SHA-1 only, and five characters cut off unread.
            let signature = request.header("x-hub-signature").ok_or(Fault::Missing("X-Hub-Signature"))?;
            let signature = signature.get(5..).ok_or(Fault::Panic)?;
            check(signature == sha1(&secrets.github, body), Fault::Hmac("GitHub"))?;
        }
    }
    let json = json(body)?;
    if event == "ping" {
        return Ok(Some(Payload::Other));
    }
    push(Provider::GitHub, json)
}

fn gogs(request: &Request, secrets: &Secrets, _: Version) -> Parsed {
    request.must_be_post()?;
    check(request.header("x-gogs-event") == Some("push"), Fault::Event)?;
    let body = request.body()?;
    if !secrets.gogs.is_empty() {
        let signature = request.header("x-gogs-signature").ok_or(Fault::Missing("X-Gogs-Signature"))?;
        check(signature == sha256(&secrets.gogs, body), Fault::Hmac("Gogs"))?;
    }
    push(Provider::Gogs, json(body)?)
}

fn gitlab(request: &Request, secrets: &Secrets, version: Version) -> Parsed {
    request.must_be_post()?;
    // Since v2.9 the token is compared also with a secret that is not configured.
    if version.at_least(2, 9) || !secrets.gitlab.is_empty() {
        check(request.header("x-gitlab-token").unwrap_or_default() == secrets.gitlab, Fault::Token)?;
    }
    let event = request.header("x-gitlab-event").unwrap_or_default();
    let body = request.body()?;
    match event {
        "Push Hook" | "Tag Push Hook" => push(Provider::GitLab, json(body)?),
        "System Hook" => system_hook(json(body)?),
        _ => Err(Fault::Event),
    }
}

fn system_hook(body: Value) -> Parsed {
    const IGNORED: [&str; 20] = [
        "project_create",
        "project_destroy",
        "project_rename",
        "project_transfer",
        "project_update",
        "user_add_to_team",
        "user_remove_from_team",
        "user_update_for_team",
        "user_create",
        "user_destroy",
        "user_failed_login",
        "user_rename",
        "key_create",
        "key_destroy",
        "group_create",
        "group_destroy",
        "group_rename",
        "user_add_to_group",
        "user_remove_from_group",
        "user_update_for_group",
    ];
    let kind = match body["object_kind"].as_str() {
        Some(kind @ ("push" | "tag_push" | "merge_request")) => kind,
        _ => body["event_name"].as_str().unwrap_or_default(),
    };
    match kind {
        "push" | "tag_push" => push(Provider::GitLab, body),
        "merge_request" => Err(Fault::Event),
        kind if IGNORED.contains(&kind) => Ok(Some(Payload::Other)),
        _ => Err(Fault::SystemHook),
    }
}

fn bitbucket(request: &Request, secrets: &Secrets, _: Version) -> Parsed {
    request.must_be_post()?;
    let event = request.header("x-event-key").ok_or(Fault::Missing("X-Event-Key"))?;
    let uuid = request.header("x-hook-uuid").unwrap_or_default();
    check(secrets.bitbucket_uuid.is_empty() || uuid == secrets.bitbucket_uuid, Fault::Uuid)?;
    check(event == "repo:push", Fault::Event)?;
    push(Provider::Bitbucket, json(request.body()?)?)
}

fn bitbucket_server(request: &Request, secrets: &Secrets, _: Version) -> Parsed {
    request.must_be_post()?;
    match request.header("x-event-key").unwrap_or_default() {
        "diagnostics:ping" => return Ok(Some(Payload::Other)),
        "repo:refs_changed" => {}
        _ => return Err(Fault::Event),
    }
    let body = request.body()?;
    if !secrets.bitbucket_server.is_empty() {
        let signature = request.header("x-hub-signature").ok_or(Fault::Missing("X-Hub-Signature"))?;
        let signature = signature.get(7..).ok_or(Fault::Panic)?;
        check(signature == sha256(&secrets.bitbucket_server, body), Fault::Hmac("BitBucket"))?;
    }
    push(Provider::BitbucketServer, json(body)?)
}

fn azure(request: &Request, secrets: &Secrets, version: Version) -> Parsed {
    let (username, password) = (&secrets.azure_username, &secrets.azure_password);
    // Before v2.13 one of the two alone was no reason to check.
    let checks = if version.at_least(2, 13) {
        !username.is_empty() || !password.is_empty()
    } else {
        !username.is_empty() && !password.is_empty()
    };
    if checks {
        let sent = request.header("authorization").and_then(|value| {
            let (scheme, login) = value.split_once(' ')?;
            let login = String::from_utf8(STANDARD.decode(login).ok()?).ok()?;
            scheme.eq_ignore_ascii_case("basic").then_some(login)
        });
        check(sent == Some(format!("{username}:{password}")), Fault::BasicAuth)?;
    }
    request.must_be_post()?;
    let body = json(request.body()?).map_err(|_| Fault::Payload)?;
    match body["eventType"].as_str().unwrap_or_default() {
        "git.push" => push(Provider::AzureDevOps, body),
        "git.pullrequest.created" | "git.pullrequest.updated" | "git.pullrequest.merged" | "build.complete" => {
            Ok(Some(Payload::Other))
        }
        other => Err(Fault::UnknownEvent(other.into())),
    }
}

fn ghcr(request: &Request, secrets: &Secrets, _: Version) -> Parsed {
    // An empty body is no error here, it is JSON that ends too early.
    let body = request.body.ok_or_else(|| Fault::Json("http: request body too large".into()))?;
    if !secrets.github.is_empty() {
        let signature = request.header("x-hub-signature-256").unwrap_or_default();
        check(signature == format!("sha256={}", sha256(&secrets.github, body)), Fault::Registry)?;
    }
    let body = json(body)?;
    let package = &body["package"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tag = text(&package["package_version"]["container_metadata"]["tag"]["name"]);
    let container = text(&package["package_type"]).eq_ignore_ascii_case("container");
    if body["action"] != "published" || !container || tag.is_empty() {
        return Ok(None);
    }
    let repository = format!("{}/{}", text(&package["owner"]["login"]), text(&package["name"]));
    Ok(Some(Payload::Image(repository, tag)))
}

fn push(provider: Provider, body: Value) -> Parsed {
    types::check(provider, &body).map_err(Fault::Json)?;
    Ok(Some(Payload::Push(provider, body)))
}

fn check(holds: bool, fault: Fault) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(fault) }
}

fn json(body: &[u8]) -> Result<Value, Fault> {
    serde_json::from_slice(body).map_err(|error| Fault::Json(as_go_says(&error, body)))
}

/// Go's words for JSON that is none.
fn as_go_says(error: &serde_json::Error, body: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".into();
    }
    let line_start = body.split(|byte| *byte == b'\n').take(error.line() - 1).map(|line| line.len() + 1).sum::<usize>();
    let at = (line_start + error.column()).saturating_sub(1);
    let found = body.get(at).map_or(' ', |byte| *byte as char);
    format!("invalid character {} looking for beginning of value", quoted(found))
}

fn quoted(c: char) -> String {
    match c {
        '\'' => r"'\''".into(),
        '"' => "'\"'".into(),
        c => format!("{c:?}"),
    }
}

fn sha256(key: &str, body: &[u8]) -> String {
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(key.as_bytes()).expect("a key may have any length");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

fn sha1(key: &str, body: &[u8]) -> String {
    let mut mac = hmac::Hmac::<sha1::Sha1>::new_from_slice(key.as_bytes()).expect("a key may have any length");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

fn refuse(fault: &Fault, method: &Method, version: Version, limit_mb: u64) -> Answer {
    let new = version.at_least(3, 5);
    let mut lines: Vec<Line> = security_line(fault).map(|text| (Level::Info, text, true)).into_iter().collect();
    let reason = match fault {
        Fault::Panic => return Answer::HangUp,
        Fault::Registry => return Answer::Refused(StatusCode::UNAUTHORIZED, "Unauthorized".into(), lines),
        Fault::Payload if new => {
            let text = format!(
                "Webhook processing failed: payload too large or corrupted (limit {limit_mb} MB): error \
                                parsing payload"
            );
            lines.push((Level::Warning, text, true));
            let body = format!("Webhook processing failed: payload must be valid JSON under {limit_mb} MB");
            return Answer::Refused(StatusCode::BAD_REQUEST, body, lines);
        }
        Fault::Payload if limits_size(version) => {
            let text = format!(
                "Webhook processing failed: The payload is either too large or corrupted. Please check the payload \
                 size (must be under {limit_mb} MB) and ensure it is valid JSON"
            );
            lines.push((Level::Warning, text.clone(), true));
            return Answer::Refused(StatusCode::BAD_REQUEST, text, lines);
        }
        Fault::Payload => "error parsing payload".to_owned(),
        Fault::Method => "invalid HTTP Method".into(),
        Fault::Event => "event not defined to be parsed".into(),
        Fault::UnknownEvent(name) => format!("unknown event {name}"),
        Fault::SystemHook => "unknown system hook event System Hook".into(),
        Fault::Missing(header) => format!("missing {header} Header"),
        Fault::Hmac(_) => "HMAC verification failed".into(),
        Fault::Token => "X-Gitlab-Token validation failed".into(),
        Fault::Uuid => "UUID verification failed".into(),
        Fault::BasicAuth => "basic auth verification failed".into(),
        Fault::Json(reason) => reason.clone(),
    };
    lines.push((Level::Info, format!("Webhook processing failed: {reason}"), false));
    let status = if method == Method::POST { StatusCode::BAD_REQUEST } else { StatusCode::METHOD_NOT_ALLOWED };
    let body = match new {
        true => "Webhook processing failed".into(),
        false => format!("Webhook processing failed: {}", html_escaped(&reason)),
    };
    Answer::Refused(status, body, lines)
}

/// Whether there is a limit on the size of a body.
pub fn limits_size(version: Version) -> bool {
    version.at_least(2, 12)
}

fn security_line(fault: &Fault) -> Option<String> {
    Some(match fault {
        Fault::Hmac(provider) => format!("{provider} webhook HMAC verification failed"),
        Fault::Token => "GitLab webhook token verification failed".into(),
        Fault::Uuid => "BitBucket webhook UUID verification failed".into(),
        Fault::BasicAuth => "Azure DevOps webhook basic auth verification failed".into(),
        Fault::Registry => "Registry webhook HMAC verification failed".into(),
        _ => return None,
    })
}

/// Go's `html.EscapeString`.
fn html_escaped(text: &str) -> String {
    let escapes = [("&", "&amp;"), ("'", "&#39;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&#34;")];
    escapes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
