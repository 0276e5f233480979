//! Pushes that have already happened, described in a work tree, in a bare repository, and in a hook.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod repo;

use std::{fs, io::Write, path::Path, process::Stdio};

use repo::{Outcome, Repo, URL, lists};
use serde_json::{Value, json};

const ZEROS: &str = "0000000000000000000000000000000000000000";

fn in_folder(repo: &Repo, folder: &Path, args: &[&str], stdin: &str) -> Outcome {
    let mut command = repo.command(folder);
    command.arg("evt-push").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may refuse the call without reading.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    Outcome::new(child.wait_with_output().unwrap())
}

fn records(outcome: &Outcome) -> Vec<Value> {
    outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_range_is_described_in_a_bare_repository() {
    let repo = Repo::new();
    let first = repo.head();
    repo.commit("second", "1");
    repo.git(["push", "--quiet", "origin", "main"]);
    let outcome = in_folder(&repo, &repo.bare(), &["--repo-url", URL, "--describe", &format!("{first}..main")], "");
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let record = outcome.record;
    assert_eq!((&record["before"], &record["commit"]), (&json!(first), &json!(repo.head())));
    assert_eq!((&record["ref"], &record["default_branch"]), (&json!("refs/heads/main"), &json!("main")));
    assert_eq!((&record["remote"], &record["remote_url"]), (&Value::Null, &Value::Null));
    assert_eq!((lists(&record, "added"), &record["files_complete"]), (vec![vec!["second".to_owned()]], &json!(true)));
    assert_eq!((record.get("pushed_at"), &record["outcome"]), (None, &json!("described")));
}

#[test]
fn a_range_from_nothing_is_a_new_branch_and_one_that_goes_back_is_forced() {
    let repo = Repo::new();
    let first = repo.head();
    let second = repo.commit("second", "1");
    let new = repo.evt(["--describe", &format!("{ZEROS}..main")]).record;
    assert_eq!((&new["created"], &new["before"], &new["files_complete"]), (&json!(true), &json!(ZEROS), &json!(false)));
    let back = repo.evt(["--describe", &format!("{second}..{first}"), "--branch", "other"]).record;
    assert_eq!((&back["forced"], &back["ref"]), (&json!(true), &json!("refs/heads/other")));
    assert_eq!(back["files_complete"], false);
    repo.git(["tag", "--annotate", "--message=x", "v1"]);
    let tag = repo.evt(["--describe", &format!("{ZEROS}..v1"), "--tag", "v1"]).record;
    assert_eq!((&tag["ref"], &tag["branch"], &tag["commit"]), (&json!("refs/tags/v1"), &Value::Null, &json!(second)));
}

#[test]
fn what_is_no_range_of_commits_is_refused() {
    let repo = Repo::new();
    for (range, words) in [
        ("main", "is not"),
        ("main...main", "is not"),
        ("none..main", "names no commit `none`"),
        ("main..none", "names no commit `none`"),
        ("main..-x", "names no commit `-x`"),
        ("main..HEAD:app.yaml", "names no commit"),
    ] {
        let refused = repo.evt(["--describe", range]).refused();
        assert!(refused.contains(words), "{range}: {refused}");
    }
    let outcome = in_folder(&repo, &repo.bare(), &["--describe", "main..main"], "");
    assert!(outcome.refused().contains("--repo-url"));
}

#[test]
fn each_line_of_a_hook_has_a_record_but_deletions_and_what_is_no_commit() {
    let repo = Repo::new();
    let first = repo.head();
    let second = repo.commit("second", "1");
    repo.git(["tag", "--annotate", "--message=x", "v1"]);
    let tag = repo.git(["rev-parse", "v1"]);
    let blob = repo.git(["rev-parse", "HEAD:app.yaml"]);
    repo.git(["push", "--quiet", "origin", "main", "v1"]);
    repo.run_in(&repo.bare(), ["config", "evt.repoUrl", URL]);
    let lines = format!(
        "{first} {second} refs/heads/main\n{ZEROS} {second} refs/heads/new\n{first} {ZEROS} refs/heads/gone\n\
         {second} {first} refs/heads/back\n{ZEROS} {tag} refs/tags/v1\n{ZEROS} {blob} refs/tags/file\n"
    );
    let outcome = in_folder(&repo, &repo.bare(), &["--stdin"], &lines);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("refs/heads/gone was deleted"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("refs/tags/file is at"), "{}", outcome.stderr);
    let found: Vec<_> = records(&outcome)
        .iter()
        .map(|record| {
            let flag = |name: &str| record[name].as_bool().unwrap();
            let text = |name: &str| record[name].as_str().unwrap().to_owned();
            (text("ref"), text("commit"), flag("created"), flag("forced"), flag("files_complete"))
        })
        .collect();
    let row = |name: &str, commit: &str, created, forced, whole| (name.into(), commit.into(), created, forced, whole);
    let expected = [
        row("refs/heads/main", &second, false, false, true),
        row("refs/heads/new", &second, true, false, false),
        row("refs/heads/back", &first, false, true, false),
        row("refs/tags/v1", &second, true, false, false),
    ];
    assert_eq!(found, expected);
    assert!(records(&outcome).iter().all(|record| record["pushed_at_ms"].is_u64()));
}

#[test]
fn lines_that_git_does_not_write_are_refused_and_only_deletions_print_nothing() {
    let repo = Repo::new();
    for lines in ["", "x\n", "a b refs/heads/main\n"] {
        assert!(in_folder(&repo, &repo.work(), &["--stdin"], lines).refused().contains("post-receive"));
    }
    let deletion = format!("{} {ZEROS} refs/heads/x\n", repo.head());
    let outcome = in_folder(&repo, &repo.work(), &["--stdin"], &deletion);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, ""), "{outcome:?}");
}

#[test]
fn what_git_cannot_list_is_left_out_and_said() {
    let repo = Repo::new();
    let first = repo.head();
    let second = repo.commit("second", "1");
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]);
    let third = repo.commit("third", "1");
    fs::remove_file(repo.path(&format!(".git/objects/{}/{}", &tree[..2], &tree[2..]))).unwrap();
    let lines = format!("{first} {second} refs/heads/broken\n{second} {third} refs/heads/too\n");
    let outcome = in_folder(&repo, &repo.work(), &["--stdin"], &lines);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("the files are left out of the record"), "{}", outcome.stderr);
    for record in records(&outcome) {
        assert_eq!(record["files_complete"], false);
        assert!(record["commits"][0].get("added").is_none());
    }
}

#[test]
fn a_record_in_a_hook_of_a_real_push_is_the_one_of_the_pusher() {
    let repo = Repo::new();
    repo.run_in(&repo.bare(), ["config", "evt.repoUrl", URL]);
    repo.hook(&repo.bare(), "post-receive", "git evt-push --stdin > record.json");
    let pushed = repo.evt(["--set", "data.rev=r2", "app.yaml"]).pushed();
    let received: Value = serde_json::from_slice(&fs::read(repo.bare().join("record.json")).unwrap()).unwrap();
    for key in ["commit", "before", "ref", "branch", "default_branch", "repo_url", "commits", "files_complete"] {
        assert_eq!(received[key], pushed[key], "{key}");
    }
}
