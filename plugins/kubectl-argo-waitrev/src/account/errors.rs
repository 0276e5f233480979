//! Error conditions, and how long they last.

use super::Account;
use crate::{
    clock::At,
    condition::{Judgement, Reason},
    rules::Rules,
    view::View,
};

impl Account {
    /// Counts how long an error condition lasts. One from before the push says nothing about the commit, unless it is
    /// about the spec, which no push repairs.
    pub(super) fn note_error(&mut self, view: &View, at: At, judgement: &Judgement, rules: &Rules) {
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
}
