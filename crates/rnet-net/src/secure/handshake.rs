//! A TLS 1.3 handshake of two links, with both certificates, over frames.
//!
//! A lost part is not repeated: the client begins another attempt. TLS orders nothing itself, so the parts of
//! each side are numbered.

use std::io;
use std::time::Instant;

use rnet_keys::KeysFile;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, Error, ServerConnection};

use crate::HostId;

use super::frame::HandshakePart;
use super::session::{Established, Secrets};

/// The bytes of TLS that a side may send in one attempt. A certificate with a thousand rights has 60 KB.
const MAX_RECEIVED_BYTES: usize = 128 << 10;
/// Names the purpose of the exported secrets (RFC 5705).
const EXPORTER_LABEL: &[u8] = b"EXPORTER-rnet-link";

/// An unfinished handshake with the link of another host.
pub struct Handshake {
    pub peer: HostId,
    pub attempt: u64,
    pub began: Instant,
    pub is_client: bool,
    /// The term of the other link, once it is heard.
    pub peer_term: Option<u64>,
    own_term: u64,
    connection: Connection,
    next_sent: u8,
    next_received: u8,
    received_bytes: usize,
}

impl Handshake {
    pub fn client(
        keys: &KeysFile,
        own_term: u64,
        peer: HostId,
        attempt: u64,
    ) -> Result<Self, Error> {
        // No name is checked: the certificate itself says which host it is.
        let name = ServerName::try_from("rnet").expect("a valid name");
        let connection = ClientConnection::new(keys.client_config(), name)?.into();
        Ok(Self::new(own_term, peer, attempt, true, connection))
    }

    pub fn server(
        keys: &KeysFile,
        own_term: u64,
        peer: HostId,
        attempt: u64,
    ) -> Result<Self, Error> {
        let connection = ServerConnection::new(keys.server_config())?.into();
        Ok(Self::new(own_term, peer, attempt, false, connection))
    }

    fn new(
        own_term: u64,
        peer: HostId,
        attempt: u64,
        is_client: bool,
        connection: Connection,
    ) -> Self {
        Handshake {
            peer,
            attempt,
            began: Instant::now(),
            is_client,
            peer_term: None,
            own_term,
            connection,
            next_sent: 0,
            next_received: 0,
            received_bytes: 0,
        }
    }

    /// Takes a part of the other side. Parts out of order are ignored.
    ///
    /// # Errors
    /// That of TLS. What is to be sent next contains the reason for the other side.
    pub fn receive(&mut self, part: &HandshakePart) -> Result<(), Error> {
        let is_first = part.number == 0 && self.next_received == 0;
        if part.number != self.next_received || !(is_first || self.peer_term == Some(part.term)) {
            return Ok(());
        }
        self.peer_term = Some(part.term);
        self.next_received = self.next_received.saturating_add(1);
        self.received_bytes += part.bytes.len();
        if self.received_bytes > MAX_RECEIVED_BYTES {
            return Err(Error::General("the handshake is too long".into()));
        }
        let mut rest = part.bytes;
        while !rest.is_empty() {
            let read = self.connection.read_tls(&mut rest);
            // Nothing is read after the end of the connection.
            if read.map_err(|error| Error::General(error.to_string()))? == 0 {
                return Err(Error::General("bytes after the end of the connection".into()));
            }
            self.connection.process_new_packets()?;
        }
        Ok(())
    }

    /// The next part for the other side, if there is one.
    pub fn take_part(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        while self.connection.wants_write() {
            let written: io::Result<usize> = self.connection.write_tls(&mut bytes);
            written.ok()?;
        }
        if bytes.is_empty() {
            return None;
        }
        let part = HandshakePart {
            attempt: self.attempt,
            term: self.own_term,
            from_client: self.is_client,
            number: self.next_sent,
            bytes: &bytes,
        };
        self.next_sent = self.next_sent.saturating_add(1);
        Some(part.encode())
    }

    pub fn is_done(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// The result of a handshake that is done. `own` and `domain` bind the secrets to the two links, so that
    /// they are of no use between others.
    ///
    /// # Errors
    /// Why the other side is refused.
    pub fn finish(
        &self,
        keys: &KeysFile,
        own: HostId,
        domain: &str,
    ) -> Result<Established, String> {
        let certificates = self.connection.peer_certificates().unwrap_or_default();
        let certificate = keys.peer(certificates).map_err(|error| error.to_string())?;
        let term = self.peer_term.ok_or("it has no term")?;
        let (client, server) = match self.is_client {
            true => ((own, self.own_term), (self.peer, term)),
            false => ((self.peer, term), (own, self.own_term)),
        };
        let mut context = Vec::new();
        for (host, term) in [client, server] {
            context.extend(host.0.to_le_bytes());
            context.extend(term.to_le_bytes());
        }
        context.extend(domain.as_bytes());
        let exported =
            self.connection.export_keying_material([0; 72], EXPORTER_LABEL, Some(&context));
        let exported = exported.map_err(|error| error.to_string())?;
        let suite = self.connection.negotiated_cipher_suite().ok_or("it has no cipher suite")?;
        let key = |at| std::array::from_fn(|byte| exported[at + byte]);
        Ok(Established {
            peer: self.peer,
            term,
            certificate,
            is_client: self.is_client,
            secrets: Secrets {
                client_to_server: key(0),
                server_to_client: key(32),
                id: u64::from_le_bytes(std::array::from_fn(|byte| exported[64 + byte])),
                cipher_suite: suite.suite(),
            },
        })
    }
}
