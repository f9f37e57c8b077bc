//! What stands in a frame behind its header.

use rnet::{LossCause, Meta};

use super::part::DocumentPart;

/// One thing that a link tells another. A **channel** is a number that the side that wants gives to one
/// publisher, for the life of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A document, or a part of one.
    DocumentPart(DocumentPart<'a>),
    /// To the owner of a type: its descriptor set is needed.
    NeedType {
        /// Fingerprint of its structure.
        hash: u128,
    },
    /// To the owner: messages of a publisher are wanted.
    Subscribe(Subscribe),
    /// To the owner: they no longer are.
    Unsubscribe {
        /// The channel, which ends.
        channel: u32,
    },
    /// To the owner: how much it may send.
    Credit {
        /// The channel.
        channel: u32,
        /// Bytes of payload read since the channel began, a sum, so that a repeated one does no harm.
        read: u64,
    },
    /// To the owner: a subscription here gets what the channel carries, or no longer does; the owner counts it.
    Delivery {
        /// The channel.
        channel: u32,
        /// Id of the subscription, on the side that wants.
        subscription: u64,
        /// Whether it gets the messages.
        active: bool,
    },
    /// A message.
    Data(Data<'a>),
    /// A part of a large one.
    Fragment(Fragment<'a>),
    /// Messages that will not come.
    Gap {
        /// The channel.
        channel: u32,
        /// Sequence number of the first of them.
        seq: u64,
        /// How many they are.
        count: u64,
        /// Why; one that is not known here arrives as [`LossCause::Link`].
        cause: LossCause,
    },
    /// What the publisher itself knows to be missing, without sequence numbers.
    KnownLost {
        /// The channel.
        channel: u32,
        /// How many, in all of the publisher's life, by cause in the order of [`LossCause::ALL`]. Gaps that came
        /// with messages are among them.
        known: [u64; 4],
    },
    /// The publisher has asserted that it is alive.
    Alive {
        /// The channel.
        channel: u32,
    },
    /// The publisher has another last will than was told before.
    Will {
        /// The channel.
        channel: u32,
        /// The message; `None` if it has none any more.
        message: Option<&'a [u8]>,
    },
}

/// Messages of a publisher are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe {
    /// The channel on which they are to come.
    pub channel: u32,
    /// Id of the publisher, on its host.
    pub publisher: u64,
    /// From which sequence number on; `None` for those that are sent from now on.
    pub from: Option<u64>,
    /// Whether the publisher is to wait for them to be read.
    pub reliable: bool,
    /// How many that were sent earlier are wanted, without `from`; 0 for none.
    pub transient_local: u64,
    /// How many bytes of payload may be sent before the first [`Item::Credit`].
    pub credit: u64,
    /// Whether last wills are to come as [`Item::Will`]; without, one comes as the last message.
    pub wills: bool,
    /// Whether [`Item::Unsubscribe`] follows the end of a reliable channel, once all that it has brought was published.
    pub confirms_end: bool,
}

/// A message that carries nothing beside its payload, and crosses as it is.
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
    /// What it carries beside its content. Its origin is the channel's and does not cross.
    pub meta: Meta,
    /// Its bytes.
    pub payload: &'a [u8],
    /// Whether these have to go through [`decompress`](super::decompress).
    pub compressed: bool,
}

/// A part of a message that is too long for a frame. The fragments of a message follow each other in their
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
    /// Length of the whole, in bytes, as it crosses.
    pub total: u64,
    /// Where this fragment begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether the whole, when it is there, has to go through [`decompress`](super::decompress).
    pub compressed: bool,
}
