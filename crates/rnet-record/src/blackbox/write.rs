//! Writes one file from the parts of a window.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use mcap::records::Metadata;
use rnet::WallOffset;

use super::trigger_queue::FiredTrigger;
use crate::names;
use crate::read::{Message, Recording, Select};
use crate::tools::{OutputFile, ToolError, WrittenMessages, offset_ns};

/// Writes the parts, the oldest first, as one file, with its triggers and with the reason for missing data,
/// if any. Returns which parts cannot be read.
///
/// Parts follow each other in time, so they are written one after the other. A part repeats records of
/// earlier parts at its start (the state, and the messages that transient_local publishers keep); these
/// repetitions are not written.
///
/// # Errors
/// The file already exists, or cannot be written.
pub fn write(
    parts: &[PathBuf],
    to: &Path,
    (fired, incomplete): (&[FiredTrigger], Option<&str>),
    graph: Option<Vec<u8>>,
) -> Result<Vec<String>, ToolError> {
    let mut unread = Vec::new();
    let mut output = OutputFile::create(to, names::PROFILE, names::LIBRARY, "lz4")?;
    let mut repeats = RepeatFilter::default();
    let (mut losses, mut nodes) = (BTreeMap::new(), BTreeMap::new());
    let (mut unheard, mut followed) = (BTreeMap::new(), 0);
    let mut clock = None;
    for path in parts {
        let part = match Recording::open(path) {
            Ok(part) => part,
            Err(error) => {
                unread.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        if part.info().is_damaged() {
            let problems = part.info().problems.iter().take(1);
            unread.extend(problems.map(|problem| format!("{}: {problem}", path.display())));
        }
        for metadata in &part.info().metadata {
            match &*metadata.name {
                names::RECORDING if clock.is_some() => {}
                names::RECORDING => output.metadata(metadata)?,
                names::CLOCK => {
                    let offset = |of: &Metadata| of.metadata.get("offset_ns").cloned();
                    if clock.replace(offset(metadata)) != Some(offset(metadata)) {
                        output.metadata(metadata)?;
                    }
                }
                names::LOSSES => add_counts(&mut losses, &metadata.metadata),
                names::UNHEARD => {
                    add_counts(&mut unheard, &metadata.metadata);
                    // For a black box it is the number since its start, which only grows.
                    let said = metadata.metadata.get("followed").and_then(|n| n.parse().ok());
                    followed = said.unwrap_or(0).max(followed);
                }
                names::NODES => nodes.extend(metadata.metadata.clone()),
                _ => output.metadata(metadata)?,
            }
        }
        let offset_ns = offset_ns(&part);
        for message in part.messages(Select { with_reserved: true, ..Select::default() }) {
            match message {
                Ok(message) if repeats.is_repeated(&message, offset_ns) => {}
                Ok(message) => output.message(&message, None)?,
                Err(error) => unread.push(format!("{}: {error}", path.display())),
            }
        }
    }
    if let Some(data) = graph {
        let now = u64::try_from(rnet::wall_offset().offset_ns).unwrap_or(0) + rnet::now_ns();
        output.attachment(&mcap::Attachment {
            log_time: now,
            create_time: now,
            name: names::GRAPH.to_owned(),
            media_type: "application/json".to_owned(),
            data: data.into(),
        })?;
    }
    let wall = rnet::wall_offset();
    let incomplete = match (incomplete, &unread[..]) {
        (why, []) => why.map(str::to_owned),
        (why, [first, ..]) => {
            let why = why.map(|why| format!("{why}; ")).unwrap_or_default();
            Some(format!("{why}it lacks data that cannot be read: {first}"))
        }
    };
    for fired in fired {
        output.metadata(&trigger(fired, &wall, incomplete.as_deref()))?;
    }
    output.metadata(&Metadata { name: names::LOSSES.to_owned(), metadata: with_total(losses) })?;
    let mut unheard = with_total(unheard);
    unheard.insert("followed".to_owned(), u64::to_string(&followed));
    output.metadata(&Metadata { name: names::UNHEARD.to_owned(), metadata: unheard })?;
    output.metadata(&Metadata { name: names::NODES.to_owned(), metadata: nodes })?;
    output.finish()?;
    Ok(unread)
}

fn with_total(counts: BTreeMap<String, u64>) -> BTreeMap<String, String> {
    let total: u64 = counts.values().sum();
    let counts = counts.into_iter().map(|(key, count)| (key, count.to_string()));
    counts.chain([("total".to_owned(), total.to_string())]).collect()
}

fn add_counts(losses: &mut BTreeMap<String, u64>, more: &BTreeMap<String, String>) {
    for (key, count) in more.iter().filter(|(key, _)| !["total", "followed"].contains(&&***key)) {
        *losses.entry(key.clone()).or_default() += count.parse().unwrap_or(0);
    }
}

fn trigger(fired: &FiredTrigger, wall: &WallOffset, incomplete: Option<&str>) -> Metadata {
    let said = [
        ("name", fired.name.clone()),
        ("why", fired.why.clone()),
        ("at_ns", fired.at_ns.saturating_add_signed(wall.offset_ns).to_string()),
        ("monotonic_ns", fired.at_ns.to_string()),
    ];
    let said = said.into_iter().chain(incomplete.map(|why| ("incomplete", why.to_owned())));
    let metadata = said.map(|(key, value)| (key.to_owned(), value)).collect();
    Metadata { name: names::TRIGGER.to_owned(), metadata }
}

/// Detects records that a part repeats.
#[derive(Default)]
struct RepeatFilter {
    /// Messages of transient_local publishers, and records about messages.
    written_messages: WrittenMessages,
    /// The last revision of each key of the state.
    keys: HashMap<String, u64>,
}

impl RepeatFilter {
    /// Whether the message was already written.
    fn is_repeated(&mut self, message: &Message, offset_ns: i64) -> bool {
        let channel = &message.channel;
        let is_kept = |durability: &String| durability == "transient_local";
        match &*channel.topic {
            names::STATE_TOPIC => self.is_repeated_key(message.data()).unwrap_or(false),
            names::META_TOPIC => !self.written_messages.is_new(message, offset_ns),
            _ if channel.metadata.get(names::DURABILITY_KEY).is_some_and(is_kept) => {
                !self.written_messages.is_new(message, offset_ns)
            }
            _ => false,
        }
    }

    fn is_repeated_key(&mut self, text: &[u8]) -> Option<bool> {
        let said: serde_json::Value = serde_json::from_slice(text).ok()?;
        let (key, revision) = (said.get("key")?.as_str()?, said.get("revision")?.as_u64()?);
        let before = self.keys.insert(key.to_owned(), revision);
        Some(said.get("initial").is_some() && before == Some(revision))
    }
}
