//! Documents: the data between links beside messages, in parts that fit into frames.

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Document {
    /// JSON: release, host name, domain, limits; the first of a stream.
    Hello,
    /// JSON: nodes that have joined, left or died.
    Nodes,
    /// JSON: endpoints that were opened, changed, closed.
    Endpoints,
    /// A descriptor set, by the fingerprint of its structure (`rnet::ProtobufType::schema`).
    Type(u128),
    /// JSON: what is refused, and why.
    Refused,
}

/// A document, or a part of one. The parts of a document follow each other in their stream, with none of
/// another document of its kind between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentPart<'a> {
    /// The kind of the document.
    pub of: Document,
    /// Length of the whole, in bytes.
    pub total: u32,
    /// The offset of this part.
    pub offset: u32,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl<'a> DocumentPart<'a> {
    /// Longest part that [`split`](Self::split) makes, in bytes.
    pub const MAX_LEN: usize = 8 << 10;

    /// Splits a document; an empty one has one empty part.
    ///
    /// # Panics
    /// If the length of the document does not fit into a u32.
    pub fn split(of: Document, body: &'a [u8]) -> impl Iterator<Item = DocumentPart<'a>> {
        let total = u32::try_from(body.len()).expect("a document is shorter than 4 GiB");
        let empty = body.is_empty().then_some(DocumentPart { of, total, offset: 0, bytes: &[] });
        let parts = body.chunks(Self::MAX_LEN).enumerate().map(move |(at, bytes)| DocumentPart {
            of,
            total,
            offset: (at * Self::MAX_LEN) as u32,
            bytes,
        });
        empty.into_iter().chain(parts)
    }
}
