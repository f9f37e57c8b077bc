//! Sending.

#![expect(clippy::result_large_err, reason = "a loan is returned by value, without allocating")]

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::NodeCore;
use crate::match_event::PublisherState;
use crate::options::deadline;
use crate::types;
use rnet_core::{
    Error, KnownGap, LossCause, MAX_INLINE_LEN_BYTES, Meta, PublisherQos, Result, TopicName,
};
use rnet_shm::channel::publisher::{PublisherMeta, Writer};
use rnet_shm::domain::node::{EndpointKind, Entry};

use crate::{
    CallbackGuard, DeadlineMissed, MatchChanges, MatchEvent, Message, MessageType, PeerInfo,
};
pub use builder::PublisherBuilder;
pub use loan::{Loan, OwnedLoan};
use settings::PublisherSettings;

mod builder;
mod interrupt;
mod last_will;
mod loan;
mod settings;

/// Maximum length of the encoding buffer that a publisher keeps for the next message.
const MAX_REUSED_LEN_BYTES: usize = 64 * MAX_INLINE_LEN_BYTES;

/// Sends messages of type `T` on one topic.
///
/// Dropping it does not block. Its node keeps the large messages that reliable subscribers have not read yet
/// for at most a second, and waits for that when the node is closed; [`Publisher::close`] waits for it at
/// once. A process that exits with an open node, such as by `std::process::exit`, keeps none. Messages in the
/// log stay readable.
///
/// A publisher belongs to one thread at a time (`send` takes `&mut self`); wrap it in a mutex to
/// share it, or create one per thread: subscribers merge them.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("publisher{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
/// use std::time::Duration;
/// use rnet::OnFull;
///
/// // Every message arrives; a send waits for a full subscriber for at most 50 ms.
/// let on_full = OnFull::Wait(Duration::from_millis(50));
/// let mut jobs = node.publisher::<[u8]>("/jobs").reliable(on_full).open()?;
/// let mut worker = node.subscriber::<[u8]>("/jobs").reliable().open()?;
/// jobs.wait_for_subscribers(1)?;
/// jobs.send(b"weld")?;
/// assert_eq!(&*worker.recv()?, b"weld");
/// # drop((jobs, worker));
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
pub struct Publisher<T: Message + ?Sized> {
    pub(crate) writer: Writer,
    pub(crate) id: u64,
    pub(crate) topic: TopicName,
    message_type: MessageType,
    /// Length that each message must have, from the type.
    fixed_len: Option<usize>,
    /// Encoding buffer for messages that cannot be sent as they are.
    pub(crate) encoded: Vec<u8>,
    /// Whether the last message was longer than the kept buffer: the messages of a topic are alike.
    was_large: bool,
    pub(crate) state: Arc<PublisherState>,
    pub(crate) core: Arc<NodeCore>,
    _type: PhantomData<fn(&T)>,
}

impl<T: Message + ?Sized> Publisher<T> {
    pub(crate) fn open(
        core: &Arc<NodeCore>,
        topic: TopicName,
        qos: PublisherQos,
        settings: PublisherSettings,
    ) -> Result<Publisher<T>> {
        qos.validate().map_err(|e| e.with_topic(topic.as_str()))?;
        let ty = types::choose_type::<T>(topic.as_str(), settings.message_type)?;
        let fixed_len = ty.fixed_len();
        let (type_desc, proxy, deferred) = (ty.desc(), settings.proxy, settings.deferred);
        let will = settings.last_will.map(|will| will.bytes_of(topic.as_str(), &ty)).transpose()?;
        let (name, will_room) = (topic.to_string(), will.is_some() || settings.reserve_will);
        let meta = PublisherMeta { topic: name, type_desc, qos, proxy, will: will_room };
        let state = &core.state;
        state.refresh();
        state.matching().check_topic_limit(topic.hash())?;
        let id = state.own.next_endpoint()?;
        let entry = Entry::new(id, topic.hash(), EndpointKind::Publisher);
        ty.write_description(&state.own, topic.as_str())?;
        let mut writer = Writer::create(&state.own, entry.path(state.own.folder()), id, &meta)?;
        // Before the publisher is announced.
        will.map_or(Ok(()), |will| writer.set_will(Some(&will)))?;
        let reader_table = writer.reader_table().clone();
        let matches =
            state.matching().add_publisher(id, topic.hash(), meta, reader_table, deferred)?;
        let core = core.clone();
        let publisher = Publisher {
            writer,
            id,
            topic,
            message_type: ty,
            fixed_len,
            encoded: Vec::new(),
            was_large: false,
            state: matches,
            core,
            _type: PhantomData,
        };
        publisher.core.state.refresh();
        Ok(publisher)
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        self.topic.as_str()
    }

