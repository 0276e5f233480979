//! Measures what one run costs: 10,000 Applications with one selector, and how late `synced_at_ms` is.
//!
//! `cargo bench -p kubectl-argo-waitrev`; Linux only, since peak memory is read from `/proc`.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed measurement")]

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use standin::{Options, Standin};

const APPLICATIONS: &str = "applications.argoproj.io";
const COUNT: usize = 10_000;
const SAMPLES: usize = 200;

fn main() {
    let standin = Standin::with(Options { controllers: 0, repo_servers: 0, servers: 0, ..Options::default() });
    lateness(&standin);
    crowd(&standin);
}

/// One change at a time, each after the one before it was reported.
fn lateness(standin: &Standin) {
    for number in 0..SAMPLES {
        standin.store().create(APPLICATIONS, application("late", number)).unwrap();
    }
    let mut child = start(standin, "late", &["--stream"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..SAMPLES {
        lines.next().unwrap().unwrap();
    }
    let mut wrote = Vec::new();
    for number in 0..SAMPLES {
        wrote.push(sync(standin, "late", number));
        lines.next().unwrap().unwrap();
    }
    let result: Value = serde_json::from_str(&lines.last().unwrap().unwrap()).unwrap();
    let synced = result["results"].as_array().unwrap().iter().map(|result| result["synced_at_ms"].as_u64().unwrap());
    let mut late: Vec<i64> = synced.zip(wrote).map(|(seen, wrote)| seen.cast_signed() - wrote.cast_signed()).collect();
    late.sort_unstable();
    assert!(child.wait().unwrap().success());
    println!(
        "synced_at_ms after the write, {SAMPLES} changes: median {} ms, 95 % {} ms, most {} ms",
        late[SAMPLES / 2],
        late[SAMPLES * 95 / 100],
        late[SAMPLES - 1]
    );
}

/// All but one at once; the last one when the others are taken in.
fn crowd(standin: &Standin) {
    for number in 0..COUNT {
        standin.store().create(APPLICATIONS, application("crowd", number)).unwrap();
    }
    let bytes = application("crowd", 0).to_string().len();
    let before = standin.requests().len();
    let mut child = start(standin, "crowd", &[]);
    while !standin.requests()[before..].iter().any(|request| request.query.contains("watch=true")) {
        thread::sleep(Duration::from_millis(20));
    }
    let mut peak_kib = 0;
    for number in 0..COUNT - 1 {
        sync(standin, "crowd", number);
        if number % 500 == 0 {
            peak_kib = peak(&child).unwrap_or(peak_kib);
        }
    }
    thread::sleep(Duration::from_secs(3));
    let last = sync(standin, "crowd", COUNT - 1);
    let mut stdout = child.stdout.take().unwrap();
    let mut text = vec![0; 1];
    // The first byte comes when all is decided.
    stdout.read_exact(&mut text).unwrap();
    let answered = now_ms();
    peak_kib = peak(&child).unwrap_or(peak_kib);
    stdout.read_to_end(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let result: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(result["results"].as_array().unwrap().len(), COUNT);
    let requests = &standin.requests()[before..];
    let (watches, pages) = requests.iter().partition::<Vec<_>, _>(|request| request.query.contains("watch=true"));
    println!(
        "{COUNT} Applications of {bytes} bytes: {} pages of one list, {} watch, peak memory {} MiB, answer {} ms after the \
         last change",
        pages.len(),
        watches.len(),
        peak_kib / 1024,
        answered - last,
    );
}

fn start(standin: &Standin, label: &str, more: &[&str]) -> Child {
    let selector = format!("set={label}");
    Command::new(env!("CARGO_BIN_EXE_kubectl-argo-waitrev"))
        .args(["-q", "-l", &selector, "--until", "synced", "--revision", &"2".repeat(40)])
        .args(more)
        .env("KUBECONFIG", standin.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// An Application as large as they are: resources, history, managed fields.
fn application(label: &str, number: usize) -> Value {
    let resources: Vec<Value> = (0..30)
        .map(|n| json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": format!("part-{n}"), "status": "Synced", "health": {"status": "Healthy"}}))
        .collect();
    let source = json!({"repoURL": "https://git.example.com/team/app.git", "targetRevision": "main", "path": "app"});
    let history: Vec<Value> = (0..10)
        .map(|id| json!({"id": id, "revision": "1".repeat(40), "deployedAt": "2026-08-12T09:00:00Z", "source": source, "initiatedBy": {"automated": true}}))
        .collect();
    let fields: Vec<Value> = (0..40).map(|n| json!({format!("f:field-{n}"): {"f:name": {}, "f:value": {}}})).collect();
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": format!("{label}-{number:05}"), "namespace": "argocd", "labels": {"set": label},
            "managedFields": [{"manager": "argocd-application-controller", "operation": "Update", "fieldsV1": {"f:status": fields}}],
        },
        "spec": {"project": "default", "source": source, "destination": {"name": "in-cluster", "namespace": "shop"}, "syncPolicy": {"automated": {}}},
        "status": {
            "sync": {"status": "Synced", "revision": "1".repeat(40), "comparedTo": {"source": source}},
            "health": {"status": "Healthy"}, "reconciledAt": "2026-08-12T09:00:00Z",
            "resources": resources, "history": history,
        },
    })
}

/// Moves one to the commit; UNIX ms of the write.
fn sync(standin: &Standin, label: &str, number: usize) -> u64 {
    let name = format!("{label}-{number:05}");
    standin
        .store()
        .update(APPLICATIONS, "argocd", &name, |object| {
            object["status"]["sync"]["revision"] = json!("2".repeat(40));
            Ok(())
        })
        .unwrap();
    now_ms()
}

/// Peak resident memory in KiB.
fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}
