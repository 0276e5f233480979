//! argocd-server from outside, by curl: TLS and plain HTTP, paths, secrets, providers, several pods.

mod world;

use std::{process::Command, time::Duration};

use serde_json::{Value, json};
use standin::{Options, processes::Component};
use world::{PATIENCE, REFRESH, Reply, World, curl_reply};

const PING: [&str; 2] = ["-H", "X-GitHub-Event: ping"];
const SECRET: &str = "0123456789abcdef";

fn version(tag: &str) -> Options {
    Options { version: tag.into(), ..Options::default() }
}

/// curl to any address, without a look at the certificate.
fn curl(url: &str, arguments: &[&str]) -> Reply {
    let mut curl = Command::new("curl");
    curl.args(["-ksS", "--max-time", "20", "--noproxy", "*", "-w", "\n%{http_code}"]).args(arguments).arg(url);
    curl_reply(&mut curl, "")
}

/// The addresses of the pods themselves.
fn pods(world: &World) -> Vec<String> {
    world.standin.cluster().endpoints.of("argocd").iter().map(ToString::to_string).collect()
}

fn wait_for_servers(world: &World, count: usize) {
    world.wait_until("the servers", PATIENCE, || pods(world).len() == count);
}

/// Sets a key of `argocd-cmd-params-cm` and restarts argocd-server.
fn set_parameter(world: &World, key: &str, value: &str) {
    let patch = json!({"data": {key: value}}).to_string();
    world.kubectl(&["patch", "configmap", "argocd-cmd-params-cm", "-n", "argocd", "--type", "merge", "-p", &patch]);
    world.kubectl(&["rollout", "restart", "deployment/argocd-server", "-n", "argocd"]);
    world.kubectl(&["rollout", "status", "deployment/argocd-server", "-n", "argocd", "--timeout", "30s"]);
}

#[test]
fn the_certificate_of_the_cluster_is_shown_and_plain_http_is_sent_to_https() {
    let world = World::new();
    wait_for_servers(&world, 1);
    assert_eq!(world.post_with("{}", &PING).status, 200);
    let (http, https) = world.standin.cluster().service_ports;
    let moved = curl(&format!("http://127.0.0.1:{http}/api/webhook?x=1"), &["-i", "-X", "POST"]);
    assert_eq!(moved.status, 307);
    assert!(moved.body.contains(&format!("location: https://127.0.0.1:{http}/api/webhook?x=1")), "{}", moved.body);
    let root = format!("https://127.0.0.1:{https}");
    assert_eq!(curl(&format!("{root}/healthz"), &[]), Reply { status: 200, body: "ok".into() });
    let get = curl(&format!("{root}/api/webhook"), &["-H", "X-GitHub-Event: push"]);
    assert_eq!(get, Reply { status: 405, body: "Webhook processing failed\n".into() });
    assert_eq!(curl(&format!("{root}/api/webhook"), &[]).body, "Unknown webhook event\n");
    let slash = curl(&format!("{root}/api/webhook/"), &["-X", "POST", "-H", "X-GitHub-Event: push"]);
    assert_eq!((slash.status, slash.body.contains("Not Found")), (404, true));
    assert_eq!(curl(&format!("{root}/nothing"), &[]).status, 404);
}

#[test]
fn a_certificate_of_its_own_goes_first_and_is_taken_over_while_running() {
    let world = World::new();
    wait_for_servers(&world, 1);
    let dir = world.dir().join(".git");
    let (certificate, key) = (dir.join("own.pem"), dir.join("own.key"));
    let names = "subjectAltName=DNS:argocd-server";
    world::run(
        Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=own", "-addext", names, "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate),
    );
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    world.kubectl(&[
        "create",
        "secret",
        "tls",
        "argocd-server-tls",
        "-n",
        "argocd",
        "--cert",
        &certificate,
        "--key",
        &key,
    ]);
    let port = world.standin.cluster().service_ports.1;
    let trusted = || {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--noproxy", "*", "-w", "\n%{http_code}", "--cacert", &certificate])
            .args(["--resolve", &format!("argocd-server:{port}:127.0.0.1")])
            .arg(format!("https://argocd-server:{port}/healthz"));
        curl_reply(&mut curl, "").status == 200
    };
    world.wait_until("the new certificate", PATIENCE, trusted);
}

#[test]
fn an_insecure_server_speaks_plain_http_only() {
    let world = World::new();
    set_parameter(&world, "server.insecure", "true");
    let (http, https) = world.standin.cluster().service_ports;
    for port in [http, https] {
        assert_eq!(curl(&format!("http://127.0.0.1:{port}/healthz"), &[]).status, 200);
        assert_eq!(curl(&format!("https://127.0.0.1:{port}/healthz"), &[]).status, 0);
    }
}

