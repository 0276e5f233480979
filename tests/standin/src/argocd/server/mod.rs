//! argocd-server: one listener for each of its containers, with TLS and plain HTTP on one port, and the webhook behind
//! it (argo-cd v3.5.1 server/server.go).

mod built;
mod certificate;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::body::Body;
use futures::StreamExt;
use hyper::{Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use self::{built::Built, certificate::Tls};
use super::{
    Argo,
    log::{Level, Logger},
    settings::setting,
    version::Version,
    webhook::{self, Answer, Handler, Payload},
};
use crate::processes::Process;

/// How many payloads wait at most.
const QUEUE: usize = 50_000;

/// One container of argocd-server.
struct Server {
    handler: Arc<Handler>,
    queue: mpsc::Sender<Payload>,
    /// Replaced when the server restarts inside its process.
    built: Mutex<Arc<Built>>,
    /// `None` with `server.insecure`. A new certificate is shown without a restart.
    tls: Mutex<Option<Tls>>,
    restarting: AtomicBool,
    /// A panic that nothing catches ends the process.
    crash: Notify,
    root: String,
}

/// Runs one container of argocd-server until it is dropped.
pub async fn run(argo: Arc<Argo>, process: Process) {
    let (namespace, pod) = (process.namespace.clone(), process.pod.clone());
    let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await else { return };
    let Ok(address) = listener.local_addr() else { return };
    let _open = Open::new(argo.clone(), namespace.clone(), pod.clone(), address);
    serve(argo.clone(), &process, listener).await;
    // What Go programs end with after a panic.
    argo.cluster.processes.exit(&namespace, &pod, 2);
}

/// Serves until the process crashes.
async fn serve(argo: Arc<Argo>, process: &Process, listener: TcpListener) {
    let (queue, payloads) = mpsc::channel(QUEUE);
    let handler = Arc::new(Handler {
        argo,
        process: process.clone(),
        version: Version::of_tag(&process.version),
        logger: Logger::of(process),
        jitter: Mutex::default(),
    });
    let (built, tls) = (Mutex::new(Arc::new(built::build(&handler))), Mutex::new(certificate::read(&handler)));
    let root = setting(process, "rootpath", "ARGOCD_SERVER_ROOTPATH").unwrap_or_default();
    let root = if root.trim_matches('/').is_empty() { String::new() } else { format!("/{}", root.trim_matches('/')) };
    let server =
        Arc::new(Server { handler, queue, built, tls, restarting: AtomicBool::new(false), crash: Notify::new(), root });
    server.announce();
    let mut tasks = JoinSet::new();
    tasks.spawn(server.clone().work(payloads));
    tasks.spawn(server.clone().follow_settings());
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                while tasks.try_join_next().is_some() {}
                let Ok((connection, _)) = accepted else { return };
                tasks.spawn(server.clone().connection(connection));
            }
            () = server.crash.notified() => return,
        }
    }
}

/// Tells the Service where a server listens for as long as it does.
struct Open {
    argo: Arc<Argo>,
    namespace: String,
    pod: String,
}

impl Open {
    fn new(argo: Arc<Argo>, namespace: String, pod: String, address: SocketAddr) -> Open {
        argo.cluster.endpoints.open(&namespace, &pod, address);
        Open { argo, namespace, pod }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.argo.cluster.endpoints.close(&self.namespace, &self.pod);
    }
}

impl Server {
    fn built(&self) -> Arc<Built> {
        self.built.lock().expect("no thread panics while it holds the settings").clone()
    }

    fn tls(&self) -> Option<Arc<ServerConfig>> {
        let tls = self.tls.lock().expect("no thread panics while it holds the certificate");
        tls.as_ref().map(|tls| tls.config.clone())
    }

    fn announce(&self) {
        let Handler { process, logger, .. } = &*self.handler;
        let message = format!(
            "argocd {}+standin serving on port 8080 (url: , tls: {}, namespace: {}, sso: false)",
            process.version,
            self.tls().is_some(),
            process.namespace
        );
        logger.info(&message, &[]);
    }

    /// Takes payloads from the queue.
    async fn work(self: Arc<Self>, mut payloads: mpsc::Receiver<Payload>) {
        let (version, logger) = (self.handler.version, &self.handler.logger);
        let recovers = version.since(&[(2, 14, 21), (3, 0, 20), (3, 1, 9), (3, 2, 0)]);
        while let Some(payload) = payloads.recv().await {
            let delay = self.handler.argo.cluster.faults.argo.event_delay();
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            if webhook::handle(&self.handler, payload) {
                continue;
            }
            let reason = "runtime error: invalid memory address or nil pointer dereference";
            if recovers {
                let message = format!("panic while processing api-server webhook event: {reason}");
                logger.print(Level::Error, &message, &[("component", json!("api-server-webhook"))]);
            } else {
                self.handler.process.print(format!("panic: {reason}"));
                self.crash.notify_one();
            }
        }
    }

