//! The items of a frame, after its header.

use rnet::{LossCause, Meta};

use super::part::DocumentPart;

/// One item of a frame. A **channel** is a number that the requesting side assigns to one publisher, for
/// the life of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A document, or a part of one.
    DocumentPart(DocumentPart<'a>),
    /// To the owner of a type: requests its descriptor set.
    NeedType {
        /// Fingerprint of its structure.
        hash: u128,
    },
    /// To the owner: requests messages of a publisher.
    Subscribe(Subscribe),
    /// To the owner: ends the request.
    Unsubscribe {
        /// The channel, which ends.
        channel: u32,
    },
    /// To the owner: how much it may send.
    Credit {
        /// The channel.
        channel: u32,
        /// Bytes of payload read since the channel began. It is a sum, so that a repeated item does no
        /// harm.
        read: u64,
    },
    /// To the owner: a subscription here starts or stops receiving the channel; the owner counts it.
    Delivery {
        /// The channel.
        channel: u32,
        /// Id of the subscription, on the requesting side.
        subscription: u64,
        /// Whether it receives the messages.
        active: bool,
    },
    /// A message.
    Data(Data<'a>),
    /// A part of a large message.
    Fragment(Fragment<'a>),
    /// Messages that will not arrive.
    Gap {
        /// The channel.
        channel: u32,
        /// Sequence number of the first of them.
        seq: u64,
        /// Their number.
        count: u64,
        /// The cause; one that is unknown here arrives as [`LossCause::Link`].
        cause: LossCause,
    },
    /// Losses that the publisher itself knows of, without sequence numbers.
    KnownLost {
        /// The channel.
        channel: u32,
        /// Their number in all of the publisher's life, by cause in the order of [`LossCause::ALL`]. It
        /// includes gaps that came with messages.
        known: [u64; 4],
    },
    /// The publisher has asserted its liveliness.
    Alive {
        /// The channel.
        channel: u32,
    },
    /// The publisher has changed its last will.
    Will {
        /// The channel.
        channel: u32,
        /// The message; `None` if it has no last will any more.
        message: Option<&'a [u8]>,
    },
}

/// A request for messages of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe {
    /// The channel for the messages.
    pub channel: u32,
    /// Id of the publisher, on its host.
    pub publisher: u64,
    /// The first sequence number; `None` for messages that are sent from now on.
    pub from: Option<u64>,
    /// Whether the publisher has to wait until they are read.
    pub reliable: bool,
    /// How many earlier messages are requested, without `from`; 0 for none.
    pub transient_local: u64,
    /// How many bytes of payload may be sent before the first [`Item::Credit`].
    pub credit: u64,
    /// Whether last wills come as [`Item::Will`]; otherwise one comes as the last message.
    pub wills: bool,
    /// Whether [`Item::Unsubscribe`] follows the end of a reliable channel, once all its messages were
    /// published.
    pub confirms_end: bool,
}

/// A message without metadata that crosses uncompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainData<'a> {
    /// The channel.
    pub channel: u32,
    /// Its number at its publisher.
    pub seq: u64,
    /// When it was published, ns of the owner's `CLOCK_MONOTONIC`.
    pub sent_ns: u64,
    /// Its bytes.
    pub payload: &'a [u8],
}

impl<'a> From<PlainData<'a>> for Data<'a> {
    fn from(PlainData { channel, seq, sent_ns, payload }: PlainData<'a>) -> Data<'a> {
        Data { channel, seq, sent_ns, meta: Meta::default(), payload, compressed: false }
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// The channel.
    pub channel: u32,
    /// Its number at its publisher.
    pub seq: u64,
    /// When it was published, ns of the owner's `CLOCK_MONOTONIC`.
    pub sent_ns: u64,
    /// Its metadata. Its origin is the channel's and does not cross.
    pub meta: Meta,
    /// Its bytes.
    pub payload: &'a [u8],
    /// Whether the bytes need [`decompress`](super::decompress).
    pub compressed: bool,
}

/// A part of a message that is too long for a frame. The fragments of a message follow each other on their
/// channel, from its beginning on, with no other message of the channel between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The channel.
    pub channel: u32,
    /// The message's number at its publisher.
    pub seq: u64,
    /// When it was published, ns of the owner's `CLOCK_MONOTONIC`.
    pub sent_ns: u64,
    /// As in [`Data::meta`]; that of the first fragment counts.
    pub meta: Meta,
    /// Length of the whole message as it crosses, in bytes.
    pub total: u64,
    /// The offset of this fragment.
    pub offset: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether the whole message needs [`decompress`](super::decompress) once complete.
    pub compressed: bool,
}
