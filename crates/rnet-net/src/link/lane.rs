//! One lane to one other host: its stream, its sending thread, and its inbound data.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rnet::{Error, Lane, Node, WaitSet, WaitSetHandle, Waitable, now_ns};

use crate::stream::{PULSE_NS, Stream};
use crate::transport::{HostId, Transport};
use crate::wire::{Document, DocumentPart, Item, Reassembly};

use super::backlog::Backlog;
use super::event::{self, Event};
use super::forwarder::{ForwardStats, Forwarder, Forwarders, TurnResult};
use super::kept_for_reconnect::OfflineReaders;
use super::lock::lock;
use super::proxy::Proxy;

/// Interval of retries while a subscriber of this host lacks capacity.
const RETRY_NS: u64 = 1_000_000;
/// Longest document that another host may send.
const MAX_DOCUMENT_LEN_BYTES: usize = 16 << 20;
/// The most bytes in the outbox to another host. A host that exceeds it reads too slowly or requests too
/// much.
const MAX_OUTBOX_LEN_BYTES: usize = 64 << 20;
/// The most commands that wait for the thread, which the network may delay.
const MAX_COMMANDS: usize = 1 << 16;
/// The most ended publishers that are kept until the other host has published their last messages: it may
/// never report that. Beyond it, these messages do not cross again after a cut.
const MAX_UNCONFIRMED_ENDS: usize = 256;
/// Cost of an item in that limit.
const ITEM_LEN_BYTES: usize = 256;

/// A command for the sending thread.
pub enum LaneCommand {
    /// Reads a publisher of this host.
    Add(Box<Forwarder>),
    /// Ends a channel.
    Remove(u32),
    /// The publisher of a channel is gone.
    PublisherGone(u32),
    /// The bytes of a channel that were read.
    Credit(u32, u64),
    /// Ends all channels: the other link, or this one, has restarted the session.
    Clear,
    /// Reports whether the lane is quiescent, after one pass over everything:
    /// [`LaneState::request_quiescence`].
    ReportQuiescence(mpsc::Sender<Option<u64>>),
}

/// Outbound data beside messages.
pub enum OutboxEntry {
    /// An item, sent unchanged.
    Item(Item<'static>),
    /// A document, split into as many parts as it needs.
    Document(Document, Vec<u8>),
}

impl OutboxEntry {
    fn len_bytes(&self) -> usize {
        ITEM_LEN_BYTES
            + match self {
                OutboxEntry::Item(_) => 0,
                OutboxEntry::Document(_, body) => body.len(),
            }
    }
}

/// The outbound data beside messages.
#[derive(Default)]
struct Outbox {
    queue: VecDeque<OutboxEntry>,
    /// How many parts of the first document were sent.
    parts: usize,
    len_bytes: usize,
}

/// The shared part of a lane.
pub struct LaneState {
    pub lane: Lane,
    pub host: HostId,
    pub stream: Mutex<Stream>,
    /// The proxies of this host, by the channel that feeds them.
    pub channels: Mutex<BTreeMap<u32, Arc<Mutex<Proxy>>>>,
    commands: Mutex<Vec<LaneCommand>>,
    outbox: Mutex<Outbox>,
    /// Data of the other link that the control thread has not handled.
    pub backlog: Backlog,
    /// Whether its data is ignored.
    rejected: AtomicBool,
    /// Whether the outbox or the commands for the other link have exceeded their limit.
    overflowed: AtomicBool,
    pub documents: Mutex<Reassembly<Document>>,
    waker: WaitSetHandle,
    /// Whether the thread was woken and has not run since.
    woken: AtomicBool,
    /// The session of the other link that the control thread knows; 0 before the first.
    session: AtomicU64,
    /// Until when it sleeps; 0 while it is awake.
    sleeps_until: AtomicU64,
    /// Whether it waits for an acknowledgement of the other link.
    awaits_ack: AtomicBool,
    /// Whether a message waits for capacity in a subscriber of this host.
    has_blocked_proxy: AtomicBool,
    ended: AtomicBool,
    /// The counters of each channel.
    pub forwarded: Mutex<BTreeMap<u32, ForwardStats>>,
    /// Number of received frames that are being processed.
    pub frames_in_process: AtomicUsize,
}

impl LaneState {
    /// Creates the lane and the wait set of its thread.
    pub fn new(node: &Node, lane: Lane, host: HostId, stream: Stream) -> (Arc<LaneState>, WaitSet) {
        let set = WaitSet::new(node);
        let state = LaneState {
            lane,
            host,
            stream: Mutex::new(stream),
            channels: Mutex::default(),
            commands: Mutex::default(),
            outbox: Mutex::default(),
            backlog: Backlog::default(),
            rejected: AtomicBool::new(false),
            overflowed: AtomicBool::new(false),
            documents: Mutex::new(Reassembly::new(MAX_DOCUMENT_LEN_BYTES)),
            waker: set.handle(),
            woken: AtomicBool::new(false),
            session: AtomicU64::new(0),
            sleeps_until: AtomicU64::new(0),
            awaits_ack: AtomicBool::new(false),
            has_blocked_proxy: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            forwarded: Mutex::default(),
            frames_in_process: AtomicUsize::new(0),
        };
        (Arc::new(state), set)
    }