#[test]
fn a_root_path_moves_the_webhook() {
    let world = World::new();
    set_parameter(&world, "server.rootpath", "/argo");
    let root = format!("https://127.0.0.1:{}", world.standin.cluster().service_ports.1);
    let post = |path: &str| curl(&format!("{root}{path}"), &["-X", "POST", "-d", "{}", "-H", "X-GitHub-Event: ping"]);
    assert_eq!([post("/argo/api/webhook").status, post("/api/webhook").status], [200, 404]);
}

#[test]
fn before_3_5_the_sender_is_told_why() {
    let world = World::with(version("v3.4.7"));
    wait_for_servers(&world, 1);
    world.set_secret("webhook.github.secret", SECRET);
    world.wait_until("the secret is in force", PATIENCE, || world.post_with("{}", &PING).status == 400);
    let said = |arguments: &[&str]| world.post("{}", arguments).body;
    assert_eq!(said(&[]), "Webhook processing failed: missing X-Hub-Signature-256 Header\n");
    let wrong = ["-H", "X-Hub-Signature-256: sha256=00"];
    assert_eq!(said(&wrong), "Webhook processing failed: HMAC verification failed\n");
    assert!(world.log_of(Component::Server).contains(&"GitHub webhook HMAC verification failed".to_owned()));
}

#[test]
fn each_pod_takes_a_new_secret_in_its_own_time() {
    let world = World::with(Options { servers: 2, ..Options::default() });
    wait_for_servers(&world, 2);
    let running = world.standin.cluster().processes.of(Component::Server);
    world.standin.cluster().faults.argo.delay_secret_reload(&running[1].pod, Duration::from_secs(3600));
    world.set_secret("webhook.github.secret", SECRET);
    let unsigned = |pod: &str| {
        let url = format!("https://{pod}/api/webhook");
        curl(&url, &["-d", "{}", "-H", "X-GitHub-Event: ping"]).status
    };
    let address = |process: &standin::processes::Process| {
        let address = world.standin.cluster().endpoints.get("argocd", &process.pod);
        address.expect("it listens").to_string()
    };
    let (quick, slow) = (address(&running[0]), address(&running[1]));
    world.wait_until("the first one", PATIENCE, || unsigned(&quick) == 400);
    assert_eq!(unsigned(&slow), 200, "it has not heard of the secret");
    let log = running[0].log.lines().join("\n");
    for line in ["github secret modified. restarting", "GracefulRestartSignal", "serving on port 8080"] {
        assert!(log.contains(line), "{line}\n{log}");
    }
    // Both behind one Service: new connections go to either.
    let statuses: Vec<u16> = (0..8).map(|_| world.post_with("{}", &PING).status).collect();
    assert!(statuses.contains(&200) && statuses.contains(&400), "{statuses:?}");
}

#[test]
fn a_full_queue_and_a_cut_connection_come_on_request() {
    let world = World::new();
    wait_for_servers(&world, 1);
    world.standin.cluster().faults.argo.fill_webhook_queue(1);
    let full = Reply { status: 503, body: "Queue is full, discarding webhook payload\n".into() };
    assert_eq!(world.post_with("{}", &PING), full);
    world.standin.cluster().faults.argo.drop_connections(1);
    assert_eq!(world.post_with("{}", &PING).status, 0);
    assert_eq!(world.post_with("{}", &PING).status, 200);
}

#[test]
fn a_body_over_the_limit_is_refused_as_such() {
    let settings = [("webhook.maxPayloadSizeMB".to_owned(), "1".to_owned())].into();
    let world = World::with(Options { settings, ..Options::default() });
    wait_for_servers(&world, 1);
    let body = format!("{{\"x\":\"{}\"}}", "y".repeat(1024 * 1024));
    let refused = world.post(&body, &["-H", "Expect:"]);
    let text = "Webhook processing failed: payload must be valid JSON under 1 MB\n";
    assert_eq!(refused, Reply { status: 400, body: text.into() });
    assert_eq!(world.post(&body[..1024 * 1024 - 10], &[]).body, "Webhook processing failed\n", "it is no JSON");
}

