//! The run: the feed, the record, the deadline and the signals meet here.

use std::{collections::BTreeSet, pin::pin, time::Duration};

use kit::{
    application::AppName,
    command::{Context, Report, interrupted},
    duration,
    error::Error,
    exit::Exit,
    record::Record,
};
use serde_json::Map;
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};

use crate::{
    account::Cause,
    args::Args,
    clock::{At, Clock},
    group::{Group, Members},
    outcome::{End, Outcome},
    report::{self, Course},
    rules::Rules,
    scope::Scope,
    wanted::Wanted,
    watch::{Event, Feed},
};

/// Events that may wait to be taken in.
const QUEUE: usize = 1024;

/// How often the line about what is waited for is drawn.
const DRAW: Duration = Duration::from_millis(250);

/// How long a record may take to arrive when `--timeout 0` says nothing about it.
const RECORD_LIMIT: Duration = Duration::from_secs(300);

/// Waits, or holds, as the arguments say.
///
/// # Errors
/// When the run never began: a wrong call, no record, nothing that can be found out.
pub async fn run(args: Args, context: Context) -> Result<Report, Error> {
    let clock = Clock::start();
    let (scope, members) = scope(&args);
    let single = members.names.len() == 1;
    let cluster = args.cluster.connect_without_retries(&context.talk).await?;
    let (sender, mut events) = mpsc::channel(QUEUE);
    let look = Notify::new();
    let feed = Feed::new((&args.cluster, cluster), &context.talk, &scope, clock, sender, &look);
    let mut feed = pin!(feed.run());

    let mut pending = Vec::new();
    let mut lost = None;
    let record = {
        let mut reading = pin!(read(&args));
        let limit = if args.timeout.is_zero() { RECORD_LIMIT } else { args.timeout };
        if args.from.as_deref() == Some(std::path::Path::new("-")) {
            context.talk.status("watching, and waiting for the event record on stdin", "");
        }
        loop {
            tokio::select! {
                biased;
                exit = context.interrupt.wait() => return Err(interrupted(exit)),
                Some(event) = events.recv() => pending.push(event),
                // The record still has to come through: what it tells of has happened.
                error = &mut feed, if lost.is_none() => lost = Some(error),
                record = &mut reading => break record?,
                () = sleep_until(clock.at(limit)) => return Err(no_record(limit)),
            }
        }
    };
    let rules = rules(&args, &record, clock.now())?;
    let mut run = Run {
        group: Group::new(members),
        rules,
        course: Course::default(),
        trouble: None,
        looked: false,
        named: !scope.names().is_empty(),
        place: scope.place(),
    };
    let deadline = clock.at(run.rules.start.elapsed + args.timeout);
    let limit = args.cluster.request_timeout;
    for event in pending {
        run.take(event)?;
    }
    run.begin(run.rules.start);

    let mut asked: Option<Instant> = None;
    let mut drawing = tokio::time::interval(DRAW);
    let ended = loop {
        if run.is_decided() {
            break None;
        }
        if let Some(error) = lost.take() {
            break Some(End { outcome: lost_outcome(&error), exit: error.exit, error: Some(error) });
        }
        if args.timeout.is_zero() && run.looked && args.hold.is_none() {
            run.group.give_up(clock.now(), &run.rules);
            break None;
        }
        let proof = run.group.proof_due(&run.rules).map(|due| clock.at(due)).filter(|_| asked.is_none());
        let wake = run.group.wake(&run.rules).map(|wake| clock.at(wake));
        // A hold has an end of its own once it has begun.
        let over = Some(deadline).filter(|_| args.hold.is_none() || !run.looked).filter(|_| !args.timeout.is_zero());
        tokio::select! {
            biased;
            exit = context.interrupt.wait() => {
                break Some(End { outcome: Outcome::Interrupted, exit, error: Some(interrupted(exit)) });
            }
            Some(event) = events.recv() => {
                if matches!(event, Event::Listed { .. }) {
                    asked = None;
                }
                run.take(event)?;
                run.begin(clock.now());
            }
            error = &mut feed => lost = Some(error),
            () = until(proof) => {
                look.notify_one();
                asked = Some(Instant::now() + limit.max(Duration::from_secs(1)));
            }
            () = until(asked) => break Some(unproven(run.trouble.take())),
            () = until(wake) => run.group.tick(clock.now(), &run.rules),
            () = until(over) => {
                run.deadline(clock.now());
                break None;
            }
            _ = drawing.tick() => run.draw(&context, clock.now(), args.hold.or(Some(args.timeout))),
        }
    };
    if let Some(end) = ended {
        run.group.stop(clock.now(), &end, &run.rules);
        return Ok(run.report(record, single, Some(end)));
    }
    Ok(run.report(record, single, None))
}

struct Run {
    group: Group,
    rules: Rules,
    course: Course,
    /// What cannot be found out at the moment.
    trouble: Option<Error>,
    looked: bool,
    named: bool,
    place: String,
}

