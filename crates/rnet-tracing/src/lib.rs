//! A `tracing` layer that publishes events on `/log` as log lines of a node.
//!
//! ```
//! use tracing_subscriber::layer::SubscriberExt;
//! # fn main() -> rnet::Result<()> {
//! # let dir = std::env::temp_dir();
//! # let domain = format!("tracing{}", std::process::id());
//! # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
//! // let node = rnet::Node::new("arm")?;
//! let subscriber = tracing_subscriber::registry().with(rnet_tracing::layer(&node));
//! tracing::subscriber::with_default(subscriber, || {
//!     tracing::warn!(joint = 3, "hot");
//! });
//! # let path = node.domain_path().to_owned();
//! # drop(node);
//! # std::fs::remove_dir_all(path).ok();
//! # Ok(()) }
//! ```
//!
//! `rnet log` then shows `WARNING /arm: hot joint=3`.
#![forbid(unsafe_code)]

use std::fmt::{Debug, Write};

use rnet::{LogLevel, Node, WeakLogger};
use tracing_core::field::{Field, Visit};
use tracing_core::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Publishes events as log lines of a node; see [`layer`].
#[derive(Clone, Debug)]
pub struct RnetLayer {
    log: WeakLogger,
}

/// Creates a layer that publishes events on `/log` as log lines of `node`.
///
/// A line contains the event's message and its other fields, `key=value`. `TRACE` and `DEBUG` both map to
/// debug. Select events with filters (`Layer::with_filter`): the log level of the node does not apply. The
/// rate limits apply ([`rnet::Logger`]), and nothing is written to stderr.
///
/// The layer does not keep the node open. After the node is closed, the layer drops events.
pub fn layer(node: &Node) -> RnetLayer {
    RnetLayer { log: node.log().downgrade() }
}

impl<S: Subscriber> Layer<S> for RnetLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let level = match *metadata.level() {
            Level::ERROR => LogLevel::Error,
            Level::WARN => LogLevel::Warning,
            Level::INFO => LogLevel::Info,
            Level::DEBUG | Level::TRACE => LogLevel::Debug,
        };
        let mut text = Text::default();
        event.record(&mut text);
        let file = metadata.file().unwrap_or(metadata.target());
        let line = metadata.line().unwrap_or_default();
        self.log.publish(level, text.line(), file, line);
    }
}

/// An event as one line.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Text {
    fn line(self) -> String {
        (self.message + &self.fields).trim_start().to_owned()
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
