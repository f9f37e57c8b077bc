//! Receiving.

use std::borrow::Cow;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::aligned_bytes::AlignedBytes;
use crate::core::NodeCore;
use crate::options::deadline;
use crate::receiver::{Receiver, is_refusal};
use crate::types;
use rnet_core::{Backlog, Error, LossCounts, Result, SubscriberQos, TopicName};
use rnet_shm::channel::subscription::SubscriptionFile;

use super::sample::{OwnedSample, Sample};
use super::subscriber_settings::SubscriberSettings;
use crate::{
    CallbackGuard, DeadlineMissed, Interrupter, LivelinessChange, LivelinessCounts, MatchEvent,
    Message, PeerInfo, PublisherStats,
};

/// The buffer of a longer decoded message is not reused: it may have grown to hundreds of times the length of
/// the message.
const MAX_REUSED_LEN_BYTES: usize = 64 << 10;

/// Receives messages of type `T` from all publishers of one topic.
///
/// Messages of one publisher arrive in the order of sending; several publishers are merged in turn. Lost
/// messages are counted by publisher and cause, see [`Subscriber::stats`].
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("subscriber{}", std::process::id());
/// # let node = rnet::Node::builder("map").dir(dir).domain(&domain).open()?;
/// use std::time::Duration;
///
/// # let mut scans = node.publisher::<[u8]>("/scan").open()?;
/// let mut subscriber = node.subscriber::<[u8]>("/scan").open()?;
/// # scans.wait_for_subscribers(1)?;
/// # scans.send(b"1.5")?;
/// let scan = subscriber.recv_timeout(Duration::from_secs(10))?; // the next one, or `Timeout`
/// assert_eq!(&*scan, b"1.5");
/// assert!(subscriber.try_recv()?.is_none());
/// assert_eq!(subscriber.lost().total(), 0);
/// # drop((scans, subscriber));
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
pub struct Subscriber<T: Message + ?Sized> {
    // Before the core: its drop withdraws the endpoint while the node still exists.
    pub(crate) receiver: Receiver,
    pub(crate) core: Arc<NodeCore>,
    buffer: T::DecodeBuffer,
}

impl<T: Message + ?Sized> Subscriber<T> {
    pub(crate) fn open(
        core: &Arc<NodeCore>,
        topic: TopicName,
        qos: SubscriberQos,
        settings: SubscriberSettings,
    ) -> Result<Subscriber<T>> {
        let (receiver, ty) = Receiver::open(core, topic, qos, settings, types::choose_type::<T>)?;
        Ok(Subscriber { receiver, core: core.clone(), buffer: T::new_buffer(&ty) })
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        self.receiver.topic.as_str()
    }

