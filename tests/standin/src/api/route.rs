//! What a path asks for.

use super::resources::{Resource, find};

/// A path below `/api/v1` or `/apis/GROUP/VERSION` that names a resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// The resource.
    pub resource: &'static Resource,
    /// Empty for cluster-scoped resources and for all namespaces.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
    /// `status`, `log`, `proxy`; empty for the object itself.
    pub subresource: String,
    /// What follows the subresource, with its first slash: `/api/webhook` of `…/proxy/api/webhook`.
    pub rest: String,
}

impl Route {
    /// Reads a path; `None` when it names no resource that is known.
    pub fn parse(path: &str) -> Option<Route> {
        let (group, version, below) = if let Some(below) = path.strip_prefix("/api/v1/") {
            ("", "v1", below)
        } else {
            let mut parts = path.strip_prefix("/apis/")?.splitn(3, '/');
            (parts.next()?, parts.next()?, parts.next()?)
        };
        let below = below.strip_suffix('/').unwrap_or(below);
        let parts: Vec<&str> = below.split('/').collect();
        let (namespace, parts) = match parts.as_slice() {
            // `namespaces/NAME/status` and `namespaces/NAME/finalize` are about the Namespace itself.
            ["namespaces", _, "status" | "finalize", ..] | ["namespaces"] | ["namespaces", _] => ("", parts.as_slice()),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            parts => ("", parts),
        };
        let resource = find(group, version, parts.first()?)?;
        let name = parts.get(1).copied().unwrap_or_default();
        let subresource = parts.get(2).copied().unwrap_or_default();
        let known = subresource.is_empty()
            || (subresource == "status" && resource.status)
            || resource.subresources.contains(&subresource);
        if !known || (parts.len() > 3 && subresource != "proxy") || (!namespace.is_empty() && !resource.namespaced) {
            return None;
        }
        let rest = if subresource == "proxy" { after_proxy(path) } else { String::new() };
        Some(Route {
            resource,
            namespace: decoded(namespace),
            name: decoded(name),
            subresource: subresource.into(),
            rest,
        })
    }
}

/// What stands after the first `/proxy`, byte for byte: a proxied path keeps its trailing slash and its escapes.
fn after_proxy(path: &str) -> String {
    path.find("/proxy").map(|at| path[at + "/proxy".len()..].to_owned()).unwrap_or_default()
}

fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = (byte == b'%').then(|| tail.get(..2)).flatten();
        if let Some(value) = escaped.and_then(|hex| hex::decode(hex).ok()) {
            bytes.extend(value);
            rest = &tail[2..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Option<(String, String, String, String, String)> {
        Route::parse(path).map(|r| (r.resource.key(), r.namespace, r.name, r.subresource, r.rest))
    }

    fn some(parts: [&str; 5]) -> Option<(String, String, String, String, String)> {
        let [a, b, c, d, e] = parts.map(str::to_owned);
        Some((a, b, c, d, e))
    }

    #[test]
    fn paths_name_collections_objects_and_subresources() {
        assert_eq!(parts("/api/v1/namespaces"), some(["namespaces", "", "", "", ""]));
        assert_eq!(parts("/api/v1/namespaces/argocd"), some(["namespaces", "", "argocd", "", ""]));
        assert_eq!(parts("/api/v1/pods"), some(["pods", "", "", "", ""]));
        assert_eq!(parts("/api/v1/namespaces/a/pods/p/log"), some(["pods", "a", "p", "log", ""]));
        assert_eq!(
            parts("/apis/argoproj.io/v1alpha1/namespaces/a/applications/evt"),
            some(["applications.argoproj.io", "a", "evt", "", ""])
        );
        assert_eq!(
            parts("/api/v1/namespaces/a/services/https%3Aargocd-server%3A443/proxy/api/webhook/"),
            some(["services", "a", "https:argocd-server:443", "proxy", "/api/webhook/"])
        );
    }

    #[test]
    fn other_paths_are_unknown() {
        for path in ["/api/v1/nodes", "/apis/batch/v1/jobs", "/apis/apps/v1", "/api/v1/pods/p/exec", "/metrics"] {
            assert_eq!(parts(path), None, "{path}");
        }
    }
}
