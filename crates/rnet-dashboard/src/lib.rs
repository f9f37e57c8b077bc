//! The dashboard of a robot-net domain: a web server with the page in it.
//!
//! [`Dashboard::start`] is all there is for users; what page and server say to each other is drawn in
//! docs/design/dashboard.md. It looks from outside, so publishers do not feel it, and takes part with a node from the
//! moment at which a page asks for something that needs one.
//!
//! - `options`: who may reach the server; `server`: connections, their limits, the end;
//! - `http`: what is asked without a WebSocket, and what is refused; `socket`: the WebSocket of a page;
//! - `app_state`, `hub`: what everything and what all pages share;
//! - `outbox`, `session`, `wire`: what waits for a page, what it has asked for, the words of both;
//! - `ticks`: what is looked at from time to time: figures, state, parameters, recording, launch;
//! - `topic`: what is read of topics that a page looks at: plots, messages, images, clouds, scans, transforms, logs;
//! - `operations`: what takes part: the node, changes, commands, calls.
//!
//! # Threads
//! `rnet-dashboard` serves all connections. `rnet-dash-tick` and `rnet-dash-read` look at the domain and read topics,
//! and sleep while no page wants anything. Changes and calls run on threads of a pool that is bounded.
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

pub use options::{Access, DashboardError, Launch, Options};
pub use rnet_access::Tls;
pub use server::Dashboard;

/// What failed, or what came of it.
pub type Result<T> = std::result::Result<T, DashboardError>;
