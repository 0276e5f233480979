//! The account of one Application: what it was seen to do, and what follows from that.
//!
//! Pure: it is fed with versions of the object and the times at which they arrived, and never looks at a clock.

use std::time::Duration;

use kit::{application::AppName, exit::Exit};

use crate::{
    clock::At,
    condition::{Found, Judgement, Reason, Verdict, judge},
    outcome::{End, Outcome},
    revision::{is_commit, same_commit, short},
    rules::{NoEffect, Rules},
    trace::Trace,
    view::View,
    wanted::{Match, is_multi_source},
};

/// How a version of the object came to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was there when the watch began.
    FirstLook,
    /// The watch told of it; nothing lies between it and the version before.
    Change,
    /// It was found by looking again: there may have been others in between.
    LookAgain,
}

/// The account of one Application.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its name.
    pub name: AppName,
    /// The version seen last; after the end, the one that decided.
    pub view: Option<View>,
    /// The revision at the first look.
    pub revision_before: Option<String>,
    /// What the last version says.
    pub judgement: Option<Judgement>,
    /// Since when the level has held without a break, and whether it held at the first look already.
    pub met: Option<Met>,
    /// How often the level held and then did not.
    pub flips: u32,
    /// A refresh was requested during the wait.
    pub refresh_requested: bool,
    /// What happened after the push.
    pub trace: Trace,
    /// How it ended, and when.
    pub end: Option<(End, At)>,
    begun: bool,
    /// Where it stood when the hold began.
    baseline: Option<Baseline>,
    /// The error condition, since when.
    error: Option<(String, At)>,
    /// The version whose error condition came before the push, and says nothing about the commit.
    old_error: bool,
    first_reconciled_ms: Option<i64>,
}

/// Since when the level has held.
#[derive(Clone, Debug, PartialEq)]
pub struct Met {
    /// The first version that met it.
    pub at: At,
    /// The revision that counts as the commit.
    pub found: Found,
    /// It was met at the first look.
    pub at_first_look: bool,
}

#[derive(Clone, Debug)]
struct Baseline {
    at: At,
    revision: String,
    history_id: Option<i64>,
}

impl Account {
    /// An account of an Application that was not seen yet.
    pub fn new(name: AppName) -> Self {
        Account {
            name,
            view: None,
            revision_before: None,
            judgement: None,
            met: None,
            flips: 0,
            refresh_requested: false,
            trace: Trace::default(),
            end: None,
            begun: false,
            baseline: None,
            error: None,
            old_error: false,
            first_reconciled_ms: None,
        }
    }

    /// Takes in a version of the object.
    pub fn see(&mut self, view: View, at: At, cause: Cause, rules: &Rules) {
        self.tick(at, rules);
        if cause == Cause::Change {
            // The watch tells of everything in order: until now nothing had happened.
            self.prove(at, rules);
        }
        if self.end.is_some() {
            return;
        }
        if self.view.as_ref().is_some_and(|before| before.metadata.uid != view.metadata.uid) {
            return self.gone(at, rules);
        }
        let judgement = judge(&view, &rules.wanted, rules.level, rules.fail_on_degraded);
        let refreshed = view.refresh().is_some() || self.view.as_ref().is_some_and(|view| view.refresh().is_some());
        self.refresh_requested |= refreshed && rules.concerns(at);
        self.trace.note(self.view.as_ref(), &view, at, cause, rules);
        self.note_error(&view, at, &judgement, rules);
        if self.view.is_none() {
            self.revision_before = Some(shown_revision(&view, rules)).filter(|revision| !revision.is_empty());
            self.first_reconciled_ms = view.reconciled_at_ms();
        }
        let there_and_back = cause == Cause::LookAgain && self.synced_in_between(&view);
        let before = self.view.replace(view);
        match judgement.verdict {
            Verdict::Reached => {
                if there_and_back && self.met.take().is_some() {
                    self.flips += 1;
                }
                if let (None, Some(found)) = (&self.met, &judgement.found) {
                    let at_first_look = cause == Cause::FirstLook;
                    self.met = Some(Met { at, found: found.clone(), at_first_look });
                }
            }
            Verdict::NotYet | Verdict::Never => {
                if self.met.take().is_some() {
                    self.flips += 1;
                }
            }
        }
        self.judgement = Some(judgement);
        self.decide(at, before.as_ref(), rules);
        if cause == Cause::LookAgain {
            self.prove(at, rules);
        }
    }

