//! What is closed with the object that it was made of: the endpoints of a node, the watches of its state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::fork::ForkGuard;
use crate::lock::lock;

/// Something that its owner closes.
pub(crate) trait Member: Send + Sync {
    /// Call it without the GIL.
    fn close(&self);

    /// Whether it has come to its end, so that its owner need not keep it alive any more.
    fn is_finished(&self) -> bool {
        false
    }
}

/// What a member is; in this order they are closed. Callbacks of a subscriber may still publish.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemberKind {
    WaitSet,
    /// Ahead of services: a handler that calls waits no longer.
    Client,
    Service,
    Subscriber,
    Publisher,
    Param,
    Timer,
    Handle,
    Watch,
    Transaction,
    State,
}

#[derive(Default)]
struct Lists {
    all: Vec<(MemberKind, Weak<dyn Member>)>,
    /// Those that run without an object of Python: they have a callback.
    retained: Vec<Arc<dyn Member>>,
    /// Whether the owner was closed: who comes now is closed at once.
    closed: bool,
}

/// The members of one owner. In a forked child those of its parent are left alone.
pub(crate) struct Members {
    lists: Mutex<Lists>,
    fork_guard: ForkGuard,
}

impl Members {
    pub(crate) fn new() -> Members {
        Members { lists: Mutex::default(), fork_guard: ForkGuard::here() }
    }

    /// `None` in a child: the lock may be held by a thread that only the parent has.
    fn lists(&self) -> Option<MutexGuard<'_, Lists>> {
        let ours = !self.fork_guard.is_from_parent();
        ours.then(|| lock(&self.lists))
    }

    /// Has a member closed with its owner. Call it without the GIL.
    pub(crate) fn add<M: Member + 'static>(&self, kind: MemberKind, member: &Arc<M>) {
        let Some(mut lists) = self.lists() else { return };
        if lists.closed {
            drop(lists);
            return member.close();
        }
        lists.all.retain(|(_, member)| member.strong_count() > 0);
        let member: Weak<M> = Arc::downgrade(member);
        lists.all.push((kind, member));
    }

    /// Keeps a member alive, until it is over, forgotten, or closed with its owner. Call it without the GIL.
    pub(crate) fn retain<M: Member + 'static>(&self, member: &Arc<M>) {
        let Some(mut lists) = self.lists() else { return };
        let over: Vec<_> = lists.retained.extract_if(.., |kept| kept.is_finished()).collect();
        if !lists.closed && position(&lists.retained, member).is_none() {
            lists.retained.push(member.clone());
        }
        drop(lists);
        drop(over);
    }

    /// Both. Call it without the GIL.
    pub(crate) fn add_retained<M: Member + 'static>(&self, kind: MemberKind, member: &Arc<M>) {
        self.add(kind, member);
        self.retain(member);
    }

    /// Keeps it no longer. Call it without the GIL.
    pub(crate) fn forget<M: Member>(&self, member: &Arc<M>) {
        let Some(mut lists) = self.lists() else { return };
        let forgotten = position(&lists.retained, member).map(|at| lists.retained.swap_remove(at));
        drop(lists);
        drop(forgotten);
    }

    /// Those that were kept, to be dropped without the GIL.
    pub(crate) fn take(&mut self) -> Vec<Arc<dyn Member>> {
        std::mem::take(&mut self.lists.get_mut().unwrap_or_else(PoisonError::into_inner).retained)
    }

    /// Closes all of them. Call it without the GIL.
    pub(crate) fn close(&self) {
        let Some(mut lists) = self.lists() else { return };
        let closed = Lists { closed: true, ..Lists::default() };
        let Lists { mut all, retained, .. } = std::mem::replace(&mut *lists, closed);
        drop(lists);
        all.sort_by_key(|(kind, _)| *kind);
        all.iter().filter_map(|(_, member)| member.upgrade()).for_each(|member| member.close());
        drop(retained);
    }
}

fn position<M>(kept: &[Arc<dyn Member>], member: &Arc<M>) -> Option<usize> {
    kept.iter().position(|other| Arc::as_ptr(other).cast::<()>() == Arc::as_ptr(member).cast())
}
