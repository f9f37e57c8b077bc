//! The words of robot-net: names, limits, quality of service, type layouts, counters and errors.
//!
//! What is absent: I/O, threads, clocks, and `unsafe` code. Only three `unsafe trait` declarations stand here
//! ([`Plain`], [`PlainHeader`] and [`PlainField`], with its implementations for numbers and arrays), because a promise about
//! memory has to be made where the types are described. Every other crate of the workspace may depend on this one, and this
//! one depends on none of them.
//!
//! Everything is re-exported at the root. The two functions that answer "may these two talk?" live in modules of
//! their own and are named [`qos_compatible`] and [`types_compatible`] here.

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
pub use error::{CallPart, CancelReason, Error, Failure, Result};
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
