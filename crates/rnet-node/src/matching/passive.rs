//! Passive subscriptions, which a link between hosts opens for those of another host: found to fit or not as any
//! other, and served by the publishers that the link names.

use rnet_core::{Error, Result};
use rnet_shm::channel::subscription::PassivePage;
use rnet_shm::domain::node::Entry;
use rnet_shm::os::shortage::is_transient;

use super::Matching;
use super::own::OwnSubscription;
use super::peer_locations::PeerLocation;
use crate::match_event::{MatchEvent, Notice, PeerInfo, push_notice};

impl OwnSubscription {
    /// Binds a page to the publisher, if it is to serve us; returns whether it is.
    fn bind_passive(&mut self, publisher: u64, peer_location: &PeerLocation) -> Result<bool> {
        let Some(page) = self.served_by.get_mut(&publisher) else { return Ok(false) };
        if page.is_none() {
            let (topic, bell) = (&self.meta.topic, self.state.bell());
            let bind = PassivePage::bind;
            *page = Some(bind(&self.file, topic, (publisher, bell), peer_location.folder.clone())?);
        }
        Ok(true)
    }

    /// A publisher that fits is gone.
    pub fn drop_passive(&mut self, peer: PeerInfo, died: bool, notices: &mut Vec<Notice>) {
        if self.served_by.remove(&peer.id).flatten().is_some() {
            let event = if died { MatchEvent::Lost(peer) } else { MatchEvent::Unmatched(peer) };
            push_notice(notices, self.state.match_callbacks.clone(), event);
        }
    }
}

impl Matching {
    /// Our passive subscription has looked at a publisher, which fits or not.
    pub fn match_passive(
        &mut self,
        sub: u64,
        entry: &Entry,
        (peer, peer_location): (PeerInfo, &PeerLocation),
        fits: Result<()>,
        notices: &mut Vec<Notice>,
    ) {
        let Some(own) = self.subscriptions.get_mut(&sub) else { return };
        match fits.and_then(|()| own.bind_passive(entry.id, peer_location)) {
            Err(error) if is_transient(&error) => {
                return self.cannot_follow(sub, entry, error, notices);
            }
            Err(error) => {
                own.known.insert(entry.id, None);
                own.state.push_refusal(error.clone());
                push_notice(
                    notices,
                    own.state.match_callbacks.clone(),
                    MatchEvent::Incompatible(error),
                );
            }
            Ok(bound) => {
                own.shortage_reported.remove(&entry.id);
                own.known.insert(entry.id, Some(peer.node.clone()));
                if bound {
                    push_notice(
                        notices,
                        own.state.match_callbacks.clone(),
                        MatchEvent::Matched(peer),
                    );
                }
            }
        }
        if self.own.folder() != peer_location.folder {
            self.own.ring(&peer_location.folder);
        }
    }

    /// Our passive subscription is to be served by this publisher as soon as it fits, or no more. The next refresh
    /// does it.
    ///
    /// # Errors
    /// `BadValue` if it is not passive; `Closed` if it is not there any more.
    pub fn set_served_by(&mut self, id: u64, publisher: u64, yes: bool) -> Result<()> {
        let Some(own) = self.subscriptions.get_mut(&id) else {
            return Err(Error::closed("the subscription"));
        };
        if !own.meta.is_passive() {
            let why = "it chooses its publishers itself: open it as passive".to_owned();
            return Err(Error::bad_value("publishers of a subscription", why));
        }
        if yes {
            let is_bound = own.served_by.entry(publisher).or_default().is_some();
            // One that was found to fit is met anew.
            if !is_bound && own.known.get(&publisher).is_some_and(Option::is_some) {
                own.known.remove(&publisher);
            }
        } else {
            // Its page is freed, and the publisher rung.
            own.served_by.remove(&publisher);
        }
        self.pending.insert(own.topic_hash);
        Ok(())
    }
}
