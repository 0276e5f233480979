//! A work tree, the bare repository that it pushes to, and the command as a user types it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    ffi::OsStr,
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// The web address that the tests give.
pub const URL: &str = "https://git.example.com/team/evt";

pub struct Repo {
    pub dir: TempDir,
}

/// What the command left behind.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    /// Null when nothing was printed.
    pub record: Value,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn new(output: Output) -> Self {
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let record = stdout.lines().last().map_or(Value::Null, |line| serde_json::from_str(line).unwrap());
        Outcome { code: output.status.code().unwrap(), record, stdout, stderr }
    }

    /// The record of a push that went well.
    #[track_caller]
    pub fn pushed(self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        assert_eq!(self.record["outcome"], "pushed");
        assert_eq!(self.stdout.lines().count(), 1, "stdout holds more than the record: {}", self.stdout);
        self.record
    }

    /// The object of a command that ended with `code`.
    #[track_caller]
    pub fn failed(self, code: i32, outcome: &str) -> Value {
        assert_eq!((self.code, self.record["outcome"].as_str()), (code, Some(outcome)), "{self:?}");
        assert_eq!(self.record["error"]["code"], outcome);
        assert!(self.record.get("commit").is_none() || outcome == "nothing-to-push", "{self:?}");
        self.record
    }

    /// The message of a command that refused the call.
    #[track_caller]
    pub fn refused(self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{self:?}");
        self.stderr
    }
}

impl Repo {
    /// `work` is a clone of `bare.git`, whose `main` has one commit with `app.yaml`.
    pub fn new() -> Self {
        let repo = Repo::empty(&["init", "--quiet", "--bare", "--initial-branch=main", "bare.git"]);
        repo.write("app.yaml", "data:\n  rev: r1 # which\n");
        repo.git(["add", "app.yaml"]);
        repo.git(["commit", "--quiet", "--message=first"]);
        repo.git(["push", "--quiet", "origin", "main"]);
        repo.git(["remote", "set-head", "origin", "main"]);
        repo
    }

    /// As [`Repo::new`], without a commit.
    pub fn empty(init: &[&str]) -> Self {
        let repo = Repo { dir: tempfile::tempdir().unwrap() };
        repo.run_in(repo.dir.path(), init);
        repo.run_in(repo.dir.path(), ["clone", "--quiet", "bare.git", "work"]);
        repo.git(["config", "evt.repoUrl", URL]);
        repo
    }

    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub fn bare(&self) -> PathBuf {
        self.dir.path().join("bare.git")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    pub fn write(&self, name: &str, contents: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Writes a file and commits it.
    pub fn commit(&self, name: &str, contents: &str) -> String {
        self.write(name, contents);
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "--allow-empty", "--message", name]);
        self.head()
    }

    /// Puts a commit on the branch of the remote that the work tree does not have.
    pub fn overtake(&self, name: &str, contents: &str) -> String {
        let other = self.dir.path().join(format!("other-{name}"));
        self.run_in(self.dir.path(), ["clone".as_ref(), "--quiet".as_ref(), "bare.git".as_ref(), other.as_os_str()]);
        fs::write(other.join(name), contents).unwrap();
        self.run_in(&other, ["add", "--all"]);
        self.run_in(&other, ["commit", "--quiet", "--message=theirs"]);
        self.run_in(&other, ["push", "--quiet", "origin", "HEAD"]);
        self.run_in(&other, ["rev-parse", "HEAD"])
    }

    pub fn head(&self) -> String {
        self.git(["rev-parse", "HEAD"])
    }

    /// What the remote has under a name.
    pub fn remote(&self, name: &str) -> String {
        self.run_in(&self.bare(), ["rev-parse", "--verify", name])
    }

    /// Runs git in the work tree and returns what it prints, without the line break at its end.
    #[track_caller]
    pub fn git<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        self.run_in(&self.work(), args)
    }

    #[track_caller]
    pub fn run_in<S: AsRef<OsStr>>(&self, folder: &Path, args: impl IntoIterator<Item = S>) -> String {
        let output = self.command(folder).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
    }

    /// `git evt-push` in the work tree.
    pub fn evt<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Outcome {
        Outcome::new(self.command(&self.work()).arg("evt-push").args(args).output().unwrap())
    }

    /// git in a folder, with no configuration but the repository's own, and with the command on its PATH.
    pub fn command(&self, folder: &Path) -> Command {
        let built = Path::new(env!("CARGO_BIN_EXE_git-evt-push")).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths([built.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap();
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            command.env_remove(name);
        }
        command
            .current_dir(folder)
            .stdin(Stdio::null())
            .env("PATH", path)
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("SSH_ASKPASS")
            .env("GIT_AUTHOR_NAME", "Tester")
            .env("GIT_AUTHOR_EMAIL", "tester@example.com")
            .env("GIT_COMMITTER_NAME", "Tester")
            .env("GIT_COMMITTER_EMAIL", "tester@example.com");
        command
    }

    /// Feeds commits to `git fast-import`.
    pub fn import(&self, stream: &str) {
        let mut command = self.command(&self.work());
        let mut child = command.args(["fast-import", "--quiet", "--force"]).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// Installs a hook, a shell script, in a repository.
    pub fn hook(&self, repository: &Path, name: &str, script: &str) {
        let hooks = if repository.join("hooks").exists() { repository.to_owned() } else { repository.join(".git") };
        let path = hooks.join("hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Work tree, index and branch, for comparing before and after.
    pub fn state(&self) -> (String, String, String) {
        (
            self.git(["status", "--porcelain=v2", "--branch", "--untracked-files=all"]),
            self.git(["diff", "HEAD"]),
            self.git(["stash", "list"]),
        )
    }
}

/// The list under `name` of each commit of a record, in order.
pub fn lists(record: &Value, name: &str) -> Vec<Vec<String>> {
    let list = |commit: &Value| {
        commit[name].as_array().unwrap().iter().map(|file| file.as_str().unwrap().to_owned()).collect()
    };
    record["commits"].as_array().unwrap().iter().map(list).collect()
}
