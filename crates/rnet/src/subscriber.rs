//! Receiving.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use rnet_core::{Error, LossCounts, Result};

use crate::core::NodeCore;
use crate::match_event::{MatchCallback, MatchEvent, PeerInfo};
use crate::options::{SubscriberOptions, deadline};
use crate::past::PublisherStats;
use crate::receiver::Receiver;
use crate::{Message, OwnedSample, Sample};
use rnet_shm::shortage::is_passing;

/// Receives messages of type `T` from all publishers of one topic.
///
/// Messages of one publisher come in the order in which they were sent; those of several are
/// merged in turn. What was lost is counted by publisher and cause, see [`Subscriber::stats`].
pub struct Subscriber<T: Message + ?Sized> {
    // Before the core: its drop takes the endpoint back while the node is still there.
    receiver: Receiver,
    core: Arc<NodeCore>,
    _type: PhantomData<fn() -> Box<T>>,
}

impl<T: Message + ?Sized> Subscriber<T> {
    pub(crate) fn open(
        core: &Arc<NodeCore>,
        topic: &str,
        options: SubscriberOptions,
    ) -> Result<Subscriber<T>> {
        let own_type = (T::type_desc(), T::fixed_len());
        let receiver = Receiver::open(core, topic, options, own_type)?;
        Ok(Subscriber { receiver, core: core.clone(), _type: PhantomData })
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        self.receiver.topic.as_str()
    }

