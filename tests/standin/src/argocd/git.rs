//! What the repo-server does with the real `git`: list the refs of a remote, resolve a revision, read the files of a
//! commit.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use tokio::{io::AsyncWriteExt, process::Command};

use super::{
    semver::{Constraint, Library, Semver},
    version::Version,
};

/// The address at which the lab's Git server is known inside a cluster, and which only exists there.
const IN_CLUSTER: &str = "http://githttp.gitsrv.svc.cluster.local/cgi-bin/git/";

/// How to reach a remote.
#[derive(Clone, Debug)]
pub struct Remote {
    /// As written in the Application.
    pub url: String,
    /// User and password from the repository's Secret.
    pub login: Option<(String, String)>,
    /// What the lab's in-cluster address stands for.
    pub in_cluster: String,
}

/// The refs of a remote: names, `HEAD` and `<tag>^{}` among them, and what they point to.
pub type Refs = BTreeMap<String, String>;

/// `git ls-remote`.
///
/// # Errors
/// What git says.
pub async fn ls_remote(remote: &Remote) -> Result<Refs, String> {
    let output = git(None, Some(remote), &["ls-remote", &remote.url], None).await?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.lines().filter_map(|line| line.split_once('\t')).map(|(id, name)| (name.into(), id.into())).collect())
}

