//! The handle that a test or the program holds.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::{
    Cluster, Options, Request,
    api::{
        self,
        access::{self, Identity},
    },
    argocd, certificates, install,
    kubeconfig::kubeconfig,
    service,
    store::Store,
    workloads,
};

/// A running stand-in. It has a runtime of its own, so that plain tests can use it; dropping it stops everything,
/// removes its files, and panics when the API was asked for something that it does not know.
pub struct Standin {
    cluster: Arc<Cluster>,
    kubeconfig: PathBuf,
    runtime: Option<Runtime>,
    server: String,
    certificate_pem: String,
    dir: tempfile::TempDir,
}

/// The token of the user that may do everything.
const ADMIN_TOKEN: &str = "standin-admin";

impl Standin {
    /// Starts a stock Argo CD of the newest version that it knows.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start() -> Standin {
        Standin::with(Options::default())
    }

    /// Starts what `options` describe.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn with(options: Options) -> Standin {
        Standin::try_with(options)
            .expect("the stand-in needs a temporary folder and free ports of the loopback address")
    }

    /// Starts what `options` describe.
    ///
    /// # Errors
    /// No temporary folder, no free port, no thread.
    pub fn try_with(options: Options) -> io::Result<Standin> {
        let dir = tempfile::Builder::new().prefix("standin-").tempdir()?;
        let git_root = dir.path().join("git");
        std::fs::create_dir(&git_root)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (api, git, http, https) = (loopback()?, loopback()?, loopback()?, loopback()?);
        let git_url = format!("http://{}/cgi-bin/git/", git.local_addr()?);
        let ports = (http.local_addr()?.port(), https.local_addr()?.port());
        let server = format!("https://{}", api.local_addr()?);
        let cluster = Cluster::new(options, git_root, git_url, ports);
        let admin = Identity { name: "kubernetes-admin".into(), groups: vec![access::MASTERS.into()] };
        cluster.tokens.grant(ADMIN_TOKEN, admin);
        let authority = certificates::authority();
        let config = kubeconfig(&server, &authority.certificate_pem, "kubernetes-admin", ADMIN_TOKEN);
        let path = dir.path().join("kubeconfig");
        std::fs::write(&path, config)?;
        runtime.block_on(async {
            argocd::start(cluster.clone(), tokio::net::TcpListener::from_std(git)?).await?;
            install::install(&cluster);
            tokio::spawn(workloads::run(cluster.clone()));
            for listener in [http, https] {
                tokio::spawn(service::serve(cluster.clone(), tokio::net::TcpListener::from_std(listener)?));
            }
            let listener = tokio::net::TcpListener::from_std(api)?;
            tokio::spawn(api::serve(cluster.clone(), listener, authority.server));
            workloads::settled(&cluster).await
        })?;
        Ok(Standin {
            cluster,
            kubeconfig: path,
            runtime: Some(runtime),
            server,
            certificate_pem: authority.certificate_pem,
            dir,
        })
    }

    /// `https://127.0.0.1:PORT`: where the API server listens.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// A kubectl that reads this cluster's kubeconfig and keeps its caches in the stand-in's own folder.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new("kubectl");
        command.env("KUBECONFIG", &self.kubeconfig).env("HOME", self.dir.path());
        command.env("KUBECACHEDIR", self.dir.path().join("cache")).stdin(Stdio::null());
        command
    }

    /// A kubeconfig for a further user, who may do nothing until Roles say so.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn kubeconfig_for(&self, user: &str) -> PathBuf {
        let token = format!("standin-{user}");
        self.cluster.tokens.grant(&token, Identity::user(user));
        let path = self.dir.path().join(format!("kubeconfig-{}", user.replace([':', '/'], "-")));
        let config = kubeconfig(&self.server, &self.certificate_pem, user, &token);
        std::fs::write(&path, config).expect("the stand-in's folder can be written");
        path
    }

    /// A kubeconfig with one context, `standin`, whose user may do everything.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Gives a user a Role of these rules (`PolicyRule` objects) in a namespace, or in all when it is empty.
    ///
    /// # Panics
    /// When `rules` is no list of objects.
    pub fn allow(&self, user: &str, namespace: &str, rules: Value) {
        assert!(rules.is_array(), "rules are a list");
        let (role, binding, kind) = if namespace.is_empty() {
            ("clusterroles", "clusterrolebindings", "ClusterRole")
        } else {
            ("roles", "rolebindings", "Role")
        };
        let store = &self.cluster.store;
        let name = format!("{}-{}", user.replace([':', '/'], "-"), *store.newest().borrow());
        let group = "rbac.authorization.k8s.io";
        let object = |kind: &str| {
            json!({
                "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name, "namespace": namespace},
            })
        };
        let mut with_rules = object(kind);
        with_rules["rules"] = rules;
        let mut bound = object(&format!("{kind}Binding"));
        bound["roleRef"] = json!({"apiGroup": group, "kind": kind, "name": name});
        bound["subjects"] = json!([{"apiGroup": group, "kind": "User", "name": user}]);
        for (plural, object) in [(role, with_rules), (binding, bound)] {
            store.create(&format!("{plural}.{group}"), object).expect("no version of the store names two Roles");
        }
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.cluster.store
    }

    /// What all parts share.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// The folder whose bare repositories are served over HTTP.
    pub fn git_root(&self) -> &Path {
        &self.cluster.git_root
    }

    /// The address at which Argo CD (and anybody) reads the bare repository `name`, such as `evt.git`.
    pub fn git_url(&self, name: &str) -> String {
        format!("{}{name}", self.cluster.git_url)
    }

    /// Waits until something is so; it is looked at again after every write, request, and start or end of a container.
    ///
    /// # Panics
    /// When it is not so within half a minute; the message says what was waited for.
    pub fn until(&self, what: &str, mut reached: impl FnMut() -> bool) {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime can be made");
        let mut newest = self.cluster.store.newest();
        let mut requests = self.cluster.requests.changes();
        let mut processes = self.cluster.processes.changes();
        let waiting = async {
            while !reached() {
                tokio::select! {
                    _ = newest.changed() => {}
                    _ = requests.changed() => {}
                    _ = processes.changed() => {}
                }
            }
        };
        let waited = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), waiting).await });
        assert!(waited.is_ok(), "waited half a minute in vain: {what}");
    }

    /// Stops everything and removes the files, without a word about unknown routes.
    pub fn stop(mut self) {
        self.end();
        self.cluster.requests.forget_unknown();
    }

    fn end(&mut self) {
        self.cluster.stopping.send_replace(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(2));
        }
    }

    /// What the API server was asked for so far.
    pub fn requests(&self) -> Vec<Request> {
        self.cluster.requests.all()
    }

    /// `METHOD /path` of what was answered 501.
    pub fn unknown_routes(&self) -> Vec<String> {
        self.cluster.requests.unknown()
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        self.end();
        let unknown = self.unknown_routes();
        if !unknown.is_empty() && !thread::panicking() {
            panic!("the stand-in was asked for what it does not know: {}", unknown.join(", "));
        }
    }
}

/// A listener on a free port of the loopback address, ready for the runtime.
fn loopback() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
