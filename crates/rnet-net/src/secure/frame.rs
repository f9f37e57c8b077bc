//! The frames that two links exchange around their sealed frames. docs/design/secure-sessions.md §2 has the
//! layout.

use rnet::Lane;

/// The first two bytes of each frame. A frame that is not sealed begins with another number.
pub const MAGIC: u16 = 0x4E53;
const VERSION: u8 = 1;
/// Bytes before the fields of a kind.
const PREFIX_LEN: usize = 4;
/// Bytes before the sealed ones.
pub const SEALED_HEADER_LEN: usize = PREFIX_LEN + 16;
/// Longest text of a refusal, in bytes.
const MAX_TEXT_LEN_BYTES: usize = 512;

const KIND_HANDSHAKE: u8 = 1;
const KIND_LINK: u8 = 2;
const KIND_REVOCATIONS: u8 = 3;
const KIND_NO_SESSION: u8 = 4;
const KIND_REFUSED: u8 = 5;

/// What a sealed frame contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A frame of the link.
    Link,
    /// The sender's revocation list; or the number of that list in eight bytes, which acknowledges one with
    /// this number, and confirms a session.
    Revocations,
}

/// A frame as it arrived; nothing in it is verified.
#[derive(Debug, PartialEq, Eq)]
pub enum SecureFrame<'a> {
    /// A part of a TLS handshake.
    Handshake(HandshakePart<'a>),
    /// A sealed frame.
    Sealed {
        /// What it contains.
        content: Content,
        /// Its session.
        session: u64,
        /// Its number in its session and series.
        counter: u64,
        /// The bytes that are authenticated with the sealed ones.
        header: &'a [u8; SEALED_HEADER_LEN],
        /// The sealed bytes.
        sealed: &'a [u8],
    },
    /// The sender wants another handshake: it does not know this session.
    NoSession(u64),
    /// The sender refuses this host, for this reason.
    Refused(&'a str),
}

/// A part of a TLS handshake.
#[derive(Debug, PartialEq, Eq)]
pub struct HandshakePart<'a> {
    /// A random number that the client has chosen.
    pub attempt: u64,
    /// The term of the sending link.
    pub term: u64,
    /// Whether the client of the handshake sends it.
    pub from_client: bool,
    /// Its number among the parts of its sender.
    pub number: u8,
    /// Bytes of TLS.
    pub bytes: &'a [u8],
}

impl HandshakePart<'_> {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = prefix(KIND_HANDSHAKE);
        out.extend(self.attempt.to_le_bytes());
        out.extend(self.term.to_le_bytes());
        out.push(u8::from(self.from_client));
        out.push(self.number);
        out.extend(self.bytes);
        out
    }
}

fn prefix(kind: u8) -> Vec<u8> {
    let [low, high] = MAGIC.to_le_bytes();
    vec![low, high, VERSION, kind]
}

/// The header of a sealed frame.
pub fn sealed_header(content: Content, session: u64, counter: u64) -> [u8; SEALED_HEADER_LEN] {
    let kind = match content {
        Content::Link => KIND_LINK,
        Content::Revocations => KIND_REVOCATIONS,
    };
    let [magic, more] = MAGIC.to_le_bytes();
    let mut header = [0; SEALED_HEADER_LEN];
    header[..PREFIX_LEN].copy_from_slice(&[magic, more, VERSION, kind]);
    header[PREFIX_LEN..][..8].copy_from_slice(&session.to_le_bytes());
    header[PREFIX_LEN + 8..].copy_from_slice(&counter.to_le_bytes());
    header
}

/// A request for another handshake.
pub fn no_session(session: u64) -> Vec<u8> {
    let mut out = prefix(KIND_NO_SESSION);
    out.extend(session.to_le_bytes());
    out
}

/// A refusal.
pub fn refused(text: &str) -> Vec<u8> {
    let mut len = text.len().min(MAX_TEXT_LEN_BYTES);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    let mut out = prefix(KIND_REFUSED);
    out.extend(&text.as_bytes()[..len]);
    out
}

