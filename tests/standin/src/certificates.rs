//! Certificates: the API server's authority and certificate, and self-signed ones as argocd-server makes them.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};

const MAKES: &str = "making a certificate for fixed names cannot fail";

/// The TLS side of the API server.
pub struct Authority {
    /// What the kubeconfig trusts, PEM.
    pub certificate_pem: String,
    /// A server certificate for the loopback address, issued by it.
    pub server: Arc<ServerConfig>,
}

/// A new authority and a certificate for `127.0.0.1` and `localhost`.
pub fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "kubernetes");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().expect(MAKES)).expect(MAKES);

    let key = KeyPair::generate().expect(MAKES);
    let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()]).expect(MAKES);
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    let certificate = params.signed_by(&key, &authority).expect(MAKES);
    Authority {
        certificate_pem: authority.pem(),
        server: server_config(certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()).into()),
    }
}

/// A self-signed certificate and its key, both PEM.
pub fn self_signed(names: &[String]) -> (String, String) {
    let key = KeyPair::generate().expect(MAKES);
    let mut params = CertificateParams::new(names).expect(MAKES);
    params.distinguished_name.push(DnType::OrganizationName, "Argo CD");
    let certificate = params.self_signed(&key).expect(MAKES);
    (certificate.pem(), key.serialize_pem())
}

/// A server that shows one certificate and asks for none, HTTP/1.1 only.
fn server_config(certificate: CertificateDer<'static>, key: PrivateKeyDer<'static>) -> Arc<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the key was made for the certificate");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// The cryptography of both sides.
pub fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
