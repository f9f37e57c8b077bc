//! A single wait for many topics, changes and ticks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::options::deadline;
use crate::wait_loop::WaitStrategy;
use crate::wait_source::WaitSource;
use rnet_core::{Result, Wait};
use rnet_shm::os::bell::Waiter;
use rnet_shm::os::cpu;

use super::wait_set_entry::{Members, WaitSetEntry, WaitSetHandle};
use super::waitable::Waitable;
use crate::NodeCore;

/// Waits until one of several subscribers, watches or rates of a node is ready: those passed to a wait, and
/// those attached.
///
/// ```no_run
/// # fn main() -> rnet::Result<()> {
/// let node = rnet::Node::new("both")?;
/// let mut imu = node.subscriber::<[u8]>("/imu").open()?;
/// let mut stop = node.subscriber::<[u8]>("/stop").open()?;
/// let mut set = rnet::WaitSet::new(&node);
/// loop {
///     set.wait(&mut [&mut imu, &mut stop])?;
///     while let Some(sample) = stop.try_recv()? { println!("stop! {} bytes", sample.len()); }
///     while let Some(sample) = imu.try_recv()? { println!("imu: {} bytes", sample.len()); }
/// }
/// # }
/// ```
///
/// Any thread can attach and detach entries at run time, also during a wait. [`WaitSet::ready`] returns the
/// ready entries:
///
/// ```no_run
/// # fn main() -> rnet::Result<()> {
/// # use std::time::Duration;
/// # let node = rnet::Node::new("both")?;
/// let mut set = rnet::WaitSet::new(&node);
/// let handle = set.handle(); // For other threads.
/// let mut imu = handle.attach(node.subscriber::<[u8]>("/imu").open()?)?;
/// let mut params = handle.attach(node.state()?.watch("/params")?)?;
/// let mut tick = handle.attach(node.rate(100.0)?)?;
/// while set.wait_timeout(&mut [], Duration::from_secs(1))? {
///     if set.ready().contains(&tick.id()) && tick.try_tick()?.is_some() { println!("tick"); }
///     while let Some(change) = params.try_recv()? { println!("{}", change.key); }
///     while let Some(sample) = imu.try_recv()? { println!("imu: {} bytes", sample.len()); }
/// }
/// let imu = imu.detach()?;
/// # drop(imu); Ok(()) }
/// ```
#[derive(Debug)]
pub struct WaitSet {
    pub(crate) waiter: Waiter,
    pub(crate) wait_strategy: WaitStrategy,
    pub(crate) members: Arc<Members>,
    pub(crate) ready: Vec<u64>,
    pub(crate) interruptible: bool,
    pub(crate) wait: Wait,
}

impl WaitSet {
    /// A wait set for objects of `node`.
    pub fn new(node: &impl AsRef<NodeCore>) -> WaitSet {
        WaitSet::of(node.as_ref())
    }

    pub(crate) fn of(node: &NodeCore) -> WaitSet {
        let node = &node.state;
        let waiter = Waiter::new(node.own.bells().clone());
        let members = Arc::new(Members::new(node, waiter.bell()));
        let (wait_strategy, ready) = (WaitStrategy::of(waiter.bells()), Vec::new());
        WaitSet { waiter, wait_strategy, members, ready, interruptible: false, wait: Wait::Block }
    }

    /// A handle to attach entries and to interrupt waits from any thread, also during a wait.
    pub fn handle(&self) -> WaitSetHandle {
        WaitSetHandle { members: self.members.clone() }
    }

    /// As [`WaitSetHandle::attach`].
    ///
    /// # Errors
    /// As [`WaitSetHandle::attach`].
    pub fn attach<W: Waitable + Send + 'static>(&self, one: W) -> Result<WaitSetEntry<W>> {
        self.handle().attach(one)
    }

    /// Lets a signal interrupt a wait with `Interrupted`; otherwise waits continue after the handler.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.interruptible = yes;
    }

    /// The attached entries that were ready when the last wait returned: the [`WaitSetEntry::id`] of each. A
    /// busy entry does not hide the others.
    pub fn ready(&self) -> &[u64] {
        &self.ready
    }

    /// Waits until one of the given or attached entries may have a message, a change, a tick or an error.
    /// If an entry was not read, the next wait returns at once.
    ///
    /// # Errors
    /// `Interrupted`; see [`WaitSet::set_interruptible`], [`WaitSetHandle::interrupt`] and
    /// [`crate::Interrupter`]. `BadValue` for an entry of another node than the set: its publishers wake only
    /// the threads of its own node.
    pub fn wait(&mut self, named: &mut [&mut dyn Waitable]) -> Result<()> {
        self.wait_until(named, None).map(drop)
    }

    pub(crate) fn wait_until(
        &mut self,
        named: &mut [&mut dyn Waitable],
        until: Option<Instant>,
    ) -> Result<bool> {
        self.members.check_fork()?;
        named.iter_mut().try_for_each(|one| self.members.bind_bell(*one))?;
        if self.wait == Wait::Adaptive {
            // As for a subscriber that waits by itself.
            self.wait_strategy.keep_short_slice(cpu::SliceLen::Bulk);
        }
        loop {
            let mut any = false;
            for one in named.iter_mut() {
                any |= one.is_ready();
            }
            self.ready.clear();
            self.members.for_each(&mut |id, one| {
                self.ready.extend(one.is_ready().then_some(id));
            });
            if any || !self.ready.is_empty() {
                self.wait_strategy.end_first_spin();
                return Ok(true);
            }
            let (named, members) = (&*named, &*self.members);
            let each = |visit: &mut dyn FnMut(&dyn WaitSource)| {
                visit(members);
                named.iter().for_each(|one| visit(one.wait_source()));
                members.for_each(&mut |_, one| visit(one.wait_source()));
            };
            let WaitSet { waiter, wait_strategy, interruptible, wait, .. } = self;
            if !wait_strategy.wait_until(waiter, *wait, until, *interruptible, each)? {
                return Ok(false);
            }
        }
    }

    /// As [`WaitSet::wait`], for at most `timeout`; returns whether an entry may have something.
    ///
    /// # Errors
    /// As [`WaitSet::wait`].
    pub fn wait_timeout(
        &mut self,
        named: &mut [&mut dyn Waitable],
        timeout: Duration,
    ) -> Result<bool> {
        self.wait_until(named, deadline(Some(timeout)))
    }
}
