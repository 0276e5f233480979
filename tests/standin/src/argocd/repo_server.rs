//! The repo-server and the cache behind it, which outlives its containers: refs by repository, manifests by commit.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use serde_json::Value;

use super::{
    git::{self, Clone as GitClone, Refs, Remote},
    manifests, settings,
    version::Version,
};
use crate::{
    Cluster,
    processes::{Component, Process},
};

/// One source of an Application, as far as the repo-server looks at it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// `repoURL`.
    pub repo_url: String,
    /// `targetRevision`.
    pub target_revision: String,
    /// `path`.
    pub path: String,
    /// `chart`: then it is no Git repository.
    pub chart: Option<String>,
    /// `ref`: then, without a path, it has no manifests of its own.
    pub reference: Option<String>,
    /// `directory.recurse`.
    pub recurse: bool,
    /// `tagPrefix`.
    pub tag_prefix: String,
}

impl Source {
    /// Reads `spec.source`, one of `spec.sources`, or a part of `spec.sourceHydrator`.
    pub fn of(value: &Value) -> Source {
        let text = |field: &str| value[field].as_str().map(str::to_owned);
        Source {
            repo_url: text("repoURL").unwrap_or_default(),
            target_revision: text("targetRevision").unwrap_or_default(),
            path: text("path").unwrap_or_default(),
            chart: text("chart"),
            reference: text("ref"),
            recurse: value["directory"]["recurse"].as_bool().unwrap_or_default(),
            tag_prefix: text("tagPrefix").unwrap_or_default(),
        }
    }

    /// Whether it has no manifests of its own.
    pub fn is_reference_only(&self) -> bool {
        self.reference.is_some() && self.path.is_empty() && self.chart.is_none()
    }
}

/// What the repo-server made of a source at a commit.
#[derive(Clone, Debug)]
pub struct Manifests {
    /// The revision that the answer names.
    pub revision: String,
    /// The objects.
    pub objects: Arc<Vec<Value>>,
}

/// Whose manifests are cached: install, `namespace/name` of the Application, the source, its revision.
type ManifestKey = (String, String, Source, String);

struct CachedRefs {
    refs: Arc<Refs>,
    /// When the look at the remote began.
    listed: Instant,
    until: Instant,
}

