//! The key: set, proven, put back, shown.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod hook;

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    time::Duration,
};

use hook::{Ended, Hook, base64};
use serde_json::json;
use standin::Options;

const KEY: &str = "webhook.github.secret";

#[test]
fn a_new_key_is_kept_for_its_owner_and_in_force_on_every_pod_when_the_command_ends() {
    let hook = Hook::with(Options { servers: 3, ..Options::default() });
    let slow = hook.standin.store().list("pods", Some("argocd")).0.iter().find_map(|pod| {
        let name = pod["metadata"]["name"].as_str()?;
        name.starts_with("argocd-server").then(|| name.to_owned())
    });
    let slow = slow.unwrap();
    hook.standin.cluster().faults.argo.delay_secret_reload(&slow, Duration::from_millis(1500));
    let before = hook.secret("argocd-secret");
    let set = hook.run(&["secret", "set", "--generate", "--out", "key"]).code(0);
    let key = String::from_utf8(hook.read("key")).unwrap();
    assert!(key.len() == 32 && key.bytes().all(|digit| digit.is_ascii_hexdigit()), "no newline, 16 bytes in hex");
    assert_eq!(fs::metadata(hook.path("key")).unwrap().permissions().mode() & 0o777, 0o600);
    let mut expected = before;
    expected[KEY] = json!(base64(&key));
    assert_eq!(hook.secret("argocd-secret"), expected, "every other key is as it was");
    assert_eq!(set.object["outcome"], "enforced");
    assert!(set.object["waited_ms"].as_u64().unwrap() >= 1000, "the slow one was waited for");
    for pod in set.object["pods"].as_array().unwrap() {
        assert_eq!((&pod["unsigned_status"], &pod["signed_status"]), (&json!(400), &json!(200)), "{pod}");
    }
    assert_eq!(set.object["pods"].as_array().unwrap().len(), 3);
    assert!(!format!("{}{}", set.object, set.said).contains(&key));
    hook.run(&["--event", "ping", "--sign", "--all-pods"]).code(0);
}

#[test]
fn the_old_key_and_file_come_back_when_the_new_one_is_not_enforced_in_time() {
    let hook = Hook::start();
    fs::write(hook.path("key"), "old file").unwrap();
    for pod in hook.standin.store().list("pods", Some("argocd")).0 {
        let name = pod["metadata"]["name"].as_str().unwrap();
        hook.standin.cluster().faults.argo.delay_secret_reload(name, Duration::from_secs(3600));
    }
    hook.set_secret(&[(KEY, Some("old"))]);
    let set = hook.run(&["secret", "set", "--generate", "--out", "key", "--timeout", "1"]).code(124);
    assert_eq!(set.object["outcome"], "put-back");
    assert_eq!(hook.secret("argocd-secret")[KEY], base64("old"));
    assert_eq!(hook.read("key"), b"old file");
}

#[test]
fn a_key_from_a_file_may_be_set_twice() {
    let hook = Hook::start();
    fs::write(hook.path("key"), "from-a-file\n").unwrap();
    let set = hook.run(&["secret", "set", "--from-file", "key"]).code(0);
    assert!(set.said.contains("the newline at the end of key is not part of the key"), "{}", set.said);
    assert_eq!(hook.secret("argocd-secret")[KEY], base64("from-a-file"));
    let again = hook.run(&["secret", "set", "--from-file", "key"]).code(0);
    assert_eq!(again.object["keys"][0]["changed"], false);
}

#[test]
fn a_reference_is_followed_and_replaced_only_by_force() {
    let hook = Hook::start();
    let object = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "hooks", "namespace": "argocd", "labels": {"app.kubernetes.io/part-of": "argocd"}},
        "data": {"github": base64(" old \n"), "other": base64("kept")},
    });
    hook.standin.store().create("secrets", object).unwrap();
    hook.set_secret(&[(KEY, Some("$hooks:github"))]);
    fs::write(hook.path("old"), "old").unwrap();
    let trimmed = || hook.run(&["--event", "ping", "--sign"]).code == 0 && hook.run(&["--event", "ping"]).code == 1;
    assert!((0..100).any(|_| trimmed()), "the value that the reference leads to is trimmed");
    hook.run(&["secret", "set", "--generate", "--out", "key"]).code(0);
    assert_eq!(hook.secret("argocd-secret")[KEY], base64("$hooks:github"), "the reference stays");
    let key = String::from_utf8(hook.read("key")).unwrap();
    assert_eq!(hook.secret("hooks"), json!({"github": base64(&key), "other": base64("kept")}));
    assert_eq!(hook.run(&["secret", "show"]).code(0).object["keys"][0]["reference"], true);

    hook.set_secret(&[(KEY, Some("$nowhere:github"))]);
    let refused = hook.run(&["secret", "set", "--generate"]).code(2);
    assert!(refused.said.contains("--force"), "{}", refused.said);
    hook.run(&["secret", "set", "--generate", "--force", "--out", "key"]).code(0);
    let key = String::from_utf8(hook.read("key")).unwrap();
    assert_eq!(hook.secret("argocd-secret")[KEY], base64(&key));
}

