//! What a push event says, provider by provider (argo-cd v3.5.1 util/webhook/webhook.go, `affectedRevisionInfo`).

use serde_json::Value;

use crate::argocd::version::Version;

/// Who sends the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    /// Azure DevOps.
    AzureDevOps,
    /// Gogs, Gitea, Forgejo.
    Gogs,
    /// GitHub.
    GitHub,
    /// GitLab.
    GitLab,
    /// Bitbucket Cloud.
    Bitbucket,
    /// Bitbucket Server and Data Center.
    BitbucketServer,
}

impl Provider {
    /// `github`, `gitlab`, `bitbucket`, `bitbucket-server`, `gogs`, `azuredevops`.
    pub fn of_name(name: &str) -> Option<Provider> {
        Some(match name {
            "azuredevops" => Provider::AzureDevOps,
            "gogs" => Provider::Gogs,
            "github" => Provider::GitHub,
            "gitlab" => Provider::GitLab,
            "bitbucket" => Provider::Bitbucket,
            "bitbucket-server" => Provider::BitbucketServer,
            _ => return None,
        })
    }
}

/// What matching looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Push {
    /// The web addresses of the repository.
    pub urls: Vec<String>,
    /// The ref's last part: a name, never a commit.
    pub revision: String,
    /// Whether the default branch was pushed to, or that cannot be known.
    pub touched_head: bool,
    /// The files that the listed commits added, modified or removed.
    pub files: Vec<String>,
    /// The commit before; empty when the event does not say.
    pub before: String,
    /// The commit after; empty when the event does not say.
    pub after: String,
}

/// The ref's last part: split at `/` into at most three.
pub fn last_part(reference: &str) -> &str {
    reference.splitn(3, '/').last().unwrap_or_default()
}

/// Reads the body of a push.
pub fn push(provider: Provider, body: &Value, version: Version) -> Push {
    match provider {
        Provider::GitHub => with_commits(body, Some(text(&body["repository"]["html_url"])), &body["repository"]),
        Provider::Gogs => {
            let repository = &body["repository"];
            let known = repository.is_object();
            let push = with_commits(body, known.then(|| text(&repository["html_url"])), repository);
            Push { touched_head: known && push.touched_head, ..push }
        }
        Provider::GitLab => with_commits(body, Some(text(&body["project"]["web_url"])), &body["project"]),
        Provider::Bitbucket => {
            let change = &body["push"]["changes"][0];
            let hash = |side: &str| if version.at_least(3, 1) { text(&change[side]["target"]["hash"]) } else { "" };
            Push {
                urls: vec![text(&body["repository"]["links"]["html"]["href"]).into()],
                revision: text(&change["new"]["name"]).into(),
                touched_head: true,
                files: Vec::new(),
                before: hash("old").into(),
                after: hash("new").into(),
            }
        }
        Provider::BitbucketServer => {
            let links = body["repository"]["links"]["clone"].as_array().map_or(&[][..], Vec::as_slice);
            let used = links.iter().filter(|link| matches!(link["name"].as_str(), Some("http" | "ssh")));
            Push {
                urls: used.filter_map(|link| link["href"].as_str().map(str::to_owned)).collect(),
                revision: last_part(text(&body["changes"][0]["ref"]["id"])).into(),
                touched_head: true,
                ..Push::default()
            }
        }
        Provider::AzureDevOps => {
            let (resource, update) = (&body["resource"], &body["resource"]["refUpdates"][0]);
            let named = !update.is_null();
            Push {
                urls: vec![text(&resource["repository"]["remoteUrl"]).into()],
                revision: last_part(text(&update["name"])).into(),
                touched_head: named && text(&update["name"]) == text(&resource["repository"]["defaultBranch"]),
                files: Vec::new(),
                before: last_part(text(&update["oldObjectId"])).into(),
                after: last_part(text(&update["newObjectId"])).into(),
            }
        }
    }
}

fn with_commits(body: &Value, url: Option<&str>, repository: &Value) -> Push {
    let revision = last_part(text(&body["ref"]));
    let mut files = Vec::new();
    for commit in body["commits"].as_array().map_or(&[][..], Vec::as_slice) {
        for list in ["added", "modified", "removed"] {
            let list = commit[list].as_array().map_or(&[][..], Vec::as_slice);
            files.extend(list.iter().filter_map(|file| file.as_str().map(str::to_owned)));
        }
    }
    Push {
        urls: url.map(str::to_owned).into_iter().collect(),
        revision: revision.into(),
        touched_head: text(&repository["default_branch"]) == revision,
        files,
        before: last_part(text(&body["before"])).into(),
        after: last_part(text(&body["after"])).into(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
