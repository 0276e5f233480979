//! What each version of Argo CD makes of the two keys, and how it prints them. Pure.

use kit::version::Version;

/// The key of `argocd-cm` for the polling period.
pub const PERIOD_KEY: &str = "timeout.reconciliation";
/// The key of `argocd-cm` for the random delay that is added to each poll.
pub const JITTER_KEY: &str = "timeout.reconciliation.jitter";

/// What the repo-server takes as the age limit of its Git refs when the key is unset; it did not follow the controller
/// to 2m (argo-cd v3.5.1 manifests and cmd/argocd-repo-server).
pub const DEFAULT_REF_AGE_S: u64 = 180;
/// What Redis keeps Git refs for when the period is 0 (argo-cd v3.5.1 util/cache/cache.go).
pub const REF_AGE_OF_ZERO_S: u64 = 86_400;

/// A second in nanoseconds.
pub const NANOS: i128 = 1_000_000_000;

/// The releases whose controller drops its own timer's events (argo-cd v3.3.7 controller/appcontroller.go, reverted in
/// the next patch of each line).
const WITHOUT_POLLING: [Version; 3] = [Version(3, 1, 14), Version(3, 2, 9), Version(3, 3, 7)];

/// What a process makes of a value in its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It counts, as so many nanoseconds.
    Nanos(i64),
    /// There is none: the default counts.
    Unset,
    /// It is ignored with a warning: the default counts.
    Ignored,
    /// The process ends (`log.Fatal`), again and again.
    Fatal,
}

/// Reads a value as this version does: Go's durations, or one number and one unit of `s m h d`, or the first and then
/// the second (argo-cd v2.8.0, v3.2.12 and v3.5.1 util/env/env.go; argoproj/pkg time/time.go).
pub fn read(version: Version, value: Option<&str>) -> Reading {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Reading::Unset };
    let (reads_go, reads_days) = match version {
        Version(..=2, ..=13, _) => (false, true),
        Version(2, 14, ..=19) | Version(3, 0, ..=18) | Version(3, 1, ..=7) | Version(3, 2, _) => (true, false),
        _ => (true, true),
    };
    let nanos = if reads_go { go(value) } else { None };
    let nanos = match nanos {
        None if reads_days => match digits_and_unit(value) {
            Some((digits, unit)) => match digits.parse::<i64>() {
                // The product is not checked there: it wraps around.
                Ok(amount) => Some(i128::from(amount.wrapping_mul(unit * 1_000_000_000))),
                Err(_) => return Reading::Fatal,
            },
            None => None,
        },
        nanos => nanos,
    };
    match nanos.and_then(|nanos| i64::try_from(nanos).ok()) {
        Some(nanos) if nanos >= 0 => Reading::Nanos(nanos),
        _ => Reading::Ignored,
    }
}

/// The polling period in seconds that a controller takes from a value; 0 is off. Fractions are dropped.
pub fn period_s(version: Version, value: Option<&str>) -> u64 {
    seconds(read(version, value)).unwrap_or(if version < Version(3, 0, 0) { 180 } else { 120 })
}

/// The jitter in seconds that a controller takes from a value; `None` where there is no jitter: before v2.10.
pub fn jitter_s(version: Version, value: Option<&str>) -> Option<u64> {
    let default = if version < Version(3, 0, 0) { 0 } else { 60 };
    has_jitter(version).then(|| seconds(read(version, value)).unwrap_or(default))
}

/// Whether this version knows the jitter key.
pub fn has_jitter(version: Version) -> bool {
    version >= Version(2, 10, 0)
}

/// The age in seconds up to which a repo-server serves cached Git refs: fractions of a second are kept, and less than a
/// second becomes one hour (go-redis/cache cache.go).
pub fn ref_age_s(version: Version, value: Option<&str>) -> u64 {
    match read(version, value) {
        Reading::Nanos(0) => REF_AGE_OF_ZERO_S,
        Reading::Nanos(nanos) if i128::from(nanos) < NANOS => 3600,
        reading => seconds(reading).unwrap_or(DEFAULT_REF_AGE_S),
    }
}