impl<'a> SecureFrame<'a> {
    /// Reads a frame; `None` if it is none of these.
    pub fn decode(frame: &'a [u8]) -> Option<Self> {
        let (prefix, rest) = frame.split_first_chunk::<PREFIX_LEN>()?;
        if prefix[..2] != MAGIC.to_le_bytes() || prefix[2] != VERSION {
            return None;
        }
        let content = match prefix[3] {
            KIND_HANDSHAKE => {
                let (attempt, rest) = rest.split_first_chunk()?;
                let (term, rest) = rest.split_first_chunk()?;
                let (&[from_client, number], bytes) = rest.split_first_chunk()?;
                return Some(SecureFrame::Handshake(HandshakePart {
                    attempt: u64::from_le_bytes(*attempt),
                    term: u64::from_le_bytes(*term),
                    from_client: from_client == 1,
                    number,
                    bytes,
                }));
            }
            KIND_NO_SESSION => {
                return Some(SecureFrame::NoSession(u64::from_le_bytes(rest.try_into().ok()?)));
            }
            KIND_REFUSED if rest.len() <= MAX_TEXT_LEN_BYTES => {
                return Some(SecureFrame::Refused(std::str::from_utf8(rest).ok()?));
            }
            KIND_LINK => Content::Link,
            KIND_REVOCATIONS => Content::Revocations,
            _ => return None,
        };
        let (header, sealed) = frame.split_first_chunk::<SEALED_HEADER_LEN>()?;
        let (session, counter) = header[PREFIX_LEN..].split_first_chunk::<8>()?;
        Some(SecureFrame::Sealed {
            content,
            session: u64::from_le_bytes(*session),
            counter: u64::from_le_bytes(counter.try_into().ok()?),
            header,
            sealed,
        })
    }
}

/// The number of series whose frames are counted apart.
pub const SERIES: usize = 3;

/// The series of a frame. The frames of one are sent by one thread, so they arrive in order.
pub fn series(content: Content, lane: Lane) -> usize {
    match (content, lane) {
        (Content::Link, Lane::Urgent) => 0,
        (Content::Link, Lane::Bulk) => 1,
        (Content::Revocations, _) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let part =
            HandshakePart { attempt: 7, term: 3, from_client: true, number: 2, bytes: b"hello" };
        let encoded = part.encode();
        assert_eq!(SecureFrame::decode(&encoded), Some(SecureFrame::Handshake(part)));
        assert_eq!(SecureFrame::decode(&no_session(9)), Some(SecureFrame::NoSession(9)));
        let encoded = refused("expired");
        assert_eq!(SecureFrame::decode(&encoded), Some(SecureFrame::Refused("expired")));
        let mut encoded = sealed_header(Content::Revocations, 5, 6).to_vec();
        encoded.push(1);
        let Some(SecureFrame::Sealed { content, session, counter, sealed, .. }) =
            SecureFrame::decode(&encoded)
        else {
            panic!()
        };
        assert_eq!((content, session, counter, sealed), (Content::Revocations, 5, 6, &[1][..]));
    }

    #[test]
    fn a_long_refusal_is_cut_between_characters() {
        let text = format!("a{}", "ä".repeat(MAX_TEXT_LEN_BYTES));
        let encoded = refused(&text);
        let Some(SecureFrame::Refused(read)) = SecureFrame::decode(&encoded) else { panic!() };
        assert_eq!(read.len(), MAX_TEXT_LEN_BYTES - 1);
    }

    #[test]
    fn truncated_frames_and_other_magic_are_nothing() {
        let part = HandshakePart { attempt: 7, term: 3, from_client: true, number: 2, bytes: b"" };
        let frames = [part.encode(), no_session(9), sealed_header(Content::Link, 5, 6).to_vec()];
        for frame in frames {
            for len in 0..frame.len() {
                assert_eq!(SecureFrame::decode(&frame[..len]), None);
            }
            for at in [0, 2, 3] {
                let mut changed = frame.clone();
                changed[at] ^= 0x40;
                assert_eq!(SecureFrame::decode(&changed), None);
            }
        }
    }
}
