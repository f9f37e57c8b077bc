//! What a receiver says of itself: its status, and the audit trail.

use rnet_core::Result;

use super::authority::Holder;
use super::{command_log_topic, command_status_topic};
use crate::msgs::command_event::Kind;
use crate::msgs::{CommandEvent, CommandStatus, timestamp_now};
use crate::{Node, Publisher, PublisherOptions};

/// Lines of the audit trail that late subscribers get.
const KEPT_LINES: u32 = 128;

pub struct Tell {
    status: Publisher<CommandStatus>,
    log: Publisher<CommandEvent>,
}

impl Tell {
    pub fn open(node: &Node, topic: &str) -> Result<Tell> {
        // Neither waits for anybody, and both have their memory before they are needed.
        let status = PublisherOptions::new().urgent().transient_local(1).reserve_log();
        let log = PublisherOptions::new().urgent().transient_local(KEPT_LINES).reserve_log();
        Ok(Tell {
            status: node.publisher_with(&command_status_topic(topic), status)?,
            log: node.publisher_with(&command_log_topic(topic), log)?,
        })
    }

    /// The id of the publisher of the status.
    pub fn id(&self) -> u64 {
        self.status.id()
    }

    pub fn status(&mut self, status: &CommandStatus) {
        // Whoever is not told looks again: the receiver goes on in any case.
        let _ = self.status.send(status);
    }

    pub fn event(&mut self, kind: Kind, of: Option<&Holder>, text: &str) {
        let (node, priority, number) =
            of.map_or((String::new(), 0, 0), |of| (of.node.clone(), of.priority, of.number));
        self.line(kind, node, priority, number, text);
    }

    pub fn line(&mut self, kind: Kind, node: String, priority: i32, number: u64, text: &str) {
        let text = text.to_owned();
        let timestamp = Some(timestamp_now());
        let mut event = CommandEvent { timestamp, node, priority, number, text, kind: 0 };
        event.set_kind(kind);
        let _ = self.log.send(&event);
    }
}
