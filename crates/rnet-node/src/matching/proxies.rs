//! Proxies: endpoints that stand for those of other hosts.

use rnet_core::{Error, Proxy, Result};
use rnet_shm::node::Entry;

use super::Matching;
use super::own::OwnPublisher;
use crate::match_event::{MatchEvent, Notice, push_notice};

/// The node that users see: of a proxy that for which it stands.
pub fn shown(proxy: &Option<Proxy>, node: &str) -> String {
    proxy.as_ref().map_or_else(|| node.to_owned(), Proxy::to_string)
}

impl OwnPublisher {
    /// A proxy that is served may stand for more or fewer by now.
    pub fn note_ends(&self, entry: &Entry, notices: &mut Vec<Notice>) {
        let mut matches = self.state.lock();
        match matches.ends.get_mut(&entry.id) {
            Some(ends) if *ends != entry.ends => *ends = entry.ends,
            _ => return,
        }
        let Some(info) = matches.matched.iter().find(|p| p.id == entry.id).cloned() else { return };
        drop(matches);
        self.state.changed.notify_all();
        push_notice(notices, self.state.hooks.clone(), MatchEvent::Changed(info));
    }
}

impl Matching {
    /// Our subscription, which is a proxy, stands for so many ends from now on. The next refresh tells our own
    /// publishers.
    ///
    /// # Errors
    /// `BadValue` if it is no proxy; `Closed` if it is not there any more; those of announcing.
    pub fn set_ends(&mut self, id: u64, ends: u32) -> Result<()> {
        let found = self.subscriptions.get(&id).map(|s| (s.topic_hash, s.meta.proxy.is_some()));
        let Some((topic_hash, is_proxy)) = found else {
            return Err(Error::Closed { what: "the subscription".to_owned() });
        };
        if !is_proxy {
            let why = "it stands for itself: open it as a proxy".to_owned();
            return Err(Error::BadValue { what: "ends of a subscription".to_owned(), why });
        }
        let Some(before) = self.entry_of(id, topic_hash).filter(|entry| entry.ends != ends) else {
            return Ok(());
        };
        let entry = Entry { ends, ..before };
        self.own.announce(entry)?;
        self.unindex(&before);
        self.index_own(entry);
        self.ring_counterparts(entry);
        self.observers.ring_endpoints();
        Ok(())
    }
}
