//! Every limit of a schema and of a message that is decoded by one, by name.
//!
//! A schema travels with a channel and comes from a process that may be hostile or half dead; each number here bounds
//! what such a peer can make a reader hold or do. A limit that is reached is an error that names it, never a silent cut.

/// Longest descriptor set that is accepted, in bytes (1 MiB).
pub const MAX_SCHEMA_LEN_BYTES: usize = 1 << 20;
/// Files of one schema, imports included.
pub const MAX_SCHEMA_FILES: usize = 256;
/// Messages, groups, map entries and enums of one schema together.
pub const MAX_SCHEMA_TYPES: usize = 4096;
/// Fields of all messages of one schema together.
pub const MAX_SCHEMA_FIELDS: usize = 16384;
/// Values of all enums of one schema together.
pub const MAX_SCHEMA_ENUM_VALUES: usize = 16384;
/// How deep one message may be declared inside another.
pub const MAX_SCHEMA_NESTING: usize = 32;
/// Longest name of one field, type or value, in bytes.
pub const MAX_SCHEMA_NAME_LEN_BYTES: usize = 255;
/// Longest full name (`package.Outer.Inner.field`), in bytes. Full names repeat the names of everything around them: without this
/// limit a short set of long nested names would grow a thousandfold.
pub const MAX_SCHEMA_FULL_NAME_LEN_BYTES: usize = 512;
/// Records (descriptors, names, ranges, comments) in the bytes of one descriptor set. Counted before anything is built of them.
pub const MAX_SCHEMA_RECORDS: usize = 1 << 17;
/// Looks at reservations and enum values that the building of one schema takes: the fields of a message times its reserved
/// ranges, the values of an enum times its own, and for each field whose default is a value of an enum, the values of that.
pub const MAX_SCHEMA_LOOKUPS: usize = 1 << 24;
/// Longest `.proto` file, in bytes (1 MiB).
pub const MAX_PROTO_LEN_BYTES: usize = 1 << 20;

/// Fields, enum values and reservations that one comparison of two types may visit: enough for any two types within the limits above whose
/// messages meet once. It holds a hostile pair to tens of milliseconds.
pub const MAX_CHECK_STEPS: usize = 1 << 17;
/// Changes that one report lists; the rest is counted.
pub const MAX_REPORTED_CHANGES: usize = 256;

/// How deep messages may be nested in a message that is decoded, or in JSON that becomes one. Below the 100 of prost and of the
/// official runtimes, so that what passes here passes there.
pub const MAX_DECODE_DEPTH: usize = 64;
/// Values (fields, elements, map entries) in one decoded message. Each becomes tens of bytes in memory while it may be two on
/// the wire. Numbers of packed lists are counted apart.
pub const MAX_DECODE_VALUES: usize = 1 << 22;
/// As how many values a message in a message counts: it becomes hundreds of bytes in memory while it may be two on the wire.
pub const DECODE_VALUES_PER_MESSAGE: usize = 8;
/// Numbers in packed lists of one decoded message. What is built of them is at most eight times as long as they are on the wire, for
/// a message without its code tens of times.
pub const MAX_DECODE_NUMBERS: usize = 1 << 25;
/// Longest message that is decoded, in bytes (1 GiB): that of the plane.
pub const MAX_DECODE_LEN_BYTES: usize = 1 << 30;
/// Longest field path as text, in bytes.
pub const MAX_PATH_LEN_BYTES: usize = 1024;
/// Columns of one table.
pub const MAX_COLUMNS: usize = 1024;
/// Fields that are walked to find the columns of one table: a few short types can lead to more than anybody can count.
pub const MAX_COLUMN_FIELDS: usize = 1 << 16;
