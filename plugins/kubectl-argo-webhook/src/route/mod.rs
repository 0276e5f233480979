//! The ways to argocd-server, and one attempt to post an event on one of them.

mod direct;
mod port_forward;
mod service_proxy;

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use kit::{cluster::Cluster, error::Error, moment::Moment};
use rustls::ClientConfig;

pub use direct::Direct;

/// The longest answer that is kept; Argo CD's are one line.
const LONGEST_ANSWER: usize = 64 * 1024;

/// A way to argocd-server.
pub enum Route {
    /// To an address: the cluster IP, or what `--url` names.
    Direct(Direct),
    /// Through the API server: `POST …/services/<scheme>:<name>:<port>/proxy<path>`.
    ServiceProxy {
        /// The cluster.
        cluster: Cluster,
        /// The path below the API server.
        path: String,
    },
    /// Through the API server to a port of one pod.
    PortForward(Box<PodPort>),
}

/// A port of a pod.
pub struct PodPort {
    /// The cluster.
    pub cluster: Cluster,
    /// The pod.
    pub pod: String,
    /// Its port.
    pub port: u16,
    /// The path of the endpoint.
    pub path: String,
    /// How to speak TLS; `None` for plain HTTP.
    pub tls: Option<ClientConfig>,
}

/// What came of one attempt.
pub struct Attempt {
    /// The moment before the first byte of the request.
    pub sent: Moment,
    /// From then to the end of the answer.
    pub took: Duration,
    /// The answer, or why there is none.
    pub result: Result<Answer, Trouble>,
}

/// An answer of whatever listens there.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The start of the body.
    pub body: String,
}

impl Answer {
    /// The text of a header.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Trouble {
    /// No connection was made, so nothing was sent.
    NotConnected(String),
    /// The connection ended before an answer came.
    Dropped(String),
    /// No answer in time.
    TimedOut(Duration),
    /// The certificate, or TLS itself.
    Tls(String),
    /// Trying again cannot help.
    Fatal(Error),
}

impl Route {
    /// The name of the way, as `--via` takes it; `url` for an address that the user gave.
    pub fn name(&self) -> &'static str {
        match self {
            Route::Direct(direct) => direct.name,
            Route::ServiceProxy { .. } => "service-proxy",
            Route::PortForward(_) => "port-forward",
        }
    }

    /// The address that the event goes to.
    pub fn url(&self) -> String {
        match self {
            Route::Direct(direct) => direct.url.clone(),
            Route::ServiceProxy { cluster, path } => format!("{}{path}", cluster.url.trim_end_matches('/')),
            Route::PortForward(to) => {
                let scheme = if to.tls.is_some() { "https" } else { "http" };
                format!("{scheme}://{}.{}:{}{}", to.pod, to.cluster.namespace, to.port, to.path)
            }
        }
    }

    /// Posts a body once.
    pub async fn post(&self, headers: &HeaderMap, body: &Bytes, limit: Duration) -> Attempt {
        match self {
            Route::Direct(direct) => direct.post(headers, body, limit).await,
            Route::ServiceProxy { cluster, path } => {
                timed(service_proxy::post(cluster, path, headers, body, limit)).await
            }
            Route::PortForward(to) => match port_forward::open(to).await {
                Ok(direct) => direct.post(headers, body, limit).await,
                Err(trouble) => Attempt::failed(trouble),
            },
        }
    }
}

impl Attempt {
    /// Whole milliseconds that it took.
    pub fn took_ms(&self) -> u64 {
        u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX)
    }

    fn failed(trouble: Trouble) -> Self {
        Attempt { sent: Moment::now(), took: Duration::ZERO, result: Err(trouble) }
    }
}

async fn timed(post: impl Future<Output = Result<Answer, Trouble>>) -> Attempt {
    let (sent, clock) = (Moment::now(), Instant::now());
    let result = post.await;
    Attempt { sent, took: clock.elapsed(), result }
}

/// As much of a body as is kept, as text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_ANSWER)]).into_owned()
}
