//! The names in a recording. docs/design/recording.md says what stands under each.

/// Profile in the header of the file.
pub const PROFILE: &str = "rnet";
/// Library in the header of the file.
pub const LIBRARY: &str = concat!("robot-net ", env!("CARGO_PKG_VERSION"));

/// Encoding of protobuf messages, and of the schemas that describe them: a `FileDescriptorSet`.
pub const PROTOBUF: &str = "protobuf";
/// Encoding of plain messages as they stood in memory. The schema, of the same encoding, is the layout as JSON.
pub const PLAIN: &str = "rnet-plain";
/// Encoding of messages that are bytes without a description. They have no schema.
pub const BYTES: &str = "bytes";
/// Encoding of what the recorder itself writes. It has no schema.
pub const JSON: &str = "json";

/// What the names of topics begin with that the recorder writes to itself.
pub const RESERVED_TOPICS: &str = "/_rnet/recording/";
/// Topic of the values of state and parameters.
pub const STATE_TOPIC: &str = "/_rnet/recording/state";
/// Topic of what messages carry beside their content.
pub const META_TOPIC: &str = "/_rnet/recording/meta";
/// Topic of what the recorder missed.
pub const MISSED_TOPIC: &str = "/_rnet/recording/missed";

/// Metadata record: what was recorded, where, by what, and which part of it this file is. The first of a file.
pub const RECORDING: &str = "rnet.recording";
/// Metadata record: how the times of the file were made of the monotonic clock.
pub const CLOCK: &str = "rnet.clock";
/// Metadata record at the end: what is missing, by topic and cause.
pub const LOSSES: &str = "rnet.losses";
/// Metadata record at the end: publishers that were seen and not heard, and how many were followed.
pub const UNHEARD: &str = "rnet.unheard";
/// Metadata record at the end: the nodes that were there.
pub const NODES: &str = "rnet.nodes";
/// Metadata record of a file that was made of a damaged one: of which, and what was wrong with it.
pub const RECOVERED: &str = "rnet.recovered";

/// Metadata record: what made a black box write its file.
pub const TRIGGER: &str = "rnet.trigger";
/// Attachment: the nodes when the first trigger of such a file fired, as JSON.
pub const GRAPH: &str = "rnet.graph";

/// Metadata of a channel: name of the publisher's node.
pub const NODE_KEY: &str = "rnet.node";
/// Metadata of a channel: host of the publisher's node.
pub const HOST_KEY: &str = "rnet.host";
/// Metadata of a channel: id of the publisher, in decimal digits.
pub const PUBLISHER_KEY: &str = "rnet.publisher";
/// Metadata of a channel: kind of the type that was published: `bytes`, `plain` or `protobuf`.
pub const KIND_KEY: &str = "rnet.kind";
/// Metadata of a channel: full name of the type that was published; empty for bytes.
pub const TYPE_KEY: &str = "rnet.type";
/// Metadata of a channel whose plain messages were recorded as protobuf: the layout of what was published, as JSON.
pub const LAYOUT_KEY: &str = "rnet.layout";
/// Metadata of a channel: `urgent` or `bulk`.
pub const LANE_KEY: &str = "rnet.lane";
/// Metadata of a channel: `best_effort` or `reliable`.
pub const RELIABILITY_KEY: &str = "rnet.reliability";
/// Metadata of a channel: `volatile` or `transient_local`.
pub const DURABILITY_KEY: &str = "rnet.durability";
/// Metadata of a transient_local channel: how many messages its publisher keeps.
pub const DEPTH_KEY: &str = "rnet.depth";
/// Metadata of a channel whose publisher has a deadline, in ns.
pub const DEADLINE_KEY: &str = "rnet.deadline_ns";
/// Metadata of a channel whose publisher has a lifespan, in ns.
pub const LIFESPAN_KEY: &str = "rnet.lifespan_ns";
