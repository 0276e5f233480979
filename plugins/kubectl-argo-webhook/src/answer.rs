//! What an answer means: its cause and what to do next. Pure.
//!
//! The answers are those of argo-cd util/webhook/webhook.go and go-playground/webhooks v6.4.0, and those of what may
//! stand before the server. Before v3.5 a refusal names its reason; since then the reason is only in the server's log.

use kit::{error::Error, exit::Exit};
use serde_json::Value;

use crate::{args::Kind, provider::Provider, route::Answer};

/// What is known about the request that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Whose event it was.
    pub provider: Provider,
    /// Which event it was.
    pub kind: Kind,
    /// Whether it was signed.
    pub signed: bool,
    /// The namespace that Argo CD is installed in.
    pub namespace: &'a str,
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// A stable word for programs.
    pub code: &'static str,
    /// Why the answer is as it is.
    pub cause: String,
    /// What to do next.
    pub next: String,
    /// How the command ends unless `--expect-status` says otherwise.
    pub exit: Exit,
}

impl Meaning {
    fn new(exit: Exit, code: &'static str, cause: impl Into<String>, next: impl Into<String>) -> Self {
        Meaning { code, cause: cause.into(), next: next.into(), exit }
    }

    fn no(code: &'static str, cause: impl Into<String>, next: impl Into<String>) -> Self {
        Meaning::new(Exit::No, code, cause, next)
    }

    fn unknown(code: &'static str, cause: impl Into<String>, next: impl Into<String>) -> Self {
        Meaning::new(Exit::Unknown, code, cause, next)
    }

    /// The error that a failed delivery ends with.
    pub fn error(&self, status: u16) -> Error {
        Error::new(self.exit, self.code, format!("the event was answered {status}: {}", self.cause))
            .hint(self.next.clone())
    }
}

/// Reads an answer.
pub fn meaning(answer: &Answer, asked: Asked<'_>) -> Meaning {
    if let Some(status) = kubernetes_status(answer) {
        return of_kubernetes(answer.status, &status, asked);
    }
    let content_type = answer.header("content-type");
    if content_type.starts_with("application/grpc") {
        return Meaning::unknown(
            "grpc",
            "a gRPC service answered, not the webhook endpoint",
            "send JSON over HTTP/1.1 to /api/webhook; an ingress may need a route of its own for it",
        );
    }
    let is_page = content_type.starts_with("text/html") || answer.body.trim_start().starts_with('<');
    match answer.status {
        200..300 if is_page => Meaning::unknown(
            "not-argo-cd",
            "a web page came back; the webhook endpoint answers with nothing",
            "the address is that of a login page or of the user interface: the path must end in /api/webhook",
        ),
        // The ping of Bitbucket Server is answered before the signature is looked at.
        200..300 if !asked.signed && (asked.provider, asked.kind) != (Provider::BitbucketServer, Kind::Ping) => {
            Meaning::new(
                Exit::Done,
                "accepted-unchecked",
                "the event is queued although it was not signed: the server has no key and takes events from anybody; \
                 and that it is queued says nothing about any Application",
                "`kubectl argo-webhook secret set --generate` makes a key; `kubectl argo-webhook explain` shows which \
                 Applications the event touches",
            )
        }
        200..300 => Meaning::new(
            Exit::Done,
            "accepted",
            "the event is queued; that says nothing about any Application",
            "`kubectl argo-webhook explain` shows which Applications it touches",
        ),
        300..400 => redirect(answer),
        400 | 405 if !is_page => refusal(answer, asked),
        401 if answer.body.trim() == "Unauthorized" && asked.provider == Provider::Github => Meaning::no(
            "registry-signature",
            "the signature of a registry event (GHCR) is missing or wrong",
            "sign with the key in webhook.github.secret and keep the prefix sha256=",
        ),
        503 if answer.body.contains("Queue is full") => Meaning::unknown(
            "queue-full",
            "the server's queue of 50,000 events is full, and it dropped this one",
            "send it again later; server.webhook.parallelism.limit in argocd-cmd-params-cm makes the server faster",
        ),
        _ => of_gateway(answer.status),
    }
}

/// Whether the answer is a refusal that keeps its reason to itself, as since v3.5.
pub fn is_unsaid(answer: &Answer) -> bool {
    matches!(answer.status, 400 | 405) && answer.body.trim() == FAILED
}

/// The last reason of a refusal in the server's log: `Webhook processing failed: <reason>`, as JSON or text.
pub fn reason_in_log<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut reason = None;
    for line in lines {
        let message = serde_json::from_str::<Value>(line).ok().and_then(|line| Some(line["msg"].as_str()?.to_owned()));
        let message = message.unwrap_or_else(|| line.to_owned());
        if let Some((_, found)) = message.split_once(FAILED_BECAUSE) {
            reason = Some(found.trim_end_matches('"').to_owned());
        }
    }
    reason
}

