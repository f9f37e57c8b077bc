//! Records of traces, as they come from their topics.

use std::collections::HashMap;

use rnet::inspect::Snapshot;
use rnet::trace::{TraceRecord, traced_topic};
use rnet::{Sample, Subscriber};

use super::{Traced, Uncertainty};

/// Takes the records that a subscriber of a trace has; returns how many had no room below `max_records`.
///
/// # Errors
/// The subscriber cannot receive.
pub fn take_records(
    subscriber: &mut Subscriber<[u8]>,
    max_records: usize,
    records: &mut Vec<Traced>,
) -> rnet::Result<u64> {
    let mut left_out = 0;
    loop {
        match subscriber.try_recv() {
            Ok(None) => return Ok(left_out),
            Ok(Some(_)) if records.len() >= max_records => left_out += 1,
            Ok(Some(sample)) => records.extend(parse_record(&sample)),
            // A node that dies, or one whose records are no such, ends its own part of the trace.
            Err(rnet::Error::PeerLost { .. } | rnet::Error::IncompatibleType { .. }) => {}
            Err(rnet::Error::Corrupt { .. } | rnet::Error::Detached { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}

/// A record, if it is a sound one; they come from other processes.
fn parse_record(sample: &Sample<'_, [u8]>) -> Option<Traced> {
    let record = TraceRecord::from_bytes(sample).filter(TraceRecord::is_consistent)?;
    let topic = traced_topic(sample.topic())?.to_owned();
    let traced = Traced { topic, node: sample.node().to_owned(), record, clock: Uncertainty::NONE };
    Some(match sample.origin() {
        // The link has put the time of its writing on our clock.
        Some(_) => {
            traced.on_our_clock(sample.sent_ns(), Uncertainty::of(sample.sent_uncertainty_ns()))
        }
        None => traced,
    })
}

/// In which nodes publishers are, those of other hosts by both their ids.
#[derive(Default)]
pub struct PublisherNames(HashMap<u64, String>);

impl PublisherNames {
    /// Adds the publishers of a snapshot.
    pub fn add_from(&mut self, snapshot: &Snapshot) {
        for publisher in &snapshot.publishers {
            let ids = std::iter::once(publisher.id).chain(publisher.stands_for);
            self.0.extend(ids.map(|id| (id, publisher.node.clone())));
        }
    }

    /// The node whose publisher sent the message of a record.
    pub fn name_of(&self, record: &TraceRecord) -> Option<String> {
        let ids = [record.message().0, record.publisher];
        ids.iter().find_map(|id| self.0.get(id)).cloned()
    }
}
