//! An Application, read into only the fields that the wait looks at.
//!
//! Field names: argo-cd v3.5.1 pkg/apis/application/v1alpha1/types.go. Everything may be missing or null, and what is
//! unknown is ignored: the wait must not depend on the release that wrote the object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::application::AppName;
use serde::{Deserialize, Deserializer};

/// One version of an Application.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct View {
    /// Names and annotations.
    #[serde(deserialize_with = "or_default")]
    pub metadata: Metadata,
    /// What is asked for.
    #[serde(deserialize_with = "or_default")]
    pub spec: Spec,
    /// What the controller found.
    #[serde(deserialize_with = "or_default")]
    pub status: Status,
    /// The sync operation that is requested or running; gone in the same patch that completes it.
    pub operation: Option<Box<Operation>>,
}

impl View {
    /// Its name.
    pub fn name(&self) -> AppName {
        AppName { namespace: self.metadata.namespace.clone(), name: self.metadata.name.clone() }
    }

    /// Whether a refresh is requested; any value of the annotation counts, an empty one too.
    pub fn refresh(&self) -> Option<&str> {
        self.metadata.annotations.refresh.as_deref()
    }

    /// The condition that says that the Application could not be compared, if there is one.
    pub fn error_condition(&self) -> Option<&Condition> {
        const KINDS: [&str; 3] = ["InvalidSpecError", "UnknownError", "ComparisonError"];
        KINDS.iter().find_map(|kind| self.status.conditions.iter().find(|condition| condition.kind == *kind))
    }

    /// The newest entry of the history; ids only grow.
    pub fn newest_history_id(&self) -> Option<i64> {
        self.status.history.iter().map(|entry| entry.id).max()
    }

    /// Forgets all of the history but the newest id, which is what a later version is held against.
    pub fn forget_history(&mut self) {
        let newest = self.newest_history_id();
        self.status.history.retain(|entry| Some(entry.id) == newest);
        self.status.history.shrink_to_fit();
    }

    /// When the last comparison began, in UNIX ms: whole seconds of the controller's clock.
    pub fn reconciled_at_ms(&self) -> Option<i64> {
        self.status.reconciled_at.as_ref().map(|time| time.0.as_millisecond())
    }

    /// Whether a new commit is synced without anybody asking.
    pub fn auto_sync(&self) -> bool {
        self.spec.sync_policy.automated.as_ref().is_some_and(|automated| automated.enabled != Some(false))
    }
}

/// `metadata`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its own namespace.
    pub namespace: String,
    /// Changes when it is deleted and made again.
    pub uid: String,
    /// The version of the object.
    pub resource_version: String,
    /// Set while finalizers still run.
    pub deletion_timestamp: Option<Time>,
    /// The annotations that matter.
    #[serde(deserialize_with = "or_default")]
    pub annotations: Annotations,
}

/// The annotations that matter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// A refresh is requested.
    #[serde(rename = "argocd.argoproj.io/refresh")]
    pub refresh: Option<String>,
    /// Only changes under these paths matter.
    #[serde(rename = "argocd.argoproj.io/manifest-generate-paths")]
    pub manifest_generate_paths: Option<String>,
    /// The controller leaves the Application alone when this is true.
    #[serde(rename = "argocd.argoproj.io/skip-reconcile")]
    pub skip_reconcile: Option<String>,
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spec {
    /// The AppProject.
    pub project: String,
    /// The one source; ignored when `sources` is not empty.
    pub source: Option<Source>,
    /// Several sources.
    #[serde(deserialize_with = "or_default")]
    pub sources: Vec<Source>,
    /// Dry source and hydrated branch; the Application is then not multi-source.
    pub source_hydrator: Option<Box<Hydrator>>,
    /// Whether syncs happen by themselves.
    #[serde(deserialize_with = "or_default")]
    pub sync_policy: SyncPolicy,
    /// Where it is deployed.
    #[serde(deserialize_with = "or_default")]
    pub destination: Destination,
}

/// `spec.destination`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Destination {
    /// URL of the cluster.
    pub server: String,
    /// Name of the cluster.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}

/// One source.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Source {
    /// Where it is read from.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// What is followed.
    pub target_revision: String,
    /// The folder.
    pub path: String,
    /// Set for a Helm chart from a chart repository; its revision is the chart's version.
    pub chart: String,
    /// The name under which other sources refer to this one.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The name of the source (since v2.14).
    pub name: String,
}

impl Source {
    /// Whether its revision is a commit: not that of a chart and not that of an OCI image.
    pub fn is_git(&self) -> bool {
        self.chart.is_empty() && !self.repo_url.to_ascii_lowercase().starts_with("oci://")
    }
}

/// `spec.sourceHydrator`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Hydrator {
    /// Where the dry manifests are.
    #[serde(deserialize_with = "or_default")]
    pub dry_source: Source,
    /// Where the hydrated ones are; `repoURL` since v3.5, before that the dry source's.
    #[serde(deserialize_with = "or_default")]
    pub sync_source: Source,
}

/// `spec.syncPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SyncPolicy {
    /// Present when auto-sync is on.
    pub automated: Option<Automated>,
}

/// `spec.syncPolicy.automated`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Automated {
    /// `false` turns it off (since v3.1).
    pub enabled: Option<bool>,
}

