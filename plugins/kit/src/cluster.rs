//! The cluster: kubectl's flags, the client, and errors that name what was asked of it.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
    config::{KubeConfigOptions, Kubeconfig},
};
use tower::util::MapRequestLayer;

use crate::{
    duration,
    error::{Error, causes},
    exit::Exit,
    talk::Talk,
};

/// Where Argo CD is installed unless `-n` says otherwise.
pub const DEFAULT_NAMESPACE: &str = "argocd";

/// What `--help` and the man page of a plugin say after its examples: environment and files.
pub fn surroundings() -> String {
    format!(
        "\
Environment:
  KUBECONFIG  kubeconfig files, separated by colons, unless --kubeconfig names one
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY
              the proxy to the API server, where the kubeconfig names none
{}

Files:
  ~/.kube/config
              the kubeconfig, unless --kubeconfig or KUBECONFIG names another
  /var/run/secrets/kubernetes.io/serviceaccount
              the pod's own identity, used where there is no kubeconfig",
        crate::talk::ENVIRONMENT
    )
}

/// kubectl's flags. kubectl takes none before a plugin's name, so every plugin takes its own.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Kubeconfig file to use instead of $KUBECONFIG and ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Cluster of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,

    /// User of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// Namespace that Argo CD is installed in
    #[arg(short, long, value_name = "NAME", default_value = DEFAULT_NAMESPACE)]
    pub namespace: String,

    /// User to impersonate
    #[arg(long = "as", value_name = "USER")]
    pub as_user: Option<String>,

    /// Group to impersonate; may be repeated
    #[arg(long, value_name = "GROUP", requires = "as_user")]
    pub as_group: Vec<String>,

    /// Time that one request may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub request_timeout: Duration,
}

/// Makes ring the process's cryptography for TLS; calling it again does no harm. Two crates may each bring a provider,
/// and rustls panics when it has to guess.
pub fn use_ring() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

impl ClusterArgs {
    /// Makes a client from the kubeconfig, or from the service account when there is none. Sends no request.
    ///
    /// # Errors
    /// When no configuration is found or it cannot be used; exit code 2.
    pub async fn connect(&self, talk: &Talk) -> Result<Cluster, Error> {
        self.client(talk, true).await
    }

    /// As [`ClusterArgs::connect`], for a command with a back-off of its own: without this, what is answered 429, 503
    /// or 504 is asked again up to 15 times for each call.
    ///
    /// # Errors
    /// As [`ClusterArgs::connect`].
    pub async fn connect_without_retries(&self, talk: &Talk) -> Result<Cluster, Error> {
        self.client(talk, false).await
    }

    async fn client(&self, talk: &Talk, retry: bool) -> Result<Cluster, Error> {
        use_ring();
        let (mut config, context) = self.config().await?;
        config.connect_timeout = Some(self.limit());
        config.default_retry = retry;
        if let Some(user) = &self.as_user {
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups = Some(self.as_group.clone());
        }
        let url = config.cluster_url.to_string();
        let voice = talk.clone();
        let show = move |request: http::Request<Body>| {
            voice.detail(format!("{} {}", request.method(), request.uri()));
            request
        };
        let client = ClientBuilder::try_from(config)
            .map_err(|error| unusable(&context, &error))?
            .with_layer(&MapRequestLayer::new(show))
            .build();
        Ok(Cluster { client, context, url, namespace: self.namespace.clone(), limit: self.limit() })
    }

    /// As for kubectl, no time at all means no limit.
    fn limit(&self) -> Duration {
        if self.request_timeout.is_zero() { Duration::from_secs(365 * 86_400) } else { self.request_timeout }
    }

    async fn config(&self) -> Result<(Config, String), Error> {
        let options =
            KubeConfigOptions { context: self.context.clone(), cluster: self.cluster.clone(), user: self.user.clone() };
        let Some(kubeconfig) = self.kubeconfig()? else {
            let config = Config::incluster().map_err(|_| {
                Error::usage("no-kubeconfig", "no kubeconfig found, and this is not a pod with a service account")
                    .hint("set KUBECONFIG, or pass --kubeconfig FILE")
            })?;
            return Ok((config, "in-cluster".into()));
        };
        let context = options.context.clone().or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
            Error::usage("bad-kubeconfig", format!("cannot use context `{context}` of the kubeconfig: {error}"))
                .hint("`kubectl config get-contexts` lists the contexts")
        })?;
        Ok((config, context))
    }

    /// The kubeconfig that kubectl would use: the flag's file, else those of $KUBECONFIG that exist, else that of the
    /// home folder.
    pub(crate) fn kubeconfig(&self) -> Result<Option<Kubeconfig>, Error> {
        let read = |path: &PathBuf| {
            Kubeconfig::read_from(path).map_err(|error| {
                Error::usage("bad-kubeconfig", format!("cannot read the kubeconfig {}: {error}", path.display()))
            })
        };
        if let Some(path) = &self.kubeconfig {
            return read(path).map(Some);
        }
        let paths = match std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
            Some(paths) => std::env::split_paths(&paths).collect(),
            None => std::env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect::<Vec<_>>(),
        };
        let mut merged = None;
        for path in paths.iter().filter(|path| path.is_file()) {
            let next = read(path)?;
            merged = Some(match merged {
                None => next,
                Some(first) => Kubeconfig::merge(first, next).map_err(|error| {
                    Error::usage("bad-kubeconfig", format!("cannot merge {} into $KUBECONFIG: {error}", path.display()))
                })?,
            });
        }
        Ok(merged)
    }
}

