//! Receives data from the network: checks frames and publishes messages.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use rnet::{Error, Lane, now_ns};

use crate::secure;
use crate::stream::{Accept, ClockOffset};
use crate::transport::HostId;
use crate::wire::{Data, Document, Fragment, Header, Item, Items, WireError, decompress};

use super::event::Event;
use super::lane::{LaneCommand, LaneState, OutboxEntry};
use super::lock::lock;
use super::proxy::{MESSAGE_COST, Proxy};
use super::{LinkContext, lane_key};

/// The most bytes of incomplete large messages of one host and lane, without the one that begins. A message
/// that begins beyond this is dropped.
const MAX_PARTIAL_LEN_BYTES: usize = 1 << 30;
/// Shorter messages are not checked.
const LARGE_LEN_BYTES: u64 = 1 << 20;

/// The proxy of the latest channel: messages of a channel arrive together.
type CurrentChannel = Option<(u32, Arc<Mutex<Proxy>>)>;

/// Converts a time of the other host to this host's clock; the current time before the clocks were
/// compared.
fn to_local_ns(sent_ns: u64, clock: Option<ClockOffset>) -> u64 {
    let of = |clock: ClockOffset| sent_ns.saturating_add_signed(clock.offset_ns.saturating_neg());
    clock.map_or_else(now_ns, of)
}

/// Whether another large message may begin: each publisher may have one in progress.
fn can_begin_large(state: &LaneState) -> bool {
    let channels: Vec<_> = lock(&state.channels).values().cloned().collect();
    let sum = |all| channels.iter().map(|proxy| lock(proxy).partial_len_bytes(all)).sum::<u64>();
    let is_fine = |len: u64| len <= MAX_PARTIAL_LEN_BYTES as u64;
    is_fine(sum(false)) || is_fine(sum(true))
}

impl LinkContext {
    /// Handles an unverified frame from this host.
    pub(super) fn receive_frame(&self, lane: Lane, from: HostId, frame: &[u8]) {
        // A process that was stopped and replaced meanwhile must not continue to publish.
        if !(self.holds_role)() {
            return;
        }
        let found = {
            let lanes = self.lanes.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            lanes.get(&lane_key(from, lane)).cloned()
        };
        // The frame is of an absent host: its link is reported before its frames.
        let Some(state) = found else { return };
        if state.is_rejected() {
            return;
        }
        match Header::decode(frame) {
            Ok((header, items)) => {
                state.frames_in_process.fetch_add(1, Ordering::SeqCst);
                let taken = self.process_frame(&state, &header, items);
                state.frames_in_process.fetch_sub(1, Ordering::SeqCst);
                if let Err(error) = taken {
                    self.reject(&state, &error);
                }
            }
            // An invalid frame takes nothing from the stream, whatever its sender.
            Err(_) if frame.starts_with(&secure::MAGIC.to_le_bytes()) => {
                let what = format!("host {from}");
                let why = "it has keys, and this host has none: copy a keys file to this host (`rnet keys add-host NAME` on \
                           the machine of the authority)";
                let problem = Event::Problem(Error::BadValue { what, why: why.into() });
                let _ = self.post_event(&state, problem, 0);
            }
            Err(error) => self.report_bad_frame(&state, &error),
        }
        state.wake_if_due();
    }

    /// Ignores a stream from now on if an item in it was not understood: its missing data would be lost
    /// unnoticed.
    fn reject(&self, state: &LaneState, error: &WireError) {
        if !state.reject() {
            let _ = self.events.send(Event::ProtocolViolation(state.host, error.to_string()));
        }
    }

    fn report_bad_frame(&self, state: &LaneState, error: &WireError) {
        let what = format!("frame of host {}", state.host);
        let problem = Event::Problem(Error::BadValue { what, why: error.to_string() });
        // If this event is dropped, the queue holds enough other problems.
        let _ = self.post_event(state, problem, 0);
    }

    /// Sends an event of the other link to the control thread.
    fn post_event(
        &self,
        state: &LaneState,
        event: Event,
        len_bytes: usize,
    ) -> Result<(), WireError> {
        let waits = state.backlog.add(len_bytes).ok_or(WireError::Backlog)?;
        let _ = self.events.send(Event::FromPeer(Box::new(event), waits));
        Ok(())
    }

