//! Encodes and decodes items: kind, length, fields as varints, and bytes to the end of the item.

use super::error::WireError;
use super::item::{Data, Fragment, Item, PlainData, Subscribe};
use super::message::{DeltaState, FLAGS, FOLLOWS, MessageFields, loss_cause};
use super::part::{Document, DocumentPart};
use super::varint;

const HELLO: u8 = 1;
const NODES: u8 = 2;
const ENDPOINTS: u8 = 3;
const NEED_TYPE: u8 = 4;
const TYPE: u8 = 5;
const SUBSCRIBE: u8 = 6;
const UNSUBSCRIBE: u8 = 7;
const CREDIT: u8 = 8;
const GAP: u8 = 9;
const REFUSED: u8 = 10;
const DELIVERY: u8 = 11;
const KNOWN_LOST: u8 = 12;
const ALIVE: u8 = 13;
const WILL: u8 = 14;
/// With the flags of [`MessageFields`].
const DATA: u8 = 0x20;
/// With the flags of [`MessageFields`].
const FRAGMENT: u8 = 0x40;
/// Bit of a mandatory kind.
const CRITICAL: u8 = 0x80;

const RELIABLE: u64 = 1;
const FROM: u64 = 1 << 1;
const WILLS: u64 = 1 << 2;
const CONFIRMS_END: u64 = 1 << 3;

/// The beginning of an item while it is written: space for its kind and length, and its fields.
pub struct ItemHead {
    bytes: [u8; ItemHead::ROOM],
    /// The offset of the next field.
    len: usize,
}

impl ItemHead {
    /// Space for kind and length, which are known after the fields.
    const START: usize = 1 + varint::MAX_LEN;
    /// A `Fragment` with all its fields is the longest: four words, two more and a cause, two lengths.
    const ROOM: usize = ItemHead::START + 10 * varint::MAX_LEN;

    #[inline]
    fn new() -> ItemHead {
        ItemHead { bytes: [0; ItemHead::ROOM], len: ItemHead::START }
    }

    /// Everything before the `tail_len` bytes of the item.
    #[inline]
    fn finish(&mut self, kind: u8, tail_len: usize) -> &[u8] {
        let len = (self.len - ItemHead::START + tail_len) as u64;
        let begin = ItemHead::START - 1 - varint::len(len);
        self.bytes[begin] = kind;
        varint::put(&mut self.bytes[begin + 1..], len);
        &self.bytes[begin..self.len]
    }

    #[inline]
    pub fn put(&mut self, value: u64) {
        self.len += varint::put(&mut self.bytes[self.len..], value);
    }

    fn put_hash(&mut self, hash: u128) {
        self.bytes[self.len..self.len + 16].copy_from_slice(&hash.to_le_bytes());
        self.len += 16;
    }
}

/// The fields of an item while they are read, and the bytes after them.
pub struct ItemFields<'a> {
    pub kind: u8,
    rest: &'a [u8],
}

impl<'a> ItemFields<'a> {
    #[inline]
    pub fn word(&mut self) -> Result<u64, WireError> {
        varint::take(&mut self.rest).ok_or(WireError::Truncated(self.kind))
    }

    /// A number that has to fit into 32 bits.
    #[inline]
    pub fn number(&mut self, field: &'static str) -> Result<u32, WireError> {
        let word = self.word()?;
        u32::try_from(word).map_err(|_| self.wrong(field))
    }

    pub fn wrong(&self, field: &'static str) -> WireError {
        WireError::InvalidField { kind: self.kind, field }
    }

    fn hash(&mut self) -> Result<u128, WireError> {
        let (hash, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated(self.kind))?;
        self.rest = rest;
        Ok(u128::from_le_bytes(*hash))
    }
}

/// Writes the items of one frame.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    before: DeltaState,
}

