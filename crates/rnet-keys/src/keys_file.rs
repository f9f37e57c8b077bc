//! The keys file of a host.

use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::{ClientConfig, InconsistentKeys, ServerConfig};

use crate::files::{self, PUBLIC_FILE, Pem, pem_block};
use crate::revocations::REVOCATIONS_LABEL;
use crate::tls::AuthorityVerifier;
use crate::token::TOKEN_LABEL;
use crate::{HostCertificate, KeyError, Result, Revocations, Token, certificate, hex};

const CERTIFICATE_LABEL: &str = "CERTIFICATE";
const KEY_LABEL: &str = "PRIVATE KEY";

/// The keys of a host, read from one private file: its certificate and key, the authority's certificate, the
/// newest revocation list when the file was made, and the hashes of tokens.
pub struct KeysFile {
    path: PathBuf,
    certificate: HostCertificate,
    authority: String,
    authority_der: Vec<u8>,
    authority_pem: String,
    certificate_pem: String,
    key_pem: String,
    revocations: Revocations,
    tokens: Vec<Token>,
    verifier: Arc<AuthorityVerifier>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl KeysFile {
    /// Reads a keys file, and verifies that its certificate is from its authority and that the key belongs to
    /// the certificate. Does not check the dates: [`HostCertificate::expires_in`].
    ///
    /// # Errors
    /// `Mode` and `Owner` if other users may open the file; `Foreign` if its certificate is not from its
    /// authority; `Io`; `File` with what is wrong in it.
    pub fn load(path: &Path) -> Result<KeysFile> {
        KeysFile::parse(path, &files::read_private(path)?)
    }

    /// The same, of a text.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<KeysFile> {
        let wrong = |reason: &str| KeyError::file(path, format!("not a keys file: {reason}"));
        let invalid = |why: KeyError| KeyError::file(path, why.to_string());
        let blocks = files::pem_blocks(path, text)?;
        let of = |label| blocks.iter().filter(move |block| block.label == label);
        let certificates: Vec<&Pem> = of(CERTIFICATE_LABEL).collect();
        let [host, authority] = certificates[..] else {
            return Err(wrong("it needs two certificates, the host's and the authority's"));
        };
        let keys: Vec<&Pem> = of(KEY_LABEL).collect();
        let [key] = keys[..] else { return Err(wrong("it needs one private key")) };
        let issuer = certificate::parse(&authority.contents).map_err(invalid)?;
        if !issuer.is_ca() {
            return Err(wrong("its second certificate is not an authority's"));
        }
        let certificate = HostCertificate::from_der(&host.contents).map_err(invalid)?;
        let id = authority_id(&authority.contents);
        let parsed = certificate::parse(&host.contents).map_err(invalid)?;
        if parsed.verify_signature(Some(issuer.public_key())).is_err() {
            return Err(KeyError::Foreign { name: certificate.name, authority: id });
        }
        let revocations = match of(REVOCATIONS_LABEL).next() {
            None => Revocations::default(),
            Some(block) => Revocations::verify(&block.contents, issuer.public_key())?,
        };
        let tokens = of(TOKEN_LABEL).map(|block| Token::parse(path, &block.contents));

        let tls = |why: rustls::Error| match why {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                wrong("its private key does not belong to its certificate")
            }
            why => wrong(&why.to_string()),
        };
        let verifier = AuthorityVerifier::new(authority.contents.clone().into(), id.clone());
        let verifier = Arc::new(verifier.map_err(tls)?);
        let chain = || vec![CertificateDer::from(host.contents.clone())];
        let private = || PrivateKeyDer::Pkcs8(key.contents.clone().into());
        let client = verifier.client_config(chain(), private()).map_err(tls)?;
        let server = verifier.server_config(chain(), private()).map_err(tls)?;
        Ok(KeysFile {
            path: path.to_owned(),
            certificate,
            authority: id,
            authority_der: authority.contents.clone(),
            authority_pem: pem_block(CERTIFICATE_LABEL, &authority.contents),
            certificate_pem: pem_block(CERTIFICATE_LABEL, &host.contents),
            key_pem: pem_block(KEY_LABEL, &key.contents),
            revocations,
            tokens: tokens.collect::<Result<_>>()?,
            verifier,
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }

    /// The path that the file was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The certificate of this host.
    pub fn certificate(&self) -> &HostCertificate {
        &self.certificate
    }

    /// The authority: the first 16 hexadecimal digits of the SHA-256 of its certificate.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The authority's certificate in PEM; it is public.
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The host's certificate in PEM; it is public.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The host's private key in PEM (PKCS #8). It must not be logged or stored.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// TLS settings of the side that connects: version 1.3, this host's certificate; the peer's certificate
    /// must be from the authority and within its dates. Names are not compared and sessions not resumed. The
    /// caller checks [`Revocations::contains`] after the handshake.
    pub fn client_config(&self) -> Arc<ClientConfig> {
        self.client.clone()
    }

    /// The same of the side that accepts; it requires a certificate of the peer.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    /// The verified certificate of a peer, from the certificates that it sent.
    ///
    /// # Errors
    /// `Foreign`, `Expired` or `NotYetValid`; `Certificate` if it cannot be read.
    pub fn peer(&self, certificates: &[CertificateDer<'_>]) -> Result<HostCertificate> {
        let Some(der) = certificates.first() else {
            return Err(KeyError::Certificate("the host sent none".to_owned()));
        };
        self.verifier.verify(der, UnixTime::now())
    }

    /// The newest known revocation list: that of the keys file, or of the file beside it,
    /// `<keys file>.crl`.
    ///
    /// # Errors
    /// `Io`; `File` if the file beside it is damaged or not signed by the authority.
    pub fn revocations(&self) -> Result<Revocations> {
        let path = self.revocations_path();
        let text = match files::read_public(&path) {
            Err(KeyError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(self.revocations.clone());
            }
            text => text?,
        };
        let blocks = files::pem_blocks(&path, &text)?;
        let block = blocks.iter().find(|block| block.label == REVOCATIONS_LABEL);
        let block = block.ok_or_else(|| KeyError::file(&path, "not a revocation list"))?;
        let beside = self.verify_revocations(&block.contents);
        let beside = beside.map_err(|why| KeyError::file(&path, why.to_string()))?;
        let is_newer = beside.number() > self.revocations.number();
        Ok(if is_newer { beside } else { self.revocations.clone() })
    }

    /// The revocation list in the keys file, without that beside it.
    pub fn issued_revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Verifies a revocation list from another host.
    ///
    /// # Errors
    /// `Revocations` if it is not signed by this host's authority, or cannot be read.
    pub fn verify_revocations(&self, der: &[u8]) -> Result<Revocations> {
        let authority = certificate::parse(&self.authority_der)?;
        Revocations::verify(der, authority.public_key())
    }

    /// Stores a revocation list beside the keys file, unless an equal or newer one is there. A damaged file
    /// is replaced.
    ///
    /// # Errors
    /// `Io`.
    pub fn save_revocations(&self, revocations: &Revocations) -> Result<()> {
        // Links of several domains use one keys file.
        let _lock = files::lock(&self.path)?;
        if self.revocations().is_ok_and(|known| known.number() >= revocations.number()) {
            return Ok(());
        }
        let text = revocations.pem().unwrap_or_default();
        files::write_atomic(&self.revocations_path(), &text, PUBLIC_FILE)
    }

    /// The tokens, expired ones too.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The path of the newest revocation list.
    pub fn revocations_path(&self) -> PathBuf {
        let mut path = OsString::from(&self.path);
        path.push(".crl");
        path.into()
    }

    /// The content of the file, with other tokens.
    #[cfg(feature = "authority")]
    pub(crate) fn text_with(&self, tokens: &[Token]) -> String {
        let (host, key, authority) = (&self.certificate_pem, &self.key_pem, &self.authority_pem);
        keys_text(host, key, authority, &self.revocations, tokens)
    }
}

impl fmt::Debug for KeysFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeysFile({}, host {})", self.path.display(), self.certificate.name)
    }
}

/// The content of a keys file.
#[cfg(feature = "authority")]
pub fn keys_text(
    host: &str,
    key: &str,
    authority: &str,
    revocations: &Revocations,
    tokens: &[Token],
) -> String {
    let mut text = format!("{host}{key}{authority}");
    text.push_str(&revocations.pem().unwrap_or_default());
    tokens.iter().for_each(|token| text.push_str(&token.block()));
    text
}

/// The short name of an authority.
pub fn authority_id(der: &[u8]) -> String {
    hex(&digest(&SHA256, der).as_ref()[..8])
}
