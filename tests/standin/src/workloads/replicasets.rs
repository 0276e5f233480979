//! ReplicaSets: as many pods as asked for.

use serde_json::json;
use tokio::time::Instant;

use super::{is_ready, is_terminating, number, orphaned, owned, place, pod, set_status, terminate};
use crate::{Cluster, names};

/// One look at all ReplicaSets.
pub(super) fn reconcile(cluster: &Cluster) -> Option<Instant> {
    let store = &cluster.store;
    for set in store.list("replicasets.apps", None).0 {
        let (namespace, name) = place(&set);
        if orphaned(store, &set) {
            // Gone already is as good as removed.
            let _ = store.delete("replicasets.apps", namespace, name);
            continue;
        }
        // A pod that terminates counts no more (kubernetes pkg/controller/replicaset/replica_set.go).
        let mut pods = owned(store, "pods", &set);
        pods.retain(|pod| !is_terminating(pod));
        let wanted = usize::try_from(number(&set["spec"]["replicas"])).unwrap_or(0);
        for _ in pods.len()..wanted {
            let suffix = names::suffix(*store.newest().borrow(), 5);
            let hash = set["metadata"]["labels"]["pod-template-hash"].as_str().unwrap_or_default();
            let pod = pod(&set, &set["spec"]["template"], &format!("{name}-{suffix}"), &[("pod-template-hash", hash)]);
            // The suffix differs from one version of the store to the next, so the name is free.
            let _ = store.create("pods", pod);
        }
        // Those that are not ready go first.
        pods.sort_by_key(|pod| is_ready(pod));
        for pod in pods.iter().take(pods.len().saturating_sub(wanted)) {
            terminate(store, pod);
        }
        let mut pods = owned(store, "pods", &set);
        pods.retain(|pod| !is_terminating(pod));
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        let status = json!({
            "replicas": pods.len(), "fullyLabeledReplicas": pods.len(), "readyReplicas": ready,
            "availableReplicas": ready, "observedGeneration": set["metadata"]["generation"],
        });
        set_status(store, "replicasets.apps", &set, status);
    }
    None
}
