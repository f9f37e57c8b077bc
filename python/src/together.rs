//! One wait for several receivers, each of them with its lock: of `Merge` and of `WaitSet`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::{Error, WaitSetHandle, Waitable};

use crate::fair::{Fair, Guard};
use crate::fork::{ForkGuard, Own};
use crate::reader::{Reader, Receiver, State};
use crate::receive::{BESIDE, SubscriberCore};
use crate::shared::NodeShared;
use crate::state::watch::WatchCore;
use crate::waiters::{self, Waiters};

/// How long who was asked to let go of the locks waits for its turn, before it asks: two that wait for the same
/// receivers would do nothing but ask each other.
const TURN: Duration = Duration::from_millis(10);

/// What is waited for.
pub(crate) enum One {
    Subscriber(Arc<SubscriberCore>),
    Watch(Arc<WatchCore>),
    Rate(rnet::Rate),
}

impl One {
    /// Locks are taken in the order of these, which is the same for everybody.
    pub(crate) fn address(&self) -> usize {
        match self {
            One::Subscriber(core) => Arc::as_ptr(core).addr(),
            One::Watch(core) => Arc::as_ptr(core).addr(),
            One::Rate(_) => 0,
        }
    }

    fn lock(&self, turn: Duration) -> rnet::Result<Locked<'_>> {
        Ok(match self {
            One::Subscriber(core) => Locked::Subscriber(core, core.lock_with_others(turn)?),
            One::Watch(core) => Locked::Watch(core, core.lock_with_others(turn)?),
            One::Rate(rate) => Locked::Rate(rate.clone()),
        })
    }

    fn waiters(&self) -> Option<&Waiters> {
        match self {
            One::Subscriber(core) => Some(&core.waiters),
            One::Watch(core) => Some(&core.waiters),
            One::Rate(_) => None,
        }
    }

    fn pass_on(&self) {
        match self {
            One::Subscriber(core) => waiters::pass_on(core),
            One::Watch(core) => waiters::pass_on(core),
            One::Rate(_) => {}
        }
    }
}

/// One whose lock is held.
pub(crate) enum Locked<'a> {
    Subscriber(&'a SubscriberCore, Guard<'a, Own<State<rnet::Subscriber<[u8]>>>>),
    Watch(&'a WatchCore, Guard<'a, Own<State<rnet::state::Watch>>>),
    Rate(rnet::Rate),
}

impl Locked<'_> {
    /// What rnet waits for. `None` where nothing will come: a message is held, or it was closed. One that is
    /// being closed ends the wait.
    fn awaited(&mut self) -> rnet::Result<Option<&mut dyn Waitable>> {
        match self {
            Locked::Rate(rate) => Ok(Some(rate)),
            Locked::Watch(core, state) => awaited_of(core, state),
            Locked::Subscriber(core, state) => awaited_of(core, state),
        }
    }

    /// Whether there may be something to take, or an error to hear.
    pub(crate) fn is_ready(&mut self) -> rnet::Result<bool> {
        Ok(self.awaited()?.is_none_or(|one| one.is_ready()))
    }

    fn is_wanted(&self) -> bool {
        match self {
            Locked::Subscriber(_, guard) => guard.is_wanted(),
            Locked::Watch(_, guard) => guard.is_wanted(),
            Locked::Rate(_) => false,
        }
    }
}

fn awaited_of<'a, R: Receiver>(
    core: &Reader<R>,
    state: &'a mut State<R>,
) -> rnet::Result<Option<&'a mut dyn Waitable>> {
    match core.inner(state) {
        Ok((inner, held)) => Ok(held.is_none().then_some(inner as _)),
        Err(Error::Closed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// See the module.
pub(crate) struct Together {
    /// Threads wait in turn.
    set: Fair<rnet::WaitSet>,
    fork_guard: ForkGuard,
}

impl Together {
    pub(crate) fn new(node: &NodeShared) -> rnet::Result<(Together, WaitSetHandle)> {
        let mut set = node.wait_set()?;
        set.set_interruptible(true);
        let handle = set.handle();
        Ok((Together { set: Fair::new(set), fork_guard: ForkGuard::here() }, handle))
    }

    pub(crate) fn is_parents(&self) -> bool {
        self.fork_guard.is_parents()
    }

    /// Its name, if it belongs to the process that this one was forked from.
    pub(crate) fn of_parent(&self, name: String) -> String {
        self.fork_guard.name(name)
    }

    /// Waits for a slice of time until `look` finds something; it is given the locked `ones`, which are in the
    /// order of their addresses. `gave_way`: the last slice ended because somebody asked for a lock.
    ///
    /// The others are heard by nobody while one of the locks is waited for, so a thread that waits with one of
    /// them is asked for it. Call it without the GIL.
    pub(crate) fn wait<R>(
        &self,
        ones: &[One],
        slice: Duration,
        gave_way: bool,
        look: impl FnMut(&mut [Locked<'_>]) -> rnet::Result<Option<R>>,
    ) -> rnet::Result<R> {
        let result = self.wait_with_locks(ones, slice, gave_way, look);
        ones.iter().for_each(One::pass_on);
        result
    }

    fn wait_with_locks<R>(
        &self,
        ones: &[One],
        slice: Duration,
        gave_way: bool,
        mut look: impl FnMut(&mut [Locked<'_>]) -> rnet::Result<Option<R>>,
    ) -> rnet::Result<R> {
        let what = "anything of what is waited for".to_owned();
        let timed_out = || Error::Timeout { topic: String::new(), what, after_ms: 0 };
        let began = Instant::now();
        let (mut set, _) = self.set.lock_to_wait(slice, timed_out.clone())?;
        let turn = if gave_way { TURN.min(slice) } else { Duration::ZERO };
        let locked: rnet::Result<Vec<_>> = ones.iter().map(|one| one.lock(turn)).collect();
        let mut locked = locked?;
        if let Some(found) = look(&mut locked)? {
            return Ok(found);
        }
        if locked.iter().any(Locked::is_wanted) {
            return Err(Error::Interrupted);
        }
        let awaited = locked.iter_mut().filter_map(|one| one.awaited().transpose());
        let mut awaited: Vec<&mut dyn Waitable> = awaited.collect::<rnet::Result<_>>()?;
        let mut left = slice.saturating_sub(began.elapsed());
        if ones.iter().filter_map(One::waiters).any(Waiters::any) {
            left = left.min(BESIDE);
        }
        set.wait(&mut awaited, Some(left))?;
        // Before the time is said to be over, too.
        look(&mut locked)?.ok_or_else(timed_out)
    }
}
