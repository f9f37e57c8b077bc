//! What an observer is told: messages that passed by, and those that it missed.

use rnet_core::{Meta, PublisherQos, TypeDesc};
use rnet_schema::Schema;
use rnet_shm::channel::observe::MissedMessages;
use rnet_shm::channel::received::Stamp;

/// A message that passed by.
#[derive(Debug)]
pub struct ObservedMessage<'a> {
    /// Publisher, number, times. `taken_ns` is when the observer saw it, which says nothing of
    /// the latency that subscribers have.
    pub stamp: Stamp,
    /// What it carries beside its content.
    pub meta: Meta,
    /// Its topic.
    pub topic: &'a str,
    /// Name of the publisher's node.
    pub node: &'a str,
    /// What the publisher says its messages are.
    pub type_desc: &'a TypeDesc,
    /// What the publisher offers.
    pub qos: &'a PublisherQos,
    /// The protobuf type that it names; `None` if its messages are of another kind, or the type
    /// could not be read.
    pub schema: Option<&'a Schema>,
}

/// What [`Follower::poll_all`](super::Follower::poll_all) finds.
#[derive(Debug)]
pub enum Observed<'a> {
    /// A message.
    Message(ObservedMessage<'a>),
    /// Messages that the observer did not see.
    Missed {
        /// Which, and why.
        missed: MissedMessages,
        /// Their topic.
        topic: &'a str,
        /// Name of the publisher's node.
        node: &'a str,
    },
}
