//! The receiving half behind every form of receiving: it takes the inbox that the control thread fills, takes
//! messages from the publishers in turn, and waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use rnet_core::{Error, Lane, MAX_PUBLISHERS_PER_SUBSCRIPTION, Result, SubscriberQos, TopicName};
use rnet_shm::channel::reader::{ChannelError, PIN_LIMIT, Reader};
use rnet_shm::channel::subscription::{SubscriptionFile, SubscriptionMeta};
use rnet_shm::domain::node::{EndpointKind, Entry};
use rnet_shm::os::bell::Waiter;
use rnet_shm::os::shortage::is_transient;

use crate::aligned_bytes::AlignedBytes;
use crate::core::{NodeCore, NodeState};
use crate::former_publishers::{FormerPublishers, stats_of};
use crate::inbox::{Inbox, MAX_PENDING_ERRORS};
use crate::options::check_endpoint_count;
use crate::subscriber_state::SubscriberState;
use crate::trace::Tracing;
use crate::typed::SubscriberSettings;
use crate::types::MessageType;
use crate::wait_loop::WaitStrategy;

mod counts;
mod succession;
mod tracing;
mod waits;

use counts::status_of;
use succession::ProxySuccession;

/// Reports an error after at most this many messages, however busy the topic is.
const ERROR_CHECK_INTERVAL: u32 = 64;

/// The read state of a subscription with a single publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    /// No publisher is known, or the publisher has left and all its messages were read.
    Unmatched {
        /// One more than the number of the last message of the publisher that has left, if known.
        end: Option<u64>,
    },
    /// The publisher has not admitted the subscription, or has evicted it and not admitted it again.
    Pending,
    /// Number of the next message: earlier ones were received, counted as lost, or never promised.
    Reading(u64),
}

/// Status of a publisher other than its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherStatus {
    /// Messages that the publisher knows to be missing, by cause in the order of `LossCause::ALL`, as of the
    /// last receive: sums since it was opened.
    pub known_lost: [u64; 4],
    /// When it last asserted that it is alive, CLOCK_MONOTONIC in ns; 0 if it never has.
    pub asserted_ns: u64,
    /// Version of the last will: changes with each new last will; `None` without one.
    pub will: Option<u64>,
}

/// The receiving half that does not keep its node alive; dispatch threads hold these.
pub struct Receiver {
    /// Name of the topic in the domain.
    pub(crate) topic: TopicName,
    /// Id of the subscription.
    pub(crate) id: u64,
    /// The quality of service, as requested.
    pub(crate) qos: SubscriberQos,
    /// Length of every message in bytes; `None` if the length varies.
    pub(crate) fixed_len: Option<usize>,
    /// Has the counters that a [`crate::Subscription`] reads.
    pub(crate) file: Arc<SubscriptionFile>,
    /// The part that other threads access.
    pub(crate) state: Arc<SubscriberState>,
    /// The node of the subscription.
    pub(crate) node: Arc<NodeState>,
    /// The publishers that are read, in no particular order.
    pub(crate) channels: Vec<Reader>,
    /// Statistics of publishers that have left.
    pub(crate) former_publishers: FormerPublishers,
    succession: ProxySuccession,
    last_status: PublisherStatus,
    /// End position of the publisher that has left.
    last_end: Option<u64>,
    /// Errors to return, oldest first.
    pub(crate) errors: VecDeque<Error>,
    /// Number of receives, modulo 2^32; see [`ERROR_CHECK_INTERVAL`].
    pub(crate) receives_since_check: u32,
    /// Index of the next channel in turn.
    pub(crate) next_channel: usize,
    /// The waiting thread and its bell.
    pub(crate) waiter: Waiter,
    /// How long to spin before a sleep.
    pub(crate) wait_strategy: WaitStrategy,
    tracing: Tracing,
    /// Whether a signal ends a wait with `Interrupted`.
    pub(crate) interruptible: bool,
    /// Length of the last decoded message.
    pub(crate) decoded_len: usize,
    /// Copy of the last large message to decode, which its publisher cannot change.
    pub(crate) decoded_bytes: AlignedBytes,
    /// Results of a search for the newest message; kept to reuse its memory.
    pub(crate) found: Vec<(u64, u64)>,
}

