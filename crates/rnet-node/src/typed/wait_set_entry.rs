//! What a [`crate::WaitSet`] keeps: attached and detached at run time, by any thread, also while another one
//! waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::NodeState;
use crate::interrupt::WaitControl;
use crate::sync::lock;
use crate::wait_source::WaitSource;
use rnet_core::{Error, Result};
use rnet_shm::os::bell::WakeReason;
use rnet_shm::os::fork::ForkGuard;

use super::rate::Rate;
use super::subscriber::Subscriber;
use super::waitable::{TryReceive, Waitable};
use crate::{Message, PublisherStats, Tick};

/// Its user and the thread that waits take it in turn, neither for long.
type SharedMember<W> = Arc<Mutex<W>>;

/// What a wait set waits for beside what each wait names.
pub(crate) struct Members {
    node: String,
    waiting: WaitControl,
    fork_guard: ForkGuard,
    next_id: AtomicU64,
    list: Mutex<Vec<(u64, SharedMember<dyn Waitable + Send>)>>,
}

impl Members {
    pub(crate) fn new(node: &NodeState, bell: u64) -> Members {
        Members {
            node: node.own.name().to_string(),
            waiting: WaitControl::new(node.own.bells().clone(), bell, node.own.fork_guard()),
            fork_guard: node.own.fork_guard(),
            next_id: AtomicU64::new(0),
            list: Mutex::default(),
        }
    }

    pub(crate) fn check_fork(&self) -> Result<()> {
        self.fork_guard.check(|| format!("a wait set of node {}", self.node))
    }

    /// Has it wake who waits with this set.
    pub(crate) fn bind_bell(&self, one: &mut dyn Waitable) -> Result<()> {
        if let Some(node) = one.node() {
            node.check_fork()?;
            if !Arc::ptr_eq(node.own.bells(), self.waiting.bells()) {
                let (theirs, ours) = (node.own.name(), &self.node);
                return Err(Error::bad_value(
                    format!("wait for {} in a wait set", one.name()),
                    format!(
                        "it belongs to node {theirs}, but the set to node {ours}: use one set per node"
                    ),
                ));
            }
        }
        one.set_bell(self.waiting.bells(), self.waiting.bell());
        Ok(())
    }

    pub(crate) fn for_each(&self, act: &mut dyn FnMut(u64, &mut dyn Waitable)) {
        lock(&self.list).iter().for_each(|(id, member)| act(*id, &mut *lock(member)));
    }
}

impl WaitSource for Members {
    fn is_ready(&self) -> bool {
        false
    }
    fn must_stop(&self) -> bool {
        self.waiting.must_stop()
    }
    fn take_stop(&self) -> bool {
        self.waiting.take_stop()
    }
}

crate::debug_by!([] Members, "Members", |this| "node": this.node);

/// Attaches to a [`crate::WaitSet`] from any thread; made by [`crate::WaitSet::handle`].
#[derive(Clone, Debug)]
pub struct WaitSetHandle {
    pub(crate) members: Arc<Members>,
}

impl WaitSetHandle {
    /// Adds a subscriber, watch or rate to the set, until the returned handle is dropped or detached. A wait in
    /// progress includes it.
    ///
    /// # Errors
    /// `BadValue` if it belongs to another node than the set; `Closed` in a forked child. It is dropped then.
    pub fn attach<W: Waitable + Send + 'static>(&self, mut one: W) -> Result<WaitSetEntry<W>> {
        let members = self.members.clone();
        members.check_fork()?;
        members.bind_bell(&mut one)?;
        let (id, member) =
            (members.next_id.fetch_add(1, Ordering::Relaxed), Arc::new(Mutex::new(one)));
        lock(&members.list).push((id, member.clone()));
        // Who waits looks at it, and is shown where it is waited for.
        members.waiting.ring();
        Ok(WaitSetEntry { id, member: Some(member), members })
    }

    /// Makes the wait in progress return `Interrupted`, or the next one if there is no wait. A wait that becomes ready
    /// at the same moment returns normally.
    pub fn interrupt(&self) {
        self.members.waiting.request_stop();
    }
}

/// An entry of a [`crate::WaitSet`], created by [`WaitSetHandle::attach`] and removed when dropped.
pub struct WaitSetEntry<W: Waitable> {
    id: u64,
    /// `None` once it was detached.
    member: Option<SharedMember<W>>,
    members: Arc<Members>,
}

impl<W: Waitable> WaitSetEntry<W> {
    /// Its id in [`crate::WaitSet::ready`], which no other of the set has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    fn get(&mut self) -> Result<MutexGuard<'_, W>> {
        // Asked before the lock is taken, which a thread that is not here may hold.
        self.members.check_fork()?;
        self.member.as_ref().map(|member| lock(member)).ok_or_else(closed)
    }

    /// Removes the entry from the set and returns it. A wait in progress no longer includes it.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn detach(mut self) -> Result<W> {
        self.members.check_fork()?;
        self.remove();
        // The list was the only other holder.
        let member = self.member.take().and_then(Arc::into_inner).ok_or_else(closed)?;
        Ok(member.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn remove(&self) {
        if let Some(member) = &self.member {
            lock(&self.members.list).retain(|(id, _)| *id != self.id);
            // The thread that sleeps will not find it any more.
            lock(member).wait_source().after_sleep(WakeReason::Ready, std::time::Duration::ZERO);
            self.members.waiting.ring();
        }
    }
}

fn closed() -> Error {
    Error::closed("an entry detached from a wait set")
}

impl<W: TryReceive> WaitSetEntry<W> {
    /// The next message of a subscriber or change of a watch, if one is there.
    ///
    /// # Errors
    /// As [`Subscriber::try_recv`] and `Watch::try_recv`.
    pub fn try_recv(&mut self) -> Result<Option<W::Item>> {
        self.get()?.try_receive()
    }
}

impl<T: Message + ?Sized> WaitSetEntry<Subscriber<T>> {
    /// How many publishers serve it now.
    pub fn publisher_count(&mut self) -> usize {
        self.get().map_or(0, |mut subscriber| subscriber.publisher_count())
    }

    /// Received and lost messages by publisher, including former publishers.
    pub fn stats(&mut self) -> Vec<PublisherStats> {
        self.get().map_or_else(|_| Vec::new(), |subscriber| subscriber.stats())
    }
}

impl WaitSetEntry<Rate> {
    /// The tick that is due, if one is.
    ///
    /// # Errors
    /// As [`Rate::try_tick`].
    pub fn try_tick(&mut self) -> Result<Option<Tick>> {
        self.get()?.try_tick()
    }
}

impl<W: Waitable> Drop for WaitSetEntry<W> {
    fn drop(&mut self) {
        if !self.members.fork_guard.is_from_parent() {
            self.remove();
        }
    }
}

crate::debug_by!([W: Waitable] WaitSetEntry<W>, "WaitSetEntry", |this| "id": this.id);
