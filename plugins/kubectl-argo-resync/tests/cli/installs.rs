//! Every kind of install and every version ends in the right values, proof and warnings.

use serde_json::{Value, json};
use standin::{Install, LogFormat, Options, Standin, processes::Component};

use crate::bench::{Ended, config, env, owned, run, writes};

/// What is asked, what is in `argocd-cm` then, what the pods run with, what the user is warned of.
struct Row {
    version: &'static str,
    install: Install,
    words: &'static [&'static str],
    period: Option<&'static str>,
    period_s: u64,
    jitter_s: Option<u64>,
    warnings: &'static [&'static str],
}

fn row(version: &'static str, install: Install, words: &'static [&'static str]) -> Row {
    Row { version, install, words, period: Some("30s"), period_s: 30, jitter_s: Some(0), warnings: &[] }
}

fn helm() -> Install {
    Install::Helm { release: "gitops".into() }
}

fn operator() -> Install {
    Install::Operator { name: "openshift-gitops".into() }
}

const OFF: &str = "a webhook that is lost is never repaired";
const PLAIN: &[&str] = &["30s", "--jitter", "0s"];

fn table() -> Vec<Row> {
    let stock = || Install::Stock;
    vec![
        row("v3.5.1", stock(), PLAIN),
        row("v3.5.1", Install::Core, PLAIN),
        row("v3.5.1", helm(), PLAIN),
        row("v3.5.1", operator(), PLAIN),
        row("v3.5.1", Install::Dynamic, PLAIN),
        Row {
            period: Some("0s"),
            period_s: 0,
            jitter_s: Some(60),
            warnings: &[OFF],
            ..row("v3.5.1", stock(), &["off"])
        },
        Row {
            period: Some("0s"),
            period_s: 0,
            jitter_s: Some(0),
            warnings: &[OFF],
            ..row("v2.13.4", helm(), &["off", "--jitter", "0s"])
        },
        Row {
            period: None,
            period_s: 120,
            jitter_s: Some(60),
            ..row("v3.5.1", helm(), &["default", "--jitter", "default"])
        },
        Row {
            period: None,
            period_s: 180,
            jitter_s: Some(0),
            ..row("v2.14.3", helm(), &["default", "--jitter", "default"])
        },
        Row { jitter_s: None, ..row("v2.8.0", stock(), &["30"]) },
        Row { jitter_s: None, ..row("v2.9.5", Install::Dynamic, PLAIN) },
        row("v2.10.0", stock(), PLAIN),
        row("v2.13.9", operator(), PLAIN),
        row("v2.14.19", helm(), PLAIN),
        Row { period: Some("150s"), period_s: 150, ..row("v2.13.0", stock(), &["2m30s", "--jitter", "0"]) },
        Row { period: Some("24h"), period_s: 86_400, ..row("v3.2.12", stock(), &["1d", "--jitter", "0s"]) },
        Row { warnings: &["Argo CD 3.1.14 does not poll"], ..row("v3.1.14", stock(), PLAIN) },
        Row { warnings: &["Argo CD 3.2.9 does not poll"], ..row("v3.2.9", helm(), PLAIN) },
        Row { warnings: &["Argo CD 3.3.7 does not poll"], ..row("v3.3.7", stock(), PLAIN) },
        Row {
            warnings: &["does not name a version: the rules of Argo CD 3.5.1 are used"],
            ..row("latest", stock(), PLAIN)
        },
        Row {
            jitter_s: Some(60),
            warnings: &["is not shorter than the period"],
            ..row("v3.4.7", Install::Core, &["30s", "--jitter", "1m"])
        },
        Row {
            period: Some("9s"),
            period_s: 9,
            warnings: &["about 400 times an hour"],
            ..row("v3.0.0", stock(), &["9s", "--jitter", "0s"])
        },
    ]
}

#[test]
fn every_install_and_version_ends_in_the_right_values_proof_and_warnings() {
    let rows = table();
    // A few at a time: each is a cluster of its own.
    for some in rows.chunks(6) {
        std::thread::scope(|scope| {
            let running: Vec<_> = some.iter().map(|row| (row, scope.spawn(|| check(row)))).collect();
            for (row, result) in running {
                assert!(result.join().is_ok(), "{} {:?} {:?}", row.version, row.install, row.words);
            }
        });
    }
}

fn check(row: &Row) {
    let standin = Standin::with(Options {
        version: row.version.into(),
        install: row.install.clone(),
        controllers: 2,
        repo_servers: 2,
        servers: 1,
        ..Options::default()
    });
    let ended = run(&standin, row.words);
    let object = ended.object(0);
    assert_eq!(object["outcome"], "changed");
    assert_eq!(config(&standin)["timeout.reconciliation"], json!(row.period));
    assert_eq!(object["period"], json!(row.period));
    assert_eq!(object["drift"], json!([]));
    let controllers = object["controllers"].as_array().unwrap();
    assert_eq!(controllers.len(), 2);
    for pod in controllers {
        assert_eq!(
            (&pod["period_s"], &pod["jitter_s"], &pod["proof"]),
            (&json!(row.period_s), &json!(row.jitter_s), &json!("log")),
            "{pod}"
        );
    }
    let given = [Some(row.period.unwrap_or_default().to_owned()).filter(|text| !text.is_empty())];
    for component in [Component::Controller, Component::RepoServer] {
        let running = env(&standin, component, "ARGOCD_RECONCILIATION_TIMEOUT");
        assert_eq!(running, [given.clone(), given.clone()].concat(), "{component:?}");
    }
    warned(&ended, &object, row.warnings);
    let kinds: Vec<_> =
        object["workloads"].as_array().unwrap().iter().map(|workload| workload["kind"].clone()).collect();
    let controller = if row.install == Install::Dynamic { "deployment" } else { "statefulset" };
    assert_eq!(kinds, [json!("deployment"), json!(controller)]);
    assert_eq!(writes(&standin).len(), 3, "one patch of argocd-cm, one restart each");
}

/// Exactly these warnings, in the object and on stderr.
fn warned(ended: &Ended, object: &Value, expected: &[&str]) {
    let mut warnings: Vec<_> =
        object["warnings"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    // Helm and the operator put their own values back.
    warnings.retain(|warning| !warning.contains("may put its own values back"));
    assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
    for text in expected {
        assert!(warnings.iter().any(|warning| warning.contains(text)), "{text}: {warnings:?}");
        assert!(ended.stderr.contains(text), "{ended:#?}");
    }
}

#[test]
fn versions_without_jitter_refuse_one() {
    let standin = Standin::with(Options { version: "v2.9.0".into(), ..Options::default() });
    let ended = run(&standin, &["30s", "--jitter", "5s"]);
    assert!(ended.refusal(2).contains("Argo CD 2.9.0 has no jitter: it would ignore `5s`"), "{ended:#?}");
    assert_eq!(writes(&standin), [""; 0]);
}

#[test]
fn the_other_log_format_is_read_as_well() {
    for (version, format) in [("v3.5.1", LogFormat::Text), ("v2.13.0", LogFormat::Json)] {
        let standin =
            Standin::with(Options { version: version.into(), log_format: Some(format), ..Options::default() });
        let object = run(&standin, PLAIN).object(0);
        let line = object["controllers"][0]["line"].as_str().unwrap();
        assert_eq!(line.starts_with('{'), format == LogFormat::Json, "{line}");
        assert_eq!(object["controllers"][0]["proof"], "log");
    }
}

#[test]
fn two_installs_in_one_namespace_are_told_apart_by_flag_only() {
    let standin = Standin::start();
    for name in ["argocd-repo-server", "argocd-application-controller"] {
        let resource = if name.ends_with("server") { "deployments.apps" } else { "statefulsets.apps" };
        let mut other = standin.store().get(resource, "argocd", name).unwrap();
        other["metadata"] =
            json!({"name": format!("other-{name}"), "namespace": "argocd", "labels": other["metadata"]["labels"]});
        other["spec"]["replicas"] = json!(1);
        standin.store().create(resource, other).unwrap();
    }
    let ended = run(&standin, PLAIN);
    let refusal = ended.refusal(2);
    assert!(
        refusal.contains("statefulset/argocd-application-controller, statefulset/other-argocd-application-controller"),
        "{refusal}"
    );
    assert!(refusal.contains("--controller KIND/NAME"), "{refusal}");
    let named = [
        "30s",
        "--jitter",
        "0s",
        "--controller",
        "statefulset/argocd-application-controller",
        "--repo-server",
        "deploy/argocd-repo-server",
    ];
    let object = run(&standin, &named).object(0);
    assert_eq!(object["controllers"].as_array().unwrap().len(), 1, "the other's pods have the same labels: {object}");
}

#[test]
fn an_owner_that_puts_its_own_values_back_is_named() {
    let standin =
        Standin::with(Options { settings: owned(&[("timeout.reconciliation", "120s")]), ..Options::default() });
    crate::bench::change(&standin, "configmaps", "argocd-cm", |object| {
        object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!("self:/ConfigMap:argocd/argocd-cm");
    });
    let object = run(&standin, PLAIN).object(0);
    assert_eq!(
        object["warnings"][0],
        "argocd-cm belongs to the Argo CD Application self, which may put its own values back: change them there too"
    );
}
