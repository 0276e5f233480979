//! Which Applications are to be refreshed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Container;
use kit::{
    application::{AppName, is_true},
    cluster::{Ask, Cluster},
    error::Error,
    namespaces::Served,
    version::Version,
};
use kube::{
    Api,
    api::{DynamicObject, ListParams},
};

use crate::{
    args::Args,
    origin::{self, Origin, PARAMS, Setting},
};

/// Namespaces other than its own that an install serves.
const NAMESPACES: Setting = Setting {
    key: "application.namespaces",
    variable: "ARGOCD_APPLICATION_NAMESPACES",
    flag: "--application-namespaces",
};
const SKIP: &str = "argocd.argoproj.io/skip-reconcile";

/// An Application to refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub app: AppName,
    /// Without the cached manifests.
    pub hard: bool,
    /// What it reads, to begin with one Application of each.
    pub repository: String,
}

impl Target {
    /// The value of the annotation.
    pub fn kind(&self) -> &'static str {
        if self.hard { "hard" } else { "normal" }
    }
}

/// The Applications that were named, each once; and of those that were selected by label the ones that nobody will
/// answer for, with the reason.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// To be refreshed.
    pub all: Vec<Target>,
    /// Selected, but nobody will ever answer.
    pub skipped: Vec<(AppName, String)>,
}

/// Finds the Applications.
///
/// # Errors
/// When a named one does not exist, or nobody would ever answer for it; exit code 2.
pub async fn find(cluster: &Cluster, args: &Args, served: Option<&Served>) -> Result<Targets, Error> {
    let mut found: BTreeMap<AppName, Target> = BTreeMap::new();
    let mut skipped = Vec::new();
    // A hard refresh is a normal one too.
    for (names, hard) in [(&args.refresh, false), (&args.hard_refresh, true)] {
        for name in names {
            let app = AppName::parse(name, &cluster.namespace);
            let object = get(cluster, &app).await?;
            if let Some(why) = unanswered(&object, &app, &cluster.namespace, served) {
                return Err(Error::usage("nobody-answers", format!("{app} would never be refreshed: {why}"))
                    .hint("leave it out, or change that first"));
            }
            found.insert(app.clone(), Target { app, hard, repository: repository(&object) });
        }
    }
    for (selector, hard) in [(&args.refresh_selector, false), (&args.hard_refresh_selector, true)] {
        let Some(selector) = selector else { continue };
        let objects = list(cluster, args.all_namespaces, Some(selector)).await?;
        if objects.is_empty() {
            let place = if args.all_namespaces { "any namespace" } else { &cluster.namespace };
            return Err(Error::usage(
                "no-applications",
                format!("no Application has the labels {selector} in {place}"),
            )
            .hint("`kubectl get applications -A -l …` lists them; -A looks in all namespaces"));
        }
        for object in objects {
            let namespace = object.metadata.namespace.clone().unwrap_or_default();
            let app = AppName { namespace, name: object.metadata.name.clone().unwrap_or_default() };
            match unanswered(&object, &app, &cluster.namespace, served) {
                Some(why) => skipped.push((app, why)),
                None => {
                    let hard = hard || found.get(&app).is_some_and(|target| target.hard);
                    found.insert(app.clone(), Target { app, hard, repository: repository(&object) });
                }
            }
        }
    }
    Ok(Targets { all: found.into_values().collect(), skipped })
}

/// Lists Applications in Argo CD's namespace or in all.
///
/// # Errors
/// As [`Cluster::call`].
pub async fn list(cluster: &Cluster, everywhere: bool, selector: Option<&str>) -> Result<Vec<DynamicObject>, Error> {
    let resource = kit::application::resource();
    let client = cluster.client.clone();
    let (api, namespace): (Api<DynamicObject>, &str) = if everywhere {
        (Api::all_with(client, &resource), "")
    } else {
        (Api::namespaced_with(client, &cluster.namespace, &resource), &cluster.namespace)
    };
    let params = ListParams { label_selector: selector.map(str::to_owned), ..ListParams::default() };
    let ask = Ask { verb: "list", resource: "applications.argoproj.io", namespace, name: "" };
    Ok(cluster.call(ask, api.list(&params)).await?.items)
}

