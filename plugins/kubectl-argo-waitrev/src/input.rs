//! From the arguments and the record to what the decisions need.

use std::{collections::BTreeSet, path::Path, time::Duration};

use kit::{application::AppName, error::Error, moment::Moment, record::Record};
use serde_json::Map;

use crate::{args::Args, clock::At, effect::Push, group::Members, report, rules::Rules, scope::Scope, wanted::Wanted};

/// Where the Applications are, and which of them are meant.
pub fn scope(args: &Args) -> (Scope, Members) {
    let names: BTreeSet<AppName> = args.apps.iter().map(|name| AppName::parse(name, &args.cluster.namespace)).collect();
    let members = Members { names: names.clone(), any: args.any, expected: args.expect_count };
    if names.is_empty() {
        let namespace = Some(args.cluster.namespace.clone()).filter(|_| !args.all_namespaces);
        (Scope::selected(namespace, args.selector.clone()), members)
    } else {
        (Scope::named(names), members)
    }
}

/// Whether the record comes from the command before the pipe.
pub fn is_piped(args: &Args) -> bool {
    args.from.as_deref() == Some(Path::new("-"))
}

/// The record, empty when the commit is on the command line.
///
/// # Errors
/// As [`Record::read`].
pub async fn record(args: &Args) -> Result<Record, Error> {
    match &args.from {
        Some(path) => Record::read(path).await,
        None => Ok(Record(Map::new())),
    }
}

/// The rules of the run; it begins at `start`.
///
/// # Errors
/// When the record has no usable commit; exit code 2.
pub fn rules(args: &Args, record: &Record, start: At) -> Result<Rules, Error> {
    let commit = match &args.revision {
        Some(revision) => revision.clone(),
        None => commit(record)?,
    };
    let pushed_at = report::moment(record, "pushed");
    let push_ms = record.number("push_ms").unwrap_or_default();
    let push_began = pushed_at.map(|pushed| Moment::from_ms(pushed.ms().saturating_sub(push_ms)));
    let urls = [record.text("repo_url")?, record.text("remote_url")?];
    Ok(Rules {
        wanted: Wanted {
            commit,
            repo_urls: urls.into_iter().flatten().filter(|url| !url.is_empty()).map(str::to_owned).collect(),
            source: args.source.clone(),
            dry: args.dry,
            contained_in: BTreeSet::new(),
        },
        level: args.until,
        start,
        once: args.timeout.is_zero(),
        hold: args.hold,
        stable: args.stable.filter(|stable| *stable > Duration::ZERO),
        error_grace: args.error_grace,
        fail_on_degraded: args.fail_on_degraded,
        forbid_refresh: args.forbid_refresh,
        stale_after: args.stale_after,
        no_effect: args.no_effect,
        push: Push::of(record),
        pushed_at,
        push_began,
        sent_at: report::moment(record, "sent"),
        event_refused: record.number("http_status").is_some_and(|status| !(200..300).contains(&status)),
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
