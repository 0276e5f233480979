//! What the user should look at, whatever else happens. Pure.

use std::time::Duration;

use kit::{duration, version::Version};

use crate::{
    expected::{Expected, show},
    install::Install,
    origin::{self, CONFIG},
    period,
    plan::Change,
    workload::Component,
};

/// What the user should look at, whatever else happens.
pub fn of(install: &Install, version: Version, change: &Change, expected: Expected) -> Vec<String> {
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
        let risk = "with polling off, a webhook that is lost is never repaired, and Git refs are cached for a day; a \
                    long period such as 1h is safer";
        warnings.push(risk.into());
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