impl Encoder {
    /// Appends an item to a frame. All items of a frame must go through one encoder, and those of another
    /// frame through a new one.
    #[inline]
    pub fn encode(&mut self, item: &Item<'_>, out: &mut Vec<u8>) {
        let mut head = ItemHead::new();
        let (kind, tail): (u8, &[u8]) = match *item {
            Item::Data(Data { channel, seq, sent_ns, meta, payload, compressed }) => {
                let message = MessageFields { channel, seq, sent_ns, meta, compressed };
                (DATA | message.put(&mut self.before, &mut head), payload)
            }
            Item::Fragment(Fragment {
                channel,
                seq,
                sent_ns,
                meta,
                total,
                offset,
                bytes,
                compressed,
            }) => {
                let message = MessageFields { channel, seq, sent_ns, meta, compressed };
                let flags = message.put(&mut self.before, &mut head);
                head.put(total);
                head.put(offset);
                (FRAGMENT | flags, bytes)
            }
            Item::DocumentPart(part) => (put_part(&mut head, part), part.bytes),
            Item::NeedType { hash } => {
                head.put_hash(hash);
                (NEED_TYPE, &[])
            }
            Item::Subscribe(want) => (put_subscribe(&mut head, want), &[]),
            Item::Unsubscribe { channel } => {
                head.put(u64::from(channel));
                (UNSUBSCRIBE, &[])
            }
            Item::Credit { channel, read } => {
                head.put(u64::from(channel));
                head.put(read);
                (CREDIT, &[])
            }
            Item::Delivery { channel, subscription, active } => {
                head.put(u64::from(channel));
                head.put(subscription);
                head.put(u64::from(active));
                (DELIVERY, &[])
            }
            Item::Gap { channel, seq, count, cause } => {
                head.put(u64::from(channel));
                head.put(seq);
                head.put(count);
                head.put(cause as u64);
                (GAP, &[])
            }
            Item::KnownLost { channel, known } => {
                head.put(u64::from(channel));
                known.into_iter().for_each(|count| head.put(count));
                (KNOWN_LOST, &[])
            }
            Item::Alive { channel } => {
                head.put(u64::from(channel));
                (ALIVE, &[])
            }
            Item::Will { channel, message } => {
                head.put(u64::from(channel));
                head.put(u64::from(message.is_some()));
                (WILL, message.unwrap_or_default())
            }
        };
        out.extend_from_slice(head.finish(kind, tail.len()));
        out.extend_from_slice(tail);
    }

    /// Like [`Encoder::encode`], for a message with the common fields only: in the common case kind, length
    /// and time fit into one word.
    #[inline]
    pub fn encode_plain(&mut self, plain: PlainData<'_>, out: &mut Vec<u8>) {
        let PlainData { channel, seq, sent_ns, payload } = plain;
        if !self.before.advance_if_next(channel, seq) {
            return self.encode(&Item::Data(plain.into()), out);
        }
        let time = self.before.encode_time(sent_ns);
        let len = (varint::len(time) + payload.len()) as u64;
        out.reserve(1 + 2 * varint::MAX_LEN + payload.len());
        match varint::pair(len, time) {
            Some((word, used)) => {
                let begin = out.len();
                out.push(DATA | FOLLOWS);
                out.extend_from_slice(&word.to_le_bytes());
                out.truncate(begin + 1 + used);
            }
            None => {
                let mut head = [0; 2 * varint::MAX_LEN];
                let used = varint::put(&mut head, len);
                let used = used + varint::put(&mut head[used..], time);
                out.push(DATA | FOLLOWS);
                out.extend_from_slice(&head[..used]);
            }
        }
        out.extend_from_slice(payload);
    }
}

fn put_part(head: &mut ItemHead, part: DocumentPart<'_>) -> u8 {
    let kind = match part.of {
        Document::Hello => HELLO,
        Document::Nodes => NODES,
        Document::Endpoints => ENDPOINTS,
        Document::Type(hash) => {
            head.put_hash(hash);
            TYPE
        }
        Document::Refused => REFUSED,
    };
    head.put(u64::from(part.total));
    head.put(u64::from(part.offset));
    kind
}

fn put_subscribe(head: &mut ItemHead, want: Subscribe) -> u8 {
    head.put(u64::from(want.channel));
    head.put(want.publisher);
    let bit = |yes: bool, bit: u64| if yes { bit } else { 0 };
    let from = bit(want.from.is_some(), FROM);
    let confirms_end = bit(want.confirms_end, CONFIRMS_END);
    head.put(bit(want.reliable, RELIABLE) | from | bit(want.wills, WILLS) | confirms_end);
    head.put(want.transient_local);
    head.put(want.credit);
    if let Some(from) = want.from {
        head.put(from);
    }
    SUBSCRIBE
}

/// The items of a frame. The iteration stops after an error.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    rest: &'a [u8],
    before: DeltaState,
}

impl<'a> Items<'a> {
    /// Reads the bytes after a frame's header.
    pub fn new(items: &'a [u8]) -> Self {
        Self { rest: items, before: DeltaState::default() }
    }

