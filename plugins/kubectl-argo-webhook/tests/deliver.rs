//! Events on their way: what is sent, how it gets there, and what is printed about it.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod hook;

use std::{fs, time::Duration};

use hook::{AFTER, Hook, REPO, openssl_hmac, record};
use serde_json::{Value, json};
use standin::{Install, Options};

/// The keys that the record gains, in their order.
const KEYS: [&str; 17] = [
    "provider",
    "event",
    "delivery",
    "url",
    "via",
    "signed",
    "signature",
    "body_bytes",
    "body_sha256",
    "attempts",
    "http_status",
    "response",
    "request_ms",
    "sent_at",
    "sent_at_ms",
    "outcome",
    "answer",
];

#[test]
fn every_way_carries_the_same_bytes_and_prints_the_record_with_its_own_keys_added() {
    let hook = Hook::start();
    hook.app("app", REPO, "main");
    let mut hashes = Vec::new();
    for via in ["cluster-ip", "service-proxy", "port-forward", "auto"] {
        let sent = hook.run(&["-f", "push.json", "--via", via, "--save-body", "body.json"]).code(0);
        let object = sent.object.as_object().unwrap();
        let keys: Vec<&str> = object.keys().map(String::as_str).collect();
        let own = record().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys[..own.len()], own, "{via}");
        assert_eq!(keys[own.len()..], KEYS, "{via}");
        assert_eq!(object["http_status"], 200);
        assert_eq!(object["mine"], json!({"kept": [1]}));
        assert_eq!(object["attempts"], 1);
        assert!(via == "auto" || object["via"] == via, "{object:?}");
        let ms = object["sent_at_ms"].as_u64().unwrap();
        assert_eq!(object["sent_at"], ms / 1000);
        assert_eq!(object["body_sha256"], hook::piped("sha256sum | cut -d' ' -f1", &hook.read("body.json")));
        assert_eq!(object["body_bytes"], hook.read("body.json").len());
        hashes.push(object["body_sha256"].clone());
        assert!(hook.refreshed_within("app", Duration::from_secs(1)), "{via}");
    }
    assert!(hashes.iter().all(|hash| *hash == hashes[0]));
}

#[test]
fn the_saved_body_is_what_github_would_send_and_its_signature_is_openssls() {
    let hook = Hook::start();
    hook.run(&["secret", "set", "--generate", "--out", "key"]).code(0);
    let key = String::from_utf8(hook.read("key")).unwrap();
    hook.run(&["-f", "push.json", "--save-body", "body.json", "--expect-status", "400"]).code(0);
    let body = hook.read("body.json");
    let parsed: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(parsed["repository"], json!({"html_url": REPO, "default_branch": "main"}));
    assert_eq!((&parsed["ref"], &parsed["after"]), (&json!("refs/heads/main"), &json!(AFTER)));
    assert_eq!(parsed["commits"][0]["modified"], json!(["app/signal.yaml"]));
    for words in [
        &["--body-file", "body.json", "--sign"][..],
        &["--body-file", "body.json", "--sign", "--secret-file", "key"],
        &["-f", "push.json", "--sign", "--via", "service-proxy"],
        &["-f", "push.json", "--sign", "--via", "port-forward"],
    ] {
        let sent = hook.run(words).code(0);
        assert_eq!(sent.object["signature"], format!("sha256={}", openssl_hmac(&key, &body)));
        assert_eq!(sent.object["http_status"], 200);
    }
    let mut command = hook.command(&["--body-file", "body.json", "--sign", "--secret-env", "HOOK_KEY"]);
    command.env("HOOK_KEY", &key);
    hook::Ended::of(command).code(0);
}

#[test]
fn an_expected_refusal_is_success_and_anything_else_is_not() {
    let hook = Hook::start();
    let accepted = hook.run(&["-f", "push.json", "--expect-status", "400"]).code(1);
    assert_eq!(accepted.object["error"]["code"], "unexpected-status");
    assert_eq!(accepted.object["answer"]["code"], "accepted-unchecked");
    hook.run(&["secret", "set", "--generate"]).code(0);
    let refused = hook.run(&["-f", "push.json", "--expect-status", "400"]).code(0);
    assert_eq!((&refused.object["http_status"], &refused.object["outcome"]), (&json!(400), &json!("refused")));
    assert_eq!(refused.object["response"], "Webhook processing failed\n");
    hook.run(&["-f", "push.json", "--sign", "--expect-status", "400,401"]).code(1);
    let refused = hook.run(&["-f", "push.json"]).code(1);
    assert_eq!(refused.object["answer"]["code"], "signature-missing", "from the server's log: {}", refused.said);
}

