//! Every answer of git to a push, and in which state a failure leaves the repository.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod repo;

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use repo::{Outcome, Repo, URL, lists};
use serde_json::{Value, json};

const SET: [&str; 3] = ["--set", "data.rev=r2", "app.yaml"];

fn message(object: &Value) -> &str {
    object["error"]["message"].as_str().unwrap()
}

/// Asserts that the new value is committed, that nothing else changed, and that the remote is where it was.
#[track_caller]
fn only_committed(repo: &Repo, object: &Value, remote: &str) {
    assert_eq!(object["local_commit"], repo.head());
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    assert_eq!(repo.git(["show", "HEAD:app.yaml"]), "data:\n  rev: r2 # which");
    assert!(message(object).contains(&format!("your commit {} is kept", &repo.head()[..10])), "{object}");
    assert_eq!(repo.remote("main"), remote);
}

#[test]
fn a_lost_race_is_a_no_and_the_commit_is_kept() {
    for fetched in [false, true] {
        let repo = Repo::new();
        let theirs = repo.overtake("theirs", "1");
        if fetched {
            repo.git(["fetch", "--quiet"]);
        }
        let object = repo.evt(SET).failed(1, "rejected");
        only_committed(&repo, &object, &theirs);
        let reason = if fetched { "non-fast-forward" } else { "fetch first" };
        assert!(message(&object).contains(reason), "{object}");
        assert!(object["error"]["hint"].as_str().unwrap().contains("--retry"));
    }
}

#[test]
fn the_reason_of_a_hook_on_the_server_is_told() {
    for (hook, reason) in [("pre-receive", "pre-receive hook declined"), ("update", "hook declined")] {
        let repo = Repo::new();
        let before = repo.head();
        repo.hook(&repo.bare(), hook, "echo 'branch main is protected' >&2; exit 1");
        let outcome = repo.evt(SET);
        assert!(outcome.stderr.contains("branch main is protected"), "{}", outcome.stderr);
        let object = outcome.failed(1, "rejected");
        only_committed(&repo, &object, &before);
        assert!(message(&object).contains(reason), "{object}");
    }
}

#[test]
fn a_hook_that_refuses_the_push_keeps_the_commit() {
    let repo = Repo::new();
    let before = repo.head();
    repo.hook(&repo.work(), "pre-push", "echo tests are red; exit 3");
    let outcome = repo.evt(SET);
    assert!(outcome.stderr.contains("tests are red"), "{}", outcome.stderr);
    let object = outcome.failed(1, "refused");
    only_committed(&repo, &object, &before);
}

#[test]
fn a_server_that_allows_no_forced_push_rejects_it() {
    let repo = Repo::new();
    let before = repo.commit("x", "1");
    repo.git(["push", "--quiet", "origin", "main"]);
    repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
    repo.run_in(&repo.bare(), ["config", "receive.denyNonFastForwards", "true"]);
    let object = repo.evt(["--force-with-lease", "--allow-empty", "-m", "x"]).failed(1, "rejected");
    assert!(message(&object).contains("non-fast-forward"), "{object}");
    assert_eq!(repo.remote("main"), before);
}

#[test]
fn a_server_with_a_work_tree_rejects_a_push_to_its_branch() {
    let repo = Repo::new();
    repo.run_in(repo.dir.path(), ["clone", "--quiet", "bare.git", "checked-out"]);
    let object = repo.evt(["--remote", "../checked-out", "-m", "x", "--allow-empty"]).failed(1, "rejected");
    assert!(message(&object).contains("branch is currently checked out"), "{object}");
}

#[test]
fn a_server_that_takes_no_shallow_history_rejects_it() {
    let repo = Repo::new();
    repo.commit("x", "1");
    let url = format!("file://{}", repo.work().display());
    repo.run_in(repo.dir.path(), ["clone", "--quiet", "--depth=1", &url, "shallow"]);
    repo.run_in(repo.dir.path(), ["init", "--quiet", "--bare", "empty.git"]);
    let mut command = repo.command(&repo.dir.path().join("shallow"));
    let output = command.args(["evt-push", "--remote", "../empty.git", "--repo-url", URL, "-m", "-"]).output().unwrap();
    let object = Outcome::new(output).failed(1, "rejected");
    assert!(message(&object).contains("shallow update not allowed"), "{object}");
}

#[test]
fn a_server_that_dies_on_the_way_leaves_the_answer_open() {
    let repo = Repo::new();
    let before = repo.head();
    repo.hook(&repo.bare(), "pre-receive", "kill -9 $PPID");
    let outcome = repo.evt(SET);
    assert_eq!(outcome.code, 3, "{outcome:?}");
    assert_eq!(outcome.record["local_commit"], repo.head());
    assert!(outcome.record.get("commit").is_none());
    assert_eq!(repo.remote("main"), before);
}

