//! Restarting a workload as `kubectl rollout restart` does, and waiting until it is done.

use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use kit::{
    cluster::{Ask, Cluster, Refused},
    error::Error,
    exit::Exit,
    talk::Talk,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    deadline::Deadline,
    install::{self, Part},
    rollout::{self, RESTARTED_AT, Rollout},
    workload::{Kind, Workload},
};

/// Under which name the API server keeps what this command wrote.
pub const FIELD_MANAGER: &str = "kubectl-argo-resync";

const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Conflicts are over in a moment, or they are not.
const TRIES: u32 = 5;

/// The patch that makes a new pod template (kubectl pkg/polymorphichelpers/objectrestarter.go).
pub fn patch() -> Value {
    // To the millisecond: a second restart within one second would otherwise change nothing.
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: now}}}}})
}

/// Whether the API server is to keep what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It says what it would answer, and keeps nothing (`dryRun=All`): rights and admission are found out so.
    Rehearsal,
    /// It does.
    Real,
}

/// Makes the API server merge a patch; conflicts are tried again.
///
/// # Errors
/// As [`Cluster::call`].
pub async fn merge<K>(cluster: &Cluster, api: &Api<K>, ask: Ask<'_>, patch: &Value, mode: Mode) -> Result<K, Refused>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let dry_run = mode == Mode::Rehearsal;
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), dry_run, ..PatchParams::default() };
    let patch = Patch::Merge(patch);
    let mut left = TRIES;
    loop {
        left -= 1;
        match cluster.call(ask, api.patch(ask.name, &params, &patch)).await {
            Err(Refused { status: Some(409), .. }) if left > 0 => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            answer => return answer,
        }
    }
}

/// Restarts the pods of a workload. Sends one request.
///
/// # Errors
/// As [`Cluster::call`].
pub async fn start(cluster: &Cluster, workload: &Workload, mode: Mode) -> Result<(), Refused> {
    let name = workload.name();
    let ask = Ask { verb: "patch", resource: workload.kind.resource(), namespace: &cluster.namespace, name };
    match workload.kind {
        Kind::Deployment => merge(cluster, &install::deployments(cluster), ask, &patch(), mode).await.map(drop),
        Kind::StatefulSet => merge(cluster, &install::stateful_sets(cluster), ask, &patch(), mode).await.map(drop),
    }
}

/// Waits until all pods of the workload are new and ready and the old ones are gone; returns it as it is then.
///
/// # Errors
/// What keeps the rollout from being done: exit code 1 when it will not be, 124 when the deadline passed.
pub async fn finish(
    cluster: &Cluster,
    talk: &Talk,
    workload: &Workload,
    grace: Duration,
    deadline: Deadline,
) -> Result<Workload, Error> {
    let place = format!("{workload} in namespace {} (context {})", cluster.namespace, cluster.context);
    let mut failing: Option<Instant> = None;
    loop {
        let (now, state) = match look(cluster, workload).await {
            Ok(seen) => seen,
            // The API server may be away for a moment while its own pods move.
            Err(refused) if refused.status.is_none_or(|status| status == 429 || status >= 500) => {
                if deadline.left().is_zero() {
                    return Err(refused.error);
                }
                talk.status(&refused.error.message, &deadline.time());
                tokio::time::sleep(LOOK_AGAIN).await;
                continue;
            }
            Err(refused) => return Err(refused.error),
        };
        let what = match state {
            Rollout::Done => return Ok(now),
            Rollout::Never(why) => {
                return Err(Error::no("rollout-stuck", format!("the rollout of {place} will not end: {why}"))
                    .hint(format!("`kubectl -n {} describe {workload}` says more", cluster.namespace)));
            }
            Rollout::Failing { pod, container, reason } => {
                if failing.get_or_insert_with(Instant::now).elapsed() >= grace {
                    let words = last_words(cluster, &pod, container.as_deref()).await;
                    return Err(Error::no(
                        "rollout-failed",
                        format!("the rollout of {place} failed: pod {pod}: {reason}{words}"),
                    )
                    .hint(format!("`kubectl -n {} describe pod {pod}` says more", cluster.namespace)));
                }
                format!("{workload}: pod {pod}: {reason}")
            }
            Rollout::Waiting(what) => {
                failing = None;
                what
            }
        };
        if deadline.left().is_zero() {
            let message = format!("the rollout of {place} was not done in time: {what}");
            return Err(Error::new(Exit::Deadline, "rollout-timeout", message)
                .hint("running the same command again goes on waiting; --timeout sets the time"));
        }
        talk.status(&what, &deadline.time());
        tokio::time::sleep(LOOK_AGAIN.min(deadline.left())).await;
    }
}

async fn look(cluster: &Cluster, workload: &Workload) -> Result<(Workload, Rollout), Refused> {
    let now = install::again(cluster, workload).await?;
    if let Some(why) = rollout::obstacle(&now) {
        return Ok((now, Rollout::Never(why)));
    }
    let pods = install::pods(cluster, &now).await?;
    let state = rollout::judge(&now, &pods);
    Ok((now, state))
}

/// What a container that does not start said last.
async fn last_words(cluster: &Cluster, pod: &str, container: Option<&str>) -> String {
    let Some(container) = container else { return String::new() };
    for part in [Part::LastWords, Part::Tail] {
        // Without a log there are no words: an image that cannot be pulled has none.
        let log = install::log(cluster, pod, container, part).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<_> = text.lines().collect();
        if !lines.is_empty() {
            return format!("; its last log lines:\n  {}", lines[lines.len().saturating_sub(10)..].join("\n  "));
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_restart_within_one_second_is_another() {
        let (first, began) = (patch(), Instant::now());
        while began.elapsed() < Duration::from_millis(2) {}
        assert_ne!(patch(), first);
    }
}