/// One signed event of a provider: its headers, its body.
fn event(world: &World, provider: &str, url: &str, before: &str, after: &str) -> (Vec<String>, String) {
    let commits = json!([]);
    let push = json!({"ref": "refs/heads/main", "before": before, "after": after, "commits": commits});
    let with = |key: &str, value: Value| {
        let mut push = push.clone();
        push[key] = value;
        push.to_string()
    };
    let signature = |body: &str| world.hmac_sha256(SECRET, body);
    match provider {
        "github" => {
            let body = with("repository", json!({"html_url": url, "default_branch": "main"}));
            let header = format!("X-Hub-Signature-256: sha256={}", signature(&body));
            (vec!["X-GitHub-Event: push".into(), header], body)
        }
        "gogs" => {
            let body = with("repository", json!({"html_url": url, "default_branch": "main"}));
            let header = format!("X-Gogs-Signature: {}", signature(&body));
            (vec!["X-Gogs-Event: push".into(), "X-GitHub-Event: push".into(), header], body)
        }
        "gitlab" => {
            let body = with("project", json!({"web_url": url, "default_branch": "main"}));
            (vec!["X-Gitlab-Event: Push Hook".into(), format!("X-Gitlab-Token: {SECRET}")], body)
        }
        "bitbucket" => {
            let new = json!({"name": "main", "target": {"hash": after}});
            let body = json!({
                "repository": {"full_name": "w/r", "links": {"html": {"href": url}}},
                "push": {"changes": [{"new": new, "old": {"target": {"hash": before}}}]},
            });
            (vec![format!("X-Hook-UUID: {SECRET}"), "X-Event-Key: repo:push".into()], body.to_string())
        }
        "bitbucketserver" => {
            let body = json!({
                "repository": {"links": {"clone": [{"name": "http", "href": url}]}},
                "changes": [{"ref": {"id": "refs/heads/main"}}],
            })
            .to_string();
            let header = format!("X-Hub-Signature: sha256={}", signature(&body));
            (vec!["X-Event-Key: repo:refs_changed".into(), header], body)
        }
        "azuredevops" => {
            let update = json!({"name": "refs/heads/main", "oldObjectId": before, "newObjectId": after});
            let body = json!({"eventType": "git.push", "resource": {
                "refUpdates": [update],
                "repository": {"remoteUrl": url, "defaultBranch": "refs/heads/main"},
            }});
            // openssl knows base64, too.
            let login = world::run_with(Command::new("openssl").args(["base64", "-A"]), b"user:pw");
            (vec!["X-Vss-Activityid: a".into(), format!("Authorization: Basic {}", login.trim())], body.to_string())
        }
        other => panic!("{other}"),
    }
}

#[test]
fn an_event_of_every_provider_moves_the_application_and_a_forged_one_does_not() {
    let world = World::with(Options { secret_reload: Duration::from_millis(20), ..Options::default() });
    let mut last = world.commit("r0");
    world.apply_evt();
    world.wait_for_revision(&last, PATIENCE);
    let keys = json!({"stringData": {
        "webhook.github.secret": SECRET,
        "webhook.gitlab.secret": SECRET,
        "webhook.bitbucket.uuid": SECRET,
        "webhook.bitbucketserver.secret": SECRET,
        "webhook.gogs.secret": SECRET,
        "webhook.azuredevops.username": "user",
        "webhook.azuredevops.password": "pw",
    }});
    world.kubectl(&["patch", "secret", "argocd-secret", "-n", "argocd", "--type", "merge", "-p", &keys.to_string()]);
    world.wait_until("the secrets are in force", PATIENCE, || world.post_with("{}", &PING).status == 400);
    let url = world.standin.git_url("evt.git");
    for provider in ["github", "gogs", "gitlab", "bitbucket", "bitbucketserver", "azuredevops"] {
        let next = world.commit(provider);
        let (headers, body) = event(&world, provider, &url, &last, &next);
        let post = |headers: &[String]| {
            let arguments: Vec<&str> = headers.iter().flat_map(|header| ["-H", header]).collect();
            world.post_with(&body, &arguments)
        };
        let forged: Vec<String> = headers.iter().map(|header| forge(header)).collect();
        assert_eq!(post(&forged).status, 400, "{provider}");
        assert!(world.application("evt")["metadata"]["annotations"][REFRESH].is_null());
        assert_eq!(post(&headers), Reply { status: 200, body: String::new() }, "{provider}");
        world.wait_for_revision(&next, Duration::from_secs(5));
        last = next;
    }
    let log = world.log_of(Component::Server);
    let moved = log.iter().filter(|line| *line == "refreshing app from webhook").count();
    let asked = log.iter().filter(|line| *line == "Requested app 'evt' refresh").count();
    assert_eq!((moved, asked), (6, 12), "the annotation is said to be set twice");
}

