//! Sync operations: `operation` is requested, `status.operationState` says how it goes, `status.history` what came of
//! it (argo-cd v3.5.1 controller/appcontroller.go, `processRequestedAppOperation`, and controller/sync.go).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    Level,
    app::App,
    compare::{self, Target},
    is_multi_source, live,
    live::Managed,
    patch::{APPLICATIONS, apply},
    rfc3339, single_source,
};
use crate::argocd::{duration, manifests::Identity};

/// With it, deleting an Application deletes its objects; more may follow (`/background`).
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// How a sync ended.
struct End {
    phase: &'static str,
    message: String,
}

impl End {
    fn error(message: impl Into<String>) -> End {
        End { phase: "Error", message: message.into() }
    }
}

impl App {
    /// Carries out the operation that is requested, if one is.
    pub(super) async fn operate(&mut self) {
        let Some(app) = self.object() else { return };
        if app["metadata"]["deletionTimestamp"].is_string() {
            self.delete(&app);
            return;
        }
        if !app["operation"].is_object() {
            return;
        }
        let controller = self.controller.clone();
        let mut state = app["status"]["operationState"].clone();
        let phase = state["phase"].as_str().unwrap_or_default().to_owned();
        let resumes = matches!(phase.as_str(), "Running" | "Terminating");
        if !resumes {
            let operation = app["operation"].clone();
            state = json!({
                "message": "",
                "operation": operation,
                "phase": "Running",
                "startedAt": rfc3339(controller.now()),
            });
            self.set_state(&app, &state);
            self.info(&app, &format!("Initialized new operation: {operation}"));
        } else if let Some(wait) = self.time_to_retry(&state) {
            self.info(&app, "Skipping retrying in-progress operation.");
            self.ask_later(wait, Some(Level::Latest));
            return;
        } else if state["finishedAt"].is_string() {
            let message = format!("Retrying operation. Attempt #{}", state["retryCount"]);
            self.info(&app, &message);
            state["message"] = json!(message);
            for field in ["finishedAt", "syncResult"] {
                state[field] = Value::Null;
            }
            self.set_state(&app, &state);
        }
        let end = if phase == "Terminating" {
            End { phase: "Failed", message: "Operation terminated".into() }
        } else {
            self.sync(&app, &mut state).await
        };
        self.finish(&app, state, end, phase == "Terminating");
    }

    /// With the finalizer, the objects of an Application go before it does.
    fn delete(&self, app: &Value) {
        let store = &self.controller.argo.cluster.store;
        let finalizers = app["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let is_ours = |one: &Value| one.as_str().is_some_and(|one| one.starts_with(FINALIZER));
        if !finalizers.iter().any(is_ours) {
            return;
        }
        for one in compare::pair(self, app, &[]) {
            let Identity { namespace, name, .. } = &one.identity;
            let _ = store.delete(&one.identity.resource(), namespace, name);
        }
        let left: Vec<&Value> = finalizers.iter().filter(|one| !is_ours(one)).collect();
        if left.is_empty() {
            let _ = store.delete(APPLICATIONS, &self.namespace, &self.name);
        } else {
            apply(store, &self.namespace, &self.name, &json!({"metadata": {"finalizers": left}}));
        }
        self.info(app, "Successfully deleted resources");
    }

    fn finish(&mut self, app: &Value, mut state: Value, end: End, terminated: bool) {
        let now = self.controller.now();
        let retries = state["retryCount"].as_i64().unwrap_or(0);
        let limit = state["operation"]["retry"]["limit"].as_i64().unwrap_or(0);
        state["phase"] = json!(end.phase);
        state["message"] = json!(end.message);
        state["finishedAt"] = json!(rfc3339(now));
        if end.phase != "Succeeded" && !terminated && (retries < limit || limit < 0) {
            let wait = backoff(&state["operation"]["retry"]["backoff"], retries);
            let at = now.checked_add(SignedDuration::try_from(wait).unwrap_or_default()).unwrap_or(now);
            state["phase"] = json!("Running");
            state["retryCount"] = json!(retries + 1);
            let at = at.strftime("%-I:%M%p");
            state["message"] = json!(format!("{}. Retrying attempt #{} at {at}.", end.message, retries + 1));
            self.set_state(app, &state);
            return;
        }
        if end.phase != "Succeeded" && retries > 0 {
            state["message"] = json!(format!("{} (retried {retries} times).", end.message));
        }
        self.set_state(app, &state);
        if state["operation"]["sync"]["dryRun"] != true {
            let automated = state["operation"]["initiatedBy"]["automated"] == true;
            self.ask_later(Duration::ZERO, Some(self.level_after(automated)));
        }
    }

    /// The refresh after an operation, by version.
    fn level_after(&self, automated: bool) -> Level {
        let version = self.controller.version;
        if !version.at_least(2, 12) {
            return Level::Latest;
        }
        // v3.3.0 is the one release of its line that had not taken it over.
        let by_initiator = version.since(&[(3, 2, 7), (3, 3, 1)]);
        if by_initiator && automated { Level::Latest } else { Level::ForceResolve }
    }

    fn set_state(&self, app: &Value, state: &Value) {
        let mut patch = json!({"status": {"operationState": state}});
        if !state["finishedAt"].is_string() {
            // One that an earlier operation left behind.
            patch["status"]["operationState"]["finishedAt"] = Value::Null;
        }
        let phase = state["phase"].as_str().unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed" | "Error") {
            patch["operation"] = Value::Null;
        }
        apply(&self.controller.argo.cluster.store, &self.namespace, &self.name, &patch);
        self.info(app, &format!("updated '{}/{}' operation (phase: {phase})", self.namespace, self.name));
    }

