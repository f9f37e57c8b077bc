//! The vocabulary of robot-net: names, limits, quality of service, type layouts, counters and errors.
//!
//! This crate has no I/O, threads, clocks or `unsafe` code. Its only uses of `unsafe` are the declarations of
//! the traits [`Plain`], [`PlainHeader`] and [`PlainField`], and the implementations of the last one for
//! numbers and arrays: the promise about memory is made where the types are described. All other crates of
//! the workspace may depend on this one, which depends on none of them.
//!
//! All items are re-exported at the root. [`qos_compatible`] and [`types_compatible`] decide whether a
//! publisher and a subscriber can communicate; they are defined in modules of their own.

#![deny(unsafe_code)]

pub mod counters;
pub mod error;
pub mod hist;
pub mod limits;
pub mod meta;
pub mod name;
pub mod name_resolver;
pub mod pattern;
pub mod plain;
pub mod proxy;
pub mod qos;
pub mod time;
pub mod trace;
pub mod types;

pub use counters::{Backlog, LossCause, LossCounts};
pub use error::{CallPart, CancelReason, Error, Failure, OsError, Result};
pub use hist::{HIST_BUCKETS, bucket_high, bucket_low, bucket_of, quantile};
pub use limits::*;
pub use meta::{KnownGap, Meta, Origin};
pub use name::{DomainId, NodeName, TopicName, fnv1a_64, key_name};
pub use name_resolver::{NameResolver, is_internal};
pub use pattern::NamePattern;
pub use plain::{Plain, PlainField, PlainHeader};
pub use proxy::Proxy;
pub use qos::compatible as qos_compatible;
pub use qos::{Durability, History, Lane, Liveliness, OnFull, PublisherQos};
pub use qos::{Reliability, SubscriberQos, Wait};
pub use time::{ms_ceil, ns_saturating};
pub use trace::{MAX_TRACED_PER_S, TraceRecord, trace_topic, traced_topic};
pub use types::{
    Field, FieldType, PlainType, Prim, ProtobufType, TypeChange, TypeDesc, TypeMismatch,
};
pub use types::{compare as types_compare, compatible as types_compatible};
pub use types::{float_from_json, float_to_json};
