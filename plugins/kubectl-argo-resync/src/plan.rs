//! What is to be changed: the patch of `argocd-cm`, and which pods need a restart. Pure.

use serde_json::{Map, Value, json};

use crate::{
    period::{JITTER_KEY, PERIOD_KEY},
    wanted::Wanted,
};

/// What is asked of the two keys; `None` leaves a key alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The period.
    pub period: Option<Wanted>,
    /// The jitter.
    pub jitter: Option<Wanted>,
}

/// The value that a key has before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// Before; `None` is no such key.
    pub before: Option<String>,
    /// Afterwards.
    pub after: Option<String>,
}

impl KeyChange {
    fn new(before: Option<&str>, wanted: Option<&Wanted>) -> Self {
        let before = before.map(str::to_owned);
        let after = wanted.map_or_else(|| before.clone(), |wanted| wanted.text().map(str::to_owned));
        KeyChange { before, after }
    }

    /// Whether anything is different.
    pub fn is_change(&self) -> bool {
        self.before != self.after
    }

    /// The same, backwards.
    pub fn undone(&self) -> KeyChange {
        KeyChange { before: self.after.clone(), after: self.before.clone() }
    }
}

/// Both keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// `timeout.reconciliation`.
    pub period: KeyChange,
    /// `timeout.reconciliation.jitter`.
    pub jitter: KeyChange,
}

impl Change {
    /// Compares what is there with what is asked.
    pub fn new(period: Option<&str>, jitter: Option<&str>, settings: &Settings) -> Self {
        Change {
            period: KeyChange::new(period, settings.period.as_ref()),
            jitter: KeyChange::new(jitter, settings.jitter.as_ref()),
        }
    }

    /// Whether anything is different.
    pub fn is_change(&self) -> bool {
        self.period.is_change() || self.jitter.is_change()
    }

    /// The JSON merge patch: only the keys that change, a null for one that goes.
    pub fn patch(&self) -> Value {
        let mut data = Map::new();
        for (key, change) in self.keys() {
            if change.is_change() {
                data.insert(key.into(), json!(change.after));
            }
        }
        json!({"data": data})
    }

    /// `{key: value or null}` of before, as `--restore` reads it.
    pub fn previous(&self) -> Value {
        json!({PERIOD_KEY: self.period.before, JITTER_KEY: self.jitter.before})
    }

    /// What changes, in words.
    pub fn words(&self) -> String {
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "unset".into());
        let changes = self.keys().into_iter().filter(|(_, change)| change.is_change());
        let words: Vec<_> = changes
            .map(|(key, change)| format!("{key}: {} (was {})", show(&change.after), show(&change.before)))
            .collect();
        words.join(", ")
    }

    /// The same, backwards.
    pub fn undone(&self) -> Change {
        Change { period: self.period.undone(), jitter: self.jitter.undone() }
    }

    fn keys(&self) -> [(&'static str, &KeyChange); 2] {
        [(PERIOD_KEY, &self.period), (JITTER_KEY, &self.jitter)]
    }
}

/// What is known about the pods of a workload before anything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pods {
    /// A key that they read is changed by this run.
    pub changed: bool,
    /// Whether they run with what will be in `argocd-cm`, when that is known of all.
    pub in_force: Option<bool>,
}

impl Pods {
    /// Whether they have to be restarted: also when they may be older than a change that an earlier run made.
    pub fn need_restart(self) -> bool {
        self.changed || self.in_force != Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Option<Wanted> {
        Some(Wanted::Written(text.into()))
    }

    #[test]
    fn the_patch_has_the_changed_keys_only_and_a_null_for_one_that_goes() {
        let settings = Settings { period: written("120s"), jitter: Some(Wanted::Default) };
        let change = Change::new(Some("30s"), Some("0s"), &settings);
        assert_eq!(change.patch(), json!({"data": {PERIOD_KEY: "120s", JITTER_KEY: null}}));
        assert_eq!(change.undone().patch(), json!({"data": {PERIOD_KEY: "30s", JITTER_KEY: "0s"}}));
        assert_eq!(change.previous(), json!({PERIOD_KEY: "30s", JITTER_KEY: "0s"}));
        let change = Change::new(Some("120s"), Some("0s"), &settings);
        assert_eq!(change.patch(), json!({"data": {JITTER_KEY: null}}));
        assert!(!Change::new(Some("120s"), None, &settings).is_change());
        assert!(!Change::new(Some("x"), None, &Settings::default()).is_change());
    }

    #[test]
    fn pods_restart_when_they_do_not_surely_run_with_the_values() {
        for (changed, in_force, expected) in
            [(true, Some(true), true), (false, Some(true), false), (false, Some(false), true), (false, None, true)]
        {
            assert_eq!(Pods { changed, in_force }.need_restart(), expected);
        }
    }
}