    /// The next message, if one is there.
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<Sample<'_, T>>> {
        match self.receiver.advance()? {
            Some(at) => Ok(Some(Sample::new(self.receiver.channels[at].current()))),
            None => Ok(None),
        }
    }

    /// The next message; `None` waits for as long as it takes.
    ///
    /// # Errors
    /// `Timeout`. Others tell, once each, what happened on one channel while the rest goes on:
    /// `PeerLost`, `Detached`, `TypeMismatch`, `IncompatibleQos`, `Corrupt`, `TooManyPins`.
    #[inline]
    pub fn recv(&mut self, timeout: Option<Duration>) -> Result<Sample<'_, T>> {
        match self.receiver.advance()? {
            Some(at) => Ok(Sample::new(self.receiver.channels[at].current())),
            None => self.recv_slow(timeout),
        }
    }

    fn recv_slow(&mut self, timeout: Option<Duration>) -> Result<Sample<'_, T>> {
        match self.receiver.receive(deadline(timeout))? {
            Some(at) => Ok(Sample::new(self.receiver.channels[at].current())),
            None => Err(self.timed_out("a message", timeout)),
        }
    }

    pub(crate) fn timed_out(&self, what: &str, timeout: Option<Duration>) -> Error {
        Error::Timeout {
            what: format!("{what} on {}", self.receiver.topic),
            after_ms: timeout.map_or(0, rnet_core::time::ms_ceil),
        }
    }

    /// The newest message that has not been received yet, older ones passed over; with a
    /// time-out, waits for one if there is none.
    ///
    /// With several publishers it is the newest of them all. What is passed over is counted as
    /// skipped, not as lost.
    pub fn latest(&mut self, timeout: Option<Duration>) -> Result<OwnedSample<T>> {
        let until = deadline(timeout);
        loop {
            if let Some(sample) = self.newest()? {
                return Ok(sample);
            }
            if !self.receiver.wait(until)? {
                return Err(self.timed_out("a message", timeout));
            }
        }
    }

    /// One look at every publisher.
    fn newest(&mut self) -> Result<Option<OwnedSample<T>>> {
        self.receiver.check_birth()?;
        self.receiver.take_in();
        let mut newest: Option<OwnedSample<T>> = None;
        let mut at = 0;
        while at < self.receiver.channels.len() {
            let channel = &mut self.receiver.channels[at];
            match channel.skip_to_newest().and_then(|()| channel.take()) {
                Ok(true) => {
                    if let Some(fixed) = self.receiver.fixed_len
                        && let Err(error) = self.receiver.check_len(at, fixed)
                    {
                        // Closed, and another channel stands in its place.
                        self.receiver.note(error);
                        continue;
                    }
                    let sample = self.receiver.sample::<T>(at).to_owned_sample();
                    if newest.as_ref().is_none_or(|n| n.sent_ns() <= sample.sent_ns()) {
                        newest = Some(sample);
                    }
                }
                Ok(false) => {}
                Err(trouble) => {
                    // Told below; what another channel has already given must not be lost for it.
                    let count = self.receiver.channels.len();
                    let error = self.receiver.fail(at, trouble);
                    self.receiver.note(error);
                    if self.receiver.channels.len() < count {
                        continue;
                    }
                }
            }
            at += 1;
        }
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

    /// Receives for ever: `for sample in subscriber.iter()`.
    ///
    /// What happens to single publishers, lost, detached or incompatible ones, shows in
    /// [`Subscriber::stats`] and ends nothing; the iterator ends when a wait is interrupted (see
    /// [`Subscriber::set_interruptible`]). While the user keeps as many samples as may be kept, it
    /// waits for one to be dropped.
    pub fn iter(&mut self) -> impl Iterator<Item = OwnedSample<T>> + '_ {
        std::iter::from_fn(move || {
            loop {
                let error = match self.recv(None) {
                    Ok(sample) => return Some(sample.to_owned_sample()),
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
        })
    }

    /// Waits until at least `n` publishers serve this subscriber: whatever they send from then
    /// on is received or counted.
    ///
    /// # Errors
    /// `Timeout`; `TypeMismatch` or `IncompatibleQos` if a publisher came that does not fit;
    /// `LimitReached` or `OutOfMemory`, once, if one came that cannot be followed for now.
    pub fn wait_for_publishers(&mut self, n: usize, timeout: Option<Duration>) -> Result<()> {
        self.receiver.check_birth()?;
        let until = deadline(timeout);
        loop {
            self.receiver.take_in();
            for at in 0..self.receiver.channels.len() {
                if let Err(trouble) = self.receiver.channels[at].begin() {
                    return Err(self.receiver.fail(at, trouble));
                }
            }
            if self.receiver.admitted() >= n {
                return Ok(());
            }
            let bad = self.receiver.errors.iter().position(|e| {
                matches!(e, Error::TypeMismatch { .. } | Error::IncompatibleQos { .. })
                    || is_passing(e)
            });
            if let Some(error) = bad.and_then(|at| self.receiver.errors.remove(at)) {
                return Err(error);
            }
            if !self.receiver.wait_for_match(until)? {
                return Err(self.timed_out(&format!("{n} publishers"), timeout));
            }
        }
    }

    /// How many publishers serve this subscriber now.
    pub fn publisher_count(&mut self) -> usize {
        if self.receiver.is_parents() {
            return 0;
        }
        self.receiver.take_in();
        let mut at = 0;
        while let Some(channel) = self.receiver.channels.get_mut(at) {
            let begun = channel.begin();
            let before = self.receiver.channels.len();
            if let Err(trouble) = begun {
                let error = self.receiver.fail(at, trouble);
                self.receiver.note(error);
            }
            // Another stands here now if this one had to be closed.
            at += usize::from(self.receiver.channels.len() == before);
        }
        self.receiver.admitted()
    }

    /// What was received and lost, by publisher; those that are gone included.
    pub fn stats(&self) -> Vec<PublisherStats> {
        self.receiver.stats()
    }

    /// All losses so far, by cause.
    pub fn lost(&self) -> LossCounts {
        let mut sum = LossCounts::default();
        for stats in self.receiver.stats() {
            sum.add(&stats.lost);
        }
        sum
    }

    /// Lets a signal end a wait with `Interrupted`; otherwise waits go on after the handler.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.receiver.interruptible = yes;
    }

    /// Calls `callback` for each change of who is matched, on the node's bulk dispatch thread.
    pub fn on_match(&self, callback: impl FnMut(&MatchEvent) + Send + 'static) {
        if self.receiver.is_parents() {
            return;
        }
        let callback: MatchCallback = Box::new(callback);
        self.receiver.state.hooks.add(callback);
    }

    /// The publishers that are matched now.
    pub fn publishers(&self) -> Vec<PeerInfo> {
        let channels = self.receiver.channels.iter().filter(|c| c.is_admitted());
        channels.map(|c| PeerInfo { id: c.publisher(), node: c.node().to_owned() }).collect()
    }

    pub(crate) fn receiver(&mut self) -> &mut Receiver {
        &mut self.receiver
    }

    pub(crate) fn from_parts(receiver: Receiver, core: Arc<NodeCore>) -> Subscriber<T> {
        Subscriber { receiver, core, _type: PhantomData }
    }

    pub(crate) fn into_parts(self) -> (Receiver, Arc<NodeCore>) {
        (self.receiver, self.core)
    }
}

impl<T: Message + ?Sized> std::fmt::Debug for Subscriber<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscriber").field("topic", &self.receiver.topic).finish()
    }
}
