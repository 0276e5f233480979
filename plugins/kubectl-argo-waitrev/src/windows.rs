//! Sync windows: whether auto-sync is held back until the deadline. Pure.
//!
//! The rules are those of argo-cd v3.5.1 pkg/apis/application/v1alpha1/types.go (`SyncWindows.CanSync`): an open deny
//! window forbids, else an open allow window permits, else the existence of an allow window forbids.

use std::time::Duration;

use jiff::{Timestamp, Zoned, tz::TimeZone};
use serde::Deserialize;

use crate::view::View;

/// How far ahead is looked, at most.
const HORIZON_MINUTES: u64 = 24 * 60;

/// The part of an AppProject that matters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Project {
    spec: ProjectSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ProjectSpec {
    sync_windows: Option<Vec<Window>>,
}

/// One window.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Window {
    kind: String,
    schedule: String,
    duration: String,
    time_zone: String,
    applications: Option<Vec<String>>,
    namespaces: Option<Vec<String>>,
    clusters: Option<Vec<String>>,
}

impl Project {
    /// Whether auto-sync of an Application is forbidden from `now` on for so long. A window that cannot be read says
    /// nothing.
    pub fn is_closed(&self, view: &View, now_ms: u64, length: Duration) -> bool {
        let windows = self.spec.sync_windows.iter().flatten().filter(|window| window.concerns(view));
        let windows: Vec<(bool, Opening)> =
            windows.filter_map(|window| Some((window.kind == "deny", window.opening()?))).collect();
        let Ok(now) = Timestamp::from_millisecond(now_ms.cast_signed()) else { return false };
        let minutes = (length.as_secs() / 60).min(HORIZON_MINUTES);
        !windows.is_empty()
            && (0..=minutes).all(|minute| {
                let at = now + Duration::from_secs(minute * 60);
                let open = |deny: bool| windows.iter().any(|(kind, window)| *kind == deny && window.is_open(at));
                open(true) || (!open(false) && windows.iter().any(|(deny, _)| !deny))
            })
    }
}

impl Window {
    fn concerns(&self, view: &View) -> bool {
        let fits = |patterns: &Option<Vec<String>>, text: &str| {
            !text.is_empty() && patterns.iter().flatten().any(|pattern| glob(pattern.as_bytes(), text.as_bytes()))
        };
        let destination = &view.spec.destination;
        fits(&self.applications, &view.metadata.name)
            || fits(&self.clusters, &destination.name)
            || fits(&self.clusters, &destination.server)
            || fits(&self.namespaces, &destination.namespace)
    }

    fn opening(&self) -> Option<Opening> {
        let zone = if self.time_zone.is_empty() { TimeZone::UTC } else { TimeZone::get(&self.time_zone).ok()? };
        let duration = kit::duration::parse(&self.duration).ok()?;
        Some(Opening { schedule: Schedule::parse(&self.schedule)?, zone, minutes: duration.as_secs().div_ceil(60) })
    }
}

/// When a window is open.
struct Opening {
    schedule: Schedule,
    zone: TimeZone,
    minutes: u64,
}

impl Opening {
    /// Whether it opened so lately that it is open still.
    fn is_open(&self, at: Timestamp) -> bool {
        (0..self.minutes.min(366 * HORIZON_MINUTES)).any(|minute| {
            let start = at.checked_sub(Duration::from_secs(minute * 60));
            start.is_ok_and(|start| self.schedule.fits(&start.to_zoned(self.zone.clone())))
        })
    }
}

/// The five fields of cron: a bit for each value.
struct Schedule {
    minute: u64,
    hour: u64,
    day: u64,
    month: u64,
    weekday: u64,
    /// Day of the month and day of the week are alternatives where both are given.
    any_day: bool,
}

impl Schedule {
    fn parse(text: &str) -> Option<Schedule> {
        const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
        const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else { return None };
        Some(Schedule {
            minute: field(minute, 0, 59, &[])?,
            hour: field(hour, 0, 23, &[])?,
            day: field(day, 1, 31, &[])?,
            month: field(month, 1, 12, &MONTHS)?,
            weekday: field(weekday, 0, 6, &DAYS)?,
            any_day: !day.starts_with(['*', '?']) && !weekday.starts_with(['*', '?']),
        })
    }

