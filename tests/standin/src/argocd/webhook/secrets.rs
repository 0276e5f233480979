//! The webhook secrets, as argocd-server reads them from `argocd-secret` (argo-cd util/settings/settings.go).

use serde_json::Value;

use crate::{
    argocd::{manifests::secret_value, version::Version},
    store::Store,
};

/// What the server checks requests against; empty is "not configured". Nothing is trimmed but what a reference names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// `webhook.github.secret`.
    pub github: String,
    /// `webhook.gitlab.secret`.
    pub gitlab: String,
    /// `webhook.bitbucket.uuid`.
    pub bitbucket_uuid: String,
    /// `webhook.bitbucketserver.secret`.
    pub bitbucket_server: String,
    /// `webhook.gogs.secret`.
    pub gogs: String,
    /// `webhook.azuredevops.username`.
    pub azure_username: String,
    /// `webhook.azuredevops.password`.
    pub azure_password: String,
}

impl Secrets {
    /// Reads them, and warns about references to nothing.
    pub fn read(store: &Store, install: &str, version: Version, warn: &mut dyn FnMut(String)) -> Secrets {
        let own = store.get("secrets", install, "argocd-secret").unwrap_or_default();
        let mut value = |key: &str| {
            let text = secret_value(&own, key).unwrap_or_default();
            let Some(reference) = text.strip_prefix('$').filter(|_| version.at_least(2, 11)) else { return text };
            match referenced(store, install, &own, reference) {
                Some(found) => found.trim().to_owned(),
                None => {
                    let new = version.since(&[(3, 3, 12), (3, 4, 4)]);
                    warn(if new {
                        format!("secret key does not exist in secret: {reference}")
                    } else {
                        format!("config referenced '{text}', but key does not exist in secret")
                    });
                    text
                }
            }
        };
        Secrets {
            github: value("webhook.github.secret"),
            gitlab: value("webhook.gitlab.secret"),
            bitbucket_uuid: value("webhook.bitbucket.uuid"),
            bitbucket_server: value("webhook.bitbucketserver.secret"),
            gogs: value("webhook.gogs.secret"),
            azure_username: value("webhook.azuredevops.username"),
            azure_password: value("webhook.azuredevops.password"),
        }
    }

    /// What the log says when the server reloads because of `new`; `None` when nothing that it watches differs. Azure's
    /// two are not watched.
    pub fn reload_reason(&self, new: &Secrets) -> Option<&'static str> {
        let watched = [
            (&self.github, &new.github, "github secret"),
            (&self.gitlab, &new.gitlab, "gitlab secret"),
            (&self.bitbucket_uuid, &new.bitbucket_uuid, "bitbucket uuid"),
            (&self.bitbucket_server, &new.bitbucket_server, "bitbucket server secret"),
            (&self.gogs, &new.gogs, "gogs secret"),
        ];
        watched.into_iter().find_map(|(old, new, name)| (old != new).then_some(name))
    }
}

/// `name:key` is a key of another Secret that is labelled as a part of Argo CD, `key` another key of `argocd-secret`.
fn referenced(store: &Store, install: &str, own: &Value, reference: &str) -> Option<String> {
    let Some((name, key)) = reference.split_once(':') else { return secret_value(own, reference) };
    let other = store.get("secrets", install, name)?;
    let is_part = other["metadata"]["labels"]["app.kubernetes.io/part-of"] == "argocd";
    is_part.then(|| secret_value(&other, key)).flatten()
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_is_followed_and_trimmed_and_a_plain_value_is_neither() {
        let store = Store::default();
        let secret = |name: &str, key: &str, value: &str| {
            let labels = json!({"app.kubernetes.io/part-of": "argocd"});
            json!({"metadata": {"namespace": "argocd", "name": name, "labels": labels},
                   "data": {key: STANDARD.encode(value)}})
        };
        let github = |value: &str, version: &str| {
            let _ = store.delete("secrets", "argocd", "argocd-secret");
            store.create("secrets", secret("argocd-secret", "webhook.github.secret", value)).unwrap();
            let mut warnings = Vec::new();
            let read = Secrets::read(&store, "argocd", Version::of_tag(version), &mut |warning| warnings.push(warning));
            (read.github, warnings.len())
        };
        store.create("secrets", secret("hooks", "github", " s3cret\n")).unwrap();
        assert_eq!(github("plain\n", "v3.5.1"), ("plain\n".into(), 0));
        assert_eq!(github("$hooks:github", "v3.5.1"), ("s3cret".into(), 0));
        assert_eq!(github("$hooks:nope", "v3.5.1"), ("$hooks:nope".into(), 1));
        assert_eq!(github("$hooks:github", "v2.10.0"), ("$hooks:github".into(), 0));
    }

    #[test]
    fn azure_is_not_watched() {
        let old = Secrets::default();
        let azure = Secrets { azure_password: "x".into(), ..Secrets::default() };
        let gogs = Secrets { gogs: "x".into(), ..Secrets::default() };
        assert_eq!((old.reload_reason(&azure), old.reload_reason(&gogs)), (None, Some("gogs secret")));
    }
}
