//! Publishers of this host that the other host requests: the publisher side of a channel.

use std::collections::BTreeSet;

use rnet::bridge::{BridgeSubscriber, BridgeSubscriberBuilder};
use rnet::trace::traced_topic;
use rnet::{EndpointQos, Error, Lane, Liveliness, Reliability, Result};

use crate::config::Compression;
use crate::wire::Subscribe;

use super::super::control_state::ControlState;
use super::super::event::channel_end;
use super::super::forwarder::Forwarder;
use super::super::kept_for_reconnect::{OfflineLookup, OfflineReader, OfflineReaders};
use super::super::lane::{LaneCommand, OutboxEntry};
use super::super::proxy::CREDIT_LEN_BYTES;
use super::super::resend_buffer::ResendBuffer;
use super::crossing::Hidden;
use super::{GrantedChannel, Host, LANES, MAX_ENDPOINTS, lane_index};

impl Host {
    /// Handles a request of the other host for a publisher of this one.
    pub fn handle_subscribe(&mut self, control: &mut ControlState, lane: Lane, wanted: Subscribe) {
        // A publisher has one channel: there are never more forwarders than publishers, whatever the number
        // of requests.
        let before =
            self.granted.iter().find(|(_, granted)| granted.wanted.publisher == wanted.publisher);
        if let Some((lane, channel)) = before.map(|(key, _)| *key) {
            self.handle_unsubscribe(lane, channel);
        }
        // A channel has one publisher.
        self.handle_unsubscribe(lane, wanted.channel);
        let key = (self.presence.host, wanted.publisher);
        let found = match wanted.from {
            Some(_) => control.shared.offline.take(key),
            None => {
                // No subscription there continues an earlier reader.
                control.shared.offline.drop_all(|of| *of == key);
                OfflineLookup::NotFound
            }
        };
        match found {
            OfflineLookup::NotFound => self.grant(control, lane, wanted, None),
            OfflineLookup::Pending => {
                // The newest request for a publisher replaces the others.
                self.pending_wants.retain(|_, other| other.publisher != wanted.publisher);
                self.pending_wants.insert((lane, wanted.channel), wanted);
            }
            OfflineLookup::Ready(reader) => self.grant(control, lane, wanted, Some(reader)),
        }
    }

    /// Handles a reader that was handed over or that does not exist; returns it if it is not wanted any
    /// more.
    pub fn resume_subscribe(
        &mut self,
        control: &mut ControlState,
        publisher: u64,
        reader: Option<Box<OfflineReader>>,
    ) -> Option<Box<OfflineReader>> {
        let pending = self.pending_wants.iter().find(|(_, wanted)| wanted.publisher == publisher);
        let Some((key, wanted)) = pending.map(|(key, wanted)| (*key, *wanted)) else {
            return reader;
        };
        self.pending_wants.remove(&key);
        self.grant(control, key.0, wanted, reader);
        None
    }

    fn grant(
        &mut self,
        control: &mut ControlState,
        lane: Lane,
        wanted: Subscribe,
        reader: Option<Box<OfflineReader>>,
    ) {
        let made = self.forwarder(control, lane, wanted, reader);
        let state = self.lanes[lane_index(lane)].clone();
        match made {
            Ok(forwarder) => {
                self.granted_publishers.insert(wanted.publisher);
                state.send_command(LaneCommand::Add(Box::new(forwarder)));
                let channel = (lane, wanted.channel);
                self.granted.insert(channel, GrantedChannel { wanted, served: BTreeSet::new() });
                self.serve_pending(control, channel);
            }
            Err(error) => {
                state.enqueue(OutboxEntry::Item(channel_end(wanted.channel)));
                self.announce_end(wanted.publisher);
                // A publisher that has closed meanwhile is not an error: its end and the request have
                // crossed on the way.
                if !matches!(error, Error::Closed { .. }) {
                    control.report_refusal(error.to_string());
                }
            }
        }
    }

