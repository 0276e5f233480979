//! Questions about the caller, and tokens of ServiceAccounts: what is created here is answered and not kept.

use axum::extract::Request;
use serde_json::{Value, json};

use super::{
    access::{Attempt, Identity},
    decode, read_body,
    resources::by_key,
    status::Status,
    text,
};
use crate::{Cluster, names};

/// The answer to a `SelfSubjectAccessReview`: `kubectl auth can-i`.
fn access(cluster: &Cluster, identity: &Identity, review: &Value) -> Value {
    let wanted = &review["spec"]["resourceAttributes"];
    let text = |field: &str| wanted[field].as_str().unwrap_or_default().to_owned();
    let (resource, subresource) = (text("resource"), text("subresource"));
    let attempt = Attempt {
        verb: text("verb").into(),
        group: text("group"),
        resource: if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") },
        namespace: text("namespace"),
        name: text("name"),
    };
    let allowed = attempt.authorize(&cluster.store, identity).is_ok();
    json!({
        "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
        "spec": review["spec"], "status": {"allowed": allowed},
    })
}

/// The answer to a `SelfSubjectReview`: `kubectl auth whoami`.
fn subject(identity: &Identity) -> Value {
    json!({
        "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {},
        "status": {"userInfo": {"username": identity.name, "groups": identity.groups}},
    })
}

/// A new token of a ServiceAccount: `kubectl create token`.
///
/// # Errors
/// 404 without the ServiceAccount.
fn token(cluster: &Cluster, namespace: &str, name: &str) -> Result<Value, Status> {
    if cluster.store.get("serviceaccounts", namespace, name).is_none() {
        return Err(Status::not_found(by_key("serviceaccounts").expect("ServiceAccounts are known"), name));
    }
    let token = format!("standin-{namespace}-{name}-{}", names::suffix(cluster.requests.count() as u64, 16));
    let mut identity = Identity::user(&format!("system:serviceaccount:{namespace}:{name}"));
    identity.groups.extend(["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")]);
    cluster.tokens.grant(&token, identity);
    Ok(json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace},
        "status": {"token": token, "expirationTimestamp": "2038-01-19T03:14:07Z"},
    }))
}

/// The answer to what is created and not kept; `None` for any other path.
pub async fn review(
    cluster: &Cluster,
    identity: &Identity,
    path: &str,
    request: &mut Request,
) -> Option<Result<Value, Status>> {
    if path == "/apis/authentication.k8s.io/v1/selfsubjectreviews" {
        return Some(Ok(subject(identity)));
    }
    if path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
        let media_type = text(request.headers(), "content-type");
        let body = read_body(std::mem::take(request.body_mut())).await;
        let review = body.and_then(|body| decode(&media_type, &body));
        return Some(review.map(|review| access(cluster, identity, &review)));
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
    Some(allowed.and_then(|()| token(cluster, namespace, name)))
}
