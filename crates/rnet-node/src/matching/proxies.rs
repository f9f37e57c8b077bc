//! Proxies: endpoints that stand for those of other hosts.

use rnet_core::{Error, Proxy, Result};
use rnet_shm::domain::node::Entry;

use super::Matching;
use super::own::OwnPublisher;
use crate::match_event::{MatchEvent, Notice, PeerInfo, push_notice};

/// The node that users see: of a proxy that for which it stands.
pub fn visible_node(proxy: &Option<Proxy>, node: &str) -> String {
    proxy.as_ref().map_or_else(|| node.to_owned(), Proxy::to_string)
}

impl OwnPublisher {
    /// A proxy that is served may stand for more or fewer by now.
    pub fn note_endpoint_count(&self, entry: &Entry, notices: &mut Vec<Notice>) {
        let mut matches = self.state.lock();
        match matches.endpoint_counts.get_mut(&entry.id) {
            Some(count) if *count != entry.endpoint_count => *count = entry.endpoint_count,
            _ => return,
        }
        let Some(info) = matches.matched.iter().find(|p| p.id == entry.id).cloned() else { return };
        drop(matches);
        self.state.changed.notify_all();
        push_notice(notices, self.state.match_callbacks.clone(), MatchEvent::Changed(info));
    }
}

impl OwnPublisher {
    /// Whether this subscription, which has bound a page to us, is to be admitted now. One that is not is
    /// reported once.
    pub fn admits(&mut self, peer: &PeerInfo, notices: &mut Vec<Notice>) -> bool {
        let Some(granted) = &self.granted else { return true };
        let mut matches = self.state.lock();
        if granted.contains(&peer.id) {
            matches.awaiting_admission.retain(|p| p.id != peer.id);
            return true;
        }
        if !matches.awaiting_admission.contains(peer) {
            matches.awaiting_admission.push(peer.clone());
            drop(matches);
            push_notice(
                notices,
                self.state.match_callbacks.clone(),
                MatchEvent::AdmissionRequested(peer.clone()),
            );
        }
        false
    }
}

impl Matching {
    /// Our publisher, which defers, is to admit this subscription. The next refresh does it.
    ///
    /// # Errors
    /// `Closed` if the publisher is not there any more.
    pub fn admit(&mut self, publisher: u64, subscription: u64) -> Result<()> {
        let Some(own) = self.publishers.get_mut(&publisher) else {
            return Err(Error::closed("the publisher"));
        };
        if let Some(granted) = &mut own.granted {
            granted.insert(subscription);
        }
        self.pending.insert(own.topic_hash);
        Ok(())
    }

    /// Our subscription, which is a proxy, stands for so many endpoints from now on. The next refresh tells our own
    /// publishers.
    ///
    /// # Errors
    /// `BadValue` if it is no proxy; `Closed` if it is not there any more; those of announcing.
    pub fn set_endpoint_count(&mut self, id: u64, endpoint_count: u32) -> Result<()> {
        let found = self.subscriptions.get(&id).map(|s| (s.topic_hash, s.meta.proxy.is_some()));
        let Some((topic_hash, is_proxy)) = found else {
            return Err(Error::closed("the subscription"));
        };
        if !is_proxy {
            let why = "it is not a proxy: open it as a proxy".to_owned();
            return Err(Error::bad_value("endpoints of a subscription", why));
        }
        let Some(before) =
            self.entry_of(id, topic_hash).filter(|entry| entry.endpoint_count != endpoint_count)
        else {
            return Ok(());
        };
        let entry = Entry { endpoint_count, ..before };
        self.own.announce(entry)?;
        self.unindex(&before);
        self.index_own(entry);
        self.ring_counterparts(entry);
        self.observers.ring_endpoints();
        Ok(())
    }
}
