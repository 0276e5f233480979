//! What happened to one Application after the push, and what made its revision move. Pure.

use serde_json::{Map, Value, json};

use crate::{
    account::Cause,
    clock::At,
    condition::{Level, Verdict, judge},
    rules::Rules,
    view::View,
};

/// A request for a refresh may be seen this long before the time at which its event is said to have been sent: the two
/// times are taken on different machines.
const SKEW_MS: u64 = 1_000;

/// When each thing was first seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// A refresh was requested; of several, the last one before the revision moved.
    refresh_seen: Option<At>,
    /// The request was taken back: the comparison that it asked for is saved.
    refresh_cleared: Option<At>,
    /// It was cleared and the revision was still another one.
    lost: Option<At>,
    /// The first version at each level, in the order of the levels.
    levels: [Option<At>; 4],
    mover: Option<(Trigger, &'static str)>,
    hard: bool,
    /// Versions may have been missed.
    blind: bool,
    spec_changed: bool,
}

/// What made the revision move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The event that was sent.
    Webhook,
    /// A comparison that nobody asked for.
    Poll,
    /// Somebody else.
    Manual,
    /// It cannot be told.
    Unknown,
}

impl Trigger {
    fn word(self) -> &'static str {
        match self {
            Trigger::Webhook => "webhook",
            Trigger::Poll => "poll",
            Trigger::Manual => "manual",
            Trigger::Unknown => "unknown",
        }
    }
}

const LEVELS: [Level; 4] = [Level::Compared, Level::Synced, Level::Deployed, Level::Healthy];

impl Trace {
    /// Takes in a version of the object and the one before it.
    pub fn note(&mut self, before: Option<&View>, view: &View, at: At, cause: Cause, rules: &Rules) {
        let moved_before = self.levels[0].is_some();
        self.blind |= matches!(cause, Cause::LookAgain { .. }) && !moved_before;
        self.spec_changed |= rules.concerns(at) && before.is_some_and(|before| before.spec != view.spec);
        let was_requested = before.is_some_and(|before| before.refresh().is_some());
        if let Some(value) = view.refresh()
            && rules.concerns(at)
            && !moved_before
            && (self.refresh_seen.is_none() || !was_requested)
        {
            self.refresh_seen = Some(at);
            self.refresh_cleared = None;
            self.hard = value == "hard";
        }
        for (level, mark) in LEVELS.into_iter().zip(&mut self.levels) {
            if mark.is_none() && judge(view, &rules.wanted, level, false).verdict == Verdict::Reached {
                *mark = Some(at);
            }
        }
        let is_there = self.levels[0].is_some();
        if was_requested && view.refresh().is_none() && self.refresh_seen.is_some() && self.refresh_cleared.is_none() {
            self.refresh_cleared = Some(at);
            // A hydrated commit comes with a later refresh of its own.
            if !is_there && view.spec.source_hydrator.is_none() {
                self.lost = Some(at);
            }
        }
        if is_there && !moved_before {
            self.mover = Some(self.mover(was_requested, cause, rules));
        }
    }

    /// Whether a refresh was cleared without the revision moving to the commit.
    pub fn is_lost(&self) -> bool {
        self.lost.is_some() && self.levels[0].is_none()
    }

    fn mover(&self, was_requested: bool, cause: Cause, rules: &Rules) -> (Trigger, &'static str) {
        if cause == Cause::FirstLook {
            return (Trigger::Unknown, "it had moved before the first look");
        }
        if self.blind {
            return (Trigger::Unknown, "changes may have been missed before it moved");
        }
        if !was_requested {
            return if self.spec_changed {
                (Trigger::Manual, "its spec was changed, and no refresh was requested")
            } else {
                (Trigger::Poll, "no refresh was requested")
            };
        }
        if self.hard {
            return (Trigger::Manual, "a hard refresh was requested; a webhook asks for a normal one");
        }
        let Some(sent) = rules.sent_at else {
            return (Trigger::Unknown, "a refresh was requested, and the record has no `sent_at` that tells by whom");
        };
        let seen = self.refresh_seen.map_or(0, |at| at.wall.ms());
        if rules.event_refused {
            (Trigger::Manual, "a refresh was requested, but the event of the record was refused")
        } else if seen + SKEW_MS < sent.ms() {
            (Trigger::Manual, "the refresh was requested before the event was sent")
        } else {
            (
                Trigger::Webhook,
                "a refresh was requested after the event was sent, and its comparison moved the revision",
            )
        }
    }

    /// Adds `trace`, `trigger` and `trigger_reason`.
    pub fn add(&self, object: &mut Map<String, Value>, rules: &Rules) {
        let [moved, synced, deployed, healthy] = self.levels;
        let at = |at: Option<At>| at.map(|at| at.wall);
        let marks = [
            ("pushed_at_ms", rules.pushed_at),
            ("sent_at_ms", rules.sent_at),
            ("refresh_seen_at_ms", at(self.refresh_seen)),
            ("refresh_cleared_at_ms", at(self.refresh_cleared)),
            ("lost_at_ms", at(self.lost)),
            ("revision_moved_at_ms", at(moved)),
            ("synced_at_ms", at(synced)),
            ("deployed_at_ms", at(deployed)),
            ("healthy_at_ms", at(healthy)),
        ];
        let seen = marks.into_iter().filter_map(|(name, at)| at.map(|at| (name.to_owned(), json!(at.ms()))));
        object.insert("trace".into(), Value::Object(seen.collect()));
        if let Some((trigger, reason)) = self.mover {
            object.insert("trigger".into(), json!(trigger.word()));
            object.insert("trigger_reason".into(), json!(reason));
        }
    }
}