    /// The Application is no longer there.
    pub fn gone(&mut self, at: At, rules: &Rules) {
        self.tick(at, rules);
        let message = format!("Application {} was deleted", self.name);
        self.finish(at, End::new(Exit::No, Outcome::Deleted, message, None));
    }

    /// Lets time pass: an error condition that lasts ends the wait.
    pub fn tick(&mut self, now: At, rules: &Rules) {
        if self.end.is_none()
            && let Some((_, since)) = &self.error
            && now.elapsed >= since.elapsed + rules.error_grace
        {
            let at = later(*since, rules.error_grace);
            self.finish_error(at);
        }
    }

    /// When [`Account::tick`] will have something to say, if nothing happens until then.
    pub fn wake(&self, rules: &Rules) -> Option<Duration> {
        let error = self.error.as_ref().filter(|_| self.end.is_none());
        error.map(|(_, since)| since.elapsed + rules.error_grace)
    }

    /// When stillness will have lasted long enough. Silence alone does not prove it: the Application has to be looked at
    /// once more then, since a connection may have died without a word.
    pub fn proof_due(&self, rules: &Rules) -> Option<Duration> {
        if self.end.is_some() {
            return None;
        }
        let hold = rules.hold.zip(self.baseline.as_ref()).map(|(hold, baseline)| baseline.at.elapsed + hold);
        let stable = rules.stable.zip(self.met.as_ref()).map(|(stable, met)| met.at.elapsed + stable);
        hold.or(stable)
    }

    /// Ends a hold or a stable stretch that lasted long enough; to be called when nothing can have happened unseen.
    fn prove(&mut self, now: At, rules: &Rules) {
        if self.proof_due(rules).is_some_and(|due| now.elapsed >= due) {
            if rules.hold.is_some() {
                self.finish(now, End::yes(Outcome::Held));
            } else {
                self.finish_met();
            }
        }
    }

    /// Begins the hold, or leaves out what the push cannot show in; to be called when the commit is known and the first
    /// look is over.
    pub fn begin(&mut self, now: At, rules: &Rules) {
        if self.end.is_some() || self.begun {
            return;
        }
        let Some(view) = &self.view else { return };
        self.begun = true;
        if rules.hold.is_some() {
            self.baseline =
                Some(Baseline { at: now, revision: shown_revision(view, rules), history_id: view.newest_history_id() });
        } else if self.met.is_none() && rules.no_effect != NoEffect::Wait && self.is_missed(rules) {
            let fails = rules.no_effect == NoEffect::Fail;
            let end = if fails { self.no_effect(Exit::No) } else { End::yes(Outcome::NoEffect) };
            self.finish(now, end);
        }
        self.tick(now, rules);
    }

    /// Ends what the deadline cut off.
    pub fn give_up(&mut self, now: At, rules: &Rules) {
        self.tick(now, rules);
        if self.end.is_none() {
            let end = self.unfinished(now, rules);
            self.finish(now, end);
        }
    }

    /// Ends with what happened outside, such as an interrupt.
    pub fn stop(&mut self, now: At, end: End) {
        self.finish(now, end);
    }

    /// What the Application is at, for people: `at 1a2b3c4d5, OutOfSync, Progressing`.
    pub fn describe(&self, rules: &Rules) -> String {
        let Some(view) = &self.view else { return "not there yet".into() };
        let revision = shown_revision(view, rules);
        let mut text = if revision.is_empty() { "never compared".into() } else { format!("at {}", short(&revision)) };
        let operation = view.status.operation_state.as_ref().map(|state| format!("operation {}", state.phase));
        let parts = [view.status.sync.status.clone(), view.status.health.status.clone()];
        for part in parts.into_iter().chain(operation).filter(|part| !part.is_empty()) {
            text.push_str(", ");
            text.push_str(&part);
        }
        text
    }