/// Whether the controller of this version never polls, whatever its period says.
pub fn never_polls(version: Version) -> bool {
    WITHOUT_POLLING.contains(&version)
}

/// Whole seconds from how Go prints a duration in the startup line; the 100 years that 0 is replaced by are 0 again
/// (argo-cd v3.5.1 cmd/argocd-application-controller).
pub fn printed_s(text: &str) -> Option<u64> {
    if text == "876000h0m0s" {
        return Some(0);
    }
    go(text).and_then(|nanos| u64::try_from(nanos / NANOS).ok())
}

fn seconds(reading: Reading) -> Option<u64> {
    match reading {
        Reading::Nanos(nanos) => u64::try_from(i128::from(nanos) / NANOS).ok(),
        _ => None,
    }
}

/// `90s` as `90` and 1 second; `1d` as `1` and 86,400.
fn digits_and_unit(text: &str) -> Option<(&str, i64)> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some((digits, unit))
}

/// One number and one unit of `s m h d`, in nanoseconds.
pub fn one_unit(text: &str) -> Option<i128> {
    let (digits, unit) = digits_and_unit(text)?;
    Some(i128::from(digits.parse::<i64>().ok()?) * i128::from(unit) * NANOS)
}

/// Go's `time.ParseDuration`, in nanoseconds; more than an int64 of them is refused.
pub fn go(text: &str) -> Option<i128> {
    const UNITS: [(&str, i128); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", NANOS),
        ("m", 60 * NANOS),
        ("h", 3600 * NANOS),
    ];
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_i128;
    while !rest.is_empty() {
        let number;
        (number, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len()));
        let unit;
        (unit, rest) = rest.split_at(rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len()));
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let whole = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()? };
        // More digits than this change less than a nanosecond.
        let fraction = &fraction[..fraction.len().min(18)];
        let part = if fraction.is_empty() { 0 } else { fraction.parse::<i128>().ok()? };
        total += i128::from(whole) * factor + part * factor / 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    }
    (total <= i128::from(i64::MAX)).then_some(sign * total)
}

/// Computed by Go with the parsers of Argo CD: see `tests/durations/main.go`.
#[cfg(test)]
pub const TABLE: &str = include_str!("../tests/durations.tsv");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_reads_each_value_as_argo_cd_does() {
        let mut rows = 0;
        for row in TABLE.lines().filter(|row| !row.starts_with('#')) {
            let [version, value, outcome] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
            let value: String = serde_json::from_str(value).unwrap();
            let expected = match outcome {
                "fatal" => Reading::Fatal,
                "default" if value.is_empty() => Reading::Unset,
                "default" => Reading::Ignored,
                nanos => Reading::Nanos(nanos.parse().unwrap()),
            };
            assert_eq!(read(Version::parse(version).unwrap(), Some(&value)), expected, "{row}");
            rows += 1;
        }
        assert!(rows > 900, "the table is there: {rows} rows");
    }

    #[test]
    fn defaults_follow_the_version() {
        for (version, period, jitter) in
            [("2.8.0", 180, None), ("2.10.0", 180, Some(0)), ("2.14.3", 180, Some(0)), ("3.5.1", 120, Some(60))]
        {
            let version = Version::parse(version).unwrap();
            assert_eq!((period_s(version, None), jitter_s(version, None)), (period, jitter), "{version}");
        }
        assert_eq!(ref_age_s(Version::NEWEST, None), 180);
        assert_eq!(ref_age_s(Version::NEWEST, Some("0s")), 86_400);
        assert_eq!(ref_age_s(Version::NEWEST, Some("500ms")), 3600);
        assert_eq!(ref_age_s(Version::NEWEST, Some("30s")), 30);
    }

    #[test]
    fn printed_durations_are_read_back() {
        for (text, seconds) in
            [("30s", 30), ("3m0s", 180), ("2m30s", 150), ("1h0m0s", 3600), ("0s", 0), ("876000h0m0s", 0)]
        {
            assert_eq!(printed_s(text), Some(seconds), "{text}");
        }
        assert_eq!(printed_s("soon"), None);
    }
}
