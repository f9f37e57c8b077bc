//! The side of a channel that has the publisher: what the other host wants of this one.

use std::collections::BTreeSet;

use rnet::trace::traced_topic;
use rnet::{EndpointQos, Error, Lane, Liveliness, Reliability, Result, SubscriberOptions};

use crate::config::Compression;
use crate::wire::Want;

use super::super::event::ended;
use super::super::forwarder::Forwarder;
use super::super::known::Known;
use super::super::lane::{Order, Say};
use super::super::offline::{Found, OfflineReader, OfflineReaders};
use super::super::proxy::CREDIT_LEN_BYTES;
use super::super::resend_buffer::ResendBuffer;
use super::{Given, Host, LANES, MAX_ENDPOINTS, place};

impl Host {
    /// The other host wants a publisher of this one.
    pub fn want(&mut self, known: &mut Known, lane: Lane, wanted: Want) {
        // One channel for a publisher: however many are asked for, there are no more forwarders than publishers.
        let before =
            self.given.iter().find(|(_, given)| given.wanted.publisher == wanted.publisher);
        if let Some((lane, channel)) = before.map(|(key, _)| *key) {
            self.unwant(lane, channel);
        }
        // And one publisher for a channel.
        self.unwant(lane, wanted.channel);
        let key = (self.presence.host, wanted.publisher);
        let found = match wanted.from {
            Some(_) => known.shared.offline.take(key),
            None => {
                // Nobody there goes on with what came before.
                known.shared.offline.drop_all(|of| *of == key);
                Found::Nothing
            }
        };
        match found {
            Found::Nothing => self.give(known, lane, wanted, None),
            Found::Later => {
                // The newest wish for a publisher replaces the others.
                self.pending_wants.retain(|_, other| other.publisher != wanted.publisher);
                self.pending_wants.insert((lane, wanted.channel), wanted);
            }
            Found::Reader(reader) => self.give(known, lane, wanted, Some(reader)),
        }
    }

    /// The reader that it wants again is handed over, or there is none; returns it if it is not wanted any more.
    pub fn want_again(
        &mut self,
        known: &mut Known,
        publisher: u64,
        reader: Option<Box<OfflineReader>>,
    ) -> Option<Box<OfflineReader>> {
        let pending = self.pending_wants.iter().find(|(_, wanted)| wanted.publisher == publisher);
        let Some((key, wanted)) = pending.map(|(key, wanted)| (*key, *wanted)) else {
            return reader;
        };
        self.pending_wants.remove(&key);
        self.give(known, key.0, wanted, reader);
        None
    }

    fn give(
        &mut self,
        known: &mut Known,
        lane: Lane,
        wanted: Want,
        reader: Option<Box<OfflineReader>>,
    ) {
        let made = self.forwarder(known, lane, wanted, reader);
        let state = self.lanes[place(lane)].clone();
        match made {
            Ok(forwarder) => {
                self.given_once.insert(wanted.publisher);
                state.order(Order::Add(Box::new(forwarder)));
                let channel = (lane, wanted.channel);
                self.given.insert(channel, Given { wanted, served: BTreeSet::new() });
                self.serve_pending(known, channel);
            }
            Err(error) => {
                state.say(Say::Item(ended(wanted.channel)));
                self.tell_end(wanted.publisher);
                // One that has closed meanwhile is no fault: word of that and the wish have crossed on the way.
                if !matches!(error, Error::Closed { .. }) {
                    known.fault(&error);
                }
            }
        }
    }

