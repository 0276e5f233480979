//! Durations in Go's syntax, as `kubectl --timeout` takes them.

use std::time::Duration;

const UNITS: [(&str, f64); 8] =
    [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("μs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Reads `90s`, `2m30s`, `1.5h`, and a bare number as seconds. Go's `time.ParseDuration` without a sign.
///
/// # Errors
/// Says what is wrong with the text; made for clap's `value_parser`.
pub fn parse(text: &str) -> Result<Duration, String> {
    let refused = || format!("`{text}` is not a duration such as 90s, 2m30s or 1h (a bare number is seconds)");
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut seconds = 0.0;
    let mut rest = text;
    if rest.is_empty() {
        return Err(refused());
    }
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let value: f64 = rest[..number].parse().map_err(|_| refused())?;
        rest = &rest[number..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == &rest[..unit]).ok_or_else(refused)?;
        seconds += value * factor;
        rest = &rest[unit..];
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| refused())
}

/// Whole seconds as Go prints a `time.Duration`: `30s`, `2m30s`, `1h0m0s`.
pub fn go(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m{s}s"),
        (h, m, s) => format!("{h}h{m}m{s}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them_and_bare_numbers_are_seconds() {
        for (text, ms) in [
            ("0", 0),
            ("180", 180_000),
            ("0s", 0),
            ("90s", 90_000),
            ("2m30s", 150_000),
            ("1.5h", 5_400_000),
            ("500ms", 500),
            ("1h0m0.5s", 3_600_500),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in
            ["", "s", "180x", "1d", "-5s", " 5s", "5 s", "1m30", ".", "1..5s", "1e400s", "999999999999999999999h"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_printed_as_go_prints_them() {
        for (seconds, text) in [(0, "0s"), (30, "30s"), (180, "3m0s"), (150, "2m30s"), (3600, "1h0m0s")] {
            assert_eq!(go(Duration::from_secs(seconds)), text);
        }
    }
}
