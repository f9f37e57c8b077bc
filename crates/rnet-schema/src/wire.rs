//! The wire format of protobuf, as far as it can be read without a type: records of a number and a value.
//!
//! prost reads it too, but says neither where it stopped nor how much it would have to build; both are wanted of bytes that
//! come from elsewhere. The format is that of <https://protobuf.dev/programming-guides/encoding/>.

/// Offset from the start of the whole, and what is wrong there.
pub(crate) type Fault = (usize, &'static str);

/// How deep groups of unknown fields may be nested when they are skipped.
const MAX_SKIPPED_GROUP_DEPTH: usize = 64;

/// Walks the records of one message.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// Where `bytes` starts in the whole.
    base: usize,
    at: usize,
    /// Where the last record starts in `bytes`.
    start: usize,
}

/// One record: a field number and its value as it stands on the wire.
#[derive(Clone, Copy)]
pub(crate) enum Record<'a> {
    Varint {
        number: u32,
        value: u64,
    },
    Fixed64 {
        number: u32,
        value: u64,
    },
    Fixed32 {
        number: u32,
        value: u32,
    },
    /// A string, bytes, a message or packed numbers. `offset` is that of the body in the whole.
    Bytes {
        number: u32,
        body: &'a [u8],
        offset: usize,
    },
    /// What stands between the start and the end of a group. `offset` is that of the body in the whole.
    Group {
        number: u32,
        body: &'a [u8],
        offset: usize,
    },
}

impl<'a> Record<'a> {
    pub(crate) fn number(&self) -> u32 {
        match *self {
            Self::Varint { number, .. }
            | Self::Fixed64 { number, .. }
            | Self::Fixed32 { number, .. }
            | Self::Bytes { number, .. }
            | Self::Group { number, .. } => number,
        }
    }

    /// The wire type in words.
    pub(crate) fn wire_type(&self) -> &'static str {
        match self {
            Self::Varint { .. } => "a varint",
            Self::Fixed64 { .. } => "8 fixed bytes",
            Self::Fixed32 { .. } => "4 fixed bytes",
            Self::Bytes { .. } => "a length-delimited value",
            Self::Group { .. } => "a group",
        }
    }

    /// The bytes of the record that `reader` read last, key included.
    pub(crate) fn raw(&self, reader: &Reader<'a>) -> &'a [u8] {
        &reader.bytes[reader.start..reader.at]
    }
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which start `base` bytes into the whole.
    pub(crate) fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, base, at: 0, start: 0 }
    }

    /// Where the last record starts in the whole.
    pub(crate) fn record_offset(&self) -> usize {
        self.base + self.start
    }

    fn fault(&self, why: &'static str) -> Fault {
        (self.base + self.at, why)
    }

    /// Where the next record starts in the whole.
    pub(crate) fn offset(&self) -> usize {
        self.base + self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// A varint of up to ten bytes.
    pub(crate) fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0_u64;
        for (i, &byte) in self.bytes[self.at..].iter().take(10).enumerate() {
            if i == 9 && byte > 1 {
                return Err(self.fault("a varint is longer than 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.at += i + 1;
                return Ok(value);
            }
        }
        Err(self.fault(if self.bytes.len() - self.at < 10 {
            "a varint ends in the middle"
        } else {
            "a varint is longer than 64 bits"
        }))
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        match self.bytes[self.at..].get(..len) {
            Some(slice) => {
                self.at += len;
                Ok(slice)
            }
            None => Err(self.fault("a value is longer than what is left of the message")),
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
                Err(self.fault("a field number is outside of 1 to 536870911"))
            }
        }
    }

    /// The next record, or `None` at the end.
    pub(crate) fn next_record(&mut self) -> Result<Option<Record<'a>>, Fault> {
        if self.is_at_end() {
            return Ok(None);
        }
        let (number, wire_type) = self.key()?;
        Ok(Some(match wire_type {
            0 => Record::Varint { number, value: self.varint()? },
            1 => Record::Fixed64 { number, value: u64::from_le_bytes(self.fixed()?) },
            2 => {
                let len = self.varint()?;
                let offset = self.base + self.at;
                let body = self.take(usize::try_from(len).unwrap_or(usize::MAX))?;
                Record::Bytes { number, body, offset }
            }
            3 => {
                let (from, start) = (self.at, self.start);
                let end = self.skip_group(number)?;
                self.start = start;
                let body = &self.bytes[from..end];
                Record::Group { number, body, offset: self.base + from }
            }
            4 => return Err(self.fault("a group ends that never began")),
            5 => Record::Fixed32 { number, value: u32::from_le_bytes(self.fixed()?) },
            _ => return Err(self.fault("wire types 6 and 7 do not exist")),
        }))
    }

    /// Moves behind the end of the group that has just begun, and gives where its body ends.
    fn skip_group(&mut self, number: u32) -> Result<usize, Fault> {
        let mut open = vec![number];
        loop {
            if self.is_at_end() {
                return Err(self.fault("a group has no end"));
            }
            let (number, wire_type) = self.key()?;
            match wire_type {
                0 => {
                    self.varint()?;
                }
                1 => {
                    self.take(8)?;
                }
                2 => {
                    let len = self.varint()?;
                    self.take(usize::try_from(len).unwrap_or(usize::MAX))?;
                }
                3 if open.len() < MAX_SKIPPED_GROUP_DEPTH => open.push(number),
                3 => return Err(self.fault("groups are nested more than 64 deep")),
                4 => {
                    if open.pop() != Some(number) {
                        return Err(self.fault("a group ends that is not the innermost one"));
                    }
                    if open.is_empty() {
                        return Ok(self.start);
                    }
                }
                5 => {
                    self.take(4)?;
                }
                _ => return Err(self.fault("wire types 6 and 7 do not exist")),
            }
        }
    }
}

/// Appends a length-delimited record.
pub(crate) fn put_len_record(number: u32, body: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | 2, out);
    put_varint(body.len() as u64, out);
    out.extend_from_slice(body);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
