//! Kubeconfig files.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;

/// A kubeconfig (JSON is YAML) with one context, `standin`, for the bearer of a token.
pub fn kubeconfig(server: &str, certificate_pem: &str, user: &str, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "standin",
        "clusters": [{
            "name": "standin",
            "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(certificate_pem)},
        }],
        "contexts": [{"name": "standin", "context": {"cluster": "standin", "user": user}}],
        "users": [{"name": user, "user": {"token": token}}],
    });
    serde_yaml_ng::to_string(&config).expect("plain values can be written as YAML")
}