    fn process_frame(
        &self,
        state: &LaneState,
        header: &Header,
        items: &[u8],
    ) -> Result<(), WireError> {
        let now = now_ns();
        let (accept, clock) = {
            let mut stream = lock(&state.stream);
            let accept = stream.accept(now, header);
            (accept, stream.clock_for_stamps(now))
        };
        match accept {
            Accept::New => {}
            Accept::NewPeerTerm => {
                return self.post_event(state, Event::NewSession(state.host, header.from_term), 0);
            }
            Accept::Acknowledgement | Accept::Duplicate | Accept::OutOfOrder | Accept::Stale => {
                return Ok(());
            }
            Accept::Corrupt => {
                self.report_bad_frame(state, &WireError::InvalidHeader);
                return Ok(());
            }
        }
        let mut current = None;
        let mut items = Items::new(items);
        let mut taken = Ok(());
        while let Some(item) = items.next() {
            taken = item
                .and_then(|item| self.process_item(state, &mut current, item, &mut items, clock));
            if taken.is_err() {
                break;
            }
        }
        self.finish_channel(state, &mut current);
        taken
    }

    fn process_item(
        &self,
        state: &LaneState,
        current: &mut CurrentChannel,
        item: Item<'_>,
        behind: &mut Items<'_>,
        clock: Option<ClockOffset>,
    ) -> Result<(), WireError> {
        let (host, lane) = (state.host, state.lane);
        let mut len_bytes = 0;
        let event = match item {
            Item::Data(data) => return self.process_run(state, current, data, behind, clock),
            Item::Fragment(fragment) => {
                return self.process_fragment(state, current, &fragment, clock);
            }
            Item::Gap { channel, seq, count, cause } => {
                if let Some(mut proxy) = self.proxy(state, current, channel) {
                    if count > 0 {
                        proxy.interrupt();
                    }
                    proxy.gap(seq, count, cause);
                }
                return Ok(());
            }
            Item::KnownLost { channel, known } => {
                if let Some(mut proxy) = self.proxy(state, current, channel) {
                    proxy.add_known_lost(known);
                }
                return Ok(());
            }
            Item::Alive { channel } => {
                if let Some(proxy) = self.proxy(state, current, channel) {
                    proxy.assert_alive();
                }
                return Ok(());
            }
            Item::Will { channel, message } => {
                let Some(mut proxy) = self.proxy(state, current, channel) else { return Ok(()) };
                let set = proxy.set_will(message);
                drop(proxy);
                return self.report_result(state, set);
            }
            Item::Credit { channel, read } => {
                state.send_command(LaneCommand::Credit(channel, read));
                return Ok(());
            }
            Item::DocumentPart(part) => {
                let mut documents = lock(&state.documents);
                let whole = documents
                    .add(part.of, part.total.into(), part.offset.into(), part.bytes)?
                    .whole;
                let Some(whole) = whole.map(<[u8]>::to_vec) else { return Ok(()) };
                len_bytes = whole.len();
                match part.of {
                    Document::Type(hash) => Event::Type(host, hash, whole),
                    of => Event::Document(host, of, whole),
                }
            }
            Item::NeedType { hash } => Event::NeedType(host, hash),
            Item::Subscribe(want) => Event::Subscribe(host, lane, want),
            Item::Unsubscribe { channel } => Event::Unsubscribe(host, lane, channel),
            Item::Delivery { channel, subscription, active } => {
                Event::Delivery(host, lane, channel, subscription, active)
            }
        };
        self.post_event(state, event, len_bytes)
    }

