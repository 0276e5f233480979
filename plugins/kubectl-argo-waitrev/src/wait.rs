//! The loop: the feed, the record, the deadline and the signals meet here.

use std::{pin::Pin, time::Duration};

use kit::{
    command::{Context, Report, interrupted},
    duration,
    error::Error,
    exit::Exit,
    record::Record,
};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};

use crate::{
    ancestry::Repository,
    args::Args,
    clock::Clock,
    input,
    outcome::{End, Outcome},
    run::{Run, unreachable},
    watch::{Event, Feed},
};

/// Events that may wait to be taken in.
const QUEUE: usize = 1024;

/// How often the line about what is waited for is drawn.
const DRAW: Duration = Duration::from_millis(250);

/// How long a record may take to arrive when `--timeout 0` says nothing about it.
const RECORD_LIMIT: Duration = Duration::from_secs(300);

/// The feed while it runs; it ends with the error that trying again does not help against.
type Running<'a> = Pin<&'a mut dyn Future<Output = Error>>;

/// Waits, or holds, as the arguments say.
///
/// # Errors
/// When the run never began: a wrong call, no record, nothing that can be found out.
pub async fn run(args: Args, context: Context) -> Result<Report, Error> {
    let clock = Clock::start();
    let repository = args.git_dir.as_deref().map(Repository::open).transpose()?;
    let (scope, members) = input::scope(&args);
    let single = members.names.len() == 1;
    let cluster = args.cluster.connect_without_retries(&context.talk).await?;
    let (sender, mut events) = mpsc::channel(QUEUE);
    let look = Notify::new();
    let feed = Feed::new((&args.cluster, cluster), &context.talk, &scope, clock, sender, &look);
    let mut feed: Running<'_> = std::pin::pin!(feed.run());

    let mut lost = None;
    let mut pending = Vec::new();
    let record = until_record(&args, &context, clock, &mut feed, &mut events, &mut pending, &mut lost).await?;
    let rules = input::rules(&args, &record, clock.now())?;
    let start = rules.start;
    let mut run = Run::new(rules, members, &scope, &context.talk, args.stream, repository);
    for event in pending {
        take(&mut run, event, &mut feed, &mut lost).await?;
    }
    run.begin(start);

    let limit = args.cluster.request_timeout.max(Duration::from_secs(1));
    // One look takes as long as a request may.
    let deadline = clock.at(start.elapsed + if args.timeout.is_zero() { limit } else { args.timeout });
    let mut asked: Option<Instant> = None;
    let mut drawing = tokio::time::interval(DRAW);
    let outside = loop {
        if run.is_decided() {
            break None;
        }
        if let Some(error) = lost.take() {
            let outcome = if error.exit == Exit::Unknown { Outcome::Unreachable } else { Outcome::Error };
            break Some(End { outcome, exit: error.exit, error: Some(error) });
        }
        if args.timeout.is_zero() && args.hold.is_none() && run.looked {
            break run.deadline(clock.now());
        }
        let proof = run.group.proof_due(&run.rules).filter(|_| asked.is_none());
        let wake = run.group.wake(&run.rules);
        // A hold that has begun has an end of its own.
        let over = Some(deadline).filter(|_| args.hold.is_none() || !run.looked);
        tokio::select! {
            biased;
            exit = context.interrupt.wait() => {
                break Some(End { outcome: Outcome::Interrupted, exit, error: Some(interrupted(exit)) });
            }
            Some(event) = events.recv() => {
                if matches!(event, Event::Listed { .. }) {
                    asked = None;
                }
                take(&mut run, event, &mut feed, &mut lost).await?;
                run.begin(clock.now());
            }
            error = &mut feed => lost = Some(error),
            () = until(proof.map(|due| clock.at(due))) => {
                look.notify_one();
                asked = Some(Instant::now() + limit);
            }
            () = until(asked) => break Some(run.lost().unwrap_or_else(|| unreachable("no answer to a last look"))),
            () = until(wake.map(|wake| clock.at(wake))) => run.tick(clock.now()),
            () = until(over) => break run.deadline(clock.now()),
            _ = drawing.tick() => run.draw(clock.now(), args.hold.unwrap_or(args.timeout)),
        }
    };
    Ok(run.report(record, single, outside, clock.now()))
}

/// Reads the record while the feed runs already: what happens meanwhile is kept, with its times.
async fn until_record(
    args: &Args,
    context: &Context,
    clock: Clock,
    feed: &mut Running<'_>,
    events: &mut mpsc::Receiver<Event>,
    pending: &mut Vec<Event>,
    lost: &mut Option<Error>,
) -> Result<Record, Error> {
    let mut reading = std::pin::pin!(input::record(args));
    let limit = if args.timeout.is_zero() { RECORD_LIMIT } else { args.timeout };
    if input::is_piped(args) {
        context.talk.status("watching, and waiting for the event record on stdin", &duration::go(limit));
    }
    loop {
        tokio::select! {
            biased;
            exit = context.interrupt.wait() => return Err(interrupted(exit)),
            Some(event) = events.recv() => pending.push(event),
            // The record still has to come through: what it tells of has happened.
            error = &mut *feed, if lost.is_none() => *lost = Some(error),
            record = &mut reading => return record,
            () = sleep_until(clock.at(limit)) => {
                let message = format!("no event record on stdin within {}", duration::go(limit));
                return Err(Error::new(Exit::Deadline, "deadline", message)
                    .hint("the command before the pipe did not end; --timeout waits longer"));
            }
        }
    }
}

/// Takes in an event, after the clone was asked about the revisions in it. The feed goes on meanwhile.
async fn take(run: &mut Run<'_>, event: Event, feed: &mut Running<'_>, lost: &mut Option<Error>) -> Result<(), Error> {
    if let Some((repository, revisions)) = run.questions(&event) {
        let commit = run.rules.wanted.commit.clone();
        let mut asking = tokio::task::spawn_blocking(move || {
            revisions
                .into_iter()
                .map(|revision| (repository.contains(&revision, &commit), revision))
                .collect::<Vec<_>>()
        });
        let answers = loop {
            tokio::select! {
                answers = &mut asking => break answers.unwrap_or_default(),
                error = &mut *feed, if lost.is_none() => *lost = Some(error),
            }
        };
        for (contains, revision) in answers {
            run.answer(revision, contains);
        }
    }
    run.take(event)
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
