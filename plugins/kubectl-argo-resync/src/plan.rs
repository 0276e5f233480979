//! What is to be changed: the patch of `argocd-cm`, and which pods need a restart. Pure.

use serde_json::{Map, Value, json};

use crate::{
    expected::Expected,
    observe::{ControllerPod, RepoServerPod},
    period::{JITTER_KEY, PERIOD_KEY},
    wanted::Wanted,
    workload::Component,
};

/// The order of restarts. The repo-server first: a controller that compares while it is away reports errors.
pub const ORDER: [Component; 2] = [Component::RepoServer, Component::Controller];

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

/// Which workloads have to be restarted: those that read a key that changes, and those that do not surely run with what
/// is in `argocd-cm` already, since an earlier run may have been killed after it wrote.
pub fn restarts(
    change: &Change,
    expected: Expected,
    controllers: &[ControllerPod],
    repo_servers: &[RepoServerPod],
) -> Vec<Component> {
    let controllers_fit = controllers.iter().all(|pod| expected.of_controller(pod) == Some(true));
    let repo_servers_fit = repo_servers.iter().all(|pod| expected.of_repo_server(pod) == Some(true));
    // Nobody owns a deleted key: the time of its deletion may be lost. A controller that still runs with another period
    // shows that the repo-server may be as old.
    let other_period = |pod: &ControllerPod| pod.proof.period_s != Some(expected.period_s);
    let may_be_stale = change.period.after.is_none() && controllers.iter().any(other_period);
    let needed = |component| match component {
        Component::Controller => change.is_change() || !controllers_fit || controllers.is_empty(),
        Component::RepoServer => {
            change.period.is_change() || !repo_servers_fit || repo_servers.is_empty() || may_be_stale
        }
    };
    ORDER.into_iter().filter(|component| needed(*component)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        origin::Origin,
        proof::{Kind, Proof},
    };

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

    fn controller(kind: Kind, period_s: u64) -> ControllerPod {
        ControllerPod {
            name: "c-0".into(),
            line: None,
            proof: Proof { kind, period_s: Some(period_s), jitter_s: Some(0), how: String::new() },
            origin: Origin::Unset,
            started_at: None,
            ignored: vec![],
            version: None,
            is_starting: false,
        }
    }

    fn repo_server(ref_age_s: Option<u64>) -> RepoServerPod {
        let (name, how, origin) = ("r".into(), String::new(), Origin::Unset);
        RepoServerPod { name, ref_age_s, kind: Kind::Spec, how, origin, started_at: None, ignored: vec![] }
    }

    #[test]
    fn pods_restart_when_they_do_not_surely_run_with_the_values() {
        use Component::{Controller, RepoServer};
        let expected = Expected { period_s: 30, jitter_s: Some(0), ref_age_s: 30 };
        let none = Change::new(Some("30s"), Some("0s"), &Settings::default());
        let period = Change::new(Some("60s"), Some("0s"), &Settings { period: written("30s"), jitter: None });
        let jitter = Change::new(Some("30s"), None, &Settings { period: None, jitter: written("0s") });
        let deleted = Change::new(None, Some("0s"), &Settings::default());
        let (fits, other, unknown) =
            (controller(Kind::Log, 30), controller(Kind::Log, 60), controller(Kind::Unproven, 30));
        for (change, controller, ref_age_s, restarts) in [
            (&none, &fits, Some(30), vec![]),
            (&none, &fits, None, vec![RepoServer]),
            (&none, &fits, Some(60), vec![RepoServer]),
            (&none, &other, Some(30), vec![Controller]),
            (&none, &unknown, Some(30), vec![Controller]),
            (&period, &fits, Some(30), vec![RepoServer, Controller]),
            (&jitter, &fits, Some(30), vec![Controller]),
            (&deleted, &other, Some(30), vec![RepoServer, Controller]),
        ] {
            let found = super::restarts(change, expected, std::slice::from_ref(controller), &[repo_server(ref_age_s)]);
            assert_eq!(found, restarts, "{change:?} {controller:?} {ref_age_s:?}");
        }
    }
}
