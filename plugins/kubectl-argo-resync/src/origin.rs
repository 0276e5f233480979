//! Where a container takes a setting from, who owns the ConfigMap, and when it was last changed. Pure.
//!
//! The wiring of the stock manifests: argo-cd v3.5.1 manifests/base/application-controller and manifests/base/repo-server;
//! a flag wins over the environment.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Container},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::Timestamp,
};

use crate::period::{JITTER_KEY, PERIOD_KEY};

/// The ConfigMap that holds the settings.
pub const CONFIG: &str = "argocd-cm";
/// The ConfigMap that holds the flags of the components.
pub const PARAMS: &str = "argocd-cmd-params-cm";

/// A setting as a process takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key of the ConfigMap.
    pub key: &'static str,
    /// The variable that the key is put into.
    pub variable: &'static str,
    /// The flag that wins over the variable.
    pub flag: &'static str,
}

/// The controller's polling period.
pub const PERIOD: Setting =
    Setting { key: PERIOD_KEY, variable: "ARGOCD_RECONCILIATION_TIMEOUT", flag: "--app-resync" };
/// The controller's jitter.
pub const JITTER: Setting =
    Setting { key: JITTER_KEY, variable: "ARGOCD_RECONCILIATION_JITTER", flag: "--app-resync-jitter" };
/// The age limit of the repo-server's Git refs.
pub const REF_AGE: Setting =
    Setting { key: PERIOD_KEY, variable: "ARGOCD_RECONCILIATION_TIMEOUT", flag: "--revision-cache-expiration" };
/// The controller's log level.
pub const LOG_LEVEL: Setting =
    Setting { key: "controller.log.level", variable: "ARGOCD_APPLICATION_CONTROLLER_LOGLEVEL", flag: "--loglevel" };

/// Where a container takes a setting from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A key of a ConfigMap, through the environment.
    Key {
        /// The ConfigMap.
        config_map: String,
        /// The key.
        key: String,
    },
    /// A literal value in the environment.
    Literal(String),
    /// A flag among the arguments.
    Flag {
        /// The flag.
        flag: &'static str,
        /// Its value.
        value: String,
    },
    /// Something else in the environment: a Secret, a field.
    Elsewhere,
    /// Nothing: the default counts.
    Unset,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Key { config_map, key } => write!(f, "`{key}` of ConfigMap {config_map}"),
            Origin::Literal(value) => write!(f, "the literal `{value}` in its environment"),
            Origin::Flag { flag, value } => write!(f, "its argument `{flag} {value}`"),
            Origin::Elsewhere => f.write_str("its environment, but not from a ConfigMap"),
            Origin::Unset => f.write_str("nothing: the default counts"),
        }
    }
}

impl Origin {
    /// The value, where the pod template alone decides it; `None` inside is none at all. The controller's flags are
    /// whole seconds.
    pub fn fixed(&self) -> Option<Option<String>> {
        match self {
            Origin::Literal(value) => Some(Some(value.clone())),
            Origin::Flag { value, .. } if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(Some(format!("{value}s")))
            }
            Origin::Flag { value, .. } => Some(Some(value.clone())),
            Origin::Unset => Some(None),
            Origin::Key { .. } | Origin::Elsewhere => None,
        }
    }

    /// Whether it is the key of `argocd-cm` that the stock manifests use.
    pub fn is_config(&self, setting: Setting) -> bool {
        matches!(self, Origin::Key { config_map, key } if config_map == CONFIG && key == setting.key)
    }
}

/// Where the container takes the setting from.
pub fn of(container: &Container, setting: Setting) -> Origin {
    let words: Vec<_> = container.command.iter().chain(&container.args).flatten().collect();
    let flag = words.iter().enumerate().rev().find_map(|(place, word)| {
        let rest = word.strip_prefix(setting.flag)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if rest.is_empty() => words.get(place + 1).map(ToString::to_string),
            None => None,
        }
    });
    if let Some(value) = flag {
        return Origin::Flag { flag: setting.flag, value };
    }
    let Some(variable) = container.env.iter().flatten().rfind(|variable| variable.name == setting.variable) else {
        return Origin::Unset;
    };
    match variable.value_from.as_ref() {
        None => Origin::Literal(variable.value.clone().unwrap_or_default()),
        Some(source) => match &source.config_map_key_ref {
            Some(key) => Origin::Key { config_map: key.name.clone(), key: key.key.clone() },
            None => Origin::Elsewhere,
        },
    }
}

/// Who owns an object and will put it back as it was, when that shows.
pub fn owner(meta: &ObjectMeta) -> Option<String> {
    let value = |all: &Option<BTreeMap<String, String>>, key: &str| all.as_ref()?.get(key).cloned();
    if let Some(owner) = meta.owner_references.iter().flatten().next() {
        let by = if owner.kind == "ArgoCD" { "the operator, from " } else { "" };
        return Some(format!("{by}{} {}", owner.kind, owner.name));
    }
    if let Some(id) = value(&meta.annotations, "argocd.argoproj.io/tracking-id") {
        return Some(format!("the Argo CD Application {}", id.split(':').next().unwrap_or_default()));
    }
    if let Some(release) = value(&meta.annotations, "meta.helm.sh/release-name") {
        return Some(format!("the Helm release {release}"));
    }
    for (key, by) in [
        ("kustomize.toolkit.fluxcd.io/name", "the Flux Kustomization"),
        ("helm.toolkit.fluxcd.io/name", "the Flux HelmRelease"),
        ("argocd.argoproj.io/instance", "the Argo CD Application"),
    ] {
        if let Some(name) = value(&meta.labels, key) {
            return Some(format!("{by} {name}"));
        }
    }
    let instance = value(&meta.labels, "app.kubernetes.io/instance");
    match (value(&meta.labels, "app.kubernetes.io/managed-by"), instance) {
        (Some(by), instance) => Some(instance.map_or(by.clone(), |name| format!("{by} (release {name})"))),
        // Argo CD's own tracking by label, its default before v3.0.
        (None, Some(name)) => Some(format!("the Argo CD Application {name}")),
        (None, None) => None,
    }
}

