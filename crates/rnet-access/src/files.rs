//! The certificate and the tokens of a server, which follow their files.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rnet_keys::{KeysFile, Token};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::AccessOptions;

/// Limit of a certificate or key file, in bytes.
const MAX_PEM_LEN_BYTES: u64 = 1 << 20;

/// Files with a certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate chain, starting with the server's certificate.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What the files contain.
pub struct Loaded {
    pub acceptor: Option<TlsAcceptor>,
    pub tokens: Vec<Token>,
    /// The host's name, from its keys file.
    pub host: Option<String>,
}

/// Identifies a version of the files: device, inode, times and length of each.
pub type FilesVersion = Vec<Option<(u64, u64, i64, i64, i64, i64, u64)>>;

/// The current version of the files.
pub fn version_of(options: &AccessOptions) -> FilesVersion {
    let tls = options.tls.iter().flat_map(|files| [&files.cert, &files.key]);
    let stat = |path: &PathBuf| {
        // A pipe is read once.
        let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let (changed, modified) =
            ((file.ctime(), file.ctime_nsec()), (file.mtime(), file.mtime_nsec()));
        Some((file.dev(), file.ino(), changed.0, changed.1, modified.0, modified.1, file.len()))
    };
    options.keys.iter().chain(tls).map(stat).collect()
}

/// Reads the files.
///
/// # Errors
/// Which file is unusable, and why.
pub fn load(options: &AccessOptions) -> Result<Loaded, String> {
    let keys = options.keys.as_deref().map(KeysFile::load).transpose();
    let keys = keys.map_err(|why| why.to_string())?;
    let acceptor = match (&options.tls, &keys) {
        (Some(TlsFiles { cert, key }), _) => Some(acceptor(&read(cert)?, &read(key)?)?),
        (None, Some(keys)) => {
            // With the authority, so that a client that trusts it needs nothing else.
            let chain = [keys.certificate_pem(), keys.authority_pem()].join("\n");
            Some(acceptor(chain.as_bytes(), keys.key_pem().as_bytes())?)
        }
        (None, None) => None,
    };
    let tokens = keys.as_ref().map(|keys| keys.tokens().to_vec()).unwrap_or_default();
    Ok(Loaded { acceptor, tokens, host: keys.map(|keys| keys.certificate().name.clone()) })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(MAX_PEM_LEN_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Ok(len) if len as u64 <= MAX_PEM_LEN_BYTES => Ok(bytes),
        Ok(_) => {
            Err(format!("{} has more than 1 MiB: it is not a certificate or key", path.display()))
        }
        Err(why) => Err(format!("{}: {why}", path.display())),
    }
}

/// Creates an acceptor for connections that are encrypted with the certificate.
fn acceptor(cert_pem: &[u8], key_pem: &[u8]) -> Result<TlsAcceptor, String> {
    let certs = CertificateDer::pem_slice_iter(cert_pem).collect::<Result<Vec<_>, _>>();
    let certs = certs.map_err(|why| format!("the certificate is not PEM: {why}"))?;
    if certs.is_empty() {
        return Err("the certificate file does not contain a certificate".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key_pem)
        .map_err(|why| format!("the key file does not contain a private key: {why}"))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| format!("TLS: {why}"))?
        .with_no_client_auth()
        .with_single_cert(certs, key)
        .map_err(|why| format!("the certificate and the key do not match: {why}"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_certificate_is_rejected() {
        let why = acceptor(b"none", b"none").err().unwrap();
        assert!(why.contains("does not contain a certificate"), "{why}");
    }
}