impl Receiver {
    /// Opens a subscription; `choose` returns its type from the topic and the type in the settings.
    pub(crate) fn open(
        core: &Arc<NodeCore>,
        topic: TopicName,
        qos: SubscriberQos,
        settings: SubscriberSettings,
        choose: fn(&str, Option<MessageType>) -> Result<MessageType>,
    ) -> Result<(Receiver, MessageType)> {
        if let Some((_, endpoint_count)) = &settings.proxy {
            check_endpoint_count(*endpoint_count)?;
        }
        qos.validate().map_err(|e| e.with_topic(topic.as_str()))?;
        let ty = choose(topic.as_str(), settings.message_type)?;
        let fixed_len = ty.fixed_len();
        let meta = SubscriptionMeta {
            topic: topic.to_string(),
            type_desc: ty.desc(),
            qos: qos.clone().resolved(),
            proxy: settings.proxy.as_ref().map(|(proxy, _)| proxy.clone()),
            link: settings.link,
        };
        let node = &core.state;
        node.refresh();
        node.matching().check_topic_limit(topic.hash())?;
        let id = node.own.next_endpoint()?;
        let endpoint_count =
            settings.proxy.as_ref().map_or(1, |(_, endpoint_count)| *endpoint_count);
        let kind = EndpointKind::Subscription;
        let entry = Entry { id, topic_hash: topic.hash(), kind, endpoint_count };
        let path = entry.path(node.own.folder());
        ty.write_description(&node.own, topic.as_str())?;
        let file = Arc::new(SubscriptionFile::create(node.own.clone(), path, id, &meta)?);
        let waiter = Waiter::new(node.own.bells().clone());
        let bells = node.own.bells().clone();
        let shortage = node.matching().shortage_reporter();
        let state = SubscriberState::new(node.fork_guard(), bells, waiter.bell(), shortage);
        let state = Arc::new(state);
        if let Some(lane) = qos.lane {
            state.set_lane(lane);
        }
        node.matching().add_subscription(
            entry,
            meta,
            file.clone(),
            state.clone(),
            settings.from,
        )?;
        let receiver = Receiver {
            topic,
            id,
            qos,
            fixed_len,
            file,
            state,
            node: node.clone(),
            channels: Vec::new(),
            former_publishers: FormerPublishers::default(),
            succession: ProxySuccession::default(),
            last_status: PublisherStatus::default(),
            last_end: None,
            errors: VecDeque::new(),
            receives_since_check: 0,
            next_channel: 0,
            waiter,
            wait_strategy: WaitStrategy::of(node.own.bells()),
            tracing: Tracing::default(),
            interruptible: false,
            decoded_len: 0,
            decoded_bytes: AlignedBytes::default(),
            found: Vec::new(),
        };
        node.refresh();
        Ok((receiver, ty))
    }

    pub(crate) fn lane(&self) -> Option<Lane> {
        self.state.lane()
    }

    pub(crate) fn topic(&self) -> &TopicName {
        &self.topic
    }

    pub(crate) fn file(&self) -> &Arc<SubscriptionFile> {
        &self.file
    }

    pub(crate) fn node(&self) -> &Arc<NodeState> {
        &self.node
    }

    /// Moves all wake-ups of this subscriber to another bell.
    pub fn set_bell(&mut self, bell: u64) {
        self.state.waiting.set_bell(bell);
        for channel in &self.channels {
            channel.set_bell(bell);
        }
        // A channel that the control thread bound meanwhile gets the bell when it is taken.
    }

    /// Whether [`Receiver::advance`] may find something.
    #[inline]
    pub fn is_ready(&self) -> bool {
        !self.errors.is_empty()
            || self.channels.iter().any(Reader::is_ready)
            || self.state.has_inbox_items()
            || self.has_successor()
    }

    /// Whether a message or an inbox item is available. Check the rest of [`Receiver::is_ready`] only if this
    /// returns `false`.
    #[inline(always)] // As `Reader::has_more`.
    pub fn has_more(&self) -> bool {
        self.channels.iter().any(Reader::has_more) || self.state.has_inbox_items()
    }

    /// As [`Receiver::is_ready`], for a caller that then waits without another failed check.
    pub fn is_ready_before_wait(&mut self) -> bool {
        let is_ready = self.is_ready();
        if !is_ready {
            self.channels.iter_mut().for_each(Reader::reset_contention);
        }
        is_ready
    }

    /// Takes the inbox, if the control thread has put anything into it.
    pub fn drain_inbox(&mut self) {
        if self.state.has_inbox_items() {
            self.take_inbox();
        }
    }

    /// Takes the inbox.
    #[cold]
    pub fn take_inbox(&mut self) {
        let Inbox { channels, left, lost, errors, former_publishers } = self.state.take_inbox();
        self.former_publishers.append(former_publishers);
        errors.into_iter().for_each(|error| self.push_error(error));
        for (publisher, died) in left {
            if let Some(channel) = self.reader_mut(publisher) {
                channel.publisher_left(died);
            }
        }
        channels.into_iter().for_each(|channel| self.add_reader(channel));
        self.start_successors();
        for (publisher, node) in lost {
            match self.reader_mut(publisher) {
                // Reported when the remaining messages are read.
                Some(channel) => channel.note_death(),
                None => self.push_error(Error::PeerLost { topic: self.topic.to_string(), node }),
            }
        }
        // A user who receives rarely leaves messages unread. Present publishers alone may fill all slots.
        while self.channels.len() + self.succession.len() > MAX_PUBLISHERS_PER_SUBSCRIPTION
            && let Some(at) = self.channels.iter().position(Reader::has_left)
        {
            self.channels[at].discard_unread();
            if let Some(error) = self.end_channel(at) {
                self.push_error(error);
            }
            self.start_successors();
        }
    }