const FAILED: &str = "Webhook processing failed";
const FAILED_BECAUSE: &str = "Webhook processing failed: ";

fn redirect(answer: &Answer) -> Meaning {
    let location = answer.header("location");
    if location.starts_with("https://") && answer.status == 307 {
        return Meaning::new(
            Exit::Usage,
            "redirect-to-https",
            format!("the server speaks TLS and was asked in plain HTTP; it points to {location}"),
            "use an https address; behind an ingress that ends TLS, set server.insecure in argocd-cmd-params-cm",
        );
    }
    Meaning::new(
        Exit::Usage,
        "redirect",
        format!("redirected to `{location}`, which was not followed: most senders repeat it without the body"),
        "send to the address it points to, if that is argocd-server; a login page means that a proxy wants a session",
    )
}

/// 400 and 405 of Argo CD itself.
fn refusal(answer: &Answer, asked: Asked<'_>) -> Meaning {
    let text = unescape(answer.body.trim());
    if text == "Unknown webhook event" {
        return Meaning::no(
            "no-provider-header",
            "the server saw no header of any provider",
            "something on the way removed the X-… headers; with a body of your own, check --provider",
        );
    }
    match text.strip_prefix(FAILED_BECAUSE) {
        Some(reason) => of_reason(reason, asked),
        None if text == FAILED => unsaid(answer.status, asked),
        None => Meaning::no(
            "gateway",
            format!("something before argocd-server refused it: {}", shorten(&text)),
            "send it past the ingress to see whether that is so: --via service-proxy",
        ),
    }
}

/// A reason, as the library that reads the events words it.
pub fn of_reason(reason: &str, asked: Asked<'_>) -> Meaning {
    let Asked { provider, signed, .. } = asked;
    let key = provider.secret_keys().join(" and ");
    let resign = format!("sign with the key that the server has: --sign reads {key} from argocd-secret");
    let has = |part: &str| reason.contains(part);
    if has("payload must be valid JSON under") || has("too large or corrupted") {
        return Meaning::no(
            "too-large-or-empty",
            "the body is empty, larger than webhook.maxPayloadSizeMB in argocd-cm, or not JSON",
            "look at the body with --save-body; a proxy on the way may have dropped it",
        );
    }
    if has("missing X-Hub-Signature-256") {
        return Meaning::no(
            "signature-missing",
            if signed {
                "the server has a key, and X-Hub-Signature-256 did not arrive"
            } else {
                "the server has a key, and the event was not signed"
            },
            if signed {
                "something on the way removed the header; SHA-1 alone does not count since v2.13".into()
            } else {
                resign
            },
        );
    }
    if has("missing X-Gogs-Signature") || has("missing X-Hub-Signature") {
        return Meaning::no(
            "signature-missing",
            "the server has a key, and the event came without a signature",
            resign,
        );
    }
    if has("HMAC verification failed") {
        return Meaning::no(
            "signature-wrong",
            "the signature was made with another key, or over other bytes than those that arrived",
            format!(
                "{resign}; `kubectl argo-webhook verify` finds the usual faults; a replica may still have the old key"
            ),
        );
    }
    if has("X-Gitlab-Token validation failed") {
        return Meaning::no(
            "token-wrong",
            if signed {
                "the token is not the server's, or the server has none: without one it refuses every token"
            } else {
                "the server has a token, and the event came without"
            },
            resign,
        );
    }
    if has("UUID verification failed") {
        return Meaning::no("uuid-wrong", "the hook's UUID is not the one in webhook.bitbucket.uuid", resign);
    }
    if has("basic auth verification failed") {
        return Meaning::no(
            "basic-auth-wrong",
            "user name or password is missing or wrong; the API server's proxy removes them",
            "use --via port-forward or --url; a changed password counts only after argocd-server was restarted",
        );
    }
    if has("event not defined to be parsed") || has("unknown event") || has("unknown system hook") {
        return Meaning::no(
            "event-unsupported",
            format!("the server does not take this event of {}; only pushes touch Applications", provider.title()),
            "let the provider send pushes only; Bitbucket Cloud must also send X-Hook-UUID",
        );
    }
    if has("invalid HTTP Method") {
        return Meaning::no(
            "not-a-post",
            "it did not arrive as a POST",
            "a redirect on the way turned it into a GET: use the address it leads to",
        );
    }
    if has("invalid character") || has("unexpected end of JSON") || has("cannot unmarshal") || has("parsing time") {
        return Meaning::no(
            "not-json",
            format!("the body is not the JSON that the server expects: {}", shorten(reason)),
            "the hook's content type must be application/json, not a form; types of fields are strict",
        );
    }
    Meaning::no("refused", format!("the server refused it: {}", shorten(reason)), logs(asked))
}