impl Run {
    fn take(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Listed { views, first, gap, at } => {
                if first && views.is_empty() && !self.named && self.group.is_complete() {
                    let message = format!("no Application matches in {}", self.place);
                    return Err(Error::usage("not-found", message)
                        .hint("check the selector and the namespace (-n, -A); --expect-count waits for Applications to be made"));
                }
                self.course.watch_gaps += u32::from(gap && !self.course.polled);
                self.looked = true;
                self.group.listed(views, at, first, &self.rules);
            }
            Event::Changed(view, at) => self.group.see(view, at, Cause::Change, &self.rules),
            Event::Gone(view, at) => self.group.gone(&view.name(), at, &self.rules),
            Event::Broken => self.course.watch_restarts += 1,
            Event::Trouble(error) => self.trouble = Some(error),
            Event::Working => self.trouble = None,
            Event::Polling => self.course.polled = true,
        }
        Ok(())
    }

    /// Once the first look is over.
    fn begin(&mut self, now: At) {
        if self.looked && !self.group.has_begun() {
            self.group.begin(now, &self.rules);
        }
    }

    fn is_decided(&self) -> bool {
        self.looked && self.group.is_decided(&self.rules)
    }

    fn deadline(&mut self, now: At) {
        match self.trouble.take() {
            Some(error) => self.group.stop(now, &unproven(Some(error)), &self.rules),
            None => self.group.give_up(now, &self.rules),
        }
    }

    fn draw(&self, context: &Context, now: At, length: Option<Duration>) {
        let waited = now.elapsed.saturating_sub(self.rules.start.elapsed);
        let left = length.unwrap_or_default().saturating_sub(waited);
        let what = match &self.trouble {
            Some(error) => format!("trying again: {error}"),
            None if !self.looked => "looking".into(),
            None => self.group.describe(&self.rules),
        };
        let time = format!("{}, {} left", duration::go(waited), duration::go(left));
        context.talk.status(&what, &time);
    }

    fn report(self, record: Record, single: bool, ended: Option<End>) -> Report {
        let mut object = report::clean(record.0);
        let (mut exit, mut error) = self.group.verdict();
        report::add(&mut object, &self.group, &self.rules, self.course, single);
        if let Some(end) = ended {
            // What happened outside is about the run, even where no Application was seen.
            object.insert("outcome".into(), end.outcome.word().into());
            (exit, error) = (end.exit, end.error);
        } else if self.group.accounts.is_empty() {
            (exit, error) = (Exit::Deadline, error);
        }
        Report { object, exit, error, stream: false }
    }
}

/// Where the Applications are, and which of them are meant.
fn scope(args: &Args) -> (Scope, Members) {
    let names: BTreeSet<AppName> = args.apps.iter().map(|name| AppName::parse(name, &args.cluster.namespace)).collect();
    let members = Members { names: names.clone(), any: false, expected: None };
    if names.is_empty() {
        let namespace = Some(args.cluster.namespace.clone()).filter(|_| !args.all_namespaces);
        (Scope::selected(namespace, args.selector.clone()), members)
    } else {
        (Scope::named(names), members)
    }
}

async fn read(args: &Args) -> Result<Record, Error> {
    match &args.from {
        Some(path) => Record::read(path).await,
        None => Ok(Record(Map::new())),
    }
}

fn rules(args: &Args, record: &Record, start: At) -> Result<Rules, Error> {
    let commit = match &args.revision {
        Some(revision) => revision.clone(),
        None => commit(record)?,
    };
    let urls = [record.text("repo_url")?, record.text("remote_url")?];
    Ok(Rules {
        wanted: Wanted {
            commit,
            repo_urls: urls.into_iter().flatten().filter(|url| !url.is_empty()).map(str::to_owned).collect(),
            source: args.source.clone(),
            dry: false,
            contained_in: BTreeSet::new(),
        },
        level: args.until,
        start,
        once: args.timeout.is_zero(),
        hold: args.hold,
        stable: None,
        error_grace: args.error_grace,
        fail_on_degraded: false,
        forbid_refresh: args.forbid_refresh,
        stale_after: Duration::from_secs(300),
        pushed_at: report::moment(record, "pushed"),
        sent_at: report::moment(record, "sent"),
    })
}

/// The commit of a record.
fn commit(record: &Record) -> Result<String, Error> {
    let commit = record.require("commit")?;
    let bad = |why: &str| Error::usage("bad-record", format!("`commit` of the event record is {why}: {commit}"));
    if !kit::record::is_commit(commit) {
        return Err(bad("not a commit id").hint("a branch or a tag is no commit; `git rev-parse` prints its id"));
    }
    if commit.bytes().all(|byte| byte == b'0') {
        return Err(bad("that of a deleted branch").hint("there is nothing to wait for after a branch is deleted"));
    }
    if record.0.get("error").is_some_and(|error| !error.is_null()) && record.number("pushed_at").is_none() {
        return Err(Error::usage("bad-record", "the event record is of a push that failed")
            .hint("the command before the pipe failed; its message is above"));
    }
    Ok(commit.to_ascii_lowercase())
}

fn no_record(limit: Duration) -> Error {
    Error::new(Exit::Deadline, "deadline", format!("no event record on stdin within {}", duration::go(limit)))
        .hint("the command before the pipe did not end; --timeout waits longer")
}

fn unproven(trouble: Option<Error>) -> End {
    let message = match trouble {
        Some(error) => format!("the watch was lost: {error}"),
        None => "the watch was lost: no answer to a last look".into(),
    };
    End::new(Exit::Unknown, Outcome::Unreachable, message, Some("run the same command again".into()))
}

fn lost_outcome(error: &Error) -> Outcome {
    if error.exit == Exit::Unknown { Outcome::Unreachable } else { Outcome::Error }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