    fn forwarder(
        &self,
        control: &ControlState,
        lane: Lane,
        wanted: Subscribe,
        reader: Option<Box<OfflineReader>>,
    ) -> Result<Forwarder> {
        if !self.is_greeted() {
            // The other lane may deliver the name later, and the host asks again.
            let what = format!("publisher {:x}, requested by host {}", wanted.publisher, self.name);
            return Err(Error::BadValue { what, why: "it has not announced its name".to_owned() });
        }
        let ended = control.ended.get(&wanted.publisher).filter(|_| reader.is_some());
        let ended = ended.map(|ended| &ended.endpoint);
        let Some(endpoint) = control.local.get(&wanted.publisher).or(ended) else {
            let what = format!("publisher {:x}, requested by host {}", wanted.publisher, self.name);
            return Err(Error::Closed { what });
        };
        let topic = &endpoint.topic;
        let EndpointQos::Publisher(qos) = &endpoint.qos else {
            let what = format!("endpoint of {topic}, requested by host {}", self.name);
            return Err(Error::BadValue { what, why: "it is a subscription".to_owned() });
        };
        let refuse = |why: String| {
            let what = format!("request of host {} for {topic}", self.name);
            Err(Error::BadValue { what, why })
        };
        match self.check_crossing(control, endpoint) {
            Ok(()) if qos.lane == lane => {}
            Err(Hidden::Rights(missing)) => return refuse(missing.to_string()),
            Ok(()) | Err(_) => return refuse("it is not offered there".to_owned()),
        }
        // Errors name one of the subscriptions that it reads for.
        let for_whom = self.subscriptions.values().find(|(remote, _)| remote.topic == *topic);
        let mut builder = control.shared.node.subscriber::<[u8]>(topic);
        builder = builder.forwarder(wanted.publisher, wanted.from);
        let shaping = control.shared.config.shaping(topic);
        // A subscription that takes only the newest message, perhaps every ten seconds, must not block the
        // publisher.
        let is_reliable = wanted.reliable
            && qos.reliability == Reliability::Reliable
            && !shaping.skips_to_newest();
        builder = match is_reliable {
            true => builder.reliable(),
            false => builder.keep_all(),
        };
        if wanted.transient_local > 0 {
            builder = builder.transient_local();
        }
        if let Some((remote, _)) = for_whom {
            builder = builder.proxy(remote.proxy.clone(), 1);
        }
        // The earlier reader may have passed messages that the log still has: without a buffer the new
        // reader begins there.
        let resends = is_reliable && shaping.resend_limit_bytes > 0;
        let goes_on = ended.is_some() || resends;
        let mut will = reader.as_ref().and_then(|reader| reader.will.clone());
        let (mut subscriber, spare, buffer) = match reader {
            Some(reader) if goes_on => (reader.subscriber, None, reader.buffer),
            reader => (builder.open()?, reader.map(|reader| reader.subscriber), None),
        };
        if ended.is_some() && !is_reliable {
            // The message that it sent last is old by now and was counted.
            loop {
                match subscriber.try_recv() {
                    Ok(Some(sample)) if sample.is_last_will() => will = Some(sample.to_vec()),
                    Ok(Some(_)) | Err(Error::PeerLost { .. }) => {}
                    Ok(None) | Err(_) => break,
                }
            }
        }
        let of = (wanted.channel, self.session.unwrap_or_default());
        let lease = match qos.liveliness {
            Liveliness::ManualByTopic { lease } => Some(lease),
            Liveliness::Automatic => None,
        };
        // A larger credit than a link asks for would make this link keep more.
        let (from, credit) = (wanted.from, wanted.credit.min(CREDIT_LEN_BYTES));
        let mut forwarder = Forwarder::new(of, subscriber, from, credit, shaping, lease);
        (forwarder.sends_wills, forwarder.spare) = (wanted.wills, spare);
        forwarder.will = will;
        forwarder.awaits_unsubscribe = is_reliable && wanted.confirms_end;
        if ended.is_some() {
            forwarder.note_publisher_gone();
        }
        if is_reliable {
            // Compressed messages use little of the credit, which then bounds nothing.
            let is_bounded = shaping.compression == Compression::None;
            let pool_limit_bytes = is_bounded.then_some(qos.pool_limit_bytes);
            let new = || ResendBuffer::new(shaping.resend_limit_bytes, pool_limit_bytes);
            forwarder.resend(buffer.unwrap_or_else(new), from);
        }
        // Nodes record traces while a subscription of them exists.
        if !shaping.skips_to_newest() && traced_topic(topic).is_none() {
            let key = (self.presence.host, wanted.publisher);
            forwarder.claim = Some(OfflineReaders::claim(&control.shared, key));
        }
        Ok(forwarder)
    }