    /// How long a failed operation still waits for its next attempt.
    fn time_to_retry(&self, state: &Value) -> Option<Duration> {
        let finished: Timestamp = state["finishedAt"].as_str()?.parse().ok()?;
        let retries = state["retryCount"].as_i64().unwrap_or(1);
        let wait = backoff(&state["operation"]["retry"]["backoff"], retries - 1);
        let passed = Duration::try_from(self.controller.now().duration_since(finished)).unwrap_or_default();
        wait.checked_sub(passed).filter(|left| !left.is_zero())
    }

    async fn sync(&mut self, app: &Value, state: &mut Value) -> End {
        let controller = self.controller.clone();
        let sync = state["operation"]["sync"].clone();
        if !sync.is_object() {
            return End::error("Invalid operation request: no operation specified");
        }
        let spec = &app["spec"];
        let many = is_multi_source(spec);
        let sources = match (&sync["sources"], &sync["source"]) {
            (Value::Array(sources), _) if !sources.is_empty() => sources.clone(),
            (_, source @ Value::Object(_)) => vec![source.clone()],
            _ => compare::sources(spec),
        };
        let asked: Vec<Value> = match (&sync["revisions"], &sync["revision"]) {
            (Value::Array(revisions), _) => revisions.clone(),
            (_, revision @ Value::String(_)) => vec![revision.clone()],
            _ => Vec::new(),
        };
        let wanted: Vec<String> = sources
            .iter()
            .enumerate()
            .map(|(index, source)| {
                let asked = asked.get(index).and_then(Value::as_str).filter(|text| !text.is_empty());
                asked.or(source["targetRevision"].as_str()).unwrap_or_default().to_owned()
            })
            .collect();
        let target = match compare::target(self, &sources, &wanted, true, false).await {
            Ok(target) => target,
            Err(error) => return End::error(format!("ComparisonError: Failed to load target state: {error}")),
        };
        state["syncResult"] = if many {
            json!({"resources": [], "revision": "", "revisions": target.revisions, "source": {"repoURL": ""},
                   "sources": sources})
        } else {
            json!({"resources": [], "revision": target.revisions[0], "source": sources[0]})
        };
        let takes = controller.argo.cluster.faults.argo.sync_delay();
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        if let Some(message) = controller.argo.cluster.faults.argo.sync_error() {
            let reason = format!("one or more objects failed to apply, reason: {message}");
            return End { phase: "Failed", message: reason };
        }
        let managed = compare::pair(self, app, &target.objects);
        let selected: Vec<&Managed> = managed.iter().filter(|one| is_selected(one, &sync["resources"])).collect();
        let (results, failure) = self.write(app, &sync, &selected);
        state["syncResult"]["resources"] = json!(results);
        if let Some(reason) = failure {
            return End { phase: "Failed", message: format!("one or more objects failed to apply, reason: {reason}") };
        }
        let partial = sync["resources"].as_array().is_some_and(|resources| !resources.is_empty());
        if sync["dryRun"] != true && !partial {
            self.add_history(app, &target, &sources, state);
        }
        End { phase: "Succeeded", message: "successfully synced (all tasks run)".into() }
    }

