//! What the user asked for, as the decisions need it.

use std::time::Duration;

use clap::ValueEnum;
use kit::moment::Moment;

use crate::{clock::At, condition::Level, effect::Push, wanted::Wanted};

/// The rules of one run; the same for each Application.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The commit.
    pub wanted: Wanted,
    /// How far it has to be.
    pub level: Level,
    /// When the wait began: once the commit was known.
    pub start: At,
    /// Look once and do not wait.
    pub once: bool,
    /// Prove that the Application stays where it is for so long, instead of waiting.
    pub hold: Option<Duration>,
    /// The level has to last so long.
    pub stable: Option<Duration>,
    /// How long an error condition has to last before it ends the wait.
    pub error_grace: Duration,
    /// Degraded at the commit ends the wait.
    pub fail_on_degraded: bool,
    /// A refresh ends the wait.
    pub forbid_refresh: bool,
    /// A comparison older than this should have been repeated.
    pub stale_after: Duration,
    /// What a push without effect means.
    pub no_effect: NoEffect,
    /// The files of the push, where the record knows all of them.
    pub push: Option<Push>,
    /// When the commit was pushed, if the record says so.
    pub pushed_at: Option<Moment>,
    /// When git began to push: what happens from then on may be because of the push, before git reports that it is done.
    pub push_began: Option<Moment>,
    /// When the event was sent, if the record says so.
    pub sent_at: Option<Moment>,
    /// The event was not accepted.
    pub event_refused: bool,
}

/// What it means that a push touched none of the paths of a path-filtered Application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NoEffect {
    /// The commit will not be shown: exit code 1 at once
    #[default]
    Fail,
    /// There is nothing to deploy: exit code 0 at once
    Ok,
    /// A later poll may show it: wait all the same
    Wait,
}

impl Rules {
    /// Whether something seen then belongs to this wait, and not to what was before the push.
    pub fn concerns(&self, at: At) -> bool {
        self.push_began.is_none_or(|began| at.wall >= began)
    }
}
