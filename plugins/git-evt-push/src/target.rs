//! Where a push goes: remote, ref, and the repository's web address.

use kit::error::Error;

use crate::{config::Config, url};

/// The remote that the branch is pushed to, as git chooses it, with `evt.remote` before git's own keys.
///
/// # Errors
/// When no remote is named and there is not exactly one; exit code 2.
pub fn remote(config: &Config, flag: Option<&str>, branch: Option<&str>) -> Result<String, Error> {
    // A branch that follows another one here has the remote `.`, which is no place to push to.
    let of_branch = |key: &str| {
        branch.and_then(|branch| config.get(&format!("branch.{branch}.{key}"))).filter(|remote| *remote != ".")
    };
    let configured = flag
        .or_else(|| config.get("evt.remote"))
        .or_else(|| of_branch("pushremote"))
        .or_else(|| config.get("remote.pushdefault"))
        .or_else(|| of_branch("remote"));
    let remotes = config.remotes();
    let name = match (configured, remotes.as_slice()) {
        (Some(name), _) => name,
        (None, names) if names.contains(&"origin") => "origin",
        (None, [name]) => name,
        (None, []) => {
            return Err(Error::usage("no-remote", "the repository has no remote to push to")
                .hint("`git remote add origin URL` adds one"));
        }
        (None, names) => {
            return Err(Error::usage("no-remote", format!("which remote? there are: {}", names.join(", ")))
                .hint("name one with --remote or `git config evt.remote NAME`"));
        }
    };
    // As for git, whatever is no remote's name has to be a URL or a path.
    if remotes.contains(&name) || name.contains(['/', ':', '.']) {
        return Ok(name.to_owned());
    }
    let there = if remotes.is_empty() { "there is none".into() } else { format!("there are: {}", remotes.join(", ")) };
    Err(Error::usage("no-remote", format!("no remote `{name}`; {there}")).hint("`git remote -v` lists the remotes"))
}

/// The full name of the ref at the remote that the branch is pushed to.
///
/// # Errors
/// When git itself would not know: HEAD is no branch, or the upstream has another name; exit code 2.
pub fn reference(config: &Config, flag: Option<&str>, branch: Option<&str>, remote: &str) -> Result<String, Error> {
    let full = |name: &str| if name.starts_with("refs/") { name.to_owned() } else { format!("refs/heads/{name}") };
    if let Some(name) = flag {
        return Ok(full(name));
    }
    let Some(branch) = branch else {
        return Err(Error::usage("detached-head", "HEAD is not on a branch, so there is no branch to push to")
            .hint("name the branch of the remote with --branch"));
    };
    let upstream = config
        .get(&format!("branch.{branch}.merge"))
        .filter(|_| config.get(&format!("branch.{branch}.remote")) == Some(remote))
        .map(full);
    match (upstream, config.get("push.default")) {
        (Some(upstream), Some("upstream" | "tracking")) => Ok(upstream),
        (Some(upstream), None | Some("simple")) if upstream != full(branch) => {
            let other = upstream.strip_prefix("refs/heads/").unwrap_or(&upstream);
            let message = format!("the upstream of branch `{branch}` is `{other}`: push to which of the two?");
            Err(Error::usage("ambiguous-branch", message).hint(format!(
                "--branch {other} or --branch {branch}; `git config push.default upstream` always takes the upstream"
            )))
        }
        _ => Ok(full(branch)),
    }
}

