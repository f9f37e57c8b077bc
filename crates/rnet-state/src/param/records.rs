//! Parameters and descriptions as stored in the region.

use rnet_core::{Error, Result};
use rnet_shm::state::{Record, StoredValue};

use super::description::ParamDescription;
use crate::Value;
use crate::encode::{self, Packed, kind};

/// Decodes a value; `None` if the bytes are invalid, or a message, which cannot be a parameter.
pub(crate) fn value(kind: u16, bytes: &[u8]) -> Option<Value> {
    encode::decode(kind, bytes).ok()
}

/// Decodes the value of a record; `None` as for [`value`].
pub(crate) fn value_of(record: &Record) -> Option<Value> {
    value(record.kind, record.value())
}

/// Parses the description in a record; the error states the fault.
pub(crate) fn description(record: &Record) -> Result<ParamDescription, String> {
    if record.kind != kind::JSON {
        return Err("it is not JSON".to_owned());
    }
    description_in(record.value())
}

/// Parses a description; the error states the fault.
pub(crate) fn description_in(bytes: &[u8]) -> Result<ParamDescription, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    ParamDescription::from_json(text)
}

/// A description in its stored form.
pub(crate) fn json(text: &str) -> StoredValue<'_> {
    stored(kind::JSON, text.as_bytes())
}

fn stored(kind: u16, bytes: &[u8]) -> StoredValue<'_> {
    StoredValue { kind, type_id: 0, bytes, will: None, expires_boot_ns: 0 }
}

/// The bytes of a parameter's value.
pub(crate) struct EncodedValue<'a> {
    kind: u16,
    bytes: Packed<'a>,
}

impl EncodedValue<'_> {
    /// Encodes `value`.
    pub(crate) fn of(value: &Value) -> Result<EncodedValue<'_>> {
        let bytes = encode::encode(value);
        let bytes = bytes.map_err(|why| Error::bad_value("parameter", why))?;
        Ok(EncodedValue { kind: encode::kind_of(value), bytes })
    }

    /// The bytes in their stored form.
    pub(crate) fn stored(&self) -> StoredValue<'_> {
        stored(self.kind, &self.bytes)
    }
}
