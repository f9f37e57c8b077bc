//! Subscriptions that a link between hosts opens beside those of users.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rnet_core::Error;
use serde::{Deserialize, Serialize};

use super::{Binding, Slot, SubscriptionFile, SubscriptionMeta};

/// What a subscription does for a link between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkRole {
    /// It reads the messages of this publisher alone, to forward them. Nobody counts it.
    Forwards(u64),
    /// It says what subscriptions of another host ask for. It is counted by the publishers that it has bound a
    /// page to, and reads nothing.
    Passive,
}

impl SubscriptionMeta {
    /// Whether it may be matched with this publisher.
    pub fn may_follow(&self, publisher: u64) -> bool {
        !matches!(self.link, Some(LinkRole::Forwards(only)) if only != publisher)
    }

    /// Whether it counts as a subscription.
    pub fn counts(&self) -> bool {
        !matches!(self.link, Some(LinkRole::Forwards(_)))
    }

    /// Whether it reads nothing.
    pub fn is_passive(&self) -> bool {
        self.link == Some(LinkRole::Passive)
    }
}

/// A page of a passive subscription, bound to a publisher until it is dropped.
#[derive(Debug)]
pub struct PassivePage {
    own: Arc<SubscriptionFile>,
    slot: Arc<Slot>,
    /// Folder of the publisher's node.
    folder: PathBuf,
}

impl PassivePage {
    /// Binds a page. The publisher then has to be told.
    ///
    /// # Errors
    /// Those of [`SubscriptionFile::bind`].
    pub fn bind(
        own: &Arc<SubscriptionFile>,
        topic: &str,
        (publisher, bell): (u64, u64),
        folder: PathBuf,
    ) -> Result<PassivePage, Error> {
        let binding = Binding { publisher, reliable: false, history: 0, bell };
        let slot = own.bind(topic, binding)?;
        // For tools: nothing is left to read for it.
        slot.page().count.next_seq.store(u64::MAX, Ordering::Relaxed);
        Ok(PassivePage { own: own.clone(), slot, folder })
    }
}

impl Drop for PassivePage {
    fn drop(&mut self) {
        if self.own.fork_guard().is_from_parent() {
            return;
        }
        self.own.release(&self.slot);
        self.own.ring(&self.folder);
    }
}