/// Since v3.5 the answer does not say why.
fn unsaid(status: u16, asked: Asked<'_>) -> Meaning {
    if status == 405 {
        return Meaning::no("not-a-post", "it did not arrive as a POST", "a redirect on the way turned it into a GET");
    }
    let cause = match (asked.signed, asked.kind) {
        (false, Kind::Push) => {
            "refused, and since v3.5 the answer does not say why: most likely a key is set and the event was not signed"
        }
        (true, _) => {
            "refused, and since v3.5 the answer does not say why: most likely the key or the bytes signed are not the server's"
        }
        (false, Kind::Ping) => {
            "refused, and since v3.5 the answer does not say why: most likely the ping was not signed"
        }
    };
    let first = if asked.signed { "compare the keys (`kubectl argo-webhook secret show`)" } else { "add --sign" };
    Meaning::no("refused", cause, format!("{first}; {}", logs(asked)))
}

fn logs(asked: Asked<'_>) -> String {
    format!(
        "the reason is in the server's log: kubectl logs -n {} -l app.kubernetes.io/name=argocd-server --since=1m | grep -i webhook",
        asked.namespace
    )
}

/// An object of kind Status comes from the API server, not from Argo CD.
fn kubernetes_status(answer: &Answer) -> Option<Value> {
    let value: Value = serde_json::from_str(&answer.body).ok()?;
    (value["kind"] == "Status" && value["apiVersion"] == "v1").then_some(value)
}

fn of_kubernetes(status: u16, object: &Value, asked: Asked<'_>) -> Meaning {
    let message = shorten(object["message"].as_str().unwrap_or_default());
    match status {
        401 | 403 => Meaning::new(
            Exit::Denied,
            "forbidden",
            format!("the API server does not let you through: {message}"),
            format!("needs the verb `create` on `services/proxy` in namespace {}", asked.namespace),
        ),
        404 => Meaning::new(
            Exit::Usage,
            "not-found",
            format!("the API server knows no such Service or port: {message}"),
            "check -n; --via port-forward goes to the pod itself",
        ),
        503 => Meaning::unknown(
            "no-endpoints",
            format!("the API server reaches no argocd-server: {message}"),
            format!("kubectl get pods -n {} -l app.kubernetes.io/name=argocd-server", asked.namespace),
        ),
        _ => Meaning::unknown(
            "api-server",
            format!("the API server answered itself: {message}"),
            "--via port-forward goes another way",
        ),
    }
}

/// What does not come from Argo CD: it has no such answers.
fn of_gateway(status: u16) -> Meaning {
    let past = "send it past the ingress to see whether that is so: --via service-proxy";
    match status {
        401 | 403 => Meaning::no(
            "gateway-auth",
            "a gateway wants credentials or filters the request; argocd-server asks for none here",
            format!("let /api/webhook through without a login; {past}"),
        ),
        404 => Meaning::no(
            "no-such-path",
            "nothing is served there",
            "the path is /api/webhook without a slash at its end, below server.rootpath when that is set",
        ),
        405 => Meaning::no(
            "not-a-post",
            "POST is not allowed there",
            "the path is /api/webhook without a slash at its end",
        ),
        408 | 504 => Meaning::unknown("gateway-timeout", "a gateway waited too long for argocd-server", past),
        413 => Meaning::no(
            "gateway-size",
            "a gateway takes no body of this size (Argo CD itself would answer 400)",
            "raise the gateway's limit (nginx: proxy-body-size), or go past it: --via service-proxy",
        ),
        415 => Meaning::no("gateway", "a gateway does not take JSON here", past),
        429 => {
            Meaning::unknown("rate-limited", "too many requests for a gateway or the API server", "send it again later")
        }
        502 => Meaning::unknown(
            "bad-gateway",
            "a gateway got no valid answer from argocd-server: often it speaks plain HTTP to a TLS port, or the other way round",
            format!("set the gateway's backend protocol to HTTPS, or server.insecure; {past}"),
        ),
        503 => Meaning::unknown("unavailable", "a gateway has no argocd-server to pass it to", "are the pods ready?"),
        500..600 => Meaning::unknown("server-error", "the server or a gateway failed", past),
        400..500 => Meaning::no("gateway", "a gateway refused it, not Argo CD", past),
        _ => Meaning::unknown("unexpected", "no answer that Argo CD gives", past),
    }
}

/// Go's `html.EscapeString` undone.
fn unescape(text: &str) -> String {
    text.replace("&#39;", "'").replace("&#34;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