    /// The publisher's id, which each of its messages carries.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Messages sent so far.
    pub fn sent(&self) -> u64 {
        self.writer.seq()
    }

    /// Closes it: waits for at most `timeout` until its reliable subscribers have read its large messages.
    ///
    /// # Errors
    /// `Timeout` if some are unread: they are lost, and counted by their subscribers. `Interrupted` by an
    /// [`crate::Interrupter`]: its node keeps them, as for a dropped publisher.
    pub fn close(mut self, timeout: Duration) -> Result<()> {
        self.core.state.check_fork()?;
        let until = Instant::now().checked_add(timeout);
        let read = self.writer.wait_until_read(until)?;
        self.writer.free_unread();
        if read {
            return Ok(());
        }
        let what = format!("the subscribers of {} to read its large messages", self.topic);
        Err(Error::timeout(self.topic.shared().clone(), what, timeout))
    }

    /// Bytes of shared memory that the publisher takes now.
    pub fn memory_bytes(&self) -> u64 {
        self.writer.memory_bytes()
    }

    /// Sends one message. On `Err` it was not sent, and earlier messages are not lost.
    ///
    /// # Errors
    /// `Full` if a reliable subscriber is full and the chosen [`rnet_core::OnFull`] did not help;
    /// `OutOfMemory` and `MessageTooLarge` for large messages; `BadValue` for a message of another type.
    #[inline]
    pub fn send(&mut self, message: &T) -> Result<()> {
        let Some(bytes) = message.as_bytes() else { return self.send_encoded(message) };
        self.check_len(bytes.len())?;
        self.writer.send(bytes)
    }

    /// As [`Publisher::send`], with metadata. If the metadata has a known gap, each subscriber counts the gap
    /// as lost, by its cause, even if the message itself is overrun.
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// # let dir = std::env::temp_dir();
    /// # let domain = format!("meta{}", std::process::id());
    /// # let node = rnet::Node::builder("calls").dir(dir).domain(&domain).open()?;
    /// use rnet::Meta;
    /// let mut replies = node.publisher::<[u8]>("/replies").open()?;
    /// let mut subscriber = node.subscriber::<[u8]>("/replies").open()?;
    /// replies.wait_for_subscribers(1)?;
    /// replies.send_with(b"done", Meta::default().with_correlation(42))?;
    /// let reply = subscriber.recv()?;
    /// assert_eq!((&*reply, reply.correlation()), (&b"done"[..], Some(42)));
    /// # drop(reply);
    /// # drop((replies, subscriber));
    /// # let path = node.domain_path().to_owned();
    /// # drop(node);
    /// # std::fs::remove_dir_all(path).unwrap();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Publisher::send`]; on an error a gap is not counted.
    pub fn send_with(&mut self, message: &T, meta: Meta) -> Result<()> {
        if let Some(bytes) = message.as_bytes() {
            self.check_len(bytes.len())?;
            return self.writer.send_with(bytes, &meta, None);
        }
        self.check(message)?;
        if let Some(len) = self.large_len(message) {
            return self.encode_in_place(message, len)?.send_with(meta).map_err(|(_, error)| error);
        }
        message.encode(&mut self.encoded);
        let sent = self.writer.send_with(&self.encoded, &meta, None);
        self.clear_encoded();
        sent
    }

