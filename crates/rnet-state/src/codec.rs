//! Conversion between Rust types and stored values.

use rnet_core::{Error, Result};
use rnet_shm::state::Record;

use super::encode::{self, Packed, kind};
use super::shared::StateShared;
use super::value::Value;

/// A Rust type for values of keys: `bool`, the integers, the floats, `String`, `Vec<u8>`, [`Value`].
///
/// Integers of every size are stored as one type, and so are floats.
pub trait StateType: sealed::Codec + Sized + Send + 'static {}

impl StateShared {
    pub(super) fn typed<T: sealed::Codec>(&self, record: &Record) -> Result<T> {
        T::read(self, record)
    }
}

/// The encoding of a [`StateType`]; private to this crate.
pub mod sealed {
    use super::*;

    /// See [`StateType`].
    pub trait Codec: Sized {
        /// The kind of its values.
        const KIND: u16;
        /// Parses the bytes of a value of this kind; the error states the fault.
        fn parse(bytes: &[u8]) -> std::result::Result<Self, String>;
        /// Kind and bytes, if they represent it completely.
        fn pack(&self) -> Option<(u16, Packed<'_>)>;
        /// Converts it to a value.
        fn to_value(&self) -> Value;

        /// Converts a record.
        #[inline]
        fn read(shared: &StateShared, record: &Record) -> Result<Self> {
            if record.kind != Self::KIND {
                return Err(other_type(
                    record.key(),
                    shared.holds_text(record.kind, record.type_id),
                    Self::KIND,
                ));
            }
            Self::parse(record.value()).map_err(|why| StateShared::bad_record(record, why))
        }

        /// Converts a value that is not written yet.
        fn from_value(key: &str, value: &Value) -> Result<Self> {
            if encode::kind_of(value) != Self::KIND {
                return Err(other_type(key, value.type_text(), Self::KIND));
            }
            encode::encode(value)
                .and_then(|bytes| Self::parse(&bytes))
                .map_err(|why| Error::bad_value(format!("value of {key}"), why))
        }
    }
}

#[cold]
fn other_type(key: &str, holds: String, given: u16) -> Error {
    let given = encode::kind_text(given).to_owned();
    Error::StateType { key: key.to_owned(), holds, given }
}

macro_rules! codec {
    ($type:ty, $kind:expr, |$bytes:ident| $parse:expr, |$value:ident| $pack:expr) => {
        impl StateType for $type {}
        impl sealed::Codec for $type {
            const KIND: u16 = $kind;
            #[inline]
            fn parse($bytes: &[u8]) -> std::result::Result<Self, String> {
                $parse
            }
            #[inline]
            fn pack(&self) -> Option<(u16, Packed<'_>)> {
                let $value = self;
                Some(($kind, $pack))
            }
            fn to_value(&self) -> Value {
                Value::from(self.clone())
            }
        }
    };
}

macro_rules! integers {
    ($($type:ty),+) => {$(
        codec!(
            $type,
            kind::INT,
            |bytes| {
                let value = i64::from_le_bytes(encode::eight_bytes(kind::INT, bytes)?);
                <$type>::try_from(value)
                    .map_err(|_| format!("{value} does not fit into {}", stringify!($type)))
            },
            |value| Packed::int(i64::from(*value))
        );
    )+};
}

integers!(i8, i16, i32, i64, u8, u16, u32);

codec!(bool, kind::BOOL, |bytes| encode::boolean(bytes), |value| Packed::bool(*value));
codec!(
    f64,
    kind::FLOAT,
    |bytes| Ok(f64::from_le_bytes(encode::eight_bytes(kind::FLOAT, bytes)?)),
    |value| Packed::float(*value)
);
codec!(
    f32,
    kind::FLOAT,
    |bytes| Ok(f64::from_le_bytes(encode::eight_bytes(kind::FLOAT, bytes)?) as f32),
    |value| Packed::float(f64::from(*value))
);
codec!(
    String,
    kind::STR,
    |bytes| encode::text(bytes).map(str::to_owned),
    |value| Packed::Borrowed(value.as_bytes())
);
codec!(Vec<u8>, kind::BYTES, |bytes| Ok(bytes.to_vec()), |value| Packed::Borrowed(value));

impl StateType for Value {}
impl sealed::Codec for Value {
    const KIND: u16 = 0;
    fn parse(_: &[u8]) -> std::result::Result<Self, String> {
        Err("bytes alone do not determine the type of the value".to_owned())
    }
    fn pack(&self) -> Option<(u16, Packed<'_>)> {
        None
    }
    fn to_value(&self) -> Value {
        self.clone()
    }
    fn read(shared: &StateShared, record: &Record) -> Result<Self> {
        shared.value_of(record)
    }
    fn from_value(_: &str, value: &Value) -> Result<Self> {
        Ok(value.clone())
    }
}
