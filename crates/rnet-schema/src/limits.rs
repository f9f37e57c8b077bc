//! All limits of schemas and decoded messages.
//!
//! A schema is sent with a channel by a process that may be hostile or dying. Each limit bounds the memory or
//! time that such a peer can consume. Exceeding a limit is an error that contains it, never a silent
//! truncation.

/// Longest descriptor set that is accepted, in bytes (1 MiB).
pub const MAX_SCHEMA_LEN_BYTES: usize = 1 << 20;
/// Files of one schema, imports included.
pub const MAX_SCHEMA_FILES: usize = 256;
/// Messages, groups, map entries and enums of one schema.
pub const MAX_SCHEMA_TYPES: usize = 4096;
/// Fields of all messages of one schema.
pub const MAX_SCHEMA_FIELDS: usize = 16384;
/// Values of all enums of one schema.
pub const MAX_SCHEMA_ENUM_VALUES: usize = 16384;
/// Maximum nesting of message declarations.
pub const MAX_SCHEMA_NESTING: usize = 32;
/// Longest name of one field, type or value, in bytes.
pub const MAX_SCHEMA_NAME_LEN_BYTES: usize = 255;
/// Longest full name (`package.Outer.Inner.field`), in bytes. Full names repeat all enclosing names: without
/// this limit a short set of long nested names would expand a thousandfold.
pub const MAX_SCHEMA_FULL_NAME_LEN_BYTES: usize = 512;
/// Records (descriptors, names, ranges, comments) in the bytes of one descriptor set. Counted before anything
/// is built.
pub const MAX_SCHEMA_RECORDS: usize = 1 << 17;
/// Comparisons of reservations and enum values when building one schema: the fields of a message times its
/// reserved ranges, the values of an enum times its own, and for each field with an enum default, the values
/// of that enum.
pub const MAX_SCHEMA_LOOKUPS: usize = 1 << 24;
/// Longest `.proto` file, in bytes (1 MiB).
pub const MAX_PROTO_LEN_BYTES: usize = 1 << 20;

/// Fields, enum values and reservations that one comparison of two types may visit: sufficient for any two
/// types within the limits above whose messages are compared once. It limits a hostile pair to tens of
/// milliseconds.
pub const MAX_CHECK_STEPS: usize = 1 << 17;
/// Changes that one report lists; further ones are counted.
pub const MAX_REPORTED_CHANGES: usize = 256;

/// Maximum nesting of messages when decoding, or when parsing JSON. Below the limit of 100 of prost and the
/// official runtimes, so that they accept everything that passes here.
pub const MAX_DECODE_DEPTH: usize = 64;
/// Values (fields, elements, map entries) in one decoded message. Each takes tens of bytes in memory but may
/// take two on the wire. Numbers of packed lists are counted separately.
pub const MAX_DECODE_VALUES: usize = 1 << 22;
/// Number of values that a nested message counts as: it takes hundreds of bytes in memory but may take two on
/// the wire.
pub const DECODE_VALUES_PER_MESSAGE: usize = 8;
/// Numbers in packed lists of one decoded message. In memory they take at most eight times their wire size,
/// for a message without generated code tens of times.
pub const MAX_DECODE_NUMBERS: usize = 1 << 25;
/// Longest message that is decoded, in bytes (1 GiB): the limit of the transport.
pub const MAX_DECODE_LEN_BYTES: usize = 1 << 30;
/// Longest field path as text, in bytes.
pub const MAX_PATH_LEN_BYTES: usize = 1024;
/// Columns of one table.
pub const MAX_COLUMNS: usize = 1024;
/// Fields visited to determine the columns of one table: a few nested types can have a huge number of paths.
pub const MAX_COLUMN_FIELDS: usize = 1 << 16;
