//! What the opaque pointers refer to: objects that can be closed while other threads use them.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rnet::Error;
use rnet::fork::{ForkGuard, ProcessOwned};

use crate::error::{Failure, Outcome};

/// How long [`Exclusive::close`] sleeps between two attempts to end another thread's wait.
const CLOSE_RETRY: Duration = Duration::from_micros(200);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number for this thread; not 0.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

/// Nobody uses the object.
const IDLE: u8 = 0;
/// One thread uses it.
const IN_USE: u8 = 1;
const CLOSED: u8 = 2;
/// A panic has left it in an unknown state.
const POISONED: u8 = 3;

/// An object that one thread at a time may use. A second thread gets `RNET_WRONG_THREAD`.
pub(crate) struct Exclusive<T> {
    /// The kind of object: "publisher".
    kind: &'static str,
    /// The name in the error of a closed object: "publisher of /scan".
    name: String,
    state: AtomicU8,
    /// Set before it is closed, because another thread may still use it.
    closing: AtomicBool,
    /// Whether the user holds memory of the object, which closing must not take away: the number of loans, or the
    /// thread that reads a borrowed sample.
    lent: AtomicUsize,
    value: UnsafeCell<Option<ProcessOwned<T>>>,
    /// Ends the wait of the thread that uses it.
    interrupt: Box<dyn Fn() + Send + Sync>,
    fork_guard: ForkGuard,
}

