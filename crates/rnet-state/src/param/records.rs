//! Parameters and descriptions as they stand in the region.

use rnet_core::{Error, Result};
use rnet_shm::state::{Record, StoredValue};

use super::description::ParamDescription;
use crate::Value;
use crate::encode::{self, Packed, kind};

/// The value of these bytes; `None` if there is none, or it is a message, which no parameter is.
pub(crate) fn value(kind: u16, bytes: &[u8]) -> Option<Value> {
    encode::decode(kind, bytes).ok()
}

/// The value that a record holds, likewise.
pub(crate) fn value_of(record: &Record) -> Option<Value> {
    value(record.kind, record.value())
}

/// The description that a record holds, or what is wrong with it.
pub(crate) fn description(record: &Record) -> Result<ParamDescription, String> {
    if record.kind != kind::JSON {
        return Err("it is not JSON".to_owned());
    }
    description_in(record.value())
}

/// The description in these bytes, or what is wrong with it.
pub(crate) fn description_in(bytes: &[u8]) -> Result<ParamDescription, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    ParamDescription::from_json(text)
}

/// A description as it is stored.
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
    /// Those of `value`.
    pub(crate) fn of(value: &Value) -> Result<EncodedValue<'_>> {
        let bytes = encode::encode(value);
        let bytes = bytes.map_err(|why| Error::bad_value("parameter", why))?;
        Ok(EncodedValue { kind: encode::kind_of(value), bytes })
    }

    /// As they are stored.
    pub(crate) fn stored(&self) -> StoredValue<'_> {
        stored(self.kind, &self.bytes)
    }
}
