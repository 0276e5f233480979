//! Who asks, and whether the Roles in the store let them: bearer tokens, impersonation, RBAC.

use std::{borrow::Cow, collections::BTreeMap, sync::Mutex};

use axum::http::{HeaderMap, Method};
use serde_json::Value;

use super::{route::Route, selector::Selector, status::Status};
use crate::store::Store;

/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

/// A user as the authenticator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name; `system:serviceaccount:NAMESPACE:NAME` for a ServiceAccount.
    pub name: String,
    /// The user's groups.
    pub groups: Vec<String>,
}

impl Identity {
    /// A user in no groups but the one of everybody with a valid token.
    pub fn user(name: &str) -> Identity {
        Identity { name: name.into(), groups: vec!["system:authenticated".into()] }
    }
}

/// The bearer tokens that are valid.
#[derive(Default)]
pub struct Tokens(Mutex<BTreeMap<String, Identity>>);

impl Tokens {
    /// Makes a token valid for a user.
    pub fn grant(&self, token: &str, identity: Identity) {
        self.lock().insert(token.into(), identity);
    }

    /// Makes a token invalid: whoever sends it is answered 401.
    pub fn revoke(&self, token: &str) {
        self.lock().remove(token);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Identity>> {
        self.0.lock().expect("no thread panics while it holds the tokens")
    }

    /// The user whose token a request bears.
    pub fn bearer(&self, headers: &HeaderMap) -> Option<Identity> {
        let token = headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")?.trim();
        self.lock().get(token).cloned()
    }
}

/// What somebody wants to do.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `impersonate`.
    pub verb: Cow<'static, str>,
    /// The API group; empty for the core group.
    pub group: String,
    /// `pods`, `pods/log`.
    pub resource: String,
    /// Empty at cluster scope and for all namespaces.
    pub namespace: String,
    /// Empty for a collection, unless a field selector names the only object.
    pub name: String,
}

impl Attempt {
    /// What a request to a resource wants. As in the API server, `metadata.name` in a field selector of a list or watch
    /// counts as the name (kubernetes staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go).
    pub fn of(method: &Method, route: &Route, watch: bool, selector: &Selector) -> Attempt {
        let collection = route.name.is_empty();
        let verb = match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if collection => "deletecollection",
            Method::DELETE => "delete",
            _ if watch && route.subresource.is_empty() => "watch",
            _ if collection => "list",
            _ => "get",
        };
        let name = if collection && verb != "create" { selector.name().unwrap_or_default() } else { &route.name };
        let resource = match route.subresource.as_str() {
            "" => route.resource.plural.to_owned(),
            subresource => format!("{}/{subresource}", route.resource.plural),
        };
        // An object of the resource `namespaces` is in the namespace of its own name for the authorizer.
        let namespace = if route.resource.plural == "namespaces" { &route.name } else { &route.namespace };
        Attempt {
            verb: verb.into(),
            group: route.resource.group.into(),
            resource,
            namespace: namespace.clone(),
            name: name.into(),
        }
    }

    /// # Errors
    /// 403 when no Role allows it.
    pub fn authorize(&self, store: &Store, identity: &Identity) -> Result<(), Status> {
        if identity.groups.iter().any(|group| group == MASTERS) || self.allowed(store, identity) {
            return Ok(());
        }
        Err(self.refused(&identity.name))
    }

    /// 403 for a user.
    pub fn refused(&self, user: &str) -> Status {
        let Attempt { verb, group, resource, namespace, name } = self;
        Status::forbidden(user, verb, resource, group, namespace, name)
    }

    fn allowed(&self, store: &Store, identity: &Identity) -> bool {
        let mut bindings = store.list("clusterrolebindings.rbac.authorization.k8s.io", None).0;
        if !self.namespace.is_empty() {
            bindings.extend(store.list("rolebindings.rbac.authorization.k8s.io", Some(&self.namespace)).0);
        }
        bindings.iter().filter(|binding| binds(binding, identity)).any(|binding| {
            let name = binding["roleRef"]["name"].as_str().unwrap_or_default();
            let role = if binding["roleRef"]["kind"] == "Role" {
                store.get("roles.rbac.authorization.k8s.io", &self.namespace, name)
            } else {
                store.get("clusterroles.rbac.authorization.k8s.io", "", name)
            };
            role.is_some_and(|role| elements(&role["rules"]).any(|rule| self.allowed_by(rule)))
        })
    }

    fn allowed_by(&self, rule: &Value) -> bool {
        let has = |field: &str, wanted: &str| elements(&rule[field]).any(|v| v == wanted || v == "*");
        let any_of_subresource = self.resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
        has("verbs", &self.verb)
            && has("apiGroups", &self.group)
            && (has("resources", &self.resource) || any_of_subresource.is_some_and(|any| has("resources", &any)))
            && (elements(&rule["resourceNames"]).next().is_none()
                || elements(&rule["resourceNames"]).any(|name| name == self.name.as_str()))
    }
}