    pub fn send_command(&self, command: LaneCommand) {
        let mut commands = lock(&self.commands);
        match commands.len() < MAX_COMMANDS {
            true => commands.push(command),
            false => self.overflowed.store(true, Ordering::Relaxed),
        }
        drop(commands);
        self.wake();
    }

    pub fn enqueue(&self, entry: OutboxEntry) {
        let mut outbox = lock(&self.outbox);
        match outbox.len_bytes < MAX_OUTBOX_LEN_BYTES {
            true => {
                outbox.len_bytes += entry.len_bytes();
                outbox.queue.push_back(entry);
            }
            false => self.overflowed.store(true, Ordering::Relaxed),
        }
        drop(outbox);
        self.wake();
    }

    /// Ignores further data of the other link; returns whether it did so before.
    pub fn reject(&self) -> bool {
        self.rejected.swap(true, Ordering::Relaxed)
    }

    pub fn is_rejected(&self) -> bool {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Whether outbound data or commands for the other link were dropped. The link then gives up on it.
    pub fn is_overflowed(&self) -> bool {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Wakes the thread for a full pass.
    pub fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.waker.interrupt();
        }
    }

    /// Handles received data: wakes the thread if it waits for that, or if it sleeps longer than the stream
    /// allows.
    pub fn wake_if_due(&self) {
        if self.awaits_ack.load(Ordering::Acquire) {
            return self.wake();
        }
        let planned = self.sleeps_until.load(Ordering::Acquire);
        if lock(&self.stream).wake_at().is_some_and(|at| at < planned) {
            self.wake();
        }
    }

    /// Asks the thread how many frames and messages have arrived. It answers `None` while anything is in
    /// flight.
    pub fn request_quiescence(&self) -> mpsc::Receiver<Option<u64>> {
        let (sender, receiver) = mpsc::channel();
        self.send_command(LaneCommand::ReportQuiescence(sender));
        receiver
    }

    /// The count of arrivals, if nothing that could proceed waits to be sent, acknowledged or published.
    fn quiescent_count(&self) -> Option<u64> {
        let busy = !lock(&self.outbox).queue.is_empty()
            || !lock(&self.commands).is_empty()
            || self.frames_in_process.load(Ordering::SeqCst) != 0;
        let stream = lock(&self.stream).stats();
        let channels: Vec<_> = lock(&self.channels).values().cloned().collect();
        let published: u64 = channels.iter().map(|proxy| lock(proxy).stats.messages).sum();
        let at_rest = !busy && stream.unacknowledged_bytes == 0;
        at_rest.then_some(stream.frames_received + published)
    }

    /// Records that a message waits for capacity.
    pub fn note_blocked(&self) {
        self.has_blocked_proxy.store(true, Ordering::Release);
        self.wake();
    }

    /// Records that the network has connected to the other link.
    pub fn note_connected(&self) {
        lock(&self.stream).note_heard(now_ns());
        self.wake();
    }

    /// Ends the thread.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake();
    }

