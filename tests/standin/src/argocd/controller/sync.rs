//! What a sync operation does: resolve, apply, prune, and the entry in the history (argo-cd v3.5.1 controller/sync.go).

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    app::App,
    compare::{self, Target},
    is_multi_source, live,
    live::Managed,
    patch::apply,
    rfc3339, single_source,
};

/// The message of an operation that somebody terminated.
pub const TERMINATED: &str = "Operation terminated";

/// How a sync ended.
pub struct End {
    /// `phase`.
    pub phase: &'static str,
    /// `message`.
    pub message: String,
}

impl End {
    /// The operation could not be carried out.
    fn error(message: impl Into<String>) -> End {
        End { phase: "Error", message: message.into() }
    }
}

impl App {
    /// Carries out `state.operation.sync`, and puts what became of it into `state.syncResult`.
    pub(super) async fn sync(&mut self, app: &Value, state: &mut Value) -> End {
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
        if self.is_terminated_within(controller.argo.cluster.faults.argo.sync_delay()).await {
            return End { phase: "Failed", message: TERMINATED.into() };
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

    /// Lets `time` pass, unless somebody terminates the operation meanwhile.
    async fn is_terminated_within(&self, time: Duration) -> bool {
        let mut newest = self.controller.argo.cluster.store.newest();
        let terminated = async {
            loop {
                let phase = self.object().map(|app| app["status"]["operationState"]["phase"].clone());
                if phase.is_some_and(|phase| phase == "Terminating") || newest.changed().await.is_err() {
                    return;
                }
            }
        };
        !time.is_zero() && tokio::time::timeout(time, terminated).await.is_ok()
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
