//! `check-lab.sh` names what is wrong with an artifact.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod lab;
mod suite;

use std::{fs, path::PathBuf, process::Command};

use lab::Lab;
use serde_json::json;

#[test]
fn every_artifact_that_is_edited_is_named_with_the_reason() {
    let lab = Lab::new();
    lab.run(&[]);
    assert_eq!(
        graded(&lab, 0),
        "ok   repo/\nok   app.yaml\nok   interval.txt\nok   poll.json\nok   nopoll.json\nok   webhook.json\n\
         ok   webhook-secret\nok   secret.json\nok   restored.txt\nok   report.json\n"
    );

    let r1 = git(&lab, &["log", "--reverse", "--format=%H"]).lines().next().unwrap().to_owned();
    let moved = |name: &str, key: &str, by: i64| json!(lab.json(name)[key].as_i64().unwrap() + by);
    let (nopoll, secret) = (lab.json("nopoll.json"), lab.json("secret.json"));
    let edits = [
        ("poll.json", "commit", Some(json!("main")), "commit is no commit id: \"main\""),
        ("poll.json", "commit", Some(json!(r1)), "says rev r1, not r2"),
        ("poll.json", "commit", Some(json!("0".repeat(40))), "is not a commit of repo/"),
        ("poll.json", "pushed_at", None, "key pushed_at is missing"),
        ("poll.json", "synced_at", Some(json!("1700000000")), "synced_at is no unix time: \"1700000000\""),
        ("poll.json", "synced_at", Some(moved("poll.json", "pushed_at", -1)), "synced_at is before pushed_at"),
        (
            "poll.json",
            "synced_at",
            Some(moved("poll.json", "synced_at", 3600)),
            "later than deployedAt in status.history",
        ),
        ("poll.json", "refresh_requested", Some(json!(true)), "did not measure polling"),
        ("nopoll.json", "commit", Some(secret["commit"].clone()), "says rev r4, not r3"),
        ("nopoll.json", "revision_at_check", Some(nopoll["commit"].clone()), "although polling was off"),
        ("nopoll.json", "checked_at", Some(nopoll["pushed_at"].clone()), "less than 4s after pushed_at"),
        ("nopoll.json", "pushed_at", Some(moved("poll.json", "pushed_at", -1)), "before synced_at of poll.json"),
        ("webhook.json", "http_status", Some(json!(202)), "http_status is not 200"),
        ("webhook.json", "http_status", Some(json!("200")), "http_status is no http status: \"200\""),
        ("webhook.json", "synced_at", Some(moved("webhook.json", "sent_at", -1)), "synced_at is before sent_at"),
        ("webhook.json", "sent_at", Some(nopoll["pushed_at"].clone()), "before checked_at of nopoll.json"),
        ("webhook.json", "commit", Some(secret["commit"].clone()), "commit is not that of nopoll.json"),
        ("secret.json", "commit", Some(nopoll["commit"].clone()), "says rev r3, not r4"),
        ("secret.json", "unsigned_status", Some(json!(200)), "the unsigned event was not refused"),
        ("secret.json", "signed_status", Some(json!(400)), "signed_status is not 200"),
        ("secret.json", "revision_after_unsigned", Some(secret["commit"].clone()), "after the unsigned event"),
        (
            "secret.json",
            "signed_synced_at",
            Some(moved("webhook.json", "synced_at", -1)),
            "before synced_at of webhook.json",
        ),
        ("secret.json", "signed_body_sha256", Some(json!("0")), "not the same bytes"),
        ("report.json", "poll_seconds", Some(moved("report.json", "poll_seconds", 1)), "not what poll.json says"),
        ("report.json", "nopoll_synced", Some(json!(true)), "not what nopoll.json says"),
        ("report.json", "nopoll_synced", Some(json!("false")), "nopoll_synced is no boolean: \"false\""),
        ("report.json", "webhook_seconds", Some(json!(7)), "not what webhook.json says"),
        ("report.json", "unsigned_accepted", Some(json!(true)), "not what secret.json says"),
        ("report.json", "trigger", Some(json!("poll")), "trigger is not webhook"),
        ("report.json", "safety_net", None, "key safety_net is missing"),
    ];
    for (name, key, value, reason) in edits {
        let mut object = lab.json(name);
        match value {
            Some(value) => object[key] = value,
            None => drop(object.as_object_mut().unwrap().remove(key)),
        }
        edited(&lab, name, &object.to_string(), reason);
    }

    let app = lab.text("app.yaml");
    for (from, to, reason) in [
        ("selfHeal: true", "selfHeal: false", "without prune and selfHeal"),
        ("targetRevision: main", "targetRevision: HEAD", "targetRevision is not main"),
        ("path: app", "path: .", "path is not app"),
        ("- CreateNamespace=true", "- CreateNamespace=false", "CreateNamespace=true is missing"),
        ("project: default", "project: other", "project is not default"),
        ("evt.git", "other.git", "source is not that of argocd/evt in the cluster"),
        ("kind: Application", "kind: [", "not an Application that kubectl can read"),
    ] {
        assert!(app.contains(from), "{from} is not in app.yaml");
        edited(&lab, "app.yaml", &app.replace(from, to), reason);
    }

    let (interval, restored) = (lab.text("interval.txt"), lab.text("restored.txt"));
    edited(&lab, "interval.txt", &interval.replace("appResyncPeriod=3s", "appResyncPeriod=4s"), "the period is not 3s");
    edited(&lab, "interval.txt", &interval.replace("appResyncJitter=0s", "appResyncJitter=5s"), "the jitter is not 0s");
    edited(&lab, "interval.txt", "3s\n", "not the appResyncPeriod line");
    edited(&lab, "restored.txt", &restored.replace("2m0s", "3m0s"), "the period is not 120s");
    edited(&lab, "restored.txt", &interval, "the same line as interval.txt");
    edited(&lab, "webhook-secret", "hunter2\n", "not 16 bytes in lower-case hex");
    edited(&lab, "webhook-secret", &"0".repeat(32), "not the webhook.github.secret of argocd/argocd-secret");
    for name in ["poll.json", "nopoll.json", "webhook.json", "secret.json", "report.json"] {
        edited(&lab, name, "", "missing, or not one JSON object");
    }

    fs::rename(lab.file("repo/.git"), lab.file("aside")).unwrap();
    assert!(graded(&lab, 1).contains("FAIL repo/: missing, or not a Git repository with commits\n"));
    fs::rename(lab.file("aside"), lab.file("repo/.git")).unwrap();
    graded(&lab, 0);
}

