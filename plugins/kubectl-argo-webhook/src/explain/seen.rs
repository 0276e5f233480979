//! What the server reads of an event (argo-cd v3.5.1 util/webhook/webhook.go, `affectedRevisionInfo`). Pure.

use kit::{error::Error, version::Version};
use serde_json::Value;

use crate::provider::Provider;

/// What the rules look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The repository's addresses; Bitbucket Server may tell two.
    pub urls: Vec<String>,
    /// The name of what was pushed to: the ref without its first two parts.
    pub name: String,
    /// Whether Applications that follow `HEAD` are concerned.
    pub touched_head: bool,
    /// The commit before, when it is told.
    pub before: String,
    /// The commit after, when it is told.
    pub after: String,
    /// The files that were touched; none when they are not told.
    pub files: Vec<String>,
}

/// Reads a body.
///
/// # Errors
/// When it is not JSON; exit code 2.
pub fn read(provider: Provider, body: &[u8], version: Version) -> Result<Seen, Error> {
    let body: Value = serde_json::from_slice(body).map_err(|error| {
        Error::usage("not-json", format!("the body is not JSON: {error}")).hint("the server would refuse it, too")
    })?;
    let at = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let seen = match provider {
        Provider::Github | Provider::Gogs => with_commits(&body, &at, "repository", "html_url"),
        Provider::Gitlab => with_commits(&body, &at, "project", "web_url"),
        Provider::Bitbucket => {
            // Before v3.1 the commits are not looked at.
            let commit = |side: &str| match version >= Version(3, 1, 0) {
                true => at(&format!("/push/changes/0/{side}/target/hash")),
                false => String::new(),
            };
            Seen {
                urls: vec![at("/repository/links/html/href")],
                name: at("/push/changes/0/new/name"),
                touched_head: true,
                before: commit("old"),
                after: commit("new"),
                files: Vec::new(),
            }
        }
        Provider::BitbucketServer => {
            let links = body.pointer("/repository/links/clone").and_then(Value::as_array).into_iter().flatten();
            let told = links.filter(|link| matches!(link["name"].as_str(), Some("http" | "ssh")));
            Seen {
                urls: told.filter_map(|link| link["href"].as_str().map(str::to_owned)).collect(),
                name: name_of(&at("/changes/0/ref/id")),
                touched_head: true,
                ..Seen::default()
            }
        }
        Provider::Azuredevops => {
            let reference = at("/resource/refUpdates/0/name");
            Seen {
                urls: vec![at("/resource/repository/remoteUrl")],
                name: name_of(&reference),
                touched_head: reference == at("/resource/repository/defaultBranch"),
                before: at("/resource/refUpdates/0/oldObjectId"),
                after: at("/resource/refUpdates/0/newObjectId"),
                files: Vec::new(),
            }
        }
    };
    Ok(seen)
}

/// The last of at most three parts: `a/b` of `refs/heads/a/b`.
pub fn name_of(reference: &str) -> String {
    reference.splitn(3, '/').last().unwrap_or_default().to_owned()
}

fn with_commits(body: &Value, at: &dyn Fn(&str) -> String, repository: &str, url: &str) -> Seen {
    let name = name_of(&at("/ref"));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut files = Vec::new();
    for commit in list(&body["commits"]) {
        for kind in ["added", "modified", "removed"] {
            files.extend(list(&commit[kind]).iter().filter_map(|file| file.as_str().map(str::to_owned)));
        }
    }
    Seen {
        urls: vec![at(&format!("/{repository}/{url}"))],
        touched_head: at(&format!("/{repository}/default_branch")) == name,
        name,
        before: at("/before"),
        after: at("/after"),
        files,
    }
}
