//! A secure session: keys that two links share, and what the other link has proved about itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rnet::Lane;
use rnet_keys::HostCertificate;
use rustls::CipherSuite;

use crate::HostId;

use super::frame::{Content, SEALED_HEADER_LEN, SERIES, sealed_header, series};

/// Bytes by which a sealed frame is longer.
const TAG_LEN: usize = 16;
/// Frames of a direction after which the keys are replaced. A frame of 64 KiB has four times the blocks of
/// the longest TLS record, and TLS 1.3 allows 2^24.5 of these with AES-GCM (RFC 8446 §5.5).
const MAX_FRAMES: u64 = 1 << 22;
/// Frames of a direction after which none is sealed any more: no other handshake was possible.
const LAST_FRAME: u64 = 1 << 24;

/// The secrets that both sides export from a handshake.
pub struct Secrets {
    pub client_to_server: [u8; 32],
    pub server_to_client: [u8; 32],
    /// Names the session in frames.
    pub id: u64,
    pub cipher_suite: CipherSuite,
}

/// What one side knows when a handshake is done.
pub struct Established {
    pub peer: HostId,
    /// The term of the other link.
    pub term: u64,
    pub certificate: HostCertificate,
    pub is_client: bool,
    pub secrets: Secrets,
}

pub struct Session {
    pub id: u64,
    pub peer: HostId,
    pub term: u64,
    pub certificate: Arc<HostCertificate>,
    pub is_client: bool,
    pub began: Instant,
    /// Whether the other side has accepted this host's certificate: it has sealed a frame.
    is_confirmed: AtomicBool,
    seal: LessSafeKey,
    open: LessSafeKey,
    /// The number of the latest revocation list that the other side has.
    pub acknowledged: AtomicU64,
    /// For each series, the number of the next frame.
    next_sent: [AtomicU64; SERIES],
    /// For each series, the lowest number that is accepted.
    next_received: [AtomicU64; SERIES],
}

impl Session {
    /// `None` if the cipher suite is not one of TLS 1.3 that this link offers.
    pub fn new(of: Established) -> Option<Self> {
        let algorithm: &'static Algorithm = match of.secrets.cipher_suite {
            CipherSuite::TLS13_AES_256_GCM_SHA384 | CipherSuite::TLS13_AES_128_GCM_SHA256 => {
                &AES_256_GCM
            }
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => &CHACHA20_POLY1305,
            _ => return None,
        };
        let key =
            |bytes: &[u8; 32]| Some(LessSafeKey::new(UnboundKey::new(algorithm, bytes).ok()?));
        let (mut seal, mut open) =
            (key(&of.secrets.client_to_server)?, key(&of.secrets.server_to_client)?);
        if !of.is_client {
            std::mem::swap(&mut seal, &mut open);
        }
        Some(Session {
            id: of.secrets.id,
            peer: of.peer,
            term: of.term,
            certificate: Arc::new(of.certificate),
            is_client: of.is_client,
            began: Instant::now(),
            // The server has verified the client before it has the keys.
            is_confirmed: AtomicBool::new(!of.is_client),
            seal,
            open,
            acknowledged: AtomicU64::new(0),
            next_sent: Default::default(),
            next_received: Default::default(),
        })
    }

    pub fn is_confirmed(&self) -> bool {
        self.is_confirmed.load(Ordering::Acquire)
    }

    /// Records that a frame of the other side was opened; whether it was the first one.
    pub fn confirm(&self) -> bool {
        !self.is_confirmed() && !self.is_confirmed.swap(true, Ordering::AcqRel)
    }

    /// Whether its keys have sealed so much that they must be replaced.
    pub fn is_worn(&self) -> bool {
        let mut counts = self.next_sent.iter().chain(&self.next_received);
        counts.any(|count| count.load(Ordering::Relaxed) >= MAX_FRAMES)
    }

    /// Seals a frame for the other side; `None` if the keys are used up.
    pub fn seal(&self, content: Content, lane: Lane, plain: &[u8]) -> Option<Vec<u8>> {
        let series = series(content, lane);
        let counter = self.next_sent[series].fetch_add(1, Ordering::Relaxed);
        if counter >= LAST_FRAME {
            return None;
        }
        let header = sealed_header(content, self.id, counter);
        let mut frame = Vec::with_capacity(SEALED_HEADER_LEN + plain.len() + TAG_LEN);
        frame.extend(header);
        frame.extend(plain);
        let sealed = &mut frame[SEALED_HEADER_LEN..];
        // It fails only for more bytes than a frame has.
        let tag =
            self.seal.seal_in_place_separate_tag(nonce(series, counter), Aad::from(header), sealed);
        frame.extend(tag.expect("a frame is shorter than 64 GiB").as_ref());
        Some(frame)
    }

    /// Opens a frame of the other side into `buffer`; `None` if it is forged or was received before.
    ///
    /// The calls of a series come from one thread at a time.
    pub fn open<'b>(
        &self,
        series: usize,
        counter: u64,
        header: &[u8; SEALED_HEADER_LEN],
        sealed: &[u8],
        buffer: &'b mut Vec<u8>,
    ) -> Option<&'b [u8]> {
        let next = &self.next_received[series];
        if counter < next.load(Ordering::Relaxed) {
            return None;
        }
        buffer.clear();
        buffer.extend(sealed);
        let opened =
            self.open.open_in_place(nonce(series, counter), Aad::from(header), buffer).ok()?;
        next.store(counter.checked_add(1)?, Ordering::Relaxed);
        Some(opened)
    }
}

/// A number that is used once with a key: each series counts by itself, each direction has its own key.
fn nonce(series: usize, counter: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[0] = series as u8;
    nonce[4..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}
