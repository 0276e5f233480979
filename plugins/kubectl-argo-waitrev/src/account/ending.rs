//! What an end means that is not a yes, and what to try.

use kit::exit::Exit;

use super::Account;
use crate::{
    clock::At,
    condition::Reason,
    outcome::{End, Outcome},
    revision::{is_commit, same_commit, short},
    rules::Rules,
    view::View,
};

impl Account {
    pub(super) fn never(&self, reason: Reason) -> End {
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
    pub(super) fn is_missed(&self, rules: &Rules) -> bool {
        let push = rules.push.as_ref().zip(self.view.as_ref());
        push.is_some_and(|(push, view)| push.misses(view, &rules.wanted))
    }

    pub(super) fn no_effect(&self, exit: Exit) -> End {
        let message = format!("the push touched none of the paths that {} is generated from", self.name);
        let hint =
            "its revision moves with the next comparison for another reason; --no-effect ok or wait says what it means";
        End::new(exit, Outcome::NoEffect, message, Some(hint.into()))
    }

    /// What it means that the time is up.
    pub(super) fn unfinished(&self, now: At, rules: &Rules) -> End {
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
        let revision = rules.wanted.shown(view);
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
        if view.metadata.annotations.skip_reconcile.as_deref().is_some_and(kit::application::is_true) {
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
}