    fn reader_mut(&mut self, publisher: u64) -> Option<&mut Reader> {
        let mut known = self.channels.iter_mut().chain(self.succession.readers_mut());
        known.find(|channel| channel.publisher() == publisher)
    }

    /// Queues an error to return; drops the oldest if there are too many.
    pub(crate) fn push_error(&mut self, error: Error) {
        if self.errors.len() == MAX_PENDING_ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(error);
    }

    /// Returns an error in a forked child.
    #[inline]
    pub fn check_fork(&self) -> Result<()> {
        self.state.fork_guard.check(|| format!("the subscriber of {}", self.topic))
    }

    /// Whether the receiver belongs to the parent of this forked process.
    pub fn is_from_parent(&self) -> bool {
        self.state.fork_guard.is_from_parent()
    }

    /// Takes the next message; returns its channel. `Err` reports an error of one channel once; the other
    /// channels continue.
    // Always inlined: it is the whole of a receive, and a program that receives several types would call it
    // otherwise.
    #[inline(always)]
    pub fn advance(&mut self) -> Result<Option<usize>> {
        self.check_fork()?;
        // The common case: no error or inbox item is pending, and the next channel in turn has a message.
        let at = if self.next_channel < self.channels.len() { self.next_channel } else { 0 };
        let quiet = self.errors.is_empty() && !self.state.needs_attention();
        let plain = quiet && self.channels.get_mut(at).is_some_and(Reader::take_plain);
        if !plain {
            if self.state.needs_attention() {
                return self.advance_slow();
            }
            return self.advance_channels();
        }
        self.next_channel = at + 1;
        if let Some(fixed) = self.fixed_len {
            self.check_len(at, fixed)?;
        }
        Ok(Some(at))
    }

