//! How far a rollout is. Pure.
//!
//! Stricter than `kubectl rollout status` (kubectl pkg/polymorphichelpers/rollout_status.go), which ends before old pods
//! are gone, and never says why a StatefulSet does not become ready.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::workload::{Kind, Workload};

/// The annotation of the pod template by which `kubectl rollout restart` makes a new one.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// Reasons for which a container that waits does not start by itself.
const STUCK: [&str; 7] = [
    "CrashLoopBackOff",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// How far a rollout is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// All pods are new and ready, and no other is left.
    Done,
    /// Not yet, and why.
    Waiting(String),
    /// Not, as long as this pod fails for this reason.
    Failing {
        /// The pod's name.
        pod: String,
        /// The container that fails, when it is one.
        container: Option<String>,
        /// The pod's own words.
        reason: String,
    },
    /// It will never be, unless somebody changes the workload.
    Never(String),
}

/// Why a restart of this workload would not replace its pods, if that is so.
pub fn obstacle(workload: &Workload) -> Option<String> {
    if workload.paused {
        return Some(format!("{workload} is paused: nothing rolls out until it is resumed"));
    }
    if workload.on_delete {
        return Some(format!("{workload} has the update strategy OnDelete: its pods stay until somebody deletes them"));
    }
    (workload.partition > 0 && workload.replicas > 0).then(|| {
        format!(
            "{workload} has an update partition of {}: the pods below it keep what they run with",
            workload.partition
        )
    })
}

/// Judges a workload and all its pods, terminating ones included.
pub fn judge(workload: &Workload, pods: &[Pod]) -> Rollout {
    let status = &workload.status;
    let generation = workload.meta.generation.unwrap_or_default();
    if status.observed_generation == 0 || status.observed_generation < generation {
        return Rollout::Waiting(format!("{workload}: the change is not seen yet"));
    }
    if let Some(message) = &status.deadline_exceeded {
        return Rollout::Never(format!("{workload} made no progress in time (ProgressDeadlineExceeded): {message}"));
    }
    let (new, old): (Vec<&Pod>, Vec<&Pod>) = pods.iter().partition(|pod| is_new(workload, pod));
    if let Some((pod, (container, reason))) = new.iter().find_map(|pod| Some((pod, trouble(pod)?))) {
        return Rollout::Failing { pod: name(pod), container, reason };
    }
    let wanted = workload.replicas;
    // A StatefulSet replaces no pod while another is not ready, also when the new template would repair it.
    let held_up = old.iter().filter(|_| workload.kind == Kind::StatefulSet).find_map(|pod| {
        let (_, reason) = trouble(pod)?;
        Some(format!("; {} holds up the others: {reason}", name(pod)))
    });
    let held_up = held_up.unwrap_or_default();
    let waiting =
        |what: &str, now: i32| Rollout::Waiting(format!("{workload}: {now} of {wanted} pods {what}{held_up}"));
    if status.updated < wanted {
        return waiting("updated", status.updated);
    }
    if status.ready < wanted {
        return waiting("ready", status.ready);
    }
    let revisions = &status.revisions;
    match workload.kind {
        Kind::Deployment if status.available < status.updated => return waiting("available", status.available),
        // With a partition they stay different; `obstacle` has said so.
        Kind::StatefulSet if workload.partition == 0 && revisions.0 != revisions.1 => {
            return Rollout::Waiting(format!("{workload}: revision {} is not current yet", revisions.1));
        }
        _ => {}
    }
    if status.replicas > status.updated || !old.is_empty() {
        let names: Vec<_> = old.iter().map(|pod| name(pod)).collect();
        return Rollout::Waiting(format!("{workload}: old pods are still there: {}", names.join(", ")));
    }
    let found = i32::try_from(new.len()).unwrap_or(i32::MAX);
    if found < wanted { waiting("found", found) } else { Rollout::Done }
}

