//! robot-net: the communication core of robots.
//!
//! Controllers, sensors and actuators are *nodes*; a node publishes and subscribes to *topics*.
//! On one host, messages are sent through shared memory, without a server: the death of a process does not
//! stop the others.
//!
//! ```
//! # fn main() -> rnet::Result<()> {
//! # let dir = std::env::temp_dir();
//! # let node = rnet::Node::builder("talker").dir(dir).domain(&format!("doc{}", std::process::id())).open()?;
//! // let node = rnet::Node::new("talker")?;
//! let mut hello = node.publisher::<[u8]>("/hello").open()?;
//! let mut subscriber = node.subscriber::<[u8]>("/hello").open()?;
//! subscriber.wait_for_publishers(1)?;
//! hello.send(b"hello, robot")?;
//! assert_eq!(&*subscriber.recv()?, b"hello, robot");
//! # Ok(()) }
//! ```
//!
//! # Path of a message
//! [`Publisher::send`] → `Writer::commit` (rnet-shm) → `LogWriter::push` (rnet-ring) ‖
//! `LogReader::next` → `Reader::take` → [`Subscriber::recv`]. One release store separates the two
//! halves. ARCHITECTURE.md walks through it.
//!
//! # Threads
//! A [`Node`] has one control thread, which sleeps until a peer joins, leaves or dies. With the first
//! callback or waker of a lane, including those of state, it starts one dispatch thread for that lane. While
//! it writes the domain's durable state to disk, it has two more. All of them stop with the node. There may
//! be a short-lived thread that cleans up the state of a dead node, and, once per process, one that registers
//! the process for `membarrier`. A node in simulated time has a thread that follows `/clock`. A publisher has
//! no thread. A [`Service`] has one thread per concurrent handler and one more. A [`Client`] has one from its
//! first async call. A [`Pusher`] has one, in addition to that of its client. A [`Replica`](state::Replica)
//! has one, and a [`Command`] has one.
#![forbid(unsafe_code)]

// Generated code names `::rnet::`, in this crate, too.
extern crate self as rnet;

pub mod binding;
pub mod bridge;
mod link_start;
pub mod msgs;
mod node;
pub mod param;
pub mod state;

pub use node::{Node, NodeBuilder};
pub use param::Param;
pub use rnet_call::{
    ActionBuilder, ActionClient, ActionClientBuilder, ActionContext, CallContext, CallOptions,
    Client, ClientBuilder, ClientStats, Command, CommandBuilder, CommandStats, DriveBuilder,
    Driver, FallbackReason, Goal, GoalPolicy, HIGHEST_PRIORITY, HandlerError, Job, JobContext,
    Pending, PullBuilder, Puller, PushBuilder, PushStats, Pusher, Received, Responder, Service,
    ServiceBuilder, ServiceStats, Undelivered, command_log_topic, command_of_status,
    command_status_topic,
};
pub use rnet_core::{
    Backlog, CallPart, CancelReason, DomainId, Durability, Error, Failure, Field, FieldType,
    History, KnownGap, Lane, Liveliness, LossCause, LossCounts, Meta, NamePattern, NameResolver,
    NodeName, OnFull, Origin, OsError, Plain, PlainField, PlainHeader, PlainType, Prim,
    ProtobufType, Proxy, PublisherQos, Reliability, Result, SubscriberQos, TopicName, TypeDesc,
    TypeMismatch, Wait, bucket_high, bucket_low, key_name, quantile,
};
pub use rnet_derive::Plain;
pub use rnet_inspect as inspect;
pub use rnet_node::protobuf;
pub use rnet_node::{
    AnySubscription, CallbackGuard, DeadlineMissed, Dynamic, Endpoint, EndpointEvent, EndpointQos,
    EndpointWatch, Interrupter, LOG_TOPIC, LivelinessChange, LivelinessCounts, Loan, LogLevel,
    Logger, MalformedCounter, MatchChanges, MatchEvent, Message, MessageType, NodeEvent, OwnedLoan,
    OwnedSample, PeerInfo, Publisher, PublisherBuilder, PublisherStats, Rate, ReceiveStream,
    Sample, SampleStream, Samples, Subscriber, SubscriberBuilder, Subscription, Tick, Timer,
    TimerBuilder, WaitSet, WaitSetEntry, WaitSetHandle, Waitable, WeakLogger, include_protos,
    protobuf_message,
};
pub use rnet_shm::channel::publisher::InterruptedWait;
pub use rnet_shm::os::event::Event;