/// When a ConfigMap's keys were last changed, as far as the API server recorded it, to the second. A deleted key has no
/// owner any more: then the last change of any key counts.
pub fn changed_at(config: &ConfigMap, keys: &[&str]) -> Option<Timestamp> {
    let present = |key: &str| config.data.as_ref().is_some_and(|data| data.contains_key(key));
    let all_there = keys.iter().all(|key| present(key));
    config
        .metadata
        .managed_fields
        .iter()
        .flatten()
        .filter(|entry| {
            let data = entry.fields_v1.as_ref().and_then(|fields| fields.0.get("f:data"));
            !all_there || data.is_some_and(|data| keys.iter().any(|key| data.get(format!("f:{key}")).is_some()))
        })
        .filter_map(|entry| Some(entry.time.as_ref()?.0))
        .max()
}

/// Who changed a key last, by the name of its field manager.
pub fn changed_by(config: &ConfigMap, key: &str) -> Option<String> {
    let owns = |fields: &serde_json::Value| fields["f:data"].get(format!("f:{key}")).is_some();
    let entries = config.metadata.managed_fields.iter().flatten();
    let owners = entries.filter(|entry| entry.fields_v1.as_ref().is_some_and(|fields| owns(&fields.0)));
    owners.max_by_key(|entry| entry.time.clone())?.manager.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn container(body: serde_json::Value) -> Container {
        serde_json::from_value(body).unwrap()
    }

    fn config_ref(name: &str, key: &str) -> serde_json::Value {
        json!({"name": PERIOD.variable, "valueFrom": {"configMapKeyRef": {"name": name, "key": key, "optional": true}}})
    }

    #[test]
    fn a_flag_wins_over_the_environment_and_each_origin_is_named() {
        let stock = config_ref(CONFIG, PERIOD_KEY);
        for (body, expected) in [
            (json!({"name": "c", "env": [stock]}), "`timeout.reconciliation` of ConfigMap argocd-cm"),
            (json!({"name": "c", "env": [config_ref("other", "x")]}), "`x` of ConfigMap other"),
            (json!({"name": "c", "env": [stock, {"name": PERIOD.variable, "value": "60s"}]}), "the literal `60s`"),
            (json!({"name": "c", "args": ["--app-resync", "60"], "env": [stock]}), "`--app-resync 60`"),
            (json!({"name": "c", "command": ["x", "--app-resync=60", "--app-resync=90"]}), "`--app-resync 90`"),
            (json!({"name": "c", "args": ["--app-resync-jitter=5"], "env": [stock]}), "ConfigMap argocd-cm"),
            (json!({"name": "c"}), "nothing: the default"),
            (
                json!({"name": "c", "env": [{"name": PERIOD.variable, "valueFrom": {"secretKeyRef": {"key": "k", "name": "s"}}}]}),
                "not from a ConfigMap",
            ),
        ] {
            let found = of(&container(body), PERIOD);
            assert!(found.to_string().contains(expected), "{found}");
            assert_eq!(found.is_config(PERIOD), expected.contains("argocd-cm"), "{found}");
        }
    }

    #[test]
    fn owners_that_put_things_back_are_recognised() {
        for (meta, expected) in [
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "self:/ConfigMap:argocd/argocd-cm"}}),
                Some("the Argo CD Application self"),
            ),
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "argo"}}),
                Some("Helm (release argo)"),
            ),
            (json!({"annotations": {"meta.helm.sh/release-name": "argo"}}), Some("the Helm release argo")),
            (
                json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ArgoCD", "name": "main", "uid": "1"}]}),
                Some("the operator, from ArgoCD main"),
            ),
            (json!({"labels": {"app.kubernetes.io/instance": "self"}}), Some("the Argo CD Application self")),
            (json!({"labels": {"app.kubernetes.io/part-of": "argocd"}}), None),
        ] {
            let meta: ObjectMeta = serde_json::from_value(meta).unwrap();
            assert_eq!(owner(&meta).as_deref(), expected);
        }
    }

    #[test]
    fn the_last_change_of_a_key_is_that_of_its_owner_and_of_anybody_once_it_is_deleted() {
        let entry = |time: &str, key: &str| json!({"manager": key, "time": time, "fieldsV1": {"f:data": {format!("f:{key}"): {}}}});
        let config: ConfigMap = serde_json::from_value(json!({
            "metadata": {"managedFields": [
                entry("2026-08-12T09:00:00Z", PERIOD_KEY), entry("2026-08-12T10:00:00Z", "other"),
            ]},
            "data": {PERIOD_KEY: "30s"},
        }))
        .unwrap();
        let at = |keys: &[&str]| changed_at(&config, keys).unwrap().to_string();
        assert_eq!(at(&[PERIOD_KEY]), "2026-08-12T09:00:00Z");
        assert_eq!(at(&[PERIOD_KEY, JITTER_KEY]), "2026-08-12T10:00:00Z");
        assert_eq!(changed_at(&ConfigMap::default(), &[PERIOD_KEY]), None);
        assert_eq!(changed_by(&config, PERIOD_KEY).as_deref(), Some(PERIOD_KEY), "the entry's manager is named so");
        assert_eq!(changed_by(&config, JITTER_KEY), None);
    }
}