    /// One connection; the first byte tells TLS from HTTP.
    async fn connection(self: Arc<Self>, connection: TcpStream) {
        let mut first = [0];
        let drops = self.handler.argo.cluster.faults.argo.drops_a_connection();
        if drops || self.restarting.load(Ordering::SeqCst) || connection.peek(&mut first).await.is_err() {
            return;
        }
        match (self.tls(), first[0] == 0x16) {
            (Some(config), true) => {
                if let Ok(connection) = TlsAcceptor::from(config).accept(connection).await {
                    self.http(connection, false).await;
                }
            }
            (Some(_), false) => self.http(connection, true).await,
            (None, false) => self.http(connection, false).await,
            // TLS to a server that has none: nothing that it understands.
            (None, true) => {}
        }
    }

    async fn http(self: Arc<Self>, connection: impl AsyncRead + AsyncWrite + Unpin, redirects: bool) {
        let service = service_fn(|request| {
            let server = self.clone();
            async move { if redirects { Ok(redirect(&request)) } else { server.answer(request).await } }
        });
        // Whether the client stays to the end is its own affair.
        let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
    }

    /// An error ends the connection without an answer.
    async fn answer(&self, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let Some(path) = request.uri().path().strip_prefix(self.root.as_str()) else {
            return Ok(text(StatusCode::NOT_FOUND, "404 page not found\n"));
        };
        match path {
            "/api/webhook" => self.webhook(request).await,
            "/healthz" => Ok(text(StatusCode::OK, "ok")),
            "/api/version" => {
                let version = json!({"Version": format!("{}+standin", self.handler.process.version)});
                Ok(json_answer(StatusCode::OK, &version))
            }
            path if path.starts_with("/api/") => {
                Ok(json_answer(StatusCode::NOT_FOUND, &json!({"code": 5, "message": "Not Found", "details": []})))
            }
            _ => Ok(text(StatusCode::NOT_FOUND, "404 page not found\n")),
        }
    }

    async fn webhook(&self, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let (built, version) = (self.built(), self.handler.version);
        if self.handler.argo.cluster.faults.argo.webhook_is_unavailable() {
            return Ok(self.queue_is_full());
        }
        let (head, body) = request.into_parts();
        let limit = usize::try_from(built.limit_mb * 1024 * 1024).unwrap_or(usize::MAX);
        let limit = if webhook::limits_size(version) { limit } else { usize::MAX };
        let body = read(Body::new(body), limit).await?;
        let request = webhook::Request { method: &head.method, headers: &head.headers, body: body.as_deref() };
        match webhook::answer(&request, &built.secrets, version, built.limit_mb) {
            Answer::HangUp => Err(io::ErrorKind::ConnectionAborted.into()),
            Answer::Accepted(None) => Ok(text(StatusCode::OK, "")),
            Answer::Accepted(Some(payload)) if !version.at_least(2, 13) => {
                let survived = webhook::handle(&self.handler, payload);
                survived.then(|| text(StatusCode::OK, "")).ok_or_else(|| io::ErrorKind::ConnectionAborted.into())
            }
            Answer::Accepted(Some(payload)) => match self.queue.try_send(payload) {
                Ok(()) => Ok(text(StatusCode::OK, "")),
                Err(_) => Ok(self.queue_is_full()),
            },
            Answer::Refused(status, body, lines) => {
                for (level, line, security) in lines {
                    let fields = [("security", json!(3))];
                    self.handler.logger.print(level, &line, if security { &fields } else { &[] });
                }
                Ok(text(status, &format!("{body}\n")))
            }
        }
    }

    fn queue_is_full(&self) -> Response<Body> {
        let message = "Queue is full, discarding webhook payload";
        self.handler.logger.info(message, &[]);
        text(StatusCode::SERVICE_UNAVAILABLE, &format!("{message}\n"))
    }
}

/// The whole body; `None` when it is longer than `limit`. What is over the limit is read and dropped.
async fn read(body: Body, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut all = Vec::new();
    let mut too_long = false;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(io::Error::other)?;
        too_long |= all.len() + chunk.len() > limit;
        if !too_long {
            all.extend_from_slice(&chunk);
        }
    }
    Ok((!too_long).then_some(all))
}

/// Plain HTTP where TLS is on.
fn redirect(request: &Request<Incoming>) -> Response<Body> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let mut response = text(StatusCode::TEMPORARY_REDIRECT, "");
    if let Ok(location) = format!("https://{host}{path}").parse() {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn text(status: StatusCode, body: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_owned()));
    *response.status_mut() = status;
    if !body.is_empty() {
        let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        let nosniff = header::HeaderValue::from_static("nosniff");
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    }
    response
}

fn json_answer(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
