//! TLS between hosts: version 1.3, both certificates from the authority, no names, no resumption.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
};

/// Verifies that a certificate is from the authority, and its dates. A host is known by the name in its
/// certificate, not by the address where it was found.
#[derive(Debug)]
pub struct AuthorityVerifier {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl AuthorityVerifier {
    pub fn new(authority: CertificateDer<'static>) -> Result<AuthorityVerifier, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(authority)?;
        Ok(AuthorityVerifier {
            roots: Arc::new(roots),
            provider: Arc::new(ring::default_provider()),
        })
    }

    /// Verifies a host's certificate; the authority issues without intermediate certificates.
    pub fn verify(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
        let certificate = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, &[], now, algorithms)
    }

    /// The settings of the side that connects.
    pub fn client_config(
        self: &Arc<Self>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<ClientConfig, Error> {
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(self.clone())
            .with_client_auth_cert(chain, key)?;
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(config)
    }

    /// The settings of the side that accepts.
    pub fn server_config(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<ServerConfig, Error> {
        let roots = self.roots.clone();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, self.provider.clone());
        let verifier = verifier.build().map_err(|why| Error::General(why.to_string()))?;
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

impl ServerCertVerifier for AuthorityVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(end_entity, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.3 is required".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
