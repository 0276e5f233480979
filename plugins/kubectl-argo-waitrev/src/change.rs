//! The lines of `--stream`: one for each change that matters.

use kit::application::AppName;
use serde_json::{Map, Value, json};

use crate::{account::Account, clock::At, rules::Rules};

/// What of an Application is worth a line when it changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    revision: Option<String>,
    sync_status: Option<String>,
    health_status: Option<String>,
    operation_phase: Option<String>,
    refresh: Option<String>,
    error: Option<String>,
    outcome: Option<&'static str>,
}

impl State {
    /// The state of an account; nothing at all before the first look.
    pub fn of(account: Option<&Account>, rules: &Rules) -> State {
        let Some((account, view)) = account.and_then(|account| Some((account, account.view.as_ref()?))) else {
            return State::default();
        };
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let condition = view.error_condition();
        State {
            revision: account.revision(rules),
            sync_status: text(&view.status.sync.status),
            health_status: text(&view.status.health.status),
            operation_phase: view.status.operation_state.as_ref().and_then(|state| text(&state.phase)),
            refresh: view.refresh().map(str::to_owned),
            error: condition.map(|condition| format!("{}: {}", condition.kind, condition.message)),
            outcome: account.end.as_ref().map(|(end, _)| end.outcome.word()),
        }
    }

    /// The line that says what is different from `before`, if anything is.
    pub fn line(&self, before: &State, name: &AppName, at: At) -> Option<Value> {
        let now = self.fields();
        let changed: Vec<&str> = now
            .iter()
            .zip(before.fields())
            .filter(|(now, before)| **now != *before)
            .map(|((key, _), _)| *key)
            .collect();
        if changed.is_empty() {
            return None;
        }
        let mut line = Map::new();
        line.insert("type".into(), json!("change"));
        at.wall.stamp(&mut line, "seen");
        line.insert("app".into(), json!(name.name));
        line.insert("namespace".into(), json!(name.namespace));
        line.insert("changed".into(), json!(changed));
        line.extend(now.into_iter().map(|(key, value)| (key.to_owned(), json!(value))));
        Some(Value::Object(line))
    }

    fn fields(&self) -> [(&'static str, Option<&str>); 7] {
        [
            ("revision", self.revision.as_deref()),
            ("sync_status", self.sync_status.as_deref()),
            ("health_status", self.health_status.as_deref()),
            ("operation_phase", self.operation_phase.as_deref()),
            ("refresh", self.refresh.as_deref()),
            ("error_condition", self.error.as_deref()),
            ("outcome", self.outcome),
        ]
    }
}
