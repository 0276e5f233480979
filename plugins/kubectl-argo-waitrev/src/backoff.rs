//! How long to wait before asking again. Pure: chance is passed in.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(8);

/// Doubles with each failure, and is never less than what the server asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The pause after one more failure. `chance` is between 0 and 1 and takes up to half of it away, so that many
    /// clients do not come back together.
    pub fn next(&mut self, retry_after: Option<Duration>, chance: f64) -> Duration {
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST);
        self.failures += 1;
        pause.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 2.0).max(retry_after.unwrap_or_default())
    }

    /// Something worked.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_a_limit() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u128> = (0..8).map(|_| backoff.next(None, 0.0).as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
        backoff.reset();
        assert_eq!(backoff.next(None, 1.0).as_millis(), 125);
    }

    #[test]
    fn the_server_may_ask_for_more() {
        assert_eq!(Backoff::default().next(Some(Duration::from_secs(3)), 0.5), Duration::from_secs(3));
    }
}
