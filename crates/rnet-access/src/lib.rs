//! Access control of the dashboard and the Foxglove server: the rule for non-loopback addresses, the token
//! and TLS.
//!
//! Errors are sentences that the command prints unchanged.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Shortest token, in bytes. Shorter ones can be guessed.
pub const MIN_TOKEN_LEN_BYTES: usize = 16;

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct Tls {
    /// The certificate chain, starting with the server's certificate.
    pub cert_pem: Vec<u8>,
    /// Its private key.
    pub key_pem: Vec<u8>,
}

impl Tls {
    /// Creates an acceptor for connections that are encrypted with the certificate.
    ///
    /// # Errors
    /// The fault of the certificate or the key.
    pub fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let certs = CertificateDer::pem_slice_iter(&self.cert_pem).collect::<Result<Vec<_>, _>>();
        let certs = certs.map_err(|why| format!("the certificate is not PEM: {why}"))?;
        if certs.is_empty() {
            return Err("the certificate file does not contain a certificate".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key_pem)
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
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// Rejects a weak token, and an address beyond loopback without both a token and TLS.
///
/// # Errors
/// The missing settings.
pub fn check(address: SocketAddr, token: Option<&str>, tls: Option<&Tls>) -> Result<(), String> {
    if let Some(token) = token {
        // Users put it into URLs, where browsers and viewers encode some characters.
        let is_plain = token.bytes().all(|b| b.is_ascii_graphic() && !b"\"';,\\&#<>".contains(&b));
        if token.len() < MIN_TOKEN_LEN_BYTES || !is_plain {
            return Err(format!(
                "the token has {} characters; it needs at least {MIN_TOKEN_LEN_BYTES} printable ones, without spaces, \
                 quotes, commas, semicolons, backslashes, &, #, < and >; create one with: openssl rand -hex 24",
                token.len()
            ));
        }
    }
    let missing = match (token, tls) {
        (Some(_), Some(_)) => return Ok(()),
        _ if address.ip().is_loopback() => return Ok(()),
        (None, Some(_)) => "a token (--token-file)",
        (Some(_), None) => "TLS (--tls-cert and --tls-key)",
        (None, None) => "a token (--token-file) and TLS (--tls-cert and --tls-key)",
    };
    Err(format!(
        "{address} is reachable from other computers, and anyone who reaches the server can move the robot: it needs \
         {missing}; otherwise use 127.0.0.1, and from other computers ssh -L {port}:127.0.0.1:{port} ROBOT",
        port = address.port()
    ))
}

/// Compares in a time that does not depend on the position of a difference, so that an attacker cannot find
/// the token character by character.
pub fn tokens_match(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let mut differs = given.len() ^ token.len();
    for (at, byte) in token.iter().enumerate() {
        differs |= usize::from(byte ^ given.get(at).copied().unwrap_or(0));
    }
    std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_loopback_address_requires_token_and_tls() {
        let [local, open] = [[127, 0, 0, 1], [0, 0, 0, 0]].map(|ip| SocketAddr::from((ip, 8420)));
        let token = Some("0123456789abcdef");
        let tls = Tls { cert_pem: Vec::new(), key_pem: Vec::new() };
        assert!(check(local, None, None).is_ok() && check(open, token, Some(&tls)).is_ok());
        let why = check(open, None, None).unwrap_err();
        assert!(why.contains("a token") && why.contains("TLS"), "{why}");
        let why = check(open, token, None).unwrap_err();
        assert!(!why.contains("a token") && why.contains("TLS"), "{why}");
        let why = check(open, None, Some(&tls)).unwrap_err();
        assert!(why.contains("a token") && !why.contains("TLS"), "{why}");
        for bad in [
            "short",
            "with a blank in it",
            "with;semicolon;in;it",
            "<0123456789abcdef>",
            "with&ampersands&in&it",
        ] {
            let why = check(local, Some(bad), Some(&tls)).unwrap_err();
            assert!(why.contains("the token has"), "{bad}: {why}");
        }
    }

    #[test]
    fn invalid_certificate_is_rejected() {
        let tls = Tls { cert_pem: b"none".to_vec(), key_pem: b"none".to_vec() };
        let why = tls.acceptor().err().unwrap();
        assert!(why.contains("does not contain a certificate"), "{why}");
    }

    #[test]
    fn tokens_are_compared_as_a_whole() {
        assert!(tokens_match("abc", "abc"));
        for given in ["", "ab", "abcd", "abd", "ABC", "abc\0"] {
            assert!(!tokens_match(given, "abc"), "{given:?}");
        }
    }
}