    /// Begins a session of the other link: drops the outbound data and ends all channels.
    pub fn clear(&self, session: u64) {
        self.session.store(session, Ordering::Release);
        *lock(&self.outbox) = Default::default();
        lock(&self.channels).clear();
        self.send_command(LaneCommand::Clear);
    }
}

/// When an idle lane must send. To a link that was not heard yet, only introductions leave, at the
/// times of the stream.
fn pulse_at(sent_ns: u64, now_ns: u64, is_known: bool) -> Option<u64> {
    is_known.then(|| sent_ns.max(now_ns.saturating_sub(PULSE_NS)) + PULSE_NS)
}

/// Hands a forwarder over: the other link is away, or has restarted the session.
fn go_offline(forwarder: Forwarder) {
    if let Some(reader) = forwarder.take_offline() {
        OfflineReaders::hand_over(reader);
    }
}

/// The state of the sending thread.
pub struct LaneSender {
    pub state: Arc<LaneState>,
    pub set: WaitSet,
    pub transport: Arc<dyn Transport>,
    pub events: mpsc::Sender<Event>,
    pub holds_role: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The channel that has the first turn.
    pub first_channel: u32,
    /// When the last frame was sent.
    pub sent_ns: u64,
}

impl LaneSender {
    /// Sends until the lane ends or the process loses the role.
    pub fn run(mut self) {
        let mut forwarders = Forwarders::new();
        self.serve(&mut forwarders);
        // Commands that have not been handled yet.
        self.take_commands(&mut forwarders);
        forwarders.into_values().for_each(go_offline);
    }

    fn serve(&mut self, forwarders: &mut Forwarders) {
        while !self.state.ended.load(Ordering::Acquire) {
            self.state.woken.store(false, Ordering::Release);
            let asked = self.take_commands(forwarders);
            self.push_outbox();
            let more = self.run_forwarders(forwarders);
            self.retry();
            if !self.send(more) {
                return;
            }
            for asked in asked {
                let read = !more && forwarders.values().all(Forwarder::is_quiescent);
                let _ = asked.send(self.state.quiescent_count().filter(|_| read));
            }
            if !more {
                self.sleep(forwarders);
            }
        }
    }

    /// Runs the commands; returns the requests for quiescence.
    fn take_commands(&self, forwarders: &mut Forwarders) -> Vec<mpsc::Sender<Option<u64>>> {
        let mut asked = Vec::new();
        // Other threads may add commands while these run.
        let commands = std::mem::take(&mut *lock(&self.state.commands));
        for command in commands {
            match command {
                LaneCommand::Add(forwarder) => {
                    drop(forwarders.insert(forwarder.channel, *forwarder))
                }
                LaneCommand::Remove(channel) => {
                    forwarders.remove(&channel);
                    lock(&self.state.forwarded).remove(&channel);
                }
                LaneCommand::PublisherGone(channel) => {
                    if let Some(forwarder) = forwarders.get_mut(&channel) {
                        forwarder.note_publisher_gone();
                    }
                }
                LaneCommand::Credit(channel, read) => {
                    if let Some(forwarder) = forwarders.get_mut(&channel) {
                        forwarder.credit(read);
                    }
                }
                LaneCommand::Clear => {
                    std::mem::take(forwarders).into_values().for_each(go_offline);
                    lock(&self.state.forwarded).clear();
                }
                LaneCommand::ReportQuiescence(sender) => asked.push(sender),
            }
        }
        asked
    }

    /// Hands the outbox to the stream, as far as that has capacity.
    fn push_outbox(&self) {
        let mut outbox = lock(&self.state.outbox);
        let Outbox { queue, parts, len_bytes } = &mut *outbox;
        let mut stream = lock(&self.state.stream);
        // Data for another session of the other link is not sent in this one.
        if stream.peer_term() != Some(self.state.session.load(Ordering::Acquire)) {
            return;
        }
        while let Some(first) = queue.front() {
            let pushed = match first {
                OutboxEntry::Item(item) => stream.push(item),
                OutboxEntry::Document(of, body) => {
                    DocumentPart::split(*of, body).skip(*parts).try_for_each(|next| {
                        stream.push(&Item::DocumentPart(next))?;
                        *parts += 1;
                        Ok(())
                    })
                }
            };
            if pushed.is_err() {
                return;
            }
            *parts = 0;
            *len_bytes -= first.len_bytes();
            queue.pop_front();
        }
    }

