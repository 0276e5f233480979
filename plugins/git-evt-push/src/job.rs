//! The whole job: edit, commit, push, describe.

use kit::error::Error;
use serde_json::{Map, Value, json};

use crate::{
    args::Args,
    confirm, describe,
    git::Git,
    local,
    push::{self, Pushed},
    record,
    repository::{self, Target},
    retry,
};

/// Edits, commits and pushes, or describes what was pushed. Everything that could be wrong with the call is found before
/// anything is changed; from then on `learned` holds what is known, whatever the outcome.
///
/// # Errors
/// See the exit codes of the command.
pub fn run(git: &Git, args: &Args, learned: &mut Map<String, Value>) -> Result<(), Error> {
    if args.stdin {
        return describe::lines(git, args);
    }
    if let Some(range) = &args.describe {
        *learned = describe::range(git, args, range)?;
        return Ok(());
    }
    let repository = repository::read(git)?;
    if repository.bare {
        return Err(Error::usage("bare-repository", "a bare repository has no work tree to commit from")
            .hint("--describe OLD..NEW and --stdin describe a push that has come here"));
    }
    let edit = local::plan(args, git.talk())?;
    let mut target = repository::target(git, &repository, args)?;

    *learned = record::whereto(&target.address);
    if args.tag.is_none() {
        local::commit(git, args, edit.as_ref())?;
    }
    let Some(commit) = push::commit(git, &target.source)? else {
        return Err(Error::no("nothing-to-push", "nothing to push: the branch has no commit yet")
            .hint("`git add` what the first commit shall hold"));
    };
    learned.insert("local_commit".into(), json!(commit));
    let pushed = push(git, args, &target, commit, learned)?;
    if target.address.default_branch.is_none() {
        target.address.default_branch = repository::remote_head(git, &target.remote).unwrap_or_default();
    }
    match pushed {
        Some(pushed) => finish(git, args, &target, &pushed, learned),
        None => Err(nothing_to_push(&target, learned)),
    }
}

/// Pushes, and again as often as `--retry` allows. `None` when the remote had everything already.
fn push(
    git: &Git,
    args: &Args,
    target: &Target,
    mut commit: String,
    learned: &mut Map<String, Value>,
) -> Result<Option<Pushed>, Error> {
    let mut theirs = None;
    let mut attempt = 1;
    loop {
        if args.retry > 0 {
            learned.insert("attempts".into(), json!(attempt));
        }
        match push::push(git, args, target, commit.clone()) {
            Err(rejection) if rejection.code == "rejected" && attempt <= args.retry => {
                let next = retry::catch_up(git, target, &commit, attempt, &mut theirs, rejection);
                learned.insert("remote_commit".into(), json!(theirs));
                commit = next?;
                learned.insert("local_commit".into(), json!(commit));
                attempt += 1;
            }
            result => return result,
        }
    }
}

/// Describes what the remote has taken.
fn finish(
    git: &Git,
    args: &Args,
    target: &Target,
    pushed: &Pushed,
    learned: &mut Map<String, Value>,
) -> Result<(), Error> {
    let attempts = learned.get("attempts").cloned();
    let stamp = |record: &mut Map<String, Value>| {
        pushed.at.stamp(record, "pushed");
        record.insert("push_ms".into(), json!(pushed.took_ms));
        if let Some(attempts) = &attempts {
            record.insert("attempts".into(), attempts.clone());
        }
    };
    *learned = record::begin(&target.address, &pushed.change);
    stamp(learned);
    let mut whole = record::of(git, &target.address, &pushed.change)?;
    stamp(&mut whole);
    *learned = whole;
    if args.confirm {
        confirm::confirm(git, target, pushed)?.stamp(learned, "remote_visible");
    }
    learned.insert("outcome".into(), json!("pushed"));
    Ok(())
}

/// The commit is named all the same: the remote has it, and so it can be waited for.
fn nothing_to_push(target: &Target, learned: &mut Map<String, Value>) -> Error {
    let commit = learned.get("local_commit").cloned().unwrap_or_default();
    *learned = [("commit".to_owned(), commit)].into_iter().chain(record::whereto(&target.address)).collect();
    let message = format!("nothing to push: {} has {} as it is here", target.shown(), target.address.reference);
    Error::no("nothing-to-push", message).hint("change something first, or pass --allow-empty")
}