    /// Makes each subscriber count `size` messages as lost for this cause, before the next message. For
    /// messages that the publisher knows to be missing, such as messages lost by a link. Sends no message;
    /// waiting subscribers wake up to count.
    ///
    /// # Errors
    /// `Closed` in a forked child, `Io` if the publisher's file was truncated; the gap is not counted then.
    pub fn publish_gap(&mut self, cause: LossCause, size: u64) -> Result<()> {
        self.writer.publish_gap(KnownGap { cause, size }, None)
    }

    fn send_encoded(&mut self, message: &T) -> Result<()> {
        self.check(message)?;
        if let Some(len) = self.large_len(message) {
            return self.encode_in_place(message, len)?.send().map_err(|(_, error)| error);
        }
        message.encode(&mut self.encoded);
        let sent = self.writer.send(&self.encoded);
        self.clear_encoded();
        sent
    }

    fn check(&self, message: &T) -> Result<()> {
        message
            .check(&self.message_type)
            .map_err(|why| Error::bad_value(format!("message on {}", self.topic), why))
    }

    /// The length of a message if it is better encoded in the memory that its readers read. The length
    /// requires a pass over the whole message, so it is computed only after another such message.
    fn large_len(&mut self, message: &T) -> Option<usize> {
        let len = self.was_large.then(|| message.encoded_len())?;
        self.was_large = len > MAX_REUSED_LEN_BYTES;
        self.was_large.then_some(len)
    }

