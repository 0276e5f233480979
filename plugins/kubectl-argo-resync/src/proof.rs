//! What a pod runs with, and how that is known. Pure.

use k8s_openapi::jiff::Timestamp;
use kit::version::Version;

use crate::{
    origin::{Origin, Setting},
    period,
    startup_line::StartupLine,
};

/// How it is known what a pod runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The pod's own log says so.
    Log,
    /// The container was made from a spec that leaves nothing else.
    Spec,
    /// It is not known.
    Unproven,
}

impl Kind {
    /// As it stands in the output.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Log => "log",
            Kind::Spec => "spec",
            Kind::Unproven => "unproven",
        }
    }
}

/// What a controller pod runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// How it is known.
    pub kind: Kind,
    /// The polling period in seconds; 0 is off.
    pub period_s: Option<u64>,
    /// The jitter in seconds; `None` also where the version has none.
    pub jitter_s: Option<u64>,
    /// In plain words.
    pub how: String,
}

/// What a container was made from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Where it takes the setting from.
    pub origin: &'a Origin,
    /// The value of the key in `argocd-cm` now.
    pub value: Option<&'a str>,
    /// When the key was last changed, to the second.
    pub changed_at: Option<Timestamp>,
    /// When the container started, to the second.
    pub started_at: Option<Timestamp>,
    /// It was started because of the change, so that the same second is later.
    pub is_consequence: bool,
}

impl Source<'_> {
    /// The value that the process was given; `None` inside is none at all.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub fn value(&self, setting: Setting) -> Result<Option<String>, String> {
        if let Some(value) = self.origin.fixed() {
            return Ok(value);
        }
        if !self.origin.is_config(setting) {
            return Err(format!("it reads {}", self.origin));
        }
        match (self.started_at, self.changed_at) {
            (Some(started), Some(changed)) if started > changed || started == changed && self.is_consequence => {
                Ok(self.value.map(str::to_owned))
            }
            (Some(started), Some(changed)) => {
                Err(format!("the container started at {started}, argocd-cm was changed at {changed}"))
            }
            (None, _) => Err("the container does not run".into()),
            (_, None) => Err("argocd-cm does not say when it was changed".into()),
        }
    }
}

/// Judges a controller pod by its log, else by what its container was made from.
pub fn of_controller(
    version: Version,
    line: Option<&StartupLine>,
    expiry_s: Option<u64>,
    hidden: Option<&str>,
    [period, jitter]: [(Setting, &Source<'_>); 2],
) -> Proof {
    if let Some(line) = line {
        let how = "startup line".into();
        return Proof { kind: Kind::Log, period_s: Some(line.period_s), jitter_s: line.jitter_s, how };
    }
    let missing = match hidden {
        Some(level) => format!("the log level `{level}` hides the startup line"),
        None => "the startup line is not in the log any more".into(),
    };
    let given = |(setting, source): (Setting, &Source<'_>)| source.value(setting);
    let jitter_s = given(jitter).ok().and_then(|value| period::jitter_s(version, value.as_deref()));
    if let Some(expiry_s) = expiry_s {
        let how = format!("scheduled comparison in the log; {missing}");
        return Proof { kind: Kind::Log, period_s: Some(expiry_s), jitter_s, how };
    }
    match given(period).and_then(|value| given(jitter).map(|_| value)) {
        Ok(value) => Proof {
            kind: Kind::Spec,
            period_s: Some(period::period_s(version, value.as_deref())),
            jitter_s,
            how: format!("{missing}; the container takes it from {} and is newer", period.1.origin),
        },
        Err(why) => Proof { kind: Kind::Unproven, period_s: None, jitter_s: None, how: format!("{missing}; {why}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{CONFIG, JITTER, PERIOD};

    const VERSION: Version = Version::NEWEST;

    fn at(second: i64) -> Option<Timestamp> {
        Some(Timestamp::from_second(second).unwrap())
    }

    fn config(setting: Setting) -> Origin {
        Origin::Key { config_map: CONFIG.into(), key: setting.key.into() }
    }

    fn judge(origin: &Origin, started: i64, changed: i64, line: Option<&StartupLine>, expiry_s: Option<u64>) -> Proof {
        let (changed_at, started_at) = (at(changed), at(started));
        let period = Source { origin, value: Some("30s"), changed_at, started_at, is_consequence: false };
        let jitter = config(JITTER);
        let jitter = Source { origin: &jitter, value: Some("0s"), ..period };
        of_controller(VERSION, line, expiry_s, None, [(PERIOD, &period), (JITTER, &jitter)])
    }

    #[test]
    fn the_log_is_believed_first_then_the_spec() {
        let origin = config(PERIOD);
        let line = StartupLine { bytes: vec![], period_s: 60, jitter_s: Some(5) };
        let proof = judge(&origin, 5, 1, Some(&line), None);
        assert_eq!((proof.kind, proof.period_s, proof.jitter_s), (Kind::Log, Some(60), Some(5)));
        let proof = judge(&origin, 5, 1, None, Some(90));
        assert_eq!((proof.kind, proof.period_s, proof.jitter_s), (Kind::Log, Some(90), Some(0)));
        let proof = judge(&origin, 5, 1, None, None);
        assert_eq!((proof.kind, proof.period_s, proof.jitter_s), (Kind::Spec, Some(30), Some(0)));
    }

    #[test]
    fn a_container_that_may_be_older_than_the_change_proves_nothing() {
        for started in [4, 5] {
            let proof = judge(&config(PERIOD), started, 5, None, None);
            assert_eq!((proof.kind, proof.period_s), (Kind::Unproven, None));
            assert!(proof.how.contains("was changed at"), "{}", proof.how);
        }
    }

    #[test]
    fn a_container_that_was_started_because_of_the_change_is_newer_in_the_same_second() {
        let origin = config(PERIOD);
        let source = |started: i64, is_consequence| Source {
            origin: &origin,
            value: Some("30s"),
            changed_at: at(5),
            started_at: at(started),
            is_consequence,
        };
        assert!(source(5, true).value(PERIOD).is_ok());
        assert!(source(5, false).value(PERIOD).is_err());
        assert!(source(4, true).value(PERIOD).is_err());
    }

    #[test]
    fn a_literal_or_a_flag_is_what_the_pod_runs_with() {
        let flag = Origin::Flag { flag: "--app-resync", value: "60".into() };
        for origin in [flag, Origin::Literal("60s".into())] {
            assert_eq!(judge(&origin, 5, 1, None, None).period_s, Some(60));
        }
        assert_eq!(judge(&Origin::Elsewhere, 5, 1, None, None).kind, Kind::Unproven);
    }
}
