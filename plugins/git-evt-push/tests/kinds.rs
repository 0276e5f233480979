//! Every kind of push, with real git.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod repo;

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
};

use repo::{Repo, URL, lists};
use serde_json::{Value, json};

const ZEROS: &str = "0000000000000000000000000000000000000000";

#[test]
fn the_record_of_a_changed_value_has_the_keys_of_the_contract_in_order() {
    let repo = Repo::new();
    let before = repo.head();
    let record = repo.evt(["--set", "data.rev=r2", "app.yaml"]).pushed();
    assert_eq!(repo.read("app.yaml"), "data:\n  rev: r2 # which\n");
    assert_eq!(repo.remote("main"), repo.head());
    let keys: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "commit before ref branch default_branch repo_url remote remote_url commits files_complete created \
                    forced pushed_at pushed_at_ms push_ms outcome";
    assert_eq!(keys, expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(record["commit"], repo.head());
    assert_eq!(record["before"], before);
    assert_eq!(
        (&record["ref"], &record["branch"], &record["default_branch"]),
        (&json!("refs/heads/main"), &json!("main"), &json!("main"))
    );
    assert_eq!((&record["repo_url"], &record["remote"]), (&json!(URL), &json!("origin")));
    assert_eq!(record["remote_url"], repo.bare().to_str().unwrap());
    assert_eq!((&record["created"], &record["forced"]), (&json!(false), &json!(false)));
    assert_eq!(record["pushed_at"].as_u64().unwrap(), record["pushed_at_ms"].as_u64().unwrap() / 1000);
    let timestamp = repo.git(["log", "-1", "--format=%cI"]);
    assert_eq!(
        record["commits"],
        json!([{"id": repo.head(), "message": "Set data.rev to r2 in app.yaml", "timestamp": timestamp,
                "added": [], "modified": ["app.yaml"], "removed": []}])
    );
    assert_eq!(record["files_complete"], true);
}

#[test]
fn without_set_what_is_staged_is_committed_and_with_all_what_is_modified() {
    let repo = Repo::new();
    repo.write("staged.txt", "1");
    repo.write("app.yaml", "data: {rev: r2}\n");
    repo.git(["add", "staged.txt"]);
    let record = repo.evt(["-m", "staged", "-m", "body"]).pushed();
    assert_eq!(lists(&record, "added"), [["staged.txt"]]);
    assert_eq!(record["commits"][0]["message"], "staged\n\nbody");
    let record = repo.evt(["-a", "-m", "modified"]).pushed();
    assert_eq!(lists(&record, "modified"), [["app.yaml"]]);
}

#[test]
fn a_changed_value_is_committed_with_what_is_staged_but_not_with_other_changes() {
    let repo = Repo::new();
    repo.commit("other.txt", "1");
    repo.write("other.txt", "2");
    repo.write("staged.txt", "1");
    repo.git(["add", "staged.txt"]);
    repo.git(["push", "--quiet", "origin", "main"]);
    let record = repo.evt(["--set", "data.rev=r2", "app.yaml"]).pushed();
    assert_eq!(lists(&record, "modified"), [["app.yaml"]]);
    assert_eq!(lists(&record, "added"), [["staged.txt"]]);
    assert_eq!(repo.git(["status", "--porcelain"]), " M other.txt");
}

#[test]
fn a_new_branch_has_no_before_and_no_lists() {
    let repo = Repo::new();
    repo.git(["switch", "--quiet", "--create", "topic/a"]);
    repo.commit("x", "1");
    let record = repo.evt(["-m", "-"]).pushed();
    assert_eq!((&record["before"], &record["ref"]), (&json!(ZEROS), &json!("refs/heads/topic/a")));
    assert_eq!((&record["branch"], &record["default_branch"]), (&json!("topic/a"), &json!("main")));
    assert_eq!((&record["created"], &record["files_complete"]), (&json!(true), &json!(false)));
    assert!(record["commits"][0].get("added").is_none());
    assert_eq!(record["commits"][0]["id"], repo.head());
}

#[test]
fn the_first_commit_of_an_empty_repository_is_pushed() {
    let repo = Repo::empty(&["init", "--quiet", "--bare", "--initial-branch=main", "bare.git"]);
    repo.git(["symbolic-ref", "HEAD", "refs/heads/main"]);
    let nothing = repo.evt(["-m", "x"]).failed(1, "nothing-to-push");
    assert_eq!(nothing["error"]["message"], "nothing to push: the branch has no commit yet");
    repo.write("a", "1");
    repo.git(["add", "a"]);
    let record = repo.evt(["-m", "first"]).pushed();
    assert_eq!((&record["created"], &record["default_branch"]), (&json!(true), &json!("main")));
}

#[test]
fn light_and_annotated_tags_are_pushed_as_they_are() {
    let repo = Repo::new();
    repo.git(["tag", "light"]);
    repo.git(["tag", "--annotate", "--message=notes", "full"]);
    for tag in ["light", "full"] {
        let record = repo.evt(["--tag", tag, "--confirm"]).pushed();
        assert_eq!((&record["ref"], &record["branch"]), (&json!(format!("refs/tags/{tag}")), &Value::Null));
        assert_eq!((&record["commit"], &record["created"]), (&json!(repo.head()), &json!(true)));
        assert_eq!(repo.remote(tag), repo.git(["rev-parse", tag]));
        assert!(record["remote_visible_at_ms"].as_u64() >= record["pushed_at_ms"].as_u64());
    }
    assert!(repo.evt(["--tag", "none"]).refused().contains("there is no tag `none`"));
}

#[test]
fn a_forced_push_says_what_it_replaced_and_leaves_the_lists_out() {
    let repo = Repo::new();
    let replaced = repo.commit("x", "1");
    repo.git(["push", "--quiet", "origin", "main"]);
    repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
    repo.commit("y", "1");
    assert_eq!(repo.evt(["-m", "-"]).failed(1, "rejected")["local_commit"], repo.head());
    let record = repo.evt(["--force-with-lease"]).pushed();
    assert_eq!((&record["forced"], &record["before"]), (&json!(true), &json!(replaced)));
    assert_eq!((&record["created"], &record["files_complete"]), (&json!(false), &json!(false)));
    assert!(record["commits"][0].get("added").is_none());
}

#[test]
fn a_lease_that_is_out_of_date_is_rejected() {
    let repo = Repo::new();
    let theirs = repo.overtake("theirs", "1");
    repo.commit("mine", "1");
    repo.evt(["--force-with-lease"]).failed(1, "rejected");
    assert_eq!(repo.remote("main"), theirs);
}

#[test]
fn several_commits_are_listed_oldest_first_and_a_merge_against_its_first_parent() {
    let repo = Repo::new();
    repo.git(["switch", "--quiet", "--create", "side"]);
    let side = repo.commit("side", "1");
    repo.git(["switch", "--quiet", "main"]);
    let main = repo.commit("main", "1");
    repo.git(["merge", "--quiet", "--no-edit", "side"]);
    let record = repo.evt(["-m", "-"]).pushed();
    let ids: Vec<&str> = record["commits"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.contains(&side.as_str()) && ids.contains(&main.as_str()));
    assert_eq!(ids[2], repo.head());
    assert_eq!(lists(&record, "added")[2], ["side"]);
    assert_eq!(record["files_complete"], true);
}

#[test]
fn a_merge_that_undoes_what_the_remote_had_has_no_lists() {
    let repo = Repo::new();
    let theirs = repo.overtake("theirs", "1");
    repo.commit("mine", "1");
    repo.git(["fetch", "--quiet"]);
    repo.git(["merge", "--quiet", "--no-edit", "--strategy=ours", "origin/main"]);
    let record = repo.evt(["-m", "-"]).pushed();
    assert_eq!(record["before"], theirs);
    assert_eq!(repo.git(["diff-tree", "-r", "--name-only", &theirs, "HEAD"]), "mine\ntheirs");
    assert_eq!(record["files_complete"], false);
    assert!(record["commits"].as_array().unwrap().iter().all(|commit| commit.get("removed").is_none()));
}

#[test]
fn an_empty_commit_has_empty_lists() {
    let repo = Repo::new();
    let record = repo.evt(["--allow-empty", "-m", "empty"]).pushed();
    assert_eq!(record["files_complete"], true);
    assert_eq!(lists(&record, "added"), [[""; 0]]);
    let record = repo.evt(["--allow-empty", "--set", "data.rev=r1", "app.yaml"]).pushed();
    assert_eq!(lists(&record, "modified"), [[""; 0]]);
}

#[test]
fn renames_deletions_modes_and_links_have_their_lists() {
    let repo = Repo::new();
    repo.write("old name", &"same\n".repeat(50));
    repo.write("gone", "1");
    repo.write("script", "1");
    repo.commit("kind", "1");
    repo.git(["push", "--quiet", "origin", "main"]);
    repo.git(["config", "diff.renames", "copies"]);
    repo.git(["mv", "old name", "new name"]);
    repo.git(["rm", "--quiet", "gone"]);
    fs::set_permissions(repo.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(repo.path("kind")).unwrap();
    std::os::unix::fs::symlink("script", repo.path("kind")).unwrap();
    repo.git(["add", "--all"]);
    let record = repo.evt(["-m", "changes"]).pushed();
    assert_eq!(lists(&record, "added"), [["new name"]]);
    assert_eq!(lists(&record, "modified"), [["kind", "script"]]);
    assert_eq!(lists(&record, "removed"), [["gone", "old name"]]);
}

#[test]
fn a_submodule_is_a_file_of_its_repository_whatever_its_ignore_setting() {
    let repo = Repo::new();
    let library = repo.dir.path().join("library");
    repo.run_in(repo.dir.path(), ["clone", "--quiet", "bare.git", "library"]);
    repo.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../bare.git", "lib"]);
    let record = repo.evt(["-m", "add"]).pushed();
    assert_eq!(lists(&record, "added"), [[".gitmodules", "lib"]]);
    repo.run_in(&library, ["commit", "--quiet", "--allow-empty", "--message=more"]);
    let more = repo.run_in(&library, ["rev-parse", "HEAD"]);
    repo.git(["update-index", "--cacheinfo", &format!("160000,{more},lib")]);
    repo.git(["commit", "--quiet", "--message=move"]);
    repo.git(["config", "submodule.lib.ignore", "all"]);
    repo.git(["config", "diff.ignoreSubmodules", "all"]);
    let record = repo.evt(["-m", "-"]).pushed();
    assert_eq!(lists(&record, "modified"), [["lib"]]);
}

#[test]
fn file_names_of_every_kind_are_listed_unless_they_are_not_utf_8() {
    let repo = Repo::new();
    repo.git(["config", "core.quotePath", "true"]);
    for name in ["with blank", "quo\"te", "line\nbreak", "tab\there", "ünï", "-dash", "\\back"] {
        repo.write(name, "1");
    }
    repo.git(["add", "--all"]);
    let record = repo.evt(["-m", "names"]).pushed();
    let expected = ["-dash", "\\back", "line\nbreak", "quo\"te", "tab\there", "with blank", "ünï"];
    assert_eq!(lists(&record, "added"), [expected]);

    fs::write(repo.work().join(OsStr::from_bytes(b"b\xffd")), "1").unwrap();
    repo.git(["add", "--all"]);
    let record = repo.evt(["-m", "bytes"]).pushed();
    assert_eq!(record["files_complete"], false);
    assert!(record["commits"][0].get("added").is_none());
}

#[test]
fn a_detached_head_needs_the_branch_by_name() {
    let repo = Repo::new();
    repo.git(["switch", "--quiet", "--detach"]);
    repo.commit("x", "1");
    assert!(repo.evt(["-m", "-"]).refused().contains("HEAD is not on a branch"));
    let record = repo.evt(["--branch", "main"]).pushed();
    assert_eq!(repo.remote("main"), repo.head());
    assert_eq!(lists(&record, "added"), [["x"]]);
}

#[test]
fn an_upstream_of_another_name_needs_a_decision_before_anything_is_committed() {
    let repo = Repo::new();
    repo.git(["switch", "--quiet", "--create", "topic", "--track", "origin/main"]);
    let before = repo.state();
    let refused = repo.evt(["--set", "data.rev=r2", "app.yaml"]).refused();
    assert!(refused.contains("the upstream of branch `topic` is `main`"), "{refused}");
    assert_eq!(repo.state(), before);
    let record = repo.evt(["--branch", "main", "--set", "data.rev=r2", "app.yaml"]).pushed();
    assert_eq!(record["branch"], "main");
    repo.git(["config", "push.default", "upstream"]);
    let record = repo.evt(["--set", "data.rev=r3", "app.yaml"]).pushed();
    assert_eq!((&record["branch"], &record["commit"]), (&json!("main"), &json!(repo.remote("main"))));
}

#[test]
fn the_web_address_comes_from_the_push_url_or_else_from_the_fetch_url() {
    let repo = Repo::new();
    repo.git(["config", "--unset", "evt.repoUrl"]);
    repo.git(["config", "remote.origin.url", "git@git.example.com:team/evt.git"]);
    repo.git(["config", "remote.origin.pushurl", repo.bare().to_str().unwrap()]);
    let record = repo.evt(["--set", "data.rev=r2", "app.yaml"]).pushed();
    assert_eq!((&record["repo_url"], &record["remote_url"]), (&json!(URL), &json!(repo.bare())));
}

#[test]
fn a_url_that_git_rewrites_has_the_address_as_it_is_written() {
    let repo = Repo::new();
    repo.git(["config", "--unset", "evt.repoUrl"]);
    let rewrite = format!("url.{}.insteadOf", repo.bare().display());
    repo.git(["config", &rewrite, "https://user:token@git.example.com/team/evt.git"]);
    repo.git(["config", "remote.origin.url", "https://user:token@git.example.com/team/evt.git"]);
    let outcome = repo.evt(["-v", "--set", "data.rev=r2", "app.yaml"]);
    assert!(!outcome.stderr.contains("token"), "{}", outcome.stderr);
    let record = outcome.pushed();
    assert_eq!(record["repo_url"], URL);
    assert!(!record.to_string().contains("token"));
}

#[test]
fn with_several_push_urls_all_have_to_take_it() {
    let repo = Repo::new();
    repo.run_in(repo.dir.path(), ["clone", "--quiet", "--bare", "bare.git", "second.git"]);
    let second = repo.dir.path().join("second.git");
    for url in [&repo.bare(), &second] {
        repo.git(["config", "--add", "remote.origin.pushurl", url.to_str().unwrap()]);
    }
    let record = repo.evt(["--set", "data.rev=r2", "app.yaml"]).pushed();
    assert_eq!(record["commit"], repo.run_in(&second, ["rev-parse", "main"]));
    repo.hook(&second, "pre-receive", "exit 1");
    let failed = repo.evt(["--set", "data.rev=r3", "app.yaml"]).failed(1, "rejected");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("second.git rejected") && message.contains("bare.git has taken it"), "{message}");
}

#[test]
fn a_shallow_clone_lists_what_it_can_know_and_no_more() {
    let repo = Repo::new();
    repo.commit("second", "1");
    repo.git(["push", "--quiet", "origin", "main"]);
    let url = format!("file://{}", repo.bare().display());
    repo.run_in(repo.dir.path(), ["clone", "--quiet", "--depth=1", &url, "shallow"]);
    let shallow = repo.dir.path().join("shallow");
    let push = |args: &[&str]| {
        let mut command = repo.command(&shallow);
        repo::Outcome::new(command.args(["evt-push", "--repo-url", URL]).args(args).output().unwrap()).pushed()
    };
    let record = push(&["--set", "data.rev=r2", "app.yaml"]);
    assert_eq!(
        (lists(&record, "modified"), &record["files_complete"]),
        (vec![vec!["app.yaml".to_owned()]], &json!(true))
    );

    // A second history, cut off too, is merged: its first commit only looks like one that adds every file.
    let other = Repo::new();
    other.commit("theirs", "1");
    let url = format!("file://{}", other.work().display());
    repo.run_in(&shallow, ["fetch", "--quiet", "--depth=1", &url, "main"]);
    let merge = ["merge", "--quiet", "--no-edit", "--allow-unrelated-histories", "-Xours", "FETCH_HEAD"];
    repo.run_in(&shallow, merge);
    let receives = ["config", "receive.shallowUpdate", "true"];
    repo.run_in(&repo.bare(), receives);
    let record = push(&["-m", "-"]);
    assert_eq!(record["files_complete"], false);
}

#[test]
fn a_partial_clone_is_described_without_fetching_blobs() {
    let repo = Repo::new();
    repo.run_in(&repo.bare(), ["config", "uploadpack.allowFilter", "true"]);
    repo.write("big", &"x".repeat(1000));
    repo.commit("second", "1");
    repo.git(["push", "--quiet", "origin", "main"]);
    let url = format!("file://{}", repo.bare().display());
    repo.run_in(repo.dir.path(), ["clone", "--quiet", "--no-checkout", "--filter=blob:none", &url, "partial"]);
    let partial = repo.dir.path().join("partial");
    let missing = || repo.run_in(&partial, ["rev-list", "--objects", "--all", "--missing=print"]).matches('?').count();
    let before = missing();
    assert!(before > 0);
    let mut command = repo.command(&partial);
    let output = command.args(["evt-push", "--repo-url", URL, "--describe", "HEAD~1..HEAD"]).output().unwrap();
    let outcome = repo::Outcome::new(output);
    assert_eq!(lists(&outcome.record, "added"), [["big", "second"]]);
    assert_eq!(missing(), before);
}

#[test]
fn a_second_worktree_and_another_folder_work_as_for_git() {
    let repo = Repo::new();
    repo.git(["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let side = repo.dir.path().join("side");
    fs::create_dir(side.join("deep")).unwrap();
    let mut command = repo.command(&side.join("deep"));
    let output = command.args(["evt-push", "--set", "data.rev=r2", "../app.yaml"]).output().unwrap();
    let record = repo::Outcome::new(output).pushed();
    assert_eq!((&record["branch"], &record["commit"]), (&json!("side"), &json!(repo.remote("side"))));
}

#[test]
fn the_folder_and_the_configuration_that_git_is_given_hold() {
    let repo = Repo::new();
    let root = repo.dir.path();
    let mut command = repo.command(root);
    let args = ["-C", "work", "-c", "evt.repoUrl=https://other.example.com/x.git", "evt-push", "--set", "data.rev=r2"];
    let record = repo::Outcome::new(command.args(args).arg("app.yaml").output().unwrap()).pushed();
    assert_eq!(record["repo_url"], "https://other.example.com/x");
    let mut command = repo.command(root);
    command.env("GIT_DIR", repo.work().join(".git")).env("GIT_WORK_TREE", repo.work());
    let output = command.args(["evt-push", "--set", "data.rev=r3", "work/app.yaml"]).output().unwrap();
    repo::Outcome::new(output).pushed();
    assert_eq!(repo.remote("main"), repo.head());
}

#[test]
fn sha_256_repositories_have_long_ids() {
    let repo =
        Repo::empty(&["init", "--quiet", "--bare", "--object-format=sha256", "--initial-branch=main", "bare.git"]);
    // Git before 2.44 clones an empty repository as SHA-1.
    fs::remove_dir_all(repo.work()).unwrap();
    repo.run_in(repo.dir.path(), ["init", "--quiet", "--object-format=sha256", "--initial-branch=main", "work"]);
    repo.git(["remote", "add", "origin", "../bare.git"]);
    repo.git(["config", "evt.repoUrl", URL]);
    let first = repo.commit("app.yaml", "data: {rev: r1}\n");
    let record = repo.evt(["-m", "-"]).pushed();
    assert_eq!((&record["commit"], &record["before"]), (&json!(first), &json!("0".repeat(64))));
    let record = repo.evt(["--set", "data.rev=r2", "app.yaml"]).pushed();
    assert_eq!((&record["before"], lists(&record, "modified")), (&json!(first), vec![vec!["app.yaml".to_owned()]]));
}

#[test]
fn more_commits_than_an_event_can_hold_have_no_lists() {
    let repo = Repo::new();
    let mut stream = String::new();
    for number in 0..2001 {
        stream.push_str("commit refs/heads/main\ncommitter T <t@example.com> 1700000000 +0000\ndata 1\nx");
        let from = if number == 0 { "\nfrom refs/heads/main^0" } else { "" };
        stream.push_str(&format!("{from}\nM 100644 inline f\ndata {}\n{number}\n", number.to_string().len()));
    }
    repo.import(&stream);
    let before = repo.remote("main");
    repo.git(["reset", "--quiet", "--hard"]);
    let record = repo.evt(["-m", "-"]).pushed();
    assert_eq!((&record["before"], &record["files_complete"]), (&json!(before), &json!(false)));
    assert_eq!(record["commits"].as_array().unwrap().len(), 2000);
    assert_eq!(record["commits"][1999]["id"], repo.head());
}

#[test]
fn nothing_to_push_is_a_no_that_still_names_the_commit() {
    let repo = Repo::new();
    let before = repo.state();
    let object = repo.evt(["--set", "data.rev=r1", "app.yaml"]).failed(1, "nothing-to-push");
    assert_eq!(object["commit"], repo.head());
    assert_eq!(repo.state(), before);
}

#[test]
fn a_commit_that_an_earlier_run_could_not_push_is_pushed_by_the_same_command() {
    let repo = Repo::new();
    repo.hook(&repo.bare(), "pre-receive", "exit 1");
    let failed = repo.evt(["--set", "data.rev=r2", "app.yaml"]).failed(1, "rejected");
    fs::remove_file(repo.bare().join("hooks/pre-receive")).unwrap();
    let record = repo.evt(["--set", "data.rev=r2", "app.yaml"]).pushed();
    assert_eq!(record["commit"], failed["local_commit"]);
}

#[test]
fn the_users_hooks_run_and_what_they_print_is_not_on_stdout() {
    let repo = Repo::new();
    for hook in ["pre-commit", "commit-msg", "post-commit", "pre-push"] {
        repo.hook(&repo.work(), hook, &format!("echo {hook} ran; echo {hook} ran >> \"$HOME/hooks\""));
    }
    repo.hook(&repo.bare(), "post-receive", "echo server says hello");
    let outcome = repo.evt(["--set", "data.rev=r2", "app.yaml"]);
    assert!(outcome.stderr.contains("server says hello"), "{}", outcome.stderr);
    outcome.pushed();
    let ran = fs::read_to_string(repo.dir.path().join("hooks")).unwrap();
    assert_eq!(ran.lines().count(), 4, "{ran}");
}

#[test]
fn nothing_of_the_configuration_is_changed() {
    let repo = Repo::new();
    let config = || fs::read_to_string(repo.path(".git/config")).unwrap();
    let before = config();
    repo.git(["switch", "--quiet", "--create", "topic"]);
    repo.evt(["--set", "data.rev=r2", "app.yaml", "--retry", "2", "--confirm"]).pushed();
    assert_eq!(config(), before);
}