    /// Applies and prunes; what became of each object, and the first failure.
    fn write(&self, app: &Value, sync: &Value, selected: &[&Managed]) -> (Vec<Value>, Option<String>) {
        let store = &self.controller.argo.cluster.store;
        let dry = sync["dryRun"] == true;
        let namespace = app["spec"]["destination"]["namespace"].as_str().unwrap_or_default();
        let options = sync["syncOptions"].as_array().map_or(&[][..], Vec::as_slice);
        let creates = options.iter().any(|option| option == "CreateNamespace=true");
        if creates && !dry && !namespace.is_empty() {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
                                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
            // It may be there.
            let _ = store.create("namespaces", object);
        }
        let (mut results, mut failure) = (Vec::new(), None);
        for one in selected {
            let identity = &one.identity;
            let prunes = one.target.is_none();
            let (status, message) = if prunes && sync["prune"] != true {
                ("PruneSkipped", "ignored (requires pruning)".to_owned())
            } else if dry {
                ("Synced", format!("{} configured (dry run)", identity.short()))
            } else if prunes {
                let _ = store.delete(&identity.resource(), &identity.namespace, &identity.name);
                ("Pruned", "pruned".to_owned())
            } else {
                match live::apply(store, one) {
                    Ok(message) => ("Synced", message),
                    Err(message) => {
                        failure.get_or_insert_with(|| message.clone());
                        ("SyncFailed", message)
                    }
                }
            };
            results.push(json!({
                "group": identity.group,
                "hookPhase": if status == "SyncFailed" { "Failed" } else { "Running" },
                "kind": identity.kind,
                "message": message,
                "name": identity.name,
                "namespace": identity.namespace,
                "status": status,
                "syncPhase": "Sync",
                "version": identity.version,
            }));
        }
        (results, failure)
    }

    /// The entry of a full sync, in a patch of its own before the operation is complete.
    fn add_history(&self, app: &Value, target: &Target, sources: &[Value], state: &Value) {
        let controller = &self.controller;
        let mut history = app["status"]["history"].as_array().cloned().unwrap_or_default();
        let id = history.last().and_then(|last| last["id"].as_i64()).map_or(0, |last| last + 1);
        let mut entry = json!({
            "deployStartedAt": state["startedAt"],
            "deployedAt": rfc3339(controller.now()),
            "id": id,
        });
        if controller.version.at_least(2, 11) {
            entry["initiatedBy"] = match &state["operation"]["initiatedBy"] {
                Value::Null => json!({}),
                own => own.clone(),
            };
        }
        if is_multi_source(&app["spec"]) {
            entry["revisions"] = json!(target.revisions);
            entry["sources"] = json!(sources);
        } else {
            entry["revision"] = json!(target.revisions[0]);
            entry["source"] = single_source(&app["spec"]);
        }
        history.push(entry);
        let limit = app["spec"]["revisionHistoryLimit"].as_u64().unwrap_or(10) as usize;
        let dropped = history.len().saturating_sub(limit);
        history.drain(..dropped);
        let patch = json!({"status": {"history": history}});
        apply(&controller.argo.cluster.store, &self.namespace, &self.name, &patch);
    }
}

fn is_selected(managed: &Managed, resources: &Value) -> bool {
    let Some(resources) = resources.as_array().filter(|resources| !resources.is_empty()) else { return true };
    let identity = &managed.identity;
    resources.iter().any(|one| {
        let group = one["group"].as_str().unwrap_or_default();
        one["kind"] == identity.kind.as_str() && one["name"] == identity.name.as_str() && group == identity.group
    })
}

/// The pause before attempt `retries` + 1: 5 s, doubled each time, at most 3 minutes, unless the policy says otherwise.
fn backoff(policy: &Value, retries: i64) -> Duration {
    let read = |field: &str, default_s: i64| {
        let ns = policy[field].as_str().and_then(duration::parse_go).unwrap_or(default_s * duration::SECOND_NS);
        Duration::from_nanos(ns.max(0).unsigned_abs())
    };
    let factor = policy["factor"].as_f64().unwrap_or(2.0);
    let wait = read("duration", 5).as_secs_f64() * factor.powi(retries.max(0) as i32);
    Duration::from_secs_f64(wait.min(read("maxDuration", 180).as_secs_f64()))
}
