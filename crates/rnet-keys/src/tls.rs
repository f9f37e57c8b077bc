//! TLS between hosts: version 1.3, both certificates from the authority, no names, no resumption.

use std::sync::Arc;

use rustls::CertificateError as C;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    ServerConfig, SignatureScheme,
};

use crate::{HostCertificate, KeyError, utc_date};

/// Verifies that a certificate is from the authority, and its dates. A host is known by the name in its
/// certificate, not by the address where it was found.
#[derive(Debug)]
pub struct AuthorityVerifier {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
    /// The short name of the authority.
    authority: String,
}

impl AuthorityVerifier {
    pub fn new(
        der: CertificateDer<'static>,
        authority: String,
    ) -> Result<AuthorityVerifier, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(der)?;
        let provider = Arc::new(ring::default_provider());
        Ok(AuthorityVerifier { roots: Arc::new(roots), provider, authority })
    }

    /// Verifies a host's certificate; the authority issues without intermediate certificates.
    pub fn verify(
        &self,
        der: &CertificateDer<'_>,
        now: UnixTime,
    ) -> Result<HostCertificate, KeyError> {
        let peer = HostCertificate::from_der(der)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let verified = ParsedCertificate::try_from(der).and_then(|parsed| {
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, &[], now, algorithms)
        });
        let Err(why) = verified else { return Ok(peer) };
        let HostCertificate { name, not_before, not_after, .. } = peer;
        Err(match why {
            Error::InvalidCertificate(C::Expired | C::ExpiredContext { .. }) => {
                KeyError::Expired { name, date: utc_date(not_after) }
            }
            Error::InvalidCertificate(C::NotValidYet | C::NotValidYetContext { .. }) => {
                KeyError::NotYetValid { name, date: utc_date(not_before) }
            }
            Error::InvalidCertificate(C::UnknownIssuer | C::BadSignature) => {
                KeyError::Foreign { name, authority: self.authority.clone() }
            }
            why => KeyError::Certificate(why.to_string()),
        })
    }

    /// The same for TLS, whose error then names the host.
    fn verify_for_tls(&self, der: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
        let refuse = |why: KeyError| Error::InvalidCertificate(C::Other(OtherError(Arc::new(why))));
        self.verify(der, now).map(drop).map_err(refuse)
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
        self: &Arc<Self>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<ServerConfig, Error> {
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(self.clone())
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
        self.verify_for_tls(end_entity, now).map(|()| ServerCertVerified::assertion())
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

impl ClientCertVerifier for AuthorityVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify_for_tls(end_entity, now).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ServerCertVerifier::supported_verify_schemes(self)
    }
}
