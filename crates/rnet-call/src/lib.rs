//! Services, actions, work queues and commands: calls, which are messages on topics below `/_rnet/call`
//! (docs/design/calls.md), and commands, whose drivers call their receiver (docs/design/commands.md).
//!
//! Users see them in `rnet`. Each is opened on a [`NodeHandle`](rnet_node::NodeHandle).

#![forbid(unsafe_code)]

// Generated code of messages names `::rnet::`; `rnet_node` exports the same names.
extern crate rnet_node as rnet;

mod action;
mod bytes;
mod call_future;
mod calls_guard;
mod client;
mod client_cache;
mod client_core;
mod command;
mod goal;
mod loss_tracker;
pub mod msgs;
mod number_map;
mod open_call;
mod open_calls;
mod peer;
mod protocol;
mod queue;
mod reply_reader;
mod request_reader;
mod server_core;
mod servers;
mod service;
mod service_stats;
mod settings;
mod unmatched_clients;

pub use action::{ActionBuilder, ActionContext, GoalPolicy};
pub(crate) use bytes::Bytes;
pub use bytes::Received;
pub use call_future::Pending;
pub use client::{CallOptions, Client, ClientBuilder};
#[doc(hidden)]
pub use client_cache::ClientCache;
#[doc(hidden)]
pub use client_core::ServerFilter;
#[doc(hidden)]
pub use command::StillValid;
pub use command::{
    Command, CommandBuilder, CommandStats, DriveBuilder, Driver, FallbackReason, HIGHEST_PRIORITY,
    command_log_topic, command_of_authority, command_of_report, command_of_status,
    command_status_topic,
};
pub use goal::{ActionClient, ActionClientBuilder, Goal};
pub use open_calls::ClientStats;
pub(crate) use protocol::{
    CallId, CallerKey, MAX_IN_FLIGHT, NUMBER_FLAGS, REDELIVERED, ROOT, WANTS, WANTS_ALL_REPLIES,
    WANTS_FEEDBACK, reason_from_wire, reason_to_wire,
};
#[doc(hidden)]
pub use protocol::{CallTopics, service_name};
pub use queue::{
    Job, JobContext, PullBuilder, Puller, PushBuilder, PushStats, Pusher, Undelivered,
};
pub use service::{CallContext, HandlerError, Responder, Service, ServiceBuilder};
pub use service_stats::ServiceStats;
