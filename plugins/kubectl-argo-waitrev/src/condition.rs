//! What one version of an Application says about the commit: there, not yet, or never.
//!
//! Pure, and everything is judged on the same version of the object.

use clap::ValueEnum;
use serde::Serialize;

use crate::{
    revision::{is_commit, same_commit, same_repository},
    view::{OperationState, View},
    wanted::{Match, Wanted, is_multi_source, sources},
};

/// How far an Application has to be; each level contains those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    /// The revision compared is the commit
    #[default]
    Compared,
    /// The cluster has what the commit says
    Synced,
    /// The last operation on the commit succeeded, or none was needed
    Deployed,
    /// What runs is healthy
    Healthy,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The level is reached.
    Reached,
    /// It may still be.
    NotYet,
    /// It will not be.
    Never,
}

/// Which rule gave the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The revision is the commit.
    AtRevision,
    /// It is, and the cluster has it.
    Synced,
    /// The operation on it succeeded.
    OperationSucceeded,
    /// The cluster had it without an operation.
    NoOperationNeeded,
    /// And it is healthy.
    Healthy,
    /// There was no comparison yet.
    NeverCompared,
    /// The revision is a name: the comparison did not get as far as a commit.
    Unresolved,
    /// The revision is another commit.
    OtherRevision,
    /// There are not as many revisions as sources.
    RevisionsMisaligned,
    /// The comparison was of another repository than the spec names now.
    SpecChanged,
    /// No source can show the commit.
    NoSource,
    /// The dry commit is being hydrated.
    Hydrating,
    /// The hydrated commit is not compared yet.
    HydratedNotCompared,
    /// Hydrating the commit failed.
    HydrationFailed,
    /// A condition says that the Application could not be compared.
    ErrorCondition,
    /// The sync status is unknown.
    SyncUnknown,
    /// The cluster does not have it yet.
    OutOfSync,
    /// An operation is requested and did not begin.
    OperationPending,
    /// An operation is running.
    OperationRunning,
    /// An operation failed and will be tried again.
    OperationRetrying,
    /// An operation is being stopped.
    OperationTerminating,
    /// An operation on another commit is still running.
    OperationOnOtherRevision,
    /// The operation on the commit ended badly.
    OperationFailed,
    /// Health is Progressing, Missing, Suspended or Unknown.
    NotHealthy,
    /// Health is Degraded.
    Degraded,
    /// The Application is being deleted.
    BeingDeleted,
}

/// The answer with what it stands on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The answer.
    pub verdict: Verdict,
    /// The rule.
    pub reason: Reason,
    /// The revision that counts as the commit, when it is there.
    pub found: Option<Found>,
}

/// The revision that counts as the commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// As the Application shows it.
    pub revision: String,
    /// Whether it is the commit or a newer one.
    pub by: Match,
    /// The position of the source, counted from 0.
    pub source: usize,
}

/// Judges one version of an Application. `degraded_is_final`: Degraded at the commit will not be waited out.
pub fn judge(view: &View, wanted: &Wanted, level: Level, degraded_is_final: bool) -> Judgement {
    let (verdict, reason, found) = match steps(view, wanted, level, degraded_is_final) {
        Ok((reason, found)) => (Verdict::Reached, reason, Some(found)),
        Err(Stop { verdict, reason, found }) => (verdict, reason, found),
    };
    let blind = view.error_condition().is_some()
        && (verdict == Verdict::NotYet || (verdict == Verdict::Reached && view.status.sync.status == "Unknown"));
    if blind {
        return Judgement { verdict: Verdict::NotYet, reason: Reason::ErrorCondition, found };
    }
    Judgement { verdict, reason, found }
}

/// The step at which an Application stands.
struct Stop {
    verdict: Verdict,
    reason: Reason,
    found: Option<Found>,
}

fn not_yet(reason: Reason, found: Option<&Found>) -> Stop {
    Stop { verdict: Verdict::NotYet, reason, found: found.cloned() }
}

fn never(reason: Reason, found: Option<&Found>) -> Stop {
    Stop { verdict: Verdict::Never, reason, found: found.cloned() }
}

