//! One wait for many topics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet_core::{Error, Result};
use rnet_shm::barrier::AskingBarrier;
use rnet_shm::bell::{Sleep, Waiter, Woken};
use rnet_shm::subscription::Slot;

use crate::options::deadline;
use crate::receiver::Receiver;
use crate::subscriber::Subscriber;
use crate::{Message, Node};

mod sealed {
    /// What a wait set needs of a subscriber; not nameable outside.
    pub struct Handle<'a>(pub(super) &'a mut super::Receiver);
    /// The same, to look at.
    pub struct Look<'a>(pub(super) &'a super::Receiver);

    pub trait Sealed {
        fn handle(&mut self) -> Handle<'_>;
        fn look(&self) -> Look<'_>;
    }
}

/// Subscribers of any type, for [`WaitSet::wait`].
pub trait Waitable: sealed::Sealed {}

impl<T: Message + ?Sized> sealed::Sealed for Subscriber<T> {
    fn handle(&mut self) -> sealed::Handle<'_> {
        sealed::Handle(self.receiver())
    }
    fn look(&self) -> sealed::Look<'_> {
        sealed::Look(self.as_receiver())
    }
}
impl<T: Message + ?Sized> Waitable for Subscriber<T> {}

/// Waits until any of several subscribers of a node has something.
///
/// ```no_run
/// # fn main() -> rnet::Result<()> {
/// let node = rnet::Node::new("both")?;
/// let mut imu = node.subscriber::<[u8]>("/imu")?;
/// let mut stop = node.subscriber::<[u8]>("/stop")?;
/// let mut set = rnet::WaitSet::new(&node);
/// loop {
///     set.wait(&mut [&mut imu, &mut stop], None)?;
///     while let Some(sample) = stop.try_recv()? { println!("stop! {} bytes", sample.len()); }
///     while let Some(sample) = imu.try_recv()? { println!("imu: {} bytes", sample.len()); }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct WaitSet {
    /// Name of its node.
    node: String,
    waiter: Waiter,
    places: Vec<Arc<Slot>>,
    interruptible: bool,
}

impl WaitSet {
    /// A wait set for subscribers of `node`.
    pub fn new(node: &Node) -> WaitSet {
        let own = &node.core().state.own;
        let (node, waiter) = (own.name().to_string(), Waiter::new(own.bells().clone()));
        WaitSet { node, waiter, places: Vec::new(), interruptible: false }
    }

    /// Lets a signal end a wait with `Interrupted`; otherwise waits go on after the handler.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.interruptible = yes;
    }

    #[cold]
    fn other_node(&self, receiver: &Receiver) -> Error {
        Error::BadValue {
            what: format!("wait for {} in a wait set", receiver.topic()),
            why: format!(
                "the subscriber is of node {} and the set of node {}: make one set for each node",
                receiver.node().own.name(),
                self.node
            ),
        }
    }

    /// Waits until one of them may have a message or an error (or a publisher has come); returns
    /// `false` when the time is over. `None` waits for as long as it takes.
    ///
    /// # Errors
    /// `Interrupted`; see [`WaitSet::set_interruptible`] and [`crate::Interrupter`]. `BadValue` for a
    /// subscriber of another node than the set's: its publishers wake only its own node's threads.
    pub fn wait(
        &mut self,
        subscribers: &mut [&mut dyn Waitable],
        timeout: Option<Duration>,
    ) -> Result<bool> {
        for subscriber in subscribers.iter_mut() {
            let receiver = subscriber.handle().0;
            receiver.check_birth()?;
            if !Arc::ptr_eq(receiver.bells(), self.waiter.bells()) {
                return Err(self.other_node(receiver));
            }
        }
        let until = deadline(timeout);
        for subscriber in subscribers.iter_mut() {
            let receiver = subscriber.handle().0;
            receiver.set_bell(self.waiter.bell());
        }
        let mut interrupted = false;
        loop {
            self.places.clear();
            for subscriber in subscribers.iter_mut() {
                let receiver = subscriber.handle().0;
                receiver.take_in();
                if receiver.is_ready() {
                    return Ok(true);
                }
                interrupted |= receiver.state.take_stop();
                receiver.add_places(&mut self.places);
            }
            if interrupted {
                return Err(Error::Interrupted);
            }
            let now = Instant::now();
            let left = match until {
                Some(until) if until <= now => return Ok(false),
                Some(until) => until - now,
                None => Duration::MAX,
            };
            let any = |is: fn(&Receiver) -> bool| subscribers.iter().any(|s| is(s.look().0));
            let woken = self.waiter.sleep(
                Sleep::Woken,
                self.places.iter().map(|slot| &slot.page().bind.asleep),
                &AskingBarrier(|| any(Receiver::needs_barrier)),
                left,
                || any(|receiver| receiver.is_ready() || receiver.state.must_stop()),
            );
            subscribers.iter().for_each(|s| s.look().0.note_if_late(woken, left));
            // Unless there is a message: looked for above.
            interrupted = self.interruptible && woken == Woken::Signal;
        }
    }
}
