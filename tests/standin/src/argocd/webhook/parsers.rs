//! The parsers of argocd-server: which one takes a request, what it checks, and in which order (argo-cd v3.5.1
//! util/webhook/scm.go, ghcr.go; go-playground/webhooks v6.4.0, and the older ones).

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{KeyInit, Mac};
use hyper::{HeaderMap, Method};
use serde_json::Value;

use super::{event::Provider, secrets::Secrets, types};
use crate::argocd::version::Version;

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

/// Why a parser refuses.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Not a POST.
    Method,
    /// An event that the parser does not take.
    Event,
    /// An event that Azure's parser does not know.
    UnknownEvent(String),
    /// A system hook of GitLab that its parser does not know.
    SystemHook,
    /// A header that has to be there.
    Missing(&'static str),
    /// A signature; with the name that the log has for the provider.
    Hmac(&'static str),
    /// GitLab's token.
    Token,
    /// Bitbucket's UUID.
    Uuid,
    /// Azure's login.
    BasicAuth,
    /// No body, too long a body, or Azure's that is no JSON.
    Payload,
    /// No JSON, or not of the right types; in Go's words.
    Json(String),
    /// The signature of a container registry.
    Registry,
    /// The handler panics.
    Panic,
}

/// What a parser makes of a request; nothing for an event that it takes and drops.
pub type Parsed = Result<Option<Payload>, Fault>;
/// One provider's checks, in their order.
pub type Parser = fn(&Request, &Secrets, Version) -> Parsed;

/// The first parser whose header is there takes the request.
pub fn parser(request: &Request, version: Version) -> Option<Parser> {
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
    let said = error.to_string();
    let place = match () {
        () if said.starts_with("trailing characters") => "after top-level value",
        () if said.starts_with("expected `:`") => "after object key",
        () => "looking for beginning of value",
    };
    format!("invalid character {} {place}", quoted(found))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Text and what Go 1.26 says about it.
    #[test]
    fn broken_json_is_described_as_go_does() {
        for (text, expected) in [
            ("payload=%7B%7D", "invalid character 'p' looking for beginning of value"),
            ("{", "unexpected end of JSON input"),
            (r#"{"ref":"#, "unexpected end of JSON input"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("'a'", r"invalid character '\'' looking for beginning of value"),
            (r#"{"a" 1}"#, "invalid character '1' after object key"),
            ("<html>", "invalid character '<' looking for beginning of value"),
            ("{}x", "invalid character 'x' after top-level value"),
            ("{}\n\n y", "invalid character 'y' after top-level value"),
        ] {
            assert_eq!(json(text.as_bytes()), Err(Fault::Json(expected.into())), "{text:?}");
        }
    }
}
