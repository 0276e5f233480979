//! The spine of the lab, by the real git and the real kubectl: polling finds a commit, switched off it does not, an
//! event does, and with a secret only a signed one.

mod world;

use std::time::{Duration, Instant};

use world::{PATIENCE, Reply, World};

fn set_polling(world: &World, period: &str) {
    let patch = format!(r#"{{"data":{{"timeout.reconciliation":"{period}","timeout.reconciliation.jitter":"0s"}}}}"#);
    world.kubectl(&["patch", "configmap", "argocd-cm", "-n", "argocd", "--type", "merge", "-p", &patch]);
    for workload in ["deployment/argocd-repo-server", "statefulset/argocd-application-controller"] {
        world.kubectl(&["rollout", "restart", workload, "-n", "argocd"]);
        world.kubectl(&["rollout", "status", workload, "-n", "argocd", "--timeout", "30s"]);
    }
}

fn startup_line(world: &World) -> String {
    let log = world.kubectl(&["logs", "-n", "argocd", "statefulset/argocd-application-controller"]);
    log.lines().find(|line| line.contains("appResyncPeriod=")).expect("the line is printed").to_owned()
}

#[test]
fn polling_finds_a_commit_and_an_event_finds_it_when_polling_is_off() {
    let world = World::new();
    world.commit("r1");
    world.apply_evt();
    let first = world.commit_of_branch();
    world.wait_for("Synced", PATIENCE, |app| {
        app["status"]["sync"]["status"] == "Synced" && app["status"]["operationState"]["phase"] == "Succeeded"
    });
    assert_eq!(world.application("evt")["status"]["sync"]["revision"], first.as_str());
    assert_eq!(world.kubectl(&["get", "configmap", "signal", "-n", "evt", "-o", "jsonpath={.data.rev}"]), "r1");

    set_polling(&world, "2s");
    assert!(startup_line(&world).contains("appResyncPeriod=2s, appHardResyncPeriod=0s, appResyncJitter=0s"));
    // What is cached keeps the age limit that it was cached with: three minutes, until a forced look replaces it.
    world.kubectl(&["annotate", "application", "evt", "-n", "argocd", "argocd.argoproj.io/refresh=hard"]);
    world.wait_for("the refresh", PATIENCE, |app| {
        app["metadata"]["annotations"]["argocd.argoproj.io/refresh"].is_null()
    });
    let second = world.commit("r2");
    let pushed = Instant::now();
    world.wait_for_revision(&second, PATIENCE);
    let took = pushed.elapsed();
    assert!(took < Duration::from_secs(7), "twice the period, the age of the refs, and a little: {took:?}");

    set_polling(&world, "0s");
    assert!(startup_line(&world).contains("appResyncPeriod=876000h0m0s"));
    // The refs that the last poll left behind: a comparison that may use them does not see what comes now.
    let third = world.commit("r3");
    world.stays_at(&second, Duration::from_secs(5));

    let event = world.push_event(&second, &third);
    let sent = Instant::now();
    assert_eq!(world.post(&event, &[]), Reply { status: 200, body: String::new() });
    world.wait_for_revision(&third, PATIENCE);
    assert!(sent.elapsed() < Duration::from_secs(1), "{:?}", sent.elapsed());
    world.wait_for("r3 applied", PATIENCE, |app| {
        app["status"]["operationState"]["syncResult"]["revision"] == third.as_str()
    });

    world.set_secret("webhook.github.secret", "0123456789abcdef");
    let ping = ["-H", "X-GitHub-Event: ping"];
    world.wait_until("the secret is in force", PATIENCE, || world.post_with("{}", &ping).status == 400);
    let fourth = world.commit("r4");
    let event = world.push_event(&third, &fourth);
    let refused = world.post(&event, &[]);
    assert_eq!(refused, Reply { status: 400, body: "Webhook processing failed\n".into() });
    world.stays_at(&third, Duration::from_secs(2));
    let signature = format!("X-Hub-Signature-256: sha256={}", world.hmac_sha256("0123456789abcdef", &event));
    assert_eq!(world.post(&event, &["-H", &signature]).status, 200);
    world.wait_for_revision(&fourth, PATIENCE);
}
