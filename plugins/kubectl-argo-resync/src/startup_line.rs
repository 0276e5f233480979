//! What the log of a controller or repo-server says about the settings it runs with. Pure.
//!
//! Sources: argo-cd v3.5.1 controller/appcontroller.go (the startup line and the reasons of a refresh), util/env/env.go
//! (the warnings), cmd/argocd-application-controller (the first line).

use kit::version::Version;
use serde_json::Value;

use crate::period;

/// The line that a controller prints once, when it starts, at level info.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupLine {
    /// The line as it stands in the log, without its newline.
    pub bytes: Vec<u8>,
    /// The polling period in seconds; 0 is off.
    pub period_s: u64,
    /// The jitter in seconds; `None` where the version prints none.
    pub jitter_s: Option<u64>,
}

/// Finds the line in a log, JSON or text.
pub fn find(log: &[u8]) -> Option<StartupLine> {
    lines(log).find_map(|bytes| {
        let message = message(bytes)?;
        let values = message.strip_prefix("appResyncPeriod=")?;
        let mut parts = values.split(", ");
        let period_s = period::printed_s(parts.next()?)?;
        let jitter = parts.find_map(|part| part.strip_prefix("appResyncJitter="));
        Some(StartupLine { bytes: bytes.to_vec(), period_s, jitter_s: jitter.and_then(period::printed_s) })
    })
}

/// The period in seconds by which the newest scheduled comparison in a log was due: the log shows it long after the
/// startup line is gone.
pub fn newest_expiry_s(log: &[u8]) -> Option<u64> {
    lines(log)
        .filter_map(message)
        .filter_map(|message| {
            let (_, expired) = message.split_once("comparison expired, requesting refresh. ")?;
            let (_, expiry) = expired.split_once("expiry: ")?;
            let end = expiry.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(expiry.len());
            period::printed_s(&expiry[..end])
        })
        .last()
}

/// The warnings about values of the two keys that the process ignores; always logrus text, whatever the log format.
pub fn warnings(log: &[u8]) -> Vec<String> {
    lines(log)
        .filter_map(message)
        .filter(|message| {
            ["ARGOCD_RECONCILIATION_TIMEOUT", "ARGOCD_RECONCILIATION_JITTER"].iter().any(|name| message.contains(name))
                && (message.starts_with("Could not parse") || message.starts_with("Value in "))
        })
        .collect()
}

/// The version that the controller names in its first line.
pub fn version(log: &[u8]) -> Option<Version> {
    let line =
        lines(log).find(|line| message(line).is_some_and(|m| m == "ArgoCD Application Controller is starting"))?;
    let text = String::from_utf8_lossy(line);
    match serde_json::from_str::<Value>(&text) {
        Ok(fields) => Version::parse(fields["version"].as_str()?),
        Err(_) => {
            let (_, rest) = text.split_once(" version=")?;
            Version::parse(rest.split(' ').next()?.trim_matches('"'))
        }
    }
}

fn lines(log: &[u8]) -> impl Iterator<Item = &[u8]> {
    log.split(|byte| *byte == b'\n')
}

/// The message of a line: `msg` of a JSON object, or of logrus text, where it is quoted when it holds a blank.
fn message(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    if text.starts_with('{') {
        let fields: Value = serde_json::from_str(text).ok()?;
        return fields["msg"].as_str().map(str::to_owned);
    }
    let (_, rest) = text.split_once(" msg=")?;
    if rest.starts_with('"') {
        // Go's %q and JSON agree on what logs hold; what they do not agree on is not a message looked for here.
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        return values.next()?.ok();
    }
    rest.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"level":"info","msg":"appResyncPeriod=2m0s, appHardResyncPeriod=0s, appResyncJitter=1m0s","time":"2026-08-12T09:30:00Z"}"#;
    const TEXT: &str = r#"time="2026-08-12T09:30:00Z" level=info msg="appResyncPeriod=3m0s, appHardResyncPeriod=0s""#;

    #[test]
    fn the_line_is_found_in_both_formats_and_kept_as_it_is() {
        for (line, period_s, jitter_s) in [(JSON, 120, Some(60)), (TEXT, 180, None)] {
            let log = format!("time=\"x\" level=info msg=\"Processing all cluster shards\"\n{line}\nmore\n");
            let found = find(log.as_bytes()).unwrap();
            assert_eq!((found.period_s, found.jitter_s), (period_s, jitter_s));
            assert_eq!(found.bytes, line.as_bytes());
        }
    }

    #[test]
    fn a_period_of_a_hundred_years_is_off() {
        let line = JSON.replace("2m0s", "876000h0m0s");
        assert_eq!(find(line.as_bytes()).unwrap().period_s, 0);
    }

    #[test]
    fn a_line_that_only_quotes_the_words_is_not_the_line() {
        for line in [
            r#"{"level":"info","msg":"user said appResyncPeriod=1s, appHardResyncPeriod=0s"}"#,
            r#"{"level":"info","application":"appResyncPeriod=1s","msg":"Refreshing app status"}"#,
            r#"{"level":"info","msg":"appResyncPeriod=1s, appHa"#,
            "appResyncPeriod=1s",
            "\u{fffd}",
        ] {
            assert_eq!(find(line.as_bytes()), None, "{line}");
        }
        assert_eq!(find(b"\xff\xfe\n"), None);
    }

    #[test]
    fn the_newest_scheduled_comparison_shows_the_period() {
        let log = br#"{"msg":"Refreshing app status (comparison expired, requesting refresh. reconciledAt: never, expiry: 3m0s), level (2)"}
{"msg":"Refreshing app status (comparison expired, requesting refresh. reconciledAt: 2026-08-12 09:30:00 +0000 UTC, expiry: 30s), level (2)"}
{"msg":"Refreshing app status (comparison expired, requesting hard refresh. reconciledAt: never, expiry: 1h0m0s), level (2)"}"#;
        assert_eq!(newest_expiry_s(log), Some(30));
        assert_eq!(newest_expiry_s(b"{}"), None);
    }

    #[test]
    fn ignored_values_are_warned_of_in_text_even_where_the_log_is_json() {
        let log = format!(
            "time=\"x\" level=warning msg=\"Could not parse '180' as a duration from environment \
             ARGOCD_RECONCILIATION_TIMEOUT\"\n{JSON}\n"
        );
        assert_eq!(
            warnings(log.as_bytes()),
            ["Could not parse '180' as a duration from environment ARGOCD_RECONCILIATION_TIMEOUT"]
        );
        assert!(warnings(JSON.as_bytes()).is_empty());
    }

    #[test]
    fn the_version_is_read_from_the_first_line() {
        let log = b"time=\"x\" level=info msg=\"ArgoCD Application Controller is starting\" built=\"y\" commit=z \
                    namespace=argocd version=v3.5.1+abc\n";
        assert_eq!(version(log), Some(Version(3, 5, 1)));
        assert_eq!(version(TEXT.as_bytes()), None);
    }
}
