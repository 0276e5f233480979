//! Waits until an Application is at a commit, or proves that it stays where it is.
//!
//! ```sh
//! git evt-push --set data.rev=r2 app/signal.yaml | kubectl argo-waitrev evt -f - > poll.json
//! ```
//!
//! API calls: `list` and `watch` of `applications.argoproj.io`: in its namespace with a field selector for one name, in
//! the namespace for several, in the cluster for names in several namespaces. `get` of each named one where `list` is not
//! allowed; every second where `watch` is not. Beyond `compared`, `get` of the AppProject of an Application that is
//! OutOfSync, for its sync windows; where that is not allowed nothing is said about them. Nothing is ever written, and no
//! refresh is asked for.
//!
//! Exit codes: [`kit::exit::TABLE`]. Outcomes, each with its exit code: [`outcome::Outcome`] and `--help`.
//!
//! `watch_restarts` counts the watches that ended otherwise than agreed. They are resumed from the last version seen, so
//! that nothing is missed; `watch_gaps` counts those where the server no longer knew that version (410) and a fresh list
//! had to close the gap. Ids in `status.history` then still show what was synced in between.

#![allow(clippy::vec_box, reason = "a view is large, and a growing list of thousands would copy them all")]

use std::process::ExitCode;

mod account;
mod alarm;
mod ancestry;
mod api;
mod args;
mod backoff;
mod change;
mod clock;
mod condition;
mod effect;
mod group;
mod input;
mod manual;
mod missing;
mod outcome;
mod report;
mod revision;
mod rules;
mod run;
mod scope;
mod trace;
mod view;
mod wait;
mod wanted;
mod watch;
mod windows;

fn main() -> ExitCode {
    kit::command::run(|args: &args::Args| &args.talk, wait::run)
}
