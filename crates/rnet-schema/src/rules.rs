//! The rules for changes of a type: one row each, with its verdict.
//!
//! docs/design/types.md contains the same table with reasons. Tests compare both tables and require a case
//! for each row.

use serde::{Serialize, Serializer};
use std::fmt;

/// The effect of a change on users of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing is lost; listed for information.
    Note,
    /// Works now but is error-prone later. Only in a [`crate::Diff`].
    Warning,
    /// Messages would be misread or rejected.
    Breaking,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident $id:literal $severity:ident,)*) => {
        /// A kind of difference between two types. The text form, such as `field.type`, is part of the
        /// interface of the command line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[$doc])* $variant,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),*];

            /// The text form.
            pub const fn id(self) -> &'static str {
                match self {
                    $(Rule::$variant => $id,)*
                }
            }

            /// Its severity for a writer and a reader.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Rule::$variant => Severity::$severity,)*
                }
            }
        }
    };
}

rules! {
    /// The reader has a field that the writer does not send: it reads the default.
    FieldReaderOnly "field.reader_only" Note,
    /// The reader has a field whose number the writer may use for an extension of any type.
    FieldExtension "field.extension" Breaking,
    /// The writer sends a field that the reader does not know: it is skipped.
    FieldWriterOnly "field.writer_only" Note,
    /// The same number and type under another name.
    FieldRenamed "field.renamed" Note,
    /// `optional` was added or removed: the values are equal, but only one side distinguishes "not set" from
    /// zero.
    FieldPresence "field.presence" Note,
    /// Packed on one side only: every reader accepts both forms.
    FieldPacked "field.packed" Note,
    /// Another name in JSON; the bytes are the same.
    FieldJsonName "field.json_name" Note,
    /// One side has reserved the number of a field of the other.
    FieldReserved "field.reserved" Note,
    /// The number has a type with another meaning on the wire.
    FieldType "field.type" Breaking,
    /// A type that is read without loss in this direction but not in the other.
    FieldTypeLossless "field.type_lossless" Breaking,
    /// The same name under two numbers: the reader would silently see the default.
    FieldNumber "field.number" Breaking,
    /// Single on one side, repeated or a map on the other.
    FieldRepeated "field.repeated" Breaking,
    /// An omitted value has another meaning on the other side.
    FieldDefault "field.default" Breaking,
    /// The reader requires a field that the writer may omit.
    FieldRequired "field.required" Breaking,
    /// A field moved into or out of a oneof without loss of values.
    OneofMoved "oneof.moved" Note,
    /// Fields that the writer may send together exclude each other at the reader.
    OneofMerged "oneof.merged" Breaking,
    /// The type of a field has another name and the same fields, or moved to another package.
    TypeRenamed "type.renamed" Note,
    /// The type of a field has another name and different fields.
    TypeReplaced "type.replaced" Breaking,
    /// The messages have types with different names.
    TypeName "type.name" Breaking,
    /// The reader knows a value that the writer never sends.
    EnumValueReaderOnly "enum.value_reader_only" Note,
    /// The writer may send a value that the reader sees as a number only.
    EnumValueWriterOnly "enum.value_writer_only" Note,
    /// The same number under another name.
    EnumValueRenamed "enum.value_renamed" Note,
    /// One side keeps unknown numbers (proto3), the other one does not (proto2); all declared values are
    /// known.
    EnumOpenness "enum.openness" Note,
    /// The writer may send a value that the reader has removed: its number or name is reserved there.
    EnumValueRemoved "enum.value_removed" Breaking,
    /// The writer may send a value that the reader drops because it is proto2.
    EnumValueClosed "enum.value_closed" Breaking,
    /// The same name under two numbers.
    EnumValueNumber "enum.value_number" Breaking,
    /// The comparison would take too long; its result is unknown.
    Limit "limit" Breaking,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}
