//! One wait for many topics.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet_core::{Error, Result};
use rnet_node::options::deadline;
use rnet_node::receiver::Receiver;
use rnet_shm::barrier::AskingBarrier;
use rnet_shm::bell::{Sleep, Waiter, Woken};
use rnet_shm::fork::ForkGuard;
use rnet_shm::subscription::Slot;

use crate::attached::{Attached, Members, WaitSetHandle};
use crate::subscriber::Subscriber;
use crate::{Message, Node};

mod sealed {
    /// What a wait set needs of a subscriber; not nameable outside.
    pub struct Handle<'a>(pub(super) &'a mut super::Receiver);

    pub trait Sealed {
        fn handle(&mut self) -> Handle<'_>;
    }
}

/// Subscribers of any type, for [`WaitSet::wait`].
pub trait Waitable: sealed::Sealed {}

impl<T: Message + ?Sized> sealed::Sealed for Subscriber<T> {
    fn handle(&mut self) -> sealed::Handle<'_> {
        sealed::Handle(self.receiver())
    }
}
impl<T: Message + ?Sized> Waitable for Subscriber<T> {}

/// Waits until any of several subscribers of a node has something: those that a wait names, and those that
/// are attached.
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
///
/// Attached subscribers come and go at run time, by any thread, also while one waits:
///
/// ```no_run
/// # fn main() -> rnet::Result<()> {
/// # let node = rnet::Node::new("both")?;
/// let mut set = rnet::WaitSet::new(&node);
/// let handle = set.handle(); // For other threads.
/// let mut imu = handle.attach(node.subscriber::<[u8]>("/imu")?)?;
/// set.wait(&mut [], None)?;
/// while let Some(sample) = imu.try_recv()? { println!("imu: {} bytes", sample.len()); }
/// let imu = imu.detach()?;
/// # drop(imu); Ok(()) }
/// ```
#[derive(Debug)]
pub struct WaitSet {
    /// Name of its node.
    node: String,
    waiter: Waiter,
    fork_guard: ForkGuard,
    members: Arc<Members>,
    places: Vec<Arc<Slot>>,
    interruptible: bool,
}

impl WaitSet {
    /// A wait set for subscribers of `node`.
    pub fn new(node: &Node) -> WaitSet {
        let own = &node.core().state.own;
        let (node, waiter) = (own.name().to_string(), Waiter::new(own.bells().clone()));
        let members = Arc::new(Members::new(own.bells().clone(), waiter.bell()));
        let fork_guard = own.fork_guard();
        WaitSet { node, waiter, fork_guard, members, places: Vec::new(), interruptible: false }
    }

    /// Attaches subscribers to this set from any thread, also while one waits.
    pub fn handle(&self) -> WaitSetHandle {
        WaitSetHandle { members: self.members.clone() }
    }

    /// As [`WaitSetHandle::attach`].
    ///
    /// # Errors
    /// As there.
    pub fn attach<T: Message + ?Sized>(&self, subscriber: Subscriber<T>) -> Result<Attached<T>> {
        self.handle().attach(subscriber)
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

    /// Waits until one of these subscribers, or of the attached ones, may have a message or an error (or a
    /// publisher has come); returns `false` when the time is over. `None` waits for as long as it takes.
    ///
    /// # Errors
    /// `Interrupted`; see [`WaitSet::set_interruptible`] and [`crate::Interrupter`]. `BadValue` for a
    /// subscriber of another node than the set's: its publishers wake only its own node's threads.
    pub fn wait(
        &mut self,
        subscribers: &mut [&mut dyn Waitable],
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.fork_guard.check(|| format!("a wait set of node {}", self.node))?;
        for subscriber in subscribers.iter_mut() {
            let receiver = subscriber.handle().0;
            receiver.check_fork()?;
            if !Arc::ptr_eq(receiver.bells(), self.waiter.bells()) {
                return Err(self.other_node(receiver));
            }
        }
        let until = deadline(timeout);
        for subscriber in subscribers.iter_mut() {
            let receiver = subscriber.handle().0;
            receiver.set_bell(self.waiter.bell());
        }
        let (members, named) = (self.members.clone(), RefCell::new(subscribers));
        let each = |act: &mut dyn FnMut(&mut Receiver)| {
            named.borrow_mut().iter_mut().for_each(|subscriber| act(subscriber.handle().0));
            members.for_each(act);
        };
        let any = |is: fn(&Receiver) -> bool| {
            let mut found = false;
            each(&mut |receiver| found = found || is(receiver));
            found
        };
        let mut interrupted = false;
        loop {
            // Read first: who attaches or detaches while the places are named ends the sleep.
            let before = self.waiter.read();
            self.places.clear();
            let mut ready = false;
            each(&mut |receiver| {
                receiver.take_in();
                ready = ready || receiver.is_ready();
                if !ready {
                    interrupted |= receiver.state.take_stop();
                    receiver.add_places(&mut self.places);
                }
            });
            if ready {
                return Ok(true);
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
            let woken = self.waiter.sleep_since(
                Sleep::Woken,
                before,
                self.places.iter().map(|slot| &slot.page().bind.asleep),
                &AskingBarrier(|| any(Receiver::needs_barrier)),
                left,
                || any(|receiver| receiver.is_ready() || receiver.state.must_stop()),
            );
            each(&mut |receiver| receiver.note_if_late(woken, left));
            // Unless there is a message: looked for above.
            interrupted = self.interruptible && woken == Woken::Signal;
        }
    }
}
