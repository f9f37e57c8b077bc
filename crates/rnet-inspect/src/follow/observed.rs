//! What an observer receives: messages, and reports of missed messages.

use rnet_core::{Meta, PublisherQos, TypeDesc};
use rnet_schema::Schema;
use rnet_shm::channel::observe::MissedMessages;
use rnet_shm::channel::received::Stamp;

/// A message as an observer sees it.
#[derive(Debug)]
pub struct ObservedMessage<'a> {
    /// Publisher, number, times. `taken_ns` is the time at which the observer saw it; it does not measure the
    /// latency of subscribers.
    pub stamp: Stamp,
    /// The metadata of the message.
    pub meta: Meta,
    /// The topic.
    pub topic: &'a str,
    /// Name of the publisher's node.
    pub node: &'a str,
    /// The message type that the publisher declares.
    pub type_desc: &'a TypeDesc,
    /// What the publisher offers.
    pub qos: &'a PublisherQos,
    /// The protobuf type that it declares; `None` if its messages are of another kind, or the type could not
    /// be read.
    pub schema: Option<&'a Schema>,
}

/// The result of [`Follower::poll_all`](super::Follower::poll_all).
#[derive(Debug)]
pub enum Observed<'a> {
    /// A message.
    Message(ObservedMessage<'a>),
    /// Messages that the observer did not see.
    Missed {
        /// The messages, and why they were missed.
        missed: MissedMessages,
        /// The topic.
        topic: &'a str,
        /// Name of the publisher's node.
        node: &'a str,
    },
}
