//! The parts of the output, and in plain words where things differ. Pure.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kit::{duration, version::Version};
use serde_json::{Value, json};

use crate::{
    install::Install,
    observe::{ControllerPod, RepoServerPod},
    origin::{self, CONFIG, JITTER, Origin, PARAMS, PERIOD, REF_AGE, Setting},
    period::{self, JITTER_KEY, PERIOD_KEY, Reading},
    plan::Change,
    proof::Kind,
    workload::Component,
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

/// `workloads[]`.
pub fn workloads(install: &Install, restarted: &[Component]) -> Value {
    let entries = [Component::RepoServer, Component::Controller].map(|component| {
        let workload = install.workload(component);
        let container = workload.container(component);
        let from = |setting: Setting| container.map(|container| origin::of(container, setting).to_string());
        let mut entry = json!({
            "component": component.to_string(),
            "kind": workload.kind.word(),
            "name": workload.name(),
            "container": container.map(|container| &container.name),
            "replicas": workload.replicas,
            "restarted": restarted.contains(&component),
        });
        match component {
            Component::Controller => {
                entry["period_from"] = json!(from(PERIOD));
                entry["jitter_from"] = json!(from(JITTER));
            }
            Component::RepoServer => entry["ref_age_from"] = json!(from(REF_AGE)),
        }
        entry
    });
    json!(entries)
}

/// `controllers[]`.
pub fn controllers(pods: &[ControllerPod]) -> Value {
    let entry = |pod: &ControllerPod| {
        json!({
            "pod": pod.name,
            "line": pod.line.as_ref().map(|line| String::from_utf8_lossy(&line.bytes)),
            "period_s": pod.proof.period_s,
            "jitter_s": pod.proof.jitter_s,
            "proof": pod.proof.kind.word(),
            "how": pod.proof.how,
            "started_at": pod.started_at.map(Timestamp::as_second),
        })
    };
    pods.iter().map(entry).collect()
}

/// `repo_servers[]`.
pub fn repo_servers(pods: &[RepoServerPod]) -> Value {
    let entry = |pod: &RepoServerPod| {
        json!({
            "pod": pod.name,
            "ref_age_s": pod.ref_age_s,
            "proof": pod.kind.word(),
            "how": pod.how,
            "started_at": pod.started_at.map(Timestamp::as_second),
        })
    };
    pods.iter().map(entry).collect()
}

/// Where a value in `argocd-cm` does not do what it says, and where pods do not run with it, each with the reason.
pub fn drift(
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

/// What the user should look at, whatever else happens.
pub fn warnings(install: &Install, version: Version, change: &Change, expected: Expected) -> Vec<String> {
    let mut warnings = Vec::new();
    if install.version.is_none() {
        let container = install.controller.container(Component::Controller);
        let image = container.and_then(|container| container.image.as_deref()).unwrap_or_default();
        warnings.push(format!("the image `{image}` does not name a version: the rules of Argo CD {version} are used"));
    }
    if period::never_polls(version) {
        warnings.push(format!(
            "Argo CD {version} does not poll, whatever its period is: an idle Application is never compared on schedule; \
             the next patch release does again"
        ));
    }
    if change.is_change()
        && let Some(owner) = origin::owner(&install.config.metadata)
    {
        warnings.push(format!("{CONFIG} belongs to {owner}, which may put its own values back: change them there too"));
    }
    if expected.period_s == 0 {
        warnings
            .push("with polling off, a webhook that is lost is never repaired; a long period such as 1h would".into());
    } else if expected.jitter_s.is_some_and(|jitter| jitter >= expected.period_s) {
        let jitter = duration::go(Duration::from_secs(expected.jitter_s.unwrap_or_default()));
        warnings.push(format!("the jitter ({jitter}) is not shorter than the period ({})", show(expected.period_s)));
    }
    if (1..30).contains(&expected.period_s) {
        warnings.push(format!(
            "every repository is asked about {} times an hour; `kubectl argo-resync` without a period estimates the load",
            3600 / expected.period_s
        ));
    }
    let container = install.controller.container(Component::Controller);
    let shards = container.iter().flat_map(|container| container.env.iter().flatten());
    let shards = shards.filter(|variable| variable.name == "ARGOCD_CONTROLLER_REPLICAS").find_map(|v| v.value.clone());
    if let Some(shards) = shards.filter(|shards| *shards != install.controller.replicas.to_string()) {
        warnings.push(format!(
            "{} has {} replicas, but ARGOCD_CONTROLLER_REPLICAS is {shards}: some clusters may have no shard, or some \
             shards no cluster",
            install.controller, install.controller.replicas
        ));
    }
    warnings
}
