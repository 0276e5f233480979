//! Which Applications one list and one watch have to cover.

use std::collections::BTreeSet;

use kit::{application::AppName, cluster::Ask};

/// Which Applications one list and one watch have to cover. A single Application is asked for with a field selector,
/// since only then a Role with `resourceNames` allows it; names in one namespace are found in that namespace, names in
/// several ones in the whole cluster, because there is one watch whatever is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The namespace; `None` for all.
    namespace: Option<String>,
    /// The names, unless everything in the namespace is meant.
    names: BTreeSet<AppName>,
    /// The one name, for the field selector and for errors.
    only: Option<String>,
    labels: Option<String>,
}

impl Scope {
    /// These Applications, at least one.
    pub fn named(names: BTreeSet<AppName>) -> Self {
        let first = names.iter().next().map(|name| name.namespace.clone());
        let namespace = first.filter(|first| names.iter().all(|name| name.namespace == *first));
        let only = names.iter().next().filter(|_| names.len() == 1).map(|name| name.name.clone());
        Scope { namespace, names, only, labels: None }
    }

    /// Everything in a namespace, or in all, with these labels.
    pub fn selected(namespace: Option<String>, labels: Option<String>) -> Self {
        Scope { namespace, names: BTreeSet::new(), only: None, labels }
    }

    /// The names, empty when Applications are selected.
    pub fn names(&self) -> &BTreeSet<AppName> {
        &self.names
    }

    /// Whether an Application that the API server told of is meant.
    pub fn contains(&self, name: &AppName) -> bool {
        self.names.is_empty() || self.names.contains(name)
    }

    /// The path to list and to watch.
    pub fn path(&self) -> String {
        match &self.namespace {
            Some(namespace) => namespaced(namespace),
            None => "/apis/argoproj.io/v1alpha1/applications".into(),
        }
    }

    /// The label selector.
    pub fn labels(&self) -> Option<&str> {
        self.labels.as_deref()
    }

    /// The field selector.
    pub fn fields(&self) -> Option<String> {
        self.only.as_ref().map(|name| format!("metadata.name={name}"))
    }

    /// What is asked, in the words of RBAC.
    pub fn ask<'a>(&'a self, verb: &'a str) -> Ask<'a> {
        Ask {
            verb,
            resource: "applications.argoproj.io",
            namespace: self.namespace.as_deref().unwrap_or_default(),
            name: self.only.as_deref().unwrap_or_default(),
        }
    }

    /// Where it looks, for people: `namespace argocd`, `any namespace`.
    pub fn place(&self) -> String {
        self.namespace.as_ref().map_or("any namespace".into(), |namespace| format!("namespace {namespace}"))
    }
}

/// The path of the Applications of a namespace.
pub fn namespaced(namespace: &str) -> String {
    format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(names: &[&str]) -> Scope {
        Scope::named(names.iter().map(|name| AppName::parse(name, "argocd")).collect())
    }

    #[test]
    fn one_application_is_asked_for_by_name() {
        let scope = scope(&["evt"]);
        assert_eq!(scope.path(), "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications");
        assert_eq!(scope.fields().as_deref(), Some("metadata.name=evt"));
    }

    #[test]
    fn names_of_one_namespace_share_a_watch_of_it_and_others_one_of_the_cluster() {
        assert_eq!(scope(&["a", "b"]).path(), "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications");
        assert_eq!(scope(&["a", "b"]).fields(), None);
        let scope = scope(&["a", "team/a"]);
        assert_eq!(scope.path(), "/apis/argoproj.io/v1alpha1/applications");
        assert!(scope.contains(&AppName::parse("team/a", "x")) && !scope.contains(&AppName::parse("other/a", "x")));
    }
}
