//! What the user asks of a key, and how it is written: in a form that every version of Argo CD reads alike. Pure.

use kit::error::Error;

use crate::period::{NANOS, go, one_unit};

/// Go's `time.Duration` is an int64 of nanoseconds.
const LONGEST_S: i128 = 9_223_372_036;

/// What is asked of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The key is deleted.
    Default,
    /// The key is written: `30s`, `5m`, `0s`.
    Written(String),
}

impl Wanted {
    /// The value of the key afterwards; `None` when it is deleted.
    pub fn text(&self) -> Option<&str> {
        match self {
            Wanted::Default => None,
            Wanted::Written(text) => Some(text),
        }
    }
}

/// Reads PERIOD: a duration, `off` or `default`.
///
/// # Errors
/// Says what is wrong, and what to write; exit code 2.
pub fn period(text: &str) -> Result<Wanted, Error> {
    if text == "off" {
        return Ok(Wanted::Written("0s".into()));
    }
    wanted(text).map_err(|why| {
        Error::usage("bad-period", format!("the period {why}"))
            .hint("write a duration such as 90s, 5m or 1h (a bare number is seconds), `off` or `default`")
    })
}

/// Reads the value of `--jitter`: a duration or `default`.
///
/// # Errors
/// As [`period`].
pub fn jitter(text: &str) -> Result<Wanted, Error> {
    wanted(text).map_err(|why| {
        Error::usage("bad-jitter", format!("the jitter {why}"))
            .hint("write a duration such as 10s (a bare number is seconds), `0s` for none, or `default`")
    })
}

fn wanted(text: &str) -> Result<Wanted, String> {
    if text == "default" {
        return Ok(Wanted::Default);
    }
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let typed = if bare { format!("{text}s") } else { text.to_owned() };
    let one_unit = one_unit(&typed);
    let nanos = one_unit.or_else(|| go(&typed)).filter(|nanos| (0..=LONGEST_S * NANOS).contains(nanos));
    let nanos = nanos.ok_or_else(|| format!("`{text}` is not a duration"))?;
    if nanos > 0 && nanos < NANOS {
        return Err(format!("`{text}` is under a second, which Argo CD takes for 0: off"));
    }
    if nanos % NANOS != 0 {
        return Err(format!("`{text}` is not a whole number of seconds, and Argo CD drops the rest"));
    }
    let seconds = nanos / NANOS;
    Ok(Wanted::Written(match one_unit {
        _ if seconds == 0 => "0s".into(),
        // Argo CD v3.2 and others know no days.
        Some(_) if typed.ends_with('d') => format!("{}h", seconds / 3600),
        Some(_) => typed.trim_start_matches('0').into(),
        None => format!("{seconds}s"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::period::{self, Reading};
    use kit::version::Version;

    #[test]
    fn whatever_is_written_is_read_alike_by_every_version() {
        let table = || period::TABLE.lines().map(|row| row.split('\t').collect::<Vec<_>>());
        let versions: Vec<_> = table().filter_map(|row| Version::parse(row[0])).collect();
        let mut written = 0;
        for value in table().filter_map(|row| serde_json::from_str::<String>(row.get(1)?).ok()) {
            let Ok(Wanted::Written(text)) = period(&value) else { continue };
            let first = period::read(versions[0], Some(&text));
            assert!(matches!(first, Reading::Nanos(_)), "{value} → {text}");
            for version in &versions {
                assert_eq!(period::read(*version, Some(&text)), first, "{value} → {text} on {version}");
            }
            written += 1;
        }
        assert!(written > 100, "{written}");
    }

    #[test]
    fn the_form_that_was_typed_is_kept_where_every_version_reads_it() {
        for (typed, text) in [
            ("30s", "30s"),
            ("180", "180s"),
            ("3m", "3m"),
            ("1h", "1h"),
            ("2m30s", "150s"),
            ("1.5h", "5400s"),
            ("1d", "24h"),
            ("007s", "7s"),
            ("9223372036s", "9223372036s"),
            ("off", "0s"),
            ("0", "0s"),
            ("0h", "0s"),
        ] {
            assert_eq!(period(typed), Ok(Wanted::Written(text.into())), "{typed}");
        }
        assert_eq!(period("default"), Ok(Wanted::Default));
    }

    #[test]
    fn what_would_silently_mean_something_else_is_refused() {
        for (typed, why) in [
            ("180x", "`180x` is not a duration"),
            ("500ms", "under a second"),
            ("1500ms", "not a whole number of seconds"),
            ("-5s", "is not a duration"),
            ("", "is not a duration"),
            ("9223372037s", "is not a duration"),
            ("292471208677d", "is not a duration"),
            ("99999999999999999999", "is not a duration"),
        ] {
            let error = period(typed).unwrap_err();
            assert!(error.message.contains(why) && error.hint.is_some(), "{typed}: {error}");
        }
        assert!(jitter("off").is_err());
    }
}