    /// The next item, if it is a message that follows the previous one on its channel and has no metadata.
    /// `None` has no further meaning.
    #[inline]
    pub fn next_plain(&mut self) -> Option<PlainData<'a>> {
        let (&kind, mut rest) = self.rest.split_first()?;
        if kind != DATA | FOLLOWS {
            return None;
        }
        let len = usize::try_from(varint::take(&mut rest)?).ok()?;
        let (mut payload, rest) = rest.split_at_checked(len)?;
        let distance = varint::take(&mut payload)?;
        let (channel, seq, sent_ns) = self.before.decode_next(distance)?;
        self.rest = rest;
        Some(PlainData { channel, seq, sent_ns, payload })
    }

    /// The next item, if it is a message that follows the previous one on its channel.
    pub fn next_following(&mut self) -> Option<Result<Data<'a>, WireError>> {
        let kind = *self.rest.first()?;
        if kind & !FLAGS != DATA || kind & FOLLOWS == 0 {
            return None;
        }
        match self.next()? {
            Ok(Item::Data(data)) => Some(Ok(data)),
            // Unreachable: its kind is that of a message.
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// The next item, or `None` for one of a later version.
    #[inline]
    fn read(&mut self) -> Result<Option<Item<'a>>, WireError> {
        let kind = self.rest[0];
        let mut rest = &self.rest[1..];
        let len = varint::take(&mut rest).ok_or(WireError::Truncated(kind))?;
        let len = usize::try_from(len).map_err(|_| WireError::Truncated(kind))?;
        let (body, rest) = rest.split_at_checked(len).ok_or(WireError::Truncated(kind))?;
        self.rest = rest;
        let mut fields = ItemFields { kind, rest: body };
        match kind & !FLAGS {
            DATA => {
                let message = MessageFields::take(&mut self.before, &mut fields)?;
                let MessageFields { channel, seq, sent_ns, meta, compressed } = message;
                let payload = fields.rest;
                Ok(Some(Item::Data(Data { channel, seq, sent_ns, meta, payload, compressed })))
            }
            FRAGMENT => {
                let message = MessageFields::take(&mut self.before, &mut fields)?;
                let MessageFields { channel, seq, sent_ns, meta, compressed } = message;
                let (total, offset) = (fields.word()?, fields.word()?);
                let bytes = fields.rest;
                Ok(Some(Item::Fragment(Fragment {
                    channel,
                    seq,
                    sent_ns,
                    meta,
                    total,
                    offset,
                    bytes,
                    compressed,
                })))
            }
            _ => read_other(fields),
        }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            match self.read() {
                Ok(Some(item)) => return Some(Ok(item)),
                Ok(None) => {}
                Err(error) => {
                    self.rest = &[];
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// Reads an item that is not a message. Bytes after the last field belong to a later version.
fn read_other(mut fields: ItemFields<'_>) -> Result<Option<Item<'_>>, WireError> {
    let fields = &mut fields;
    Ok(Some(match fields.kind {
        HELLO => read_part(Document::Hello, fields)?,
        NODES => read_part(Document::Nodes, fields)?,
        ENDPOINTS => read_part(Document::Endpoints, fields)?,
        REFUSED => read_part(Document::Refused, fields)?,
        TYPE => {
            let hash = fields.hash()?;
            read_part(Document::Type(hash), fields)?
        }
        NEED_TYPE => Item::NeedType { hash: fields.hash()? },
        SUBSCRIBE => {
            let (channel, publisher) = (fields.number("channel")?, fields.word()?);
            let flags = fields.word()?;
            let (transient_local, credit) = (fields.word()?, fields.word()?);
            let from = if flags & FROM != 0 { Some(fields.word()?) } else { None };
            Item::Subscribe(Subscribe {
                channel,
                publisher,
                from,
                reliable: flags & RELIABLE != 0,
                transient_local,
                credit,
                wills: flags & WILLS != 0,
                confirms_end: flags & CONFIRMS_END != 0,
            })
        }
        UNSUBSCRIBE => Item::Unsubscribe { channel: fields.number("channel")? },
        CREDIT => Item::Credit { channel: fields.number("channel")?, read: fields.word()? },
        DELIVERY => Item::Delivery {
            channel: fields.number("channel")?,
            subscription: fields.word()?,
            active: fields.word()? != 0,
        },
        GAP => Item::Gap {
            channel: fields.number("channel")?,
            seq: fields.word()?,
            count: fields.word()?,
            cause: loss_cause(fields.word()?),
        },
        KNOWN_LOST => Item::KnownLost {
            channel: fields.number("channel")?,
            known: [fields.word()?, fields.word()?, fields.word()?, fields.word()?],
        },
        ALIVE => Item::Alive { channel: fields.number("channel")? },
        WILL => {
            let (channel, there) = (fields.number("channel")?, fields.word()? != 0);
            Item::Will { channel, message: there.then_some(fields.rest) }
        }
        kind if kind & CRITICAL != 0 => return Err(WireError::UnknownKind(kind)),
        _ => return Ok(None),
    }))
}

fn read_part<'a>(of: Document, fields: &mut ItemFields<'a>) -> Result<Item<'a>, WireError> {
    let (total, offset) = (fields.number("total")?, fields.number("offset")?);
    Ok(Item::DocumentPart(DocumentPart { of, total, offset, bytes: fields.rest }))
}
