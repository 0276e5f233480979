//! Refusals of Argo CD itself. Pure.

use super::{Asked, FAILED, FAILED_BECAUSE, Meaning, shorten};
use crate::{args::Kind, route::Answer};

/// 400 and 405 of Argo CD itself.
pub(super) fn refusal(answer: &Answer, asked: Asked<'_>) -> Meaning {
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

/// Go's `html.EscapeString` undone.
fn unescape(text: &str) -> String {
    text.replace("&#39;", "'").replace("&#34;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
