//! Stillness: holds and stable stretches, and what may have happened unseen.

use std::time::Duration;

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

    /// Ends a hold or a stable stretch that lasted long enough, as a look shows that was asked for after that time. What a
    /// watch tells of is no proof: after a break it may come late.
    pub(super) fn prove(&mut self, asked: Duration, now: At, rules: &Rules) {
        if self.proof_due(rules).is_some_and(|due| asked >= due) {
            if rules.hold.is_some() {
                self.finish(now, End::yes(Outcome::Held));
            } else {
                self.finish_met();
            }
        }
    }

    /// During a hold the commit, or any other commit than the one it was at, is a move.
    pub(super) fn decide_hold(&mut self, at: At, before: Option<&View>, rules: &Rules) {
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
        let new = view.status.history.iter().filter(|entry| before.is_some() && Some(entry.id) > since);
        let mut revisions = new.flat_map(|entry| entry.revision.iter().chain(&entry.revisions));
        if revisions.any(|revision| rules.wanted.accepts(revision).is_some()) {
            let message = format!("{} was at the commit and left it again: its history shows it", self.name);
            return self.finish(at, End::new(Exit::No, Outcome::Moved, message, None));
        }
        let Some(baseline) = &self.baseline else { return };
        let now = rules.wanted.shown(view);
        if is_commit(&now) && is_commit(&baseline.revision) && !same_commit(&now, &baseline.revision) {
            let message = format!("{} moved from {} to {}", self.name, short(&baseline.revision), short(&now));
            self.finish(at, End::new(Exit::No, Outcome::Moved, message, None));
        }
    }

    /// Whether syncs happened between the version seen last and this one.
    pub(super) fn synced_in_between(&self, view: &View) -> bool {
        self.view.as_ref().is_some_and(|before| {
            before.newest_history_id() != view.newest_history_id()
                || before.status.operation_state.as_ref().map(|state| &state.started_at)
                    != view.status.operation_state.as_ref().map(|state| &state.started_at)
        })
    }
}
