//! What clients of the API see beyond kubectl: watches, chunks, conflicts, faults, rights, proxies.

use std::{
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use futures::{AsyncBufReadExt, StreamExt, stream::BoxStream};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use standin::{Matcher, Options, Outcome, PodFault, Standin};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Outside the namespaces that the application controller serves, so that only the tests write.
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/default/applications";
const ADMIN: &str = "standin-admin";
const RESOURCE: &str = "applications.argoproj.io";

async fn client_of(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the stand-in has written it");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("it is complete");
    Client::try_from(config).expect("it is complete")
}

async fn client(standin: &Standin) -> Client {
    client_of(standin.kubeconfig()).await
}

fn application(name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"project": "default", "destination": {"namespace": "x"}},
    })
}

/// One request and its answer, by a client that does not try again.
async fn send(standin: &Standin, token: &str, method: &str, path: &str, body: &str) -> reqwest::Response {
    // A second installation is refused, and is none the worse.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let media_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let client = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).build().expect("nothing is missing");
    let method = method.parse().expect("a method");
    let request = client.request(method, format!("{}{path}", standin.server())).bearer_auth(token);
    let request = request.header("content-type", media_type).body(body.to_owned());
    request.send().await.expect("the stand-in answers")
}

async fn call_as(standin: &Standin, token: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let response = send(standin, token, method, path, body).await;
    let status = response.status().as_u16();
    let text = response.text().await.expect("the answer is whole");
    (status, serde_json::from_str(&text).unwrap_or(json!(text)))
}

async fn call(standin: &Standin, method: &str, path: &str, body: &str) -> (u16, Value) {
    call_as(standin, ADMIN, method, path, body).await
}

/// The events of a watch; the stream ends with it.
async fn watch(client: &Client, path: &str, query: &str) -> BoxStream<'static, Value> {
    let request = Request::get(format!("{path}?watch=true&{query}")).body(Vec::new()).expect("it is well formed");
    let lines = client.request_stream(request).await.expect("the watch opens").lines();
    lines.take_while(|line| std::future::ready(line.is_ok())).map(|line| parse(&line.unwrap_or_default())).boxed()
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).expect("each line is an object")
}

fn kinds(event: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
}

fn pair(kind: &str, name: &str) -> (String, String) {
    (kind.into(), name.into())
}

/// Runs a test's future on a runtime of its own.
fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), future).await.expect("it ends") })
}

#[test]
fn a_watch_tells_what_enters_and_leaves_its_selection() {
    let standin = Standin::start();
    let store = standin.store();
    wait_for(async {
        let client = client(&standin).await;
        store.create(RESOURCE, application("a", json!({"team": "x"}))).expect("the name is free");
        store.create(RESOURCE, application("b", json!({"team": "y"}))).expect("the name is free");
        let mut events = watch(&client, APPLICATIONS, "labelSelector=team%3Dx").await.map(|event| kinds(&event));
        assert_eq!(events.next().await, Some(pair("ADDED", "a")));
        let label = |name: &str, team: &str| {
            let labels = json!({"team": team});
            store
                .update(RESOURCE, "default", name, |app| {
                    app["metadata"]["labels"] = labels;
                    Ok(())
                })
                .expect("it is there");
        };
        label("b", "x");
        label("a", "y");
        label("b", "x");
        store.delete(RESOURCE, "default", "b").expect("it is there");
        store.create(RESOURCE, application("c", json!({"team": "x"}))).expect("the name is free");
        for expected in [pair("ADDED", "b"), pair("DELETED", "a"), pair("DELETED", "b"), pair("ADDED", "c")] {
            assert_eq!(events.next().await, Some(expected));
        }
    });
}

#[test]
fn a_watch_goes_on_where_a_list_ended_and_is_refused_after_a_compaction() {
    let standin = Standin::start();
    wait_for(async {
        let client = client(&standin).await;
        let (_, list) = call(&standin, "GET", APPLICATIONS, "").await;
        let version = list["metadata"]["resourceVersion"].as_str().expect("a list has a version").to_owned();
        standin.store().create(RESOURCE, application("a", json!({}))).expect("the name is free");
        let from = format!("resourceVersion={version}&fieldSelector=metadata.name%3Da");
        let mut events = watch(&client, APPLICATIONS, &from).await;
        assert_eq!(events.next().await.map(|event| kinds(&event)), Some(pair("ADDED", "a")));

        standin.store().compact();
        let events: Vec<_> = watch(&client, APPLICATIONS, &from).await.collect().await;
        let [error] = events.as_slice() else { panic!("one event, then the end: {events:?}") };
        assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
        assert_eq!(error["object"]["reason"], "Expired");
    });
}

