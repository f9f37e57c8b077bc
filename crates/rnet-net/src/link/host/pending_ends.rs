//! Publishers of this host that ended while another host was away and whose messages wait for it. They are
//! announced to that host as present until it has received all messages.

use std::time::{Duration, Instant};

use super::super::announcements::{Announcement, to_json};
use super::super::control_state::ControlState;
use super::super::lane::OutboxEntry;
use super::Host;
use crate::wire::Document;

/// Time for a host that is back to request a publisher: its subscribers have to find it first.
const WANT_TIMEOUT: Duration = Duration::from_secs(10);

/// A publisher whose end is to be announced.
pub struct PendingEnd {
    since: Instant,
}

impl Host {
    /// Whether messages of this publisher wait for the host and it has not requested them yet.
    pub fn awaits_rest_of(&self, control: &ControlState, publisher: u64) -> bool {
        !self.granted_publishers.contains(&publisher)
            && control.shared.offline.has((self.presence.host, publisher))
    }

    /// Announces the end of this publisher once the host has received everything.
    pub fn add_pending_end(&mut self, publisher: u64) {
        self.pending_ends.insert(publisher, PendingEnd { since: Instant::now() });
    }

    /// Does the same for a publisher that was announced as present.
    pub fn announce_ended_publisher(&mut self, control: &ControlState, publisher: u64) {
        if let Some(ended) = control.ended.get(&publisher) {
            let announce =
                Announcement { opened: vec![ended.describe()], ..Announcement::default() };
            self.enqueue(OutboxEntry::Document(Document::Endpoints, to_json(&announce)));
        }
        self.add_pending_end(publisher);
    }

    /// Announces that the host has received everything of this publisher.
    pub(super) fn announce_end(&mut self, publisher: u64) {
        if self.pending_ends.remove(&publisher).is_none() {
            return;
        }
        // Hosts that did not lose the publisher together with this host know from its description whether
        // its process has died.
        let announce = Announcement { closed: vec![publisher], ..Announcement::default() };
        self.enqueue(OutboxEntry::Document(Document::Endpoints, to_json(&announce)));
    }

    /// Announces the ends of publishers that the host does not request.
    pub fn expire_pending_ends(&mut self, control: &ControlState) {
        let late = self.pending_ends.iter().filter(|(id, ending)| {
            ending.since.elapsed() >= WANT_TIMEOUT
                && !self.granted_publishers.contains(id)
                && self.pending_wants.values().all(|wanted| wanted.publisher != **id)
        });
        for id in late.map(|(id, _)| *id).collect::<Vec<u64>>() {
            control.shared.offline.drop_all(|key| *key == (self.presence.host, id));
            self.announce_end(id);
        }
    }
}
