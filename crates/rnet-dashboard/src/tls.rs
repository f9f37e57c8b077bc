//! TLS, from a certificate and a key in PEM.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::options::{DashboardError, Tls};

/// What accepts connections.
///
/// # Errors
/// In words, what is wrong with the certificate or the key.
pub fn acceptor(tls: &Tls) -> crate::Result<TlsAcceptor> {
    let wrong = |what: &str, why: String| DashboardError::Tls(format!("{what}: {why}"));
    let certs = CertificateDer::pem_slice_iter(&tls.cert_pem).collect::<Result<Vec<_>, _>>();
    let certs = certs.map_err(|why| wrong("the certificate is no PEM", why.to_string()))?;
    if certs.is_empty() {
        return Err(DashboardError::Tls("the certificate's file holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&tls.key_pem);
    let key = key.map_err(|why| wrong("the key's file holds no private key", why.to_string()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(|why| wrong("TLS", why.to_string()))?;
    let mut config = config
        .with_no_client_auth()
        .with_single_cert(certs, key)
        .map_err(|why| wrong("the certificate and the key do not go together", why.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
