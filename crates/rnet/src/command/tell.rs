//! What a receiver says of itself: its status, and the audit trail.

use std::fmt::{Display, Write};

use rnet_core::Result;

use super::authority::Holder;
use super::{command_log_topic, command_status_topic};
use crate::msgs::command_event::Kind;
use crate::msgs::{CommandEvent, CommandStatus, timestamp_now};
use crate::{Node, Publisher, PublisherOptions};

/// Room for names and texts, so that to say something takes no memory: the longest name of a node of another host has
/// 266 bytes.
pub const ROOM: usize = 512;
/// Lines of the audit trail that late subscribers get.
const KEPT_LINES: u32 = 128;

pub struct Tell {
    status: Publisher<CommandStatus>,
    log: Publisher<CommandEvent>,
    /// What is said next.
    event: CommandEvent,
}

impl Tell {
    pub fn open(node: &Node, topic: &str) -> Result<Tell> {
        // Neither waits for anybody, and both have their memory before they are needed.
        let status = PublisherOptions::new().urgent().transient_local(1).reserve_log();
        let log = PublisherOptions::new().urgent().transient_local(KEPT_LINES).reserve_log();
        let mut status = node.publisher_with(&command_status_topic(topic), status)?;
        let mut log = node.publisher_with(&command_log_topic(topic), log)?;
        status.make_room(2 * ROOM);
        log.make_room(3 * ROOM);
        let room = || String::with_capacity(ROOM);
        let event = CommandEvent { node: room(), text: room(), ..Default::default() };
        Ok(Tell { status, log, event })
    }

    /// The id of the publisher of the status.
    pub fn id(&self) -> u64 {
        self.status.id()
    }

    pub fn status(&mut self, status: &CommandStatus) {
        // Whoever is not told looks again: the receiver goes on in any case.
        let _ = self.status.send(status);
    }

    pub fn event(&mut self, kind: Kind, of: Option<&Holder>, text: impl Display) {
        let (node, priority, number) =
            of.map_or(("", 0, 0), |of| (of.node.as_str(), of.priority, of.number));
        self.line(kind, node, priority, number, text);
    }

    pub fn line(&mut self, kind: Kind, node: &str, priority: i32, number: u64, text: impl Display) {
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