/// Whether a pod was made from the template as it is, and stays: pods carry the annotations of their template.
fn is_new(workload: &Workload, pod: &Pod) -> bool {
    let restarted = |annotations: Option<&std::collections::BTreeMap<String, String>>| {
        annotations.and_then(|all| all.get(RESTARTED_AT)).cloned()
    };
    let template = workload.template.metadata.as_ref().and_then(|meta| meta.annotations.as_ref());
    let revision = pod.metadata.labels.as_ref().and_then(|labels| labels.get("controller-revision-hash"));
    let other_revision =
        workload.kind == Kind::StatefulSet && revision.is_some_and(|revision| *revision != workload.status.revisions.1);
    pod.metadata.deletion_timestamp.is_none()
        && !other_revision
        && restarted(template) == restarted(pod.metadata.annotations.as_ref())
}

/// Which container of a pod does not start, and why, in the pod's own words; `None` while it may still.
fn trouble(pod: &Pod) -> Option<(Option<String>, String)> {
    let status = pod.status.as_ref()?;
    let unschedulable =
        status.conditions.iter().flatten().find(|condition| {
            condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable")
        });
    if let Some(condition) = unschedulable {
        let message = condition.message.as_deref().unwrap_or("no node takes it");
        return Some((None, format!("Unschedulable: {message}")));
    }
    status.init_container_statuses.iter().chain(&status.container_statuses).flatten().find_map(stuck)
}