    /// The revision that is compared with the commit.
    pub fn revision(&self, rules: &Rules) -> Option<String> {
        self.view.as_ref().map(|view| shown_revision(view, rules)).filter(|revision| !revision.is_empty())
    }

    fn decide(&mut self, at: At, before: Option<&View>, rules: &Rules) {
        if rules.forbid_refresh && self.refresh_requested {
            let message = format!("a refresh of {} was requested: this does not measure polling", self.name);
            let hint = "leave the Application alone meanwhile: no webhook, no `argocd app get --refresh`, no UI";
            return self.finish(at, End::new(Exit::No, Outcome::Refreshed, message, Some(hint.into())));
        }
        if rules.hold.is_some() {
            return self.decide_hold(at, before, rules);
        }
        match &self.judgement {
            Some(Judgement { verdict: Verdict::Reached, .. }) if rules.stable.is_none() => self.finish_met(),
            Some(Judgement { verdict: Verdict::Never, reason, .. }) => {
                let end = self.never(*reason);
                self.finish(at, end);
            }
            _ if rules.error_grace.is_zero() => self.tick(at, rules),
            _ => {}
        }
    }

    /// During a hold the commit, or any other commit than the one it was at, is a move.
    fn decide_hold(&mut self, at: At, before: Option<&View>, rules: &Rules) {
        let (Some(view), Some(judgement)) = (&self.view, &self.judgement) else { return };
        if let Some(met) = &self.met {
            let outcome = if met.at_first_look { Outcome::Already } else { Outcome::Moved };
            let verb = if met.at_first_look { "was already at" } else { "came to" };
            let message = format!("{} {verb} {}", self.name, short(&met.found.revision));
            return self.finish(at, End::new(Exit::No, outcome, message, None));
        }
        if judgement.reason == Reason::BeingDeleted {
            return self.gone(at, rules);
        }
        let since = self
            .baseline
            .as_ref()
            .map_or_else(|| before.and_then(View::newest_history_id), |baseline| baseline.history_id);
        let visited =
            view.status.history.iter().filter(|entry| before.is_some() && Some(entry.id) > since).find(|entry| {
                entry.revision.iter().chain(&entry.revisions).any(|revision| rules.wanted.accepts(revision).is_some())
            });
        if visited.is_some() {
            let message = format!("{} was at the commit and left it again: its history shows it", self.name);
            return self.finish(at, End::new(Exit::No, Outcome::Moved, message, None));
        }
        let Some(baseline) = &self.baseline else { return };
        let now = shown_revision(view, rules);
        let moved = !baseline.revision.is_empty()
            && is_commit(&now)
            && !same_commit(&now, &baseline.revision)
            && is_commit(&baseline.revision);
        if moved {
            let message = format!("{} moved from {} to {}", self.name, short(&baseline.revision), short(&now));
            self.finish(at, End::new(Exit::No, Outcome::Moved, message, None));
        }
    }

    fn finish_met(&mut self) {
        let Some(met) = &self.met else { return };
        let outcome = match met.found.by {
            Match::Newer => Outcome::Superseded,
            Match::Exact if met.at_first_look => Outcome::Already,
            Match::Exact => Outcome::Reached,
        };
        let at = met.at;
        self.finish(at, End::yes(outcome));
    }

    fn finish_error(&mut self, at: At) {
        let Some((text, _)) = &self.error else { return };
        let message = format!("{} cannot be compared: {text}", self.name);
        let hint = "repair the Application or the commit; --error-grace waits longer for it to pass";
        self.finish(at, End::new(Exit::No, Outcome::Error, message, Some(hint.into())));
    }

    fn finish(&mut self, at: At, end: End) {
        if self.end.is_none() {
            self.end = Some((end, at));
        }
    }