#[test]
fn show_tells_length_and_a_little_of_the_hash_and_never_the_key() {
    let hook = Hook::start();
    hook.set_secret(&[("github.webhook.secret", Some("misnamed"))]);
    let shown = hook.run(&["secret", "show"]).code(1);
    assert_eq!(shown.object["keys"][0]["near_misses"], json!(["github.webhook.secret"]));
    hook.set_secret(&[(KEY, Some("s3cr3t-key\n"))]);
    let shown = hook.run(&["secret", "show"]).code(0);
    let entry = &shown.object["keys"][0];
    let hash = hook::piped("sha256sum | cut -c1-8", b"s3cr3t-key\n");
    assert_eq!((&entry["bytes"], &entry["sha256_prefix"]), (&json!(11), &json!(hash)));
    assert!(entry["doubt"].as_str().unwrap().contains("white space"));
    assert!(!format!("{}{}", shown.object, shown.said).contains("s3cr3t"));
}

#[test]
fn a_missing_right_or_server_is_told_before_anything_is_changed() {
    let hook = Hook::start();
    let before = hook.secret("argocd-secret");
    hook.standin.allow(
        "reader",
        "argocd",
        json!([{"apiGroups": [""], "resources": ["services", "pods", "secrets", "configmaps"], "verbs": ["get", "list", "patch"]}]),
    );
    let set = hook.run_as("reader", &["secret", "set", "--generate", "--out", "key"]).code(4);
    assert!(set.said.contains("pods/portforward"), "{}", set.said);
    assert_eq!(hook.secret("argocd-secret"), before);
    assert!(!hook.path("key").exists());
}

#[test]
fn the_key_of_each_provider_is_proven() {
    for (provider, name, key) in [
        ("gitlab", "webhook.gitlab.secret", "s3cr3t"),
        ("gogs", "webhook.gogs.secret", "s3cr3t"),
        ("bitbucket-server", "webhook.bitbucketserver.secret", "s3cr3t"),
        ("bitbucket", "webhook.bitbucket.uuid", "{4b91d1f7-0000-4000-8000-000000000001}"),
    ] {
        let hook = Hook::start();
        fs::write(hook.path("key"), key).unwrap();
        let set = hook.run(&["secret", "set", "--provider", provider, "--from-file", "key"]).code(0);
        assert_eq!(hook.secret("argocd-secret")[name], base64(key));
        let pod = &set.object["pods"][0];
        assert_eq!((&pod["unsigned_status"], &pod["signed_status"]), (&json!(400), &json!(200)), "{provider}");
    }
    let hook = Hook::start();
    let refused = hook.run(&["secret", "set", "--provider", "bitbucket", "--generate"]).code(2);
    assert!(refused.said.contains("--from-file"), "{}", refused.said);
}

#[test]
fn the_credentials_of_azure_devops_are_proven_only_once_the_servers_were_restarted() {
    let hook = Hook::start();
    fs::write(hook.path("key"), "user:pass:word").unwrap();
    let words = ["secret", "set", "--provider", "azuredevops", "--from-file", "key", "--timeout"];
    let late = hook.run(&[&words[..], &["1"]].concat()).code(124);
    assert!(late.said.contains("kubectl rollout restart deployment argocd-server"), "{}", late.said);
    assert!(hook.secret("argocd-secret").get("webhook.azuredevops.username").is_none(), "put back");
    hook.set_secret(&[
        ("webhook.azuredevops.username", Some("user")),
        ("webhook.azuredevops.password", Some("pass:word")),
    ]);
    hook.shell("kubectl rollout restart deployment argocd-server -n argocd");
    hook.shell("kubectl rollout status deployment argocd-server -n argocd");
    let set = hook.run(&[&words[..], &["1m"]].concat()).code(0);
    assert_eq!(set.object["keys"][1]["bytes"], "pass:word".len());
}

#[test]
fn an_interrupted_set_is_finished_by_the_same_command() {
    let hook = Hook::start();
    for pod in hook.standin.store().list("pods", Some("argocd")).0 {
        let name = pod["metadata"]["name"].as_str().unwrap();
        hook.standin.cluster().faults.argo.delay_secret_reload(name, Duration::from_secs(4));
    }
    let words = ["secret", "set", "--generate", "--out", "key"];
    let mut child = hook.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("to enforce the key") {
        assert!(said.read_line(&mut line).unwrap() > 0, "{line}");
    }
    assert!(Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap().success());
    let ended = Ended::from(child.wait_with_output().unwrap()).code(143);
    assert_eq!(ended.object["outcome"], "interrupted");
    let key = String::from_utf8(hook.read("key")).unwrap();
    assert_eq!(hook.secret("argocd-secret")[KEY], base64(&key), "file and cluster agree");
    hook.run(&words).code(0);
    hook.run(&["--event", "ping", "--sign", "--secret-file", "key"]).code(0);
}
