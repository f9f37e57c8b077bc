//! The certificate of the server.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{FoxgloveError, Result};

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct Tls {
    /// The chain, that of the server first.
    pub cert_pem: Vec<u8>,
    /// Its private key.
    pub key_pem: Vec<u8>,
}

impl Tls {
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor> {
        let wrong =
            |what: &str, why: &dyn std::fmt::Display| FoxgloveError::Tls(format!("{what}: {why}"));
        let chain: std::result::Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(&self.cert_pem).collect();
        let chain = chain.map_err(|error| wrong("the certificate", &error))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key_pem);
        let key = key.map_err(|error| wrong("the key of the certificate", &error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("TLS", &error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| wrong("the certificate and its key", &error))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}
