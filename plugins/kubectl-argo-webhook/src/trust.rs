//! Which certificates are trusted: the one that the cluster says argocd-server has, and those that the user names.

use std::{path::Path, sync::Arc};

use kit::{cluster::Cluster, error::Error};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use crate::key;

/// Certificates to trust.
#[derive(Debug, Default)]
pub struct Trust {
    /// Trusted as they are, whatever name they bear and whoever signed them: argocd-server makes its own, which no
    /// authority signs and which WebPKI refuses as an authority.
    pinned: Vec<CertificateDer<'static>>,
    /// Whoever these have signed is trusted under the name that was asked for.
    authorities: Vec<CertificateDer<'static>>,
    /// So are those that the system trusts.
    system: bool,
    /// Nothing is verified.
    anything: bool,
}

impl Trust {
    /// The certificate that [`certificate_of`] finds. The server takes it from there, so no other can be right.
    ///
    /// # Errors
    /// As [`certificate_of`], and when it cannot be read.
    pub async fn of_cluster(cluster: &Cluster) -> Result<Self, Error> {
        let (secret, pem) = certificate_of(cluster).await?;
        let place = format!("tls.crt of {}/{secret}", cluster.namespace);
        let pinned = certificates(&pem, &place)?.into_iter().take(1).collect();
        Ok(Trust { pinned, ..Trust::default() })
    }

    /// Trusts what the system trusts.
    #[must_use]
    pub fn with_system(self) -> Self {
        Trust { system: true, ..self }
    }

    /// Trusts anything.
    pub fn anything() -> Self {
        Trust { anything: true, ..Trust::default() }
    }

    /// Also trusts the certificates in a file: each as it is, and as an authority.
    ///
    /// # Errors
    /// When the file cannot be read or holds no certificate; exit code 2.
    pub fn and_file(mut self, path: &Path) -> Result<Self, Error> {
        let found = certificates(&kit::file::read(path)?, &path.display().to_string())?;
        self.pinned.extend(found.iter().cloned());
        self.authorities.extend(found);
        Ok(self)
    }

    /// The rustls configuration.
    ///
    /// # Errors
    /// When a certificate cannot be used as an authority.
    pub fn config(self) -> Result<ClientConfig, Error> {
        let provider = Arc::new(ring::default_provider());
        let failed =
            |error: &dyn std::fmt::Display| Error::usage("bad-certificate", format!("cannot set up TLS: {error}"));
        let mut chains: Vec<Arc<dyn ServerCertVerifier>> = Vec::new();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.authorities);
        if !roots.is_empty() {
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
            chains.push(verifier.build().map_err(|error| failed(&error))?);
        }
        if self.system {
            // A machine without any authority still has the cluster's certificate and those of --ca-file.
            if let Ok(verifier) = rustls_platform_verifier::Verifier::new(provider.clone()) {
                chains.push(Arc::new(verifier));
            }
        }
        let verifier = Verifier { pinned: self.pinned, chains, anything: self.anything, provider: provider.clone() };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(config)
    }
}

/// The certificate of argocd-server and the Secret that it is in: `argocd-server-tls`, else `argocd-secret` (argo-cd
/// v3.5.1 util/settings/settings.go, `externalServerTLSCertificate`).
///
/// # Errors
/// When the Secrets cannot be read, and when neither holds a certificate.
pub async fn certificate_of(cluster: &Cluster) -> Result<(&'static str, Vec<u8>), Error> {
    for name in ["argocd-server-tls", key::ARGOCD_SECRET] {
        if let Some(pem) = key::read(cluster, name).await?.and_then(|mut found| found.data.remove("tls.crt")) {
            return Ok((name, pem));
        }
    }
    Err(Error::unknown(
        "no-certificate",
        format!("no certificate of argocd-server in namespace {} (context {})", cluster.namespace, cluster.context),
    )
    .hint("--ca-file FILE names one; --via service-proxy needs none"))
}

fn certificates(pem: &[u8], place: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(Error::usage("bad-certificate", format!("no certificate in {place}"))
            .hint("it must be PEM: -----BEGIN CERTIFICATE-----")),
        Err(error) => Err(Error::usage("bad-certificate", format!("cannot read the certificate in {place}: {error}"))),
    }
}

#[derive(Debug)]
struct Verifier {
    pinned: Vec<CertificateDer<'static>>,
    chains: Vec<Arc<dyn ServerCertVerifier>>,
    anything: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.anything || self.pinned.contains(end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        let mut refusal = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        for chain in &self.chains {
            match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
                Ok(verified) => return Ok(verified),
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    // That the other side holds the certificate's key is proven even where the certificate itself is not verified.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
