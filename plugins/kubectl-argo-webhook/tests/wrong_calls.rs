//! Wrong calls: exit code 2, a hint, and nothing sent.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod hook;

use std::fs;

use hook::{AFTER, BEFORE, Hook, record};
use serde_json::{Value, json};

#[test]
fn a_wrong_call_is_refused_with_a_hint_before_anything_is_asked_of_the_cluster() {
    let hook = Hook::start();
    let before = hook.standin.requests().len();
    for (name, edit) in [
        ("no-commit", json!({"commit": null})),
        ("host-only", json!({"repo_url": "https://git.example.com/"})),
        ("ipv6", json!({"repo_url": "https://[::1]/o/r"})),
        ("ssh", json!({"repo_url": "git@git.example.com:o/r"})),
        ("bare-ref", json!({"ref": "main"})),
        ("odd-commits", json!({"commits": "none"})),
    ] {
        let mut record = record();
        record.as_object_mut().unwrap().extend(edit.as_object().unwrap().clone());
        fs::write(hook.path(name), record.to_string()).unwrap();
    }
    fs::write(hook.path("empty"), "").unwrap();
    fs::write(hook.path("malformed"), "{\"commit\":").unwrap();
    fs::write(hook.path("newline"), "\n").unwrap();
    let hand = ["--repo-url", "https://git.example.com/o/r", "--ref", "refs/heads/main", "--after", AFTER];
    let calls: Vec<(Vec<&str>, &str)> = vec![
        (vec![], "nothing to send"),
        (vec!["-f", "empty"], "it is empty"),
        (vec!["-f", "-"], "it is empty"),
        (vec!["-f", "malformed"], "EOF"),
        (vec!["-f", "missing"], "cannot read missing"),
        (vec!["-f", "no-commit"], "no `commit`"),
        (vec!["-f", "host-only"], "a host but no path"),
        (vec!["-f", "ipv6"], "IPv6"),
        (vec!["-f", "ssh"], "first path segment"),
        (vec!["-f", "bare-ref"], "not a full ref"),
        (vec!["-f", "odd-commits"], "not a list"),
        (vec!["--body-file", "empty"], "is empty"),
        (vec!["--body-file", "missing"], "cannot read missing"),
        (vec!["-f", "push.json", "--sign", "--secret-file", "newline"], "is empty"),
        (vec!["-f", "push.json", "--sign", "--secret-file", "missing"], "cannot read missing"),
        (vec!["-f", "push.json", "--sign", "--secret-env", "NOT_SET_AT_ALL"], "is not set"),
        (vec!["-f", "push.json", "--secret-file", "newline"], "--sign"),
        (vec!["-f", "push.json", "--body-file", "empty"], "cannot be used with"),
        (vec!["-f", "push.json", "--provider", "github", "--provider", "gitlab"], "cannot be used multiple times"),
        (vec!["-f", "push.json", "--provider", "gerrit"], "possible values"),
        (vec!["-f", "push.json", "--url", "https://h", "--via", "auto"], "cannot be used with"),
        (vec!["--url", "ftp://h/x", "-f", "push.json"], "http:// or https://"),
        (vec!["--event", "ping", "--provider", "gitlab"], "no ping of GitLab"),
        ([&hand[..], &["--before", BEFORE, "--modified", "a"]].concat(), "cannot be used with"),
        (vec!["--repo-url", "https://git.example.com/o/r", "--after", AFTER], "--ref"),
        (vec!["--repo-url", "https://git.example.com/o/r", "--ref", "refs/heads/main"], "--after"),
        (vec!["explain"], "required"),
        (vec!["explain", "-f", "host-only"], "a host but no path"),
        (vec!["verify", "--body-file", "push.json"], "required"),
        (vec!["secret", "set"], "required"),
    ];
    for (words, why) in calls {
        let ended = hook.run(&words).code(2);
        assert!(ended.said.contains(why), "{words:?}: {}", ended.said);
        assert!(ended.said.contains("hint:") || ended.said.contains("--help"), "{words:?}: {}", ended.said);
        assert_eq!(ended.object, Value::Null, "{words:?}");
    }
    assert_eq!(hook.standin.requests().len(), before, "the cluster was asked for something");
}

#[test]
fn a_key_that_no_header_can_carry_is_refused() {
    let hook = Hook::start();
    fs::write(hook.path("key"), "two\nlines\n").unwrap();
    let ended = hook.run(&["-f", "push.json", "--provider", "gitlab", "--sign", "--secret-file", "key"]).code(2);
    assert!(ended.said.contains("cannot stand in the header"), "{}", ended.said);
    assert!(!ended.said.contains("two"), "{}", ended.said);
    fs::write(hook.path("key"), "no-colon").unwrap();
    let ended = hook.run(&["-f", "push.json", "--provider", "azuredevops", "--sign", "--secret-file", "key"]).code(2);
    assert!(ended.said.contains("a user name, a colon and a password"), "{}", ended.said);
}