fn steps(view: &View, wanted: &Wanted, level: Level, degraded_is_final: bool) -> Result<(Reason, Found), Stop> {
    if view.metadata.deletion_timestamp.is_some() {
        return Err(never(Reason::BeingDeleted, None));
    }
    let compared = compared(view, wanted);
    if level >= Level::Deployed && failed_on(view, wanted, compared.as_ref().ok()) {
        return Err(never(Reason::OperationFailed, compared.as_ref().ok()));
    }
    let found = compared?;
    if level == Level::Compared {
        return Ok((Reason::AtRevision, found));
    }
    match view.status.sync.status.as_str() {
        "Synced" => {}
        "OutOfSync" => {
            return Err(not_yet(operation(view, &found).err().unwrap_or(Reason::OutOfSync), Some(&found)));
        }
        _ => return Err(not_yet(Reason::SyncUnknown, Some(&found))),
    }
    if level == Level::Synced {
        return Ok((Reason::Synced, found));
    }
    let deployed = operation(view, &found).map_err(|reason| not_yet(reason, Some(&found)))?;
    if level == Level::Deployed {
        return Ok((deployed, found));
    }
    match view.status.health.status.as_str() {
        "Healthy" => Ok((Reason::Healthy, found)),
        "Degraded" if degraded_is_final => Err(never(Reason::Degraded, Some(&found))),
        "Degraded" => Err(not_yet(Reason::Degraded, Some(&found))),
        _ => Err(not_yet(Reason::NotHealthy, Some(&found))),
    }
}

/// Whether the last comparison was of the commit.
fn compared(view: &View, wanted: &Wanted) -> Result<Found, Stop> {
    let candidates = wanted.sources(view).map_err(|_| not_yet(Reason::NoSource, None))?;
    if wanted.dry {
        return hydrated(view, wanted);
    }
    let revisions = revisions(view)?;
    let mut first_reason = None;
    for position in candidates {
        let revision = revisions[position];
        let reason = if revision.is_empty() {
            Reason::NeverCompared
        } else if !is_commit(revision) {
            Reason::Unresolved
        } else if compared_elsewhere(view, position) {
            Reason::SpecChanged
        } else if let Some(by) = wanted.accepts(revision) {
            return Ok(Found { revision: revision.to_owned(), by, source: position });
        } else {
            Reason::OtherRevision
        };
        first_reason.get_or_insert(reason);
    }
    Err(not_yet(first_reason.unwrap_or(Reason::NoSource), None))
}

/// The revision of each source, in the order of the sources.
fn revisions(view: &View) -> Result<Vec<&str>, Stop> {
    let sync = &view.status.sync;
    if !is_multi_source(view) {
        return Ok(vec![sync.revision.as_deref().unwrap_or_default()]);
    }
    match sync.revisions.len() {
        // After a comparison error the list is emptied.
        0 if sync.status == "Unknown" => Err(not_yet(Reason::Unresolved, None)),
        0 => Err(not_yet(Reason::NeverCompared, None)),
        length if length == view.spec.sources.len() => Ok(sync.revisions.iter().map(String::as_str).collect()),
        // A guess at which revision belongs to which source may name the wrong commit.
        _ => Err(not_yet(Reason::RevisionsMisaligned, None)),
    }
}

/// Whether the comparison read another repository than the source names now.
fn compared_elsewhere(view: &View, position: usize) -> bool {
    let compared_to = &view.status.sync.compared_to;
    let before = if is_multi_source(view) { compared_to.sources.get(position) } else { compared_to.source.as_ref() };
    let before = before.map(|source| source.repo_url.as_str()).unwrap_or_default();
    let now = sources(view, false);
    !before.is_empty() && now.get(position).is_some_and(|source| !same_repository(before, &source.repo_url))
}

