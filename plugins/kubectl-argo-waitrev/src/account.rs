//! The account of one Application: what it was seen to do, and what follows from that.
//!
//! Pure: it is fed with versions of the object and the times at which they arrived, and never looks at a clock.

use std::time::Duration;

use kit::{application::AppName, exit::Exit};

use crate::{
    clock::At,
    condition::{Found, Judgement, Verdict, judge},
    outcome::{End, Outcome},
    revision::short,
    rules::{NoEffect, Rules},
    trace::Trace,
    view::View,
    wanted::Match,
};

mod ending;
mod errors;
mod still;
#[cfg(test)]
mod tests;

/// How a version of the object came to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was there when the watch began.
    FirstLook,
    /// The watch told of it; nothing lies between it and the version before.
    Change,
    /// It was found by looking again: there may have been others in between.
    LookAgain {
        /// When that was asked for: the answer is at least as new.
        asked: Duration,
    },
}

/// The account of one Application.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its name.
    pub name: AppName,
    /// The version seen last; after the end, the one that decided.
    pub view: Option<Box<View>>,
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
    pub fn see(&mut self, view: Box<View>, at: At, cause: Cause, rules: &Rules) {
        self.tick(at, rules);
        if self.end.is_some() {
            return;
        }
        if self.view.as_ref().is_some_and(|before| before.metadata.uid != view.metadata.uid) {
            return self.gone(at, rules);
        }
        let judgement = judge(&view, &rules.wanted, rules.level, rules.fail_on_degraded);
        let refreshed = view.refresh().is_some() || self.view.as_ref().is_some_and(|view| view.refresh().is_some());
        self.refresh_requested |= refreshed && rules.concerns(at);
        self.trace.note(self.view.as_deref(), &view, at, cause, rules);
        self.note_error(&view, at, &judgement, rules);
        if self.view.is_none() {
            self.revision_before = Some(rules.wanted.shown(&view)).filter(|revision| !revision.is_empty());
            self.first_reconciled_ms = view.reconciled_at_ms();
        }
        let there_and_back = matches!(cause, Cause::LookAgain { .. }) && self.synced_in_between(&view);
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
        self.decide(at, before.as_deref(), rules);
        if let Some(view) = &mut self.view {
            view.forget_history();
        }
        if let Cause::LookAgain { asked } = cause {
            self.prove(asked, at, rules);
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
            let at = since.later(rules.error_grace);
            self.finish_error(at);
        }
    }

    /// When [`Account::tick`] will have something to say, if nothing happens until then.
    pub fn wake(&self, rules: &Rules) -> Option<Duration> {
        let error = self.error.as_ref().filter(|_| self.end.is_none());
        error.map(|(_, since)| since.elapsed + rules.error_grace)
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
                Some(Baseline { at: now, revision: rules.wanted.shown(view), history_id: view.newest_history_id() });
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
        let revision = rules.wanted.shown(view);
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
        self.view.as_ref().map(|view| rules.wanted.shown(view)).filter(|revision| !revision.is_empty())
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
}