fn stuck(container: &ContainerStatus) -> Option<(Option<String>, String)> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| STUCK.contains(reason))?;
    let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let exit = last.map(|last| {
        let why = last.reason.as_deref().filter(|why| *why != "Error").map(|why| format!(" ({why})"));
        format!(", last exit code {}{}", last.exit_code, why.unwrap_or_default())
    });
    let exit = exit.unwrap_or_default();
    let message = waiting.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    Some((Some(container.name.clone()), format!("container {} {reason}{exit}{message}", container.name)))
}

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
    use serde_json::{Value, json};

    fn merged(mut base: Value, change: Value) -> Value {
        let (Some(base_map), Value::Object(change_map)) = (base.as_object_mut(), &change) else { return change };
        for (key, value) in change_map {
            let old = base_map.remove(key).unwrap_or_default();
            base_map.insert(key.clone(), merged(old, value.clone()));
        }
        base
    }

    fn stateful(change: Value) -> Workload {
        let base = json!({
            "metadata": {"name": "c", "generation": 2},
            "spec": {"replicas": 1, "template": {"metadata": {"annotations": {RESTARTED_AT: "new"}}}},
            "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
                       "currentRevision": "c-2", "updateRevision": "c-2"},
        });
        serde_json::from_value::<StatefulSet>(merged(base, change)).unwrap().into()
    }

    fn deployment(change: Value) -> Workload {
        let base = json!({
            "metadata": {"name": "r", "generation": 2},
            "spec": {"replicas": 1, "template": {"metadata": {"annotations": {RESTARTED_AT: "new"}}}},
            "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
                       "availableReplicas": 1},
        });
        serde_json::from_value::<Deployment>(merged(base, change)).unwrap().into()
    }

    fn pod(name: &str, restarted_at: &str, change: Value) -> Pod {
        let base = json!({"metadata": {"name": name, "annotations": {RESTARTED_AT: restarted_at}}});
        serde_json::from_value(merged(base, change)).unwrap()
    }

    fn new_pod() -> Pod {
        pod("p", "new", json!({}))
    }

    #[test]
    fn both_kinds_are_done_when_all_pods_are_new_and_ready() {
        assert_eq!(judge(&stateful(json!({})), &[new_pod()]), Rollout::Done);
        assert_eq!(judge(&deployment(json!({})), &[new_pod()]), Rollout::Done);
        let none =
            json!({"spec": {"replicas": 0}, "status": {"replicas": 0, "updatedReplicas": 0, "readyReplicas": 0}});
        assert_eq!(judge(&stateful(none), &[]), Rollout::Done);
    }

    #[test]
    fn each_sign_of_an_unfinished_rollout_is_waited_for() {
        let terminating = pod("p", "new", json!({"metadata": {"deletionTimestamp": "2026-08-12T09:30:00Z"}}));
        let of_old_revision = pod("p", "new", json!({"metadata": {"labels": {"controller-revision-hash": "c-1"}}}));
        for (workload, pods, expected) in [
            (stateful(json!({"metadata": {"generation": 3}})), vec![new_pod()], "not seen yet"),
            (stateful(json!({"status": {"observedGeneration": null}})), vec![new_pod()], "not seen yet"),
            (stateful(json!({"status": {"updatedReplicas": 0}})), vec![new_pod()], "0 of 1 pods updated"),
            (stateful(json!({"status": {"readyReplicas": 0}})), vec![new_pod()], "0 of 1 pods ready"),
            (stateful(json!({"status": {"currentRevision": "c-1"}})), vec![new_pod()], "c-2 is not current yet"),
            (stateful(json!({})), vec![of_old_revision], "old pods are still there: p"),
            (stateful(json!({})), vec![], "0 of 1 pods found"),
            (deployment(json!({"status": {"availableReplicas": 0}})), vec![new_pod()], "0 of 1 pods available"),
            (deployment(json!({"status": {"replicas": 2}})), vec![new_pod()], "old pods are still there"),
            (deployment(json!({})), vec![new_pod(), terminating], "old pods are still there: p"),
            (deployment(json!({})), vec![pod("o", "old", json!({}))], "old pods are still there: o"),
        ] {
            let Rollout::Waiting(why) = judge(&workload, &pods) else { panic!("{expected}: not waited for") };
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn a_new_pod_that_fails_is_named_with_its_reason_and_an_old_one_is_not() {
        let crash = json!({"status": {"containerStatuses": [{"name": "main", "state": {"waiting":
            {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}, "lastState": {"terminated": {"exitCode": 20}}}]}});
        let waiting = deployment(json!({"status": {"readyReplicas": 0}}));
        assert_eq!(
            judge(&waiting, &[pod("p", "new", crash.clone())]),
            Rollout::Failing {
                pod: "p".into(),
                container: Some("main".into()),
                reason: "container main CrashLoopBackOff, last exit code 20: back-off 10s".into()
            }
        );
        assert!(matches!(judge(&waiting, &[pod("p", "old", crash)]), Rollout::Waiting(_)));
        let unschedulable = json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/3 nodes are available"}]}});
        let Rollout::Failing { reason, .. } = judge(&waiting, &[pod("p", "new", unschedulable)]) else { panic!() };
        assert_eq!(reason, "Unschedulable: 0/3 nodes are available");
        let creating = json!({"status": {"containerStatuses": [{"name": "main", "state": {"waiting":
            {"reason": "ContainerCreating"}}}]}});
        assert!(matches!(judge(&waiting, &[pod("p", "new", creating)]), Rollout::Waiting(_)));
    }

    #[test]
    fn an_old_pod_that_holds_up_a_statefulset_is_named() {
        let oom = json!({"status": {"containerStatuses": [{"name": "main", "state": {"waiting":
            {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}});
        let waiting = json!({"status": {"updatedReplicas": 0, "readyReplicas": 0}});
        let Rollout::Waiting(why) = judge(&stateful(waiting), &[pod("c-0", "old", oom)]) else { panic!() };
        assert!(
            why.contains("c-0 holds up the others: container main CrashLoopBackOff, last exit code 137 (OOMKilled)")
        );
    }

    #[test]
    fn a_deployment_past_its_deadline_will_never_be_done() {
        let stuck = deployment(json!({"status": {"conditions": [{"type": "Progressing", "status": "False",
            "reason": "ProgressDeadlineExceeded", "message": "has timed out"}]}}));
        assert!(matches!(judge(&stuck, &[]), Rollout::Never(why) if why.contains("has timed out")));
    }

    #[test]
    fn workloads_that_a_restart_does_not_replace_are_known() {
        for (workload, expected) in [
            (deployment(json!({"spec": {"paused": true}})), Some("paused")),
            (stateful(json!({"spec": {"updateStrategy": {"type": "OnDelete"}}})), Some("OnDelete")),
            (
                stateful(json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}})),
                Some("partition of 1"),
            ),
            (stateful(json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})), None),
        ] {
            let found = obstacle(&workload);
            assert_eq!(found.is_some(), expected.is_some());
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
