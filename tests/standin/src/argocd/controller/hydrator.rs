//! The source hydrator: what is in Git "dry" is rendered, committed to another branch, and synced from there (argo-cd
//! v3.5.1 controller/hydrator/hydrator.go). It runs with `hydrator.enabled` only.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{HYDRATE, REFRESH, app::App, need::single_source, patch, rfc3339};
use crate::argocd::{repo_server::Source, settings::bool_setting};

/// How long a failed hydration is left alone.
const COOLDOWN_S: i64 = 120;

impl App {
    /// Hydrates the Application if its dry source has moved, or somebody asks.
    pub(super) async fn hydrate(&mut self) {
        let controller = self.controller.clone();
        if !bool_setting(&controller.process, "hydrator-enabled", "ARGOCD_HYDRATOR_ENABLED") {
            return;
        }
        let Some(app) = self.object().filter(|app| app["spec"]["sourceHydrator"].is_object()) else { return };
        let requested = app["metadata"]["annotations"][HYDRATE].as_str();
        let dry = Source::of(&app["spec"]["sourceHydrator"]["drySource"]);
        let (install, repo) = (&controller.process.namespace, &controller.argo.repo);
        let status = &app["status"]["sourceHydrator"];
        let resolved = repo.resolve(install, &dry, &dry.target_revision, requested.is_some()).await;
        let mut new = if status.is_object() { status.clone() } else { json!({}) };
        let needs = needs_hydration(&app, resolved.as_deref().ok(), controller.now());
        if let (Ok(revision), true) = (&resolved, controller.version.at_least(3, 5)) {
            new["lastComparedDryRevision"] = json!(revision);
        }
        if !needs {
            self.persist_hydration(&app, &new);
            return;
        }
        self.info(&app, "Hydrating app");
        let started = rfc3339(controller.now());
        new["currentOperation"] = json!({
            "message": "",
            "phase": "Hydrating",
            "sourceHydrator": app["spec"]["sourceHydrator"],
            "startedAt": started,
        });
        self.persist_hydration(&app, &new);
        let Some(hydrating) = self.object() else { return };
        let pushed = match &resolved {
            Ok(dry_sha) => self.push_hydrated(&app, &dry, dry_sha).await.map(|hydrated| (dry_sha.clone(), hydrated)),
            Err(error) => Err(format!("failed to get manifests: {error}")),
        };
        let operation = &mut new["currentOperation"];
        operation["finishedAt"] = json!(rfc3339(controller.now()));
        if let Ok(dry_sha) = &resolved {
            operation["drySHA"] = json!(dry_sha);
        }
        match pushed {
            Ok((dry_sha, hydrated_sha)) => {
                operation["phase"] = json!("Hydrated");
                operation["hydratedSHA"] = json!(hydrated_sha);
                new["lastSuccessfulOperation"] = json!({
                    "drySHA": dry_sha,
                    "hydratedSHA": hydrated_sha,
                    "sourceHydrator": app["spec"]["sourceHydrator"],
                });
                self.persist_hydration(&hydrating, &new);
                let ask = json!({"metadata": {"annotations": {REFRESH: "normal"}}});
                patch::apply(&controller.argo.cluster.store, &self.namespace, &self.name, &ask);
            }
            Err(error) => {
                operation["phase"] = json!("Failed");
                operation["message"] = json!(format!("Failed to hydrate: {error}"));
                self.persist_hydration(&hydrating, &new);
            }
        }
    }

    /// Renders the dry source and commits it to the branch that is synced from; returns that commit.
    async fn push_hydrated(&self, app: &Value, dry: &Source, dry_sha: &str) -> Result<String, String> {
        let controller = &self.controller;
        let (install, repo) = (&controller.process.namespace, &controller.argo.repo);
        let last = &app["status"]["sourceHydrator"]["lastSuccessfulOperation"];
        if let (true, Some(hydrated)) = (last["drySHA"] == dry_sha, last["hydratedSHA"].as_str()) {
            return Ok(hydrated.into());
        }
        let application = format!("{}/{} dry", self.namespace, self.name);
        let manifests = repo
            .manifests(install, &application, dry, dry_sha, true)
            .await
            .map_err(|error| format!("failed to get manifests: {error}"))?;
        let mut yaml = String::new();
        for object in manifests.objects.iter() {
            yaml.push_str("---\n");
            yaml.push_str(&serde_yaml_ng::to_string(object).map_err(|error| error.to_string())?);
        }
        let hydrator = &app["spec"]["sourceHydrator"];
        let mut target = Source::of(&single_source(&app["spec"]));
        if let Some(branch) = hydrator["hydrateTo"]["targetBranch"].as_str() {
            target.target_revision = branch.into();
        }
        let metadata = json!({"repoURL": dry.repo_url, "drySha": dry_sha}).to_string();
        let folder = target.path.trim_matches('/');
        let folder = if matches!(folder, "" | ".") { String::new() } else { format!("{folder}/") };
        let mut files =
            vec![(format!("{folder}manifest.yaml"), yaml), ("hydrator.metadata".to_owned(), metadata.clone())];
        if !folder.is_empty() {
            files.push((format!("{folder}hydrator.metadata"), metadata));
        }
        let message = format!("{}: hydrated", dry_sha.get(..7).unwrap_or(dry_sha));
        let pushed = repo.commit(install, &target, &message, &files).await;
        pushed.map_err(|error| format!("failed to commit hydrated manifests: {error}"))
    }