#[test]
fn bookmarks_and_the_end_of_a_watch_come_when_asked_for() {
    let standin = Standin::with(Options { bookmarks_every: Duration::from_millis(100), ..Options::default() });
    wait_for(async {
        let client = client(&standin).await;
        let query = "allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=1";
        let events: Vec<_> = watch(&client, APPLICATIONS, query).await.collect().await;
        assert!(events.len() >= 2, "{events:?}");
        assert!(events.iter().all(|event| event["type"] == "BOOKMARK" && event["object"]["kind"] == "Application"));
        let none: Vec<_> = watch(&client, APPLICATIONS, "timeoutSeconds=1").await.collect().await;
        assert_eq!(none, Vec::<Value>::new());
        let (code, status) = call(&standin, "GET", &format!("{APPLICATIONS}?watch=1&sendInitialEvents=true"), "").await;
        assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    });
}

#[test]
fn open_watches_can_be_closed_cut_expired_or_stalled() {
    let standin = Standin::start();
    let faults = &standin.cluster().faults;
    wait_for(async {
        let client = client(&standin).await;
        for (fault, last) in [
            (&(|| faults.close_watches()) as &dyn Fn(), None),
            (&|| faults.abort_watches(), None),
            (&|| faults.expire_watches(), Some(json!(410))),
        ] {
            let mut events = watch(&client, APPLICATIONS, "resourceVersion=1").await;
            fault();
            assert_eq!(events.next().await.map(|event| event["object"]["code"].clone()), last);
            assert_eq!(events.next().await, None);
        }
        let mut stalled = watch(&client, APPLICATIONS, "").await;
        faults.stall_watches();
        let mut later = watch(&client, APPLICATIONS, "").await;
        standin.store().create(RESOURCE, application("a", json!({}))).expect("the name is free");
        assert_eq!(later.next().await.map(|event| kinds(&event)), Some(pair("ADDED", "a")));
        let silence = tokio::time::timeout(Duration::from_millis(300), stalled.next()).await;
        assert!(silence.is_err(), "{silence:?}");
    });
}

#[test]
fn a_list_comes_in_chunks() {
    let standin = Standin::start();
    for index in 0..25 {
        standin.store().create(RESOURCE, application(&format!("app-{index:02}"), json!({}))).expect("the name is free");
    }
    wait_for(async {
        let (mut token, mut names, mut rest) = (String::new(), Vec::new(), Vec::new());
        loop {
            let (_, list) = call(&standin, "GET", &format!("{APPLICATIONS}?limit=10&continue={token}"), "").await;
            names.extend(
                list["items"].as_array().expect("a list has items").iter().map(|app| app["metadata"]["name"].clone()),
            );
            rest.push(list["metadata"]["remainingItemCount"].clone());
            let Some(next) = list["metadata"]["continue"].as_str() else { break };
            token = next.replace('+', "%2B").replace('=', "%3D");
        }
        assert_eq!(names, (0..25).map(|index| json!(format!("app-{index:02}"))).collect::<Vec<_>>());
        assert_eq!(rest, [json!(15), json!(5), Value::Null]);

        let (_, list) = call(&standin, "GET", &format!("{APPLICATIONS}?limit=10"), "").await;
        let token =
            list["metadata"]["continue"].as_str().expect("there is more").replace('+', "%2B").replace('=', "%3D");
        standin.store().compact();
        standin.store().delete(RESOURCE, "default", "app-00").expect("it is there");
        standin.store().compact();
        let (code, status) = call(&standin, "GET", &format!("{APPLICATIONS}?limit=10&continue={token}"), "").await;
        assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    });
}