fn binds(binding: &Value, identity: &Identity) -> bool {
    elements(&binding["subjects"]).any(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str() {
            Some("User") => name == identity.name,
            Some("Group") => identity.groups.iter().any(|group| group == name),
            Some("ServiceAccount") => {
                let namespace = subject["namespace"].as_str().unwrap_or_default();
                identity.name == format!("system:serviceaccount:{namespace}:{name}")
            }
            _ => false,
        }
    })
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Who asks: the bearer of the token, or whom the bearer may impersonate.
///
/// # Errors
/// 401 without a valid token, 403 when impersonation is not allowed.
pub fn identify(tokens: &Tokens, store: &Store, headers: &HeaderMap) -> Result<Identity, Status> {
    let bearer = tokens.bearer(headers).ok_or_else(|| Status::new(401, "Unauthorized", "Unauthorized"))?;
    let Some(name) = headers.get("impersonate-user").and_then(|name| name.to_str().ok()) else { return Ok(bearer) };
    let mut identity = Identity::user(name);
    let groups = headers.get_all("impersonate-group").iter().filter_map(|group| group.to_str().ok());
    identity.groups.extend(groups.map(str::to_owned));
    let wanted =
        [("users", name)].into_iter().chain(identity.groups[1..].iter().map(|group| ("groups", group.as_str())));
    for (resource, name) in wanted {
        let attempt = Attempt {
            verb: "impersonate".into(),
            group: String::new(),
            resource: resource.into(),
            namespace: String::new(),
            name: name.into(),
        };
        attempt.authorize(store, &bearer)?;
    }
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn store() -> Store {
        let store = Store::default();
        let role = json!({
            "metadata": {"name": "reader", "namespace": "argocd"},
            "rules": [
                {"apiGroups": ["argoproj.io"], "resources": ["applications"], "resourceNames": ["evt"], "verbs": ["get", "watch"]},
                {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["*"]},
            ],
        });
        let binding = json!({
            "metadata": {"name": "reader", "namespace": "argocd"},
            "roleRef": {"kind": "Role", "name": "reader"},
            "subjects": [{"kind": "User", "name": "ci"}],
        });
        store.create("roles.rbac.authorization.k8s.io", role).expect("the name is free");
        store.create("rolebindings.rbac.authorization.k8s.io", binding).expect("the name is free");
        store
    }

    fn may(
        user: &str,
        verb: &'static str,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), String> {
        let attempt = Attempt {
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
        };
        attempt.authorize(&store(), &Identity::user(user)).map_err(|status| status.message)
    }

    #[test]
    fn a_role_allows_what_its_rules_name_and_nothing_else() {
        assert_eq!(may("ci", "get", "argoproj.io", "applications", "argocd", "evt"), Ok(()));
        assert_eq!(may("ci", "watch", "argoproj.io", "applications", "argocd", "evt"), Ok(()));
        assert_eq!(may("ci", "get", "", "pods/log", "argocd", "any"), Ok(()));
        for (user, verb, group, resource, namespace, name) in [
            ("ci", "get", "argoproj.io", "applications", "argocd", "other"),
            ("ci", "list", "argoproj.io", "applications", "argocd", "evt"),
            ("ci", "watch", "argoproj.io", "applications", "argocd", ""),
            ("ci", "get", "", "pods/portforward", "argocd", "p"),
            ("ci", "get", "argoproj.io", "applications", "other", "evt"),
            ("eve", "get", "argoproj.io", "applications", "argocd", "evt"),
        ] {
            assert!(may(user, verb, group, resource, namespace, name).is_err(), "{user} {verb} {resource} {name}");
        }
    }

    #[test]
    fn refusals_are_worded_as_the_api_server_words_them() {
        assert_eq!(
            may("x", "get", "argoproj.io", "applications", "argocd", "evt"),
            Err("applications.argoproj.io \"evt\" is forbidden: User \"x\" cannot get resource \"applications\" in API \
                 group \"argoproj.io\" in the namespace \"argocd\""
                .into())
        );
        assert_eq!(
            may("x", "list", "", "namespaces", "", ""),
            Err("namespaces is forbidden: User \"x\" cannot list resource \"namespaces\" in API group \"\" at the cluster \
                 scope"
                .into())
        );
    }
}
