//! What is read from the repository before anything is changed.

use std::time::Duration;

use kit::error::Error;

use crate::{args::Args, config::Config, git::Git, record::Address, target};

/// The repository that git works in here.
#[derive(Clone, Debug)]
pub struct Repository {
    /// Its configuration.
    pub config: Config,
    /// The branch that HEAD is on, also when it has no commit yet.
    pub branch: Option<String>,
    /// Whether it has no work tree.
    pub bare: bool,
}

/// What a push would push, and where to.
#[derive(Clone, Debug)]
pub struct Target {
    /// The local ref that is pushed: a full name, or HEAD.
    pub source: String,
    /// The remote: its name or its URL.
    pub remote: String,
    /// How many URLs git pushes to.
    pub push_urls: usize,
    /// What the record says of it.
    pub address: Address,
}

impl Target {
    /// The remote as it may be shown.
    pub fn shown(&self) -> String {
        crate::url::without_credentials(&self.remote)
    }
}

/// Reads the repository.
///
/// # Errors
/// When git finds none here; exit code 2.
pub fn read(git: &Git) -> Result<Repository, Error> {
    let bare = git.ask(["rev-parse", "--is-bare-repository"])?;
    if !bare.ok() {
        let error = Error::usage("no-repository", format!("git finds no repository here: {}", bare.reason()));
        // Git says how to trust the folder; that is the user's to decide.
        let trust = bare.stderr.lines().map(str::trim).find(|line| line.starts_with("git config"));
        return Err(match trust {
            Some(line) => error.hint(format!("if you trust it: {line}")),
            None => error.hint("run it in the work tree, or use `git -C FOLDER evt-push`"),
        });
    }
    let config = Config::parse(&git.ask(["config", "--list", "-z"])?.stdout);
    let head = git.ask(["symbolic-ref", "--quiet", "HEAD"])?.line();
    let branch = head.strip_prefix("refs/heads/").map(str::to_owned);
    Ok(Repository { config, branch, bare: bare.line() == "true" })
}

/// Finds out where the push goes.
///
/// # Errors
/// When the flags and the configuration do not say; exit code 2.
pub fn target(git: &Git, repository: &Repository, args: &Args) -> Result<Target, Error> {
    let Repository { config, branch, .. } = repository;
    let remote = target::remote(config, args.remote.as_deref(), branch.as_deref())?;
    let (source, reference) = match &args.tag {
        Some(tag) => {
            let name = format!("refs/tags/{tag}");
            if !git.ask(["rev-parse", "--quiet", "--verify", &format!("{name}^{{commit}}")])?.ok() {
                return Err(Error::usage("no-tag", format!("there is no tag `{tag}` of a commit"))
                    .hint(format!("`git tag {tag}` makes one")));
            }
            (name.clone(), name)
        }
        None => {
            let reference = target::reference(config, args.branch.as_deref(), branch.as_deref(), &remote)?;
            (branch.as_ref().map_or("HEAD".into(), |branch| format!("refs/heads/{branch}")), reference)
        }
    };
    if !git.ask(["check-ref-format", &reference])?.ok() {
        return Err(Error::usage("bad-branch", format!("`{reference}` is not a name that a ref can have"))
            .hint("give the branch as the remote names it, such as --branch main"));
    }
    let (push_urls, urls) = urls(git, config, &remote)?;
    let address = Address {
        reference,
        default_branch: followed_head(git, &remote)?,
        repo_url: target::repo_url(config, args.repo_url.as_deref(), &urls)?,
        remote_url: urls.first().map(|url| crate::url::without_credentials(url)),
        remote: Some(crate::url::without_credentials(&remote)),
    };
    Ok(Target { source, remote, push_urls, address })
}

/// How many URLs git pushes to, and every URL of the remote: those for pushing before that for fetching, each first as
/// `insteadOf` rewrites it and last as it is configured.
///
/// # Errors
/// When git cannot be run.
pub fn urls(git: &Git, config: &Config, remote: &str) -> Result<(usize, Vec<String>), Error> {
    let mut urls: Vec<String> = Vec::new();
    if config.remotes().contains(&remote) {
        let push = git.ask(["remote", "get-url", "--push", "--all", remote])?;
        urls.extend(push.line().lines().map(str::to_owned));
    }
    let push_urls = urls.len().max(1);
    let fetch = git.ask(["ls-remote", "--get-url", remote])?;
    urls.extend(fetch.line().lines().map(str::to_owned));
    for key in ["pushurl", "url"] {
        urls.extend(config.all(&format!("remote.{remote}.{key}")).iter().cloned());
    }
    Ok((push_urls, urls))
}

/// The branch that HEAD of the remote pointed to when the repository was cloned.
///
/// # Errors
/// When git cannot be run.
pub fn followed_head(git: &Git, remote: &str) -> Result<Option<String>, Error> {
    let folder = format!("refs/remotes/{remote}/");
    let head = git.ask(["symbolic-ref", "--quiet", &format!("{folder}HEAD")])?;
    Ok(head.line().strip_prefix(&folder).map(str::to_owned))
}

/// The branch that HEAD of the remote points to, asked of the remote. `None` when it does not say.
///
/// # Errors
/// When the command was interrupted, or the remote takes longer than is worth it.
pub fn remote_head(git: &Git, remote: &str) -> Result<Option<String>, Error> {
    let answer = git.network_ask(["ls-remote", "--symref", remote, "HEAD"], Duration::from_secs(5))?;
    let name = answer.line();
    let name = name.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.split('\t').next());
    Ok(name.map(str::to_owned))
}
