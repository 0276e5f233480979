//! Points in time as the event record holds them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

/// A point in time, in whole UNIX milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// This moment.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// The moment of so many milliseconds after 1970.
    pub fn from_ms(ms: u64) -> Self {
        Moment(ms)
    }

    /// UNIX milliseconds.
    pub fn ms(self) -> u64 {
        self.0
    }

    /// Whole UNIX seconds of the same instant.
    pub fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// Sets `<name>_at` and `<name>_at_ms` in an object.
    pub fn stamp(self, object: &mut Map<String, Value>, name: &str) {
        object.insert(format!("{name}_at"), json!(self.seconds()));
        object.insert(format!("{name}_at_ms"), json!(self.ms()));
    }
}
