//! The workloads of Argo CD: what of them matters here, and how they are found. Pure.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{Container, Pod, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kit::error::Error;

/// The parts of Argo CD that read the polling period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The application controller.
    Controller,
    /// The repo-server.
    RepoServer,
}

impl Component {
    /// The value of the label `app.kubernetes.io/component`, and the container's name under Helm.
    pub fn label(self) -> &'static str {
        match self {
            Component::Controller => "application-controller",
            Component::RepoServer => "repo-server",
        }
    }

    /// The flag that names the workload.
    pub fn flag(self) -> &'static str {
        match self {
            Component::Controller => "--controller",
            Component::RepoServer => "--repo-server",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Component::Controller => "controller",
            Component::RepoServer => "repo-server",
        })
    }
}

/// The kinds that a component may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `deployments.apps`.
    Deployment,
    /// `statefulsets.apps`.
    StatefulSet,
}

impl Kind {
    /// As kubectl writes it before a slash.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Deployment => "deployment",
            Kind::StatefulSet => "statefulset",
        }
    }

    /// As RBAC names it.
    pub fn resource(self) -> &'static str {
        match self {
            Kind::Deployment => "deployments.apps",
            Kind::StatefulSet => "statefulsets.apps",
        }
    }
}

/// A Deployment or StatefulSet, alike.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Which of the two.
    pub kind: Kind,
    /// Its own metadata.
    pub meta: ObjectMeta,
    /// The replicas asked for.
    pub replicas: i32,
    /// What its pods are made from.
    pub template: PodTemplateSpec,
    /// Which pods are its own.
    pub selector: LabelSelector,
    /// `spec.paused` of a Deployment.
    pub paused: bool,
    /// `OnDelete` of a StatefulSet.
    pub on_delete: bool,
    /// The pods of a StatefulSet below this ordinal keep their template.
    pub partition: i32,
    /// Its status.
    pub status: Status,
}

/// The fields of both kinds' status that tell how far a rollout is.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The generation that the numbers belong to.
    pub observed_generation: i64,
    /// All pods.
    pub replicas: i32,
    /// Pods of the newest template.
    pub updated: i32,
    /// Ready pods.
    pub ready: i32,
    /// Available pods.
    pub available: i32,
    /// `currentRevision` and `updateRevision` of a StatefulSet.
    pub revisions: (String, String),
    /// The message of a Deployment that made no progress in time.
    pub deadline_exceeded: Option<String>,
}

impl From<Deployment> for Workload {
    fn from(object: Deployment) -> Self {
        let spec = object.spec.unwrap_or_default();
        let status = object.status.unwrap_or_default();
        let stuck = status.conditions.unwrap_or_default().into_iter().find(|condition| {
            condition.type_ == "Progressing" && condition.reason.as_deref() == Some("ProgressDeadlineExceeded")
        });
        Workload {
            kind: Kind::Deployment,
            meta: object.metadata,
            replicas: spec.replicas.unwrap_or(1),
            template: spec.template,
            selector: spec.selector,
            paused: spec.paused.unwrap_or_default(),
            on_delete: false,
            partition: 0,
            status: Status {
                observed_generation: status.observed_generation.unwrap_or_default(),
                replicas: status.replicas.unwrap_or_default(),
                updated: status.updated_replicas.unwrap_or_default(),
                ready: status.ready_replicas.unwrap_or_default(),
                available: status.available_replicas.unwrap_or_default(),
                revisions: Default::default(),
                deadline_exceeded: stuck.map(|condition| condition.message.unwrap_or_default()),
            },
        }
    }
}

impl From<StatefulSet> for Workload {
    fn from(object: StatefulSet) -> Self {
        let spec = object.spec.unwrap_or_default();
        let status = object.status.unwrap_or_default();
        let strategy = spec.update_strategy.unwrap_or_default();
        Workload {
            kind: Kind::StatefulSet,
            meta: object.metadata,
            replicas: spec.replicas.unwrap_or(1),
            template: spec.template,
            selector: spec.selector,
            paused: false,
            on_delete: strategy.type_.as_deref() == Some("OnDelete"),
            partition: strategy.rolling_update.and_then(|rolling| rolling.partition).unwrap_or_default(),
            status: Status {
                observed_generation: status.observed_generation.unwrap_or_default(),
                replicas: status.replicas,
                updated: status.updated_replicas.unwrap_or_default(),
                ready: status.ready_replicas.unwrap_or_default(),
                available: status.available_replicas.unwrap_or_default(),
                revisions: (status.current_revision.unwrap_or_default(), status.update_revision.unwrap_or_default()),
                deadline_exceeded: None,
            },
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.word(), self.name())
    }
}

