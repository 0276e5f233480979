//! The time that a job may take.

use std::time::{Duration, Instant};

use kit::duration;

/// The time that is left for everything.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    started: Instant,
    limit: Duration,
}

impl Deadline {
    /// So much time from now on.
    pub fn new(limit: Duration) -> Self {
        Deadline { started: Instant::now(), limit }
    }

    /// What remains; nothing once it has passed.
    pub fn left(self) -> Duration {
        self.limit.saturating_sub(self.started.elapsed())
    }

    /// Elapsed and remaining time, for the status line.
    pub fn time(self) -> String {
        format!("{} elapsed, {} left", duration::go(self.started.elapsed()), duration::go(self.left()))
    }
}