async fn get(cluster: &Cluster, app: &AppName) -> Result<DynamicObject, Error> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(cluster.client.clone(), &app.namespace, &kit::application::resource());
    let ask = Ask { verb: "get", resource: "applications.argoproj.io", namespace: &app.namespace, name: &app.name };
    Ok(cluster.call(ask, api.get(&app.name)).await?)
}

/// The URLs of an Application's sources.
pub fn repository(app: &DynamicObject) -> String {
    let spec = &app.data["spec"];
    let several = spec["sources"].as_array().filter(|sources| !sources.is_empty());
    let sources =
        several.map_or_else(|| vec![&spec["source"], &spec["sourceHydrator"]["drySource"]], |all| all.iter().collect());
    let urls: Vec<_> = sources.iter().filter_map(|source| source["repoURL"].as_str()).collect();
    urls.join(" ")
}

/// The `application.namespaces` that a controller container runs with. An expression that cannot be read matches nothing,
/// as in the controller (argo-cd v3.5.1 util/glob).
pub fn served(container: &Container, params: Option<&BTreeMap<String, String>>, version: Version) -> Option<Served> {
    let list = match origin::of(container, NAMESPACES) {
        Origin::Literal(value) | Origin::Flag { value, .. } => value,
        Origin::Key { config_map, key } if config_map == PARAMS => params?.get(&key).cloned()?,
        Origin::Key { .. } | Origin::Elsewhere | Origin::Unset => return None,
    };
    let readable = |pattern: &String| Served::of(std::slice::from_ref(pattern), version).is_ok();
    let patterns: Vec<String> = list.split(',').map(Into::into).filter(readable).collect();
    Served::of(&patterns, version).ok()
}

/// Why a request on this Application will never be consumed, if that is so (argo-cd v3.5.1 controller/appcontroller.go).
fn unanswered(object: &DynamicObject, app: &AppName, install: &str, served: Option<&Served>) -> Option<String> {
    let skip = object.metadata.annotations.as_ref().and_then(|all| all.get(SKIP));
    if skip.is_some_and(|value| is_true(value)) {
        return Some(format!("its annotation {SKIP} is true"));
    }
    let is_served = app.namespace == install || served.is_some_and(|served| served.has(&app.namespace));
    (!is_served).then(|| {
        format!("the Argo CD in {install} does not serve its namespace: see `application.namespaces` in {PARAMS}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nobody_answers_for_an_application_that_is_skipped_or_in_a_namespace_that_is_not_served() {
        let app = |namespace: &str| AppName { namespace: namespace.into(), name: "a".into() };
        let object = |annotations: serde_json::Value| {
            serde_json::from_value::<DynamicObject>(json!({"metadata": {"annotations": annotations}})).unwrap()
        };
        let plain = object(json!({}));
        assert_eq!(unanswered(&plain, &app("argocd"), "argocd", None), None);
        let served = Served::of(&["x".into(), " team-*".into()], Version::NEWEST).unwrap();
        assert_eq!(unanswered(&plain, &app("team-a"), "argocd", Some(&served)), None);
        assert!(unanswered(&plain, &app("team-a"), "argocd", None).unwrap().contains("does not serve"));
        let skipped = object(json!({SKIP: "True"}));
        assert!(unanswered(&skipped, &app("argocd"), "argocd", None).unwrap().contains("skip-reconcile"));
    }

    #[test]
    fn applications_of_one_repository_are_known_by_its_url() {
        for (spec, expected) in [
            (json!({"source": {"repoURL": "a"}}), "a"),
            (json!({"sources": [{"repoURL": "a"}, {"repoURL": "b"}], "source": {"repoURL": "c"}}), "a b"),
            (json!({"sourceHydrator": {"drySource": {"repoURL": "d"}}}), "d"),
            (json!(5), ""),
        ] {
            let object = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
            assert_eq!(repository(&object), expected);
        }
    }
}
