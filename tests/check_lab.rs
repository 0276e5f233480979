//! `check-lab.sh` names what is wrong with an artifact.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod lab;
mod suite;

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    process::Command,
};

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
    let mut all: Vec<Edit> = edits
        .into_iter()
        .map(|(name, key, value, reason)| {
            let mut object = lab.json(name);
            match value {
                Some(value) => object[key] = value,
                None => drop(object.as_object_mut().unwrap().remove(key)),
            }
            Edit { name, contents: object.to_string(), reason }
        })
        .collect();

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
        all.push(Edit { name: "app.yaml", contents: app.replace(from, to), reason });
    }

    let (interval, restored) = (lab.text("interval.txt"), lab.text("restored.txt"));
    for (name, contents, reason) in [
        ("interval.txt", interval.replace("appResyncPeriod=3s", "appResyncPeriod=4s"), "the period is not 3s"),
        ("interval.txt", interval.replace("appResyncJitter=0s", "appResyncJitter=5s"), "the jitter is not 0s"),
        ("interval.txt", "3s\n".into(), "not the appResyncPeriod line"),
        ("restored.txt", restored.replace("2m0s", "3m0s"), "the period is not 120s"),
        ("restored.txt", format!("{restored}{restored}").replacen("2m0s", "1m0s", 1), "the period is not 120s"),
        ("webhook-secret", "hunter2\n".into(), "not 16 bytes in lower-case hex"),
        ("webhook-secret", "0".repeat(32), "not the webhook.github.secret of argocd/argocd-secret"),
    ] {
        all.push(Edit { name, contents, reason });
    }
    for name in ["poll.json", "nopoll.json", "webhook.json", "secret.json", "report.json"] {
        all.push(Edit { name, contents: String::new(), reason: "missing, or not one JSON object" });
    }
    // The report is judged by what the others say, so it is edited where they are whole.
    let (report, others) = all.into_iter().partition(|edit| edit.name == "report.json");
    blamed_in_rounds(&lab, others);
    blamed_in_rounds(&lab, report);

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

/// An artifact with other contents, and what it should be blamed for.
struct Edit {
    name: &'static str,
    contents: String,
    reason: &'static str,
}

/// Edits one artifact of each name at a time and sees each blamed for its reason; puts the artifacts back at the end.
fn blamed_in_rounds(lab: &Lab, edits: Vec<Edit>) {
    let mut by_name: BTreeMap<&str, VecDeque<Edit>> = BTreeMap::new();
    for edit in edits {
        by_name.entry(edit.name).or_default().push_back(edit);
    }
    let whole: Vec<_> = by_name.keys().map(|name| (lab.file(name), fs::read(lab.file(name)).unwrap())).collect();
    loop {
        for (path, contents) in &whole {
            fs::write(path, contents).unwrap();
        }
        let round: Vec<_> = by_name.values_mut().filter_map(VecDeque::pop_front).collect();
        if round.is_empty() {
            return;
        }
        for edit in &round {
            fs::write(lab.file(edit.name), &edit.contents).unwrap();
        }
        let verdict = graded(lab, 1);
        for Edit { name, contents, reason } in round {
            let blamed = format!("FAIL {name}: ");
            let named = verdict.lines().any(|line| line.starts_with(&blamed) && line.contains(reason));
            assert!(named, "{name} with {contents:?} is not blamed for {reason:?}:\n{verdict}");
        }
    }
}

fn graded(lab: &Lab, code: i32) -> String {
    let output = lab.check();
    let verdict = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(code), "{verdict}{}", String::from_utf8_lossy(&output.stderr));
    verdict
}

fn git(lab: &Lab, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(lab.file("repo")).args(arguments).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}
