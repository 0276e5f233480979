//! Finding the workloads of Argo CD among all of a namespace. Pure.

use kit::error::Error;

use crate::workload::{Component, Kind, Workload, label};

/// Finds the workload of a component among all of the namespace, or the one that the user named.
///
/// # Errors
/// When there is none, or more than one that could be meant: they are listed; exit code 2.
pub fn find(component: Component, all: &[Workload], named: Option<&str>) -> Result<Workload, Error> {
    let flag = component.flag();
    if let Some(named) = named {
        let (kind, name) = named.split_once('/').unwrap_or(("", named));
        let kinds: &[Kind] = match kind {
            "" => &[Kind::Deployment, Kind::StatefulSet],
            "deployment" | "deploy" | "deployments" => &[Kind::Deployment],
            "statefulset" | "sts" | "statefulsets" => &[Kind::StatefulSet],
            _ => {
                return Err(Error::usage("bad-workload", format!("`{named}` names no Deployment or StatefulSet"))
                    .hint(format!("write {flag} statefulset/NAME or {flag} deployment/NAME")));
            }
        };
        let found = all.iter().filter(|w| kinds.contains(&w.kind) && w.name() == name);
        return only(component, found.collect(), || format!("there is no {named}; there are {}", list(all.iter())));
    }
    let found: Vec<_> = all.iter().filter(|workload| is(workload, component)).collect();
    // Dynamic distribution leaves a StatefulSet of 0 replicas beside its Deployment.
    let running: Vec<_> = found.iter().copied().filter(|workload| workload.replicas > 0).collect();
    only(component, if running.is_empty() { found } else { running }, || {
        format!("no {component} found by its labels among {}", list(all.iter()))
    })
}

fn only(component: Component, found: Vec<&Workload>, none: impl FnOnce() -> String) -> Result<Workload, Error> {
    let flag = component.flag();
    match found[..] {
        [one] => Ok(one.clone()),
        [] => Err(Error::usage("no-workload", none())
            .hint(format!("is Argo CD in this namespace (-n)? {flag} KIND/NAME names the {component} itself"))),
        _ => {
            let each = list(found.into_iter());
            Err(Error::usage("ambiguous-workload", format!("more than one {component} found: {each}"))
                .hint(format!("choose one with {flag} KIND/NAME")))
        }
    }
}

fn list<'a>(workloads: impl Iterator<Item = &'a Workload>) -> String {
    let names: Vec<_> = workloads.map(ToString::to_string).collect();
    if names.is_empty() { "no Deployments or StatefulSets at all".into() } else { names.join(", ") }
}

/// Stock manifests, Helm and the operator all set `component`; stock pods and workloads also have `name`, which Helm
/// keeps unless `nameOverride` was changed.
fn is(workload: &Workload, component: Component) -> bool {
    let labels = workload.meta.labels.as_ref();
    let word = component.label();
    let name = label(labels, "app.kubernetes.io/name").unwrap_or_default();
    let part_of = label(labels, "app.kubernetes.io/part-of").unwrap_or("argocd");
    name.strip_prefix("argocd-") == Some(word)
        || (label(labels, "app.kubernetes.io/component") == Some(word) && part_of == "argocd")
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
    use serde_json::json;

    fn workload(kind: Kind, name: &str, labels: serde_json::Value, replicas: i32) -> Workload {
        let object = json!({
            "metadata": {"name": name, "labels": labels, "uid": name},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "x"}]}}},
        });
        match kind {
            Kind::Deployment => serde_json::from_value::<Deployment>(object).unwrap().into(),
            Kind::StatefulSet => serde_json::from_value::<StatefulSet>(object).unwrap().into(),
        }
    }

    fn component(component: &str) -> serde_json::Value {
        json!({"app.kubernetes.io/component": component, "app.kubernetes.io/part-of": "argocd"})
    }

    #[test]
    fn each_way_of_installing_is_found_by_its_labels() {
        let stock = json!({"app.kubernetes.io/name": "argocd-application-controller"});
        let all = [
            workload(Kind::StatefulSet, "argocd-application-controller", stock, 1),
            workload(Kind::Deployment, "my-argocd-repo-server", component("repo-server"), 2),
            workload(Kind::Deployment, "argocd-server", component("server"), 2),
        ];
        assert_eq!(
            find(Component::Controller, &all, None).unwrap().to_string(),
            "statefulset/argocd-application-controller"
        );
        assert_eq!(find(Component::RepoServer, &all, None).unwrap().name(), "my-argocd-repo-server");
    }

    #[test]
    fn the_deployment_of_dynamic_distribution_wins_over_a_statefulset_of_none() {
        let all = [
            workload(Kind::StatefulSet, "argocd-application-controller", component("application-controller"), 0),
            workload(Kind::Deployment, "argocd-application-controller", component("application-controller"), 3),
        ];
        assert_eq!(find(Component::Controller, &all, None).unwrap().kind, Kind::Deployment);
    }

    #[test]
    fn what_is_ambiguous_or_missing_is_listed() {
        let all = [
            workload(Kind::Deployment, "a-repo-server", component("repo-server"), 1),
            workload(Kind::Deployment, "b-repo-server", component("repo-server"), 1),
        ];
        let error = find(Component::RepoServer, &all, None).unwrap_err();
        assert!(error.message.contains("deployment/a-repo-server, deployment/b-repo-server"), "{error}");
        assert!(error.hint.unwrap().contains("--repo-server"));
        assert_eq!(find(Component::RepoServer, &all, Some("deploy/b-repo-server")).unwrap().name(), "b-repo-server");
        assert!(find(Component::RepoServer, &all, Some("sts/b-repo-server")).is_err());
        assert!(find(Component::RepoServer, &all, Some("pod/b")).unwrap_err().message.contains("`pod/b` names no"));
        assert!(find(Component::Controller, &all, None).unwrap_err().message.contains("a-repo-server"));
    }

    #[test]
    fn components_of_other_products_are_left_alone() {
        let labels = json!({"app.kubernetes.io/component": "repo-server", "app.kubernetes.io/part-of": "other"});
        let all = [workload(Kind::Deployment, "x", labels, 1)];
        assert!(find(Component::RepoServer, &all, None).is_err());
    }
}