impl Workload {
    /// Its name.
    pub fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    /// The container of Argo CD in its pods: named as the component, with or without `argocd-` in front (stock
    /// manifests and Helm), else the one whose command names the component, else the first.
    pub fn container(&self, component: Component) -> Option<&Container> {
        let containers = &self.template.spec.as_ref()?.containers;
        let word = component.label();
        let named = containers.iter().find(|c| c.name == word || c.name.strip_prefix("argocd-") == Some(word));
        let runs = |c: &&Container| {
            c.command.iter().chain(&c.args).flatten().any(|argument| argument.ends_with(&format!("argocd-{word}")))
        };
        named.or_else(|| containers.iter().find(runs)).or(containers.first())
    }

    /// The label selector of its pods, as a query.
    pub fn pod_query(&self) -> String {
        let labels = self.selector.match_labels.iter().flatten().map(|(key, value)| format!("{key}={value}"));
        let expressions = self.selector.match_expressions.iter().flatten().map(|expression| {
            let values = expression.values.as_deref().unwrap_or_default().join(",");
            match expression.operator.as_str() {
                "In" => format!("{} in ({values})", expression.key),
                "NotIn" => format!("{} notin ({values})", expression.key),
                "DoesNotExist" => format!("!{}", expression.key),
                _ => expression.key.clone(),
            }
        });
        labels.chain(expressions).collect::<Vec<_>>().join(",")
    }

    /// Whether a pod that its selector finds is its own: two installs in one namespace may share their labels.
    pub fn owns(&self, pod: &Pod) -> bool {
        let Some(owner) = pod.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
        else {
            return true;
        };
        match self.kind {
            Kind::StatefulSet => Some(&owner.uid) == self.meta.uid.as_ref(),
            // The ReplicaSet between them is named after the Deployment and the hash that its pods carry.
            Kind::Deployment => {
                let hash = label(pod.metadata.labels.as_ref(), "pod-template-hash").unwrap_or_default();
                owner.name == format!("{}-{hash}", self.name())
            }
        }
    }
}

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

fn label<'a>(labels: Option<&'a BTreeMap<String, String>>, key: &str) -> Option<&'a str> {
    labels?.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn the_container_is_found_beside_a_sidecar() {
        let mut found = workload(Kind::Deployment, "x", json!({}), 1);
        for (containers, expected) in [
            (json!([{"name": "proxy"}, {"name": "argocd-repo-server"}]), "argocd-repo-server"),
            (json!([{"name": "proxy"}, {"name": "repo-server"}]), "repo-server"),
            (json!([{"name": "proxy"}, {"name": "main", "args": ["/usr/local/bin/argocd-repo-server"]}]), "main"),
            (json!([{"name": "only"}]), "only"),
        ] {
            found.template = serde_json::from_value(json!({"spec": {"containers": containers}})).unwrap();
            assert_eq!(found.container(Component::RepoServer).unwrap().name, expected);
        }
    }

    #[test]
    fn pods_of_another_workload_with_the_same_labels_are_not_its_own() {
        let pod = |owner: serde_json::Value| {
            serde_json::from_value::<Pod>(json!({"metadata": {
                "labels": {"pod-template-hash": "abc"}, "ownerReferences": [owner],
            }}))
            .unwrap()
        };
        let set =
            |name: &str| json!({"apiVersion": "apps/v1", "kind": "X", "name": name, "uid": name, "controller": true});
        let stateful = workload(Kind::StatefulSet, "a", json!({}), 1);
        assert!(stateful.owns(&pod(set("a"))) && !stateful.owns(&pod(set("b"))));
        let deployment = workload(Kind::Deployment, "a", json!({}), 1);
        assert!(deployment.owns(&pod(set("a-abc"))) && !deployment.owns(&pod(set("b-abc"))));
    }
}
