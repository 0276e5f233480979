//! Runs git.

use std::{
    path::Path,
    process::{Output, Stdio},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use tokio::{io::AsyncWriteExt, process::Command};

use super::Remote;

/// The address at which the lab's Git server is known inside a cluster, and which only exists there.
const IN_CLUSTER: &str = "http://githttp.gitsrv.svc.cluster.local/cgi-bin/git/";

/// Runs git without the user's own configuration; what the remote needs goes through the environment.
pub async fn git(
    dir: Option<&Path>,
    remote: Option<&Remote>,
    arguments: &[&str],
    input: Option<&[u8]>,
) -> Result<Vec<u8>, String> {
    let mut command = Command::new("git");
    if let Some(dir) = dir {
        command.arg("--git-dir").arg(dir);
    }
    command
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "Argo CD")
        .env("GIT_AUTHOR_EMAIL", "argo-cd@example.com")
        .env("GIT_COMMITTER_NAME", "Argo CD")
        .env("GIT_COMMITTER_EMAIL", "argo-cd@example.com")
        .env("LC_ALL", "C")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for (variable, value) in remote.map(configuration).unwrap_or_default() {
        command.env(variable, value);
    }
    let failed = |error: std::io::Error| format!("git {}: {error}", arguments[0]);
    let mut child = command.spawn().map_err(failed)?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        let input = input.to_vec();
        tokio::spawn(async move { stdin.write_all(&input).await });
    }
    let Output { status, stdout, stderr } = child.wait_with_output().await.map_err(failed)?;
    if status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&stderr);
    Err(stderr.trim().lines().last().unwrap_or("git failed").to_owned())
}

fn configuration(remote: &Remote) -> Vec<(String, String)> {
    let mut settings = vec![
        (format!("url.{}.insteadOf", remote.in_cluster), IN_CLUSTER.to_owned()),
        // One request where the newer protocol needs two.
        ("protocol.version".into(), "0".into()),
        ("maintenance.auto".into(), "false".into()),
    ];
    if let Some((user, password)) = &remote.login {
        let login = STANDARD.encode(format!("{user}:{password}"));
        settings.push(("http.extraHeader".into(), format!("Authorization: Basic {login}")));
    }
    let mut environment = vec![("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())];
    for (index, (key, value)) in settings.into_iter().enumerate() {
        environment.push((format!("GIT_CONFIG_KEY_{index}"), key));
        environment.push((format!("GIT_CONFIG_VALUE_{index}"), value));
    }
    environment
}
