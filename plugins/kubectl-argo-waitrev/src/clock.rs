//! Points in time as the wait needs them.

use std::time::Duration;

use kit::moment::Moment;

/// A point in time, on two clocks: a jump of the wall clock neither shortens nor stretches the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Since the command began, on the monotonic clock.
    pub elapsed: Duration,
    /// For people and for the record.
    pub wall: Moment,
}

impl At {
    /// A point in time so much later, on both clocks.
    pub fn later(self, by: Duration) -> At {
        let ms = self.wall.ms().saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
        At { elapsed: self.elapsed + by, wall: Moment::from_ms(ms) }
    }
}

/// Tells the time.
#[derive(Clone, Copy, Debug)]
pub struct Clock(tokio::time::Instant);

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Clock(tokio::time::Instant::now())
    }

    /// Now.
    pub fn now(self) -> At {
        At { elapsed: self.0.elapsed(), wall: Moment::now() }
    }

    /// The instant at which so much time will have elapsed.
    pub fn at(self, elapsed: Duration) -> tokio::time::Instant {
        // Some weeks are as good as never, and cannot overflow.
        self.0 + elapsed.min(Duration::from_secs(10_000_000))
    }
}
