//! Publishers of the other host that are gone: they end here once all that has come of them is published.

use rnet::Lane;

use super::super::control_state::ControlState;
use super::super::lane::OutboxEntry;
use super::super::lock::lock;
use super::{Host, RemotePublisher};
use crate::wire::Item;

impl RemotePublisher {
    /// Whether it is lost for its subscribers, of which the other host says whether its process has died: one that was
    /// announced as ended is closed at last, and was perhaps lost with its host before.
    pub(super) fn is_lost(&self, died: bool) -> bool {
        self.ended.map_or(died, |died| died && !self.was_lost)
    }
}

impl Host {
    /// An endpoint there is gone.
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
        // What its channel still brings comes first.
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

    /// The owner has ended a channel of ours.
    pub(super) fn end_channel(&mut self, control: &mut ControlState, lane: Lane, channel: u32) {
        let ours = self
            .publishers
            .iter()
            .find(|(_, remote)| remote.remote.lane() == lane && remote.channel == Some(channel));
        let Some(id) = ours.map(|(id, _)| *id) else { return };
        let Some(remote) = self.publishers.get_mut(&id) else { return };
        remote.over = lock(&remote.proxy).is_blocked();
        if remote.over {
            // The lane's thread publishes it, as long as it knows the channel; then `finish_drained` ends it.
            return;
        }
        remote.channel = None;
        let (leaving, reliable) = (remote.leaving, remote.reliable);
        lock(&self.lane(lane).channels).remove(&channel);
        if let Some(lost) = leaving {
            self.drop_publisher(control, id, lost);
        }
        if reliable {
            // Its owner has kept it until now: so its end is told here first.
            self.lane(lane).enqueue(OutboxEntry::Item(Item::Unsubscribe { channel }));
        }
    }

    /// Ends the channels of which nothing waits for room any more, and closes what nobody reads to its end.
    pub fn finish_drained(&mut self, control: &mut ControlState) {
        let over: Vec<_> = (self.publishers.values().filter(|remote| remote.over))
            .filter_map(|remote| Some((remote.remote.lane(), remote.channel?)))
            .collect();
        for (lane, channel) in over {
            self.end_channel(control, lane, channel);
        }
        // What it has told of last says whether something of them waits there.
        let unread: Vec<_> = (self.publishers.iter())
            .filter(|(_, remote)| self.announced && remote.channel.is_none())
            .filter_map(|(id, remote)| Some((*id, remote.leaving?)))
            .collect();
        for (id, lost) in unread {
            self.drop_publisher(control, id, lost);
        }
    }
}
