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
    api,
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

/// The feed while it runs, and how it ended.
struct Running<'a> {
    feed: Pin<&'a mut dyn Future<Output = Error>>,
    /// What trying again does not help against.
    lost: Option<Error>,
}

impl Running<'_> {
    /// Until the feed ends, which it does once.
    async fn end(&mut self) {
        if self.lost.is_some() {
            return std::future::pending().await;
        }
        self.lost = Some((&mut self.feed).await);
    }

    /// Does something else while the feed goes on.
    async fn meanwhile<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = std::pin::pin!(other);
        loop {
            tokio::select! {
                done = &mut other => return done,
                () = self.end() => {}
            }
        }
    }
}

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
    let feed = Feed::new((&args.cluster, cluster.clone()), &context.talk, &scope, clock, sender, &look);
    let mut running = Running { feed: std::pin::pin!(feed.run()), lost: None };

    let mut pending = Vec::new();
    let record = until_record(&args, &context, clock, &mut running, &mut events, &mut pending).await?;
    let mut rules = input::rules(&args, &record, clock.now())?;
    if let Some(full) = repository.as_ref().and_then(|repository| repository.full_id(&rules.wanted.commit)) {
        rules.wanted.commit = full;
    }
    let start = rules.start;
    let mut run = Run::new(rules, members, &scope, &context.talk, &args, repository);
    let left = |clock: Clock| args.timeout.saturating_sub(clock.now().elapsed.saturating_sub(start.elapsed));
    for event in pending {
        take(&mut run, event, &mut running).await?;
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
        if let Some(error) = running.lost.take() {
            let outcome = if error.exit == Exit::Unknown { Outcome::Unreachable } else { Outcome::Error };
            break Some(End { outcome, exit: error.exit, error: Some(error) });
        }
        if args.timeout.is_zero() && args.hold.is_none() && run.looked {
            break run.deadline(clock.now());
        }
        let proof = run.group.proof_due().filter(|_| asked.is_none());
        let wake = run.group.wake();
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
                let changed = if let Event::Changed(view, _) = &event { Some(view.name()) } else { None };
                take(&mut run, event, &mut running).await?;
                run.begin(clock.now());
                if let Some((name, project)) = run.held_back(changed.as_ref()) {
                    // Where it may not be read, nothing is said about its windows.
                    let asked = running.meanwhile(api::project(&cluster, &project.namespace, &project.name)).await;
                    if let Ok(project) = asked {
                        run.windows(&name, &project, clock.now(), left(clock));
                    }
                }
            }
            () = running.end() => {}
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
    running: &mut Running<'_>,
    events: &mut mpsc::Receiver<Event>,
    pending: &mut Vec<Event>,
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
            () = running.end() => {}
            record = &mut reading => return record,
            () = sleep_until(clock.at(limit)) => {
                let message = format!("no event record on stdin within {}", duration::go(limit));
                return Err(Error::new(Exit::Deadline, "deadline", message)
                    .hint("the command before the pipe did not end; --timeout waits longer"));
            }
        }
    }
}

/// Takes in an event, after the clone was asked about the revisions in it.
async fn take(run: &mut Run<'_>, event: Event, running: &mut Running<'_>) -> Result<(), Error> {
    if let Some((repository, revisions)) = run.questions(&event) {
        let commit = run.rules.wanted.commit.clone();
        let asking = tokio::task::spawn_blocking(move || {
            let ask = |revision: String| (repository.contains(&revision, &commit), revision);
            revisions.into_iter().map(ask).collect::<Vec<_>>()
        });
        for (contains, revision) in running.meanwhile(asking).await.unwrap_or_default() {
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