    /// Writes `status.sourceHydrator`, which takes the annotation that asked for it away, and up to v3.4 the one that
    /// asks for a refresh with it.
    fn persist_hydration(&self, original: &Value, new: &Value) {
        let old = &original["status"]["sourceHydrator"];
        let old = if old.is_object() { old.clone() } else { json!({}) };
        let mut patch = json!({});
        if let Some(difference) = patch::difference(&old, new) {
            patch["status"]["sourceHydrator"] = difference;
        }
        let both = [HYDRATE, REFRESH];
        let removed = if self.controller.version.at_least(3, 5) { &both[..1] } else { &both[..] };
        // Before v3.5 nothing is written where nothing has to be hydrated.
        let writes = self.controller.version.at_least(3, 5) || patch != json!({});
        for name in removed.iter().filter(|_| writes) {
            if original["metadata"]["annotations"][name].is_string() {
                patch["metadata"]["annotations"][name] = Value::Null;
            }
        }
        if patch != json!({}) {
            patch::apply(&self.controller.argo.cluster.store, &self.namespace, &self.name, &patch);
        }
    }
}

/// Whether to hydrate; `resolved` is where the dry source is now.
fn needs_hydration(app: &Value, resolved: Option<&str>, now: Timestamp) -> bool {
    let status = &app["status"]["sourceHydrator"];
    let current = &status["currentOperation"];
    let requested = app["metadata"]["annotations"][HYDRATE].as_str();
    if current.is_null() || current["sourceHydrator"] != app["spec"]["sourceHydrator"] || requested == Some("hard") {
        return true;
    }
    if current["phase"] == "Failed" && requested.is_none() {
        let finished = current["finishedAt"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
        if finished.is_some_and(|at| now.duration_since(at).as_secs() > COOLDOWN_S) {
            return true;
        }
    }
    let compared = status["lastComparedDryRevision"].as_str();
    let known = compared.or(current["drySHA"].as_str()).or(status["lastSuccessfulOperation"]["drySHA"].as_str());
    resolved.is_some() && resolved != known || (current["phase"] == "Failed" && requested.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_hydrated_when_its_dry_source_moves_or_somebody_asks() {
        let hydrator = json!({"drySource": {"repoURL": "u"}});
        let app = |phase: &str, asked: Option<&str>| {
            json!({
                "metadata": {"annotations": asked.map(|kind| json!({HYDRATE: kind}))},
                "spec": {"sourceHydrator": hydrator},
                "status": {"sourceHydrator": {
                    "currentOperation": {"phase": phase, "sourceHydrator": hydrator, "drySHA": "a",
                                         "finishedAt": "2026-08-12T09:30:00Z"},
                    "lastComparedDryRevision": "a",
                }},
            })
        };
        let needs =
            |app: &Value, resolved: Option<&str>, now: &str| needs_hydration(app, resolved, now.parse().unwrap());
        let (soon, later) = ("2026-08-12T09:31:00Z", "2026-08-12T09:32:01Z");
        let hydrated = app("Hydrated", None);
        assert!(!needs(&hydrated, Some("a"), later) && !needs(&hydrated, None, later));
        assert!(needs(&hydrated, Some("b"), soon));
        assert!(!needs(&app("Hydrated", Some("normal")), Some("a"), soon));
        assert!(needs(&app("Hydrated", Some("hard")), Some("a"), soon));
        let failed = app("Failed", None);
        assert!(
            !needs(&failed, Some("a"), soon) && needs(&failed, Some("a"), later) && needs(&failed, Some("b"), soon)
        );
        assert!(needs(&app("Failed", Some("normal")), Some("a"), soon));
        let mut other = app("Hydrated", None);
        other["spec"]["sourceHydrator"]["drySource"]["path"] = json!("x");
        assert!(needs(&other, Some("a"), soon));
    }
}
