//! The resources that the API knows.

/// One resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    /// Empty for the core group.
    pub group: &'static str,
    /// `v1`.
    pub version: &'static str,
    /// `ConfigMap`.
    pub kind: &'static str,
    /// `configmaps`.
    pub plural: &'static str,
    /// `cm`.
    pub short: &'static [&'static str],
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether `status` can be written through the subresource only.
    pub status: bool,
    /// Further subresources.
    pub subresources: &'static [&'static str],
}

impl Resource {
    /// The name in the store: `configmaps`, `deployments.apps`.
    pub fn key(&self) -> String {
        if self.group.is_empty() { self.plural.into() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.into() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `configmap`.
    pub fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// Whether it is defined by a CustomResourceDefinition.
    pub fn custom(&self) -> bool {
        self.group == "argoproj.io"
    }
}

const fn core(kind: &'static str, plural: &'static str, short: &'static [&'static str]) -> Resource {
    Resource { group: "", version: "v1", kind, plural, short, namespaced: true, status: false, subresources: &[] }
}

const fn apps(kind: &'static str, plural: &'static str, short: &'static [&'static str]) -> Resource {
    Resource { group: "apps", status: true, subresources: &["scale"], ..core(kind, plural, short) }
}

const fn argo(kind: &'static str, plural: &'static str, short: &'static [&'static str]) -> Resource {
    Resource { group: "argoproj.io", version: "v1alpha1", ..core(kind, plural, short) }
}

const fn rbac(kind: &'static str, plural: &'static str, namespaced: bool) -> Resource {
    Resource { group: "rbac.authorization.k8s.io", namespaced, ..core(kind, plural, &[]) }
}

/// All of them; those of one group stand together, the core group first.
pub const RESOURCES: &[Resource] = &[
    Resource { namespaced: false, status: true, ..core("Namespace", "namespaces", &["ns"]) },
    core("ConfigMap", "configmaps", &["cm"]),
    core("Secret", "secrets", &[]),
    Resource { status: true, subresources: &["proxy"], ..core("Service", "services", &["svc"]) },
    Resource { status: true, subresources: &["log", "portforward"], ..core("Pod", "pods", &["po"]) },
    core("Event", "events", &["ev"]),
    core("ServiceAccount", "serviceaccounts", &["sa"]),
    apps("Deployment", "deployments", &["deploy"]),
    apps("StatefulSet", "statefulsets", &["sts"]),
    apps("ReplicaSet", "replicasets", &["rs"]),
    Resource { status: false, subresources: &[], ..apps("ControllerRevision", "controllerrevisions", &[]) },
    argo("Application", "applications", &["app", "apps"]),
    argo("ApplicationSet", "applicationsets", &["appset", "appsets"]),
    argo("AppProject", "appprojects", &["appproj", "appprojs"]),
    rbac("Role", "roles", true),
    rbac("RoleBinding", "rolebindings", true),
    rbac("ClusterRole", "clusterroles", false),
    rbac("ClusterRoleBinding", "clusterrolebindings", false),
    Resource {
        group: "apiextensions.k8s.io",
        namespaced: false,
        status: true,
        ..core("CustomResourceDefinition", "customresourcedefinitions", &["crd", "crds"])
    },
];

/// The resource of a path.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|r| r.group == group && r.version == version && r.plural == plural)
}

/// The resource by its name in the store.
pub fn by_key(key: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|r| r.key() == key)
}

/// The groups and their versions in the order of the table, each once.
pub fn groups() -> Vec<(&'static str, &'static str)> {
    let mut groups: Vec<_> = RESOURCES.iter().map(|r| (r.group, r.version)).collect();
    groups.dedup();
    groups
}