    fn encode_in_place(&mut self, message: &T, len: usize) -> Result<Loan<'_>> {
        let mut loan = self.loan_bytes(len)?;
        let mut left: &mut [u8] = &mut loan;
        message.encode(&mut left);
        let left = left.len();
        loan.truncate(len - left);
        Ok(loan)
    }

    fn clear_encoded(&mut self) {
        if self.encoded.len() > MAX_REUSED_LEN_BYTES {
            self.was_large = true;
            self.encoded = Vec::new();
        }
        self.encoded.clear();
    }

    /// Sends one message if that needs neither a wait nor memory beyond the log. Otherwise it sends nothing
    /// and returns `false`; use [`Publisher::send`] then.
    ///
    /// For callers that must release something before they wait.
    ///
    /// # Errors
    /// `BadValue` if the message has another length or another type.
    #[inline]
    pub fn try_send(&mut self, message: &T) -> Result<bool> {
        let Some(bytes) = message.as_bytes() else {
            self.check(message)?;
            if self.large_len(message).is_some() {
                return Ok(false);
            }
            message.encode(&mut self.encoded);
            let sent = self.writer.try_send(&self.encoded);
            self.clear_encoded();
            return Ok(sent);
        };
        self.check_len(bytes.len())?;
        Ok(self.writer.try_send(bytes))
    }

    #[inline]
    pub(crate) fn check_len(&self, len: usize) -> Result<()> {
        match self.fixed_len {
            Some(fixed) if fixed != len => Err(wrong_len(self.topic.as_str(), len, fixed)),
            _ => Ok(()),
        }
    }

    /// How many subscribers are served now.
    pub fn subscriber_count(&self) -> usize {
        if self.writer.fork_guard().is_from_parent() {
            return 0;
        }
        self.state.count(self.writer.reader_table())
    }

    /// The subscribers that are served now.
    pub fn subscribers(&self) -> Vec<PeerInfo> {
        if self.writer.fork_guard().is_from_parent() {
            return Vec::new();
        }
        let readers = self.writer.reader_table().readers();
        readers.into_iter().map(|(id, node)| PeerInfo { id, node }).collect()
    }

    /// Errors of incompatible subscribers (types or quality of service), oldest first.
    pub fn incompatible(&self) -> Vec<Error> {
        if self.writer.fork_guard().is_from_parent() {
            return Vec::new();
        }
        self.state.lock().incompatible.clone()
    }

    /// Waits until at least `n` subscribers are matched: messages sent after that reach them.
    ///
    /// # Errors
    /// `IncompatibleType`, `IncompatibleQos` or `LimitReached`, once for each subscriber that cannot be
    /// matched; `LimitReached`, once, while nodes cannot be inspected, for example without free file
    /// descriptors.
    pub fn wait_for_subscribers(&self, n: usize) -> Result<()> {
        self.wait_until_matched(n, None)
    }

    /// As [`Publisher::wait_for_subscribers`], for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`; as [`Publisher::wait_for_subscribers`].
    pub fn wait_for_subscribers_timeout(&self, n: usize, timeout: Duration) -> Result<()> {
        self.wait_until_matched(n, Some(timeout))
    }

    fn wait_until_matched(&self, n: usize, timeout: Option<Duration>) -> Result<()> {
        self.core.state.check_fork()?;
        let state = &self.state;
        let waited = state.changed.wait_until(deadline(timeout), || {
            if state.count(self.writer.reader_table()) >= n {
                return Some(Ok(()));
            }
            let mut matches = state.lock();
            // Each error once: the next call may find it resolved.
            let error = matches.incompatible.get(matches.reported).cloned();
            matches.reported += usize::from(error.is_some());
            drop(matches);
            error.or_else(|| state.shortage.take()).map(Err)
        });
        waited.unwrap_or_else(|| {
            let what = format!("{n} subscribers of {}", self.topic);
            Err(Error::timeout(self.topic.shared().clone(), what, timeout.unwrap_or_default()))
        })
    }

    /// A handle that waits for match changes without borrowing the publisher.
    pub fn match_changes(&self) -> MatchChanges {
        self.state.changed.clone()
    }

    /// Calls `callback` for each match change, on the node's bulk dispatch thread.
    pub fn on_match(&self, callback: impl FnMut(&MatchEvent) + Send + 'static) -> CallbackGuard {
        self.state.match_callbacks.add(&self.core.state, Box::new(callback))
    }
}

/// Deadline and liveliness.
impl<T: Message + ?Sized> Publisher<T> {
    /// Shows that the publisher is alive without sending, if its liveliness is manual by topic. Each message
    /// shows it, too.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn assert_alive(&self) -> Result<()> {
        self.core.state.check_fork()?;
        self.writer.reader_table().assert_alive();
        Ok(())
    }

    /// Number of deadline periods so far without a message; 0 without a deadline.
    pub fn deadline_missed(&self) -> u64 {
        self.writer.reader_table().deadline_missed()
    }

    /// Calls `callback` when a deadline period passes without a message, on the node's bulk dispatch thread.
    /// The first period starts with the first message.
    pub fn on_deadline(
        &self,
        callback: impl FnMut(&DeadlineMissed) + Send + 'static,
    ) -> CallbackGuard {
        self.state.deadlines.add(&self.core.state, Box::new(callback))
    }
}

#[cold]
fn wrong_len(topic: &str, len: usize, fixed: usize) -> Error {
    Error::bad_value(
        format!("message on {topic}"),
        format!("it has {len} bytes, but its type has {fixed}"),
    )
}

impl<T: Message + ?Sized> Drop for Publisher<T> {
    fn drop(&mut self) {
        if self.writer.fork_guard().is_from_parent() {
            return;
        }
        self.writer.drop_will();
        self.core.state.matching().remove(self.id);
        self.core.state.refresh();
    }
}

crate::debug_by!(
    [T: Message + ?Sized] Publisher<T>, "Publisher", |this| "topic": this.topic, "id": this.id
);

const _: () = {
    const fn send<T: Send>() {}
    send::<Publisher<[u8]>>();
};
