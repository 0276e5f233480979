//! Chooses the way to argocd-server.

use std::time::Duration;

use kit::{cluster::Cluster, error::Error, talk::Talk};
use rustls::ClientConfig;

use crate::{
    args::{Send, Via},
    provider::Provider,
    route::{Direct, PodPort, Route},
    server::Server,
    trust::Trust,
};

/// How long the cluster IP may take to answer before `auto` goes another way: from outside a cluster it mostly leads
/// nowhere.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the cluster may take to tell the certificate that an address of the user's might show.
const LOOKUP: Duration = Duration::from_secs(2);

/// The way that the flags name, or the best there is.
///
/// # Errors
/// When the way does not exist or cannot carry the event, and when its certificate cannot be found out.
pub async fn choose(args: &Send, cluster: &Cluster, server: &Server, talk: &Talk) -> Result<Route, Error> {
    let azure = args.event.provider == Provider::Azuredevops && args.sign;
    match args.via {
        Via::ClusterIp => Ok(Route::Direct(cluster_ip(args, cluster, server).await?)),
        Via::ServiceProxy if azure => Err(Error::usage(
            "bad-way",
            "the API server's proxy removes the Authorization header, which carries the key of azuredevops",
        )
        .hint("use --via port-forward")),
        Via::ServiceProxy => Ok(service_proxy(cluster, server)),
        Via::PortForward => port_forward(args, cluster, server).await,
        Via::Auto if azure => port_forward(args, cluster, server).await,
        Via::Auto if server.tls => {
            let direct = match cluster_ip(args, cluster, server).await {
                Ok(direct) => direct,
                Err(error) => {
                    talk.detail(format!("not by cluster IP: {error}"));
                    return Ok(service_proxy(cluster, server));
                }
            };
            if direct.answers(PATIENCE).await {
                return Ok(Route::Direct(direct));
            }
            talk.detail(format!("{} does not answer within {PATIENCE:?}", direct.url));
            Ok(service_proxy(cluster, server))
        }
        // Outside the cluster its IP may be anybody's, and without TLS nobody proves who answers.
        Via::Auto => Ok(service_proxy(cluster, server)),
    }
}

/// The way to one pod.
pub fn to_pod(cluster: &Cluster, server: &Server, pod: &str, tls: Option<ClientConfig>) -> Route {
    Route::PortForward(Box::new(PodPort {
        cluster: cluster.clone(),
        pod: pod.to_owned(),
        port: server.target_port,
        path: server.path.clone(),
        tls,
    }))
}

/// The ways to all pods that are ready.
///
/// # Errors
/// When there is none, and when the certificate cannot be found out.
pub async fn to_all_pods(args: &Send, cluster: &Cluster, server: &Server) -> Result<Vec<Route>, Error> {
    if server.pods.is_empty() {
        return Err(no_pod(cluster));
    }
    let tls = tls(TrustArgs::of(args), cluster, server).await?;
    Ok(server.pods.iter().map(|pod| to_pod(cluster, server, pod, tls.clone())).collect())
}

/// How to speak TLS with the server of a cluster; `None` where it speaks plain HTTP.
///
/// # Errors
/// When its certificate cannot be found out.
pub async fn tls(trust: TrustArgs<'_>, cluster: &Cluster, server: &Server) -> Result<Option<ClientConfig>, Error> {
    if server.tls { Ok(Some(trust.of_cluster(cluster).await?.config()?)) } else { Ok(None) }
}

/// The flags that change which certificates are trusted.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrustArgs<'a> {
    /// `--ca-file`.
    pub ca_file: Option<&'a std::path::Path>,
    /// `--insecure-skip-tls-verify`.
    pub skip: bool,
}

impl<'a> TrustArgs<'a> {
    /// Those of a delivery.
    pub fn of(args: &'a Send) -> Self {
        TrustArgs { ca_file: args.ca_file.as_deref(), skip: args.insecure_skip_tls_verify }
    }

    /// What to trust when speaking to the server of a cluster.
    ///
    /// # Errors
    /// When neither the cluster nor a file has a certificate.
    pub async fn of_cluster(self, cluster: &Cluster) -> Result<Trust, Error> {
        match (self.skip, self.ca_file) {
            (true, _) => Ok(Trust::anything()),
            (false, None) => Trust::of_cluster(cluster).await,
            (false, Some(file)) => Trust::of_cluster(cluster).await.unwrap_or_default().and_file(file),
        }
    }

    /// What to trust at an address that the user gave: what the system trusts, and the cluster's own certificate, for
    /// an ingress that passes TLS through.
    ///
    /// # Errors
    /// When the file has no certificate.
    pub async fn of_url(self, cluster: Option<&Cluster>) -> Result<Trust, Error> {
        if self.skip {
            return Ok(Trust::anything());
        }
        if let Some(file) = self.ca_file {
            return Trust::default().with_system().and_file(file);
        }
        // The cluster may be out of reach, which is no reason not to send to another address.
        let own = match cluster {
            Some(cluster) => tokio::time::timeout(LOOKUP, Trust::of_cluster(cluster)).await,
            None => return Ok(Trust::default().with_system()),
        };
        Ok(own.ok().and_then(Result::ok).unwrap_or_default().with_system())
    }
}

fn service_proxy(cluster: &Cluster, server: &Server) -> Route {
    let scheme = if server.tls { "https" } else { "http" };
    let (service, port) = (&server.service, server.port);
    let path =
        format!("/api/v1/namespaces/{}/services/{scheme}:{service}:{port}/proxy{}", cluster.namespace, server.path);
    Route::ServiceProxy { cluster: cluster.clone(), path }
}

async fn cluster_ip(args: &Send, cluster: &Cluster, server: &Server) -> Result<Direct, Error> {
    let Some(ip) = server.cluster_ip else {
        return Err(Error::usage("bad-way", format!("the Service {} has no cluster IP", server.service))
            .hint("use --via service-proxy"));
    };
    let tls = tls(TrustArgs::of(args), cluster, server).await?;
    let host = format!("{}.{}.svc", server.service, cluster.namespace);
    Direct::to_cluster_ip(&host, ip, server.port, &server.path, tls)
}

async fn port_forward(args: &Send, cluster: &Cluster, server: &Server) -> Result<Route, Error> {
    let Some(pod) = server.pods.first() else { return Err(no_pod(cluster)) };
    let tls = tls(TrustArgs::of(args), cluster, server).await?;
    Ok(to_pod(cluster, server, pod, tls))
}

fn no_pod(cluster: &Cluster) -> Error {
    Error::unknown("no-pod", format!("no pod of argocd-server is ready in namespace {}", cluster.namespace))
        .hint("port-forward needs the verb `list` on `pods`, and a pod that is ready")
}
