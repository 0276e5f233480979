//! Which commits contain the one that is waited for, as the user's own git says.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use kit::error::Error;

use crate::revision::is_commit;

/// A clone of the repository.
#[derive(Clone, Debug)]
pub struct Repository {
    git: PathBuf,
    dir: PathBuf,
}

impl Repository {
    /// Checks that `dir` is a repository, bare or not, or a folder in one.
    ///
    /// # Errors
    /// Without git, or when git does not see a repository there; exit code 2.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let git = which::which("git")
            .map_err(|_| Error::usage("no-git", "--git-dir needs git, and there is none on the PATH"))?;
        let repository = Repository { git, dir: dir.to_owned() };
        let output = repository.command(&["rev-parse", "--git-dir"]).output();
        match output {
            Ok(output) if output.status.success() => Ok(repository),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(Error::usage("no-repository", format!("{} is no Git repository: {why}", dir.display())))
            }
            Err(error) => Err(Error::usage("no-git", format!("cannot run git: {error}"))),
        }
    }

    /// The full id of an abbreviated one, which may be the beginning of another commit elsewhere.
    pub fn full_id(&self, id: &str) -> Option<String> {
        let output = self.command(&["rev-parse", "--verify", "--quiet", &format!("{id}^{{commit}}")]).output().ok()?;
        let full = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        is_commit(&full).then_some(full)
    }

    /// Whether `newer` contains `older`; `None` when one of them is not in the clone.
    pub fn contains(&self, newer: &str, older: &str) -> Option<bool> {
        match self.command(&["merge-base", "--is-ancestor", older, newer]).status().ok()?.code() {
            Some(0) => Some(true),
            Some(1) => Some(false),
            _ => None,
        }
    }

    /// The folder, for messages.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whatever repository the environment names, it is not this one. Nothing is fetched, not even the missing objects of
    /// a partial clone.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.git);
        command.arg("-C").arg(&self.dir).args(words);
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"] {
            command.env_remove(name);
        }
        command.env("GIT_NO_LAZY_FETCH", "1").stdin(Stdio::null());
        command
    }
}
