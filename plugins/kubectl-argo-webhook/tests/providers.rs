//! Each provider's events, made, signed and sent.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod hook;

use std::{fs, time::Duration};

use hook::{Hook, record};
use standin::Options;

/// Name, the repository's address, a matching `repoURL`, the key, another key.
const PROVIDERS: [(&str, &str, &str, &str, &str); 6] = [
    ("github", "https://github.com/o/r", "git@github.com:o/r.git", "s3cr3t", "other"),
    ("gitlab", "https://gitlab.com/g/p", "https://gitlab.com/g/p.git", "s3cr3t", "other"),
    ("gogs", "https://codeberg.org/o/r", "ssh://git@codeberg.org/o/r.git", "s3cr3t", "other"),
    ("bitbucket-server", "https://git.corp/scm/p/r", "https://git.corp/scm/p/r.git", "s3cr3t", "other"),
    (
        "bitbucket",
        "https://bitbucket.org/w/r",
        "git@bitbucket.org:w/r.git",
        "{4b91d1f7-0000-4000-8000-000000000001}",
        "{other}",
    ),
    (
        "azuredevops",
        "https://dev.azure.com/o/p/_git/r",
        "https://o@dev.azure.com/o/p/_git/r",
        "user:pass",
        "user:other",
    ),
];

fn keys(provider: &str, key: &str) -> Vec<(String, String)> {
    match provider {
        "bitbucket" => vec![("webhook.bitbucket.uuid".into(), key.into())],
        "bitbucket-server" => vec![("webhook.bitbucketserver.secret".into(), key.into())],
        "azuredevops" => {
            let (user, password) = key.split_once(':').unwrap();
            vec![
                ("webhook.azuredevops.username".into(), user.into()),
                ("webhook.azuredevops.password".into(), password.into()),
            ]
        }
        other => vec![(format!("webhook.{other}.secret"), key.into())],
    }
}

#[test]
fn an_event_is_accepted_with_the_right_key_and_moves_the_application_within_a_second() {
    for (provider, url, repo_url, key, other) in PROVIDERS {
        let hook = Hook::start();
        hook.app("app", repo_url, "main");
        let mut record = record();
        record["repo_url"] = url.into();
        fs::write(hook.path("push.json"), record.to_string()).unwrap();
        fs::write(hook.path("key"), key).unwrap();
        fs::write(hook.path("other"), other).unwrap();
        let stored = keys(provider, key);
        let stored: Vec<(&str, Option<&str>)> =
            stored.iter().map(|(key, value)| (key.as_str(), Some(value.as_str()))).collect();
        hook.set_secret(&stored);
        if provider == "azuredevops" {
            hook.shell("kubectl rollout restart deployment argocd-server -n argocd && kubectl rollout status deployment argocd-server -n argocd");
        }
        let base = ["-f", "push.json", "--provider", provider];
        let signed = |file: &str| hook.run(&[&base[..], &["--sign", "--secret-file", file]].concat());
        // The server reads the key on its own time; GitLab's refuses every token until then.
        let accepted = (0..100).any(|_| signed("other").code == 1 && signed("key").code == 0);
        assert!(accepted, "{provider}: {}", signed("key").said);
        assert!(hook.refreshed_within("app", Duration::from_secs(1)), "{provider}");
        assert_eq!(hook.run(&base).code(1).object["http_status"], 400, "{provider}: unsigned");
        let sent = hook.run(&[&base[..], &["--sign"]].concat()).code(0);
        assert!(hook.refreshed_within("app", Duration::from_secs(1)), "{provider}");
        let all = format!("{}{}", sent.object, sent.said);
        assert!(!all.contains(key) && !all.contains(&hook::base64(key)), "{provider}: the key is shown");
    }
}

#[test]
fn verify_agrees_with_openssl_about_each_provider_that_signs() {
    let hook = Hook::start();
    fs::write(hook.path("key"), "s3cr3t").unwrap();
    hook.run(&["-f", "push.json", "--save-body", "body.json"]).code(0);
    let hex = hook::openssl_hmac("s3cr3t", &hook.read("body.json"));
    for (provider, prefix) in [("github", "sha256="), ("bitbucket-server", "sha256="), ("gogs", "")] {
        let signature = format!("{prefix}{hex}");
        let words =
            ["verify", "--body-file", "body.json", "--secret-file", "key", "--provider", provider, "--signature"];
        let right = hook.run(&[&words[..], &[&signature]].concat()).code(0);
        assert_eq!((&right.object["valid"], &right.object["fault"]), (&true.into(), &serde_json::Value::Null));
        let wrong = hook.run(&[&words[..], &[&signature.replace('a', "b")]].concat()).code(1);
        assert_eq!(wrong.object["valid"], false);
    }
}

#[test]
fn verify_reads_the_providers_headers_and_names_the_fault() {
    let hook = Hook::start();
    fs::write(hook.path("body"), "{\"a\": 1}").unwrap();
    fs::write(hook.path("key"), "s3cr3t").unwrap();
    let hex = hook::openssl_hmac("s3cr3t", b"{\"a\":1}");
    fs::write(
        hook.path("lines"),
        format!("POST / HTTP/1.1\nx-github-event: push\nX-Hub-Signature-256: sha256={hex}\n"),
    )
    .unwrap();
    let found = hook.run(&["verify", "--body-file", "body", "--headers", "lines", "--secret-file", "key"]).code(1);
    assert_eq!((&found.object["provider"], &found.object["fault"]), (&"github".into(), &"body-reprinted".into()));
    fs::write(hook.path("json"), "{\"X-Gitlab-Event\":\"Push Hook\",\"X-Gitlab-Token\":\"s3cr3t\"}").unwrap();
    let found = hook.run(&["verify", "--body-file", "body", "--headers", "json", "--secret-file", "key"]).code(0);
    assert_eq!((&found.object["provider"], &found.object["scheme"]), (&"gitlab".into(), &"token".into()));
    hook.set_secret(&[("webhook.github.secret", Some("s3cr3t\n"))]);
    fs::write(hook.path("body"), "{\"a\":1}").unwrap();
    let found = hook.run(&["verify", "--body-file", "body", "--headers", "lines"]).code(1);
    assert_eq!(found.object["fault"], "key-trailing-newline", "the key in the cluster is taken as it is");
}

#[test]
fn before_v2_13_sha_1_counts_and_is_sent_too() {
    let hook = Hook::with(Options { version: "v2.12.0".into(), ..Options::default() });
    hook.app("app", hook::REPO, "main");
    hook.run(&["secret", "set", "--generate"]).code(0);
    hook.run(&["-f", "push.json", "--sign"]).code(0);
    assert!(hook.refreshed_within("app", Duration::from_secs(1)));
    let refused = hook.run(&["-f", "push.json"]).code(1);
    assert_eq!(refused.object["answer"]["code"], "signature-missing");
}

#[test]
fn a_tag_moves_what_follows_it() {
    for (provider, url, repo_url, ..) in PROVIDERS {
        let hook = Hook::start();
        hook.app("tag", repo_url, "v1.2.3");
        hook.app("range", repo_url, "1.*");
        hook.app("branch", repo_url, "main");
        let words = ["--repo-url", url, "--ref", "refs/tags/v1.2.3", "--after", hook::AFTER, "--provider", provider];
        hook.run(&words).code(0);
        for name in ["tag", "range"] {
            assert!(hook.refreshed_within(name, Duration::from_secs(1)), "{provider} {name}");
        }
        assert!(!hook.is_asked_to_refresh("branch"), "{provider}");
    }
}
