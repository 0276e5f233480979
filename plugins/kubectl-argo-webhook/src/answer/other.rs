//! Answers that are not Argo CD's: those of the API server and of what stands before argocd-server. Pure.

use kit::exit::Exit;
use serde_json::Value;

use super::{Asked, Meaning, shorten};
use crate::route::Answer;

/// An object of kind Status comes from the API server, not from Argo CD.
pub(super) fn kubernetes_status(answer: &Answer) -> Option<Value> {
    let value: Value = serde_json::from_str(&answer.body).ok()?;
    (value["kind"] == "Status" && value["apiVersion"] == "v1").then_some(value)
}

pub(super) fn of_kubernetes(status: u16, object: &Value, asked: Asked<'_>) -> Meaning {
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
pub(super) fn of_gateway(status: u16) -> Meaning {
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
