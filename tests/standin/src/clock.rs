//! Times as Kubernetes and Argo CD write them.

use std::time::SystemTime;

use jiff::Timestamp;

/// Whole seconds, UTC: `2026-08-12T09:30:00Z`.
pub fn rfc3339(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