/// Protobuf types: compiled at run time, compared, and decoded without generated code.
pub mod schema {
    pub use rnet_schema::{
        Change, Columns, CompiledProtos, DecodeError, DecodeLimits, Diff, DiffLine, Docs, Dynamic,
        FieldPath, INHERITED_UNIT, JsonOptions, NumberReader, Rule, Schema, SchemaError,
        SchemaHash, Severity, SourceLocation, Sources, TextOptions, ValueError, Verdict,
        builtin_files, check, compile_file, compile_text, csv_line, diff, find_types, is_nested,
        limits, text_quoted, unit_of, validate,
    };
}

/// The named limits: maximum numbers of nodes, topics and readers, and the maximum message length.
pub mod limits {
    pub use rnet_core::limits::*;
    pub use rnet_shm::os::bell::MAX_SLEEP;
}

/// Tracing of message latency: while a subscriber of a topic's trace exists, the subscribers of the topic
/// publish a record of each message there.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("trace{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
/// use rnet::TopicName;
/// use rnet::trace::{TraceRecord, trace_topic};
///
/// # let mut imu = node.publisher::<[u8]>("/imu").open()?;
/// let _estimator = node.subscriber::<[u8]>("/imu").open()?.on(|_| ());
/// # imu.wait_for_subscribers(1)?;
/// let topic = trace_topic(&TopicName::new("/imu")?)?;
/// let records = node.subscriber::<[u8]>(topic.as_str()).message_type(TraceRecord::plain_type());
/// let mut records = records.open()?;
/// records.wait_for_publishers(1)?; // the estimator is traced
/// # imu.send(b"1")?;
/// let record = TraceRecord::from_bytes(&records.recv()?).unwrap_or_default();
/// assert!(record.is_consistent());
/// println!("the callback took {} ns", record.ended_ns - record.began_ns);
/// # drop((imu, records));
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
pub mod trace {
    pub use rnet_core::trace::{MAX_TRACED_PER_S, TraceRecord, trace_topic, traced_topic};

    /// The node of an endpoint, by a number that is unique over all hosts.
    pub fn node_of(endpoint: u64) -> u64 {
        rnet_shm::domain::node::incarnation_of(endpoint)
    }
}

/// The program of the link between hosts.
pub mod link {
    pub use crate::link_start::{configured_by, find_program};
}

/// Checks for objects that a forked child must not use or drop; for bindings.
pub mod fork {
    pub use rnet_shm::os::fork::{ForkGuard, ProcessOwned};
}

/// The current time in ns of CLOCK_MONOTONIC: the clock of all message stamps.
pub fn now_ns() -> u64 {
    rnet_shm::os::clock::now_ns()
}

/// The offset of the wall clock from [`now_ns`], as returned by [`wall_offset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallOffset {
    /// Add this to [`now_ns`] to get ns since 1970-01-01 UTC.
    pub offset_ns: i64,
    /// Uncertainty of the offset in ns, in both directions: the two clocks cannot be read at the same moment.
    pub uncertainty_ns: u64,
}

/// Current offset of CLOCK_REALTIME from CLOCK_MONOTONIC, for times that leave the host.
///
/// It changes when the wall clock is set, and slowly while NTP corrects it. It does not show whether the wall
/// clock is right.
pub fn wall_offset() -> WallOffset {
    let (offset_ns, uncertainty_ns) = rnet_shm::os::clock::wall_offset();
    WallOffset { offset_ns, uncertainty_ns }
}

/// The current time in ns of CLOCK_BOOTTIME, which expires keys: it advances while the machine is suspended
/// and cannot be set.
pub fn boot_ns() -> u64 {
    rnet_shm::os::clock::boot_ns()
}

/// A number for this boot of the machine, the same in all its containers; 0 if the system does not provide
/// one.
pub fn boot_id() -> u64 {
    rnet_shm::os::clock::boot_id()
}

/// Version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Version of the shared-memory layout; all processes of a domain must agree.
pub const LAYOUT_VERSION: u32 = rnet_shm::LAYOUT_VERSION;
