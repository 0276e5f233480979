//! The body and the headers of an event, in the shape of each provider. Pure: the same push gives the same bytes.
//!
//! What the server reads of each is in argo-cd v3.5.1 util/webhook/webhook.go (`affectedRevisionInfo`).

use serde_json::{Value, json};

use crate::{
    args::Kind,
    event::{Commit, Push},
    provider::Provider,
};

/// The body of a push.
pub fn push(provider: Provider, push: &Push) -> Vec<u8> {
    let value = match provider {
        Provider::Github | Provider::Gogs => github(push),
        Provider::Gitlab => gitlab(push),
        Provider::Bitbucket => bitbucket(push),
        Provider::BitbucketServer => bitbucket_server(push),
        Provider::Azuredevops => azuredevops(push),
    };
    value.to_string().into_bytes()
}

/// The body of a ping; `None` where the server knows none.
pub fn ping(provider: Provider) -> Option<Vec<u8>> {
    match provider {
        Provider::Github => Some(json!({"zen": "Are you there?"}).to_string().into_bytes()),
        Provider::BitbucketServer => Some(json!({"test": true}).to_string().into_bytes()),
        _ => None,
    }
}

/// The headers by which the server knows provider and event, and the one that names the delivery.
pub fn headers(provider: Provider, kind: Kind, is_tag: bool, delivery: &str) -> Vec<(&'static str, String)> {
    let delivery = delivery.to_owned();
    match (provider, kind) {
        (Provider::Github, Kind::Push) => vec![("X-GitHub-Event", "push".into()), ("X-GitHub-Delivery", delivery)],
        (Provider::Github, Kind::Ping) => vec![("X-GitHub-Event", "ping".into()), ("X-GitHub-Delivery", delivery)],
        (Provider::Gogs, _) => vec![("X-Gogs-Event", "push".into()), ("X-Gogs-Delivery", delivery)],
        (Provider::Gitlab, _) => {
            let event = if is_tag { "Tag Push Hook" } else { "Push Hook" };
            vec![("X-Gitlab-Event", event.into()), ("X-Gitlab-Event-UUID", delivery)]
        }
        // Without a hook's UUID, be it any, the server takes it for Bitbucket Server.
        (Provider::Bitbucket, _) => vec![
            ("X-Event-Key", "repo:push".into()),
            ("X-Hook-UUID", format!("{{{delivery}}}")),
            ("X-Request-UUID", delivery),
        ],
        (Provider::BitbucketServer, kind) => {
            let event = if kind == Kind::Ping { "diagnostics:ping" } else { "repo:refs_changed" };
            vec![("X-Event-Key", event.into()), ("X-Request-Id", delivery)]
        }
        (Provider::Azuredevops, _) => vec![("X-Vss-Activityid", delivery)],
    }
}

fn github(push: &Push) -> Value {
    let mut body = json!({"ref": push.reference});
    with_commits(&mut body, push);
    body["repository"] = json!({"html_url": push.repo_url, "default_branch": push.default_branch});
    body["commits"] = commits(push);
    body
}

fn gitlab(push: &Push) -> Value {
    let mut body = json!({"object_kind": if push.is_tag() { "tag_push" } else { "push" }, "ref": push.reference});
    with_commits(&mut body, push);
    body["project"] = json!({"web_url": push.repo_url, "default_branch": push.default_branch});
    body["commits"] = commits(push);
    body
}

fn with_commits(body: &mut Value, push: &Push) {
    if let Some(before) = &push.before {
        body["before"] = json!(before);
    }
    body["after"] = json!(push.after);
}

/// Without lists of files the server looks at every Application of the repository.
fn commits(push: &Push) -> Value {
    let commit = |commit: &Commit| match &commit.files {
        Some(files) => json!({
            "id": commit.id, "added": files.added, "modified": files.modified, "removed": files.removed,
        }),
        None => json!({"id": commit.id}),
    };
    push.commits.iter().map(commit).collect()
}

/// The server takes `new.name` whole, so it is the short name. With a UUID in `argocd-secret` it asks the API below the
/// repository's own link for the files; for that it takes the owner from `full_name` and `name`.
fn bitbucket(push: &Push) -> Value {
    let full_name = path_of(&push.repo_url);
    let target = |id: &str| json!({"target": {"hash": id}});
    let mut new = target(&push.after);
    new["type"] = json!(if push.is_tag() { "tag" } else { "branch" });
    new["name"] = json!(push.short_name());
    let mut change = json!({"new": new});
    if let Some(before) = push.before.as_deref().filter(|before| before.bytes().any(|digit| digit != b'0')) {
        change["old"] = target(before);
    }
    json!({
        "repository": {
            "name": full_name.rsplit('/').next(),
            "full_name": full_name,
            "links": {
                "self": {"href": format!("https://api.bitbucket.org/2.0/repositories/{full_name}")},
                "html": {"href": push.repo_url},
            },
        },
        "push": {"changes": [change]},
    })
}

