//! The cases of `matching.json`, which the stand-in's own rules are held against, too.

use std::collections::BTreeMap;

use kit::{application::AppName, version::Version};
use serde_json::{Value, json};

use super::{
    application::{App, Spec},
    judge::{Judge, Rule},
    seen,
};
use crate::provider::Provider;
use clap::ValueEnum;

fn judged(case: &Value) -> Vec<Option<Rule>> {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let url = "https://h.example/o/r";
    let source = json!({"repoURL": url, "targetRevision": "main"});
    let (mut event, mut spec, mut annotations) = (
        json!({"ref": "refs/heads/main", "repository": {"html_url": url, "default_branch": "main"}}),
        json!({"source": source}),
        json!({}),
    );
    match text("rule") {
        "url" => {
            event["repository"]["html_url"] = case["event_url"].clone();
            spec["source"]["repoURL"] = case["repo_url"].clone();
        }
        "ref" => {
            event["ref"] = case["ref"].clone();
            event["repository"]["default_branch"] = case["default_branch"].clone();
            spec["source"]["targetRevision"] = case["target_revision"].clone();
        }
        "paths" => {
            event["commits"] = json!([{"modified": case["files"]}]);
            spec["source"]["path"] = case["path"].clone();
            if case["annotation"].is_string() {
                annotations = json!({"argocd.argoproj.io/manifest-generate-paths": case["annotation"]});
            }
        }
        _ => {
            event = case["event"].clone();
            spec = case["spec"].clone();
            annotations = case["annotations"].clone();
        }
    }
    let provider = match case["provider"].as_str() {
        Some(name) => Provider::from_str(name, false).unwrap(),
        None => Provider::Github,
    };
    let version = Version::parse(text("version")).unwrap();
    let seen = seen::read(provider, event.to_string().as_bytes(), version).unwrap();
    let app = App {
        name: AppName { namespace: "argocd".into(), name: "app".into() },
        annotations: serde_json::from_value::<BTreeMap<String, String>>(annotations).unwrap(),
        spec: serde_json::from_value::<Spec>(spec).unwrap(),
    };
    Judge::new(seen, version).sources(&app).into_iter().map(|verdict| verdict.rule).collect()
}

#[test]
fn events_touch_what_the_server_would_touch() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../../tests/standin/tests/data/matching.json")).unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let found: Vec<Value> = judged(&case).into_iter().map(|rule| json!(rule.map(Rule::name))).collect();
        let expected = match &case["rules"] {
            Value::Array(rules) => rules.clone(),
            _ if case["matches"] == true => vec![Value::Null],
            _ => vec![case["rule"].clone()],
        };
        if found != expected {
            wrong.push(format!("{case}: {}", json!(found)));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
