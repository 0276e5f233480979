//! What an earlier run found, read back from its output. Pure.

use kit::{error::Error, version::Version};
use serde_json::Value;

use crate::{
    period::{self, JITTER_KEY, PERIOD_KEY, Reading},
    plan::Settings,
    wanted::Wanted,
};

/// Reads `previous` from the output of an earlier run.
///
/// # Errors
/// When it is no such output; exit code 2.
pub fn parse(bytes: &[u8], source: &str) -> Result<[Option<String>; 2], Error> {
    let bad = |why: &str| {
        Error::usage("bad-restore", format!("cannot restore from {source}: {why}"))
            .hint("give the JSON object that an earlier `kubectl argo-resync PERIOD` printed")
    };
    let output: Value = serde_json::from_slice(bytes).map_err(|error| bad(&error.to_string()))?;
    let previous = output["previous"].as_object().ok_or_else(|| bad("it has no `previous`"))?;
    let value = |key: &str| match previous.get(key) {
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Null) => Ok(None),
        Some(_) => Err(bad(&format!("`{key}` is neither text nor null"))),
        None => Err(bad(&format!("`previous` has no `{key}`"))),
    };
    Ok([value(PERIOD_KEY)?, value(JITTER_KEY)?])
}

/// What to ask for so that Argo CD does as it did with these values. A value that this version ignores is not written
/// again: without the key it does the same. Says so for each such key.
pub fn settings(version: Version, [period, jitter]: [Option<String>; 2]) -> (Settings, Vec<String>) {
    let mut notes = Vec::new();
    let mut wanted = |key: &str, value: Option<String>| match value {
        Some(text) if matches!(period::read(version, Some(&text)), Reading::Nanos(_)) => Wanted::Written(text),
        Some(text) => {
            notes.push(format!(
                "{key} was `{text}`, which Argo CD {version} ignores: the key is deleted, to the same effect"
            ));
            Wanted::Default
        }
        None => Wanted::Default,
    };
    let settings = Settings { period: Some(wanted(PERIOD_KEY, period)), jitter: Some(wanted(JITTER_KEY, jitter)) };
    (settings, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_put_back_exactly_unless_it_was_ignored() {
        let output = br#"{"previous":{"timeout.reconciliation":"2m30s","timeout.reconciliation.jitter":null}}"#;
        let values = parse(output, "x").unwrap();
        let (found, notes) = settings(Version::NEWEST, values.clone());
        assert_eq!(found.period, Some(Wanted::Written("2m30s".into())));
        assert_eq!((found.jitter, notes.len()), (Some(Wanted::Default), 0));
        let (found, notes) = settings(Version(2, 8, 0), values);
        assert_eq!(found.period, Some(Wanted::Default));
        assert!(notes[0].contains("`2m30s`, which Argo CD 2.8.0 ignores"), "{notes:?}");
    }

    #[test]
    fn what_is_not_an_output_is_refused() {
        for (text, why) in [
            ("", "EOF"),
            ("{}", "has no `previous`"),
            (r#"{"previous":{}}"#, "has no `timeout.reconciliation`"),
            (r#"{"previous":{"timeout.reconciliation":3}}"#, "neither text nor null"),
        ] {
            let error = parse(text.as_bytes(), "last.json").unwrap_err();
            assert!(error.message.contains(why) && error.message.contains("last.json"), "{error}");
        }
    }
}
