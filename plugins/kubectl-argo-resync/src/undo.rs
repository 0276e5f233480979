//! Putting the old values back after a restart that failed, or saying how.

use kit::{cluster::DEFAULT_NAMESPACE, error::Error};

use crate::{
    deadline::Deadline,
    job::{self, Job},
    origin::CONFIG,
    restart::{self, Mode},
    wanted::{self, Wanted},
};

/// What to tell the user after a restart failed; with `--rollback` the old values are put back first.
pub async fn after(job: &mut Job<'_>, error: Error) -> Error {
    if !job.done.written {
        return error;
    }
    let changed = format!("{CONFIG} was changed ({})", job.change.words());
    let more = if job.args.rollback {
        job.talk.error(&error);
        job.talk.say("putting the old values back");
        let result = roll_back(job).await;
        job.done.rolled_back = Some(result.is_ok());
        match result {
            Ok(()) => format!("{changed} and put back"),
            Err(again) => format!("{changed}, and could not be put back: {}", again.message),
        }
    } else {
        format!("{changed}: `{}` puts it back", command(job))
    };
    let hint = error.hint.iter().cloned().chain([more]).collect::<Vec<_>>().join("; ");
    error.hint(hint)
}

async fn roll_back(job: &mut Job<'_>) -> Result<(), Error> {
    job.install.config = job::write(job.cluster, &job.change.undone().patch(), Mode::Real).await?;
    // What was left of the time is the failure's.
    job.deadline = Deadline::new(job.args.timeout);
    for component in job.done.restarted.clone() {
        restart::start(job.cluster, job.install.workload(component), Mode::Real).await?;
        job.finish(component).await?;
    }
    job.observe().await
}

/// The command that puts the old values back.
fn command(job: &Job<'_>) -> String {
    let word = |value: &Option<String>, parse: fn(&str) -> Result<Wanted, Error>| match value {
        Some(text) if parse(text).is_ok() => text.clone(),
        _ => "default".into(),
    };
    let mut words = vec!["kubectl argo-resync".to_owned()];
    if job.change.period.is_change() {
        words.push(word(&job.change.period.before, wanted::period));
    }
    if job.change.jitter.is_change() {
        words.push(format!("--jitter {}", word(&job.change.jitter.before, wanted::jitter)));
    }
    let cluster = &job.args.cluster;
    for (flag, value) in [("--context", &cluster.context), ("--cluster", &cluster.cluster), ("--user", &cluster.user)] {
        words.extend(value.as_ref().map(|value| format!("{flag} {value}")));
    }
    if job.cluster.namespace != DEFAULT_NAMESPACE {
        words.push(format!("-n {}", job.cluster.namespace));
    }
    words.join(" ")
}
