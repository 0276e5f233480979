//! A case for each row of the table of answers, and for what may stand before the server.

use http::{HeaderMap, HeaderName, HeaderValue};
use kit::exit::Exit;

use super::{Asked, meaning, reason_in_log};
use crate::{args::Kind, provider::Provider, route::Answer};

const GITHUB: Asked<'static> =
    Asked { provider: Provider::Github, kind: Kind::Push, signed: true, namespace: "argocd" };

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap()))
        .collect();
    Answer { status, headers, body: body.into() }
}

#[test]
fn each_answer_has_its_cause_and_next_step() {
    let of = |provider| Asked { provider, ..GITHUB };
    let unsigned = |provider| Asked { provider, signed: false, ..GITHUB };
    let old = |reason: &str| format!("Webhook processing failed: {reason}\n");
    let new = "Webhook processing failed\n";
    let page = "<!DOCTYPE html><html><title>Sign in</title>";
    let plain = [("content-type", "text/plain; charset=utf-8")];
    let json = [("content-type", "application/json")];
    let html = [("content-type", "text/html")];
    let status = |code: u16, message: &str| {
        format!(r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"{message}","code":{code}}}"#)
    };
    let cases = [
        // Argo CD, row by row.
        (GITHUB, answer(200, &[], ""), Exit::Done, "accepted", "says nothing about any Application", "explain"),
        (
            unsigned(Provider::Github),
            answer(200, &[], ""),
            Exit::Done,
            "accepted-unchecked",
            "takes events from anybody",
            "secret set",
        ),
        (
            GITHUB,
            answer(400, &plain, "Unknown webhook event\n"),
            Exit::No,
            "no-provider-header",
            "no header of any provider",
            "removed the X-",
        ),
        (
            GITHUB,
            answer(400, &plain, &old("event not defined to be parsed")),
            Exit::No,
            "event-unsupported",
            "does not take this event of GitHub",
            "pushes only",
        ),
        (
            of(Provider::Azuredevops),
            answer(400, &plain, &old("unknown event workitem.created")),
            Exit::No,
            "event-unsupported",
            "Azure DevOps",
            "pushes only",
        ),
        (
            of(Provider::Gitlab),
            answer(400, &plain, &old("unknown system hook event System Hook")),
            Exit::No,
            "event-unsupported",
            "GitLab",
            "pushes only",
        ),
        (
            of(Provider::Bitbucket),
            answer(400, &plain, &old("event not defined to be parsed")),
            Exit::No,
            "event-unsupported",
            "Bitbucket Cloud",
            "X-Hook-UUID",
        ),
        (
            unsigned(Provider::Github),
            answer(400, &plain, &old("missing X-Hub-Signature-256 Header")),
            Exit::No,
            "signature-missing",
            "was not signed",
            "--sign",
        ),
        (
            GITHUB,
            answer(400, &plain, &old("missing X-Hub-Signature-256 Header")),
            Exit::No,
            "signature-missing",
            "did not arrive",
            "SHA-1 alone",
        ),
        (
            GITHUB,
            answer(400, &plain, &old("missing X-Hub-Signature Header")),
            Exit::No,
            "signature-missing",
            "without a signature",
            "--sign",
        ),
        (
            of(Provider::Gogs),
            answer(400, &plain, &old("missing X-Gogs-Signature Header")),
            Exit::No,
            "signature-missing",
            "without a signature",
            "webhook.gogs.secret",
        ),
        (
            of(Provider::BitbucketServer),
            answer(400, &plain, &old("missing X-Hub-Signature Header")),
            Exit::No,
            "signature-missing",
            "without a signature",
            "webhook.bitbucketserver.secret",
        ),
        (
            GITHUB,
            answer(400, &plain, &old("HMAC verification failed")),
            Exit::No,
            "signature-wrong",
            "another key",
            "argo-webhook verify",
        ),
        (
            of(Provider::Gitlab),
            answer(400, &plain, &old("X-Gitlab-Token validation failed")),
            Exit::No,
            "token-wrong",
            "refuses every token",
            "webhook.gitlab.secret",
        ),
        (
            unsigned(Provider::Gitlab),
            answer(400, &plain, &old("X-Gitlab-Token validation failed")),
            Exit::No,
            "token-wrong",
            "came without",
            "webhook.gitlab.secret",
        ),
        (
            of(Provider::Bitbucket),
            answer(400, &plain, &old("UUID verification failed")),
            Exit::No,
            "uuid-wrong",
            "webhook.bitbucket.uuid",
            "--sign",
        ),
        (
            of(Provider::Azuredevops),
            answer(400, &plain, &old("basic auth verification failed")),
            Exit::No,
            "basic-auth-wrong",
            "proxy removes",
            "port-forward",
        ),
        (GITHUB, answer(401, &plain, "Unauthorized\n"), Exit::No, "registry-signature", "registry event", "sha256="),
        (
            GITHUB,
            answer(400, &plain, &old("invalid character &#39;p&#39; looking for beginning of value")),
            Exit::No,
            "not-json",
            "'p' looking",
            "application/json",
        ),
        (
            GITHUB,
            answer(400, &plain, &old("payload must be valid JSON under 50 MB")),
            Exit::No,
            "too-large-or-empty",
            "webhook.maxPayloadSizeMB",
            "--save-body",
        ),
        (
            GITHUB,
            answer(
                400,
                &plain,
                &old(
                    "The webhook payload is either too large or corrupted. Please check the payload size (must be under 50 MB) and ensure it is valid JSON",
                ),
            ),
            Exit::No,
            "too-large-or-empty",
            "webhook.maxPayloadSizeMB",
            "--save-body",
        ),
        (
            GITHUB,
            answer(405, &plain, &old("invalid HTTP Method")),
            Exit::No,
            "not-a-post",
            "did not arrive as a POST",
            "redirect",
        ),
        (GITHUB, answer(405, &plain, new), Exit::No, "not-a-post", "did not arrive as a POST", "redirect"),
        (
            GITHUB,
            answer(400, &plain, new),
            Exit::No,
            "refused",
            "since v3.5 the answer does not say why",
            "kubectl logs -n argocd",
        ),
        (unsigned(Provider::Github), answer(400, &plain, new), Exit::No, "refused", "was not signed", "--sign"),
        (GITHUB, answer(400, &plain, &old("something new")), Exit::No, "refused", "something new", "kubectl logs"),
        (
            GITHUB,
            answer(503, &plain, "Queue is full, discarding webhook payload\n"),
            Exit::Unknown,
            "queue-full",
            "queue of 50,000",
            "later",
        ),
        (
            GITHUB,
            answer(307, &[("location", "https://argocd.example.com/api/webhook")], ""),
            Exit::Usage,
            "redirect-to-https",
            "asked in plain HTTP",
            "https address",
        ),
        // The API server.
        (
            GITHUB,
            answer(403, &json, &status(403, "services is forbidden")),
            Exit::Denied,
            "forbidden",
            "services is forbidden",
            "`create` on `services/proxy`",
        ),
        (
            GITHUB,
            answer(401, &json, &status(401, "Unauthorized")),
            Exit::Denied,
            "forbidden",
            "Unauthorized",
            "services/proxy",
        ),
        (
            GITHUB,
            answer(404, &json, &status(404, "services not found")),
            Exit::Usage,
            "not-found",
            "services not found",
            "port-forward",
        ),
        (
            GITHUB,
            answer(503, &json, &status(503, "no endpoints available")),
            Exit::Unknown,
            "no-endpoints",
            "no endpoints available",
            "get pods",
        ),
        (GITHUB, answer(500, &json, &status(500, "boom")), Exit::Unknown, "api-server", "boom", "port-forward"),
        // What may stand before the server.
        (GITHUB, answer(200, &html, page), Exit::Unknown, "not-argo-cd", "a web page", "/api/webhook"),
        (
            GITHUB,
            answer(200, &[("content-type", "application/grpc-web+proto")], ""),
            Exit::Unknown,
            "grpc",
            "gRPC",
            "/api/webhook",
        ),
        (
            GITHUB,
            answer(302, &[("location", "https://login.example.com/")], ""),
            Exit::Usage,
            "redirect",
            "login.example.com",
            "session",
        ),
        (
            GITHUB,
            answer(308, &[("location", "/api/webhook/")], ""),
            Exit::Usage,
            "redirect",
            "not followed",
            "address it points to",
        ),
        (GITHUB, answer(400, &html, page), Exit::No, "gateway", "a gateway", "service-proxy"),
        (GITHUB, answer(400, &plain, "Bad Request"), Exit::No, "gateway", "Bad Request", "service-proxy"),
        (GITHUB, answer(401, &html, page), Exit::No, "gateway-auth", "wants credentials", "without a login"),
        (GITHUB, answer(403, &html, "<html>nginx</html>"), Exit::No, "gateway-auth", "filters", "without a login"),
        (
            GITHUB,
            answer(404, &plain, "404 page not found\n"),
            Exit::No,
            "no-such-path",
            "nothing is served",
            "server.rootpath",
        ),
        (GITHUB, answer(405, &html, page), Exit::No, "not-a-post", "POST is not allowed", "without a slash"),
        (
            GITHUB,
            answer(413, &html, "<html>413</html>"),
            Exit::No,
            "gateway-size",
            "would answer 400",
            "proxy-body-size",
        ),
        (GITHUB, answer(429, &[("retry-after", "1")], ""), Exit::Unknown, "rate-limited", "too many", "later"),
        (
            GITHUB,
            answer(502, &html, "<html>502</html>"),
            Exit::Unknown,
            "bad-gateway",
            "plain HTTP to a TLS port",
            "backend protocol",
        ),
        (GITHUB, answer(503, &html, "<html>503</html>"), Exit::Unknown, "unavailable", "no argocd-server", "ready"),
        (GITHUB, answer(504, &html, ""), Exit::Unknown, "gateway-timeout", "waited too long", "service-proxy"),
        (GITHUB, answer(500, &html, ""), Exit::Unknown, "server-error", "failed", "service-proxy"),
        (GITHUB, answer(418, &[], ""), Exit::No, "gateway", "not Argo CD", "service-proxy"),
    ];
    for (asked, answer, exit, code, cause, next) in cases {
        let found = meaning(&answer, asked);
        let place = format!("{} {:?}: {found:?}", answer.status, answer.body);
        assert_eq!((found.exit, found.code), (exit, code), "{place}");
        assert!(found.cause.contains(cause), "{cause}: {place}");
        assert!(found.next.contains(next), "{next}: {place}");
    }
}

#[test]
fn the_reason_is_found_in_the_servers_log_in_either_format() {
    let json =
        r#"{"level":"info","msg":"Webhook processing failed: HMAC verification failed","time":"2026-08-12T10:00:00Z"}"#;
    let text =
        r#"time="2026-08-12T10:00:00Z" level=info msg="Webhook processing failed: missing X-Hub-Signature-256 Header""#;
    assert_eq!(reason_in_log([json].into_iter()).unwrap(), "HMAC verification failed");
    assert_eq!(reason_in_log([json, text, "other"].into_iter()).unwrap(), "missing X-Hub-Signature-256 Header");
    assert_eq!(reason_in_log(["nothing"].into_iter()), None);
}
