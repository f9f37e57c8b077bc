//! Publishes a receiver's status and its audit trail.

use std::fmt::{Display, Write};

use rnet_core::Result;
use rnet_node::internal::EnginePublisher;

use super::authority::Holder;
use super::{command_log_topic, command_status_topic};
use crate::msgs::command_event::Kind;
use crate::msgs::{CommandEvent, CommandStatus};
use rnet_node::msgs::timestamp_now;
use rnet_node::{NodeHandle, Publisher};

/// Capacity for names and texts, so that a report does not allocate: the longest name of a node of another
/// host has 266 bytes.
pub const TEXT_CAPACITY: usize = 512;
/// Events of the audit trail that late subscribers get.
const MAX_LATE_EVENTS: u32 = 128;

pub struct StatusReporter {
    status: Publisher<CommandStatus>,
    log: Publisher<CommandEvent>,
    /// The next event.
    event: CommandEvent,
}

impl StatusReporter {
    pub fn open(node: &NodeHandle, topic: &str) -> Result<StatusReporter> {
        // Neither publisher waits for subscribers, and both preallocate their memory.
        let publisher = node.publisher(&command_status_topic(topic));
        let mut status = publisher.urgent().transient_local(1).reserve_log().open()?;
        let publisher = node.publisher(&command_log_topic(topic));
        let mut log = publisher.urgent().transient_local(MAX_LATE_EVENTS).reserve_log().open()?;
        status.reserve_encoded(2 * TEXT_CAPACITY);
        log.reserve_encoded(3 * TEXT_CAPACITY);
        let room = || String::with_capacity(TEXT_CAPACITY);
        let event = CommandEvent { node: room(), text: room(), ..Default::default() };
        Ok(StatusReporter { status, log, event })
    }

    /// The id of the publisher of the status.
    pub fn id(&self) -> u64 {
        self.status.id()
    }

    pub fn publish_status(&mut self, status: &CommandStatus) {
        // A subscriber that misses a status reads the next one: the receiver continues in any case.
        let _ = self.status.send(status);
    }

    pub fn log_holder_event(&mut self, kind: Kind, of: Option<&Holder>, text: impl Display) {
        let (node, priority, number) =
            of.map_or(("", 0, 0), |of| (of.node.as_str(), of.priority, of.number));
        self.log_event(kind, node, priority, number, text);
    }

    pub fn log_event(
        &mut self,
        kind: Kind,
        node: &str,
        priority: i32,
        number: u64,
        text: impl Display,
    ) {
        let event = &mut self.event;
        event.timestamp = Some(timestamp_now());
        event.set_kind(kind);
        event.node.clear();
        event.node.push_str(node);
        (event.priority, event.number) = (priority, number);
        event.text.clear();
        let _ = write!(event.text, "{text}");
        let _ = self.log.send(event);
    }
}