/// Answers each connection with the same bytes, or only hangs up.
fn server(answer: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if let Some(answer) = answer {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request);
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    address
}

#[test]
fn missing_rights_are_4_and_an_unreachable_remote_is_3() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let unauthorized =
        server(Some("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n"));
    let forbidden = server(Some("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"));
    let broken = server(Some("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"));
    let gone = server(None);
    for (url, ssh, code, outcome) in [
        (format!("http://{unauthorized}/r"), "", 4, "denied"),
        (format!("http://user:hunter2@{unauthorized}/r"), "", 4, "denied"),
        (format!("http://{forbidden}/r"), "", 4, "denied"),
        ("git@host:r".into(), "echo 'git@host: Permission denied (publickey).' >&2; exit 255;", 4, "denied"),
        ("git@host:r".into(), "echo 'Host key verification failed.' >&2; exit 255;", 3, "push-failed"),
        (format!("http://{broken}/r"), "", 3, "push-failed"),
        (format!("http://{closed}/r"), "", 3, "push-failed"),
        (format!("git://{closed}/r"), "", 3, "push-failed"),
        (format!("http://{gone}/r"), "", 3, "push-failed"),
        (format!("git://{gone}/r"), "", 3, "push-failed"),
        ("../nowhere.git".into(), "", 3, "push-failed"),
    ] {
        let repo = Repo::new();
        let before = repo.head();
        repo.git(["config", "remote.origin.url", &url]);
        let mut command = repo.command(&repo.work());
        if !ssh.is_empty() {
            command.env("GIT_SSH_COMMAND", ssh);
        }
        let ended = Outcome::new(command.args(["evt-push", "-v"]).args(SET).output().unwrap());
        assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
        let object = ended.failed(code, outcome);
        only_committed(&repo, &object, &before);
    }
}

