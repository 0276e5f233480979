//! Requests that are described: the line that is printed makes the same request when it is pasted.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod hook;

use std::{fs, time::Duration};

use hook::{Hook, REPO};

#[test]
fn the_curl_line_makes_the_request_when_it_is_pasted() {
    let hook = Hook::start();
    hook.app("app", REPO, "main");
    hook.run(&["secret", "set", "--generate", "--out", "key"]).code(0);
    let dry = ["-f", "push.json", "--sign", "--dry-run", "--save-body", "the body.json", "--via"];
    let described = hook.run(&[&dry[..], &["cluster-ip"]].concat()).code(0).object;
    assert!(!hook.is_asked_to_refresh("app"), "nothing was sent");
    assert_eq!((&described["method"], &described["outcome"]), (&"POST".into(), &"dry-run".into()));
    assert_eq!(described["headers"]["x-github-event"], "push");
    let (prepare, curl) = (described["prepare"].as_str().unwrap(), described["curl"].as_str().unwrap());
    let answer = hook.shell(&format!("{prepare}\n{curl}"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{curl}\n{answer}");
    assert!(hook.refreshed_within("app", Duration::from_secs(1)));

    let described = hook.run(&[&dry[..], &["service-proxy"]].concat()).code(0).object;
    let (prepare, curl) = (described["prepare"].as_str().unwrap(), described["curl"].as_str().unwrap());
    let curl = curl.replacen("curl", "curl --retry 30 --retry-delay 1 --retry-connrefused", 1);
    let line = format!("{prepare}\nproxy=$!\ntrap 'kill $proxy' EXIT\n{curl}");
    // The port is that of a person's machine, and may be taken on this one.
    let answer = hook.shell(&line.replace("8001", &free_port().to_string()));
    assert!(answer.contains("HTTP/1.1 200"), "{line}\n{answer}");
    assert!(hook.refreshed_within("app", Duration::from_secs(1)));

    let described = hook.run(&[&dry[..], &["port-forward"]].concat()).code(0).object;
    let (prepare, curl) = (described["prepare"].as_str().unwrap(), described["curl"].as_str().unwrap());
    let (certificate, forward) = prepare.split_once("; ").unwrap();
    assert!(forward.starts_with("kubectl port-forward -n argocd pod/argocd-server-"), "{forward}");
    assert!(forward.ends_with(" 8443:8080 &"), "{forward}");
    // The pod's own port stands for the local end: the stand-in does not speak kubectl's form of port-forward.
    let pod = hook.standin.cluster().endpoints.of("argocd")[0].port().to_string();
    let answer = hook.shell(&format!("{certificate}\n{}", curl.replace("8443", &pod)));
    assert!(answer.starts_with("HTTP/1.1 200"), "{curl}\n{answer}");
    assert!(hook.refreshed_within("app", Duration::from_secs(1)));
}

#[test]
fn a_token_is_read_from_its_file_and_never_printed() {
    let hook = Hook::start();
    hook.app("app", REPO, "main");
    fs::write(hook.path("key"), "t0ken 'of' \"ours\"\n").unwrap();
    hook.run(&["secret", "set", "--from-file", "key", "--provider", "gitlab"]).code(0);
    for words in [&["--secret-file", "key"][..], &[]] {
        let base = [
            "-f",
            "push.json",
            "--provider",
            "gitlab",
            "--sign",
            "--dry-run",
            "--save-body",
            "body.json",
            "--via",
            "cluster-ip",
        ];
        let ended = hook.run(&[&base[..], words].concat()).code(0);
        assert!(!format!("{}{}", ended.object, ended.said).contains("t0ken"), "{}", ended.object);
        let (prepare, curl) = (ended.object["prepare"].as_str().unwrap(), ended.object["curl"].as_str().unwrap());
        let answer = hook.shell(&format!("{prepare}\n{curl}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{curl}\n{answer}");
        assert!(hook.refreshed_within("app", Duration::from_secs(1)));
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
