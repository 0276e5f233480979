//! The certificate of argocd-server.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};

use crate::{
    argocd::{manifests::secret_value, settings::bool_setting, webhook::Handler},
    certificates,
};

/// A certificate and its key as they are in the Secret, and what is made of them.
pub struct Tls {
    /// Certificate and key.
    pub pem: (String, String),
    /// With both.
    pub config: Arc<ServerConfig>,
}

/// The certificate in `argocd-server-tls`, else in `argocd-secret`, else a new one that is put there; none with
/// `server.insecure`.
pub(crate) fn read(handler: &Handler) -> Option<Tls> {
    let (store, install) = (&handler.argo.cluster.store, &handler.process.namespace);
    if bool_setting(&handler.process, "insecure", "ARGOCD_SERVER_INSECURE") {
        return None;
    }
    let pair = |secret: &Value| Some((secret_value(secret, "tls.crt")?, secret_value(secret, "tls.key")?));
    let secrets = ["argocd-server-tls", "argocd-secret"];
    let found = secrets.iter().find_map(|name| Tls::of(pair(&store.get("secrets", install, name)?)?));
    found.or_else(|| {
        let mut names = vec!["localhost".to_owned(), "argocd-server".to_owned()];
        names.extend(["", ".svc", ".svc.cluster.local"].map(|domain| format!("argocd-server.{install}{domain}")));
        let (certificate, key) = certificates::self_signed(&names);
        let _ = store.update("secrets", install, "argocd-secret", |secret| {
            secret["data"]["tls.crt"] = json!(STANDARD.encode(&certificate));
            secret["data"]["tls.key"] = json!(STANDARD.encode(&key));
            Ok(())
        });
        Tls::of((certificate, key))
    })
}

impl Tls {
    fn of(pem: (String, String)) -> Option<Tls> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(pem.0.as_bytes()).collect::<Result<_, _>>().ok()?;
        let key = PrivateKeyDer::from_pem_slice(pem.1.as_bytes()).ok()?;
        let builder = ServerConfig::builder_with_provider(certificates::provider());
        let versions = builder.with_safe_default_protocol_versions().ok()?;
        let mut config = versions.with_no_client_auth().with_single_cert(chain, key).ok()?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Some(Tls { pem, config: Arc::new(config) })
    }
}
