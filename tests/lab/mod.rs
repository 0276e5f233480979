//! The lab, run against a stand-in of its own.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::Value;
use standin::Standin;
use tempfile::TempDir;

/// The times that fit into a test: the period, then how long nothing may happen, with polling off and after the
/// unsigned event.
pub const TIMES: [&str; 3] = ["--poll-period=3s", "--no-poll-watch=4s", "--unsigned-watch=2s"];

/// A stand-in and a directory for the artifacts.
pub struct Lab {
    pub standin: Standin,
    scratch: TempDir,
}

impl Lab {
    pub fn new() -> Self {
        Lab { standin: Standin::start(), scratch: tempfile::tempdir().unwrap() }
    }

    /// A file of the lab's directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join("lab").join(name)
    }

    pub fn text(&self, name: &str) -> String {
        let path = self.file(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// A program in an environment where nothing of the user's is found: no kubeconfig, no Git configuration.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", crate::suite::path())
            .env("HOME", self.scratch.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("KUBECONFIG", self.standin.kubeconfig())
            .current_dir(self.scratch.path());
        command
    }

    /// `kubectl …`; what it prints, without the newline at the end.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.command("kubectl").args(arguments).output().unwrap();
        assert!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
    }

    /// `lab.sh` with pushes over HTTP.
    pub fn lab_sh(&self, arguments: &[&str]) -> Command {
        let url = self.standin.git_url("evt.git");
        let mut command = self.command("sh");
        command
            .arg(share("lab.sh"))
            .arg("--dir")
            .arg(self.scratch.path().join("lab"))
            .arg("--bare")
            .arg(self.standin.git_root().join("evt.git"))
            .args(["--push-url", &url, "--repo-url", &url, "--timeout", "30s"])
            .args(TIMES)
            .args(arguments);
        command
    }

    /// Runs [`Lab::lab_sh`]; its output, which is that of a success.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let output = self.lab_sh(arguments).output().unwrap();
        assert!(output.status.success(), "lab.sh {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// `check-lab.sh` with the times of [`Lab::run`].
    pub fn check(&self) -> Output {
        let times = TIMES.iter().filter(|time| !time.starts_with("--unsigned-watch"));
        self.command("sh").arg(share("check-lab.sh")).arg(self.file("")).args(times).output().unwrap()
    }
}

/// A file of the recipe.
pub fn share(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("share/argo-evt").join(name)
}
