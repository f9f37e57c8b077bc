//! The names in a recording. docs/design/recording.md describes the content of each.

/// Profile in the header of the file.
pub const PROFILE: &str = "rnet";
/// Library in the header of the file.
pub const LIBRARY: &str = concat!("robot-net ", env!("CARGO_PKG_VERSION"));

/// Encoding of protobuf messages, and of the schemas that describe them: a `FileDescriptorSet`.
pub const PROTOBUF: &str = "protobuf";
/// Encoding of plain messages, with the bytes of their memory layout. The schema, of the same encoding, is
/// the layout as JSON.
pub const PLAIN: &str = "rnet-plain";
/// Encoding of messages that are bytes without a type. They have no schema.
pub const BYTES: &str = "bytes";
/// Encoding of the recorder's own messages. It has no schema.
pub const JSON: &str = "json";

/// Prefix of the topics that the recorder itself writes.
pub const RESERVED_TOPICS: &str = "/_rnet/recording/";
/// Topic of the values of state and parameters.
pub const STATE_TOPIC: &str = "/_rnet/recording/state";
/// Topic of the metadata of messages.
pub const META_TOPIC: &str = "/_rnet/recording/meta";
/// Topic of the messages that the recorder missed.
pub const MISSED_TOPIC: &str = "/_rnet/recording/missed";

/// Metadata record: the recording's host, domain and command, and the number of this part. The first record
/// of a file.
pub const RECORDING: &str = "rnet.recording";
/// Metadata record: how the times of the file are derived from the monotonic clock.
pub const CLOCK: &str = "rnet.clock";
/// Metadata record at the end: missing messages, by topic and cause.
pub const LOSSES: &str = "rnet.losses";
/// Metadata record at the end: number of publishers that were seen but not read, and number of those
/// followed.
pub const UNHEARD: &str = "rnet.unheard";
/// Metadata record at the end: the nodes.
pub const NODES: &str = "rnet.nodes";
/// Metadata record of a repaired file: path of the damaged file, and what was wrong with it.
pub const RECOVERED: &str = "rnet.recovered";

/// Metadata record: the triggers of a black box file.
pub const TRIGGER: &str = "rnet.trigger";
/// Attachment: the nodes at the first trigger of a black box file, as JSON.
pub const GRAPH: &str = "rnet.graph";

/// Metadata of a channel: name of the publisher's node.
pub const NODE_KEY: &str = "rnet.node";
/// Metadata of a channel: host of the publisher's node.
pub const HOST_KEY: &str = "rnet.host";
/// Metadata of a channel: id of the publisher, in decimal digits.
pub const PUBLISHER_KEY: &str = "rnet.publisher";
/// Metadata of a channel: kind of the published type: `bytes`, `plain` or `protobuf`.
pub const KIND_KEY: &str = "rnet.kind";
/// Metadata of a channel: full name of the published type; empty for bytes.
pub const TYPE_KEY: &str = "rnet.type";
/// Metadata of a channel whose plain messages were recorded as protobuf: the layout of the published type, as
/// JSON.
pub const LAYOUT_KEY: &str = "rnet.layout";
/// Metadata of a channel: `urgent` or `bulk`.
pub const LANE_KEY: &str = "rnet.lane";
/// Metadata of a channel: `best_effort` or `reliable`.
pub const RELIABILITY_KEY: &str = "rnet.reliability";
/// Metadata of a channel: `volatile` or `transient_local`.
pub const DURABILITY_KEY: &str = "rnet.durability";
/// Metadata of a transient_local channel: how many messages its publisher keeps.
pub const DEPTH_KEY: &str = "rnet.depth";
/// Metadata of a channel: the deadline of its publisher, in ns, if it has one.
pub const DEADLINE_KEY: &str = "rnet.deadline_ns";
/// Metadata of a channel: the lifespan of its publisher, in ns, if it has one.
pub const LIFESPAN_KEY: &str = "rnet.lifespan_ns";
