//! The same lab on a real cluster, which is named explicitly:
//!
//! ```sh
//! ARGO_EVT_E2E_CONTEXT=kind-argo ARGO_EVT_E2E_PUSH_URL=http://127.0.0.1:8080/cgi-bin/git/evt.git \
//!     cargo test --locked --test cluster -- --ignored --nocapture
//! ```
//!
//! | variable | |
//! |---|---|
//! | `ARGO_EVT_E2E_CONTEXT` | context of the kubeconfig |
//! | `ARGO_EVT_E2E_BARE` or `ARGO_EVT_E2E_PUSH_URL` | where to push: a bare repository, or the URL of a remote |
//! | `ARGO_EVT_E2E_REPO_URL` | the address at which Argo CD reads it; that of `share/argo-evt/githttp.yaml` by default |
//! | `ARGO_EVT_E2E_NAMESPACE` | the namespace of Argo CD; `argocd` by default |
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod suite;

use std::{env, path::Path, process::Command};

#[test]
#[ignore = "needs a cluster with Argo CD, named by ARGO_EVT_E2E_CONTEXT: writes argocd-cm (timeout.reconciliation and \
            its jitter) and argocd-secret (webhook.github.secret), restarts the controller and the repo-server, makes \
            the Application and the namespace evt, pushes to the repository"]
fn the_lab_runs_on_a_real_cluster() {
    let context = env::var("ARGO_EVT_E2E_CONTEXT").expect("ARGO_EVT_E2E_CONTEXT names the context to use");
    let flags = [
        ("ARGO_EVT_E2E_BARE", "--bare"),
        ("ARGO_EVT_E2E_PUSH_URL", "--push-url"),
        ("ARGO_EVT_E2E_REPO_URL", "--repo-url"),
        ("ARGO_EVT_E2E_NAMESPACE", "--namespace"),
    ];
    let flags: Vec<String> =
        flags.iter().filter_map(|(name, flag)| Some(format!("{flag}={}", env::var(name).ok()?))).collect();
    assert!(
        flags.iter().any(|flag| flag.starts_with("--bare") || flag.starts_with("--push-url")),
        "ARGO_EVT_E2E_BARE or ARGO_EVT_E2E_PUSH_URL says where to push"
    );
    let scratch = tempfile::tempdir().unwrap();
    let script = |name: &str| {
        let mut command = Command::new("sh");
        command
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("share/argo-evt").join(name))
            .env("PATH", suite::path())
            .arg(format!("--context={context}"));
        command
    };
    let lab = script("lab.sh").arg("--dir").arg(scratch.path()).args(&flags).status().unwrap();
    assert!(lab.success(), "lab.sh: {lab}");
    let check = script("check-lab.sh").arg(scratch.path()).status().unwrap();
    assert!(check.success(), "check-lab.sh: {check}");
}
