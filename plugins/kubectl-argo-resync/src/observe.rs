//! What the running pods use, from their logs and from what they were made of.

use k8s_openapi::{
    api::core::v1::{Container, Pod},
    jiff::Timestamp,
};
use kit::{
    cluster::{Cluster, Refused},
    error::Error,
    version::Version,
};

use crate::{
    install::{self, Install, Part},
    origin::{self, JITTER, LOG_LEVEL, Origin, PARAMS, PERIOD, REF_AGE, Setting},
    period,
    proof::{self, Kind, Proof, Source},
    startup_line::{self, StartupLine},
    workload::Component,
};

/// A controller pod.
#[derive(Clone, Debug)]
pub struct ControllerPod {
    /// Its name.
    pub name: String,
    /// The startup line in its log.
    pub line: Option<StartupLine>,
    /// What it runs with.
    pub proof: Proof,
    /// Where it takes the period from.
    pub origin: Origin,
    /// When its container started.
    pub started_at: Option<Timestamp>,
    /// Values that it ignores, in its own words.
    pub ignored: Vec<String>,
    /// The version that its log names.
    pub version: Option<Version>,
    /// Whether the startup line may still come: the log has only begun.
    pub is_starting: bool,
}

/// A repo-server pod. No line of its log shows its setting.
#[derive(Clone, Debug)]
pub struct RepoServerPod {
    /// Its name.
    pub name: String,
    /// Up to which age in seconds it serves cached Git refs.
    pub ref_age_s: Option<u64>,
    /// How that is known.
    pub kind: Kind,
    /// The same in plain words.
    pub how: String,
    /// Where it takes the setting from.
    pub origin: Origin,
    /// When its container started.
    pub started_at: Option<Timestamp>,
    /// Values that it ignores, in its own words.
    pub ignored: Vec<String>,
}

/// Looks at all controller pods that are not terminating; `is_consequence` when they were restarted after the settings
/// had been written.
///
/// # Errors
/// When pods or logs may not be read, or cannot be.
pub async fn controllers(
    cluster: &Cluster,
    install: &Install,
    version: Version,
    is_consequence: bool,
) -> Result<Vec<ControllerPod>, Error> {
    let mut found = Vec::new();
    for pod in staying(cluster, install, Component::Controller).await? {
        let container = container(&pod, install, Component::Controller);
        let name = install::pod_name(&pod).to_owned();
        let head = read_log(cluster, &name, &container.name, Part::Head).await?;
        let line = startup_line::find(&head);
        let expiry_s = match line {
            Some(_) => None,
            None => startup_line::newest_expiry_s(&read_log(cluster, &name, &container.name, Part::Tail).await?),
        };
        let started_at = install::started_at(&pod, &container.name);
        let source = |origin, setting: Setting| Source {
            origin,
            value: install.value(setting.key),
            changed_at: origin::changed_at(&install.config, &[setting.key]),
            started_at,
            is_consequence,
        };
        let (period, jitter) = (origin::of(&container, PERIOD), origin::of(&container, JITTER));
        let version_in_log = startup_line::version(&head);
        let sources = [(PERIOD, &source(&period, PERIOD)), (JITTER, &source(&jitter, JITTER))];
        let hidden = hiding_level(&container, install);
        found.push(ControllerPod {
            proof: proof::of_controller(version, line.as_ref(), expiry_s, hidden.as_deref(), sources),
            is_starting: line.is_none() && hidden.is_none() && (head.is_empty() || version_in_log.is_some()),
            name,
            line,
            origin: period,
            started_at,
            ignored: startup_line::warnings(&head),
            version: version_in_log,
        });
    }
    Ok(found)
}

/// Looks at all repo-server pods that are not terminating, as [`controllers`].
///
/// # Errors
/// As [`controllers`].
pub async fn repo_servers(
    cluster: &Cluster,
    install: &Install,
    version: Version,
    is_consequence: bool,
) -> Result<Vec<RepoServerPod>, Error> {
    let mut found = Vec::new();
    for pod in staying(cluster, install, Component::RepoServer).await? {
        let container = container(&pod, install, Component::RepoServer);
        let name = install::pod_name(&pod).to_owned();
        let started_at = install::started_at(&pod, &container.name);
        let origin = origin::of(&container, REF_AGE);
        let changed_at = origin::changed_at(&install.config, &[REF_AGE.key]);
        let value = install.value(REF_AGE.key);
        let source = Source { origin: &origin, value, changed_at, started_at, is_consequence };
        let (kind, ref_age_s, how) = match source.value(REF_AGE) {
            Ok(value) => {
                let how = format!("the container takes it from {origin}");
                (Kind::Spec, Some(period::ref_age_s(version, value.as_deref())), how)
            }
            Err(why) => (Kind::Unproven, None, why),
        };
        let head = read_log(cluster, &name, &container.name, Part::Head).await?;
        let ignored = startup_line::warnings(&head);
        found.push(RepoServerPod { name, ref_age_s, kind, how, origin, started_at, ignored });
    }
    Ok(found)
}

async fn staying(cluster: &Cluster, install: &Install, component: Component) -> Result<Vec<Pod>, Error> {
    let mut pods = install::pods(cluster, install.workload(component)).await?;
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(pods)
}

/// The container in the pod itself, which may be older than the template.
fn container(pod: &Pod, install: &Install, component: Component) -> Container {
    let of_template = install.workload(component).container(component).cloned().unwrap_or_default();
    let own = pod.spec.iter().flat_map(|spec| &spec.containers).find(|own| own.name == of_template.name);
    own.cloned().unwrap_or(of_template)
}

/// A container that has not started yet has no log.
async fn read_log(cluster: &Cluster, pod: &str, container: &str, part: Part) -> Result<Vec<u8>, Error> {
    match install::log(cluster, pod, container, part).await {
        Err(Refused { status: Some(400 | 404), .. }) => Ok(Vec::new()),
        answer => Ok(answer?),
    }
}

/// The controller's log level, if it hides what is logged at info.
fn hiding_level(container: &Container, install: &Install) -> Option<String> {
    let level = match origin::of(container, LOG_LEVEL) {
        Origin::Literal(level) | Origin::Flag { value: level, .. } => level,
        Origin::Key { config_map, key } if config_map == PARAMS => {
            install.params.as_ref()?.data.as_ref()?.get(&key)?.clone()
        }
        _ => return None,
    };
    ["warn", "warning", "error", "fatal", "panic"].contains(&level.to_lowercase().as_str()).then_some(level)
}