    /// The next message, if available.
    ///
    /// # Errors
    /// As for [`Subscriber::recv`].
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<Sample<'_, T>>> {
        match self.receiver.advance()? {
            Some(at) => self.receiver.sample(at, &mut self.buffer).map(Some),
            None => Ok(None),
        }
    }

    /// Waits for the next message, without a limit.
    ///
    /// # Errors
    /// They report, once each, an event on one channel, while the other channels continue: `PeerLost`,
    /// `Detached`, `IncompatibleType`, `IncompatibleQos`, `Corrupt`, `TooManyPins`, or one `Malformed`
    /// message.
    #[inline]
    pub fn recv(&mut self) -> Result<Sample<'_, T>> {
        match self.receiver.advance()? {
            Some(at) => self.receiver.sample(at, &mut self.buffer),
            None => self.recv_slow(None),
        }
    }

    /// As [`Subscriber::recv`], for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`; as [`Subscriber::recv`].
    #[inline]
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Sample<'_, T>> {
        match self.receiver.advance()? {
            Some(at) => self.receiver.sample(at, &mut self.buffer),
            None => self.recv_slow(Some(timeout)),
        }
    }

    fn recv_slow(&mut self, timeout: Option<Duration>) -> Result<Sample<'_, T>> {
        match self.receiver.receive(deadline(timeout))? {
            Some(at) => self.receiver.sample(at, &mut self.buffer),
            None => Err(self.timed_out("a message", timeout)),
        }
    }

    pub(crate) fn timed_out(
        &self,
        what: impl Into<Cow<'static, str>>,
        timeout: Option<Duration>,
    ) -> Error {
        Error::timeout(self.receiver.topic.shared().clone(), what, timeout.unwrap_or_default())
    }

    /// The newest unread message, skipping older ones; waits for one, without a limit.
    ///
    /// With several publishers it is the newest of all, by the send time. Skipped messages are counted as
    /// skipped, not as received or lost.
    ///
    /// # Errors
    /// As [`Subscriber::recv`].
    pub fn latest(&mut self) -> Result<OwnedSample<T>> {
        self.wait_for_newest(None)
    }

    /// As [`Subscriber::latest`], for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`; as [`Subscriber::recv`].
    pub fn latest_timeout(&mut self, timeout: Duration) -> Result<OwnedSample<T>> {
        self.wait_for_newest(Some(timeout))
    }

    /// As [`Subscriber::latest`], without a wait.
    ///
    /// # Errors
    /// As [`Subscriber::recv`].
    pub fn try_latest(&mut self) -> Result<Option<OwnedSample<T>>> {
        self.newest(0)
    }

    fn wait_for_newest(&mut self, timeout: Option<Duration>) -> Result<OwnedSample<T>> {
        let until = deadline(timeout);
        loop {
            if let Some(sample) = self.newest(0)? {
                return Ok(sample);
            }
            // The subscriber may have been ready without a message for the user.
            let over = until.is_some_and(|until| Instant::now() >= until);
            if over || !self.receiver.wait(until)? {
                return Err(self.timed_out("a message", timeout));
            }
        }
    }

    /// Checks every publisher once, for a message sent at `after_ns` or later.
    pub(crate) fn newest(&mut self, after_ns: u64) -> Result<Option<OwnedSample<T>>> {
        self.receiver.check_fork()?;
        self.receiver.drain_inbox();
        self.receiver.end_receive();
        let mut found = std::mem::take(&mut self.receiver.found);
        self.receiver.find_newest(&mut found);
        // The newest first. If it was lost or cannot be taken, the next one is tried.
        found.sort_unstable_by_key(|(sent_ns, _)| *sent_ns);
        let mut newest = None;
        while let Some((_, publisher)) = found.pop_if(|(sent_ns, _)| *sent_ns >= after_ns) {
            let Some(at) = self.receiver.channel_of(publisher) else { continue };
            match self.receiver.take_at(at) {
                Ok(true) => match self.receiver.sample::<T>(at, &mut self.buffer) {
                    Ok(sample) => {
                        newest = Some(sample.into_owned());
                        self.receiver.trace_receive(Some(at));
                        break;
                    }
                    Err(error) => self.receiver.push_error(error),
                },
                Ok(false) => {}
                // Reported below; a message of another channel must not be lost because of it.
                Err(error) => self.receiver.push_error(error),
            }
        }
        for (_, publisher) in found.drain(..) {
            if let Some(at) = self.receiver.channel_of(publisher) {
                self.receiver.channels[at].skip_withheld();
            }
        }
        self.receiver.found = found;
        self.receiver.drop_finished();
        match (newest, self.receiver.errors.pop_front()) {
            (None, Some(error)) => Err(error),
            (newest, Some(error)) => {
                self.receiver.errors.push_front(error);
                Ok(newest)
            }
            (newest, None) => Ok(newest),
        }
    }

    /// Receives in an endless loop: `for sample in subscriber.iter()`, or `for sample in subscriber` to give
    /// the subscriber to the loop.
    ///
    /// Errors of single publishers (lost, detached, incompatible) do not stop the iterator and are not
    /// reported by it: they are counted in [`Subscriber::stats`], and without a compatible publisher the
    /// iterator waits. To receive these errors, call [`Subscriber::recv`] in a loop, or set a callback with
    /// [`Subscriber::on_match`]. The iterator ends when a wait is interrupted (see
    /// [`Subscriber::set_interruptible`]). While the user keeps the maximum number of samples, it waits until
    /// one is dropped.
    pub fn iter(&mut self) -> impl Iterator<Item = OwnedSample<T>> + '_ {
        std::iter::from_fn(|| self.next_owned())
    }

    /// The next item of the iterators.
    fn next_owned(&mut self) -> Option<OwnedSample<T>> {
        loop {
            let error = match self.recv() {
                Ok(sample) => return Some(sample.into_owned()),
                Err(error) => error,
            };
            match error {
                Error::Closed { .. } | Error::Interrupted => return None,
                Error::TooManyPins { .. } => {
                    self.receiver.wait(None).ok()?;
                }
                _ => {}
            }
        }
    }

    /// Waits until at least `n` publishers are matched: messages sent after that are received or counted as
    /// lost.
    ///
    /// # Errors
    /// `IncompatibleType` or `IncompatibleQos` if an incompatible publisher appears; `LimitReached` or
    /// `OutOfMemory`, once, if a publisher cannot be followed for now, or if nodes cannot be inspected, for
    /// example without free file descriptors.
    pub fn wait_for_publishers(&mut self, n: usize) -> Result<()> {
        self.wait_until_matched(n, None)
    }

    /// As [`Subscriber::wait_for_publishers`], for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`; as [`Subscriber::wait_for_publishers`].
    pub fn wait_for_publishers_timeout(&mut self, n: usize, timeout: Duration) -> Result<()> {
        self.wait_until_matched(n, Some(timeout))
    }

    fn wait_until_matched(&mut self, n: usize, timeout: Option<Duration>) -> Result<()> {
        self.receiver.check_fork()?;
        let until = deadline(timeout);
        loop {
            self.receiver.drain_inbox();
            for at in 0..self.receiver.channels.len() {
                if let Err(error) = self.receiver.channels[at].begin() {
                    return Err(self.receiver.fail(at, error));
                }
            }
            self.receiver.begin_successors();
            if self.receiver.admitted_count() >= n {
                return Ok(());
            }
            let bad = self.receiver.errors.iter().position(is_refusal);
            let bad = bad.and_then(|at| self.receiver.errors.remove(at));
            if let Some(error) = bad.or_else(|| self.receiver.state.shortage.take()) {
                return Err(error);
            }
            if !self.receiver.wait_for_match(until)? {
                return Err(self.timed_out(format!("{n} publishers"), timeout));
            }
        }
    }

    /// The id of this subscriber, as its publishers see it.
    pub fn id(&self) -> u64 {
        self.receiver.id
    }

    /// Number of publishers that serve this subscriber now.
    pub fn publisher_count(&mut self) -> usize {
        if self.receiver.is_from_parent() {
            return 0;
        }
        self.receiver.count_publishers()
    }

    /// Received and lost messages by publisher, including former publishers.
    pub fn stats(&self) -> Vec<PublisherStats> {
        self.receiver.stats()
    }

    /// Its backlog from all publishers together: unread messages, and the age of the oldest.
    pub fn behind(&self) -> Backlog {
        self.receiver.behind()
    }

    /// All losses so far, by cause.
    pub fn lost(&self) -> LossCounts {
        let mut sum = LossCounts::default();
        for stats in self.receiver.stats() {
            sum.add(&stats.lost);
        }
        sum
    }

    /// Lets a signal interrupt a wait with `Interrupted`; otherwise waits continue after the handler.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.receiver.interruptible = yes;
    }

    /// Calls `callback` for each match change, on the node's bulk dispatch thread.
    pub fn on_match(&self, callback: impl FnMut(&MatchEvent) + Send + 'static) -> CallbackGuard {
        self.receiver.state.match_callbacks.add(&self.core.state, Box::new(callback))
    }

    /// Calls `callback` when a publisher has sent nothing for a period of this subscriber's deadline, on the
    /// node's bulk dispatch thread. The first period of each publisher starts with its first message. A
    /// publisher whose process has died has missed its deadline at once, and for the last time; one that
    /// closes has missed none.
    pub fn on_deadline(
        &self,
        callback: impl FnMut(&DeadlineMissed) + Send + 'static,
    ) -> CallbackGuard {
        self.receiver.state.deadlines.add(&self.core.state, Box::new(callback))
    }

    /// Calls `callback` when a publisher has become alive, or is no longer alive, on the node's bulk dispatch
    /// thread.
    pub fn on_liveliness(
        &self,
        callback: impl FnMut(&LivelinessChange) + Send + 'static,
    ) -> CallbackGuard {
        self.core.on_liveliness(&self.receiver.state, self.receiver.id, Box::new(callback))
    }

    /// Number of matched publishers that are alive now.
    pub fn liveliness(&self) -> LivelinessCounts {
        self.core.state.liveliness_of(self.receiver.id)
    }

    /// The publishers that are matched now.
    pub fn publishers(&self) -> Vec<PeerInfo> {
        let channels = self.receiver.channels.iter().filter(|c| c.is_admitted());
        channels.map(|c| PeerInfo { id: c.publisher(), node: c.node().to_owned() }).collect()
    }

    /// A handle with which other threads can end this subscriber's waits, including those in a
    /// [`crate::WaitSet`].
    pub fn interrupter(&mut self) -> Interrupter {
        Interrupter::from(&self.receiver.state.waiting)
    }

    /// The receiver and the decode buffer.
    pub(crate) fn split(&mut self) -> (&mut Receiver, &mut T::DecodeBuffer) {
        (&mut self.receiver, &mut self.buffer)
    }

    pub(crate) fn into_parts(self) -> (Receiver, Arc<NodeCore>, T::DecodeBuffer) {
        (self.receiver, self.core, self.buffer)
    }

    /// A counter for messages that turn out to be malformed, for bindings that decode bytes themselves.
    pub fn malformed_counter(&self) -> MalformedCounter {
        MalformedCounter {
            topic: self.receiver.topic.to_string(),
            file: Arc::downgrade(&self.receiver.file),
            core: Arc::downgrade(&self.core),
        }
    }
}

