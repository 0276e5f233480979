//! A clone of a remote, and what is done in it.

use std::{path::PathBuf, sync::Arc};

use tokio::sync::Mutex;

use super::{
    Remote, is_full_id,
    objects::{Objects, entries},
    run::git,
};

/// A bare clone of one remote in a folder of its own.
#[derive(Clone, Debug)]
pub struct Clone {
    remote: Remote,
    dir: PathBuf,
    /// Held by whoever writes into it.
    writing: Arc<Mutex<()>>,
}

/// A file of a commit.
pub struct File {
    /// Its path from the root of the repository.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

impl Clone {
    /// A clone in `dir`, which is made when it is first needed.
    pub fn new(remote: Remote, dir: PathBuf, writing: Arc<Mutex<()>>) -> Clone {
        Clone { remote, dir, writing }
    }

    /// The regular files in folder `path` of a commit, with those below it if `recurse`, and the full id of the commit.
    /// The commit is fetched unless it is here.
    ///
    /// # Errors
    /// What git says; no such commit, no such folder.
    pub async fn files(&self, revision: &str, path: &str, recurse: bool) -> Result<(String, Vec<File>), String> {
        let (mut objects, commit) = self.checkout(revision).await?;
        let root = path.trim_matches('/');
        let root = if root == "." { "" } else { root };
        let tree = objects.get(&format!("{commit}:{root}")).await?;
        let tree = tree.ok_or_else(|| format!("{path}: app path does not exist"))?;
        let mut folders = vec![(root.to_owned(), tree.bytes)];
        let mut files = Vec::new();
        while let Some((folder, tree)) = folders.pop() {
            for entry in entries(&tree) {
                let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
                let is_file = entry.mode.starts_with("100");
                let goes_down = recurse && entry.mode == "40000";
                if !is_file && !goes_down {
                    continue;
                }
                let object = objects.get(&entry.id).await?.ok_or_else(|| format!("{path}: not in the repository"))?;
                if is_file {
                    files.push(File { path, bytes: object.bytes });
                } else {
                    folders.push((path, object.bytes));
                }
            }
        }
        Ok((commit, files))
    }

    /// Fetches `revision` unless it is here; the repository, and the full id of the commit.
    async fn checkout(&self, revision: &str) -> Result<(Objects, String), String> {
        let commit = format!("{revision}^{{commit}}");
        if let Some(found) = self.find(&commit).await? {
            return Ok(found);
        }
        let _writing = self.writing.lock().await;
        // Whoever wrote before may have brought it.
        if let Some(found) = self.find(&commit).await? {
            return Ok(found);
        }
        self.fetch().await?;
        if let Some(found) = self.find(&commit).await? {
            return Ok(found);
        }
        if is_full_id(revision) {
            // It is the tip of nothing; the older protocol would not give it.
            let only = ["-c", "protocol.version=2", "fetch", "--quiet", &self.remote.url, revision];
            git(Some(&self.dir), Some(&self.remote), &only, None).await?;
        }
        let found = self.find(&commit).await?;
        found.ok_or_else(|| format!("failed to checkout {revision}: no such commit"))
    }

    /// The repository and the full id of a commit, if it is here.
    async fn find(&self, commit: &str) -> Result<Option<(Objects, String)>, String> {
        if !self.dir.is_dir() {
            return Ok(None);
        }
        let mut objects = Objects::open(&self.dir)?;
        let found = objects.get(commit).await?;
        Ok(found.map(|found| (objects, found.id)))
    }

    /// Brings all refs of the remote.
    async fn fetch(&self) -> Result<(), String> {
        if !self.dir.is_dir() {
            let dir = self.dir.display().to_string();
            git(None, None, &["init", "--quiet", "--bare", &dir], None).await?;
        }
        let all = "+refs/*:refs/*";
        git(Some(&self.dir), Some(&self.remote), &["fetch", "--quiet", "--prune", &self.remote.url, all], None).await?;
        Ok(())
    }

    /// Adds a commit with these files, given by path, to a branch of the remote, and returns its id.
    ///
    /// # Errors
    /// What git says.
    pub async fn commit(&self, branch: &str, message: &str, files: &[(String, String)]) -> Result<String, String> {
        const MADE: &str = "refs/standin/made";
        let _writing = self.writing.lock().await;
        self.fetch().await?;
        let tip = format!("refs/heads/{branch}^{{commit}}");
        let parent = git(Some(&self.dir), None, &["rev-parse", "--quiet", "--verify", &tip], None).await.ok();
        let seconds = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let mut stream = format!("commit {MADE}\ncommitter Argo CD <argo-cd@example.com> {seconds} +0000\n");
        stream.push_str(&format!("data {}\n{message}\n", message.len()));
        if let Some(parent) = parent {
            stream.push_str(&format!("from {}\n", text(&parent)));
        }
        for (path, contents) in files {
            stream.push_str(&format!("M 100644 inline {path}\ndata {}\n{contents}\n", contents.len()));
        }
        git(Some(&self.dir), None, &["fast-import", "--quiet", "--force"], Some(stream.as_bytes())).await?;
        let refspec = format!("{MADE}:refs/heads/{branch}");
        git(Some(&self.dir), Some(&self.remote), &["push", "--quiet", &self.remote.url, &refspec], None).await?;
        git(Some(&self.dir), None, &["rev-parse", MADE], None).await.map(|id| text(&id))
    }
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end().to_owned()
}
