//! The Rust types of parameters.

use super::kind::ParamKind;
use crate::{StateType, Value};

/// A type of a parameter: `bool`, `i64`, `f64`, `String`, a `Vec` of one of them, or [`Value`] if the type is
/// known at run time only.
pub trait ParamType: Clone + PartialEq + Send + Sync + private::Sealed + 'static {
    /// The type itself, or a list's item type: the type of bounds and choices.
    type Item: Into<Value>;
    /// Its type in the state.
    #[doc(hidden)]
    type Stored: StateType + Send + Sync;
    /// Its kind, if the type determines it.
    #[doc(hidden)]
    const KIND: Option<ParamKind>;
    #[doc(hidden)]
    fn from_stored(stored: Self::Stored) -> Option<Self>;
    #[doc(hidden)]
    fn from_value(value: Value) -> Option<Self>;
    #[doc(hidden)]
    fn to_value(&self) -> Value;
}

/// Types with a minimum and a maximum.
pub trait ParamNumber: Into<Value> + private::Sealed {}

/// Types with choices.
pub trait ParamText: ParamType {}

mod private {
    pub trait Sealed {}
}

macro_rules! param_types {
    ($($type:ty: $kind:ident, $list:ident, $variant:ident;)+) => {$(
        impl private::Sealed for $type {}
        impl private::Sealed for Vec<$type> {}

        impl ParamType for $type {
            type Item = $type;
            type Stored = $type;
            const KIND: Option<ParamKind> = Some(ParamKind::$kind);

            fn from_stored(stored: $type) -> Option<$type> {
                Some(stored)
            }

            fn from_value(value: Value) -> Option<$type> {
                if let Value::$variant(value) = value { Some(value) } else { None }
            }

            fn to_value(&self) -> Value {
                Value::$variant(self.clone())
            }
        }

        impl ParamType for Vec<$type> {
            type Item = $type;
            type Stored = Value;
            const KIND: Option<ParamKind> = Some(ParamKind::$list);

            fn from_stored(stored: Value) -> Option<Vec<$type>> {
                Self::from_value(stored)
            }

            fn from_value(value: Value) -> Option<Vec<$type>> {
                let Value::List(items) = value else { return None };
                items.into_iter().map(<$type>::from_value).collect()
            }

            fn to_value(&self) -> Value {
                Value::List(self.iter().map(ParamType::to_value).collect())
            }
        }
    )+};
}

param_types! {
    bool: Bool, Bools, Bool;
    i64: Int, Ints, Int;
    f64: Float, Floats, Float;
    String: Str, Strs, Str;
}

impl private::Sealed for Value {}

impl ParamType for Value {
    type Item = Value;
    type Stored = Value;
    const KIND: Option<ParamKind> = None;

    fn from_stored(stored: Value) -> Option<Value> {
        Some(stored)
    }

    fn from_value(value: Value) -> Option<Value> {
        Some(value)
    }

    fn to_value(&self) -> Value {
        self.clone()
    }
}

impl ParamNumber for i64 {}
impl ParamNumber for f64 {}
impl ParamNumber for Value {}

impl ParamText for String {}
impl ParamText for Vec<String> {}
impl ParamText for Value {}
