//! Publishers of the other host that are gone: their proxies close once all received messages are
//! published.

use rnet::Lane;

use super::super::control_state::ControlState;
use super::super::lane::OutboxEntry;
use super::super::lock::lock;
use super::{Host, RemotePublisher};
use crate::wire::Item;

impl RemotePublisher {
    /// Returns whether the publisher is lost for its subscribers. The other host reports whether its
    /// process has died. A publisher that was announced as ended is closed last, and may have been lost
    /// before, together with its host.
    pub(super) fn is_lost(&self, died: bool) -> bool {
        self.ended.map_or(died, |died| died && !self.was_lost)
    }
}

impl Host {
    /// Handles an endpoint there that is gone.
    pub(super) fn endpoint_gone(&mut self, control: &mut ControlState, id: u64, lost: bool) {
        self.denied.remove(&id);
        self.retry_queue.remove(id);
        self.unresolved_types.remove(id);
        if let Some((_, passive)) = self.subscriptions.remove(&id) {
            for granted in self.granted.values_mut() {
                granted.served.remove(&id);
            }
            drop(passive);
        }
        let early: Vec<_> = self.early_deliveries_of(id).collect();
        for key in early {
            self.early_deliveries.remove(&key);
        }
        let Some(remote) = self.publishers.get_mut(&id) else { return };
        let lost = remote.leaving.unwrap_or_else(|| remote.is_lost(lost));
        // Messages that its channel still delivers come first.
        if remote.channel.is_some() {
            remote.leaving = Some(lost);
        } else {
            self.drop_publisher(control, id, lost);
        }
    }

    pub(super) fn drop_publisher(&mut self, control: &mut ControlState, id: u64, lost: bool) {
        let Some(remote) = self.publishers.remove(&id) else { return };
        if let Some(channel) = remote.channel {
            lock(&self.lane(remote.remote.lane()).channels).remove(&channel);
        }
        let mut proxy = lock(&remote.proxy);
        proxy.drop_waiting();
        proxy.close(lost);
        control.shared.positions.release(proxy.take_slot());
    }

    /// Handles the end of an inbound channel by its owner.
    pub(super) fn end_channel(&mut self, control: &mut ControlState, lane: Lane, channel: u32) {
        let ours = self
            .publishers
            .iter()
            .find(|(_, remote)| remote.remote.lane() == lane && remote.channel == Some(channel));
        let Some(id) = ours.map(|(id, _)| *id) else { return };
        let Some(remote) = self.publishers.get_mut(&id) else { return };
        remote.over = lock(&remote.proxy).is_blocked();
        if remote.over {
            // While the lane's thread knows the channel, it publishes the rest; then `finish_drained` ends
            // it.
            return;
        }
        remote.channel = None;
        let (leaving, reliable) = (remote.leaving, remote.reliable);
        lock(&self.lane(lane).channels).remove(&channel);
        if let Some(lost) = leaving {
            self.drop_publisher(control, id, lost);
        }
        if reliable {
            // The owner keeps the publisher until this item, so its end is reported here first.
            self.lane(lane).enqueue(OutboxEntry::Item(Item::Unsubscribe { channel }));
        }
    }

    /// Ends the channels whose messages no longer wait for capacity, and closes publishers that no
    /// subscription reads to the end.
    pub fn finish_drained(&mut self, control: &mut ControlState) {
        let over: Vec<_> = (self.publishers.values().filter(|remote| remote.over))
            .filter_map(|remote| Some((remote.remote.lane(), remote.channel?)))
            .collect();
        for (lane, channel) in over {
            self.end_channel(control, lane, channel);
        }
        // The latest announcement of the owner states whether messages wait there.
        let unread: Vec<_> = (self.publishers.iter())
            .filter(|(_, remote)| self.announced && remote.channel.is_none())
            .filter_map(|(id, remote)| Some((*id, remote.leaving?)))
            .collect();
        for (id, lost) in unread {
            self.drop_publisher(control, id, lost);
        }
    }
}