    /// Gives each forwarder a turn; returns whether one may have more. If the others have left a forwarder
    /// no capacity, it is first next time; otherwise forwarders with constant traffic would starve it.
    fn run_forwarders(&mut self, forwarders: &mut Forwarders) -> bool {
        let now = now_ns();
        let (mut more, mut passed_over) = (false, None);
        let (mut over, mut ended) = (Vec::new(), Vec::new());
        let parts =
            [(Included(self.first_channel), Unbounded), (Unbounded, Excluded(self.first_channel))];
        for part in parts {
            for (channel, forwarder) in forwarders.range_mut(part) {
                let mut stream = lock(&self.state.stream);
                if stream.peer_term() != Some(forwarder.session) {
                    // The other link has restarted the session and reuses the number for another channel.
                    over.push((*channel, false));
                    continue;
                }
                if forwarder.is_over() {
                    // Kept until it is delivered: its messages may have to be sent again.
                    over.extend(forwarder.is_delivered(&stream).then_some((*channel, true)));
                    continue;
                }
                let before = forwarder.sent();
                match forwarder.run_turn(&mut stream, now) {
                    Ok(TurnResult::More) => more = true,
                    Ok(TurnResult::Blocked)
                        if forwarder.has_credit() && forwarder.sent() == before =>
                    {
                        passed_over.get_or_insert(*channel);
                    }
                    Ok(TurnResult::Idle | TurnResult::Blocked) => {}
                    Ok(TurnResult::Ended) => ended.push(*channel),
                    Err(error) => {
                        more = true;
                        let _ = self.events.send(Event::Problem(error));
                    }
                }
                drop(stream);
                if let Some(forwarded) = forwarder.take_changed_stats() {
                    lock(&self.state.forwarded).insert(*channel, forwarded);
                }
            }
        }
        self.first_channel = passed_over.unwrap_or(self.first_channel);
        if forwarders.len() > MAX_UNCONFIRMED_ENDS {
            self.drop_unconfirmed_ends(forwarders);
        }
        for channel in ended {
            self.state.enqueue(OutboxEntry::Item(event::channel_end(channel)));
            let (host, lane) = (self.state.host, self.state.lane);
            let _ = self.events.send(Event::ChannelEnded(host, lane, channel));
        }
        for (channel, is_delivered) in over {
            if is_delivered {
                lock(&self.state.forwarded).remove(&channel);
            }
            forwarders.remove(&channel).filter(|_| !is_delivered).into_iter().for_each(go_offline);
        }
        more
    }

    /// Drops the oldest ended forwarders beyond the limit, of those whose end the other host has acknowledged: what a
    /// cut delays is not dropped.
    fn drop_unconfirmed_ends(&self, forwarders: &mut Forwarders) {
        let ends = forwarders.values().filter(|forwarder| forwarder.awaits_unsubscribe);
        let mut ends: Vec<_> = ends.filter_map(|of| Some((of.end_number()?, of.channel))).collect();
        let stream = lock(&self.state.stream);
        ends.retain(|(end, _)| stream.has_acknowledged(*end));
        drop(stream);
        let Some(count @ 1..) = ends.len().checked_sub(MAX_UNCONFIRMED_ENDS) else { return };
        ends.sort_unstable();
        for (_, channel) in &ends[..count] {
            forwarders.remove(channel);
            lock(&self.state.forwarded).remove(channel);
        }
        let what =
            format!("ended publishers with messages that host {} has not read", self.state.host);
        let hint = "check which subscriber of that host reads nothing".to_owned();
        let error = Error::LimitReached { what, limit: MAX_UNCONFIRMED_ENDS, hint };
        let _ = self.events.send(Event::Problem(error));
    }

    /// Publishes messages that waited for capacity, and reports to the owners what was read.
    fn retry(&self) {
        if !self.state.has_blocked_proxy.swap(false, Ordering::AcqRel) {
            return;
        }
        let channels: Vec<_> = lock(&self.state.channels).values().cloned().collect();
        for proxy in channels {
            let mut proxy = lock(&proxy);
            if let Err(error) = proxy.retry() {
                let _ = self.events.send(Event::Problem(error));
            }
            if proxy.is_blocked() {
                self.state.has_blocked_proxy.store(true, Ordering::Release);
            }
            if let Some((channel, read)) = proxy.channel.zip(proxy.take_credit(now_ns())) {
                self.state.enqueue(OutboxEntry::Item(Item::Credit { channel, read }));
            }
        }
    }

