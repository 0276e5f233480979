//! Where things differ, in plain words, each with the reason. Pure.

use std::time::Duration;

use kit::{duration, version::Version};

use crate::{
    expected::{Expected, show},
    install::Install,
    observe::{ControllerPod, RepoServerPod},
    origin::{CONFIG, Origin, PARAMS, PERIOD, REF_AGE, Setting},
    period::{self, JITTER_KEY, PERIOD_KEY, Reading},
};

/// Where a value in `argocd-cm` does not do what it says, and where pods do not run with it, each with the reason.
pub fn of(
    install: &Install,
    version: Version,
    expected: Expected,
    controllers: &[ControllerPod],
    repo_servers: &[RepoServerPod],
) -> Vec<String> {
    let mut drift = Vec::new();
    for key in [PERIOD_KEY, JITTER_KEY] {
        let value = install.value(key).unwrap_or_default();
        match period::read(version, Some(value)) {
            Reading::Ignored => {
                drift.push(format!(
                    "{CONFIG} has {key}: `{value}`, which Argo CD {version} ignores: its default counts"
                ));
            }
            Reading::Fatal => {
                drift
                    .push(format!("{CONFIG} has {key}: `{value}`, with which Argo CD {version} does not start at all"));
            }
            Reading::Nanos(nanos) if nanos > 0 && nanos < 1_000_000_000 => {
                drift.push(format!("{CONFIG} has {key}: `{value}`, under a second, which Argo CD takes for 0"));
            }
            Reading::Nanos(_) | Reading::Unset => {}
        }
        if install.params.as_ref().and_then(|params| params.data.as_ref()).is_some_and(|data| data.contains_key(key)) {
            drift.push(format!("{PARAMS} has {key}, which nothing reads there: it belongs in {CONFIG}"));
        }
    }
    for pod in controllers {
        let why = || why(&pod.origin, PERIOD, &pod.ignored);
        match expected.of_controller(pod) {
            Some(true) => {}
            Some(false) => {
                let runs = values(pod.proof.period_s.unwrap_or_default(), pod.proof.jitter_s);
                let wanted = values(expected.period_s, expected.jitter_s);
                drift.push(format!("controller pod {} runs with {runs}, not with {wanted}: {}", pod.name, why()));
            }
            None => drift.push(format!("what controller pod {} runs with is not known: {}", pod.name, pod.proof.how)),
        }
    }
    for pod in repo_servers {
        match (expected.of_repo_server(pod), pod.ref_age_s) {
            (Some(false), Some(age)) => drift.push(format!(
                "repo-server pod {} serves Git refs up to {} old, not {}: {}",
                pod.name,
                duration::go(Duration::from_secs(age)),
                duration::go(Duration::from_secs(expected.ref_age_s)),
                why(&pod.origin, REF_AGE, &pod.ignored),
            )),
            (None, _) => drift.push(format!("what repo-server pod {} runs with is not known: {}", pod.name, pod.how)),
            _ => {}
        }
    }
    drift
}

fn values(period_s: u64, jitter_s: Option<u64>) -> String {
    let jitter = jitter_s.map(|jitter| format!(" and a jitter of {}", duration::go(Duration::from_secs(jitter))));
    format!("{}{}", show(period_s), jitter.unwrap_or_default())
}

/// Why a pod that is known to run with another value does so.
fn why(origin: &Origin, setting: Setting, ignored: &[String]) -> String {
    match (origin.is_config(setting), ignored.first()) {
        (false, _) => format!("it takes the value from {origin}"),
        (true, Some(warning)) => format!("it ignores the value: {warning}"),
        (true, None) => format!("it started before {CONFIG} was changed"),
    }
}