/// The samples of a subscriber that was given to a loop; see [`Subscriber::iter`].
#[derive(Debug)]
pub struct Samples<T: Message + ?Sized>(Subscriber<T>);

impl<T: Message + ?Sized> Iterator for Samples<T> {
    type Item = OwnedSample<T>;

    fn next(&mut self) -> Option<OwnedSample<T>> {
        self.0.next_owned()
    }
}

impl<T: Message + ?Sized> IntoIterator for Subscriber<T> {
    type Item = OwnedSample<T>;
    type IntoIter = Samples<T>;

    fn into_iter(self) -> Samples<T> {
        Samples(self)
    }
}

/// Makes samples of the bytes that a receiver has taken.
pub(crate) trait Decode {
    /// The message that [`Receiver::advance`] has taken.
    fn sample<'a, T: Message + ?Sized>(
        &'a mut self,
        at: usize,
        buffer: &'a mut T::DecodeBuffer,
    ) -> Result<Sample<'a, T>>;
}

impl Decode for Receiver {
    #[inline]
    fn sample<'a, T: Message + ?Sized>(
        &'a mut self,
        at: usize,
        buffer: &'a mut T::DecodeBuffer,
    ) -> Result<Sample<'a, T>> {
        let in_place = match T::IN_PLACE_MIN_LEN {
            Some(0) => true,
            Some(len) => self.channels[at].current_len() >= len,
            None => false,
        };
        if !in_place {
            if self.decoded_len > MAX_REUSED_LEN_BYTES {
                drop(T::take_buffer(buffer));
                self.decoded_bytes = AlignedBytes::default();
            }
            self.decoded_len = self.channels[at].current_len();
            let taken = self.channels[at].current();
            let bytes = match taken.copied_bytes() {
                Some(bytes) => bytes,
                None if T::READS_EACH_BYTE_ONCE => taken.bytes(),
                None => {
                    self.decoded_bytes.refill(taken.bytes());
                    self.decoded_bytes.as_slice()
                }
            };
            if let Err(why) = T::decode(bytes, buffer) {
                return Err(self.malformed(at, why));
            }
        }
        Ok(Sample { taken: self.channels[at].current(), buffer })
    }
}

/// Counts malformed messages of a subscriber; made by [`Subscriber::malformed_counter`]. It may outlive the
/// subscriber, whose file it does not hold.
#[derive(Clone, Default)]
pub struct MalformedCounter {
    topic: String,
    file: Weak<SubscriptionFile>,
    core: Weak<NodeCore>,
}

impl MalformedCounter {
    /// Counts a message of `publisher` and makes its error.
    pub fn malformed(&self, publisher: u64, why: String) -> Error {
        if let Some(file) = self.file.upgrade().filter(|file| !file.fork_guard().is_from_parent()) {
            file.count_malformed(publisher);
        }
        let core = self.core.upgrade().filter(|core| !core.state.fork_guard().is_from_parent());
        let node = core.and_then(|core| core.state.matching().node_of(publisher));
        let publisher_node = node.unwrap_or_else(|| "a node that has left".to_owned());
        Error::Malformed { topic: self.topic.clone(), publisher_node, why }
    }
}

crate::debug_by!([] MalformedCounter, "MalformedCounter", |this| "topic": this.topic);

crate::debug_by!(
    [T: Message + ?Sized] Subscriber<T>, "Subscriber", |this| "topic": this.receiver.topic
);
