//! The kinds of install, and what they name differently.

use serde_json::{Map, Value, json};

use crate::{Options, names, processes::Component};

/// How Argo CD was installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Install {
    /// `manifests/install.yaml`, or the namespace-scoped one, which has the same workloads; with more replicas in
    /// [`Options`] the HA manifests.
    #[default]
    Stock,
    /// `manifests/core-install.yaml`: no argocd-server.
    Core,
    /// The chart `argo-cd`.
    Helm {
        /// The name of the release.
        release: String,
    },
    /// argocd-operator.
    Operator {
        /// The name of the `ArgoCD` object.
        name: String,
    },
    /// Dynamic cluster distribution: the controller is a Deployment, and a StatefulSet of the same name has no replicas.
    Dynamic,
}

/// One workload of an install.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub component: Component,
    /// The name of the Deployment or StatefulSet, and of the server's Service.
    pub workload: String,
    pub container: String,
    /// Of the workload.
    pub labels: Value,
    /// Of the pods.
    pub pod_labels: Value,
    pub selector: Value,
}

/// What follows from the kind of install.
pub(super) struct Shape<'a> {
    options: &'a Options,
}

impl<'a> Shape<'a> {
    pub(super) fn of(options: &'a Options) -> Shape<'a> {
        Shape { options }
    }

    /// A workload; `None` where the install has none.
    pub(super) fn part(&self, component: Component) -> Option<Part> {
        let short = match component {
            Component::Controller => "application-controller",
            Component::RepoServer => "repo-server",
            Component::Server => "server",
        };
        let stock = format!("argocd-{short}");
        let part_of = |name: &str| {
            json!({
                "app.kubernetes.io/name": name, "app.kubernetes.io/component": short, "app.kubernetes.io/part-of": "argocd",
            })
        };
        let name_only = |name: &str| json!({"app.kubernetes.io/name": name});
        match &self.options.install {
            Install::Core if component == Component::Server => None,
            Install::Stock | Install::Core | Install::Dynamic => Some(Part {
                component,
                workload: stock.clone(),
                container: stock.clone(),
                labels: part_of(&stock),
                pod_labels: name_only(&stock),
                selector: name_only(&stock),
            }),
            Install::Operator { name } => {
                let full = format!("{name}-{short}");
                Some(Part {
                    component,
                    workload: full.clone(),
                    container: stock,
                    labels: part_of(&full),
                    pod_labels: name_only(&full),
                    selector: name_only(&full),
                })
            }
            Install::Helm { release } => {
                let full = if release.contains("argocd") { release.clone() } else { format!("{release}-argocd") };
                let mut labels = part_of(&stock);
                labels["app.kubernetes.io/instance"] = json!(release);
                let selector = json!({"app.kubernetes.io/name": stock, "app.kubernetes.io/instance": release});
                let pod_labels = labels.clone();
                labels["app.kubernetes.io/managed-by"] = json!("Helm");
                Some(Part {
                    component,
                    workload: format!("{full}-{short}"),
                    container: short.into(),
                    labels,
                    pod_labels,
                    selector,
                })
            }
        }
    }

    /// `data` of `argocd-cm`: empty in the manifests; the chart sets the keys.
    pub(super) fn settings(&self) -> Map<String, Value> {
        let mut data = Map::new();
        if matches!(self.options.install, Install::Helm { .. }) {
            for (key, value) in [
                ("timeout.reconciliation", "120s"),
                ("timeout.reconciliation.jitter", "60s"),
                ("timeout.hard.reconciliation", "0s"),
            ] {
                data.insert(key.into(), json!(value));
            }
        }
        for (key, value) in &self.options.settings {
            data.insert(key.clone(), json!(value));
        }
        data
    }
}

/// The marks of whoever keeps a ConfigMap as it is: Helm's labels and annotations, the operator's `ArgoCD` object as its
/// owner.
pub(super) fn mark(options: &Options, metadata: &mut Value) {
    match &options.install {
        Install::Helm { release } => {
            metadata["labels"]["app.kubernetes.io/instance"] = json!(release);
            metadata["labels"]["app.kubernetes.io/managed-by"] = json!("Helm");
            metadata["annotations"] =
                json!({"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": options.namespace});
        }
        Install::Operator { name } => {
            metadata["labels"]["app.kubernetes.io/managed-by"] = json!(name);
            let uid = format!("00000000-0000-4000-9000-{:0>12}", names::hash(name, 8));
            metadata["ownerReferences"] = json!([{
                "apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "name": name, "uid": uid,
                "controller": true, "blockOwnerDeletion": true,
            }]);
        }
        Install::Stock | Install::Core | Install::Dynamic => {}
    }
}