    /// Sends all frames that may leave; `false` if the link must exit. On the bulk lane the frame that is
    /// being filled stays if `more` is to be read at once: the next messages share its cost.
    fn send(&mut self, more: bool) -> bool {
        {
            let mut stream = lock(&self.state.stream);
            if !more || self.state.lane == Lane::Urgent {
                stream.flush();
            }
            if now_ns().saturating_sub(self.sent_ns) >= PULSE_NS {
                stream.request_ack();
            }
        }
        loop {
            let now = now_ns();
            let Some(frame) = lock(&self.state.stream).poll(now) else { return true };
            self.sent_ns = now;
            // A process that was stopped and replaced meanwhile must not continue to send.
            if !(self.holds_role)() {
                let _ = self.events.send(Event::RoleLost);
                return false;
            }
            if let Err(error) = self.transport.send(self.state.lane, self.state.host, frame) {
                let _ = self.events.send(Event::TransportFailed(error));
                return false;
            }
        }
    }

    fn sleep(&mut self, forwarders: &mut Forwarders) {
        // An event that arrives during this computation sees the sleep flag and wakes the thread.
        self.state.sleeps_until.store(u64::MAX, Ordering::SeqCst);
        let (has_room, is_known, paused_until, wake_at) = {
            let stream = lock(&self.state.stream);
            let waits = !stream.has_room() || stream.has_unsent();
            self.state.awaits_ack.store(waits, Ordering::Release);
            let look_at = stream.planned_poll_at(now_ns());
            let wake_at = stream.wake_at().into_iter().chain(look_at).min();
            (stream.has_room(), stream.peer_term().is_some(), stream.paused_until(), wake_at)
        };
        // Capacity that was freed since the last turn.
        if has_room && forwarders.values().any(Forwarder::can_resume) {
            self.state.sleeps_until.store(0, Ordering::SeqCst);
            return;
        }
        let now = now_ns();
        let retry = self.state.has_blocked_proxy.load(Ordering::Acquire).then(|| now + RETRY_NS);
        let limited = forwarders.values().filter_map(Forwarder::wake_at).filter(|at| *at > now);
        // A finished forwarder gets no more messages, and its publisher does nothing.
        let checks = forwarders
            .values()
            .filter(|of| !of.is_over())
            .filter_map(Forwarder::liveliness_check_at);
        let pulse = match paused_until > now {
            // Data queued meanwhile leaves soon after the other link is heard.
            true => Some(now + PULSE_NS),
            false => pulse_at(self.sent_ns, now, is_known),
        };
        let until =
            wake_at.into_iter().chain(retry).chain(limited).chain(checks).chain(pulse).min();
        self.state.sleeps_until.fetch_min(until.unwrap_or(u64::MAX), Ordering::SeqCst);
        let limit = until.map(|until| Duration::from_nanos(until.saturating_sub(now)));
        let mut named: Vec<&mut dyn Waitable> = forwarders
            .values_mut()
            .filter(|forwarder| has_room && forwarder.has_credit() && !forwarder.is_over())
            .filter(|forwarder| forwarder.wake_at().is_none_or(|at| at <= now))
            .map(|forwarder| &mut forwarder.subscriber as &mut dyn Waitable)
            .collect();
        // A wake-up arrives as `Interrupted`.
        let _ = self.set.wait_timeout(&mut named, limit.unwrap_or(Duration::MAX));
        self.state.sleeps_until.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_to_unheard_link_does_not_stay_awake() {
        let now = 10 * PULSE_NS;
        assert_eq!(pulse_at(now, now, true), Some(now + PULSE_NS));
        assert_eq!(pulse_at(now - 2 * PULSE_NS, now, true), Some(now), "it is due");
        assert_eq!(pulse_at(now - 2 * PULSE_NS, now, false), None);
    }
}