#[test]
fn what_cannot_be_checked_is_no_verdict() {
    let lab = Lab::new();
    let output = lab.check();
    assert_eq!(output.status.code(), Some(2), "there is no such directory");
    fs::create_dir(lab.file("")).unwrap();
    let output = lab.check();
    assert_eq!(output.status.code(), Some(2), "there is no such Application");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read Application argocd/evt"));
}

/// Puts `contents` in the place of an artifact, sees that it is named with `reason`, and puts the artifact back.
fn edited(lab: &Lab, name: &str, contents: &str, reason: &str) {
    let whole = fs::read(lab.file(name)).unwrap();
    fs::write(lab.file(name), contents).unwrap();
    let verdict = graded(lab, 1);
    let named = verdict.lines().any(|line| line.starts_with(&format!("FAIL {name}: ")) && line.contains(reason));
    assert!(named, "{name} with {contents:?} is not blamed for {reason:?}:\n{verdict}");
    fs::write(lab.file(name), whole).unwrap();
}

fn graded(lab: &Lab, code: i32) -> String {
    let output = lab.check();
    let verdict = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(code), "{verdict}{}", String::from_utf8_lossy(&output.stderr));
    verdict
}

fn git(lab: &Lab, arguments: &[&str]) -> String {
    let repo: PathBuf = lab.file("repo");
    let output = Command::new("git").arg("-C").arg(repo).args(arguments).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}
