//! All limits of the shared-memory transport.
//!
//! Exceeding a limit is an error that contains it ([`crate::Error::LimitReached`] and related variants),
//! never a silent truncation. Names contain the unit; counts have none.

/// Longest topic name, with its leading `/`, in bytes.
pub const MAX_TOPIC_LEN_BYTES: usize = 255;

/// Longest node name, with its leading `/`, in bytes. Shorter than a topic name because the name plus a
/// suffix is a file name, and file names are limited to 255 bytes.
pub const MAX_NODE_NAME_LEN_BYTES: usize = 200;

/// Longest name of a host, in bytes.
pub const MAX_HOST_LEN_BYTES: usize = 64;

/// Endpoints of other hosts that one proxy can represent.
pub const MAX_ENDPOINTS_PER_PROXY: u32 = 1 << 16;

/// Longest domain id, in bytes.
pub const MAX_DOMAIN_LEN_BYTES: usize = 32;

/// Nodes that may be present in one domain on one host at the same time.
pub const MAX_NODES_PER_DOMAIN: usize = 1024;

/// Nodes of [`MAX_NODES_PER_DOMAIN`] that are reserved for tools: `rnet topic pub` and `rnet state set` work
/// in a full domain.
pub const RESERVED_TOOL_NODES: usize = 16;

/// Different topic names in one domain at the same time.
pub const MAX_TOPICS_PER_DOMAIN: usize = 4096;

/// Publishers and subscribers together that one node may hold.
pub const MAX_ENDPOINTS_PER_NODE: usize = 8192;

/// Subscribers that may read one channel (one publisher on one topic).
pub const MAX_READERS_PER_CHANNEL: usize = 512;

/// Publishers that one subscriber may merge.
pub const MAX_PUBLISHERS_PER_SUBSCRIPTION: usize = 256;

/// Shortest message deadline and liveliness lease: the control thread checks them at this period.
pub const MIN_PERIOD: std::time::Duration = std::time::Duration::from_millis(1);

/// Observers of one domain that are woken (listening tools, recorders). Further ones would have to poll.
pub const MAX_OBSERVERS_PER_DOMAIN: usize = 64;

/// Publishers that one observer may follow.
pub const MAX_PUBLISHERS_PER_OBSERVER: usize = 8192;

/// Samples that one reader may hold (pin) at the same time.
pub const MAX_PINS_PER_READER: usize = 64;

/// Largest message, in bytes (1 GiB).
pub const MAX_MESSAGE_LEN_BYTES: usize = 1 << 30;

/// Largest message stored inline in the log, in bytes; a longer one is stored in a chunk of the pool.
pub const MAX_INLINE_LEN_BYTES: usize = 4096;

/// Longest description of an endpoint (type and quality of service, as JSON) in shared memory, in bytes.
pub const MAX_META_LEN_BYTES: usize = 65536;

/// Longest description of a protobuf type (its descriptor set, with comments) in shared memory, in bytes (1
/// MiB).
pub const MAX_SCHEMA_LEN_BYTES: usize = 1 << 20;

/// Protobuf types that the endpoints of one node may use during its lifetime.
pub const MAX_TYPES_PER_NODE: usize = 1024;

/// Length of a channel's log if the publisher does not specify one, in bytes (512 KiB).
pub const DEFAULT_LOG_LEN_BYTES: u64 = 512 << 10;

/// Shortest log that a publisher can request, in bytes (16 KiB).
pub const MIN_LOG_LEN_BYTES: u64 = 16 << 10;

/// Longest log that a publisher can request, in bytes (1 GiB).
pub const MAX_LOG_LEN_BYTES: u64 = 1 << 30;

/// Maximum size of a channel's chunk pool if the publisher does not specify one, in bytes (2 GiB).
pub const DEFAULT_POOL_LIMIT_BYTES: u64 = 2 << 30;

/// Unread messages per publisher that a best_effort subscriber keeps if it does not specify a depth.
pub const DEFAULT_KEEP_LAST: u32 = 10;

/// Large messages that a channel keeps readable if the publisher does not specify a depth: the default depth
/// of a subscriber plus the message under construction.
pub const DEFAULT_LARGE_DEPTH: u32 = DEFAULT_KEEP_LAST + 1;

/// Chunks in one channel's pool.
pub const MAX_CHUNKS_PER_CHANNEL: usize = 1024;

/// Doorbells (sleeping peers that may have to be woken) that one node can ring.
pub const MAX_BELLS_PER_NODE: usize = 4096;

/// Deepest nesting of structs and arrays in a plain type.
pub const MAX_TYPE_DEPTH: usize = 16;

/// Fields of a plain type, including those of nested structs.
pub const MAX_TYPE_FIELDS: usize = 4096;

/// Longest name of a plain type or of one of its fields, in bytes.
pub const MAX_TYPE_NAME_LEN_BYTES: usize = 255;

/// Largest alignment of a plain type, in bytes. Payloads start at multiples of it.
pub const MAX_PLAIN_ALIGN_BYTES: usize = 8;

/// Longest key of the state, with its leading `/`, in bytes.
pub const MAX_KEY_LEN_BYTES: usize = 255;

/// Longest value of a key of the state, in bytes (64 MiB).
pub const MAX_VALUE_LEN_BYTES: usize = 64 << 20;

/// Maximum size of the state of a domain, all keys and values together, in bytes (16 GiB).
pub const MAX_STATE_LEN_BYTES: u64 = 16 << 30;

/// Keys that one transaction may read and write.
pub const MAX_TRANSACTION_KEYS: usize = 1024;

/// Maximum number of attempts of an update that is computed from the current value. An attempt fails if
/// another writer changes the value first.
pub const MAX_UPDATE_TRIES: usize = 10_000;

/// Deepest nesting of lists and JSON in a value of the state.
pub const MAX_VALUE_DEPTH: usize = 64;

/// Elements of all lists and sets in one value of the state.
pub const MAX_VALUE_ITEMS: usize = 1 << 20;
