//! Publishers of this host that have ended while another host was away, and of which something waits for it: to that host
//! they are announced as if they were there, until it has had all of them.

use std::time::{Duration, Instant};

use super::super::directory::{Announce, to_json};
use super::super::known::Known;
use super::super::lane::Say;
use super::Host;
use crate::wire::Document;

/// For how long a host that is back may take to want a publisher: its subscribers have to find it first.
const PATIENCE: Duration = Duration::from_secs(10);

/// A publisher whose end is to be told.
pub struct Ending {
    since: Instant,
}

impl Host {
    /// Whether something of this publisher waits for it, and it has not asked for that yet.
    pub fn is_owed(&self, known: &Known, publisher: u64) -> bool {
        !self.given_once.contains(&publisher)
            && known.shared.offline.has((self.presence.host, publisher))
    }

    /// Tells the end of this publisher once it has had all.
    pub fn await_end(&mut self, publisher: u64) {
        self.ending.insert(publisher, Ending { since: Instant::now() });
    }

    /// The same for one that was announced as one that is there.
    pub fn end_later(&mut self, known: &Known, publisher: u64) {
        if let Some(ended) = known.ended.get(&publisher) {
            let announce = Announce { opened: vec![ended.describe()], ..Announce::default() };
            self.say(Say::Document(Document::Endpoints, to_json(&announce)));
        }
        self.await_end(publisher);
    }

    /// It has had all of this publisher.
    pub(super) fn tell_end(&mut self, publisher: u64) {
        if self.ending.remove(&publisher).is_none() {
            return;
        }
        // Those that have not lost it with this host know from its description whether its process has died.
        let announce = Announce { closed: vec![publisher], ..Announce::default() };
        self.say(Say::Document(Document::Endpoints, to_json(&announce)));
    }

    /// Tells the ends of those that it does not want.
    pub fn look_after_ending(&mut self, known: &Known) {
        let late = self.ending.iter().filter(|(id, ending)| {
            ending.since.elapsed() >= PATIENCE
                && !self.given_once.contains(id)
                && self.pending_wants.values().all(|wanted| wanted.publisher != **id)
        });
        for id in late.map(|(id, _)| *id).collect::<Vec<u64>>() {
            known.shared.offline.drop_all(|key| *key == (self.presence.host, id));
            self.tell_end(id);
        }
    }
}