#[test]
fn a_server_that_lets_read_but_not_write_is_a_4() {
    let repo = Repo::new();
    let before = repo.head();
    let refs = repo.run_in(&repo.bare(), ["receive-pack", "--stateless-rpc", "--advertise-refs", "."]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    repo.git(["config", "remote.origin.url", &format!("http://{}/r", listener.local_addr().unwrap())]);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 65536];
            let count = stream.read(&mut request).unwrap();
            let answer = if request[..count].starts_with(b"GET") {
                let body = format!("001f# service=git-receive-pack\n0000{refs}");
                let kind = "application/x-git-receive-pack-advertisement";
                format!("HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            } else {
                "HTTP/1.0 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned()
            };
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let object = repo.evt(SET).failed(4, "denied");
    only_committed(&repo, &object, &before);
    assert!(message(&object).contains("403"), "{object}");
}

#[test]
fn a_remote_that_does_not_answer_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let repo = Repo::new();
    repo.git(["config", "remote.origin.url", &format!("http://{}/r", listener.local_addr().unwrap())]);
    let begun = Instant::now();
    let object = repo.evt(SET.iter().chain(&["--timeout", "1s"])).failed(124, "timeout");
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(object["local_commit"], repo.head());
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

#[test]
fn a_call_that_is_wrong_changes_nothing() {
    let repo = Repo::new();
    repo.write("notes.txt", "mine");
    fs::write(repo.path("binary.yaml"), b"a: \xff\n").unwrap();
    let before = (repo.state(), repo.head());
    let address = ["--repo-url", "/srv/bare"];
    for (args, words) in [
        (vec!["--set", "data.rv=r2", "app.yaml"], "app.yaml: no key `data.rv`; `data` has: rev"),
        (vec!["--set", "data=r2", "app.yaml"], "`data` is a mapping"),
        (vec!["--set", "data.rev=r2", "--doc", "2", "app.yaml"], "there is no document 2"),
        (vec!["--set", "data.rev=r2", "none.yaml"], "cannot read none.yaml"),
        (vec!["--set", "a=r2", "binary.yaml"], "not UTF-8"),
        (vec!["--set", "data.rev", "app.yaml"], "there is no `=`"),
        (vec!["--set", "data.rev=r2"], "FILE"),
        (vec!["app.yaml"], "--set"),
        (vec!["--remote", "none", "-m", "x"], "no remote `none`; there are: origin"),
        (vec!["--branch", "a..b", "-m", "x"], "is not a name that a ref can have"),
        ([&SET[..], &address].concat(), "--repo-url is not the web address"),
    ] {
        let refused = repo.evt(&args).refused();
        assert!(refused.contains(words), "{args:?}: {refused}");
        assert_eq!((repo.state(), repo.head()), before, "{args:?}");
    }
    repo.git(["config", "--unset", "evt.repoUrl"]);
    let refused = repo.evt(SET).refused();
    assert!(refused.contains("--repo-url") && refused.contains("evt.repoUrl"), "{refused}");
    assert_eq!((repo.state(), repo.head()), before);
}

#[test]
fn a_folder_without_a_repository_and_a_bare_repository_are_refused() {
    let repo = Repo::new();
    for (folder, words) in [(repo.dir.path().to_owned(), "git finds no repository"), (repo.bare(), "bare repository")] {
        let outcome = Outcome::new(repo.command(&folder).args(["evt-push", "-m", "x"]).output().unwrap());
        assert!(outcome.refused().contains(words));
    }
}

#[test]
fn a_folder_of_another_user_comes_with_the_line_that_trusts_it() {
    let repo = Repo::new();
    let mut command = repo.command(&repo.work());
    let outcome = Outcome::new(command.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1").arg("evt-push").output().unwrap());
    let refused = outcome.refused();
    assert!(refused.contains("dubious ownership") && refused.contains("safe.directory"), "{refused}");
}

#[test]
fn a_hook_that_refuses_the_commit_leaves_the_new_value_staged() {
    let repo = Repo::new();
    let before = repo.head();
    repo.hook(&repo.work(), "pre-commit", "echo 'no, no' >&2; exit 1");
    let outcome = repo.evt(SET);
    assert!(outcome.stderr.contains("no, no"), "{}", outcome.stderr);
    let object = outcome.failed(1, "commit-failed");
    assert!(message(&object).contains("no commit was made, the new value is in app.yaml and staged"), "{object}");
    assert_eq!(repo.head(), before);
    assert_eq!(repo.git(["status", "--porcelain"]), "M  app.yaml");
    assert_eq!(repo.read("app.yaml"), "data:\n  rev: r2 # which\n");
    fs::remove_file(repo.path(".git/hooks/pre-commit")).unwrap();
    repo.evt(SET).pushed();
}

#[test]
fn a_commit_that_git_cannot_make_is_3_and_changes_nothing_more() {
    let repo = Repo::new();
    repo.write("staged", "1");
    repo.git(["add", "staged"]);
    let before = repo.state();
    let mut command = repo.command(&repo.work());
    command.env("GIT_COMMITTER_NAME", "").env("GIT_COMMITTER_EMAIL", "");
    let object = Outcome::new(command.args(["evt-push", "-m", "x"]).output().unwrap()).failed(3, "commit-failed");
    assert!(message(&object).contains("no commit was made, work tree and index are as they were"), "{object}");
    assert_eq!(repo.state(), before);
}

#[test]
fn a_file_that_git_cannot_stage_is_put_back() {
    let repo = Repo::new();
    fs::set_permissions(repo.path("app.yaml"), fs::Permissions::from_mode(0o755)).unwrap();
    let before = repo.state();
    repo.write(".git/index.lock", "");
    let object = repo.evt(SET).failed(3, "cannot-stage");
    assert!(message(&object).contains("git cannot stage app.yaml, which is as it was"), "{object}");
    fs::remove_file(repo.path(".git/index.lock")).unwrap();
    assert_eq!(repo.state(), before);
}

#[test]
fn a_lost_race_is_won_by_trying_again() {
    let repo = Repo::new();
    let first = repo.head();
    let theirs = repo.overtake("theirs", "1");
    let record = repo.evt(SET.iter().chain(&["--retry", "2"])).pushed();
    assert_eq!((&record["attempts"], &record["before"]), (&json!(2), &json!(theirs)));
    assert_eq!((&record["commit"], repo.head()), (&json!(repo.remote("main")), repo.remote("main")));
    assert_eq!(lists(&record, "modified"), [["app.yaml"]]);
    assert_eq!(repo.git(["rev-list", "--count", &format!("{first}..HEAD")]), "2");
    let record = repo.evt(["--allow-empty", "-m", "x", "--retry", "2"]).pushed();
    assert_eq!(record["attempts"], 1);
}

#[test]
fn every_lost_race_counts_and_the_last_one_names_the_winner() {
    let repo = Repo::new();
    repo.run_in(repo.dir.path(), ["clone", "--quiet", "bare.git", "faster"]);
    let overtake = "cd \"$HOME/faster\" && unset GIT_DIR GIT_PREFIX GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT && \
                    git commit -q --allow-empty -m faster && git push -q";
    repo.hook(&repo.work(), "pre-push", overtake);
    let object = repo.evt(SET.iter().chain(&["--retry", "2"])).failed(1, "rejected");
    assert_eq!(object["attempts"], 3);
    assert_eq!(object["local_commit"], repo.head());
    assert_eq!(object["remote_commit"], repo.git(["rev-parse", "HEAD~1"]));
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

#[test]
fn a_change_of_the_same_line_is_not_tried_again_and_the_commit_is_as_it_was() {
    let repo = Repo::new();
    let theirs = repo.overtake("app.yaml", "data:\n  rev: other\n");
    let object = repo.evt(SET.iter().chain(&["--retry", "3"])).failed(1, "rejected");
    only_committed(&repo, &object, &theirs);
    assert!(message(&object).contains("change the same lines of app.yaml"), "{object}");
    assert!(message(&object).contains("branch, index and work tree are as after the commit"), "{object}");
    assert_eq!((&object["attempts"], &object["remote_commit"]), (&json!(1), &json!(theirs)));
    assert_eq!(repo.git(["branch", "--show-current"]), "main");
    assert!(!repo.path(".git/rebase-merge").exists());
}

#[test]
fn changes_that_are_not_committed_are_not_touched_by_a_retry() {
    let repo = Repo::new();
    repo.commit("other", "1");
    repo.git(["push", "--quiet", "origin", "main"]);
    repo.write("other", "2");
    repo.overtake("theirs", "1");
    let object = repo.evt(SET.iter().chain(&["--retry", "3"])).failed(1, "rejected");
    assert!(message(&object).contains("could not rebase"), "{object}");
    assert_eq!(object["local_commit"], repo.head());
    assert_eq!(repo.git(["status", "--porcelain"]), " M other");
}

#[test]
fn a_refusal_that_is_no_race_is_tried_once_more_and_then_given_up() {
    let repo = Repo::new();
    let before = repo.head();
    repo.hook(&repo.bare(), "pre-receive", "exit 1");
    let object = repo.evt(SET.iter().chain(&["--retry", "9"])).failed(1, "rejected");
    assert_eq!(object["attempts"], 2);
    only_committed(&repo, &object, &before);
    assert!(message(&object).contains("the remote has nothing new"), "{object}");
}

#[test]
fn confirm_waits_until_readers_see_the_commit() {
    let repo = Repo::new();
    repo.run_in(repo.dir.path(), ["clone", "--quiet", "--mirror", "bare.git", "replica.git"]);
    repo.git(["config", "remote.origin.pushurl", "../bare.git"]);
    repo.git(["config", "remote.origin.url", "../replica.git"]);
    let object = repo.evt(SET.iter().chain(&["--confirm", "--timeout", "2s"]));
    assert_eq!((object.code, object.record["commit"].as_str()), (124, Some(repo.head().as_str())), "{object:?}");
    assert!(object.record.get("remote_visible_at_ms").is_none());

    // The replica catches up when it is read for the second time.
    let serve = repo.dir.path().join("serve");
    let script =
        "#!/bin/sh\ncd \"$HOME/replica.git\"\n[ -e seen ] && git fetch -q\ntouch seen\ngit upload-pack \"$PWD\"\n";
    fs::write(&serve, script).unwrap();
    fs::set_permissions(&serve, fs::Permissions::from_mode(0o755)).unwrap();
    repo.git(["config", "remote.origin.uploadpack", serve.to_str().unwrap()]);
    let record = repo.evt(["--allow-empty", "-m", "x", "--confirm"]).pushed();
    assert!(record["remote_visible_at_ms"].as_u64().unwrap() > record["pushed_at_ms"].as_u64().unwrap());
    assert_eq!(record["remote_visible_at"].as_u64(), record["remote_visible_at_ms"].as_u64().map(|ms| ms / 1000));
}

#[test]
fn an_interrupt_ends_git_and_prints_what_was_learned() {
    for (signal, code, hook) in [("INT", 130, "pre-push"), ("TERM", 143, "pre-push"), ("TERM", 143, "pre-commit")] {
        let repo = Repo::new();
        let before = repo.head();
        Command::new("mkfifo").arg(repo.dir.path().join("never")).status().unwrap();
        repo.hook(&repo.work(), hook, "touch \"$HOME/waiting\"; read x < \"$HOME/never\"");
        let mut command = Command::new(env!("CARGO_BIN_EXE_git-evt-push"));
        for (name, value) in repo.command(&repo.work()).get_envs() {
            value.map(|value| command.env(name, value));
        }
        command.args(SET).current_dir(repo.work()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        await_file(&repo.dir.path().join("waiting"));
        Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        // The hook is git's child, and still waits.
        fs::OpenOptions::new().write(true).open(repo.dir.path().join("never")).unwrap();
        let object = Outcome::new(output).failed(code, "interrupted");
        assert_eq!(repo.remote("main"), before);
        if hook == "pre-push" {
            assert_eq!(object["local_commit"], repo.head());
            assert_eq!(repo.git(["status", "--porcelain"]), "");
        } else {
            assert_eq!((repo.head(), object.get("local_commit")), (before, None));
            assert_eq!(repo.git(["status", "--porcelain"]), "M  app.yaml");
        }
        fs::remove_file(repo.path(&format!(".git/hooks/{hook}"))).unwrap();
        repo.evt(SET).pushed();
    }
}

fn await_file(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} does not come", path.display());
        thread::sleep(Duration::from_millis(10));
    }
}
