//! Objects that are closed with their owner: the endpoints of a node, the watches of its state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::fork::ForkGuard;
use crate::lock::lock;

/// An object that its owner closes.
pub(crate) trait Member: Send + Sync {
    /// Call it without the GIL.
    fn close(&self);

    /// Whether it has ended, so that its owner need not keep it alive any more.
    fn is_finished(&self) -> bool {
        false
    }
}

/// The kind of a member. Members are closed in this order. Callbacks of a subscriber may still publish.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemberKind {
    WaitSet,
    /// Before services: this ends the wait of a handler that calls another service.
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
    /// Members that run without a Python object, because they have a callback.
    retained: Vec<Arc<dyn Member>>,
    /// Whether the owner was closed: a later member is closed at once.
    closed: bool,
}

/// The members of one owner. A forked child does not touch the members of its parent.
pub(crate) struct Members {
    lists: Mutex<Lists>,
    fork_guard: ForkGuard,
}

impl Members {
    pub(crate) fn new() -> Members {
        Members { lists: Mutex::default(), fork_guard: ForkGuard::here() }
    }

    /// `None` in a child: the lock may be held by a thread that exists only in the parent.
    fn lists(&self) -> Option<MutexGuard<'_, Lists>> {
        let ours = !self.fork_guard.is_from_parent();
        ours.then(|| lock(&self.lists))
    }

    /// Registers a member that is closed with its owner. Call it without the GIL.
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

    /// Keeps a member alive until it has ended, is forgotten, or is closed with its owner. Call it without
    /// the GIL.
    pub(crate) fn retain<M: Member + 'static>(&self, member: &Arc<M>) {
        let Some(mut lists) = self.lists() else { return };
        let over: Vec<_> = lists.retained.extract_if(.., |kept| kept.is_finished()).collect();
        if !lists.closed && position(&lists.retained, member).is_none() {
            lists.retained.push(member.clone());
        }
        drop(lists);
        drop(over);
    }

    /// Does both of the above. Call it without the GIL.
    pub(crate) fn add_retained<M: Member + 'static>(&self, kind: MemberKind, member: &Arc<M>) {
        self.add(kind, member);
        self.retain(member);
    }

    /// Stops keeping it alive. Call it without the GIL.
    pub(crate) fn forget<M: Member>(&self, member: &Arc<M>) {
        let Some(mut lists) = self.lists() else { return };
        let forgotten = position(&lists.retained, member).map(|at| lists.retained.swap_remove(at));
        drop(lists);
        drop(forgotten);
    }

    /// The retained members, to be dropped without the GIL.
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