/// The same header with another secret, token or signature.
fn forge(header: &str) -> String {
    let (name, value) = header.split_once(": ").expect("is a header");
    match name {
        "X-Hub-Signature-256" | "X-Hub-Signature" | "X-Gogs-Signature" => {
            let last = if value.ends_with('0') { '1' } else { '0' };
            format!("{name}: {}{last}", &value[..value.len() - 1])
        }
        "X-Gitlab-Token" | "X-Hook-UUID" => format!("{name}: nope"),
        "Authorization" => format!("{name}: Basic bm9wZTpub3Bl"),
        _ => header.to_owned(),
    }
}

#[test]
fn a_push_that_misses_the_paths_moves_the_cache_and_not_the_revision() {
    let world = World::new();
    let first = world.commit("r1");
    let mut evt = world.evt();
    evt["metadata"]["annotations"] = json!({"argocd.argoproj.io/manifest-generate-paths": "."});
    world.create(evt);
    world.wait_for("a sync", PATIENCE, |app| app["status"]["operationState"]["phase"] == "Succeeded");
    world.write("elsewhere/x", "x");
    let second = world.push("elsewhere");
    let mut event: Value = serde_json::from_str(&world.push_event(&first, &second)).expect("is JSON");
    event["commits"] = json!([{"added": ["elsewhere/x"], "modified": [], "removed": []}]);
    assert_eq!(world.post(&event.to_string(), &[]).status, 200);
    let line = "manifests cache moved".to_owned();
    world.wait_until("the line", PATIENCE, || world.log_of(Component::Server).contains(&line));
    assert_eq!(world.application("evt")["status"]["sync"]["revision"], first.as_str());
    assert!(world.application("evt")["metadata"]["annotations"][REFRESH].is_null());
    world.refresh();
    world.wait_for_revision(&second, PATIENCE);
}

#[test]
fn a_bad_body_ends_the_process_of_a_release_that_does_not_recover() {
    let world = World::with(version("v2.14.0"));
    wait_for_servers(&world, 1);
    let body = r#"{"ref":"refs/heads/main","repository":{"html_url":"https://host"}}"#;
    let pod = world.standin.cluster().processes.of(Component::Server)[0].pod.clone();
    assert_eq!(world.post(body, &[]).status, 200);
    world.wait_until("a restart", PATIENCE, || {
        let pod = world.standin.store().get("pods", "argocd", &pod).unwrap_or_default();
        pod["status"]["containerStatuses"][0]["restartCount"] == 1
    });
    wait_for_servers(&world, 1);
}

#[test]
fn the_older_servers_answer_when_all_is_done() {
    let world = World::with(version("v2.12.0"));
    let first = world.commit("r1");
    let mut evt = world.evt();
    evt["metadata"]["annotations"] = json!({"argocd.argoproj.io/skip-reconcile": "true"});
    world.create(evt);
    wait_for_servers(&world, 1);
    assert_eq!(world.post(&world.push_event(&first, &first), &[]).status, 200);
    assert_eq!(world.application("evt")["metadata"]["annotations"][REFRESH], "normal");
}

#[test]
fn a_match_is_logged_in_the_words_of_the_release() {
    for (tag, expected) in [
        ("v3.5.1", &["refreshing app from webhook", "Requested app 'evt' refresh", "Requested app 'evt' refresh"][..]),
        (
            "v3.5.0",
            &["refreshing app 'evt' from webhook", "Requested app 'evt' refresh", "Requested app 'evt' refresh"],
        ),
        ("v3.4.7", &["refreshing app 'evt' from webhook", "Requested app 'evt' refresh"]),
        ("v3.2.5", &["Requested app 'evt' refresh"]),
        ("v2.8.0", &["Requested app 'evt' refresh"]),
    ] {
        let world = World::with(version(tag));
        let first = world.commit("r1");
        world.create(world.evt());
        wait_for_servers(&world, 1);
        assert_eq!(world.post(&world.push_event(&first, &first), &[]).status, 200);
        let log = || {
            let lines = world.log_of(Component::Server).into_iter();
            // Text up to v2.14, JSON since.
            let message = |line: String| match line.split_once("msg=") {
                Some((_, message)) => message.trim_matches('"').to_owned(),
                None => line,
            };
            lines.map(message).filter(|line| line.contains("refresh")).collect::<Vec<_>>()
        };
        world.wait_until("the lines", PATIENCE, || log().len() >= expected.len());
        assert_eq!(log(), expected, "{tag}");
        let url = world.standin.git_url("evt");
        let received = format!("Received push event repo: {url}, revision: main, touchedHead: true");
        assert!(world.log_of(Component::Server).iter().any(|line| line.contains(&received)), "{tag}");
    }
}
