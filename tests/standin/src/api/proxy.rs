//! `services/proxy`: a request passed on to a pod of a Service.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderName, HeaderValue, Uri, header},
    response::Response,
};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::{Call, resources::by_key, status::Status};
use crate::{Cluster, certificates, store::Store};

/// Headers that concern one connection only (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Passes a request on. The caller's `Authorization` is removed, `X-Forwarded-…` are added, and the backend's certificate
/// is not verified (kubernetes staging/src/k8s.io/apimachinery/pkg/util/proxy/transport.go).
///
/// # Errors
/// 400 for a bad name, 404 without the Service, 503 without a port of that name, a ready pod, or an answer.
pub async fn proxy(call: Call, request: Request) -> Result<Response, Status> {
    let (scheme, name, port) = target(&call.route.name)?;
    let service = call
        .cluster
        .store
        .get("services", &call.route.namespace, name)
        .ok_or_else(|| Status::not_found(by_key("services").expect("services are known"), name))?;
    if !has_port(&service, port) {
        return Err(Status::unavailable(format!("no service port \"{port}\" found for service \"{name}\"")));
    }
    let backends = backends(&call.cluster, &service);
    let turn = call.cluster.requests.count();
    let Some(backend) = backends.get(turn % backends.len().max(1)).copied() else {
        return Err(Status::unavailable(format!("no endpoints available for service \"{}\"", call.route.name)));
    };
    let forwarded = forwarded(&call, request)?;
    exchange(backend, scheme == "https", forwarded)
        .await
        .map_err(|error| Status::unavailable(format!("error trying to reach service: {error}")))
}

/// `[SCHEME:]NAME[:PORT]`.
fn target(text: &str) -> Result<(&str, &str, &str), Status> {
    match text.split(':').collect::<Vec<_>>()[..] {
        [name] => Ok(("", name, "")),
        [name, port] => Ok(("", name, port)),
        [scheme @ ("http" | "https" | ""), name, port] => Ok((scheme, name, port)),
        _ => Err(Status::bad_request(format!("invalid service request \"{text}\""))),
    }
}

/// By name or number. The numbers of the stock manifests count too, since the Service here has the numbers of ports that
/// happened to be free.
fn has_port(service: &Value, wanted: &str) -> bool {
    let stock = match wanted {
        "443" => "https",
        "80" => "http",
        other => other,
    };
    service["spec"]["ports"].as_array().into_iter().flatten().any(|port| {
        wanted.is_empty() || port["name"] == stock || port["port"].as_u64().is_some_and(|n| n.to_string() == wanted)
    })
}

/// Where the ready pods of a Service listen.
pub(crate) fn backends(cluster: &Cluster, service: &Value) -> Vec<SocketAddr> {
    let namespace = service["metadata"]["namespace"].as_str().unwrap_or_default();
    ready_pods(&cluster.store, service).iter().filter_map(|pod| cluster.endpoints.get(namespace, pod)).collect()
}

fn ready_pods(store: &Store, service: &Value) -> Vec<String> {
    let namespace = service["metadata"]["namespace"].as_str().unwrap_or_default();
    let Some(selector) = service["spec"]["selector"].as_object().filter(|s| !s.is_empty()) else { return Vec::new() };
    let (pods, _) = store.list("pods", Some(namespace));
    let ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        pod["metadata"]["deletionTimestamp"].is_null()
            && conditions.into_iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
    };
    pods.iter()
        .filter(|pod| selector.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value) && ready(pod))
        .filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
        .collect()
}

fn forwarded(call: &Call, request: Request) -> Result<Request, Status> {
    let (mut parts, body) = request.into_parts();
    let path = if call.route.rest.is_empty() { "/" } else { &call.route.rest };
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let original = parts.uri.path().to_owned();
    parts.uri = format!("{path}{query}")
        .parse::<Uri>()
        .map_err(|error| Status::bad_request(format!("invalid path {path}: {error}")))?;
    parts.headers.remove(header::AUTHORIZATION);
    for name in HOP_BY_HOP {
        parts.headers.remove(name);
    }
    let host = parts.headers.get(header::HOST).cloned();
    let add = [
        ("x-forwarded-uri", HeaderValue::from_str(&original).ok()),
        ("x-forwarded-host", host),
        ("x-forwarded-proto", Some(HeaderValue::from_static("https"))),
        ("x-forwarded-for", Some(HeaderValue::from_static("127.0.0.1"))),
    ];
    for (name, value) in add {
        if let Some(value) = value {
            parts.headers.insert(HeaderName::from_static(name), value);
        }
    }
    Ok(Request::from_parts(parts, body))
}

async fn exchange(backend: SocketAddr, tls: bool, request: Request) -> Result<Response, String> {
    let stream =
        TcpStream::connect(backend).await.map_err(|error| format!("dial tcp {backend}: connect: {}", plain(&error)))?;
    if !tls {
        return send(stream, request).await;
    }
    let name = ServerName::IpAddress(backend.ip().into());
    let stream = TlsConnector::from(unverified()).connect(name, stream).await.map_err(|error| error.to_string())?;
    send(stream, request).await
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request,
) -> Result<Response, String> {
    let failed = |error: hyper::Error| if error.is_incomplete_message() { "EOF".into() } else { error.to_string() };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    tokio::spawn(connection);
    let mut response = sender.send_request(request).await.map_err(failed)?.map(Body::new);
    for name in HOP_BY_HOP {
        response.headers_mut().remove(name);
    }
    Ok(response)
}

fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused".into(),
        _ => error.to_string(),
    }
}

fn unverified() -> Arc<ClientConfig> {
    let provider = certificates::provider();
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    Arc::new(config)
}

/// Accepts every certificate, as the API server does towards a Service.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
