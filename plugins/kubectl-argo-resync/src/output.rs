//! The object that the command prints.

use k8s_openapi::jiff::Timestamp;
use kit::{command::Report, error::Error, exit::Exit, moment::Moment};
use serde_json::{Map, Value, json};

use crate::{
    answer::REFRESH,
    expected::Expected,
    install::Install,
    job::Job,
    load,
    observe::{ControllerPod, RepoServerPod},
    origin::{self, CONFIG, JITTER, PERIOD, REF_AGE, Setting},
    restart,
    workload::Component,
};

/// What was done and found, and how it ended.
pub fn report(job: &Job<'_>, result: Result<(), Error>) -> Report {
    let done = &job.done;
    let outcome = match &result {
        Ok(()) if !job.args.changes() && !job.args.refreshes() => "report",
        Ok(()) if done.written => "changed",
        Ok(()) if !done.restarted.is_empty() => "restarted",
        Ok(()) if !done.refreshed.is_empty() && !job.args.changes() => "refreshed",
        Ok(()) => "unchanged",
        Err(_) if done.rolled_back == Some(true) => "rolled-back",
        Err(error) => match error.exit {
            Exit::Deadline => "timeout",
            Exit::Interrupted | Exit::Terminated => "interrupted",
            _ => "failed",
        },
    };
    let object = object(job, outcome);
    match result {
        Ok(()) => Report::done(object),
        Err(error) => Report::failed(object, error),
    }
}

/// The patches that would be made, in their order.
pub fn dry_run(job: &Job<'_>) -> Report {
    let namespace = &job.cluster.namespace;
    let mut patches = Vec::new();
    if job.change.is_change() {
        patches.push(json!({"resource": "configmaps", "namespace": namespace, "name": CONFIG, "type": "merge",
            "patch": job.change.patch()}));
    }
    for component in &job.restarts {
        let workload = job.install.workload(*component);
        patches.push(json!({"resource": workload.kind.resource(), "namespace": namespace, "name": workload.name(),
            "type": "merge", "patch": restart::patch()}));
    }
    for target in &job.targets.all {
        patches.push(json!({"resource": "applications.argoproj.io", "namespace": target.app.namespace,
            "name": target.app.name, "type": "merge",
            "patch": {"metadata": {"annotations": {REFRESH: target.kind()}}}}));
    }
    let mut object = object(job, "dry-run");
    object.insert("patches".into(), json!(patches));
    Report::done(object)
}

fn object(job: &Job<'_>, outcome: &str) -> Map<String, Value> {
    let done = &job.done;
    let Expected { period_s, jitter_s, ref_age_s } = job.expected;
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| {
        object.insert(key.into(), value);
    };
    put("outcome", json!(outcome));
    put("version", json!(job.version.to_string()));
    put("period", json!(job.install.value(PERIOD.key)));
    put("jitter", json!(job.install.value(JITTER.key)));
    put("previous", job.change.previous());
    put("managed_by", json!(origin::owner(&job.install.config.metadata)));
    put("workloads", workloads(&job.install, &done.restarted));
    put("controllers", controllers(&job.controllers));
    put("repo_servers", repo_servers(&job.repo_servers));
    put("next_restart", json!({"period_s": period_s, "jitter_s": jitter_s, "ref_age_s": ref_age_s}));
    put("drift", json!(job.drift()));
    put("worst_case_s", json!(worst_case_s(job)));
    if let Some(load) = &done.load {
        put("load", load.clone());
    }
    if let Some(rolled_back) = done.rolled_back {
        put("rolled_back", json!(rolled_back));
    }
    put("refreshed", done.refreshed.iter().map(|one| one.entry.clone()).collect());
    if !job.targets.skipped.is_empty() {
        let entry = |(app, why): &(kit::application::AppName, String)| json!({"app": app.name, "namespace": app.namespace, "why": why});
        put("skipped", job.targets.skipped.iter().map(entry).collect());
    }
    put("warnings", json!(job.warnings));
    job.started.stamp(&mut object, "started");
    Moment::now().stamp(&mut object, "done");
    object
}

/// By what the pods run with where that is known, else by what they would after a restart.
fn worst_case_s(job: &Job<'_>) -> Option<u64> {
    let mut worst = job.expected;
    let controllers: Option<Vec<_>> =
        job.controllers.iter().map(|pod| Some((pod.proof.period_s?, pod.proof.jitter_s))).collect();
    if let Some(known) = controllers.filter(|known| !known.is_empty()) {
        // 0 is never.
        worst.period_s =
            known.iter().map(|(period_s, _)| *period_s).max_by_key(|period_s| period_s.wrapping_sub(1)).unwrap_or(0);
        worst.jitter_s = known.iter().filter_map(|(_, jitter_s)| *jitter_s).max();
    }
    let repo_servers: Option<Vec<_>> = job.repo_servers.iter().map(|pod| pod.ref_age_s).collect();
    if let Some(oldest) = repo_servers.and_then(|ages| ages.into_iter().max()) {
        worst.ref_age_s = oldest;
    }
    load::worst_case_s(worst.period_s, worst.jitter_s, worst.ref_age_s)
}

/// `workloads[]`.
fn workloads(install: &Install, restarted: &[Component]) -> Value {
    let entries = [Component::RepoServer, Component::Controller].map(|component| {
        let workload = install.workload(component);
        let container = workload.container(component);
        let from = |setting: Setting| container.map(|container| origin::of(container, setting).to_string());
        let mut entry = json!({
            "component": component.to_string(),
            "kind": workload.kind.word(),
            "name": workload.name(),
            "container": container.map(|container| &container.name),
            "replicas": workload.replicas,
            "restarted": restarted.contains(&component),
        });
        match component {
            Component::Controller => {
                entry["period_from"] = json!(from(PERIOD));
                entry["jitter_from"] = json!(from(JITTER));
            }
            Component::RepoServer => entry["ref_age_from"] = json!(from(REF_AGE)),
        }
        entry
    });
    json!(entries)
}

/// `controllers[]`.
fn controllers(pods: &[ControllerPod]) -> Value {
    let entry = |pod: &ControllerPod| {
        json!({
            "pod": pod.name,
            "line": pod.line.as_ref().map(|line| String::from_utf8_lossy(&line.bytes)),
            "period_s": pod.proof.period_s,
            "jitter_s": pod.proof.jitter_s,
            "proof": pod.proof.kind.word(),
            "how": pod.proof.how,
            "ignored": pod.ignored,
            "started_at": pod.started_at.map(Timestamp::as_second),
        })
    };
    pods.iter().map(entry).collect()
}

/// `repo_servers[]`.
fn repo_servers(pods: &[RepoServerPod]) -> Value {
    let entry = |pod: &RepoServerPod| {
        json!({
            "pod": pod.name,
            "ref_age_s": pod.ref_age_s,
            "proof": pod.kind.word(),
            "how": pod.how,
            "ignored": pod.ignored,
            "started_at": pod.started_at.map(Timestamp::as_second),
        })
    };
    pods.iter().map(entry).collect()
}
