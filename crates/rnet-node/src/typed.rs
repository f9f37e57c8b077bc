//! Typed endpoints: types that send and receive Rust messages, and types that wait for messages and time.
//!
//! Calls, remote state and observers are built from topics, so their crates use these types. Users see them
//! in `rnet`.

mod any_subscription;
mod batch;
mod callback;
pub mod data_header;
pub mod data_loan;
mod dynamic;
mod publisher;
mod rate;
mod sample;
mod stream;
mod subscriber;
mod subscriber_builder;
mod subscriber_settings;
mod timer;
mod wait_set;
mod wait_set_entry;
mod waitable;

pub use any_subscription::AnySubscription;
pub use dynamic::Dynamic;
pub use publisher::{Loan, OwnedLoan, Publisher, PublisherBuilder};
pub use rate::Rate;
pub use sample::{OwnedSample, Sample};
pub use stream::{ReceiveStream, SampleStream};
pub(crate) use subscriber::Decode;
pub use subscriber::{MalformedCounter, Samples, Subscriber};
pub use subscriber_builder::SubscriberBuilder;
pub use subscriber_settings::SubscriberSettings;
pub use timer::{Timer, TimerBuilder};
pub use wait_set::WaitSet;
pub use wait_set_entry::{WaitSetEntry, WaitSetHandle};
pub use waitable::{TryReceive, Waitable};
