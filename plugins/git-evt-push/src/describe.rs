//! Records of pushes that have already happened.

use std::io::Read;

use kit::{error::Error, moment::Moment, output};
use serde_json::{Map, Value, json};

use crate::{
    args::Args,
    git::Git,
    record::{self, Address, Change},
    repository::{self, Repository},
    target,
};

/// Describes `OLD..NEW` of one ref. When it was pushed is not known, so the record holds no times.
///
/// # Errors
/// When one of the two is no commit here, or the call leaves the ref or the web address open; exit code 2.
pub fn range(git: &Git, args: &Args, range: &str) -> Result<Map<String, Value>, Error> {
    let repository = repository::read(git)?;
    let bad = |why: &str| {
        Error::usage("bad-range", format!("--describe takes OLD..NEW, two commits: `{range}` {why}"))
            .hint("OLD is what the remote had, zeros for a new branch: --describe HEAD~1..HEAD")
    };
    let (old, new) = range.split_once("..").filter(|(_, new)| !new.starts_with('.')).ok_or_else(|| bad("is not"))?;
    let commit = peel(git, new)?.ok_or_else(|| bad(&format!("names no commit `{new}`")))?;
    let before = match old {
        zeros if is_nothing(zeros) => None,
        old => Some(peel(git, old)?.ok_or_else(|| bad(&format!("names no commit `{old}`")))?),
    };
    let reference = match &args.tag {
        Some(tag) => format!("refs/tags/{tag}"),
        None => target::reference(&repository.config, args.branch.as_deref(), repository.branch.as_deref(), "")?,
    };
    let address = address(git, &repository, args, reference)?;
    let mut record = describe(git, &address, before, commit)?;
    record.insert("outcome".into(), json!("described"));
    Ok(record)
}

/// Describes each line of stdin, as git gives them to a `post-receive` hook: `OLD NEW REF`. Prints one record a line.
/// A ref that was deleted, or that is no commit, has no record: that is said on stderr.
///
/// # Errors
/// For lines that are not git's, and a repository without a web address, exit code 2.
pub fn lines(git: &Git, args: &Args) -> Result<(), Error> {
    let pushed = Moment::now();
    let repository = repository::read(git)?;
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).map_err(|error| bad_lines(&error.to_string()))?;
    let mut address = address(git, &repository, args, String::new())?;
    for update in updates(&text)? {
        address.reference = update.reference.to_owned();
        if let Some(record) = one(git, &address, &update, pushed)? {
            output::line(&json!(record))
                .map_err(|error| Error::unknown("cannot-write", format!("cannot write to stdout: {error}")))?;
        }
    }
    Ok(())
}

fn one(git: &Git, address: &Address, update: &Update<'_>, pushed: Moment) -> Result<Option<Map<String, Value>>, Error> {
    let reference = update.reference;
    let Some(new) = update.new else {
        git.talk().say(format!("{reference} was deleted: there is no commit to describe"));
        return Ok(None);
    };
    let Some(commit) = peel(git, new)? else {
        git.talk().say(format!("{reference} is at {new}, which is no commit: there is nothing to describe"));
        return Ok(None);
    };
    let mut record = describe(git, address, update.old.map(str::to_owned), commit)?;
    pushed.stamp(&mut record, "pushed");
    record.insert("outcome".into(), json!("described"));
    Ok(Some(record))
}

fn describe(git: &Git, address: &Address, before: Option<String>, commit: String) -> Result<Map<String, Value>, Error> {
    let forced = match &before {
        None => false,
        Some(before) => {
            let answer = git.ask(["merge-base", "--is-ancestor", before, &commit])?;
            match answer.status {
                Some(0) => false,
                // 1 says no; another status that the old id is not here, or is a tag of something else.
                _ => true,
            }
        }
    };
    record::of(git, address, &Change { before, commit, forced })
}

/// The address of the repository itself where it is bare, and so is what was pushed to; that of its remote elsewhere.
fn address(git: &Git, repository: &Repository, args: &Args, reference: String) -> Result<Address, Error> {
    let Repository { config, branch, bare } = repository;
    let remote = match target::remote(config, args.remote.as_deref(), branch.as_deref()) {
        Ok(remote) => Some(remote),
        Err(error) if args.remote.is_some() => return Err(error),
        Err(_) => None,
    };
    let urls = match &remote {
        Some(remote) => repository::urls(git, config, remote)?.1,
        None => Vec::new(),
    };
    let default_branch = match &remote {
        Some(remote) if !bare => match repository::followed_head(git, remote)? {
            None => repository::remote_head(git, remote).unwrap_or_default(),
            known => known,
        },
        _ => branch.clone(),
    };
    Ok(Address {
        reference,
        default_branch,
        repo_url: target::repo_url(config, args.repo_url.as_deref(), &urls)?,
        remote_url: urls.first().map(|url| crate::url::without_credentials(url)),
        remote: remote.as_deref().map(crate::url::without_credentials),
    })
}

/// The full id of the commit that a name leads to, by way of tags.
fn peel(git: &Git, name: &str) -> Result<Option<String>, Error> {
    let answer = git.ask(["rev-parse", "--quiet", "--verify", "--end-of-options", &format!("{name}^{{commit}}")])?;
    Ok(answer.ok().then(|| answer.line()))
}

/// Git writes zeros where a ref is not.
fn is_nothing(id: &str) -> bool {
    id.len() >= 40 && id.bytes().all(|byte| byte == b'0')
}

/// One line of a `post-receive` hook's stdin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Update<'a> {
    old: Option<&'a str>,
    new: Option<&'a str>,
    reference: &'a str,
}

fn updates(text: &str) -> Result<Vec<Update<'_>>, Error> {
    let updates: Vec<Update<'_>> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let parts = (words.next(), words.next(), words.next());
            let (Some(old), Some(new), Some(reference)) = parts else { return Err(bad_lines(line)) };
            let is_id = |id: &str| matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_id(old) || !is_id(new) || !reference.starts_with("refs/") {
                return Err(bad_lines(line));
            }
            let [old, new] = [old, new].map(|id| Some(id).filter(|id| !is_nothing(id)));
            Ok(Update { old, new, reference })
        })
        .collect::<Result<_, _>>()?;
    if updates.is_empty() { Err(bad_lines("it is empty")) } else { Ok(updates) }
}

fn bad_lines(why: &str) -> Error {
    Error::usage("bad-lines", format!("stdin is not what git gives to a post-receive hook: {why}"))
        .hint("each line is OLD NEW REF: two full ids, zeros where the ref is not, and the ref's full name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creation_and_deletion_are_told_by_zeros() {
        let (zeros, one, two) = ("0".repeat(40), "1".repeat(40), "2".repeat(64));
        let text = format!("{zeros} {one} refs/heads/a b\n{one} {zeros} refs/tags/v1\n{two} {two} refs/x\n");
        let found: Vec<_> =
            updates(&text).unwrap().iter().map(|u| (u.old.is_some(), u.new.is_some(), u.reference)).collect();
        assert_eq!(found, [(false, true, "refs/heads/a b"), (true, false, "refs/tags/v1"), (true, true, "refs/x")]);
    }

    #[test]
    fn what_git_does_not_write_is_refused() {
        let id = "1".repeat(40);
        for text in ["", "\n", "a b refs/heads/x", &format!("{id} {id}"), &format!("{id} {id} heads/x")] {
            assert!(updates(text).is_err(), "{text}");
        }
    }
}
