//! Applications: their resource and their names.

use std::fmt;

use kube::core::ApiResource;

/// `applications.argoproj.io/v1alpha1`, for `kube::Api<DynamicObject>` and friends.
pub fn resource() -> ApiResource {
    ApiResource {
        group: "argoproj.io".into(),
        version: "v1alpha1".into(),
        api_version: "argoproj.io/v1alpha1".into(),
        kind: "Application".into(),
        plural: "applications".into(),
    }
}

/// The name of an Application.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppName {
    /// Its own namespace, which need not be that of Argo CD.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl AppName {
    /// Reads `name` or `namespace/name`; a bare name is in `default_namespace`.
    pub fn parse(text: &str, default_namespace: &str) -> Self {
        let (namespace, name) = text.split_once('/').unwrap_or((default_namespace, text));
        AppName { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for AppName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Whether the value of an annotation such as `argocd.argoproj.io/skip-reconcile` is true, in any of Go's spellings
/// (`strconv.ParseBool`).
pub fn is_true(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
}