    /// The proxy that this channel feeds; `None` for a channel that was closed, even within this frame.
    fn proxy<'a>(
        &self,
        state: &LaneState,
        current: &'a mut CurrentChannel,
        channel: u32,
    ) -> Option<MutexGuard<'a, Proxy>> {
        let is_first = current.as_ref().is_none_or(|(of, _)| *of != channel);
        if is_first {
            self.finish_channel(state, current);
            *current = Some((channel, lock(&state.channels).get(&channel)?.clone()));
        }
        let (_, proxy) = current.as_ref()?;
        let mut proxy = lock(proxy);
        if is_first {
            self.retry(state, &mut proxy);
        }
        Some(proxy).filter(|proxy| proxy.channel == Some(channel))
    }

    /// Publishes waiting messages that fit now: the thread of the lane checks only at intervals.
    fn retry(&self, state: &LaneState, proxy: &mut Proxy) {
        if proxy.is_blocked() && proxy.may_retry(now_ns()) {
            let retried = proxy.retry();
            // If this event is dropped, the queue holds enough other problems.
            let _ = self.report_result(state, retried);
        }
    }

    /// Finishes a channel: the frame continues with another one, or ends.
    fn finish_channel(&self, state: &LaneState, current: &mut CurrentChannel) {
        let Some((channel, proxy)) = current.take() else { return };
        let mut proxy = lock(&proxy);
        // This also applies if another channel follows meanwhile.
        if proxy.is_blocked() {
            state.note_blocked();
        }
        if proxy.channel != Some(channel) {
            return;
        }
        if let Some(read) = proxy.take_credit(now_ns()) {
            state.enqueue(OutboxEntry::Item(Item::Credit { channel, read }));
        }
    }

    /// Processes a message and those of its channel that follow it directly with consecutive numbers.
    fn process_run(
        &self,
        state: &LaneState,
        current: &mut CurrentChannel,
        first: Data<'_>,
        behind: &mut Items<'_>,
        clock: Option<ClockOffset>,
    ) -> Result<(), WireError> {
        let channel = first.channel;
        let Some(mut proxy) = self.proxy(state, current, channel) else { return Ok(()) };
        proxy.set_clock(clock);
        let mut taken = self.process_data(state, &mut proxy, &first, clock);
        while taken.is_ok() {
            if let Some(plain) = behind.next_plain() {
                let (len, sent_ns) =
                    (plain.payload.len() as u64, to_local_ns(plain.sent_ns, clock));
                proxy.add_received(len + MESSAGE_COST);
                taken = self
                    .report_result(state, proxy.publish_plain(plain.seq, sent_ns, plain.payload));
                continue;
            }
            let Some(next) = behind.next_following() else { break };
            taken = next.and_then(|data| self.process_data(state, &mut proxy, &data, clock));
        }
        proxy.commit();
        taken
    }

    fn process_data(
        &self,
        state: &LaneState,
        proxy: &mut Proxy,
        data: &Data<'_>,
        clock: Option<ClockOffset>,
    ) -> Result<(), WireError> {
        let sent_ns = to_local_ns(data.sent_ns, clock);
        proxy.add_received(data.payload.len() as u64 + MESSAGE_COST);
        let published = match data.compressed {
            false => proxy.publish(data.seq, sent_ns, data.meta, data.payload, None),
            true => {
                let mut message = Vec::new();
                decompress(data.payload, proxy.limit(), &mut message)?;
                proxy.publish(data.seq, sent_ns, data.meta, &message, Some(data.payload))
            }
        };
        self.report_result(state, published)
    }

    fn process_fragment(
        &self,
        state: &LaneState,
        current: &mut CurrentChannel,
        fragment: &Fragment<'_>,
        clock: Option<ClockOffset>,
    ) -> Result<(), WireError> {
        let begins = fragment.offset == 0 && fragment.total >= LARGE_LEN_BYTES;
        let has_room = !begins || can_begin_large(state);
        let Some(mut proxy) = self.proxy(state, current, fragment.channel) else { return Ok(()) };
        if !has_room && proxy.is_expected(fragment.seq) {
            self.drop_large(state, &mut proxy, fragment);
        }
        // The rest of a dropped or repeated message: it counts as read and is not reassembled.
        if !proxy.is_expected(fragment.seq) {
            proxy.skip_fragment(fragment);
            return Ok(());
        }
        let sent_ns = to_local_ns(fragment.sent_ns, clock);
        proxy.set_clock(clock);
        let published = proxy.add_fragment(fragment, sent_ns)?;
        proxy.commit();
        drop(proxy);
        self.report_result(state, published)
    }

    /// Drops a message that begins, for want of memory: only this one is lost.
    fn drop_large(&self, state: &LaneState, proxy: &mut Proxy, fragment: &Fragment<'_>) {
        proxy.drop_large(fragment.seq);
        let limit = MAX_PARTIAL_LEN_BYTES;
        let what = format!(
            "bytes of incomplete large messages from host {}, so a message on {} of {} bytes is lost",
            state.host,
            proxy.topic(),
            fragment.total
        );
        let hint = "send fewer large messages at once, or smaller ones".to_owned();
        // If this event is dropped, the queue holds enough other problems.
        let _ =
            self.post_event(state, Event::Problem(Error::LimitReached { what, limit, hint }), 0);
    }

    /// Reports a failed publish. A link that causes many of these does not fill the queue.
    fn report_result(
        &self,
        state: &LaneState,
        published: rnet::Result<()>,
    ) -> Result<(), WireError> {
        published.or_else(|error| self.post_event(state, Event::Problem(error), 0))
    }
}