// SAFETY: the value is reached only by the thread that has changed `state` from IDLE to IN_USE, so that threads
// pass it on to each other and never share it.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T: Send + 'static> Exclusive<T> {
    pub(crate) fn new(
        kind: &'static str,
        name: String,
        value: T,
        interrupt: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Exclusive<T>> {
        Arc::new(Exclusive {
            kind,
            name,
            state: AtomicU8::new(IDLE),
            closing: AtomicBool::new(false),
            lent: AtomicUsize::new(0),
            value: UnsafeCell::new(Some(ProcessOwned::new(value))),
            interrupt: Box::new(interrupt),
            fork_guard: ForkGuard::here(),
        })
    }

    /// Runs `act` on the object.
    ///
    /// # Errors
    /// `WrongThread`, `Closed`, `Internal` after a panic, and those of `act`.
    #[inline]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut T) -> Outcome<R>) -> Outcome<R> {
        if !self.enter() {
            return Err(self.refusal());
        }
        let user = User(self);
        // Checked by the user of the object, because one with lent memory is closed before its value is gone.
        if self.closing.load(Ordering::Relaxed) {
            return Err(self.closed());
        }
        // SAFETY: this thread has made the object IN_USE.
        let value = unsafe { &mut *self.value.get() };
        let result = match value {
            Some(value) => act(value),
            None => Err(self.closed()),
        };
        drop(user);
        match result {
            Err(Failure::Rnet(Error::Interrupted)) if self.closing.load(Ordering::Relaxed) => {
                Err(self.closed())
            }
            result => result,
        }
    }

    /// As [`Exclusive::with`], for an object that does not itself refuse to be used in a forked child.
    ///
    /// # Errors
    /// As [`Exclusive::with`]; `Closed` in a forked child.
    pub(crate) fn with_here<R>(&self, act: impl FnOnce(&mut T) -> Outcome<R>) -> Outcome<R> {
        if self.fork_guard.is_from_parent() {
            return Err(self.closed());
        }
        self.with(act)
    }

    /// The object, which no other call can use until the result is dropped.
    ///
    /// # Errors
    /// `WrongThread`, `Closed`, `Internal` after a panic.
    pub(crate) fn try_lock(&self) -> Outcome<ExclusiveGuard<'_, T>> {
        if self.closing.load(Ordering::Relaxed) || !self.enter() {
            return Err(self.refusal());
        }
        let user = User(self);
        if self.closing.load(Ordering::Relaxed) {
            return Err(self.closed());
        }
        // SAFETY: this thread has made the object IN_USE, until `user` is dropped.
        let value = unsafe { &mut *self.value.get() };
        match value {
            Some(value) => Ok(ExclusiveGuard { value, _user: user }),
            None => Err(self.closed()),
        }
    }

    #[inline]
    fn enter(&self) -> bool {
        self.state.compare_exchange(IDLE, IN_USE, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn refusal(&self) -> Failure {
        if self.fork_guard.is_from_parent() || self.closing.load(Ordering::Relaxed) {
            return self.closed();
        }
        match self.state.load(Ordering::Relaxed) {
            POISONED => Failure::Internal(format!("a panic has ended this {}", self.kind)),
            CLOSED => self.closed(),
            _ => Failure::WrongThread(self.kind),
        }
    }

    fn closed(&self) -> Failure {
        Error::closed(self.fork_guard.name(self.name.clone())).into()
    }

    /// Notes, within [`Exclusive::with`], that the user holds one more loan.
    pub(crate) fn lend(&self) {
        self.lent.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that the user has returned a loan. If the object was closed meanwhile, it ends with the last one.
    pub(crate) fn give_back(&self) {
        let last = self.lent.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.closing.load(Ordering::SeqCst) {
            drop(self.take());
        }
    }

    /// Notes, within [`Exclusive::with`], whether this thread reads a borrowed sample.
    #[inline]
    pub(crate) fn set_borrowed(&self, yes: bool) {
        self.lent.store(if yes { this_thread() } else { 0 }, Ordering::Release);
    }

    /// Whether this thread reads a borrowed sample.
    pub(crate) fn is_borrowed_here(&self) -> bool {
        self.lent.load(Ordering::Acquire) == this_thread()
    }

    /// Called when a call of the user was refused, who is done with a borrowed sample: a closed object ends now.
    #[cold]
    pub(crate) fn end_borrow_if_closing(&self) {
        if self.closing.load(Ordering::SeqCst) && self.lent.swap(0, Ordering::SeqCst) > 0 {
            drop(self.take());
        }
    }

    /// As [`Exclusive::take`], when the user is done with a borrowed sample.
    pub(crate) fn finish(&self) -> Option<ProcessOwned<T>> {
        if self.fork_guard.is_from_parent() {
            return None;
        }
        self.lent.store(0, Ordering::Release);
        self.take()
    }

    /// Closes it, ending the wait of a thread that uses it, and returns what it held to the first caller. Memory
    /// that is lent stays valid: then the object keeps its value until the user returns it.
    pub(crate) fn take(&self) -> Option<ProcessOwned<T>> {
        if self.fork_guard.is_from_parent() {
            return None;
        }
        self.closing.store(true, Ordering::SeqCst);
        loop {
            if self.enter() {
                if self.lent.load(Ordering::SeqCst) > 0 {
                    self.state.store(IDLE, Ordering::Release);
                    return None;
                }
                // SAFETY: this thread has made the object IN_USE.
                let value = unsafe { &mut *self.value.get() }.take();
                self.state.store(CLOSED, Ordering::Release);
                return value;
            }
            if self.state.load(Ordering::Relaxed) != IN_USE {
                return None;
            }
            (self.interrupt)();
            std::thread::sleep(CLOSE_RETRY);
        }
    }
}

/// Exclusive use of an object, made by [`Exclusive::try_lock`].
pub(crate) struct ExclusiveGuard<'a, T> {
    pub(crate) value: &'a mut T,
    _user: User<'a, T>,
}

/// The thread that uses an object.
struct User<'a, T>(&'a Exclusive<T>);

impl<T> Drop for User<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let next = if std::thread::panicking() { POISONED } else { IDLE };
        self.0.state.store(next, Ordering::Release);
    }
}

/// An object that any number of threads may use at a time.
pub(crate) struct Shared<T> {
    /// The name in the error of a closed object.
    name: String,
    value: Mutex<Option<Arc<ProcessOwned<T>>>>,
    /// Ends the waits of the threads that use it.
    end: fn(&T),
    fork_guard: ForkGuard,
}

