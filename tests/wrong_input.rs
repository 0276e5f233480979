//! What a wrong call is answered, through the real kubectl and git: the exit code, the thing named, a hint, and nothing
//! changed.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod lab;
mod suite;

use std::{
    fs,
    io::Write,
    net::TcpListener,
    path::Path,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use lab::Lab;

const NOWHERE: &str = "cccccccccccccccccccccccccccccccccccccccc";

#[test]
fn wrong_calls_of_the_plugins_name_the_thing_and_change_nothing() {
    let lab = Lab::new();
    let before = lab.kubectl(&["get", "cm,secret,sts,deploy", "-n", "argocd", "-o", "json"]);
    let no_commit = r#"{"ref":"refs/heads/main","repo_url":"https://git.example.com/evt"}"#;
    let cases: [(&[&str], &str, &str); 9] = [
        (&["argo-waitrev", "evt", "-f", "-"], "", "stdin"),
        (&["argo-webhook", "-f", "-"], "", "stdin"),
        (&["argo-waitrev", "evt", "-f", "-"], no_commit, "`commit`"),
        (&["argo-webhook", "-f", "-"], no_commit, "`commit`"),
        (&["argo-waitrev", "nosuch", "--revision", NOWHERE], "", "argocd/nosuch"),
        (&["argo-resync", "30s", "--hard-refresh", "nosuch"], "", "argocd/nosuch"),
        (&["argo-resync", "180x"], "", "180x"),
        (&["argo-resync", "500ms"], "", "500ms"),
        (&["argo-webhook", "-f", "nosuch.json"], "", "nosuch.json"),
    ];
    for (arguments, stdin, named) in cases {
        let output = fed(&lab, "kubectl", arguments, stdin);
        assert_refused(arguments, &output, named);
    }
    assert_eq!(lab.kubectl(&["get", "cm,secret,sts,deploy", "-n", "argocd", "-o", "json"]), before);
    let writes: Vec<_> = lab.standin.requests().into_iter().filter(|request| request.method != "GET").collect();
    assert!(writes.is_empty(), "{writes:?}");
}

#[test]
fn a_bare_number_is_a_period_in_seconds() {
    let lab = Lab::new();
    let output = fed(&lab, "kubectl", &["argo-resync", "180", "--dry-run"], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn wrong_calls_of_git_evt_push_name_the_thing_and_commit_nothing() {
    let lab = Lab::new();
    let bare = lab.standin.git_root().join("evt.git");
    let repo = lab.standin.git_root().with_file_name("work");
    let git = |folder: &Path, arguments: &[&str]| {
        let output = lab.command("git").arg("-C").arg(folder).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let here = Path::new("/");
    git(here, &["init", "--quiet", "--bare", "--initial-branch=main", bare.to_str().unwrap()]);
    git(here, &["clone", "--quiet", bare.to_str().unwrap(), repo.to_str().unwrap()]);
    git(&repo, &["config", "user.name", "a"]);
    git(&repo, &["config", "user.email", "a@example.com"]);
    fs::write(repo.join("signal.yaml"), "data:\n  rev: r1\n").unwrap();
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "--quiet", "--message", "r1"]);
    git(&repo, &["push", "--quiet", "origin", "main"]);
    let state = || {
        (git(&repo, &["status", "--porcelain"]), git(&repo, &["rev-parse", "HEAD"]), git(&bare, &["rev-parse", "main"]))
    };
    let before = state();

    let work = repo.to_str().unwrap();
    let url = "--repo-url=https://git.example.com/evt";
    for (arguments, named) in [
        (vec!["-C", work, "evt-push", url, "--set", "data.nosuch=r2", "signal.yaml"], "data.nosuch"),
        (vec!["-C", work, "evt-push", "--set", "data.rev=r2", "signal.yaml"], "evt.repoUrl"),
        (vec!["-C", work, "evt-push", url, "--set", "data.rev=r2", "nosuch.yaml"], "nosuch.yaml"),
    ] {
        assert_refused(&arguments, &fed(&lab, "git", &arguments, ""), named);
        assert_eq!(state(), before, "{arguments:?} changed something");
    }
}

#[test]
fn an_api_server_that_does_not_answer_is_given_up_within_the_request_timeout() {
    let lab = Lab::new();
    // Connections are accepted by the kernel and then never answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let record = format!(
        r#"{{"commit":"{NOWHERE}","before":"{NOWHERE}","ref":"refs/heads/main","repo_url":"https://git.example.com/evt"}}"#
    );
    for server in [&silent, &closed] {
        let kubeconfig = lab.standin.kubeconfig().with_file_name("unreachable");
        fs::write(&kubeconfig, unreachable(server)).unwrap();
        let flags = ["--request-timeout=1s", "--kubeconfig", kubeconfig.to_str().unwrap()];
        for arguments in [
            vec!["argo-resync", "30s"],
            vec!["argo-webhook", "-f", "-"],
            vec!["argo-waitrev", "evt", "--timeout=0", "--revision", NOWHERE],
        ] {
            let arguments = [arguments, flags.to_vec()].concat();
            let started = Instant::now();
            let output = fed(&lab, "kubectl", &arguments, &record);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{arguments:?}: {stderr}");
            assert!(stderr.contains("hint:") && stderr.contains(server.as_str()), "{arguments:?}: {stderr}");
            // One request each, and what it takes to start two programs on a busy machine.
            assert!(started.elapsed() < Duration::from_secs(8), "{arguments:?} took {:?}", started.elapsed());
        }
    }
}

#[test]
fn what_is_forbidden_is_named_by_verb_and_resource() {
    let lab = Lab::new();
    let kubeconfig = lab.standin.kubeconfig_for("nobody");
    let record = format!(
        r#"{{"commit":"{NOWHERE}","before":"{NOWHERE}","ref":"refs/heads/main","repo_url":"https://git.example.com/evt"}}"#
    );
    for (arguments, needed) in [
        (vec!["argo-resync", "30s"], "configmaps"),
        (vec!["argo-resync", "--hard-refresh", "evt"], "configmaps"),
        (vec!["argo-webhook", "-f", "-", "--sign"], "secrets"),
        (vec!["argo-webhook", "secret", "set", "--generate"], "secrets"),
        (vec!["argo-waitrev", "evt", "--revision", NOWHERE], "applications"),
    ] {
        let arguments = [arguments, vec!["--kubeconfig", kubeconfig.to_str().unwrap()]].concat();
        let output = fed(&lab, "kubectl", &arguments, &record);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {stderr}");
        assert!(stderr.contains("hint: needs the verb `"), "{arguments:?}: {stderr}");
        assert!(stderr.contains(needed), "{arguments:?} does not name {needed}: {stderr}");
    }
}

fn unreachable(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: gone\nclusters:\n- name: gone\n  cluster: {{server: {server}}}\n\
         contexts:\n- name: gone\n  context: {{cluster: gone, user: gone}}\nusers:\n- name: gone\n  user: {{}}\n"
    )
}

fn fed(lab: &Lab, program: &str, arguments: &[&str], stdin: &str) -> Output {
    let mut child = lab
        .command(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its flags may be gone before it has read anything.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

fn assert_refused(arguments: &[&str], output: &Output, named: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    // A job that had begun prints its object, with the error in it.
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.is_empty() || stdout.contains(r#""error":{"code":"#), "{arguments:?} printed {stdout}");
    assert!(stderr.contains("error:") && stderr.contains(named), "{arguments:?} does not name {named}: {stderr}");
    assert!(stderr.contains("hint:") || stderr.contains("--help"), "{arguments:?} gives no hint: {stderr}");
}