#[test]
fn writes_conflict_are_checked_and_counted() {
    let standin = Standin::start();
    wait_for(async {
        let path = format!("{APPLICATIONS}/evt");
        let body = application("evt", json!({})).to_string();
        let (code, first) = call(&standin, "POST", APPLICATIONS, &body).await;
        assert_eq!((code, &first["metadata"]["generation"]), (201, &json!(1)));
        let (code, status) = call(&standin, "POST", APPLICATIONS, &body).await;
        assert_eq!((code, &status["message"]), (409, &json!("applications.argoproj.io \"evt\" already exists")));

        // A change of metadata is no new generation; a status is, where it is no subresource.
        let (_, annotated) = call(&standin, "PATCH", &path, r#"{"metadata":{"annotations":{"a":"b"}}}"#).await;
        let (_, synced) = call(&standin, "PATCH", &path, r#"{"status":{"sync":{"status":"Synced"}}}"#).await;
        assert_eq!([&annotated["metadata"]["generation"], &synced["metadata"]["generation"]], [&json!(1), &json!(2)]);

        let (code, status) = call(&standin, "PUT", &path, &first.to_string()).await;
        assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
        assert!(status["message"].as_str().is_some_and(|message| message.contains("the object has been modified")));
        let stale =
            json!({"metadata": {"resourceVersion": first["metadata"]["resourceVersion"], "labels": {"a": "b"}}});
        assert_eq!(call(&standin, "PATCH", &path, &stale.to_string()).await.0, 409);
        let (code, status) = call(&standin, "PUT", &path, &body).await;
        assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
        let (code, status) = call(&standin, "PATCH", &format!("{APPLICATIONS}/none"), "{}").await;
        assert_eq!((code, &status["details"]["name"]), (404, &json!("none")));
        let (code, status) = call(&standin, "PATCH", &path, r#"{"spec":{"project":null}}"#).await;
        assert_eq!(
            (code, &status["message"]),
            (422, &json!("Application.argoproj.io \"evt\" is invalid: spec.project: Required value"))
        );

        let (code, _) = call(&standin, "PATCH", &format!("{path}?dryRun=All"), r#"{"spec":{"project":"other"}}"#).await;
        let stored = standin.store().get(RESOURCE, "default", "evt").expect("it is there");
        assert_eq!((code, &stored["spec"]["project"]), (200, &json!("default")));
    });
}

#[test]
fn requests_fail_as_often_as_asked() {
    let standin = Standin::start();
    let faults = &standin.cluster().faults;
    wait_for(async {
        let client = client(&standin).await;
        let refused = Outcome::Refused { code: 429, retry_after_s: Some(1) };
        faults.fail(Matcher::any().method("GET").path("/applications").watch(false), 2, refused);
        for _ in 0..2 {
            let response = send(&standin, ADMIN, "GET", APPLICATIONS, "").await;
            assert_eq!(
                (response.status().as_u16(), &response.headers()["retry-after"]),
                (429, &"1".parse().expect("a value"))
            );
        }
        assert_eq!(call(&standin, "GET", APPLICATIONS, "").await.0, 200);
        for code in [403, 409, 410, 500, 503] {
            faults.fail(Matcher::any().watch(true), 1, Outcome::Refused { code, retry_after_s: None });
            let (found, status) = call(&standin, "GET", &format!("{APPLICATIONS}?watch=true"), "").await;
            assert_eq!((found, &status["code"]), (code, &json!(code)));
        }
        faults.fail(Matcher::any(), 1, Outcome::Delayed(Duration::from_millis(200)));
        let before = Instant::now();
        assert_eq!(call(&standin, "GET", APPLICATIONS, "").await.0, 200);
        assert!(before.elapsed() >= Duration::from_millis(200));

        let request = || Request::get(APPLICATIONS).body(Vec::new()).expect("it is well formed");
        faults.fail(Matcher::any(), usize::MAX, Outcome::Cut);
        assert!(client.request_text(request()).await.is_err());
        faults.answer_all();
        faults.fail(Matcher::any(), 1, Outcome::Hung);
        let hung = tokio::time::timeout(Duration::from_millis(200), client.request_text(request())).await;
        assert!(hung.is_err());
        faults.refuse_connections(true);
        assert!(client.request_text(request()).await.is_err());
        faults.refuse_connections(false);
        while client.request_text(request()).await.is_err() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_request_may_take_effect_without_an_answer() {
    let standin = Standin::start();
    wait_for(async {
        let maps: Api<ConfigMap> = Api::namespaced(client(&standin).await, "argocd");
        standin.cluster().faults.fail(Matcher::any().method("PATCH"), 1, Outcome::CutAfterwards);
        let patch = Patch::Merge(json!({"data": {"a": "1"}}));
        assert!(maps.patch("argocd-cm", &PatchParams::default(), &patch).await.is_err());
        let stored = || standin.store().get("configmaps", "argocd", "argocd-cm").expect("it is part of the install");
        assert_eq!(stored()["data"]["a"], "1");
        standin.cluster().faults.fail(Matcher::any().method("PATCH"), 1, Outcome::HungAfterwards);
        let params = PatchParams::default();
        let patch = Patch::Merge(json!({"data": {"a": "2"}}));
        let hung = tokio::time::timeout(Duration::from_millis(500), maps.patch("argocd-cm", &params, &patch)).await;
        assert!(hung.is_err());
        assert_eq!(stored()["data"]["a"], "2");
    });
}

#[test]
fn a_user_may_do_what_roles_allow() {
    let standin = Standin::start();
    let kubeconfig = standin.kubeconfig_for("ci");
    standin.store().create(RESOURCE, application("evt", json!({}))).expect("the name is free");
    wait_for(async {
        let client = client_of(&kubeconfig).await;
        let path = format!("{APPLICATIONS}/evt");
        let (code, status) = call_as(&standin, "standin-ci", "GET", &path, "").await;
        let message = "applications.argoproj.io \"evt\" is forbidden: User \"ci\" cannot get resource \"applications\" in API \
                       group \"argoproj.io\" in the namespace \"default\"";
        assert_eq!((code, &status["message"]), (403, &json!(message)));
        standin.allow(
            "ci",
            "default",
            json!([{"apiGroups": ["argoproj.io"], "resources": ["applications"], "resourceNames": ["evt"], "verbs": ["get", "list"]}]),
        );
        assert_eq!(call_as(&standin, "standin-ci", "GET", &path, "").await.0, 200);
        let only = format!("{APPLICATIONS}?fieldSelector=metadata.name%3Devt");
        assert_eq!(call_as(&standin, "standin-ci", "GET", &only, "").await.0, 200);
        assert_eq!(call_as(&standin, "standin-ci", "GET", APPLICATIONS, "").await.0, 403);
        assert_eq!(call_as(&standin, "standin-ci", "GET", &format!("{only}&watch=true"), "").await.0, 403);
        assert_eq!(call_as(&standin, "standin-ci", "PATCH", &path, "{}").await.0, 403);

        standin.allow(
            "ci",
            "",
            json!([{"apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate"]}]),
        );
        let request =
            Request::get(&path).header("impersonate-user", "bob").body(Body::empty()).expect("it is well formed");
        let refused = client.send(request).await.expect("the stand-in answers");
        assert_eq!(refused.status(), 403);
        let last = standin.requests().pop().expect("requests are recorded");
        assert_eq!((last.user.as_str(), last.as_user.as_deref()), ("ci", Some("bob")));
        standin.cluster().tokens.revoke("standin-ci");
        assert_eq!(
            call_as(&standin, "standin-ci", "GET", &path, "").await,
            (
                401,
                json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
                    "reason": "Unauthorized", "code": 401,
                })
            )
        );
    });
}

#[test]
fn an_unknown_route_is_answered_501_and_fails_the_test() {
    let standin = Standin::start();
    wait_for(async {
        assert_eq!(call(&standin, "GET", "/apis/batch/v1/jobs", "").await.0, 501);
    });
    assert_eq!(standin.unknown_routes(), ["GET /apis/batch/v1/jobs"]);
    assert!(thread::spawn(|| drop(standin)).join().is_err());
}

/// A pod `web-…` behind a Service `web`, whose program answers every connection with what it was sent, after a status
/// line.
fn web(standin: &Standin) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut seen = Vec::new();
            let mut buffer = [0; 4096];
            while !seen.windows(3).any(|part| part == b"END") {
                match stream.read(&mut buffer) {
                    Ok(read @ 1..) => seen.extend_from_slice(&buffer[..read]),
                    _ => break,
                }
            }
            let head = format!("HTTP/1.1 418 Teapot\r\nX-Own: yes\r\nContent-Length: {}\r\n\r\n", seen.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&seen));
        }
    });
    let labels = json!({"app": "web"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "argocd"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }},
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "argocd"},
        "spec": {"selector": labels, "ports": [{"name": "http", "port": 8000}]},
    });
    standin.store().create("services", service).expect("the name is free");
    standin.store().create("deployments.apps", deployment).expect("the name is free");
    let ready = || {
        let pods = standin.store().list("pods", Some("argocd")).0;
        let pod = pods.into_iter().find(|pod| pod["metadata"]["labels"]["app"] == "web")?;
        (pod["status"]["conditions"][3]["status"] == "True")
            .then(|| pod["metadata"]["name"].as_str().map(str::to_owned))?
    };
    standin.until("the pod is ready", || ready().is_some());
    let pod = ready().expect("it was a moment ago");
    standin.cluster().endpoints.open("argocd", &pod, address);
    pod
}