/// What is in Redis, for all installs.
pub struct RepoServer {
    cluster: Arc<Cluster>,
    dir: PathBuf,
    refs: Mutex<HashMap<(String, String), CachedRefs>>,
    manifests: Mutex<HashMap<ManifestKey, Arc<Vec<Value>>>>,
    /// One at a time for each repository: only one ls-remote runs for all that may use its answer, one fetch.
    busy: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl RepoServer {
    /// An empty cache; clones are kept in `dir`.
    pub fn new(cluster: Arc<Cluster>, dir: PathBuf) -> RepoServer {
        RepoServer { cluster, dir, refs: Mutex::default(), manifests: Mutex::default(), busy: Mutex::default() }
    }

    /// The commit (or chart version) that a source is at. `force` looks at the remote whatever the cache holds, and
    /// leaves there what it found.
    ///
    /// # Errors
    /// As the controller would report it.
    pub async fn resolve(&self, install: &str, source: &Source, revision: &str, force: bool) -> Result<String, String> {
        let process = self.process(install)?;
        if source.chart.is_some() || git::is_full_id(revision) {
            return Ok(revision.into());
        }
        let refs = self
            .refs(install, &process, source, force)
            .await
            .map_err(|error| format!("rpc error: code = Unknown desc = failed to list refs: {error}"))?;
        git::resolve(&refs, revision, &source.tag_prefix, Version::of_tag(&process.version))
            .map_err(|error| format!("rpc error: code = Unknown desc = {error}"))
    }

    /// The manifests of a source at a resolved revision.
    ///
    /// # Errors
    /// As the controller would report it.
    pub async fn manifests(
        &self,
        install: &str,
        application: &str,
        source: &Source,
        revision: &str,
        use_cache: bool,
    ) -> Result<Manifests, String> {
        self.process(install)?;
        if source.chart.is_some() || source.is_reference_only() {
            return Ok(Manifests { revision: revision.into(), objects: Arc::default() });
        }
        let key = manifest_key(install, application, source, revision);
        if use_cache && let Some(objects) = self.cached_manifests().get(&key) {
            return Ok(Manifests { revision: revision.into(), objects: objects.clone() });
        }
        let failed = |error: String| format!("rpc error: code = Unknown desc = {error}");
        let clone = self.clone_of(install, source);
        let (commit, files) = clone.files(revision, &source.path, source.recurse).await.map_err(failed)?;
        let objects = Arc::new(manifests::of_files(files).map_err(failed)?);
        self.cached_manifests().insert(key, objects.clone());
        Ok(Manifests { revision: commit, objects })
    }

    /// Renames the cached manifests of a source from one commit to another, as a webhook does for a push that misses
    /// the paths of an Application; false when there are none.
    pub fn move_manifests(
        &self,
        install: &str,
        application: &str,
        source: &Source,
        before: &str,
        after: &str,
        keep: bool,
    ) -> bool {
        let key = |revision| manifest_key(install, application, source, revision);
        let mut cached = self.cached_manifests();
        let found = if keep { cached.get(&key(before)).cloned() } else { cached.remove(&key(before)) };
        found.map(|objects| cached.insert(key(after), objects)).is_some()
    }

    /// Commits files to a branch of a source's repository and pushes it: the work of the commit-server.
    ///
    /// # Errors
    /// As the controller would report it.
    pub async fn commit(
        &self,
        install: &str,
        source: &Source,
        message: &str,
        files: &[(String, String)],
    ) -> Result<String, String> {
        let pushed = self.clone_of(install, source).commit(&source.target_revision, message, files).await;
        pushed.map_err(|error| format!("rpc error: code = Unknown desc = failed to push: {error}"))
    }

    fn clone_of(&self, install: &str, source: &Source) -> GitClone {
        let name: String =
            source.repo_url.bytes().map(|byte| if byte.is_ascii_alphanumeric() { byte as char } else { '_' }).collect();
        GitClone::new(
            self.remote(install, &source.repo_url).1,
            self.dir.join(name),
            self.busy(&format!("clone {}", source.repo_url)),
        )
    }

    /// The lock of what only one may do at a time.
    fn busy(&self, what: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut busy = self.busy.lock().expect("no thread panics while it holds the locks");
        busy.entry(what.to_owned()).or_default().clone()
    }

    async fn refs(&self, install: &str, process: &Process, source: &Source, force: bool) -> Result<Arc<Refs>, String> {
        let asked = Instant::now();
        let (url, remote) = self.remote(install, &source.repo_url);
        let key = (install.to_owned(), url);
        let busy = self.busy(&format!("refs {}", key.1));
        let _one_listing = busy.lock().await;
        // Refs that were listed after somebody asked are as fresh as he wants them.
        let fresh = |cached: &&CachedRefs| cached.listed > asked || (!force && cached.until > Instant::now());
        if let Some(cached) = self.cached_refs().get(&key).filter(fresh) {
            return Ok(cached.refs.clone());
        }
        let listed = Instant::now();
        let refs = Arc::new(git::ls_remote(&remote).await?);
        if let Ok(lifetime) = settings::revision_cache(process).settings {
            let until = Instant::now() + lifetime;
            self.cached_refs().insert(key, CachedRefs { refs: refs.clone(), listed, until });
        }
        Ok(refs)
    }

    /// The key of a repository's refs, which is the address in its Secret when it has one, and how to reach it.
    fn remote(&self, install: &str, url: &str) -> (String, Remote) {
        let in_cluster = self.cluster.git_url.clone();
        let (secrets, _) = self.cluster.store.list("secrets", Some(install));
        let secret = secrets.iter().find(|secret| {
            secret["metadata"]["labels"]["argocd.argoproj.io/secret-type"] == "repository"
                && manifests::secret_value(secret, "url").is_some_and(|own| is_same_repository(&own, url))
        });
        let value = |key: &str| manifests::secret_value(secret?, key);
        let login = value("username").zip(value("password"));
        let key = value("url").unwrap_or_else(|| url.to_owned());
        (key, Remote { url: url.into(), login, in_cluster })
    }

    fn process(&self, install: &str) -> Result<Process, String> {
        let all = self.cluster.processes.of(Component::RepoServer);
        all.into_iter().find(|process| process.namespace == install).ok_or_else(|| {
            "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial tcp \
             argocd-repo-server:8081: connect: connection refused\""
                .into()
        })
    }

    fn cached_refs(&self) -> MutexGuard<'_, HashMap<(String, String), CachedRefs>> {
        self.refs.lock().expect("no thread panics while it holds the refs")
    }

    fn cached_manifests(&self) -> MutexGuard<'_, HashMap<ManifestKey, Arc<Vec<Value>>>> {
        self.manifests.lock().expect("no thread panics while it holds the manifests")
    }
}

fn manifest_key(install: &str, application: &str, source: &Source, revision: &str) -> ManifestKey {
    // Every branch of one commit has the same manifests.
    let source = Source { target_revision: String::new(), ..source.clone() };
    (install.into(), application.into(), source, revision.into())
}

/// Whether two addresses are one repository, as far as the normalisation of argo-cd util/git/git.go goes for the
/// addresses of the tests.
fn is_same_repository(one: &str, other: &str) -> bool {
    let normal = |url: &str| {
        let url = url.trim().to_lowercase();
        url.strip_suffix(".git").unwrap_or(&url).to_owned()
    };
    normal(one) == normal(other)
}