/// A cluster to talk to.
#[derive(Clone)]
pub struct Cluster {
    /// The client; calls go through [`Cluster::call`], watches through their own limits.
    pub client: Client,
    /// The context's name, for messages.
    pub context: String,
    /// The API server's URL, for messages.
    pub url: String,
    /// The namespace that Argo CD is installed in.
    pub namespace: String,
    /// The time that one request may take.
    pub limit: Duration,
}

/// What is asked of the API server, in the words of RBAC, for errors.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// `get`, `list`, `watch`, `create`, `patch`, `delete`.
    pub verb: &'a str,
    /// `applications.argoproj.io`, `pods/log`.
    pub resource: &'a str,
    /// Empty for all namespaces.
    pub namespace: &'a str,
    /// Empty for a whole list.
    pub name: &'a str,
}

/// A call that did not succeed.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The HTTP status, when the API server answered.
    pub status: Option<u16>,
    /// What to tell the user.
    pub error: Error,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        refused.error
    }
}

impl Cluster {
    /// Makes one call, within the time that a request may take.
    ///
    /// # Errors
    /// Names the verb, the object and the context: exit code 4 for 401 and 403, 2 for what was not found or not
    /// accepted, 3 for everything else.
    pub async fn call<T>(
        &self,
        ask: Ask<'_>,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Refused> {
        match tokio::time::timeout(self.limit, call).await {
            Ok(result) => result.map_err(|error| self.refused(ask, &error)),
            Err(_) => {
                let error = Error::unknown("timeout", format!("{}: no answer within {:?}", self.what(ask), self.limit))
                    .hint(format!("is {} reachable? --request-timeout sets the limit", self.url));
                Err(Refused { status: None, error })
            }
        }
    }

    /// As [`Cluster::call`], but nothing found is `None`.
    ///
    /// # Errors
    /// As [`Cluster::call`].
    pub async fn find<T>(
        &self,
        ask: Ask<'_>,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<Option<T>, Refused> {
        match self.call(ask, call).await {
            Ok(found) => Ok(Some(found)),
            Err(Refused { status: Some(404), .. }) => Ok(None),
            Err(refused) => Err(refused),
        }
    }

    /// What an error of the client means to the user.
    pub fn refused(&self, ask: Ask<'_>, error: &kube::Error) -> Refused {
        let what = self.what(ask);
        let kube::Error::Api(status) = error else {
            return Refused { status: None, error: self.unreachable(&what, error) };
        };
        let message = format!("{what}: {}", if status.message.is_empty() { &status.reason } else { &status.message });
        let Ask { verb, resource, namespace, .. } = ask;
        let error = match status.code {
            401 => {
                Error::new(Exit::Denied, "unauthorized", format!("{what}: the API server does not know who you are"))
                    .hint(format!("log in again, or check the user of context {}", self.context))
            }
            403 => Error::new(Exit::Denied, "forbidden", message).hint(format!(
                "needs the verb `{verb}` on `{resource}`{}: `kubectl auth can-i {verb} {resource}{}`",
                if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") },
                if namespace.is_empty() { " -A".into() } else { format!(" -n {namespace}") },
            )),
            404 => Error::usage("not-found", message).hint(format!(
                "check the name, the namespace (-n, now {}) and the context (now {})",
                self.namespace, self.context
            )),
            400 | 405 | 413 | 422 => Error::usage("not-accepted", message),
            409 => {
                Error::unknown("conflict", message).hint("somebody else changed it meanwhile; run the command again")
            }
            _ => Error::unknown("api-server", message),
        };
        Refused { status: Some(status.code), error }
    }

    fn unreachable(&self, what: &str, error: &kube::Error) -> Error {
        if let kube::Error::Auth(auth) = error {
            return credentials(what, auth);
        }
        if let kube::Error::Service(inner) = error
            && let Some(auth) = inner.downcast_ref::<kube::client::AuthError>()
        {
            return credentials(what, auth);
        }
        Error::unknown("unreachable", format!("{what}: {}", causes(error))).hint(format!(
            "is {} reachable? `kubectl --context {} version` asks the same server",
            self.url, self.context
        ))
    }

    fn what(&self, ask: Ask<'_>) -> String {
        let place = match (ask.namespace, ask.name) {
            ("", "") => String::new(),
            ("", name) => format!(" {name}"),
            (namespace, "") => format!(" in namespace {namespace}"),
            (namespace, name) => format!(" {namespace}/{name}"),
        };
        format!("cannot {} {}{place} (context {})", ask.verb, ask.resource, self.context)
    }
}

/// A credential plugin's own words say more than its exit status.
fn credentials(what: &str, error: &kube::client::AuthError) -> Error {
    let cause = match error {
        kube::client::AuthError::AuthExecRun { cmd, out } => {
            let stderr = String::from_utf8_lossy(&out.stderr);
            format!("the credential plugin `{cmd}` failed ({}): {}", out.status, stderr.trim())
        }
        other => causes(other),
    };
    Error::new(Exit::Denied, "credentials", format!("{what}: {cause}"))
        .hint("`kubectl get --raw /version` uses the same credentials")
}

fn unusable(context: &str, error: &kube::Error) -> Error {
    match error {
        kube::Error::Auth(auth) => credentials(&format!("cannot log in to context {context}"), auth),
        other => Error::usage("bad-kubeconfig", format!("cannot use context `{context}`: {}", causes(other))),
    }
}