#[test]
fn the_service_proxy_passes_requests_on_without_the_callers_credentials() {
    let standin = Standin::start();
    web(&standin);
    wait_for(async {
        let client = client(&standin).await;
        for port in ["http", "8000"] {
            let path = format!("/api/v1/namespaces/argocd/services/http:web:{port}/proxy/a%20b/c/?q=1");
            let request =
                Request::post(path).header("X-Hub-Signature-256", "sha256=00").body(Body::from(b"bodyEND".to_vec()));
            let response = client.send(request.expect("it is well formed")).await.expect("the stand-in answers");
            assert_eq!((response.status().as_u16(), response.headers()["x-own"].to_str().ok()), (418, Some("yes")));
            let seen = response.into_body().collect_bytes().await.expect("the answer is whole");
            let seen = String::from_utf8_lossy(&seen).to_lowercase();
            assert!(seen.starts_with("post /a%20b/c/?q=1 http/1.1\r\n"), "{seen}");
            assert!(seen.ends_with("\r\n\r\nbodyend"), "{seen}");
            assert!(seen.contains("x-hub-signature-256: sha256=00") && seen.contains("x-forwarded-uri:"), "{seen}");
            assert!(!seen.contains("authorization"), "{seen}");
        }
        for (name, code, words) in [
            ("http:none:80", 404, "services \"none\" not found"),
            ("http:web:81", 503, "no service port \"81\" found for service \"web\""),
        ] {
            let (found, status) =
                call(&standin, "GET", &format!("/api/v1/namespaces/argocd/services/{name}/proxy/"), "").await;
            assert_eq!((found, &status["message"]), (code, &json!(words)));
        }
        standin
            .store()
            .update("deployments.apps", "argocd", "web", |web| {
                web["spec"]["replicas"] = json!(0);
                Ok(())
            })
            .expect("it is there");
        let (code, status) = loop {
            let answer = call(&standin, "GET", "/api/v1/namespaces/argocd/services/http:web:http/proxy/END", "").await;
            if answer.0 != 418 {
                break answer;
            }
        };
        assert_eq!((code, &status["message"]), (503, &json!("no endpoints available for service \"http:web:http\"")));
    });
}

