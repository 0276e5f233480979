//! One comparison: what is in Git, what is in the cluster, and what the status will say about it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    Level,
    app::App,
    conditions::Condition,
    is_multi_source,
    live::{self, Managed},
    need::{Refresh, single_source},
};
use crate::argocd::{manifests::Identity, repo_server::Source};

/// What the status will say.
pub struct Comparison {
    /// `status.sync`.
    pub sync: Value,
    /// `status.health.status`.
    pub health: &'static str,
    /// `status.resources`.
    pub resources: Value,
    /// `status.sourceType`, or the array of `status.sourceTypes`.
    pub source_types: Value,
    /// The conditions that a comparison sets.
    pub conditions: Vec<Condition>,
    /// The resolved revisions, one for each source.
    pub revisions: Vec<String>,
    /// Every object.
    pub managed: Vec<Managed>,
}

/// What is in Git.
pub struct Target {
    /// The revisions of the sources, as the answers named them.
    pub revisions: Vec<String>,
    /// The objects of all sources.
    pub objects: Vec<Value>,
    /// The kinds of the sources.
    pub source_types: Vec<&'static str>,
}

/// The sources of an Application, in the order of `status.sync.revisions`.
pub fn sources(spec: &Value) -> Vec<Value> {
    if is_multi_source(spec) {
        return spec["sources"].as_array().cloned().unwrap_or_default();
    }
    vec![single_source(spec)]
}

/// Compares an Application; `None` for a repo error within its grace period, of which nothing is written.
pub async fn compare(task: &mut App, app: &Value, refresh: &Refresh) -> Option<Comparison> {
    let (spec, sync) = (&app["spec"], &app["status"]["sync"]);
    let many = is_multi_source(spec);
    let sources = sources(spec);
    let place = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let destination = (place(&spec["destination"]["server"]), place(&spec["destination"]["namespace"]));
    task.info(app, &format!("Comparing app state (cluster: {}, namespace: {})", destination.0, destination.1));
    let mut wanted: Vec<String> = sources.iter().map(|source| place(&source["targetRevision"])).collect();
    if refresh.level == Level::Recent {
        let recorded: Vec<String> = match sync["revisions"].as_array().filter(|_| many) {
            Some(revisions) => revisions.iter().map(place).collect(),
            None => vec![place(&sync["revision"])],
        };
        if recorded.len() == wanted.len() {
            // An empty one is looked up again.
            for (wanted, recorded) in wanted.iter_mut().zip(recorded).filter(|(_, recorded)| !recorded.is_empty()) {
                *wanted = recorded;
            }
        }
    }
    let force = refresh.level == Level::ForceResolve;
    let target = target(task, &sources, &wanted, force, refresh.hard).await;
    let mut conditions = Vec::new();
    let mut compared_to = json!({"destination": spec["destination"]});
    if many {
        compared_to["sources"] = spec["sources"].clone();
    } else {
        compared_to["source"] = sources[0].clone();
    }
    if !spec["ignoreDifferences"].is_null() {
        compared_to["ignoreDifferences"] = spec["ignoreDifferences"].clone();
    }
    let mut new_sync = json!({"comparedTo": compared_to, "status": "Unknown"});
    let target = match target {
        Ok(target) => {
            task.repo_error_since = None;
            target
        }
        Err(error) => {
            if !force && is_within_grace(task) {
                return None;
            }
            conditions.push(("ComparisonError", format!("Failed to load target state: {error}")));
            if !many && !wanted[0].is_empty() {
                // The name that could not be resolved.
                new_sync["revision"] = json!(wanted[0]);
            }
            let resources = unknown(&app["status"]["resources"]);
            let source_types = if many { json!([]) } else { json!("") };
            return Some(Comparison {
                sync: new_sync,
                health: health_of(task, "Healthy"),
                resources,
                source_types,
                conditions,
                revisions: wanted,
                managed: Vec::new(),
            });
        }
    };
    let managed = pair(task, app, &target.objects);
    let synced = managed.iter().all(Managed::is_synced);
    new_sync["status"] = json!(if synced { "Synced" } else { "OutOfSync" });
    if many {
        new_sync["revisions"] = json!(target.revisions);
    } else {
        new_sync["revision"] = json!(target.revisions[0]);
    }
    Some(Comparison {
        sync: new_sync,
        health: health_of(task, live::health(&managed)),
        resources: managed.iter().map(Managed::status).collect(),
        source_types: if many { json!(target.source_types) } else { json!(target.source_types[0]) },
        conditions,
        revisions: target.revisions,
        managed,
    })
}

/// Pairs the objects of Git with the live ones, and has the controller watch where they are.
pub fn pair(task: &App, app: &Value, objects: &[Value]) -> Vec<Managed> {
    let controller = &task.controller;
    let known: Vec<Identity> = app["status"]["resources"]
        .as_array()
        .map(|resources| resources.iter().map(Identity::of_status).collect())
        .unwrap_or_default();
    let name = controller.instance_name(&task.namespace, &task.name);
    let namespace = app["spec"]["destination"]["namespace"].as_str().unwrap_or_default();
    let managed = live::pair(&controller.argo.cluster.store, objects, &known, &name, namespace, controller.version);
    let mut watched = controller.watched.lock().expect("no thread panics while it holds the names");
    watched.extend(managed.iter().map(|one| one.identity.resource()));
    managed
}

/// Resolves the sources and reads their manifests.
///
/// # Errors
/// As `status.conditions` will have it.
pub async fn target(
    task: &App,
    sources: &[Value],
    wanted: &[String],
    force: bool,
    hard: bool,
) -> Result<Target, String> {
    let controller = &task.controller;
    let (install, repo) = (&controller.process.namespace, &controller.argo.repo);
    let application = format!("{}/{}", task.namespace, task.name);
    let mut target = Target { revisions: Vec::new(), objects: Vec::new(), source_types: Vec::new() };
    if let Some(error) = controller.argo.cluster.faults.argo.repo_error() {
        return Err(format!("rpc error: code = Unknown desc = {error}"));
    }
    for (index, (source, wanted)) in sources.iter().zip(wanted).enumerate() {
        let source = Source::of(source);
        let resolved = repo.resolve(install, &source, wanted, force || hard).await;
        let manifests = match resolved {
            Ok(revision) => repo.manifests(install, &application, &source, &revision, !hard).await,
            Err(error) => Err(error),
        };
        let place = format!("for source {} of {}", index + 1, sources.len());
        let manifests = manifests.map_err(|error| format!("failed to generate manifest {place}: {error}"))?;
        target.revisions.push(manifests.revision);
        target.objects.extend(manifests.objects.iter().cloned());
        target.source_types.push(if source.chart.is_some() { "Helm" } else { "Directory" });
    }
    Ok(target)
}

/// The first errors of a scheduled comparison are kept quiet for a while (since v2.10).
fn is_within_grace(task: &mut App) -> bool {
    let grace = Duration::from_secs(task.controller.settings.repo_error_grace_s.unsigned_abs());
    if !task.controller.version.at_least(2, 10) {
        return false;
    }
    match task.repo_error_since {
        None => {
            task.repo_error_since = Some(Instant::now());
            true
        }
        Some(since) => since.elapsed() <= grace,
    }
}

fn health_of(task: &App, found: &'static str) -> &'static str {
    task.controller.argo.cluster.faults.argo.health_of(&task.namespace, &task.name).unwrap_or(found)
}

fn unknown(resources: &Value) -> Value {
    let mut resources = resources.clone();
    for resource in resources.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default() {
        resource["status"] = json!("Unknown");
    }
    if resources.is_null() { json!([]) } else { resources }
}