impl<T: Send + Sync + 'static> Shared<T> {
    pub(crate) fn new(name: String, value: T) -> Arc<Shared<T>> {
        Shared::with_end(name, value, |_| ())
    }

    /// As [`Shared::new`]; closing it calls `end`, which ends the waits of other threads.
    pub(crate) fn with_end(name: String, value: T, end: fn(&T)) -> Arc<Shared<T>> {
        let value = Mutex::new(Some(Arc::new(ProcessOwned::new(value))));
        Arc::new(Shared { name, value, end, fork_guard: ForkGuard::here() })
    }

    /// The object, which stays usable while another thread closes this.
    ///
    /// # Errors
    /// `Closed`.
    pub(crate) fn get(&self) -> Outcome<Arc<ProcessOwned<T>>> {
        // The lock of a forked child may be held by a thread that exists only in the parent.
        if self.fork_guard.is_from_parent() {
            return Err(self.closed());
        }
        lock(&self.value).clone().ok_or_else(|| self.closed())
    }

    /// Runs a call that may wait. Its error is `Closed` if the object was closed meanwhile.
    ///
    /// # Errors
    /// `Closed`, and those of `act`.
    pub(crate) fn wait<R>(&self, act: impl FnOnce(&T) -> Outcome<R>) -> Outcome<R> {
        let value = self.get()?;
        let result = act(&value);
        result.map_err(|error| if lock(&self.value).is_none() { self.closed() } else { error })
    }

    fn closed(&self) -> Failure {
        Error::closed(self.fork_guard.name(self.name.clone())).into()
    }

    /// Closes it, and returns what it held to the first caller.
    pub(crate) fn take(&self) -> Option<Arc<ProcessOwned<T>>> {
        if self.fork_guard.is_from_parent() {
            return None;
        }
        let taken = lock(&self.value).take();
        if let Some(value) = &taken {
            (self.end)(value);
        }
        taken
    }
}

/// An object that is closed with its node.
pub(crate) trait Member: Send + Sync {
    fn close(&self);
}

impl<T: Send + 'static> Member for Exclusive<T> {
    fn close(&self) {
        drop(self.take());
    }
}

impl<T: Send + Sync + 'static> Member for Shared<T> {
    fn close(&self) {
        drop(self.take());
    }
}

/// The kind of a member. A node closes its members in this order: callbacks of a subscriber may still publish.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemberKind {
    WaitSet,
    /// Before callbacks, which may sleep with one while a simulated time stands still.
    Rate,
    /// Before services: this ends the wait of a handler that calls another service.
    Client,
    Service,
    Subscriber,
    Publisher,
    Param,
    Timer,
    Guard,
    State,
}

#[derive(Default)]
struct Members {
    all: Vec<(MemberKind, Weak<dyn Member>)>,
    closed: bool,
}

/// The members of one node.
pub(crate) struct MemberList {
    members: Mutex<Members>,
    fork_guard: ForkGuard,
}

impl MemberList {
    pub(crate) fn new() -> MemberList {
        MemberList { members: Mutex::default(), fork_guard: ForkGuard::here() }
    }

    /// Registers a member. If the node was closed meanwhile, the member is closed, too.
    pub(crate) fn add<M: Member + 'static>(&self, kind: MemberKind, member: &Arc<M>) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        let mut members = lock(&self.members);
        if members.closed {
            drop(members);
            return member.close();
        }
        // Amortised: the list is searched when it has doubled.
        if members.all.len() == members.all.capacity() {
            members.all.retain(|(_, member)| member.strong_count() > 0);
        }
        let member: Weak<M> = Arc::downgrade(member);
        members.all.push((kind, member));
    }

    /// Closes all members.
    pub(crate) fn close(&self) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        let mut members = lock(&self.members);
        members.closed = true;
        let mut all = std::mem::take(&mut members.all);
        drop(members);
        all.sort_by_key(|(kind, _)| *kind);
        all.iter().filter_map(|(_, member)| member.upgrade()).for_each(|member| member.close());
    }
}