#[test]
fn a_port_of_a_pod_can_be_forwarded() {
    let standin = Standin::start();
    let pod = web(&standin);
    wait_for(async {
        let pods: Api<Pod> = Api::namespaced(client(&standin).await, "argocd");
        let mut forwarder = pods.portforward(&pod, &[8080]).await.expect("the tunnel opens");
        let mut stream = forwarder.take_stream(8080).expect("the port was asked for");
        stream.write_all(b"hello END").await.expect("the tunnel is open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("the tunnel is open");
        assert!(answer.ends_with("hello END"), "{answer}");

        let mut forwarder = pods.portforward(&pod, &[9999]).await.expect("the tunnel opens");
        let error = forwarder.take_error(9999).expect("the port was asked for").await.expect("nothing listens there");
        assert!(error.contains("connection refused"), "{error}");
        assert!(pods.portforward("none", &[8080]).await.is_err());
    });
}

#[test]
fn pods_fail_on_request_and_recover() {
    let standin = Standin::start();
    let faults = &standin.cluster().faults;
    let prefix = "argocd-application-controller";
    let pod = || standin.store().get("pods", "argocd", "argocd-application-controller-0");
    let until = |what: &str, reached: &dyn Fn(&Value) -> bool| {
        standin
            .until(what, || pod().is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_null() && reached(&pod)));
    };
    let restart = || {
        standin
            .store()
            .update("pods", "argocd", "argocd-application-controller-0", |pod| {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                Ok(())
            })
            .expect("it is there");
    };
    let waiting = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].clone();
    let ready = |pod: &Value| pod["status"]["containerStatuses"][0]["ready"] == true;

    let crash = PodFault::CrashLoop { lines: vec!["level=fatal msg=\"no\"".into()], exit_code: 20 };
    faults.break_pods(prefix, crash);
    restart();
    until("it crashes", &|pod| {
        waiting(pod) == "CrashLoopBackOff" && pod["status"]["containerStatuses"][0]["restartCount"] == 2
    });
    let last =
        pod().expect("it is there")["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"].clone();
    assert_eq!(last, 20);
    for previous in ["false", "true"] {
        let mut kubectl = standin.kubectl();
        kubectl.args(["-n", "argocd", "logs", "argocd-application-controller-0", &format!("--previous={previous}")]);
        let output = kubectl.output().expect("kubectl is there");
        assert!(String::from_utf8_lossy(&output.stdout).trim_end().ends_with("level=fatal msg=\"no\""), "{output:?}");
    }
    faults.heal_pods();
    until("it recovers", &ready);

    faults.break_pods(prefix, PodFault::ImagePull);
    restart();
    until("the image is missing", &|pod| waiting(pod) == "ImagePullBackOff");
    faults.heal_pods();
    until("it recovers", &ready);

    faults.break_pods(prefix, PodFault::Unschedulable);
    restart();
    until("no node takes it", &|pod| pod["status"]["conditions"][0]["reason"] == "Unschedulable");
    faults.heal_pods();
    until("it recovers", &ready);

    faults.break_pods(prefix, PodFault::NeverReady);
    restart();
    until("it runs", &|pod| pod["status"]["phase"] == "Running" && !ready(pod));
    faults.heal_pods();
    until("it recovers", &ready);

    standin.cluster().processes.exit("argocd", "argocd-application-controller-0", 1);
    until("it has started again in place", &|pod| {
        ready(pod) && pod["status"]["containerStatuses"][0]["restartCount"] == 1
    });
}