/// `status`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    /// The last comparison.
    #[serde(deserialize_with = "or_default")]
    pub sync: Sync,
    /// The health of what runs.
    #[serde(deserialize_with = "or_default")]
    pub health: Health,
    /// The last or running operation.
    pub operation_state: Option<Box<OperationState>>,
    /// When the last comparison began.
    pub reconciled_at: Option<Time>,
    /// What is wrong.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// Successful full syncs.
    #[serde(deserialize_with = "or_default")]
    pub history: Vec<History>,
    /// The namespace of the Argo CD that owns it.
    pub controller_namespace: String,
    /// What the hydrator did.
    #[serde(deserialize_with = "or_default")]
    pub source_hydrator: HydratorStatus,
}

/// `status.sync`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sync {
    /// `Synced`, `OutOfSync`, `Unknown`; empty before the first comparison.
    pub status: String,
    /// The revision compared: a commit, a chart version, or an unresolved name after a comparison error. Absent for
    /// several sources.
    pub revision: Option<String>,
    /// The same for each of several sources, in the order of `spec.sources`.
    #[serde(deserialize_with = "or_default")]
    pub revisions: Vec<String>,
    /// The spec that was compared.
    #[serde(deserialize_with = "or_default")]
    pub compared_to: ComparedTo,
}

/// `status.sync.comparedTo`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ComparedTo {
    /// The one source.
    pub source: Option<ComparedSource>,
    /// Several sources.
    #[serde(deserialize_with = "or_default")]
    pub sources: Vec<ComparedSource>,
}

/// A source that was compared.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ComparedSource {
    /// Where it was read from.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
}

/// `status.health`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Health {
    /// `Healthy`, `Progressing`, `Degraded`, `Suspended`, `Missing`, `Unknown`.
    pub status: String,
}

/// `status.operationState`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OperationState {
    /// `Running`, `Terminating`, `Succeeded`, `Failed`, `Error`.
    pub phase: String,
    /// What the controller says about it.
    pub message: String,
    /// When it began.
    pub started_at: Option<Time>,
    /// When it ended; with `Running`, when the last attempt ended: a retry follows.
    pub finished_at: Option<Time>,
    /// What was asked for.
    #[serde(deserialize_with = "or_default")]
    pub operation: Operation,
    /// What was applied.
    pub sync_result: Option<SyncResult>,
}

/// `operation` and `status.operationState.operation`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// A sync.
    #[serde(deserialize_with = "or_default")]
    pub sync: SyncOperation,
}

/// `operation.sync`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SyncOperation {
    /// The revision asked for, when one was.
    pub revision: Option<String>,
    /// The same for several sources.
    #[serde(deserialize_with = "or_default")]
    pub revisions: Vec<String>,
    /// Nothing is applied.
    pub dry_run: bool,
    /// Only these resources are synced; self-heal and partial syncs.
    #[serde(deserialize_with = "or_default")]
    pub resources: Vec<serde::de::IgnoredAny>,
}

/// `status.operationState.syncResult`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SyncResult {
    /// What was applied.
    pub revision: Option<String>,
    /// The same for several sources.
    #[serde(deserialize_with = "or_default")]
    pub revisions: Vec<String>,
}

/// An entry of `status.conditions`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// `ComparisonError` and so on.
    #[serde(rename = "type")]
    pub kind: String,
    /// Argo CD's own words.
    pub message: String,
    /// When it last changed.
    pub last_transition_time: Option<Time>,
}

/// An entry of `status.history`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct History {
    /// Grows by one.
    pub id: i64,
    /// What was deployed.
    pub revision: Option<String>,
    /// The same for several sources.
    #[serde(deserialize_with = "or_default")]
    pub revisions: Vec<String>,
}

/// `status.sourceHydrator`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HydratorStatus {
    /// The running or last hydration.
    pub current_operation: Option<Hydration>,
    /// The last one that worked.
    pub last_successful_operation: Option<Hydration>,
    /// The dry commit looked at last; moves even when nothing had to be hydrated (since v3.5).
    pub last_compared_dry_revision: Option<String>,
}

/// A hydration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Hydration {
    /// `Hydrating`, `Hydrated`, `Failed`.
    pub phase: String,
    /// Why it failed.
    pub message: String,
    /// The commit of the dry manifests.
    #[serde(rename = "drySHA")]
    pub dry_sha: Option<String>,
    /// The commit that was made from it.
    #[serde(rename = "hydratedSHA")]
    pub hydrated_sha: Option<String>,
}

/// Null is the same as missing.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_null_missing_or_unknown_is_no_error() {
        for text in [
            "{}",
            r#"{"metadata":null,"spec":null,"status":null,"operation":null}"#,
            r#"{"status":{"sync":null,"health":null,"operationState":null,"conditions":null,"history":null,"x":[1]}}"#,
            r#"{"spec":{"sources":null,"syncPolicy":{"automated":{}}},"status":{"sync":{"revisions":null,"comparedTo":{}}}}"#,
        ] {
            let view: View = serde_json::from_str(text).unwrap();
            assert_eq!(view.status.sync.revision, None, "{text}");
        }
    }

    #[test]
    fn auto_sync_can_be_there_and_off() {
        let of = |policy: &str| {
            serde_json::from_str::<View>(&format!(r#"{{"spec":{{"syncPolicy":{policy}}}}}"#)).unwrap().auto_sync()
        };
        assert!(of(r#"{"automated":{}}"#) && of(r#"{"automated":{"enabled":true}}"#));
        assert!(!of(r#"{"automated":{"enabled":false}}"#) && !of(r#"{"automated":null}"#) && !of("null"));
    }
}
