//! The Git server: `git http-backend` over a folder of bare repositories, for fetches and pushes.

use std::{
    io,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
};

use axum::body::{Body, Bytes};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures::StreamExt;
use hyper::{
    HeaderMap, Request, Response, StatusCode, body::Incoming, header::AUTHORIZATION, server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    process::{ChildStdin, ChildStdout, Command},
};

/// The path below which the repositories are served.
const PREFIX: &str = "/cgi-bin/git";

/// What the Git server does instead of answering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitFault {
    /// 401 unless the request carries this user and password.
    Password(String, String),
    /// 500.
    ServerError,
    /// The connection ends without an answer.
    HangUp,
}

/// What the Git server was asked, and how it misbehaves.
#[derive(Default)]
pub struct GitServer {
    fault: Mutex<Option<GitFault>>,
    requests: Mutex<Vec<String>>,
}

impl GitServer {
    /// From now on misbehave like this; `None` ends it.
    pub fn fail(&self, fault: Option<GitFault>) {
        *self.fault.lock().expect("no thread panics while it holds the fault") = fault;
    }

    /// `GET /cgi-bin/git/evt.git/info/refs?service=git-upload-pack`, and so on, in the order of arrival.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no thread panics while it holds the requests").clone()
    }

    /// Serves the repositories below `root` until the runtime ends.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, root: PathBuf) {
        while let Ok((connection, _)) = listener.accept().await {
            let (server, root) = (self.clone(), root.clone());
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let (server, root) = (server.clone(), root.clone());
                    async move { server.answer(request, root).await }
                });
                // A client that goes away is no concern of the server.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
            });
        }
    }

    /// An error ends the connection without an answer.
    async fn answer(&self, request: Request<Incoming>, root: PathBuf) -> io::Result<Response<Body>> {
        let line = format!("{} {}", request.method(), request.uri());
        self.requests.lock().expect("no thread panics while it holds the requests").push(line);
        let fault = self.fault.lock().expect("no thread panics while it holds the fault").clone();
        match fault {
            Some(GitFault::HangUp) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Some(GitFault::ServerError) => return Ok(plain(StatusCode::INTERNAL_SERVER_ERROR)),
            Some(GitFault::Password(user, password)) if !authorized(request.headers(), &user, &password) => {
                let mut refusal = plain(StatusCode::UNAUTHORIZED);
                refusal.headers_mut().insert("www-authenticate", "Basic realm=\"git\"".parse().expect("is ASCII"));
                return Ok(refusal);
            }
            _ => {}
        }
        let Some(path) = request.uri().path().strip_prefix(PREFIX).filter(|path| path.starts_with('/')) else {
            return Ok(plain(StatusCode::NOT_FOUND));
        };
        let path = path.to_owned();
        backend(request, &path, root).await.or_else(|_| Ok(plain(StatusCode::BAD_GATEWAY)))
    }
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{status}\n")));
    *response.status_mut() = status;
    response
}

fn authorized(headers: &HeaderMap, user: &str, password: &str) -> bool {
    let wanted = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    headers.get(AUTHORIZATION).is_some_and(|sent| sent.as_bytes() == wanted.as_bytes())
}

/// Hands one request to `git http-backend` (git's `Documentation/git-http-backend.txt` names the variables).
async fn backend(request: Request<Incoming>, path: &str, root: PathBuf) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_COUNT", "2")
        .env("GIT_CONFIG_KEY_0", "http.receivepack")
        .env("GIT_CONFIG_VALUE_0", "true")
        // The folder may belong to another user than the one that runs the stand-in.
        .env("GIT_CONFIG_KEY_1", "safe.directory")
        .env("GIT_CONFIG_VALUE_1", "*")
        .env("REQUEST_METHOD", head.method.as_str())
        .env("PATH_INFO", path)
        .env("QUERY_STRING", head.uri.query().unwrap_or_default())
        .env("REMOTE_ADDR", "127.0.0.1")
        .env_remove("GIT_DIR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    for (variable, name) in [
        ("CONTENT_TYPE", "content-type"),
        ("CONTENT_LENGTH", "content-length"),
        ("HTTP_CONTENT_ENCODING", "content-encoding"),
        ("GIT_PROTOCOL", "git-protocol"),
    ] {
        command.env_remove(variable);
        if let Some(value) = header(name) {
            command.env(variable, value);
        }
    }
    let mut child = command.spawn()?;
    let stdin = child.stdin.take().expect("stdin is piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    tokio::spawn(feed(stdin, Body::new(body)));
    let mut response = cgi_head(&mut stdout).await?;
    *response.body_mut() = Body::from_stream(futures::stream::unfold(Some((child, stdout)), |state| async {
        let (child, mut stdout) = state?;
        let mut chunk = vec![0; 32 * 1024];
        match stdout.read(&mut chunk).await {
            Ok(0) => None,
            Ok(read) => {
                chunk.truncate(read);
                Some((Ok(Bytes::from(chunk)), Some((child, stdout))))
            }
            Err(error) => Some((Err(error), None)),
        }
    }));
    Ok(response)
}

/// A backend that has read enough closes its end; what is left of the body is dropped.
async fn feed(mut stdin: ChildStdin, body: Body) {
    let mut chunks = body.into_data_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        if stdin.write_all(&chunk).await.is_err() {
            return;
        }
    }
}

async fn cgi_head(stdout: &mut BufReader<ChildStdout>) -> io::Result<Response<Body>> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("git http-backend: {what}"));
    let mut response = Response::new(Body::empty());
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).await? == 0 {
            return Err(bad("no header"));
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(response);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad(line))?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().unwrap_or_default();
            *response.status_mut() = code.parse().map_err(|_| bad(line))?;
        } else {
            let name: hyper::header::HeaderName = name.parse().map_err(|_| bad(line))?;
            response.headers_mut().append(name, value.parse().map_err(|_| bad(line))?);
        }
    }
}
