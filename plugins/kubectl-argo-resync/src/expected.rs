//! What a pod that starts now would run with. Pure.

use std::time::Duration;

use kit::{duration, version::Version};

use crate::{
    observe::{ControllerPod, RepoServerPod},
    period,
    proof::Kind,
};

/// What a pod that starts now would run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The polling period in seconds; 0 is off.
    pub period_s: u64,
    /// The jitter in seconds; `None` where the version has none.
    pub jitter_s: Option<u64>,
    /// Up to which age in seconds the repo-server serves cached Git refs.
    pub ref_age_s: u64,
}

impl Expected {
    /// From the values of the two keys.
    pub fn new(version: Version, period: Option<&str>, jitter: Option<&str>) -> Self {
        Expected {
            period_s: period::period_s(version, period),
            jitter_s: period::jitter_s(version, jitter),
            ref_age_s: period::ref_age_s(version, period),
        }
    }

    /// Whether a controller pod is known to run with this, or known not to.
    pub fn of_controller(&self, pod: &ControllerPod) -> Option<bool> {
        (pod.proof.kind != Kind::Unproven)
            .then(|| pod.proof.period_s == Some(self.period_s) && pod.proof.jitter_s == self.jitter_s)
    }

    /// Whether a repo-server pod is known to run with this, or known not to.
    pub fn of_repo_server(&self, pod: &RepoServerPod) -> Option<bool> {
        pod.ref_age_s.map(|age| age == self.ref_age_s)
    }
}

/// `30s`, or `off`.
pub fn show(period_s: u64) -> String {
    if period_s == 0 { "off".into() } else { duration::go(Duration::from_secs(period_s)) }
}
