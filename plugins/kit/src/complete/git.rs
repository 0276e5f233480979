//! Names from the repository that git was started in, or nothing at all.

use std::process::{Command, Stdio};

/// The names of the remotes.
pub(super) fn remotes() -> Vec<String> {
    lines(&["remote"])
}

/// The names of the local branches.
pub(super) fn branches() -> Vec<String> {
    lines(&["for-each-ref", "--format=%(refname:short)", "refs/heads"])
}

fn lines(words: &[&str]) -> Vec<String> {
    let output = Command::new("git").args(words).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}
