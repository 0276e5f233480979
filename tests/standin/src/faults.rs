//! What goes wrong on request; a test may switch it at any time.

use std::sync::Mutex;

/// The faults that are on.
#[derive(Default)]
pub struct Faults {
    clock_skew_seconds: Mutex<i64>,
}

impl Faults {
    /// The controller's clock is so many seconds ahead of everybody else's (behind, when negative).
    pub fn skew_clock(&self, seconds: i64) {
        *self.clock_skew_seconds.lock().expect("no thread panics while it holds a fault") = seconds;
    }

    /// What [`Faults::skew_clock`] was last given; 0 at first.
    pub fn clock_skew_seconds(&self) -> i64 {
        *self.clock_skew_seconds.lock().expect("no thread panics while it holds a fault")
    }
}
