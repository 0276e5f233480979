//! Operations: `operation` is requested, `status.operationState` says how it goes (argo-cd v3.5.1
//! controller/appcontroller.go, `processRequestedAppOperation`).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    Level,
    app::App,
    compare,
    patch::{APPLICATIONS, apply},
    rfc3339,
    sync::{End, TERMINATED},
};
use crate::argocd::{duration, manifests::Identity, version::Version};

/// With it, deleting an Application deletes its objects; more may follow (`/background`).
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

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
            End { phase: "Failed", message: TERMINATED.into() }
        } else {
            self.sync(&app, &mut state).await
        };
        let terminated = end.message == TERMINATED;
        self.finish(&app, state, end, terminated);
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
            self.ask_later(Duration::ZERO, Some(level_after(self.controller.version, automated)));
        }
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
}

/// The refresh after an operation, by version.
fn level_after(version: Version, automated: bool) -> Level {
    // v3.3.0 is the one release of its line that had not taken it over.
    let by_initiator = version.since(&[(3, 2, 7), (3, 3, 1)]);
    if !version.at_least(2, 12) || (by_initiator && automated) { Level::Latest } else { Level::ForceResolve }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_at_after_a_sync_depends_on_version_and_initiator() {
        let levels = |tag| {
            let version = Version::of_tag(tag);
            (level_after(version, true), level_after(version, false))
        };
        let (cached, forced) = (Level::Latest, Level::ForceResolve);
        for (tag, expected) in [
            ("v2.11.0", (cached, cached)),
            ("v2.12.0", (forced, forced)),
            ("v3.2.6", (forced, forced)),
            ("v3.2.7", (cached, forced)),
            ("v3.3.0", (forced, forced)),
            ("v3.3.1", (cached, forced)),
            ("v3.5.1", (cached, forced)),
        ] {
            assert_eq!(levels(tag), expected, "{tag}");
        }
    }

    #[test]
    fn the_pause_between_attempts_doubles_up_to_its_limit() {
        let seconds = |policy: &Value, retries| backoff(policy, retries).as_secs();
        assert_eq!([0, 1, 2, 9].map(|retries| seconds(&Value::Null, retries)), [5, 10, 20, 180]);
        let policy = json!({"duration": "1s", "factor": 3, "maxDuration": "4s"});
        assert_eq!([0, 1, 2].map(|retries| seconds(&policy, retries)), [1, 3, 4]);
    }
}