    /// As [`Receiver::advance`], only for the publishers taken before.
    pub fn advance_channels(&mut self) -> Result<Option<usize>> {
        if self.succession.len() != 0 {
            self.start_successors();
        }
        self.receives_since_check = self.receives_since_check.wrapping_add(1);
        if self.receives_since_check.is_multiple_of(ERROR_CHECK_INTERVAL)
            && let Some(error) = self.take_due_error()
        {
            return Err(error);
        }
        let count = self.channels.len();
        for step in 0..count {
            let at = (self.next_channel + step) % count;
            match self.channels[at].take() {
                Ok(true) => {
                    self.next_channel = at + 1;
                    if let Some(fixed) = self.fixed_len {
                        self.check_len(at, fixed)?;
                    }
                    return Ok(Some(at));
                }
                // Checked in turn and not only when all channels are idle: a busy publisher must not hide
                // that another has left.
                Ok(false) if self.channels[at].is_finished() => {
                    return match self.end_channel(at) {
                        Some(error) => Err(error),
                        None => self.advance_channels(),
                    };
                }
                Ok(false) => {}
                Err(error) => return Err(self.fail(at, error)),
            }
        }
        match self.errors.pop_front() {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    /// Work to do once every [`ERROR_CHECK_INTERVAL`] messages.
    fn take_due_error(&mut self) -> Option<Error> {
        self.tracing.resume_with_credit(&self.state);
        self.errors.pop_front()
    }

    /// Advances every channel to its newest message; adds the send time and the publisher of each.
    pub fn find_newest(&mut self, found: &mut Vec<(u64, u64)>) {
        self.start_successors();
        let mut at = 0;
        while let Some(channel) = self.channels.get_mut(at) {
            let publisher = channel.publisher();
            match channel.find_newest() {
                Ok(Some(sent_ns)) => found.push((sent_ns, publisher)),
                Ok(None) => {}
                Err(error) => {
                    let count = self.channels.len();
                    let error = self.fail(at, error);
                    self.push_error(error);
                    if self.channels.len() < count {
                        // The channel was closed, and another channel took its index.
                        continue;
                    }
                }
            }
            at += 1;
        }
    }

    /// Index of the channel of a publisher.
    pub(crate) fn channel_of(&self, publisher: u64) -> Option<usize> {
        self.channels.iter().position(|channel| channel.publisher() == publisher)
    }

    /// Takes the next message of one channel.
    pub fn take_at(&mut self, at: usize) -> Result<bool> {
        match self.channels[at].take() {
            Ok(true) => match self.fixed_len {
                Some(fixed) => self.check_len(at, fixed).map(|()| true),
                None => Ok(true),
            },
            Ok(false) => Ok(false),
            Err(error) => Err(self.fail(at, error)),
        }
    }

    /// Checks that a message has the length of our type, or of its publisher's type, which is compatible with
    /// ours.
    #[inline]
    pub fn check_len(&mut self, at: usize, fixed: usize) -> Result<()> {
        if self.channels[at].current_len() == fixed { Ok(()) } else { self.check_other_len(at) }
    }

    #[cold]
    fn check_other_len(&mut self, at: usize) -> Result<()> {
        let channel = &mut self.channels[at];
        let len = channel.current_len();
        let theirs = channel.meta().type_desc.as_plain().map_or(0, |plain| plain.size);
        if len == theirs {
            return Ok(());
        }
        let what = format!("a message has {len} bytes, but its type has {theirs}");
        let node = channel.node().to_owned();
        self.close_channel(at);
        Err(Error::Corrupt { topic: self.topic.to_string(), publisher_node: node, what })
    }

    /// The error to return for an error of a channel. Closes the channel if it is corrupt.
    #[cold]
    pub(crate) fn fail(&mut self, at: usize, error: ChannelError) -> Error {
        let topic = self.topic.to_string();
        let publisher_node = self.channels[at].node().to_owned();
        self.next_channel = at + 1;
        match error {
            ChannelError::Detached => {
                let stall_ms = match self.channels[at].meta().qos.on_full {
                    rnet_core::OnFull::Detach { stall } => rnet_core::time::ms_ceil(stall),
                    _ => 0,
                };
                Error::Detached { topic, publisher_node, stall_ms }
            }
            ChannelError::TooManyPins => Error::TooManyPins { topic, limit: PIN_LIMIT },
            ChannelError::Corrupt(what) => {
                self.close_channel(at);
                Error::Corrupt { topic, publisher_node, what: what.to_owned() }
            }
            ChannelError::Refused => Error::limit_reached(
                format!("readers of {topic} at {publisher_node}"),
                rnet_core::MAX_READERS_PER_CHANNEL,
                "share one subscriber per process; this one is admitted once \
                       another closes",
            ),
            ChannelError::Shortage(error) => *error,
        }
    }

    /// Closes a channel. Keeps its statistics and the last status of its publisher.
    pub(crate) fn close_channel(&mut self, at: usize) {
        let mut channel = self.channels.swap_remove(at);
        // The last status of the publisher, behind its last message.
        if !channel.is_asking() {
            channel.count_known_lost();
        }
        (self.last_status, self.last_end) = (status_of(&channel), channel.end_seq());
        self.succession.remember(&channel);
        self.former_publishers.push(stats_of(&channel));
    }

    /// Closes a channel that was read to its end and whose publisher has left; returns the error if the
    /// publisher was lost.
    #[cold]
    fn end_channel(&mut self, at: usize) -> Option<Error> {
        let channel = &self.channels[at];
        let (topic, node) = (self.topic.to_string(), channel.node().to_owned());
        let died = channel.has_died();
        self.close_channel(at);
        died.then_some(Error::PeerLost { topic, node })
    }

    /// Closes the channels that are read to their end and whose publishers have left.
    pub(crate) fn drop_finished(&mut self) {
        while let Some(at) = self.channels.iter().position(Reader::is_finished) {
            if let Some(error) = self.end_channel(at) {
                self.push_error(error);
            }
        }
    }

    /// Waits for the next message until the deadline.
    #[inline]
    pub fn receive(&mut self, until: Option<Instant>) -> Result<Option<usize>> {
        if let Some(at) = self.advance()? {
            return Ok(Some(at));
        }
        loop {
            if !self.wait(until)? {
                return Ok(None);
            }
            if let Some(at) = self.advance()? {
                self.learn_period(at);
                return Ok(Some(at));
            }
            // The receiver may have been ready without a message for the user.
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
        }
    }

    /// Number of publishers that serve the subscriber, including those that have just started.
    pub fn count_publishers(&mut self) -> usize {
        self.drain_inbox();
        self.start_successors();
        let mut at = 0;
        while let Some(channel) = self.channels.get_mut(at) {
            let begun = channel.begin();
            let before = self.channels.len();
            if let Err(error) = begun {
                let error = self.fail(at, error);
                self.push_error(error);
            }
            // If this channel had to be closed, another has its index now.
            at += usize::from(self.channels.len() == before);
        }
        self.begin_successors();
        self.admitted_count()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if self.is_from_parent() {
            return;
        }
        self.state.trace.close();
        self.node.matching().remove(self.id);
        self.node.refresh();
    }
}

/// Whether the error reports a publisher that cannot be followed.
pub fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::IncompatibleType { .. } | Error::IncompatibleQos { .. })
        || is_transient(error)
}

const _: () = {
    const fn send<T: Send>() {}
    send::<Receiver>();
    send::<Error>();
};
