//! The settings of argocd-server that decide how it is spoken to and what it does with an event.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kit::{cluster::Cluster, talk::Talk, version::Version};

use super::{config_map, optional};

/// How the server listens.
pub(super) struct Settings {
    /// Whether it speaks TLS: `server.insecure` is not set.
    pub tls: bool,
    /// `server.rootpath`.
    pub root: String,
}

impl Settings {
    /// A flag wins over the environment, the environment over the ConfigMap that it normally comes from.
    pub fn of(pods: &[Pod], params: &BTreeMap<String, String>) -> Self {
        let container = pods.iter().find_map(|pod| pod.spec.as_ref()?.containers.first());
        let setting = |flag: &str, variable: &str, key: &str| {
            let words = container.map(|container| {
                container.command.iter().flatten().chain(container.args.iter().flatten()).collect::<Vec<_>>()
            });
            let words = words.unwrap_or_default();
            let typed = words.iter().enumerate().find_map(|(index, word)| {
                let rest = word.strip_prefix("--")?.strip_prefix(flag)?;
                match rest.strip_prefix('=') {
                    Some(value) => Some(value.to_owned()),
                    // A boolean flag takes its value only after `=`.
                    None if rest.is_empty() && flag == "insecure" => Some("true".to_owned()),
                    None if rest.is_empty() => words.get(index + 1).map(|value| (*value).clone()),
                    None => None,
                }
            });
            let literal = || {
                let env = container?.env.as_ref()?.iter().find(|env| env.name == variable)?;
                env.value.clone().filter(|value| !value.is_empty())
            };
            typed.or_else(literal).or_else(|| params.get(key).cloned()).unwrap_or_default()
        };
        Settings {
            tls: !matches!(
                setting("insecure", "ARGOCD_SERVER_INSECURE", "server.insecure").as_str(),
                "1" | "t" | "T" | "true" | "TRUE" | "True"
            ),
            root: setting("rootpath", "ARGOCD_SERVER_ROOTPATH", "server.rootpath"),
        }
    }
}

/// The greatest body that the server takes, in bytes; `None` when it has no limit. /// Where `argocd-cm` cannot be read, the default of the version.
pub async fn body_limit(cluster: &Cluster, version: Option<Version>, talk: &Talk) -> Option<u64> {
    let data = optional(config_map(cluster, "argocd-cm").await, talk).flatten().unwrap_or_default();
    limit_in(data.get("webhook.maxPayloadSizeMB").map(String::as_str), version.unwrap_or(Version::NEWEST))
}

/// argo-cd util/settings/settings.go, `GetMaxWebhookPayloadSize`: bytes of 1024 × 1024; what is no positive number is
/// the default.
fn limit_in(setting: Option<&str>, version: Version) -> Option<u64> {
    if version < Version(2, 12, 0) {
        return None;
    }
    let default = if version < Version(2, 14, 0) { 1024 } else { 50 };
    let megabytes = setting.and_then(|text| text.parse::<u64>().ok()).filter(|number| *number > 0).unwrap_or(default);
    Some(megabytes.saturating_mul(1024 * 1024))
}

/// The settings that decide which Applications an event reaches, and when.
#[derive(Debug, Default)]
pub struct MatchingSettings {
    /// `application.namespaces`: globs and expressions.
    pub application_namespaces: Vec<String>,
    /// `webhook.refresh.jitter`.
    pub refresh_jitter: Option<String>,
}

/// Reads them; what cannot be read counts as not set.
pub async fn matching_settings(cluster: &Cluster, talk: &Talk) -> MatchingSettings {
    let params = optional(config_map(cluster, "argocd-cmd-params-cm").await, talk).flatten().unwrap_or_default();
    let mut settings = optional(config_map(cluster, "argocd-cm").await, talk).flatten().unwrap_or_default();
    let namespaces = params.get("application.namespaces").map(String::as_str).unwrap_or_default();
    MatchingSettings {
        application_namespaces: namespaces.split(',').map(str::to_owned).collect(),
        refresh_jitter: settings.remove("webhook.refresh.jitter").filter(|jitter| !jitter.is_empty() && jitter != "0s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(container: serde_json::Value) -> Vec<Pod> {
        vec![serde_json::from_value(json!({"spec": {"containers": [container]}})).unwrap()]
    }

    #[test]
    fn a_flag_wins_over_the_environment_and_that_over_the_configmap() {
        let params =
            [("server.insecure".to_owned(), "true".to_owned()), ("server.rootpath".into(), "/cm".into())].into();
        let settings = Settings::of(&pod(json!({"name": "argocd-server"})), &params);
        assert_eq!((settings.tls, settings.root.as_str()), (false, "/cm"));
        let env = json!({"name": "c", "env": [{"name": "ARGOCD_SERVER_ROOTPATH", "value": "/env"},
            {"name": "ARGOCD_SERVER_INSECURE", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}]});
        let settings = Settings::of(&pod(env), &params);
        assert_eq!((settings.tls, settings.root.as_str()), (false, "/env"));
        let flags = json!({"name": "c", "args": ["argocd-server", "--rootpath", "/flag", "--insecure=false"]});
        let settings = Settings::of(&pod(flags), &params);
        assert_eq!((settings.tls, settings.root.as_str()), (true, "/flag"));
        let flags = json!({"name": "c", "command": ["argocd-server", "--insecure"]});
        assert!(!Settings::of(&pod(flags), &Default::default()).tls);
    }

    #[test]
    fn the_limit_of_the_body_is_that_of_the_version() {
        for (version, setting, limit) in [
            (Version(2, 11, 0), None, None),
            (Version(2, 13, 0), None, Some(1024 << 20)),
            (Version(3, 5, 1), None, Some(50 << 20)),
            (Version(3, 5, 1), Some("2"), Some(2 << 20)),
            (Version(3, 5, 1), Some("-1"), Some(50 << 20)),
        ] {
            assert_eq!(limit_in(setting, version), limit, "{version} {setting:?}");
        }
    }
}