#[test]
fn before_v3_5_the_answer_itself_says_why() {
    let hook = Hook::with(Options { version: "v3.4.0".into(), ..Options::default() });
    hook.run(&["secret", "set", "--generate"]).code(0);
    let refused = hook.run(&["-f", "push.json"]).code(1);
    assert_eq!(refused.object["response"], "Webhook processing failed: missing X-Hub-Signature-256 Header\n");
    assert_eq!(refused.object["answer"]["code"], "signature-missing");
    fs::write(hook.path("form"), "payload=%7B%7D").unwrap();
    let refused = hook.run(&["--body-file", "form", "--sign"]).code(1);
    assert_eq!(refused.object["answer"]["code"], "not-json", "{}", refused.said);
}

#[test]
fn a_proxy_of_the_environment_is_used_for_an_address_and_not_for_the_cluster_ip() {
    let parameters = [("server.insecure".to_owned(), "true".to_owned())].into();
    let hook = Hook::with(Options { parameters, ..Options::default() });
    let url = format!("http://127.0.0.1:{}", hook.standin.cluster().service_ports.0);
    for (words, code) in [(["--via", "cluster-ip"], 0), (["--via", "port-forward"], 0), (["--url", &url], 3)] {
        let mut command = hook.command(&[&["-f", "push.json", "--retries", "0"], &words[..]].concat());
        command.env("http_proxy", "http://127.0.0.1:9").env_remove("no_proxy").env_remove("NO_PROXY");
        hook::Ended::of(command).code(code);
    }
}

#[test]
fn a_full_queue_is_tried_again_under_the_same_delivery_and_then_given_up() {
    let hook = Hook::start();
    let faults = &hook.standin.cluster().faults;
    faults.argo.fill_webhook_queue(2);
    let sent = hook.run(&["-f", "push.json", "--via", "cluster-ip"]).code(0);
    assert_eq!(sent.object["attempts"], 3);
    faults.argo.fill_webhook_queue(1);
    let sent = hook.run(&["-f", "push.json", "--retries", "0", "--via", "service-proxy"]).code(3);
    assert_eq!((&sent.object["attempts"], &sent.object["http_status"]), (&json!(1), &json!(503)));
    assert_eq!(sent.object["error"]["code"], "queue-full");
}

#[test]
fn a_connection_that_is_not_made_is_tried_again() {
    let hook = Hook::start();
    hook.standin.cluster().faults.argo.drop_connections(1);
    assert_eq!(hook.run(&["-f", "push.json", "--via", "port-forward"]).code(0).object["attempts"], 2);
}

#[test]
fn a_redirect_is_reported_and_not_followed() {
    let hook = Hook::start();
    let url = format!("http://127.0.0.1:{}", hook.standin.cluster().service_ports.0);
    let sent = hook.run(&["--event", "ping", "--url", &url]).code(2);
    assert_eq!(
        (&sent.object["http_status"], &sent.object["error"]["code"]),
        (&json!(307), &json!("redirect-to-https"))
    );
}

#[test]
fn only_the_clusters_own_certificate_is_trusted_unless_more_is_asked_for() {
    let hook = Hook::start();
    let url = format!("https://127.0.0.1:{}", hook.standin.cluster().service_ports.1);
    let alone = |words: &[&str]| {
        let mut command = hook.command(&[&["--event", "ping", "--url", url.as_str()], words].concat());
        command.env("KUBECONFIG", hook.path("none")).env("HOME", hook.path("none"));
        hook::Ended::of(command)
    };
    assert_eq!(alone(&[]).code(3).object["error"]["code"], "tls");
    alone(&["--insecure-skip-tls-verify"]).code(0);
    hook.shell("kubectl get secret -n argocd argocd-secret -o jsonpath='{.data.tls\\.crt}' | base64 -d > server.crt");
    alone(&["--ca-file", "server.crt"]).code(0);
    hook.run(&["--event", "ping", "--url", &url]).code(0);
    hook.shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k -out other.crt -subj /CN=x 2>/dev/null");
    assert_eq!(alone(&["--ca-file", "other.crt"]).code(3).object["error"]["code"], "tls");
    assert_eq!(alone(&["--ca-file", "k"]).code, 2);
}

