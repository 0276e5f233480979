//! What happens between a rejected push and the next: wait, fetch, rebase.

use std::{
    hash::{BuildHasher, RandomState},
    path::Path,
    time::Duration,
};

use kit::error::Error;

use crate::{answer::Answer, git::Git, push, repository::Target};

const LONGEST: Duration = Duration::from_secs(10);

/// Brings the branch on top of what the remote has, and returns what that is and the commit to push next.
///
/// Servers word a lost race in many ways ("fetch first", "cannot lock ref", "incorrect old value"), so every rejection
/// is taken for one; `seen` is what the remote had at the last try, and the same again means that it was none.
///
/// # Errors
/// `rejection`, with why it was not tried again. The branch, the index and the work tree are then as they were after
/// the commit.
pub fn catch_up(
    git: &Git,
    target: &Target,
    commit: &str,
    attempt: u32,
    seen: &mut Option<String>,
    rejection: Error,
) -> Result<String, Error> {
    let give_up =
        |why: String| Error { message: format!("{}; not tried again: {why}", rejection.message), ..rejection.clone() };
    let wait = back_off(attempt, RandomState::new().hash_one(attempt));
    git.talk().say(format!("push {attempt} was rejected; next in {:.1} s", wait.as_secs_f64()));
    git.pause(wait)?;
    let fetched = git.network(["fetch", "--no-tags", &target.remote, &target.address.reference])?;
    let theirs = push::commit(git, "FETCH_HEAD")?.filter(|_| fetched.ok());
    let Some(theirs) = theirs else {
        return Err(give_up(format!("cannot fetch {}: {}", target.address.reference, fetched.reason())));
    };
    let again = seen.replace(theirs.clone()).is_some_and(|earlier| earlier == theirs);
    if git.ask(["merge-base", "--is-ancestor", &theirs, commit])?.ok() {
        if again {
            return Err(give_up("the remote has nothing new, so nobody else's push is in the way".into()));
        }
        return Ok(commit.to_owned());
    }
    rebase(git, &theirs, commit).map_err(|why| if why.code == CONFLICT { give_up(why.message) } else { why })?;
    push::commit(git, &target.source)?.ok_or_else(|| give_up("the branch is gone".into()))
}

const CONFLICT: &str = "cannot-rebase";

/// Rebases, and undoes what a rebase that did not come through has left.
fn rebase(git: &Git, onto: &str, commit: &str) -> Result<(), Error> {
    let result = git.act(["rebase", "--rebase-merges", onto]);
    if result.as_ref().is_ok_and(Answer::ok) {
        return Ok(());
    }
    let path = |name| git.undo(["rev-parse", "--git-path", name]).map(|answer| answer.line());
    let begun = Path::new(&path("rebase-merge")?).exists() || Path::new(&path("rebase-apply")?).exists();
    let conflicts = git.undo(["diff", "--name-only", "--diff-filter=U"])?.line();
    if begun {
        git.undo(["rebase", "--abort"])?;
    }
    let restored = git.undo(["rev-parse", "HEAD"])?.line() == commit;
    // An interrupt is reported as such, now that everything is as it was.
    result?;
    let why = match conflicts.lines().collect::<Vec<_>>().as_slice() {
        [] => "git could not rebase (its reason is above)".to_owned(),
        files => format!("your commit and theirs change the same lines of {}", files.join(", ")),
    };
    let state = if restored {
        "branch, index and work tree are as after the commit"
    } else {
        "the rebase could not be undone: see `git status`"
    };
    Err(Error::no(CONFLICT, format!("{why}; {state}")))
}

/// Half a second, doubled each time, and between half and one and a half of that, so that two who lost the same race
/// do not meet again.
fn back_off(attempt: u32, random: u64) -> Duration {
    let whole = Duration::from_millis(500).saturating_mul(1 << (attempt - 1).min(5)).min(LONGEST);
    whole.mul_f64(0.5 + (random % 1000) as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_within_their_bounds() {
        for (attempt, random, ms) in [(1, 0, 250), (1, 999, 749), (2, 500, 1000), (3, 0, 1000), (40, 500, 10_000)] {
            assert_eq!(back_off(attempt, random).as_millis(), ms);
        }
    }
}