    /// Handles the end of a request: the other host does not want a publisher any more, or has published
    /// the rest of it.
    pub fn handle_unsubscribe(&mut self, lane: Lane, channel: u32) {
        let granted = self.granted.remove(&(lane, channel));
        if granted.is_some() || self.pending_wants.remove(&(lane, channel)).is_some() {
            self.early_deliveries
                .retain(|(_, of, early)| (*of, *early) != (lane_index(lane), channel));
        }
        // This includes a publisher that has ended and waits for this report.
        self.lane(lane).send_command(LaneCommand::Remove(channel));
        if let Some(granted) = granted {
            self.granted_publishers.remove(&granted.wanted.publisher);
            self.release(&granted);
        }
    }

    /// Handles the end of a publisher of this host: its channel ends once the rest is read.
    pub fn publisher_gone(&mut self, publisher: u64) {
        self.granted_publishers.remove(&publisher);
        let of_it = |(_, granted): &(_, &GrantedChannel)| granted.wanted.publisher == publisher;
        if let Some(((lane, channel), _)) = self.granted.iter().find(of_it) {
            self.lane(*lane).send_command(LaneCommand::PublisherGone(*channel));
        }
    }

    fn release(&self, granted: &GrantedChannel) {
        for subscription in &granted.served {
            if let Some((_, passive)) = self.subscriptions.get(subscription) {
                let _ = passive.release_from(granted.wanted.publisher);
            }
        }
    }

    /// Handles a subscription there that starts or stops receiving what an outbound channel carries.
    pub(super) fn serve(
        &mut self,
        control: &mut ControlState,
        (lane, channel): (Lane, u32),
        subscription: u64,
        active: bool,
    ) {
        let granted = self.granted.get_mut(&(lane, channel));
        if granted.is_none() && !self.pending_wants.contains_key(&(lane, channel)) {
            return;
        }
        let Some((granted, (_, passive))) = granted.zip(self.subscriptions.get(&subscription))
        else {
            let key = (subscription, lane_index(lane), channel);
            if !active {
                self.early_deliveries.remove(&key);
            } else if self.early_deliveries.len() < MAX_ENDPOINTS {
                self.early_deliveries.insert(key);
            }
            return;
        };
        let publisher = granted.wanted.publisher;
        let changed = match active {
            true => {
                granted.served.insert(subscription);
                passive.admit_to(publisher)
            }
            false => {
                granted.served.remove(&subscription);
                passive.release_from(publisher)
            }
        };
        if let Err(error) = changed {
            control.report(&error);
        }
    }

    /// Applies early reports for a subscription that is now known. The report that it is served may have
    /// arrived earlier: on the other lane ahead of its announcement, or while its type was requested.
    pub(super) fn serve_early(&mut self, control: &mut ControlState, subscription: u64) {
        let early: Vec<_> = self.early_deliveries_of(subscription).collect();
        for key in early {
            self.early_deliveries.remove(&key);
            self.serve(control, (LANES[key.1], key.2), subscription, true);
        }
    }

    /// Opens a pending channel. Reports of the subscriptions that it serves may have arrived earlier.
    fn serve_pending(&mut self, control: &mut ControlState, (lane, channel): (Lane, u32)) {
        let of_it =
            |(_, of, early): &&(u64, usize, u32)| (*of, *early) == (lane_index(lane), channel);
        for key in self.early_deliveries.iter().filter(of_it).copied().collect::<Vec<_>>() {
            self.early_deliveries.remove(&key);
            self.serve(control, (lane, channel), key.0, true);
        }
    }

    /// The early reports of this subscription.
    pub(super) fn early_deliveries_of(
        &self,
        subscription: u64,
    ) -> impl Iterator<Item = (u64, usize, u32)> + use<'_> {
        let from = (subscription, 0, 0);
        self.early_deliveries.range(from..).take_while(move |(of, ..)| *of == subscription).copied()
    }

    /// Handles a forwarder that has read everything its publisher has left.
    pub fn channel_ended(&mut self, lane: Lane, channel: u32) {
        if let Some(granted) = self.granted.remove(&(lane, channel)) {
            self.release(&granted);
            self.early_deliveries
                .retain(|(_, of, early)| (*of, *early) != (lane_index(lane), channel));
            self.announce_end(granted.wanted.publisher);
        }
    }

    /// Revokes all outbound channels.
    pub(super) fn revoke_granted(&mut self) {
        self.pending_wants.clear();
        self.granted_publishers.clear();
        self.pending_ends.clear();
        self.early_deliveries.clear();
        for granted in std::mem::take(&mut self.granted).into_values() {
            for subscription in granted.served {
                if let Some((_, passive)) = self.subscriptions.get(&subscription) {
                    let _ = passive.release_from(granted.wanted.publisher);
                }
            }
        }
    }
}
