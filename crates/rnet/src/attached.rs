//! Subscribers that a [`crate::WaitSet`] keeps: attached and detached at run time, by any thread, also while
//! another one waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rnet_core::{Error, Result};
use rnet_shm::bell::Bells;

use rnet_node::NodeCore;
use rnet_node::receiver::Receiver;

use crate::subscriber::Decode;
use crate::subscriber::Subscriber;
use crate::{Message, OwnedSample, PublisherStats, Sample};

/// A receiver that its user and the thread that waits take in turn, neither for long.
type Member = Arc<Mutex<Receiver>>;

/// What a wait set waits for beside the subscribers that each wait names.
pub(crate) struct Members {
    bells: Arc<Bells>,
    bell: u64,
    list: Mutex<Vec<Member>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Members {
    pub(crate) fn new(bells: Arc<Bells>, bell: u64) -> Members {
        Members { bells, bell, list: Mutex::default() }
    }

    pub(crate) fn for_each(&self, act: &mut dyn FnMut(&mut Receiver)) {
        lock(&self.list).iter().for_each(|member| act(&mut lock(member)));
    }

    fn add(&self, member: Member) {
        lock(&self.list).push(member);
        // Who waits looks at it, and shows its tickets in its pages.
        self.bells.ring(self.bell);
    }

    fn remove(&self, member: &Member) {
        lock(&self.list).retain(|other| !Arc::ptr_eq(other, member));
        self.bells.ring(self.bell);
    }
}

impl std::fmt::Debug for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Members").field("bell", &self.bell).finish_non_exhaustive()
    }
}

/// Attaches subscribers to a [`crate::WaitSet`] from any thread; made by [`crate::WaitSet::handle`].
#[derive(Clone, Debug)]
pub struct WaitSetHandle {
    pub(crate) members: Arc<Members>,
}

impl WaitSetHandle {
    /// Has the set wait for this subscriber, from now on and until what it returns is dropped or detached. A
    /// wait that goes on includes it.
    ///
    /// # Errors
    /// `BadValue` if it is of another node than the set; `Closed` in a forked child. The subscriber ends then.
    pub fn attach<T: Message + ?Sized>(
        &self,
        mut subscriber: Subscriber<T>,
    ) -> Result<Attached<T>> {
        let receiver = subscriber.receiver();
        receiver.check_fork()?;
        if !Arc::ptr_eq(receiver.bells(), &self.members.bells) {
            return Err(Error::BadValue {
                what: format!("attach {} to a wait set", subscriber.topic()),
                why: "the set is of another node: make one set for each node".to_owned(),
            });
        }
        receiver.set_bell(self.members.bell);
        let (receiver, core, held) = subscriber.into_parts();
        let member = Arc::new(Mutex::new(receiver));
        self.members.add(member.clone());
        Ok(Attached { inner: Some(Inner { member, held }), members: self.members.clone(), core })
    }
}

struct Inner<T: Message + ?Sized> {
    member: Member,
    held: T::Held,
}

/// A subscriber that a [`crate::WaitSet`] waits for; made by [`WaitSetHandle::attach`]. Ends when it is
/// dropped.
pub struct Attached<T: Message + ?Sized> {
    /// `None` once it was detached.
    inner: Option<Inner<T>>,
    members: Arc<Members>,
    core: Arc<NodeCore>,
}

impl<T: Message + ?Sized> Attached<T> {
    fn inner(&mut self) -> Result<&mut Inner<T>> {
        // Asked before the lock is taken, which a thread that is not here may hold.
        self.core.state.check_fork()?;
        self.inner
            .as_mut()
            .ok_or_else(|| Error::Closed { what: "a detached subscriber".to_owned() })
    }

    /// The next message, if one is there.
    ///
    /// # Errors
    /// As [`Subscriber::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<OwnedSample<T>>> {
        let Inner { member, held } = self.inner()?;
        let mut receiver = lock(member);
        match receiver.advance()? {
            Some(at) => receiver.sample::<T>(at, held).map(Sample::to_owned_sample).map(Some),
            None => Ok(None),
        }
    }

    /// How many publishers serve it now.
    pub fn publisher_count(&mut self) -> usize {
        self.inner().map_or(0, |inner| lock(&inner.member).count_publishers())
    }

    /// What was received and lost, by publisher; those that are gone included.
    pub fn stats(&mut self) -> Vec<PublisherStats> {
        self.inner().map_or_else(|_| Vec::new(), |inner| lock(&inner.member).stats())
    }

    /// The subscriber again; the set no longer waits for it, not even in a wait that goes on.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn detach(mut self) -> Result<Subscriber<T>> {
        self.inner()?;
        let closed = || Error::Closed { what: "a detached subscriber".to_owned() };
        let Inner { member, held } = self.inner.take().ok_or_else(closed)?;
        self.members.remove(&member);
        // The list was the only other holder.
        let receiver = Arc::into_inner(member).ok_or_else(closed)?;
        let receiver = receiver.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Subscriber::from_parts(receiver, self.core.clone(), held))
    }
}

impl<T: Message + ?Sized> Drop for Attached<T> {
    fn drop(&mut self) {
        if let Some(inner) = &self.inner
            && !self.core.state.fork_guard().is_parents()
        {
            self.members.remove(&inner.member);
        }
    }
}

impl<T: Message + ?Sized> std::fmt::Debug for Attached<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").finish_non_exhaustive()
    }
}