    fn forwarder(
        &self,
        known: &Known,
        lane: Lane,
        wanted: Want,
        reader: Option<Box<OfflineReader>>,
    ) -> Result<Forwarder> {
        if !self.is_greeted() {
            // The other lane may bring its name later, and it asks again.
            let what = format!("publisher {:x}, requested by host {}", wanted.publisher, self.name);
            return Err(Error::BadValue { what, why: "it has not announced its name".to_owned() });
        }
        let ended = known.ended.get(&wanted.publisher).filter(|_| reader.is_some());
        let ended = ended.map(|ended| &ended.endpoint);
        let Some(endpoint) = known.local.get(&wanted.publisher).or(ended) else {
            let what = format!("publisher {:x}, requested by host {}", wanted.publisher, self.name);
            return Err(Error::Closed { what });
        };
        let topic = &endpoint.topic;
        let EndpointQos::Publisher(qos) = &endpoint.qos else {
            let what = format!("endpoint of {topic}, requested by host {}", self.name);
            return Err(Error::BadValue { what, why: "it is a subscription".to_owned() });
        };
        if qos.lane != lane || !known.crosses(endpoint, &self.said) {
            let what = format!("request of host {} for {topic}", self.name);
            return Err(Error::BadValue { what, why: "it is not offered there".to_owned() });
        }
        // Errors name one of those for whom it reads.
        let for_whom = self.subscriptions.values().find(|(remote, _)| remote.topic == *topic);
        let mut options = SubscriberOptions::new().forwarder(wanted.publisher, wanted.from);
        let shaping = known.shared.config.shaping(topic);
        // What takes the newest alone, perhaps once in ten seconds, must not hold the publisher back.
        let is_reliable =
            wanted.reliable && qos.reliability == Reliability::Reliable && !shaping.takes_newest();
        options = match is_reliable {
            true => options.reliable(),
            false => options.keep_all(),
        };
        if wanted.transient_local > 0 {
            options = options.transient_local();
        }
        if let Some((remote, _)) = for_whom {
            options = options.proxy(remote.proxy.clone(), 1);
        }
        // What the log still has, the reader of before may have passed over: without a buffer a new one begins there.
        let resends = is_reliable && shaping.resend_limit_bytes > 0;
        let goes_on = ended.is_some() || resends;
        let mut will = reader.as_ref().and_then(|reader| reader.will.clone());
        let (mut subscriber, spare, buffer) = match reader {
            Some(reader) if goes_on => (reader.subscriber, None, reader.buffer),
            reader => {
                let subscriber = known.shared.node.subscriber_with::<[u8]>(topic, options)?;
                (subscriber, reader.map(|reader| reader.subscriber), None)
            }
        };
        if ended.is_some() && !is_reliable {
            // What it sent last is old by now, and is counted.
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
        // More than a link asks for would have this one keep more.
        let (from, credit) = (wanted.from, wanted.credit.min(CREDIT_LEN_BYTES));
        let mut forwarder = Forwarder::new(of, subscriber, from, credit, shaping, lease);
        (forwarder.wills, forwarder.spare) = (wanted.wills, spare);
        forwarder.will = will;
        forwarder.awaits_unwant = is_reliable && wanted.confirms_end;
        if ended.is_some() {
            forwarder.note_left();
        }
        if is_reliable {
            // What is compressed takes little of the credit, which then bounds nothing.
            let is_bounded = shaping.compression == Compression::None;
            let pool_limit_bytes = is_bounded.then_some(qos.pool_limit_bytes);
            let new = || ResendBuffer::new(shaping.resend_limit_bytes, pool_limit_bytes);
            forwarder.resend(buffer.unwrap_or_else(new), from);
        }
        // Nodes record traces for as long as there is a subscription of them.
        if !shaping.takes_newest() && traced_topic(topic).is_none() {
            let key = (self.presence.host, wanted.publisher);
            forwarder.claim = Some(OfflineReaders::claim(&known.shared, key));
        }
        Ok(forwarder)
    }

    /// The other host wants a publisher of this one no more, or has published all that was left of it.
    pub fn unwant(&mut self, lane: Lane, channel: u32) {
        let given = self.given.remove(&(lane, channel));
        if given.is_some() || self.pending_wants.remove(&(lane, channel)).is_some() {
            self.early.retain(|(_, of, early)| (*of, *early) != (place(lane), channel));
        }
        // Also one that has ended, and waits for this.
        self.lane(lane).order(Order::Remove(channel));
        if let Some(given) = given {
            self.given_once.remove(&given.wanted.publisher);
            self.release(&given);
        }
    }

    /// A publisher of this host is gone: its channel ends once what it has left is read.
    pub fn left(&mut self, publisher: u64) {
        self.given_once.remove(&publisher);
        let of_it = |(_, given): &(_, &Given)| given.wanted.publisher == publisher;
        if let Some(((lane, channel), _)) = self.given.iter().find(of_it) {
            self.lane(*lane).order(Order::Left(*channel));
        }
    }

    fn release(&self, given: &Given) {
        for subscription in &given.served {
            if let Some((_, passive)) = self.subscriptions.get(subscription) {
                let _ = passive.release_from(given.wanted.publisher);
            }
        }
    }

    /// A subscription there gets, or no longer gets, what a channel of ours carries.
    pub(super) fn serve(
        &mut self,
        known: &mut Known,
        (lane, channel): (Lane, u32),
        subscription: u64,
        yes: bool,
    ) {
        let given = self.given.get_mut(&(lane, channel));
        if given.is_none() && !self.pending_wants.contains_key(&(lane, channel)) {
            return;
        }
        let Some((given, (_, passive))) = given.zip(self.subscriptions.get(&subscription)) else {
            let key = (subscription, place(lane), channel);
            if !yes {
                self.early.remove(&key);
            } else if self.early.len() < MAX_ENDPOINTS {
                self.early.insert(key);
            }
            return;
        };
        let publisher = given.wanted.publisher;
        let changed = match yes {
            true => {
                given.served.insert(subscription);
                passive.admit_to(publisher)
            }
            false => {
                given.served.remove(&subscription);
                passive.release_from(publisher)
            }
        };
        if let Err(error) = changed {
            known.fault(&error);
        }
    }

    /// A subscription there is known now. Word that it is served may have come before: by the other lane, ahead of
    /// its announcement, or while its type was asked for.
    pub(super) fn serve_early(&mut self, known: &mut Known, subscription: u64) {
        let early: Vec<_> = self.early_of(subscription).collect();
        for key in early {
            self.early.remove(&key);
            self.serve(known, (LANES[key.1], key.2), subscription, true);
        }
    }

    /// A channel is given that was pending. Word that subscriptions are served by it may have come before.
    fn serve_pending(&mut self, known: &mut Known, (lane, channel): (Lane, u32)) {
        let of_it = |(_, of, early): &&(u64, usize, u32)| (*of, *early) == (place(lane), channel);
        for key in self.early.iter().filter(of_it).copied().collect::<Vec<_>>() {
            self.early.remove(&key);
            self.serve(known, (lane, channel), key.0, true);
        }
    }

    /// Those of this subscription.
    pub(super) fn early_of(
        &self,
        subscription: u64,
    ) -> impl Iterator<Item = (u64, usize, u32)> + use<'_> {
        let from = (subscription, 0, 0);
        self.early.range(from..).take_while(move |(of, ..)| *of == subscription).copied()
    }

    /// Our forwarder has read all that its publisher has left.
    pub fn channel_ended(&mut self, lane: Lane, channel: u32) {
        if let Some(given) = self.given.remove(&(lane, channel)) {
            self.release(&given);
            self.early.retain(|(_, of, early)| (*of, *early) != (place(lane), channel));
            self.tell_end(given.wanted.publisher);
        }
    }

    /// No channel holds any more.
    pub(super) fn end_given(&mut self) {
        self.pending_wants.clear();
        self.given_once.clear();
        self.ending.clear();
        self.early.clear();
        for given in std::mem::take(&mut self.given).into_values() {
            for subscription in given.served {
                if let Some((_, passive)) = self.subscriptions.get(&subscription) {
                    let _ = passive.release_from(given.wanted.publisher);
                }
            }
        }
    }
}