/// About the size of a real one: 2.5 kB.
fn fleet_member(index: usize) -> Value {
    let mut app = application(&format!("app-{index:05}"), json!({"team": format!("t{}", index % 10)}));
    let resource = |n: usize| {
        json!({
            "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "x", "name": format!("web-{n}"),
            "status": "Synced", "health": {"status": "Healthy"},
        })
    };
    let history = |n: usize| {
        json!({
            "id": n, "revision": format!("{n:040}"), "deployedAt": "2026-11-30T20:00:00Z",
            "source": {"repoURL": "https://git.invalid/o/r.git", "path": "app", "targetRevision": "main"},
        })
    };
    app["status"] = json!({
        "sync": {"status": "Synced", "revision": "0".repeat(40)}, "health": {"status": "Healthy"},
        "resources": (0..6).map(resource).collect::<Vec<_>>(), "history": (0..6).map(history).collect::<Vec<_>>(),
    });
    app
}

#[test]
fn ten_thousand_applications_are_listed_in_chunks_and_watched() {
    let standin = Standin::start();
    for index in 0..10_000 {
        standin.store().create(RESOURCE, fleet_member(index)).expect("the name is free");
    }
    wait_for(async {
        let client = client(&standin).await;
        let response = send(&standin, ADMIN, "GET", APPLICATIONS, "").await;
        let list = parse(&response.text().await.expect("the answer is whole"));
        assert_eq!(list["items"].as_array().map(Vec::len), Some(10_000));
        let (mut token, mut count) = (String::new(), 0);
        let version = loop {
            let query = format!("limit=500&labelSelector=team%21%3Dt3&continue={token}");
            let text = send(&standin, ADMIN, "GET", &format!("{APPLICATIONS}?{query}"), "").await.text().await;
            let list = parse(&text.expect("the answer is whole"));
            count += list["items"].as_array().map_or(0, Vec::len);
            let version = list["metadata"]["resourceVersion"].as_str().expect("a list has a version").to_owned();
            let Some(next) = list["metadata"]["continue"].as_str() else { break version };
            token = next.replace('+', "%2B").replace('=', "%3D");
        };
        assert_eq!(count, 9_000);
        let mut events = watch(&client, APPLICATIONS, &format!("resourceVersion={version}")).await;
        for index in (0..10_000).step_by(100) {
            let name = format!("app-{index:05}");
            standin
                .store()
                .update(RESOURCE, "default", &name, |app| {
                    app["status"]["sync"]["revision"] = json!("1".repeat(40));
                    Ok(())
                })
                .expect("it is there");
        }
        for index in (0..10_000).step_by(100) {
            assert_eq!(
                events.next().await.map(|event| kinds(&event)),
                Some(pair("MODIFIED", &format!("app-{index:05}")))
            );
        }
    });
}