/// The web address: what the user says, else the first of the remote's URLs that has one.
///
/// # Errors
/// When there is none: a path is no address that Argo CD could compare; exit code 2.
pub fn repo_url(config: &Config, flag: Option<&str>, urls: &[String]) -> Result<String, Error> {
    let told = flag.map(|url| ("--repo-url", url)).or(config.get("evt.repourl").map(|url| ("evt.repoUrl", url)));
    if let Some((origin, given)) = told {
        return url::web(given).ok_or_else(|| {
            let shown = url::without_credentials(given);
            Error::usage("bad-repo-url", format!("{origin} is not the web address of a repository: `{shown}`"))
                .hint("give it as Argo CD reads it, such as https://git.example.com/team/repo")
        });
    }
    urls.iter().find_map(|url| url::web(url)).ok_or_else(|| {
        let shown = urls.first().map_or("it has no remote".into(), |url| url::without_credentials(url));
        Error::usage("no-repo-url", format!("the repository has no web address: {shown}"))
            .hint("give it with --repo-url URL, or once with `git config evt.repoUrl URL`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(entries: &[(&str, &str)]) -> Config {
        let bytes: Vec<u8> = entries.iter().flat_map(|(key, value)| format!("{key}\n{value}\0").into_bytes()).collect();
        Config::parse(&bytes)
    }

    #[test]
    fn the_remote_is_the_one_that_git_would_push_to() {
        let both = [("remote.origin.url", "/a"), ("remote.fork.url", "/b")];
        for (more, flag, name) in [
            (vec![], None, "origin"),
            (vec![("branch.main.remote", "fork")], None, "fork"),
            (vec![("branch.main.remote", "."), ("branch.main.merge", "refs/heads/base")], None, "origin"),
            (vec![("branch.main.remote", "origin"), ("remote.pushdefault", "fork")], None, "fork"),
            (vec![("remote.pushdefault", "origin"), ("branch.main.pushremote", "fork")], None, "fork"),
            (vec![("branch.main.pushremote", "origin"), ("evt.remote", "fork")], None, "fork"),
            (vec![("evt.remote", "fork")], Some("origin"), "origin"),
            (vec![], Some("/some/path"), "/some/path"),
        ] {
            let config = config(&[&both[..], &more].concat());
            assert_eq!(remote(&config, flag, Some("main")).unwrap(), name);
        }
        assert_eq!(remote(&config(&[("remote.only.url", "/a")]), None, None).unwrap(), "only");
    }

    #[test]
    fn a_remote_that_is_not_there_is_named_with_those_that_are() {
        let config = config(&[("remote.a.url", "/a"), ("remote.b.url", "/b")]);
        assert_eq!(remote(&config, Some("c"), None).unwrap_err().message, "no remote `c`; there are: a, b");
        assert_eq!(remote(&config, None, None).unwrap_err().message, "which remote? there are: a, b");
        assert!(remote(&Config::default(), None, None).is_err());
    }

    #[test]
    fn a_branch_whose_upstream_has_another_name_needs_a_decision() {
        let tracking = [("branch.topic.remote", "origin"), ("branch.topic.merge", "refs/heads/main")];
        let with = |default| config(&[&tracking[..], &[("push.default", default)]].concat());
        let to = |config: &Config, flag| reference(config, flag, Some("topic"), "origin");
        assert_eq!(to(&config(&tracking), None).unwrap_err().code, "ambiguous-branch");
        assert_eq!(to(&config(&tracking), Some("main")).unwrap(), "refs/heads/main");
        assert_eq!(to(&with("upstream"), None).unwrap(), "refs/heads/main");
        assert_eq!(to(&with("current"), None).unwrap(), "refs/heads/topic");
        assert_eq!(reference(&config(&tracking), None, Some("topic"), "fork").unwrap(), "refs/heads/topic");
        assert_eq!(reference(&Config::default(), None, None, "origin").unwrap_err().code, "detached-head");
    }

    #[test]
    fn what_the_user_says_is_the_web_address_before_what_the_remote_says() {
        let ssh = ["/srv/mirror".to_owned(), "git@host:a/b.git".to_owned()];
        let configured = config(&[("evt.repourl", "http://evt/x.git")]);
        assert_eq!(repo_url(&configured, Some("https://flag/x/"), &ssh).unwrap(), "https://flag/x");
        assert_eq!(repo_url(&configured, None, &ssh).unwrap(), "http://evt/x");
        assert_eq!(repo_url(&Config::default(), None, &ssh).unwrap(), "https://host/a/b");
        let hint = repo_url(&Config::default(), None, &ssh[..1]).unwrap_err().hint.unwrap();
        assert!(hint.contains("--repo-url") && hint.contains("evt.repoUrl"), "{hint}");
        assert!(repo_url(&Config::default(), Some("/srv/bare"), &ssh).is_err());
    }
}
