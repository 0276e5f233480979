//! The Git server by the real git, and how Argo CD reads it.

mod world;

use std::process::Command;

use serde_json::json;
use standin::GitFault;
use world::{APPLICATIONS, PATIENCE, World};

#[test]
fn large_pushes_and_clones_go_through() {
    let world = World::new();
    world.commit("r1");
    // More than git sends in one piece, and nothing that compresses.
    let random = world::run(Command::new("openssl").args(["rand", "-base64", "3000000"]));
    world.write("large", &random);
    for index in 0..100 {
        world.git(&["commit", "--quiet", "--allow-empty", "-m", &index.to_string()]);
    }
    let pushed = world.push("large");
    let other = tempfile::tempdir().expect("a temporary folder");
    let url = world.standin.git_url("evt.git");
    world::run(Command::new("git").args(["clone", "--quiet", &url, "."]).current_dir(&other));
    let head = world::run(Command::new("git").args(["rev-parse", "HEAD"]).current_dir(&other));
    assert_eq!(head.trim(), pushed);
    assert_eq!(std::fs::read_to_string(other.path().join("large")).expect("was cloned"), random);
    // A client that is far behind says in one gzipped request what it has.
    world.git(&["reset", "--quiet", "--hard", "HEAD~80"]);
    world.git(&["fetch", "--quiet"]);
}

#[test]
fn a_password_is_asked_for_and_argo_cd_takes_it_from_the_secret_of_the_repository() {
    let world = World::new();
    let first = world.commit("r1");
    let git = &world.standin.cluster().git_server;
    git.fail(Some(GitFault::Password("user".into(), "pass word".into())));
    let url = world.standin.git_url("evt.git");
    let anonymous = Command::new("git").args(["ls-remote", &url]).env("GIT_TERMINAL_PROMPT", "0").output();
    assert!(!anonymous.expect("git").status.success());
    world.apply_evt();
    world.wait_for("an error", PATIENCE, |app| {
        app["status"]["conditions"][0]["message"].as_str().is_some_and(|text| text.contains("failed to list refs"))
    });
    world.apply(&json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "repo", "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": "repository"},
        },
        "stringData": {"url": url.to_uppercase().replace("HTTP", "http"), "username": "user", "password": "pass word"},
    }));
    world.refresh();
    world.wait_for_revision(&first, PATIENCE);
}

#[test]
fn a_server_that_fails_is_an_error_of_the_comparison() {
    let world = World::new();
    let first = world.commit("r1");
    world.apply_evt();
    world.wait_for_revision(&first, PATIENCE);
    for fault in [GitFault::ServerError, GitFault::HangUp] {
        world.standin.cluster().git_server.fail(Some(fault));
        let (_, before) = world.standin.store().list(APPLICATIONS, None);
        world.refresh();
        // Another look, with the refs that are cached, may have found it Synced again by now.
        let events = world.standin.store().since(APPLICATIONS, before).expect("the log reaches back");
        assert!(events.iter().any(|event| event.object["status"]["sync"]["status"] == "Unknown"));
        world.standin.cluster().git_server.fail(None);
        world.refresh();
        world.wait_for_revision(&first, PATIENCE);
    }
}

#[test]
fn the_address_that_the_lab_has_inside_a_cluster_is_this_server() {
    let world = World::new();
    let first = world.commit("r1");
    let mut evt = world.evt();
    evt["spec"]["source"]["repoURL"] = json!("http://githttp.gitsrv.svc.cluster.local/cgi-bin/git/evt.git");
    world.create(evt);
    world.wait_for_revision(&first, PATIENCE);
}
