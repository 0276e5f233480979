//! What only another server than Argo CD's does: hang up, ask for patience, never answer.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod hook;

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    thread::{JoinHandle, spawn},
    time::{Duration, Instant},
};

use hook::{Ended, Hook};
use serde_json::{Value, json};

/// A server that reads one request a connection, gives each to `answer` with its number, and hangs up. Ends after
/// `times` requests with the delivery of each.
fn server(times: usize, answer: impl Fn(usize, &mut TcpStream) + Send + 'static) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = spawn(move || {
        let mut seen = Vec::new();
        for number in 0..times {
            let (mut connection, _) = listener.accept().unwrap();
            seen.push(delivery_of(&mut connection));
            answer(number, &mut connection);
        }
        seen
    });
    (url, seen)
}

/// Reads a request to its end.
fn delivery_of(connection: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(connection.read(&mut byte).unwrap(), 1, "the request ended in its head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let header = |name: &str| {
        head.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned()).unwrap()
    };
    let length: u64 = header("content-length:").parse().unwrap();
    std::io::copy(&mut connection.take(length), &mut std::io::sink()).unwrap();
    header("x-github-delivery:")
}

#[test]
fn a_dropped_connection_is_tried_again_only_with_a_body_of_our_own() {
    let hook = Hook::start();
    let (url, seen) = server(2, |_, _| {});
    let sent = hook.run(&["-f", "push.json", "--url", &url, "--retries", "1", "--save-body", "body.json"]).code(3);
    assert_eq!((&sent.object["attempts"], &sent.object["error"]["code"]), (&json!(2), &json!("dropped")));
    let seen = seen.join().unwrap();
    assert_eq!(seen, [sent.object["delivery"].as_str().unwrap(); 2], "both under one delivery");
    let (url, seen) = server(1, |_, _| {});
    let sent = hook.run(&["--body-file", "body.json", "--url", &url]).code(3);
    assert_eq!((&sent.object["attempts"], &sent.object["http_status"]), (&json!(1), &Value::Null));
    assert_eq!(seen.join().unwrap().len(), 1);
}

#[test]
fn retry_after_is_heeded() {
    let hook = Hook::start();
    let (url, seen) = server(2, |number, connection| {
        let answer = match number {
            0 => "HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n",
            _ => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        };
        connection.write_all(answer.as_bytes()).unwrap();
    });
    let start = Instant::now();
    let sent = hook.run(&["-f", "push.json", "--url", &url]).code(0);
    assert_eq!(sent.object["attempts"], 2);
    assert!(start.elapsed() >= Duration::from_secs(2), "the first pause of its own would be half a second");
    assert_eq!(seen.join().unwrap().len(), 2);
}

/// A server that tells when it has a request, and answers nothing until it is told to.
fn silent() -> (String, std::sync::mpsc::Receiver<()>, std::sync::mpsc::Sender<()>) {
    let (came, has_come) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let (url, _) = server(1, move |_, _| {
        came.send(()).unwrap();
        let _ = ended.recv();
    });
    (url, has_come, end)
}

#[test]
fn an_interrupted_delivery_prints_what_is_known() {
    let hook = Hook::start();
    let (url, has_come, _end) = silent();
    let mut command = hook.command(&["-f", "push.json", "--url", &url]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    has_come.recv().unwrap();
    assert!(Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap().success());
    let ended = Ended::from(child.wait_with_output().unwrap()).code(130);
    assert_eq!((&ended.object["outcome"], &ended.object["attempts"]), (&json!("interrupted"), &json!(1)));
    assert!(ended.object["delivery"].is_string());
}

#[test]
fn a_server_that_never_answers_is_given_up_in_time_and_not_asked_twice() {
    let hook = Hook::start();
    let (url, _has_come, _end) = silent();
    let sent = hook.run(&["-f", "push.json", "--url", &url, "--request-timeout", "1s"]).code(3);
    assert_eq!((&sent.object["attempts"], &sent.object["error"]["code"]), (&json!(1), &json!("timeout")));
}

#[test]
fn a_body_of_50_mib_is_signed_and_sent_with_less_than_140_mib_of_memory() {
    let hook = Hook::start();
    fs::write(hook.path("big"), vec![b' '; 50 * 1024 * 1024]).unwrap();
    fs::write(hook.path("key"), "s3cr3t").unwrap();
    let (url, has_come, end) = silent();
    let words = ["--body-file", "big", "--sign", "--secret-file", "key", "--url", &url, "--request-timeout", "10m"];
    let mut child = hook.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    has_come.recv().unwrap();
    // The whole body has arrived, and the command waits for the answer: nothing more will be allocated.
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    drop(end);
    child.wait().unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!((50 * 1024..140 * 1024).contains(&kib), "{kib} KiB");
}
