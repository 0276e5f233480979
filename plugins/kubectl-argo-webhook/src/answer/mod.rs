//! What an answer means: its cause and what to do next. Pure.
//!
//! The answers are those of argo-cd util/webhook/webhook.go and go-playground/webhooks v6.4.0, and those of what may
//! stand before the server. Before v3.5 a refusal names its reason; since then the reason is only in the server's log.

mod argo;
#[cfg(test)]
mod cases;
mod other;

use kit::{error::Error, exit::Exit};
use serde_json::Value;

pub use argo::of_reason;

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
    if let Some(status) = other::kubernetes_status(answer) {
        return other::of_kubernetes(answer.status, &status, asked);
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
        400 | 405 if !is_page => argo::refusal(answer, asked),
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
        _ => other::of_gateway(answer.status),
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

fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
