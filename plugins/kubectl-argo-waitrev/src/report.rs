//! What is printed: the keys that this command adds to the record.

use std::time::Duration;

use kit::moment::Moment;
use serde_json::{Map, Value, json};

use crate::{
    account::Account,
    group::Group,
    outcome::{End, Outcome},
    rules::Rules,
};

/// The keys of this command. An earlier run may have left them in the record, and what ended another command is not
/// what ended this one.
const OURS: [&str; 26] = [
    "app",
    "namespace",
    "revision_before",
    "revision",
    "sync_status",
    "health_status",
    "operation_phase",
    "outcome",
    "synced_at",
    "synced_at_ms",
    "waited_ms",
    "refresh_requested",
    "checked_at",
    "checked_at_ms",
    "revision_at_check",
    "moved",
    "reason",
    "flips",
    "watch_restarts",
    "watch_gaps",
    "polled",
    "results",
    "trace",
    "trigger",
    "trigger_reason",
    "error",
];

/// What the run as a whole saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    /// How often the watch ended other than agreed.
    pub watch_restarts: u32,
    /// How often a fresh list had to close a gap.
    pub watch_gaps: u32,
    /// Applications were looked at from time to time, because watching is not allowed.
    pub polled: bool,
}

/// The record without what an earlier command said about its end.
pub fn clean(mut record: Map<String, Value>) -> Map<String, Value> {
    record.retain(|key, _| !OURS.contains(&key.as_str()));
    record
}

/// Adds the keys of this command to the record. One named Application has them at the top; several have `results`. Takes
/// the accounts, since there is no need to have thousands of them twice.
pub fn add(object: &mut Map<String, Value>, group: Group, rules: &Rules, course: Course, single: bool) {
    let outcome = group.outcome();
    let mut accounts = group.accounts.into_values();
    if !single {
        object.insert("outcome".into(), json!(outcome.word()));
        object.insert("results".into(), accounts.map(|account| result(&account, rules)).collect());
    } else if let Some(account) = accounts.next() {
        one(object, &account, rules);
    }
    object.insert("watch_restarts".into(), json!(course.watch_restarts));
    object.insert("watch_gaps".into(), json!(course.watch_gaps));
    object.insert("polled".into(), json!(course.polled));
}

/// The keys of one of several Applications, with an error of its own.
fn result(account: &Account, rules: &Rules) -> Value {
    let mut result = Map::new();
    one(&mut result, account, rules);
    if let Some((End { error: Some(error), .. }, _)) = &account.end {
        result.insert("error".into(), error.to_json());
    }
    Value::Object(result)
}

fn one(object: &mut Map<String, Value>, account: &Account, rules: &Rules) {
    let status = account.view.as_ref().map(|view| &view.status);
    let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map_or(Value::Null, |text| json!(text));
    let operation = status.and_then(|status| status.operation_state.as_ref()).map(|state| state.phase.as_str());
    let (outcome, at) = account.end.as_ref().map_or((Outcome::Pending, rules.start), |(end, at)| (end.outcome, *at));
    let revision = account.revision(rules);
    object.insert("app".into(), json!(account.name.name));
    object.insert("namespace".into(), json!(account.name.namespace));
    object.insert("revision_before".into(), json!(account.revision_before));
    object.insert("revision".into(), json!(revision));
    object.insert("sync_status".into(), text(status.map(|status| status.sync.status.as_str())));
    object.insert("health_status".into(), text(status.map(|status| status.health.status.as_str())));
    object.insert("operation_phase".into(), text(operation));
    object.insert("outcome".into(), json!(outcome.word()));
    if let Some(met) = &account.met {
        met.at.wall.stamp(object, "synced");
    }
    let waited = at.elapsed.saturating_sub(rules.start.elapsed);
    object.insert("waited_ms".into(), json!(ms(waited)));
    object.insert("refresh_requested".into(), json!(account.refresh_requested));
    if rules.hold.is_some() {
        at.wall.stamp(object, "checked");
        object.insert("revision_at_check".into(), json!(revision));
        object.insert("moved".into(), json!(outcome == Outcome::Moved));
    }
    if rules.stable.is_some() {
        object.insert("flips".into(), json!(account.flips));
    }
    if let Some(judgement) = &account.judgement {
        object.insert("reason".into(), serde_json::to_value(judgement.reason).unwrap_or_default());
    }
    if rules.hold.is_none() && (rules.pushed_at.is_some() || rules.sent_at.is_some()) {
        account.trace.add(object, rules);
    }
}

/// Whole milliseconds.
pub fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The moment that the record has under `<name>_at_ms`, else under `<name>_at`.
pub fn moment(record: &kit::record::Record, name: &str) -> Option<Moment> {
    let exact = record.number(&format!("{name}_at_ms"));
    exact
        .or_else(|| record.number(&format!("{name}_at")).map(|seconds| seconds.saturating_mul(1000)))
        .map(Moment::from_ms)
}
