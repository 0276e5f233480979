//! HTTP to an address.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use kit::{
    cluster::{Cluster, use_ring},
    error::{Error, causes},
};
use rustls::ClientConfig;

use super::{Answer, Attempt, LONGEST_ANSWER, Trouble, text, timed};

/// An address and the client that posts to it.
pub struct Direct {
    /// The name of the way.
    pub name: &'static str,
    /// The address.
    pub url: String,
    client: reqwest::Client,
    /// Where its host is, when no name service is asked.
    at: Option<SocketAddr>,
}

impl Direct {
    /// To an address that the user gave, by way of the proxies that the environment names.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn to_url(url: &str, tls: ClientConfig) -> Result<Self, Error> {
        Direct::new("url", url.to_owned(), Some(tls), None)
    }

    /// To the cluster IP of the Service, under its name in the cluster and past any proxy.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn to_cluster_ip(
        host: &str,
        ip: IpAddr,
        port: u16,
        path: &str,
        tls: Option<ClientConfig>,
    ) -> Result<Self, Error> {
        let (scheme, usual) = if tls.is_some() { ("https", 443) } else { ("http", 80) };
        let authority = if port == usual { host.to_owned() } else { format!("{host}:{port}") };
        let url = format!("{scheme}://{authority}{path}");
        Direct::new("cluster-ip", url, tls, Some((host, SocketAddr::new(ip, port))))
    }

    /// To the local end of a port-forward.
    pub(super) fn to_forward(
        cluster: &Cluster,
        local: SocketAddr,
        path: &str,
        tls: Option<ClientConfig>,
    ) -> Result<Self, Error> {
        let host = format!("argocd-server.{}.svc", cluster.namespace);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{host}:{}{path}", local.port());
        Direct::new("port-forward", url, tls, Some((&host, local)))
    }

    fn new(
        name: &'static str,
        url: String,
        tls: Option<ClientConfig>,
        at: Option<(&str, SocketAddr)>,
    ) -> Result<Self, Error> {
        use_ring();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("kubectl-argo-webhook/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none());
        if let Some(tls) = tls {
            builder = builder.tls_backend_preconfigured(tls);
        }
        if let Some((host, address)) = at {
            builder = builder.no_proxy().resolve(host, address);
        }
        let client = builder
            .build()
            .map_err(|error| Error::usage("bad-url", format!("cannot send to {url}: {}", causes(&error))))?;
        Ok(Direct { name, url, client, at: at.map(|(_, address)| address) })
    }

    /// `host:port:address`, as curl's `--resolve` takes it; `None` for an address that the user gave.
    pub fn resolved(&self) -> Option<String> {
        let address = self.at?;
        let host = reqwest::Url::parse(&self.url).ok()?.host_str()?.to_owned();
        Some(format!("{host}:{}:{}", address.port(), address.ip()))
    }

    /// Whether anything answers HTTP there within `limit`.
    pub async fn answers(&self, limit: Duration) -> bool {
        let healthz = self.url.replace("/api/webhook", "/healthz");
        self.client.get(healthz).timeout(limit).send().await.is_ok()
    }

    pub(super) async fn post(&self, headers: &HeaderMap, body: &Bytes, limit: Duration) -> Attempt {
        let request = self.client.post(&self.url).headers(headers.clone()).body(body.clone()).timeout(limit);
        timed(async {
            let mut response = request.send().await.map_err(|error| trouble(&error, limit))?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let mut body = Vec::new();
            while body.len() < LONGEST_ANSWER {
                match response.chunk().await.map_err(|error| trouble(&error, limit))? {
                    Some(chunk) => body.extend_from_slice(&chunk),
                    None => break,
                }
            }
            Ok(Answer { status, headers, body: text(&body) })
        })
        .await
    }
}

fn trouble(error: &reqwest::Error, limit: Duration) -> Trouble {
    if error.is_builder() {
        return Trouble::Fatal(
            Error::usage("bad-url", format!("cannot send: {}", causes(error)))
                .hint("--url is an address such as https://argocd.example.com/api/webhook"),
        );
    }
    let text = innermost(error);
    if is_tls(error) {
        Trouble::Tls(text)
    } else if error.is_connect() {
        Trouble::NotConnected(text)
    } else if error.is_timeout() {
        Trouble::TimedOut(limit)
    } else {
        Trouble::Dropped(text)
    }
}

/// The outer errors name the address again and the step that failed; what happened is in the innermost.
fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.is::<rustls::Error>() {
            return true;
        }
        let io = cause.downcast_ref::<std::io::Error>();
        if io.and_then(std::io::Error::get_ref).is_some_and(|inner| is_tls(inner)) {
            return true;
        }
        next = cause.source();
    }
    false
}
