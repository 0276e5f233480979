//! `git evt-push` commits, pushes, and describes the push as JSON.
//!
//! ```text
//! git evt-push --set data.rev=r2 app/signal.yaml | kubectl argo-waitrev evt -f -
//! ```
//!
//! It runs the user's own git and calls no other program and no API. What git says goes to stderr; stdout holds the
//! event record alone.
//!
//! Exit codes: 0 pushed; 1 rejected, refused by a hook, nothing to push; 2 fix the call (nothing was changed then); 3
//! git failed for another reason; 4 not allowed; 124 the time is over; 130 and 143 interrupted.

mod answer;
mod args;
mod commits;
mod config;
mod confirm;
mod describe;
mod edit;
mod git;
mod job;
mod local;
mod manual;
mod pipe;
mod porcelain;
mod push;
mod record;
mod refusal;
mod repository;
mod retry;
mod stop;
mod target;
mod url;

use std::process::ExitCode;

use kit::{
    command::{Context, Report, interrupted},
    error::Error,
};
use serde_json::{Map, json};

use crate::{args::Args, git::Git, stop::Stop};

fn main() -> ExitCode {
    kit::command::run(|args: &Args| &args.talk, run)
}

/// Runs the job in a thread of its own, so that signals are noticed while git works.
async fn run(args: Args, context: Context) -> Result<Report, Error> {
    let stop = Stop::default();
    let git = Git::find(context.talk.clone(), stop.clone(), args.timeout)?;
    let mut job = tokio::task::spawn_blocking(move || {
        let mut learned = Map::new();
        let result = job::run(&git, &args, &mut learned);
        (learned, result)
    });
    let mut signal = None;
    let joined = tokio::select! {
        joined = &mut job => joined,
        exit = context.interrupt.wait() => {
            stop.stop();
            signal = Some(exit);
            job.await
        }
    };
    let (mut learned, result) =
        joined.map_err(|error| Error::unknown("panicked", format!("the work ended before its time: {error}")))?;
    let error = match (result, signal) {
        (Ok(()), None) => return Ok(Report::done(learned)),
        (_, Some(exit)) => interrupted(exit),
        (Err(error), None) => error,
    };
    if learned.is_empty() {
        return Err(error);
    }
    learned.insert("outcome".into(), json!(error.code));
    Ok(Report::failed(learned, error))
}
