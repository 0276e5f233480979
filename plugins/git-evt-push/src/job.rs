//! The whole job: edit, commit, push, describe.

use kit::error::Error;
use serde_json::{Map, Value, json};

use crate::{args::Args, describe, git::Git, local, push, record, repository};

/// Edits, commits and pushes, or describes what was pushed. Everything that could be wrong with the call is found before anything is changed; from
/// then on `learned` holds what is known, whatever the outcome.
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
    let edit = local::plan(args)?;
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
    let pushed = push::push(git, args, &target, commit.clone())?;
    if target.address.default_branch.is_none() {
        target.address.default_branch = repository::remote_head(git, &target.remote).unwrap_or_default();
    }
    let Some(pushed) = pushed else {
        *learned = [("commit".to_owned(), json!(commit))].into_iter().chain(record::whereto(&target.address)).collect();
        let message = format!("nothing to push: {} has {} as it is here", target.remote, target.address.reference);
        return Err(Error::no("nothing-to-push", message).hint("change something first, or pass --allow-empty"));
    };
    let stamp = |record: &mut Map<String, Value>| {
        pushed.at.stamp(record, "pushed");
        record.insert("push_ms".into(), json!(pushed.took_ms));
    };
    *learned = record::begin(&target.address, &pushed.change);
    stamp(learned);
    let mut whole = record::of(git, &target.address, &pushed.change)?;
    stamp(&mut whole);
    whole.insert("outcome".into(), json!("pushed"));
    *learned = whole;
    Ok(())
}
