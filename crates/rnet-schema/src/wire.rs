//! The protobuf wire format, as far as it can be parsed without a type: records of a number and a value.
//!
//! prost decodes it too, but reports neither the error offset nor the number of values; both are needed for
//! untrusted bytes. The format is that of <https://protobuf.dev/programming-guides/encoding/>.

use prost::encoding::{WireType, decode_varint, encode_key, encode_varint};

/// Offset from the start of the message, and the fault.
pub(crate) type Fault = (usize, String);

/// Maximum nesting of skipped unknown groups.
const MAX_SKIPPED_GROUP_DEPTH: usize = 64;

/// The wire type of a kind of field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WireKind {
    Varint,
    Fixed32,
    Fixed64,
    Len,
}

/// A record, or the end of the group with this number.
enum Item<'a> {
    Record(Record<'a>),
    End(u32),
}

/// Iterates over the records of one message.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// Offset of `bytes` in the whole message.
    base: usize,
    at: usize,
    /// Offset of the last record in `bytes`.
    start: usize,
}

/// One record: a field number and its wire value.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) number: u32,
    pub(crate) value: WireValue<'a>,
    /// The bytes of the record, including the key.
    pub(crate) raw: &'a [u8],
}

#[derive(Clone, Copy)]
pub(crate) enum WireValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// A string, bytes, a message or packed numbers.
    Bytes(Body<'a>),
    /// The content of a group.
    Group(Body<'a>),
}

/// Bytes, and their offset in the whole message.
pub(crate) type Body<'a> = (&'a [u8], usize);

impl WireValue<'_> {
    /// The wire type, for error texts.
    pub(crate) fn wire_type(&self) -> &'static str {
        match self {
            Self::Varint(_) => "a varint",
            Self::Fixed64(_) => "8 fixed bytes",
            Self::Fixed32(_) => "4 fixed bytes",
            Self::Bytes(_) => "a length-delimited value",
            Self::Group(_) => "a group",
        }
    }
}

impl<'a> Reader<'a> {
    /// A reader for these bytes.
    pub(crate) fn new((bytes, base): Body<'a>) -> Self {
        Self { bytes, base, at: 0, start: 0 }
    }

    /// Offset of the last record in the whole message.
    pub(crate) fn record_offset(&self) -> usize {
        self.base + self.start
    }

    fn fault(&self, why: &str) -> Fault {
        (self.base + self.at, why.to_owned())
    }

    /// Offset of the next record in the whole message.
    pub(crate) fn offset(&self) -> usize {
        self.base + self.at
    }

    /// A varint of up to ten bytes.
    fn varint(&mut self) -> Result<u64, Fault> {
        let mut rest = &self.bytes[self.at..];
        let len = rest.len();
        let value = decode_varint(&mut rest).map_err(|_| match len < 10 {
            true => self.fault("a varint is truncated"),
            false => self.fault("a varint is longer than 64 bits"),
        })?;
        self.at += len - rest.len();
        Ok(value)
    }

    /// The next `len` bytes.
    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        match self.bytes[self.at..].get(..len) {
            Some(slice) => {
                self.at += len;
                Ok(slice)
            }
            None => Err(self.fault("a value is longer than the rest of the message")),
        }
    }

    fn fixed<const LEN: usize>(&mut self) -> Result<[u8; LEN], Fault> {
        let mut bytes = [0; LEN];
        bytes.copy_from_slice(self.take(LEN)?);
        Ok(bytes)
    }

    fn key(&mut self) -> Result<(u32, u8), Fault> {
        self.start = self.at;
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|n| (1..=0x1fff_ffff).contains(n));
        match number {
            Some(number) => Ok((number, (key & 7) as u8)),
            None => {
                self.at = self.start;
                Err(self.fault("a field number is outside 1 to 536870911"))
            }
        }
    }

    /// The next record, or `None` at the end.
    pub(crate) fn next_record(&mut self) -> Result<Option<Record<'a>>, Fault> {
        match self.next_item(0)? {
            None => Ok(None),
            Some(Item::Record(record)) => Ok(Some(record)),
            Some(Item::End(_)) => Err(self.fault("a group ends that never started")),
        }
    }

    /// The next record inside `groups` nested groups.
    fn next_item(&mut self, groups: usize) -> Result<Option<Item<'a>>, Fault> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let (number, wire_type) = self.key()?;
        let start = self.start;
        let value = match wire_type {
            0 => WireValue::Varint(self.varint()?),
            1 => WireValue::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => {
                let len = self.varint()?;
                let offset = self.base + self.at;
                let body = self.take(usize::try_from(len).unwrap_or(usize::MAX))?;
                WireValue::Bytes((body, offset))
            }
            3 if groups == MAX_SKIPPED_GROUP_DEPTH => {
                return Err(self.fault("groups are nested more than 64 deep"));
            }
            3 => {
                let from = self.at;
                loop {
                    match self.next_item(groups + 1)? {
                        Some(Item::Record(_)) => {}
                        Some(Item::End(end)) if end == number => break,
                        Some(Item::End(_)) => {
                            return Err(self.fault("a group ends before its inner group"));
                        }
                        None => return Err(self.fault("a group is not terminated")),
                    }
                }
                let body = &self.bytes[from..self.start];
                self.start = start;
                WireValue::Group((body, self.base + from))
            }
            4 => return Ok(Some(Item::End(number))),
            5 => WireValue::Fixed32(u32::from_le_bytes(self.fixed()?)),
            _ => return Err(self.fault("wire types 6 and 7 do not exist")),
        };
        let raw = &self.bytes[start..self.at];
        Ok(Some(Item::Record(Record { number, value, raw })))
    }
}

/// The number of packed values in `body`, and the value at index `wanted`.
pub(crate) fn packed(
    wire: WireKind,
    (body, offset): Body<'_>,
    wanted: Option<usize>,
) -> Result<(usize, Option<u64>), Fault> {
    let size = match wire {
        WireKind::Fixed32 => 4,
        WireKind::Fixed64 => 8,
        WireKind::Varint | WireKind::Len => {
            let (mut reader, mut count, mut found) = (Reader::new((body, offset)), 0, None);
            while reader.at < body.len() {
                let value = reader.varint()?;
                found = found.or((wanted == Some(count)).then_some(value));
                count += 1;
            }
            return Ok((count, found));
        }
    };
    if !body.len().is_multiple_of(size) {
        let why =
            format!("{} bytes are not a whole number of packed values of {size} bytes", body.len());
        return Err((offset, why));
    }
    let found = wanted.and_then(|wanted| body.chunks_exact(size).nth(wanted)).map(|bytes| {
        let mut value = [0; 8];
        value[..size].copy_from_slice(bytes);
        u64::from_le_bytes(value)
    });
    Ok((body.len() / size, found))
}

/// Appends a length-delimited record.
pub(crate) fn put_len_record(number: u32, body: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(body.len() as u64, out);
    out.extend_from_slice(body);
}