/// Whether it is a full commit id, which is never looked up.
pub fn is_full_id(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What `revision` is at the remote (argo-cd util/git/client.go, `lsRemote`).
///
/// # Errors
/// Nothing goes by that name.
pub fn resolve(refs: &Refs, revision: &str, tag_prefix: &str, version: Version) -> Result<String, String> {
    if is_full_id(revision) {
        return Ok(revision.into());
    }
    let revision = if revision.is_empty() { "HEAD" } else { revision };
    let newest = newest_tag(refs, revision, tag_prefix, version);
    let name = newest.as_deref().unwrap_or(revision);
    let mut names = vec![name.to_owned()];
    if !name.starts_with("refs/") {
        names.extend(["refs/heads/", "refs/tags/"].map(|folder| format!("{folder}{name}")));
    }
    if let Some(found) = names.iter().find(|name| refs.contains_key(*name)) {
        // An annotated tag: the commit behind it, in later versions.
        let peeled = version.since(&[(2, 13, 6), (2, 14, 8), (3, 0, 21), (3, 1, 0)]);
        let commit = refs.get(&format!("{found}^{{}}")).filter(|_| peeled);
        return Ok(commit.unwrap_or(&refs[found]).clone());
    }
    let short_id = (7..40).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if short_id {
        return Ok(name.into());
    }
    Err(format!("unable to resolve '{name}' to a commit SHA"))
}

/// The highest tag inside a constraint (argo-cd util/versions/tags.go, since v2.12).
fn newest_tag(refs: &Refs, revision: &str, prefix: &str, version: Version) -> Option<String> {
    if !version.at_least(2, 12) {
        return None;
    }
    let library = Library::of(version);
    // v2.12.0 to v2.12.4 took a version for a constraint.
    let literal = version >= Version::new(2, 12, 5);
    let prefix = if version.at_least(3, 5) { prefix } else { "" };
    if literal && Semver::parse(revision, library).is_some() {
        return Some(format!("{prefix}{revision}"));
    }
    let constraint = Constraint::parse(revision, library)?;
    let tags = refs.keys().filter_map(|name| name.strip_prefix("refs/tags/")?.strip_prefix(prefix));
    let versions = tags.filter_map(|tag| Some((Semver::parse(tag, library)?, tag)));
    let inside = versions.filter(|(version, _)| constraint.contains(version, library));
    let newest = inside.reduce(|best, next| if next.0 > best.0 { next } else { best });
    newest.map(|(_, tag)| format!("{prefix}{tag}"))
}

/// A bare clone of one remote in a folder of its own.
#[derive(Clone, Debug)]
pub struct Clone {
    remote: Remote,
    dir: PathBuf,
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
    pub fn new(remote: Remote, dir: PathBuf) -> Clone {
        Clone { remote, dir }
    }

    /// Fetches `revision` unless it is here, and returns the full id of its commit.
    ///
    /// # Errors
    /// What git says.
    pub async fn checkout(&self, revision: &str) -> Result<String, String> {
        let commit = format!("{revision}^{{commit}}");
        let here = ["rev-parse", "--quiet", "--verify", &commit];
        if self.dir.is_dir()
            && let Ok(id) = git(Some(&self.dir), None, &here, None).await
        {
            return Ok(text(&id));
        }
        self.fetch().await?;
        if git(Some(&self.dir), None, &here, None).await.is_err() && is_full_id(revision) {
            let only = ["fetch", "--quiet", &self.remote.url, revision];
            git(Some(&self.dir), Some(&self.remote), &only, None).await?;
        }
        let id = git(Some(&self.dir), None, &here, None).await;
        id.map(|id| text(&id)).map_err(|_| format!("failed to checkout {revision}: no such commit"))
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

    /// The regular files in folder `path` of a commit that is here, with those below it if `recurse`.
    ///
    /// # Errors
    /// There is no such folder.
    pub async fn files(&self, commit: &str, path: &str, recurse: bool) -> Result<Vec<File>, String> {
        let path = path.trim_matches('/');
        let path = if path == "." { "" } else { path };
        let tree = format!("{commit}:{path}");
        let arguments = ["ls-tree", "-z", if recurse { "-r" } else { "--full-tree" }, &tree];
        let listed = git(Some(&self.dir), None, &arguments, None)
            .await
            .map_err(|_| format!("{path}: app path does not exist"))?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let entries: Vec<(&str, &str)> = listed
            .split('\0')
            .filter_map(|entry| entry.split_once('\t'))
            .filter_map(|(head, name)| {
                let mut words = head.split(' ');
                (words.next()?.starts_with("100") && words.next()? == "blob").then_some((words.next()?, name))
            })
            .collect();
        let ids: String = entries.iter().map(|(id, _)| format!("{id}\n")).collect();
        let mut batch = &git(Some(&self.dir), None, &["cat-file", "--batch"], Some(ids.as_bytes())).await?[..];
        let mut files = Vec::new();
        for (_, name) in entries {
            let end = batch.iter().position(|byte| *byte == b'\n').unwrap_or(batch.len());
            let size = text(&batch[..end]).rsplit(' ').next().and_then(|size| size.parse::<usize>().ok()).unwrap_or(0);
            let bytes = batch.get(end + 1..end + 1 + size).unwrap_or_default().to_vec();
            batch = batch.get(end + size + 2..).unwrap_or_default();
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            files.push(File { path, bytes });
        }
        Ok(files)
    }
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end().to_owned()
}

/// Runs git without the user's own configuration; what the remote needs goes through the environment.
async fn git(
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
    use base64::{Engine, engine::general_purpose::STANDARD};
    let mut settings = vec![(format!("url.{}.insteadOf", remote.in_cluster), IN_CLUSTER.to_owned())];
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refs() -> Refs {
        [
            ("HEAD", "aa"),
            ("refs/heads/main", "aa"),
            ("refs/heads/both", "b1"),
            ("refs/tags/both", "b2"),
            ("refs/tags/v1.2.0", "t1"),
            ("refs/tags/v1.2.0^{}", "c1"),
            ("refs/tags/v1.10.0", "t2"),
            ("refs/tags/v2.0.0-rc1", "t3"),
            ("refs/tags/app/3.0.0", "t4"),
        ]
        .map(|(name, id)| (name.to_owned(), id.to_owned()))
        .into()
    }

    #[test]
    fn revisions_resolve_as_in_argo_cd() {
        let id = "0123456789012345678901234567890123456789";
        for (revision, prefix, version, expected) in [
            ("", "", "v3.5.1", Some("aa")),
            ("HEAD", "", "v3.5.1", Some("aa")),
            ("main", "", "v3.5.1", Some("aa")),
            ("refs/heads/main", "", "v3.5.1", Some("aa")),
            (id, "", "v3.5.1", Some(id)),
            ("abcdef0", "", "v3.5.1", Some("abcdef0")),
            ("abcdef", "", "v3.5.1", None),
            ("nope", "", "v3.5.1", None),
            ("v1.2.0", "", "v3.5.1", Some("c1")),
            ("v1.2.0", "", "v3.0.20", Some("t1")),
            ("1.*", "", "v3.5.1", Some("t2")),
            ("1.*", "", "v2.11.0", None),
            (">=1.0.0-0", "", "v3.5.1", Some("t3")),
            ("1.2", "", "v2.12.5", None),
            ("1.2", "", "v2.12.4", Some("t1")),
            (">=3", "app/", "v3.5.1", Some("t4")),
            (">=3", "app/", "v3.4.0", None),
        ] {
            let got = resolve(&refs(), revision, prefix, Version::of_tag(version));
            assert_eq!(got.ok().as_deref(), expected, "{revision:?} {prefix:?} on {version}");
        }
    }
}