    fn fits(&self, at: &Zoned) -> bool {
        let has = |bits: u64, value: i8| bits >> value & 1 == 1;
        let day = has(self.day, at.day());
        let weekday = has(self.weekday, at.weekday().to_sunday_zero_offset());
        has(self.minute, at.minute())
            && has(self.hour, at.hour())
            && has(self.month, at.month())
            && if self.any_day { day || weekday } else { day && weekday }
    }
}

/// One field: lists of values, ranges and steps.
fn field(text: &str, first: u64, last: u64, names: &[&str]) -> Option<u64> {
    let value = |text: &str| {
        let name = names.iter().zip(first..).find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, value)| value);
        name.or_else(|| text.parse().ok()).filter(|value| (first..=last).contains(value))
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step = step.map_or(Some(1), |step| step.parse().ok())?;
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (first, last),
            Some((from, to)) => (value(from)?, value(to)?),
            None => (value(range)?, if part.contains('/') { last } else { value(range)? }),
        };
        if step == 0 || from > to {
            return None;
        }
        bits |= (from..=to).step_by(step).fold(0, |bits, value| bits | 1 << value);
    }
    Some(bits)
}

/// `*` is any text, `?` any byte.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|skipped| glob(rest, &text[skipped..])),
        ([b'?', pattern @ ..], [_, text @ ..]) => glob(pattern, text),
        ([one, pattern @ ..], [other, text @ ..]) if one == other => glob(pattern, text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Friday, 2026-08-14T12:00:00Z.
    const NOON_MS: u64 = 1_786_708_800_000;

    fn closed(windows: &serde_json::Value, minutes: u64) -> bool {
        let project: Project = serde_json::from_value(json!({"spec": {"syncWindows": windows}})).unwrap();
        let view = serde_json::from_value(json!({
            "metadata": {"name": "evt"},
            "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
        }));
        project.is_closed(&view.unwrap(), NOON_MS, Duration::from_secs(minutes * 60))
    }

    fn window(kind: &str, schedule: &str, duration: &str) -> serde_json::Value {
        json!({"kind": kind, "schedule": schedule, "duration": duration, "applications": ["*"]})
    }

    #[test]
    fn windows_close_as_they_do_in_argo_cd() {
        for (windows, minutes, is_closed) in [
            (json!(null), 5, false),
            (json!([]), 5, false),
            (json!([window("deny", "0 12 * * *", "1h")]), 5, true),
            (json!([window("deny", "0 12 * * *", "1h")]), 70, false),
            (json!([window("deny", "0 11 * * *", "30m")]), 5, false),
            (json!([window("deny", "* * * * *", "1h")]), 600, true),
            (json!([window("allow", "0 22 * * *", "1h")]), 5, true),
            (json!([window("allow", "0 12 * * *", "1h")]), 5, false),
            (json!([window("allow", "3 12 * * *", "1h")]), 5, false),
            (json!([window("allow", "0 12 * * *", "1h"), window("deny", "0 12 * * *", "1h")]), 5, true),
            (json!([window("deny", "0 12 * * fri", "1h")]), 5, true),
            (json!([window("deny", "0 12 * * 1-4", "1h")]), 5, false),
            (json!([window("deny", "0 12 1 * fri", "1h")]), 5, true),
            (json!([window("deny", "*/15 8-12 * aug *", "16m")]), 5, true),
            (json!([window("deny", "not cron at all", "1h")]), 5, false),
            (json!([window("deny", "0 12 * * *", "an hour")]), 5, false),
            (json!([{"kind": "deny", "schedule": "0 12 * * *", "duration": "1h", "namespaces": ["sh?p"]}]), 5, true),
            (json!([{"kind": "deny", "schedule": "0 12 * * *", "duration": "1h", "clusters": ["other"]}]), 5, false),
        ] {
            assert_eq!(closed(&windows, minutes), is_closed, "{windows} {minutes}");
        }
    }

    #[test]
    fn a_window_is_in_its_own_time_zone() {
        let mut window = window("deny", "0 14 * * *", "1h");
        assert!(!closed(&json!([window]), 5));
        window["timeZone"] = json!("Europe/Berlin");
        assert!(closed(&json!([window]), 5));
        window["timeZone"] = json!("Nowhere/At_All");
        assert!(!closed(&json!([window]), 5), "what cannot be read says nothing");
    }
}
