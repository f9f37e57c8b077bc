//! Shared by all compared systems: the trait that its driver implements, the message that it carries, the
//! processes that send, receive and count, and the words in which they report.
//!
//! A driver is one small file that implements [`System`] (or [`KeyValue`]) with the library's own
//! idiomatic client. Everything that is measured happens here, outside the drivers, and so is the
//! same for all: stamps, numbering, checks and histograms. docs/benchmark-method.md has the method.

pub mod calls;
pub mod child;
pub mod client;
pub mod clock;
pub mod collect;
pub mod control;
pub mod file;
pub mod key_value;
pub mod message;
pub mod net;
pub mod peer;
pub mod result;
pub mod round_trip;
pub mod send_schedule;
pub mod spec;
pub mod system;
pub mod worker;

pub use calls::{AsSystem, Calls, Client, Handler};
pub use key_value::{KeyValue, KeyValueClient};
pub use net::{Host, Net};
pub use system::{
    About, Broker, Error, Lane, Profile, Publisher, Result, Sink, Subscription, System, Topic,
};
