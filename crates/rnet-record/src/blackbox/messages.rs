//! Triggers that messages fire: a field, a log line, the fallback of a command.
//!
//! Runs on the recorder's reader thread. The first message of a publisher resolves its type for the
//! triggers. After that, a message on a topic without a trigger costs one map lookup.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rnet::inspect::CallType;
use rnet::msgs::command_event::Kind;
use rnet::msgs::{CommandEvent, Log};
use rnet::{LOG_TOPIC, LogLevel, MessageType};
use rnet_schema::prost_reflect::prost::Message as _;

use super::NODE;
use super::counters::QUIET_PERIOD;
use super::trigger::{CompareOp, Trigger, TriggerKind, pattern_matches};
use super::trigger_queue::{FiredTrigger, TriggerQueue};
use crate::read::FieldReader;
use crate::recorder::{MessageHook, Publisher};

/// Prefix and suffix around the name of a command in the topic of its audit trail.
const COMMAND_LOG: (&str, &str) = ("/_rnet/command", "/log");
/// Maximum number of characters of a log line in the reason.
const MAX_LINE_CHARS: usize = 200;

pub struct MessageTriggers {
    triggers: Vec<Trigger>,
    trigger_queue: Arc<TriggerQueue>,
    /// Messages sent before this time fire nothing.
    since_ns: u64,
    by_publisher: Mutex<HashMap<u64, Vec<PublisherTrigger>>>,
}

impl std::fmt::Debug for MessageTriggers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageTriggers").field("triggers", &self.triggers).finish_non_exhaustive()
    }
}

/// A trigger that messages of one publisher may fire.
struct PublisherTrigger {
    name: String,
    condition: Condition,
    /// Buffer for the bytes of the field.
    bytes: Vec<u8>,
}

enum Condition {
    Field { reader: FieldReader, op: CompareOp, limit: f64, holds: bool },
    Log { level: LogLevel, text: String, last_ns: Option<u64> },
    Fallback { command: String, is_in_force: bool, driver: String },
}

impl MessageTriggers {
    pub fn new(triggers: &[Trigger], trigger_queue: Arc<TriggerQueue>) -> MessageTriggers {
        let (triggers, since_ns) = (triggers.to_vec(), rnet::now_ns());
        MessageTriggers { triggers, trigger_queue, since_ns, by_publisher: Mutex::default() }
    }

    fn publisher_triggers(&self, publisher: &Publisher) -> Vec<PublisherTrigger> {
        let publisher_trigger = |trigger: &Trigger| {
            let condition = self.condition_for(trigger, publisher)?;
            Some(PublisherTrigger { name: trigger.to_string(), condition, bytes: Vec::new() })
        };
        self.triggers.iter().filter_map(publisher_trigger).collect()
    }

    fn condition_for(&self, trigger: &Trigger, publisher: &Publisher) -> Option<Condition> {
        match &trigger.kind {
            TriggerKind::Field { topic, field, op, limit } if *topic == publisher.topic => {
                match reader(publisher, field) {
                    Ok(reader) => {
                        Some(Condition::Field { reader, op: *op, limit: *limit, holds: false })
                    }
                    Err(why) => {
                        let node = &publisher.source.node;
                        self.trigger_queue.note(format!(
                            "trigger {trigger} cannot fire on {topic} of {node}: {why}"
                        ));
                        None
                    }
                }
            }
            // The box's own log lines would make it write files about itself.
            TriggerKind::Log { level, text }
                if publisher.topic == LOG_TOPIC && publisher.source.node != NODE =>
            {
                Some(Condition::Log { level: *level, text: text.clone(), last_ns: None })
            }
            TriggerKind::Fallback(pattern) => {
                let name = publisher.topic.strip_prefix(COMMAND_LOG.0)?;
                let command = name
                    .strip_suffix(COMMAND_LOG.1)
                    .filter(|name| pattern_matches(pattern, name))?;
                let (command, driver) = (command.to_owned(), String::new());
                Some(Condition::Fallback { command, is_in_force: false, driver })
            }
            _ => None,
        }
    }
}

impl MessageHook for MessageTriggers {
    fn on_message(&self, publisher: &Arc<Publisher>, sent_ns: u64, bytes: &[u8]) {
        let mut by_publisher = self.by_publisher.lock().unwrap_or_else(PoisonError::into_inner);
        let of = by_publisher
            .entry(publisher.source.publisher)
            .or_insert_with(|| self.publisher_triggers(publisher));
        if of.is_empty() {
            return;
        }
        // A publisher may set any time. A time in the future would delay the file until then.
        let sent_ns = sent_ns.min(rnet::now_ns());
        for trigger in of {
            if let Some(why) = trigger.check(sent_ns, bytes)
                && sent_ns >= self.since_ns
            {
                let by = match &trigger.condition {
                    Condition::Fallback { driver, .. } => Some(driver.clone()),
                    _ => None,
                };
                self.trigger_queue
                    .push(FiredTrigger { name: trigger.name.clone(), why, at_ns: sent_ns }, by);
            }
        }
    }

    fn on_publisher_gone(&self, publisher: u64) {
        self.by_publisher.lock().unwrap_or_else(PoisonError::into_inner).remove(&publisher);
    }
}

impl PublisherTrigger {
    /// Whether this message fires the trigger, and why. A malformed message fires nothing.
    fn check(&mut self, sent_ns: u64, message: &[u8]) -> Option<String> {
        match &mut self.condition {
            Condition::Field { reader, op, limit, holds } => {
                // A message without the field is not compared.
                let value = reader.read_f64(message, &mut self.bytes).ok().flatten();
                let now = value.is_some_and(|value| op.holds(value, *limit));
                let begins = !std::mem::replace(holds, now) && now;
                begins.then(|| format!("it is {}", value.unwrap_or(f64::NAN)))
            }
            Condition::Log { level, text, last_ns } => {
                let line = Log::decode(message).ok()?;
                let said = LogLevel::from_number(line.level)?;
                if said < *level || !line.message.contains(&**text) {
                    return None;
                }
                let before_ns = last_ns.replace(sent_ns);
                let rested =
                    |before| u128::from(sent_ns.saturating_sub(before)) >= QUIET_PERIOD.as_nanos();
                before_ns.is_none_or(rested).then(|| {
                    let shown: String = line.message.chars().take(MAX_LINE_CHARS).collect();
                    format!("{} of {}: {shown}", said.name(), line.name)
                })
            }
            Condition::Fallback { command, is_in_force, driver } => {
                let event = CommandEvent::decode(message).ok()?;
                if !event.node.is_empty() {
                    driver.clone_from(&event.node);
                }
                match event.kind() {
                    Kind::InForce => *is_in_force = true,
                    // A driver that releases its authority has finished its work.
                    Kind::Released => *is_in_force = false,
                    Kind::Fallback if std::mem::take(is_in_force) => {
                        return Some(format!("{command} has fallen back: {}", event.text));
                    }
                    _ => {}
                }
                None
            }
        }
    }
}

fn reader(publisher: &Publisher, field: &str) -> Result<FieldReader, String> {
    let of = CallType { desc: &publisher.type_desc, schema: publisher.schema.as_ref() };
    let ty = of.message_type().unwrap_or(MessageType::Raw);
    FieldReader::single_number(&ty, field)
}