/// Bitbucket Server tells of clone addresses, which end in `.git`.
fn bitbucket_server(push: &Push) -> Value {
    let with_git = |url: &str| format!("{}.git", url.strip_suffix(".git").unwrap_or(url));
    let mut clone = vec![json!({"name": "http", "href": with_git(&push.repo_url)})];
    if let Some(ssh) = push.remote_url.as_deref().filter(|remote| remote.starts_with("ssh://")) {
        clone.push(json!({"name": "ssh", "href": with_git(ssh)}));
    }
    json!({
        "repository": {"links": {"clone": clone}},
        "changes": [{"ref": {"id": push.reference, "displayId": push.short_name()}, "toHash": push.after}],
    })
}

fn azuredevops(push: &Push) -> Value {
    let mut update = json!({"name": push.reference});
    if let Some(before) = &push.before {
        update["oldObjectId"] = json!(before);
    }
    update["newObjectId"] = json!(push.after);
    let default_branch = format!("refs/heads/{}", push.default_branch);
    json!({
        "eventType": "git.push",
        "resource": {
            "refUpdates": [update],
            "repository": {"remoteUrl": push.repo_url, "defaultBranch": default_branch},
        },
    })
}

fn path_of(url: &str) -> String {
    crate::go_url::parse(url).map(|url| url.path.trim_matches('/').to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Files;

    fn push() -> Push {
        Push {
            repo_url: "https://h.example/o/r".into(),
            remote_url: Some("ssh://git@h.example:7999/o/r.git".into()),
            reference: "refs/heads/a/b".into(),
            before: Some("0".repeat(40)),
            after: "1".repeat(40),
            default_branch: "main".into(),
            commits: vec![Commit {
                id: "1".repeat(40),
                files: Some(Files { modified: vec!["p/f".into()], ..Files::default() }),
            }],
        }
    }

    fn body(provider: Provider) -> Value {
        serde_json::from_slice(&super::push(provider, &push())).unwrap()
    }

    #[test]
    fn githubs_body_holds_what_the_server_reads() {
        let (zeros, ones) = ("0".repeat(40), "1".repeat(40));
        assert_eq!(
            body(Provider::Github),
            json!({
                "ref": "refs/heads/a/b", "before": zeros, "after": ones,
                "repository": {"html_url": "https://h.example/o/r", "default_branch": "main"},
                "commits": [{"id": ones, "added": [], "modified": ["p/f"], "removed": []}],
            })
        );
        assert_eq!(body(Provider::Gogs), body(Provider::Github));
    }

    #[test]
    fn each_provider_names_repository_ref_and_commit_in_its_own_place() {
        for (provider, url, reference, after) in [
            (Provider::Gitlab, "/project/web_url", "/ref", "/after"),
            (
                Provider::Bitbucket,
                "/repository/links/html/href",
                "/push/changes/0/new/name",
                "/push/changes/0/new/target/hash",
            ),
            (Provider::BitbucketServer, "/repository/links/clone/0/href", "/changes/0/ref/id", "/changes/0/toHash"),
            (
                Provider::Azuredevops,
                "/resource/repository/remoteUrl",
                "/resource/refUpdates/0/name",
                "/resource/refUpdates/0/newObjectId",
            ),
        ] {
            let body = body(provider);
            let at = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            assert!(at(url).starts_with("https://h.example/o/r"), "{provider:?}");
            assert!(at(reference).ends_with("a/b"), "{provider:?}");
            assert_eq!(at(after), "1".repeat(40), "{provider:?}");
        }
        assert_eq!(body(Provider::BitbucketServer)["repository"]["links"]["clone"][1]["name"], "ssh");
    }

    #[test]
    fn a_commit_whose_files_are_not_known_has_no_lists() {
        let mut push = push();
        push.commits[0].files = None;
        let body: Value = serde_json::from_slice(&super::push(Provider::Github, &push)).unwrap();
        assert_eq!(body["commits"], json!([{"id": "1".repeat(40)}]));
    }

    #[test]
    fn a_tag_is_a_tag_to_gitlab_and_bitbucket() {
        let tag = Push { reference: "refs/tags/v1".into(), ..push() };
        let body: Value = serde_json::from_slice(&super::push(Provider::Gitlab, &tag)).unwrap();
        assert_eq!(body["object_kind"], "tag_push");
        assert_eq!(headers(Provider::Gitlab, Kind::Push, true, "d")[0].1, "Tag Push Hook");
        let body: Value = serde_json::from_slice(&super::push(Provider::Bitbucket, &tag)).unwrap();
        assert_eq!(body["push"]["changes"][0]["new"]["type"], "tag");
    }
}