#[test]
fn plain_http_and_a_root_path_are_read_from_the_cluster() {
    let parameters = [("server.insecure", "true"), ("server.rootpath", "/argo/cd")];
    let parameters = parameters.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let hook = Hook::with(Options { parameters, ..Options::default() });
    for via in ["cluster-ip", "service-proxy", "port-forward", "auto"] {
        let sent = hook.run(&["-f", "push.json", "--via", via]).code(0);
        let url = sent.object["url"].as_str().unwrap();
        assert!(url.ends_with("/argo/cd/api/webhook"), "{url}");
        assert!(via == "auto" || via == "service-proxy" || url.starts_with("http://"), "{url}");
    }
    assert_eq!(hook.run(&["-f", "push.json"]).code(0).object["via"], "service-proxy", "nothing proves whose IP it is");
}

#[test]
fn the_charts_names_are_found_and_a_core_install_has_no_endpoint() {
    let hook = Hook::with(Options { install: Install::Helm { release: "prod".into() }, ..Options::default() });
    for via in ["cluster-ip", "service-proxy", "port-forward"] {
        hook.run(&["-f", "push.json", "--via", via]).code(0);
    }
    let hook = Hook::with(Options { install: Install::Core, ..Options::default() });
    let sent = hook.run(&["-f", "push.json"]).code(2);
    assert!(sent.said.contains("no argocd-server in namespace argocd"), "{}", sent.said);
    assert!(sent.said.contains("core install"), "{}", sent.said);
}

#[test]
fn a_replica_with_an_old_key_is_found() {
    let hook = Hook::with(Options { servers: 3, ..Options::default() });
    hook.run(&["secret", "set", "--generate"]).code(0);
    let all = hook.run(&["-f", "push.json", "--sign", "--all-pods"]).code(0);
    let pods = all.object["pods"].as_array().unwrap();
    assert_eq!(pods.len(), 3);
    let slow = pods[1]["pod"].as_str().unwrap();
    hook.standin.cluster().faults.argo.delay_secret_reload(slow, Duration::from_secs(3600));
    let late = hook.run(&["secret", "set", "--generate", "--timeout", "2"]).code(124);
    assert!(late.said.contains(slow), "{}", late.said);
    hook.set_secret(&[("webhook.github.secret", Some("another"))]);
    let settled = || {
        let all = hook.run(&["--event", "ping", "--sign", "--all-pods"]);
        let pods = all.object["pods"].as_array().unwrap().clone();
        let refused = pods.iter().filter(|pod| pod["http_status"] == 400);
        let refused: Vec<Value> = refused.map(|pod| pod["pod"].clone()).collect();
        (refused == [json!(slow)]).then_some(all)
    };
    let found = (0..100).find_map(|_| settled()).expect("the other two read the new key");
    assert_eq!((found.code, &found.object["outcome"]), (1, &json!("refused")));
}

#[test]
fn a_body_over_the_servers_limit_is_refused_before_it_is_sent() {
    let settings = [("webhook.maxPayloadSizeMB".to_owned(), "2".to_owned())].into();
    let hook = Hook::with(Options { settings, ..Options::default() });
    fs::write(hook.path("big"), vec![b' '; 2 * 1024 * 1024 + 1]).unwrap();
    let sent = hook.run(&["--body-file", "big"]).code(2);
    assert!(sent.said.contains("webhook.maxPayloadSizeMB"), "{}", sent.said);
    assert!(!hook.standin.requests().iter().any(|request| request.path.contains("/proxy/")));
}

#[test]
fn what_is_not_allowed_is_named_by_verb_and_resource() {
    let hook = Hook::start();
    let sent = hook.run_as("nobody", &["-f", "push.json", "--via", "service-proxy"]).code(4);
    assert!(sent.said.contains("`create` on `services/proxy`"), "{}", sent.said);
    let sent = hook.run_as("nobody", &["-f", "push.json", "--sign"]).code(4);
    assert!(sent.said.contains("`get` on `secrets`"), "{}", sent.said);
    hook.standin.allow(
        "sender",
        "argocd",
        json!([{"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["services"], "verbs": ["list"]}]),
    );
    let mut command = hook.command(&["-f", "push.json"]);
    command.env("KUBECONFIG", hook.standin.kubeconfig_for("sender"));
    assert_eq!(hook::Ended::of(command).code(0).object["via"], "service-proxy", "nothing but the proxy is needed");
}

#[test]
fn an_unreachable_server_ends_within_the_time_of_a_request() {
    let hook = Hook::start();
    let start = std::time::Instant::now();
    let sent = hook.run(&["--event", "ping", "--url", "https://127.0.0.1:9", "--retries", "0"]).code(3);
    assert_eq!(sent.object["error"]["code"], "unreachable");
    assert!(start.elapsed() < Duration::from_secs(10));
}
