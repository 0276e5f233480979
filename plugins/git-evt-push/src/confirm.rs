//! Reading the ref back from the remote: a push can be accepted before every reader sees it.

use std::time::Duration;

use kit::{error::Error, exit::Exit, moment::Moment};

use crate::{git::Git, push::Pushed, repository::Target};

const PERIOD: Duration = Duration::from_millis(300);
/// A remote that cannot be read so often in a row is taken for one that cannot be read.
const FAILURES: u32 = 3;

/// Waits until the remote shows the commit, or what was pushed over it later. Returns when that was first seen.
///
/// # Errors
/// When the remote cannot be read (exit code 3), or does not show it in time (124). The push itself has succeeded.
pub fn confirm(git: &Git, target: &Target, pushed: &Pushed) -> Result<Moment, Error> {
    let reference = &target.address.reference;
    let peeled = peeled(reference);
    let mut failures = 0;
    loop {
        let answer = git.network(["ls-remote", &target.remote, reference, &peeled])?;
        if answer.ok() {
            failures = 0;
            if is_visible(git, &answer.line(), reference, &pushed.change.commit)? {
                return Ok(Moment::now());
            }
            git.talk().status(&format!("waiting until {} shows {reference}", target.shown()), &left(git));
        } else {
            failures += 1;
            if failures == FAILURES {
                let message = format!("pushed, but cannot read {reference} back: {}", answer.reason());
                return Err(Error::unknown("not-confirmed", message).hint("the push itself has been accepted"));
            }
        }
        if git.remaining() < PERIOD {
            let message = format!("pushed, but {} does not show {reference} at the commit yet", target.shown());
            return Err(Error::new(Exit::Deadline, "timeout", message).hint("--timeout sets the limit"));
        }
        git.pause(PERIOD)?;
    }
}

/// `listing` is what `ls-remote` prints: an id and a name a line, and for an annotated tag the commit under `name^{}`.
fn is_visible(git: &Git, listing: &str, reference: &str, commit: &str) -> Result<bool, Error> {
    let find = |wanted: &str| {
        listing.lines().filter_map(|line| line.split_once('\t')).find(|(_, name)| *name == wanted).map(|(id, _)| id)
    };
    let Some(shown) = find(&peeled(reference)).or_else(|| find(reference)) else { return Ok(false) };
    // A reader that lags shows what came before the commit; anything else was pushed after it was accepted.
    Ok(shown == commit || !git.ask(["merge-base", "--is-ancestor", shown, commit])?.ok())
}

/// The name under which a remote lists the commit of an annotated tag.
fn peeled(reference: &str) -> String {
    format!("{reference}^{{}}")
}

fn left(git: &Git) -> String {
    match git.remaining() {
        Duration::MAX => "no limit".into(),
        left => format!("{} s left", left.as_secs()),
    }
}
