//! Every rule of what may change in a type, by name: one row each, and the verdict stands in the row.
//!
//! docs/design/types.md shows the same table with the reasons; a test holds the two together, and another one demands a case for each row.

use serde::{Serialize, Serializer};
use std::fmt;

/// The effect of a change on users of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing is lost; listed so that people can see it.
    Note,
    /// Works today and invites a mistake tomorrow. Only in a [`crate::Diff`].
    Warning,
    /// Messages would be read wrongly, or not at all.
    Breaking,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident $id:literal $severity:ident,)*) => {
        /// A kind of difference between two types. The text form, such as `field.type`, is part of the interface of the command line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[$doc])* $variant,)*
        }

        impl Rule {
            /// All of them.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),*];

            /// The text form.
            pub const fn id(self) -> &'static str {
                match self {
                    $(Rule::$variant => $id,)*
                }
            }

            /// What it means where a writer and a reader meet.
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
    /// The writer sends a field that the reader does not know: it is passed over.
    FieldWriterOnly "field.writer_only" Note,
    /// The same number and type under another name.
    FieldRenamed "field.renamed" Note,
    /// `optional` came or went: the same values, but "not set" and "zero" are told apart on one side only.
    FieldPresence "field.presence" Note,
    /// Packed on one side only: every reader takes both forms.
    FieldPacked "field.packed" Note,
    /// Another name in JSON; the bytes are the same.
    FieldJsonName "field.json_name" Note,
    /// One side has reserved the number of a field of the other.
    FieldReserved "field.reserved" Note,
    /// The number is used with a type of another meaning on the wire.
    FieldType "field.type" Breaking,
    /// A type that could be read without loss in this direction, and would lose in the other.
    FieldTypeLossless "field.type_lossless" Breaking,
    /// The same name under two numbers: the reader would silently see the default.
    FieldNumber "field.number" Breaking,
    /// Single on one side, repeated or a map on the other.
    FieldRepeated "field.repeated" Breaking,
    /// A value that is not sent means something else on the other side.
    FieldDefault "field.default" Breaking,
    /// The reader demands a field that the writer may leave out.
    FieldRequired "field.required" Breaking,
    /// A field moved into or out of a oneof, and no value is lost.
    OneofMoved "oneof.moved" Note,
    /// Fields that the writer may send together exclude each other at the reader.
    OneofMerged "oneof.merged" Breaking,
    /// The type of a field has another name and the same fields, or moved to another package.
    TypeRenamed "type.renamed" Note,
    /// The type of a field has another name and other fields.
    TypeReplaced "type.replaced" Breaking,
    /// The messages themselves are of differently named types.
    TypeName "type.name" Breaking,
    /// The reader knows a value that the writer never sends.
    EnumValueReaderOnly "enum.value_reader_only" Note,
    /// The writer may send a value that the reader sees as a bare number.
    EnumValueWriterOnly "enum.value_writer_only" Note,
    /// The same number under another name.
    EnumValueRenamed "enum.value_renamed" Note,
    /// One side keeps unknown numbers (proto3), the other does not (proto2); all declared values are known.
    EnumOpenness "enum.openness" Note,
    /// The writer may send a value that the reader has removed: its number or name is reserved there.
    EnumValueRemoved "enum.value_removed" Breaking,
    /// The writer may send a value that the reader, being proto2, drops.
    EnumValueClosed "enum.value_closed" Breaking,
    /// The same name under two numbers.
    EnumValueNumber "enum.value_number" Breaking,
    /// The comparison would take too long; nothing is known.
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
