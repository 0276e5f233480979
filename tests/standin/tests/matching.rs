//! The cases of `data/matching.json`, which `argo-webhook explain` is held against, too: argo-cd v3.5.1
//! util/webhook/webhook.go and its older forms, rule by rule.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use standin::argocd::{
    version::Version,
    webhook::{
        event::Provider,
        matching::{Rule, refreshes},
    },
};

fn verdict(case: &Value) -> (Vec<Option<Rule>>, bool) {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let url = "https://h.example/o/r";
    let mut event = json!({"ref": "refs/heads/main", "repository": {"html_url": url, "default_branch": "main"}});
    let mut app = json!({"metadata": {}, "spec": {"source": {"repoURL": url, "targetRevision": "main"}}});
    match text("rule") {
        "url" => {
            event["repository"]["html_url"] = case["event_url"].clone();
            app["spec"]["source"]["repoURL"] = case["repo_url"].clone();
        }
        "ref" => {
            event["ref"] = case["ref"].clone();
            event["repository"]["default_branch"] = case["default_branch"].clone();
            app["spec"]["source"]["targetRevision"] = case["target_revision"].clone();
        }
        "paths" => {
            event["commits"] = json!([{"modified": case["files"]}]);
            app["spec"]["source"]["path"] = case["path"].clone();
            if case["annotation"].is_string() {
                app["metadata"]["annotations"] =
                    json!({"argocd.argoproj.io/manifest-generate-paths": case["annotation"]});
            }
        }
        _ => {
            event = case["event"].clone();
            app = json!({"metadata": {"annotations": case["annotations"]}, "spec": case["spec"]});
        }
    }
    let provider = Provider::of_name(case["provider"].as_str().unwrap_or("github")).expect("a provider");
    let verdict = refreshes(provider, &event, &app, Version::of_tag(text("version")));
    (verdict.sources.iter().map(standin::argocd::webhook::matching::SourceVerdict::rule).collect(), verdict.refresh)
}

#[test]
fn events_touch_what_the_server_would_touch() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("data/matching.json")).unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let (rules, refresh) = verdict(&case);
        let found: Vec<Value> = rules
            .into_iter()
            .map(|rule| {
                json!(rule.map(|rule| match rule {
                    Rule::Url => "url",
                    Rule::Ref => "ref",
                    Rule::Paths => "paths",
                }))
            })
            .collect();
        let expected = match &case["rules"] {
            Value::Array(rules) => rules.clone(),
            _ if case["matches"] == true => vec![Value::Null],
            _ => vec![case["rule"].clone()],
        };
        if found != expected || refresh != expected.contains(&Value::Null) {
            wrong.push(format!("{case}: {} {refresh}", json!(found)));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
