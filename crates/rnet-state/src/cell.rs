//! One key, for loops.

use std::marker::PhantomData;
use std::sync::Arc;

use rnet_core::{Error, Result};
use rnet_shm::state::{Path, Record};

use super::encode::{self, Packed, kind};
use super::shared::StateShared;
use super::{State, Value};
use rnet_node::core::NodeCore;

/// A Rust type that a key may be read as and written from: `bool`, the integers, the floats, `String`, `Vec<u8>`,
/// [`Value`].
///
/// Integers of every size are stored as one type, and so are floats.
pub trait StateType: sealed::Codec + Sized + Send + 'static {}

/// A key that is read and written often: its name is checked once, and neither costs an allocation for numbers.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut settings = rnet_node::NodeSettings::new("arm");
/// # settings.dir = Some(std::env::temp_dir());
/// # settings.domain = Some(format!("cell{}", std::process::id()));
/// # let node = settings.open()?;
/// # let state = rnet_state::State::open(&node, None, None)?;
/// let mut gain = state.cell::<f64>("/arm/gain")?;
/// gain.set(&1.5)?;
/// assert_eq!(gain.get()?, Some(1.5));
/// # let path = node.state.domain.path().to_owned();
/// # drop((gain, state, node));
/// # std::fs::remove_dir_all(path)?;
/// # Ok(()) }
/// ```
pub struct Cell<T> {
    shared: Arc<StateShared>,
    core: Arc<NodeCore>,
    key: Box<str>,
    path: Path,
    record: Record,
    of: PhantomData<fn(T) -> T>,
}

impl<T: StateType> Cell<T> {
    pub(super) fn new(state: &State, key: String) -> Result<Cell<T>> {
        let path = state.shared.region.path(&key)?;
        Ok(Cell {
            path,
            shared: state.shared.clone(),
            core: state.core.clone(),
            key: key.into(),
            record: Record::default(),
            of: PhantomData,
        })
    }

    /// The key, with its leading slash.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value; `None` if the key is absent, or its time is over.
    ///
    /// # Errors
    /// `StateType` if the key holds another type; `BadValue` for a number that the type has no room for.
    pub fn get(&mut self) -> Result<Option<T>> {
        if !self.shared.read_at(&self.path, &mut self.record)? {
            self.record.revision = 0;
            return Ok(None);
        }
        T::read(&self.shared, &self.record).map(Some)
    }

    /// Revision of what [`Cell::get`] has last returned; 0: of nothing.
    pub fn revision(&self) -> u64 {
        self.record.revision
    }

    /// Sets the key; returns the revision of the change.
    ///
    /// # Errors
    /// As [`State::set`].
    pub fn set(&self, value: &T) -> Result<u64> {
        match value.pack() {
            Some((of, bytes)) => self.shared.write_plainly(&self.key, of, &bytes, None),
            None => self.state().set(&self.key, value.to_value()),
        }
    }

    /// Sets the key if it is at this revision ([`Cell::revision`]; 0: if it is absent).
    ///
    /// # Errors
    /// `Conflict` if it is at another one; as [`State::set`].
    pub fn compare_and_set(&self, revision: u64, value: &T) -> Result<u64> {
        match value.pack() {
            Some((of, bytes)) => self.shared.write_plainly(&self.key, of, &bytes, Some(revision)),
            None => self.state().compare_and_set(&self.key, revision, value.to_value()),
        }
    }

    /// The state that it is a cell of.
    pub fn state(&self) -> State {
        State { shared: self.shared.clone(), core: self.core.clone() }
    }
}

impl<T> Clone for Cell<T> {
    fn clone(&self) -> Cell<T> {
        Cell {
            shared: self.shared.clone(),
            core: self.core.clone(),
            key: self.key.clone(),
            path: self.path.clone(),
            record: Record::default(),
            of: PhantomData,
        }
    }
}

impl<T> std::fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cell").field("key", &self.key).finish()
    }
}

/// How a [`StateType`] is read and written; nobody else's business.
pub mod sealed {
    use super::*;

    /// See [`StateType`].
    pub trait Codec: Sized {
        /// The kind that it is of.
        const KIND: u16;
        /// From the bytes of a value of the kind; else what is wrong with them.
        fn parse(bytes: &[u8]) -> std::result::Result<Self, String>;
        /// Kind and bytes, if these are all of it.
        fn pack(&self) -> Option<(u16, Packed<'_>)>;
        /// As a value.
        fn to_value(&self) -> Value;

        /// From what was read.
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

        /// From the value of a key that is not written yet.
        fn from_value(key: &str, value: &Value) -> Result<Self> {
            if encode::kind_of(value) != Self::KIND {
                return Err(other_type(key, value.type_text(), Self::KIND));
            }
            encode::encode(value)
                .and_then(|bytes| Self::parse(&bytes))
                .map_err(|why| Error::BadValue { what: format!("value of {key}"), why })
        }
    }
}

#[cold]
fn other_type(key: &str, holds: String, given: u16) -> Error {
    let given = encode::kind_text(given).to_owned();
    Error::StateType { key: key.to_owned(), holds, given }
}

#[inline]
fn eight(of: u16, bytes: &[u8]) -> std::result::Result<[u8; 8], String> {
    bytes.try_into().map_err(|_| encode::wrong_len(of, bytes.len()))
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
                let value = i64::from_le_bytes(eight(kind::INT, bytes)?);
                <$type>::try_from(value)
                    .map_err(|_| format!("{value} has no room in {}", stringify!($type)))
            },
            |value| Packed::int(i64::from(*value))
        );
    )+};
}

integers!(i8, i16, i32, i64, u8, u16, u32);

codec!(
    bool,
    kind::BOOL,
    |bytes| match bytes {
        [byte @ (0 | 1)] => Ok(*byte == 1),
        _ => Err(encode::wrong_len(kind::BOOL, bytes.len())),
    },
    |value| Packed::bool(*value)
);
codec!(f64, kind::FLOAT, |bytes| Ok(f64::from_le_bytes(eight(kind::FLOAT, bytes)?)), |value| {
    Packed::float(*value)
});
codec!(
    f32,
    kind::FLOAT,
    |bytes| Ok(f64::from_le_bytes(eight(kind::FLOAT, bytes)?) as f32),
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
        Err("bytes alone do not say which value they are".to_owned())
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