    fn never(&self, reason: Reason) -> End {
        let state = self.view.as_ref().and_then(|view| view.status.operation_state.as_ref());
        let name = &self.name;
        match reason {
            Reason::BeingDeleted => {
                End::new(Exit::No, Outcome::Deleted, format!("Application {name} is being deleted"), None)
            }
            Reason::OperationFailed => {
                let phase = state.map_or("Failed", |state| state.phase.as_str());
                let message = state.map_or("", |state| state.message.as_str());
                let message = format!("the operation of {name} on the commit ended with {phase}: {message}");
                let hint = "Argo CD does not repeat it by itself until the revision or the source changes";
                End::new(Exit::No, Outcome::OperationFailed, message, Some(hint.into()))
            }
            Reason::HydrationFailed => {
                let hydration = self.view.as_ref().and_then(|v| v.status.source_hydrator.current_operation.as_ref());
                let why = hydration.map_or("", |hydration| hydration.message.as_str());
                let message = format!("hydrating the commit for {name} failed: {why}");
                End::new(Exit::No, Outcome::HydrationFailed, message, None)
            }
            _ => End::new(Exit::No, Outcome::Degraded, format!("{name} is Degraded at the commit"), None),
        }
    }

    /// Whether the push touched nothing that the Application is generated from.
    fn is_missed(&self, rules: &Rules) -> bool {
        let push = rules.push.as_ref().zip(self.view.as_ref());
        push.is_some_and(|(push, view)| push.misses(view, &rules.wanted))
    }

    fn no_effect(&self, exit: Exit) -> End {
        let message = format!("the push touched none of the paths that {} is generated from", self.name);
        let hint =
            "its revision moves with the next comparison for another reason; --no-effect ok or wait says what it means";
        End::new(exit, Outcome::NoEffect, message, Some(hint.into()))
    }

    /// What it means that the time is up.
    fn unfinished(&self, now: At, rules: &Rules) -> End {
        let name = &self.name;
        let state = self.describe(rules);
        let wanted = short(&rules.wanted.commit);
        if rules.once {
            let message = format!("{name} is not at {wanted}: {state}");
            return End::new(Exit::No, Outcome::NotAtRevision, message, None);
        }
        let message = |why: &str| format!("{name} did not get to {wanted} in time: {state}{why}");
        let Some(view) = &self.view else {
            return End::new(Exit::Deadline, Outcome::Deadline, message(""), None);
        };
        let revision = shown_revision(view, rules);
        let moved = self.revision_before.as_deref().is_some_and(|before| !same_commit(before, &revision));
        if moved && is_commit(&revision) && rules.wanted.accepts(&revision).is_none() {
            let hint = "--git-dir DIR tells whether that commit contains the one waited for";
            return End::new(Exit::Deadline, Outcome::Moved, message("; it moved on"), Some(hint.into()));
        }
        if self.is_missed(rules) {
            return self.no_effect(Exit::Deadline);
        }
        if self.trace.is_lost() {
            let hint = "send the event again: the running comparison of somebody else may have taken the request away";
            let why = "; a refresh was cleared and the revision did not move";
            return End::new(Exit::Deadline, Outcome::Lost, message(why), Some(hint.into()));
        }
        if let Some((why, hint)) = self.stale(view, now, rules) {
            return End::new(Exit::Deadline, Outcome::Stale, message(why), Some(hint.into()));
        }
        let (why, hint) = self.held_up(view);
        End::new(Exit::Deadline, Outcome::Deadline, message(&why), hint)
    }

    /// Whether it should have been compared meanwhile and was not.
    fn stale(&self, view: &View, now: At, rules: &Rules) -> Option<(&'static str, &'static str)> {
        let reconciled = view.reconciled_at_ms();
        if reconciled != self.first_reconciled_ms {
            return None;
        }
        if view
            .metadata
            .annotations
            .skip_reconcile
            .as_deref()
            .is_some_and(|text| matches!(text, "true" | "True" | "TRUE" | "t" | "T" | "1"))
        {
            return Some((
                "; it was not compared",
                "its annotation argocd.argoproj.io/skip-reconcile stops the controller",
            ));
        }
        if view.refresh().is_some() {
            return Some((
                "; a refresh is requested and was not taken up",
                "is the application controller running, and does it serve this namespace and cluster?",
            ));
        }
        let age_ms = i128::from(now.wall.ms()) - i128::from(reconciled?);
        (age_ms >= i128::try_from(rules.stale_after.as_millis()).unwrap_or(i128::MAX)).then_some((
            "; it was not compared for longer than polling allows",
            "is polling off (`kubectl argo-resync`), or the controller down? --stale-after sets the limit",
        ))
    }

