//! Publishers of this host that have ended while another host was away, and of which something waits for it: to that host
//! they are announced as if they were there, until it has had all of them.

use std::time::{Duration, Instant};

use super::super::control_state::ControlState;
use super::super::directory::{Announcement, to_json};
use super::super::lane::OutboxEntry;
use super::Host;
use crate::wire::Document;

/// For how long a host that is back may take to want a publisher: its subscribers have to find it first.
const WANT_TIMEOUT: Duration = Duration::from_secs(10);

/// A publisher whose end is to be told.
pub struct PendingEnd {
    since: Instant,
}

impl Host {
    /// Whether something of this publisher waits for it, and it has not asked for that yet.
    pub fn awaits_rest_of(&self, control: &ControlState, publisher: u64) -> bool {
        !self.granted_publishers.contains(&publisher)
            && control.shared.offline.has((self.presence.host, publisher))
    }

    /// Tells the end of this publisher once it has had all.
    pub fn add_pending_end(&mut self, publisher: u64) {
        self.pending_ends.insert(publisher, PendingEnd { since: Instant::now() });
    }

    /// The same for one that was announced as one that is there.
    pub fn announce_ended_publisher(&mut self, control: &ControlState, publisher: u64) {
        if let Some(ended) = control.ended.get(&publisher) {
            let announce =
                Announcement { opened: vec![ended.describe()], ..Announcement::default() };
            self.enqueue(OutboxEntry::Document(Document::Endpoints, to_json(&announce)));
        }
        self.add_pending_end(publisher);
    }

    /// It has had all of this publisher.
    pub(super) fn announce_end(&mut self, publisher: u64) {
        if self.pending_ends.remove(&publisher).is_none() {
            return;
        }
        // Those that have not lost it with this host know from its description whether its process has died.
        let announce = Announcement { closed: vec![publisher], ..Announcement::default() };
        self.enqueue(OutboxEntry::Document(Document::Endpoints, to_json(&announce)));
    }

    /// Tells the ends of those that it does not want.
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
