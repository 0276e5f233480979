//! `git push`, and what became of it.

use std::time::Instant;

use kit::{error::Error, moment::Moment};

use crate::{
    args::Args,
    git::Git,
    porcelain::{self, Fate},
    record::Change,
    refusal,
    repository::Target,
};

/// A push that the remote has taken.
#[derive(Clone, Debug)]
pub struct Pushed {
    /// What changed at the remote.
    pub change: Change,
    /// When git reported it.
    pub at: Moment,
    /// How long git took, in milliseconds.
    pub took_ms: u64,
}

/// Pushes the commit that `target.source` is at, once. `None` when the remote had everything already.
///
/// # Errors
/// With git's or the remote's reason: exit code 1 for a rejection, 4 for missing rights, 124 when the time is over, 3
/// for everything else.
pub fn push(git: &Git, args: &Args, target: &Target, commit: String) -> Result<Option<Pushed>, Error> {
    let reference = &target.address.reference;
    // Full ids instead of short ones in what git reports.
    let abbrev = format!("core.abbrev={}", commit.len());
    let refspec = format!("{}:{reference}", target.source);
    let mut words = vec!["-c", &abbrev, "push", "--porcelain"];
    if args.force_with_lease {
        words.push("--force-with-lease");
    }
    words.extend([target.remote.as_str(), &refspec]);
    let begun = Instant::now();
    let answer = git.network(words)?;
    let at = Moment::now();
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);

    for line in porcelain::preamble(&answer.stdout).0 {
        git.talk().say(line);
    }
    let fates = porcelain::fates(&answer.stdout, reference);
    if fates.len() < target.push_urls || !fates.iter().all(|(_, fate)| fate.is_there()) {
        return Err(refusal::error(&answer, &fates, &commit, target));
    }
    let accepted = fates.into_iter().find_map(|(_, fate)| match fate {
        Fate::Accepted { before, after, forced } => Some((before, after, forced)),
        _ => None,
    });
    let Some((before, after, forced)) = accepted else { return Ok(None) };
    // What git says that it pushed, should the branch have moved since it was read; of a tag it names the tag itself.
    let commit = after.filter(|_| !reference.starts_with("refs/tags/")).unwrap_or(commit);
    if !answer.ok() {
        git.talk().warn(format!("git push took {reference}, but ended with an error: {}", answer.reason()));
    }
    Ok(Some(Pushed { change: Change { before, commit, forced }, at, took_ms }))
}

/// The commit that a local ref is at; `None` when it has none yet.
///
/// # Errors
/// When git cannot be run.
pub fn commit(git: &Git, source: &str) -> Result<Option<String>, Error> {
    let answer = git.ask(["rev-parse", "--quiet", "--verify", &format!("{source}^{{commit}}")])?;
    Ok(answer.ok().then(|| answer.line()))
}