    /// What is known about why it is not there.
    fn held_up(&self, view: &View) -> (String, Option<String>) {
        let condition = view.error_condition().map(|condition| format!("; {}: {}", condition.kind, condition.message));
        if self.met.is_some() {
            let why = "; it is there, but has not been for long enough".into();
            return (why, Some("a shorter --stable or a longer --timeout".into()));
        }
        match self.judgement.as_ref().map(|judgement| judgement.reason) {
            Some(Reason::OutOfSync) if !view.auto_sync() => (
                "; it is OutOfSync and auto-sync is off".into(),
                Some("`argocd app sync` it, or wait --until compared".into()),
            ),
            Some(Reason::OutOfSync) => (
                "; it is OutOfSync and no operation is running".into(),
                Some(
                    "a closed sync window, a failed sync of the same commit or prune-only changes hold auto-sync back"
                        .into(),
                ),
            ),
            Some(Reason::OperationOnOtherRevision) => (
                "; an operation on another commit is still running".into(),
                Some("`argocd app terminate-op` ends it".into()),
            ),
            Some(Reason::OtherRevision) if view.spec.source_hydrator.is_some() => {
                (String::new(), Some("its source is hydrated: --dry compares the dry commit".into()))
            }
            _ => (condition.unwrap_or_default(), None),
        }
    }

    /// Counts how long an error condition lasts. One from before the push says nothing about the commit, unless it is
    /// about the spec, which no push repairs.
    fn note_error(&mut self, view: &View, at: At, judgement: &Judgement, rules: &Rules) {
        let condition =
            view.error_condition().filter(|_| judgement.reason == Reason::ErrorCondition && rules.hold.is_none());
        let Some(condition) = condition else {
            self.error = None;
            self.old_error = false;
            return;
        };
        let same_as_before = self.view.as_ref().is_some_and(|before| {
            before.status.conditions == view.status.conditions
                && before.status.reconciled_at == view.status.reconciled_at
        });
        let known_before_push = self.view.is_none() || !rules.concerns(at) || (same_as_before && self.old_error);
        let compared_before_push = rules.pushed_at.is_some_and(|pushed| {
            view.reconciled_at_ms().is_none_or(|ms| ms / 1000 <= i64::try_from(pushed.seconds()).unwrap_or(i64::MAX))
        });
        self.old_error = condition.kind == "ComparisonError" && known_before_push && compared_before_push;
        let text = format!("{}: {}", condition.kind, condition.message);
        match &mut self.error {
            _ if self.old_error => self.error = None,
            Some((known, _)) => *known = text,
            None => self.error = Some((text, at)),
        }
    }

    /// Whether syncs happened between the version seen last and this one.
    fn synced_in_between(&self, view: &View) -> bool {
        self.view.as_ref().is_some_and(|before| {
            before.newest_history_id() != view.newest_history_id()
                || before.status.operation_state.as_ref().map(|state| &state.started_at)
                    != view.status.operation_state.as_ref().map(|state| &state.started_at)
        })
    }
}

/// The revision of the source that is looked at: the one that is the commit, else the first that could be.
pub fn shown_revision(view: &View, rules: &Rules) -> String {
    let wanted = &rules.wanted;
    if wanted.dry {
        let status = &view.status.source_hydrator;
        let last = status.last_successful_operation.as_ref().and_then(|operation| operation.dry_sha.clone());
        let compared = status.last_compared_dry_revision.clone().filter(|sha| wanted.accepts(sha).is_some());
        return compared.or(last).unwrap_or_default();
    }
    let sync = &view.status.sync;
    if !is_multi_source(view) {
        return sync.revision.clone().unwrap_or_default();
    }
    let positions = wanted.sources(view).unwrap_or_default();
    let mut revisions = positions.iter().filter_map(|position| sync.revisions.get(*position));
    let first = revisions.clone().next();
    revisions.find(|revision| wanted.accepts(revision).is_some()).or(first).cloned().unwrap_or_default()
}

/// A moment so much later, on both clocks.
fn later(at: At, by: Duration) -> At {
    let ms = at.wall.ms().saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
    At { elapsed: at.elapsed + by, wall: kit::moment::Moment::from_ms(ms) }
}

#[cfg(test)]
mod tests;
