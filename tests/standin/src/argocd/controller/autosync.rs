//! Whether a comparison starts a sync by itself (argo-cd v3.5.1 controller/appcontroller.go, `autoSync`).

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{compare::Comparison, is_multi_source, need::single_source};

/// What to do about a comparison.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// There is no automated sync.
    Off,
    /// Nothing, for this reason.
    Skip(String),
    /// Nothing yet, for this reason; look again after so long.
    Later(String, Duration),
    /// Nothing, and the condition `SyncError` says so.
    Error(String),
    /// Start this operation.
    Start(Value),
}

/// Whether automated sync is on.
pub fn is_on(app: &Value) -> bool {
    let automated = &app["spec"]["syncPolicy"]["automated"];
    automated.is_object() && automated["enabled"] != false
}

/// Decides about `app`, which has just been compared.
pub fn decide(app: &Value, comparison: &Comparison, self_heal_s: i64, now: Timestamp) -> Decision {
    let skip = |reason: &str| Decision::Skip(format!("Skipping auto-sync: {reason}"));
    if !is_on(app) {
        return Decision::Off;
    }
    if app["operation"].is_object() {
        return skip("another operation is in progress");
    }
    if app["metadata"]["deletionTimestamp"].is_string() {
        return skip("deletion in progress");
    }
    let status = comparison.sync["status"].as_str().unwrap_or_default();
    if status != "OutOfSync" {
        return skip(&format!("application status is {status}"));
    }
    let policy = &app["spec"]["syncPolicy"];
    let prune = policy["automated"]["prune"] == true;
    let out_of_sync: Vec<_> = comparison.managed.iter().filter(|one| !one.is_synced()).collect();
    if !prune && out_of_sync.iter().all(|one| one.target.is_none()) {
        return skip("need to prune extra resources only but automated prune is disabled");
    }
    let desired = format!("[{}]", comparison.revisions.join(" "));
    let mut operation = operation(app, comparison, prune);
    if let Some((last, phase)) = attempted(app, comparison) {
        let state = &app["status"]["operationState"];
        if phase != "Succeeded" {
            let message = state["message"].as_str().unwrap_or_default();
            return Decision::Error(format!("Failed last sync attempt to {last}: {message}"));
        }
        if policy["automated"]["selfHeal"] != true {
            return skip(&format!("most recent sync already to {desired}"));
        }
        let attempts = state["operation"]["sync"]["autoHealAttemptsCount"].as_u64().unwrap_or(0);
        let remaining = self_heal_pause(attempts, self_heal_s, state, now);
        if !remaining.is_zero() {
            let reason = format!("Skipping auto-sync: already attempted sync to {last} (retrying in {remaining:?})");
            return Decision::Later(reason, remaining);
        }
        let resources: Vec<Value> = out_of_sync
            .iter()
            .map(|one| json!({"kind": one.identity.kind, "group": one.identity.group, "name": one.identity.name}))
            .collect();
        operation["sync"]["autoHealAttemptsCount"] = json!(attempts + 1);
        operation["sync"]["resources"] = json!(resources);
    }
    let all_gone = comparison.managed.iter().all(|one| one.target.is_none());
    if prune && policy["automated"]["allowEmpty"] != true && all_gone {
        let message = format!("Skipping sync attempt to {desired}: auto-sync will wipe out all resources");
        return Decision::Error(message);
    }
    Decision::Start(operation)
}

fn operation(app: &Value, comparison: &Comparison, prune: bool) -> Value {
    let spec = &app["spec"];
    let mut sync = json!({});
    if prune {
        sync["prune"] = json!(true);
    }
    if is_multi_source(spec) {
        sync["revisions"] = json!(comparison.revisions);
        sync["sources"] = spec["sources"].clone();
    } else {
        sync["revision"] = json!(comparison.revisions[0]);
    }
    if spec["syncPolicy"]["syncOptions"].is_array() {
        sync["syncOptions"] = spec["syncPolicy"]["syncOptions"].clone();
    }
    let retry = match &spec["syncPolicy"]["retry"] {
        Value::Null => json!({"limit": 5}),
        own => own.clone(),
    };
    json!({"initiatedBy": {"automated": true}, "retry": retry, "sync": sync})
}

/// The revisions and the phase of the last operation, if it was for the revisions and sources of this comparison.
fn attempted(app: &Value, comparison: &Comparison) -> Option<(String, String)> {
    let state = &app["status"]["operationState"];
    let phase = state["phase"].as_str()?.to_owned();
    let result = &state["syncResult"];
    if result.is_null() {
        return matches!(phase.as_str(), "Failed" | "Error" | "Succeeded").then_some(("[]".into(), phase));
    }
    let spec = &app["spec"];
    let same = if is_multi_source(spec) {
        result["revisions"] == json!(comparison.revisions) && result["sources"] == spec["sources"]
    } else {
        result["revision"] == json!(comparison.revisions[0]) && result["source"] == single_source(spec)
    };
    same.then(|| (format!("[{}]", comparison.revisions.join(" ")), phase))
}

/// How long to wait before healing once more: nothing before the first time, then 2 s, tripled each time, at most
/// 300 s; a fixed pause in older versions.
fn self_heal_pause(attempts: u64, first_s: i64, state: &Value, now: Timestamp) -> Duration {
    let finished = state["finishedAt"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let Some(finished) = finished else { return Duration::ZERO };
    let pause_s = match (first_s, attempts) {
        (5, _) => 5.0,
        (_, 0) => 0.0,
        (first, attempts) => (first as f64 * 3_f64.powi(attempts as i32 - 1)).min(300.0),
    };
    let passed_s = now.duration_since(finished).as_secs_f64();
    Duration::from_secs_f64((pause_s - passed_s).max(0.0))
}