/// Whether the dry commit was hydrated and what came of it was compared. Nothing to hydrate moves only
/// `lastComparedDryRevision`: the hydrated commit is then still the one of the last hydration
/// (argo-cd v3.5.1 controller/hydrator/hydrator.go).
fn hydrated(view: &View, wanted: &Wanted) -> Result<Found, Stop> {
    let status = &view.status.source_hydrator;
    let accepts = |sha: &Option<String>| sha.as_deref().and_then(|sha| wanted.accepts(sha));
    let current = status.current_operation.as_ref();
    let current_is_ours = current.is_some_and(|operation| accepts(&operation.dry_sha).is_some());
    match current.map(|operation| operation.phase.as_str()) {
        Some("Failed") if current_is_ours => return Err(never(Reason::HydrationFailed, None)),
        Some("Hydrating") if current_is_ours => return Err(not_yet(Reason::Hydrating, None)),
        _ => {}
    }
    let last = status.last_successful_operation.as_ref();
    let by = last.and_then(|operation| accepts(&operation.dry_sha));
    let Some(by) = by.or_else(|| accepts(&status.last_compared_dry_revision)) else {
        return Err(not_yet(if last.is_none() { Reason::NeverCompared } else { Reason::OtherRevision }, None));
    };
    let made = last.and_then(|operation| operation.hydrated_sha.as_deref()).unwrap_or_default();
    let compared = view.status.sync.revision.as_deref().unwrap_or_default();
    if same_commit(made, compared) {
        Ok(Found { revision: compared.to_owned(), by, source: 0 })
    } else {
        Err(not_yet(Reason::HydratedNotCompared, None))
    }
}

/// The revision that an operation applied, or was asked to, for one source.
fn operation_revision<'a>(view: &View, state: &'a OperationState, position: usize) -> Option<&'a str> {
    let asked = &state.operation.sync;
    let pick = |one: &'a Option<String>, many: &'a [String]| {
        if is_multi_source(view) { many.get(position).map(String::as_str) } else { one.as_deref() }
            .filter(|revision| !revision.is_empty())
    };
    state
        .sync_result
        .as_ref()
        .and_then(|result| pick(&result.revision, &result.revisions))
        .or_else(|| pick(&asked.revision, &asked.revisions))
}

/// Whether the last operation was on the commit, is over for good, and ended badly. One that was asked for since then
/// takes its place.
fn failed_on(view: &View, wanted: &Wanted, found: Option<&Found>) -> bool {
    let Some(state) = &view.status.operation_state else { return false };
    if view.operation.is_some() || state.operation.sync.dry_run || !matches!(&*state.phase, "Failed" | "Error") {
        return false;
    }
    match found {
        Some(found) => {
            operation_revision(view, state, found.source).is_some_and(|revision| same_commit(revision, &found.revision))
        }
        // A dry commit is never what an operation is on.
        None if wanted.dry => false,
        None => wanted.sources(view).unwrap_or_default().into_iter().any(|position| {
            operation_revision(view, state, position).is_some_and(|revision| wanted.accepts(revision).is_some())
        }),
    }
}

/// How the commit got into the cluster, or which operation is still at work.
fn operation(view: &View, found: &Found) -> Result<Reason, Reason> {
    let requested = view.operation.is_some();
    // While a sync starts, the state is nulled.
    let Some(state) = &view.status.operation_state else {
        return if requested { Err(Reason::OperationPending) } else { Ok(Reason::NoOperationNeeded) };
    };
    let revision = operation_revision(view, state, found.source);
    let ours = revision.is_some_and(|revision| same_commit(revision, &found.revision));
    match state.phase.as_str() {
        "Succeeded" | "Failed" | "Error" if requested => Err(Reason::OperationPending),
        "Succeeded" if ours && !state.operation.sync.dry_run => Ok(Reason::OperationSucceeded),
        "Succeeded" | "Failed" | "Error" => Ok(Reason::NoOperationNeeded),
        // What it is on may be a name, or not be known, until its own comparison resolves it.
        _ if !ours && revision.is_some_and(is_commit) => Err(Reason::OperationOnOtherRevision),
        "Terminating" => Err(Reason::OperationTerminating),
        _ if state.finished_at.is_some() => Err(Reason::OperationRetrying),
        _ => Err(Reason::OperationRunning),
    }
}

#[cfg(test)]
mod tests;
