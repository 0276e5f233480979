//! The workloads of Argo CD: what of them matters here, and how they are found. Pure.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{Container, Pod, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};

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

    /// Whether a pod that its selector finds is its own and counts: two installs in one namespace may share their
    /// labels, and evicted pods stay in the list.
    pub fn owns(&self, pod: &Pod) -> bool {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Failed" | "Succeeded")) {
            return false;
        }
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

/// The value of a label.
pub fn label<'a>(labels: Option<&'a BTreeMap<String, String>>, key: &str) -> Option<&'a str> {
    labels?.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workload(kind: Kind) -> Workload {
        let object = json!({"metadata": {"name": "a", "uid": "a"}});
        match kind {
            Kind::Deployment => serde_json::from_value::<Deployment>(object).unwrap().into(),
            Kind::StatefulSet => serde_json::from_value::<StatefulSet>(object).unwrap().into(),
        }
    }

    #[test]
    fn the_container_is_found_beside_a_sidecar() {
        let mut found = workload(Kind::Deployment);
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
        let stateful = workload(Kind::StatefulSet);
        assert!(stateful.owns(&pod(set("a"))) && !stateful.owns(&pod(set("b"))));
        let mut evicted = pod(set("a"));
        evicted.status = serde_json::from_value(json!({"phase": "Failed", "reason": "Evicted"})).unwrap();
        assert!(!stateful.owns(&evicted));
        let deployment = workload(Kind::Deployment);
        assert!(deployment.owns(&pod(set("a-abc"))) && !deployment.owns(&pod(set("b-abc"))));
    }
}
