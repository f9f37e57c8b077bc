//! The dashboard of a robot-net domain: a web server with an embedded page.
//!
//! [`Dashboard::start`] is the entry point; docs/design/dashboard.md describes the protocol between page and
//! server. The dashboard observes publishers without slowing them, and opens a node when a page first needs
//! one.
//!
//! - `options`: options and errors; `server`: connections, their limits, the shutdown;
//! - `http`: requests other than the WebSocket, and access control; `socket`: the WebSocket of a page;
//! - `app_state`, `hub`: state shared by all parts and by all pages;
//! - `outbox`, `session`, `wire`: the send queue of a page, its requests, the message formats;
//! - `ticks`: data polled periodically: figures, state, parameters, recording, launch;
//! - `topic`: data read from topics: plots, messages, images, clouds, scans, transforms, logs;
//! - `operations`: operations on the domain: the node, changes, commands, calls.
//!
//! # Threads
//! `rnet-dashboard` serves all connections. `rnet-dash-tick` and `rnet-dash-read` take snapshots of the
//! domain and read topics, and sleep while no page has a subscription. Changes and calls run on a bounded
//! thread pool.
#![forbid(unsafe_code)]

mod app_state;
mod background_task;
mod form;
mod http;
mod hub;
mod operations;
mod options;
mod outbox;
mod server;
mod session;
mod socket;
mod ticks;
mod times;
mod topic;
mod wire;

pub use options::{DashboardError, Launch, Options};
pub use rnet_access::{AccessError, AccessOptions, EventCallback, TlsFiles};
pub use server::Dashboard;

/// Result of a dashboard operation.
pub type Result<T> = std::result::Result<T, DashboardError>;
