//! What the opaque pointers refer to: objects that can be closed while other threads use them.

use std::cell::UnsafeCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use rnet::Error;
use rnet::fork::{ForkGuard, ProcessOwned};

use crate::callback::in_callback;
use crate::error::{Failure, Outcome};

/// How long [`Exclusive::close`] sleeps between two attempts to end another thread's wait.
const CLOSE_RETRY: Duration = Duration::from_micros(200);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Set once something has ended.
pub(crate) type Latch = OnceLock<()>;

/// Waits until something that another thread closes has ended, except in a callback: the other thread may wait for it.
fn wait_for(ended: &Latch) {
    if !in_callback() {
        ended.wait();
    }
}

/// Sets a latch when it is dropped, also by a panic.
struct SetOnDrop<'a>(&'a Latch);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        let _ = self.0.set(());
    }
}

/// A number for this thread; not 0.
#[inline]
fn this_thread() -> usize {
    // SAFETY: has no conditions. A thread-local variable of a shared library costs more.
    unsafe { libc::pthread_self() as usize }
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
    /// The thread that reads memory of the object, which closing must not take away; 0 if none does.
    borrower: AtomicUsize,
    /// Number of loans, which closing must not take away either.
    loans: AtomicUsize,
    value: UnsafeCell<Option<ProcessOwned<T>>>,
    /// Ends the wait of the thread that uses it.
    interrupt: Box<dyn Fn() + Send + Sync>,
    closed: Latch,
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
            borrower: AtomicUsize::new(0),
            loans: AtomicUsize::new(0),
            value: UnsafeCell::new(Some(ProcessOwned::new(value))),
            interrupt: Box::new(interrupt),
            closed: Latch::new(),
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
        let Some(value) = (unsafe { &mut *self.value.get() }) else { return Err(self.closed()) };
        let result = act(value);
        drop(user);
        result.map_err(|failure| self.failure(failure))
    }

    /// The failure of a call: that the object was closed, if this has ended it.
    #[cold]
    fn failure(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Rnet(Error::Interrupted) if self.is_closing() => self.closed(),
            failure => failure,
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

    #[cold]
    fn closed(&self) -> Failure {
        Error::closed(self.fork_guard.name(self.name.clone())).into()
    }

    /// Whether a thread closes it: a wait within [`Exclusive::with`] must end.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Notes, within [`Exclusive::with`], that the user holds one more loan.
    pub(crate) fn lend(&self) {
        self.loans.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that the user has returned a loan. If the object was closed meanwhile, it ends with the last one.
    pub(crate) fn give_back(&self) {
        let last = self.loans.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.closing.load(Ordering::SeqCst) {
            self.close();
        }
    }

    /// Notes, within [`Exclusive::with`], whether this thread reads memory of the object.
    #[inline]
    pub(crate) fn set_borrowed(&self, yes: bool) {
        self.borrower.store(if yes { this_thread() } else { 0 }, Ordering::Release);
    }

    /// As [`Exclusive::with`], for a call that gives the user memory of the object, or null. It stays valid until the
    /// user's next such call, also if another thread closes the object.
    #[inline]
    pub(crate) fn borrow<V>(
        &self,
        act: impl FnOnce(&mut T) -> Outcome<*const V>,
    ) -> Outcome<*const V> {
        let result = self.with(|value| {
            self.set_borrowed(false);
            let view = act(value)?;
            self.set_borrowed(!view.is_null());
            Ok(view)
        });
        if result.is_err() {
            self.end_borrow_if_closing();
        }
        result
    }

    /// As [`Exclusive::borrow`], for an object that does not itself refuse to be used in a forked child.
    ///
    /// # Errors
    /// As [`Exclusive::with`]; `Closed` in a forked child.
    pub(crate) fn borrow_here<V>(
        &self,
        act: impl FnOnce(&mut T) -> Outcome<*const V>,
    ) -> Outcome<*const V> {
        if self.fork_guard.is_from_parent() {
            return Err(self.closed());
        }
        self.borrow(act)
    }

    /// Called when a call of the user was refused, who is done with the borrowed memory: a closed object ends now.
    #[cold]
    pub(crate) fn end_borrow_if_closing(&self) {
        if self.closing.load(Ordering::SeqCst) && self.borrower.swap(0, Ordering::SeqCst) > 0 {
            self.close();
        }
    }

    /// As [`Exclusive::take`], and drops what it held.
    pub(crate) fn close(&self) {
        self.take(drop);
    }

    /// Closes it for its user, who is done with the memory that this thread has borrowed.
    pub(crate) fn close_here(&self) {
        if self.borrower.load(Ordering::Acquire) == this_thread() {
            self.set_borrowed(false);
        }
        self.close();
    }

    /// Takes the object for a call that consumes it, whose user is done with the borrowed memory.
    ///
    /// # Errors
    /// `Closed`, also if another thread closes it and memory was borrowed until now.
    pub(crate) fn consume(&self) -> Outcome<T> {
        let was_open = !self.closing.load(Ordering::SeqCst);
        self.set_borrowed(false);
        self.take(|value| value).filter(|_| was_open).ok_or_else(|| self.closed())
    }

    /// Closes it, ending the wait of a thread that uses it. The first caller passes the object to `finish`; later ones
    /// wait until that has returned. Memory that is lent stays valid: then the object keeps its value until the user
    /// returns it.
    pub(crate) fn take<R>(&self, finish: impl FnOnce(T) -> R) -> Option<R> {
        if self.fork_guard.is_from_parent() {
            return None;
        }
        self.closing.store(true, Ordering::SeqCst);
        loop {
            if self.enter() {
                let lent = [&self.borrower, &self.loans].map(|one| one.load(Ordering::SeqCst));
                if lent != [0, 0] {
                    self.state.store(IDLE, Ordering::Release);
                    return None;
                }
                let _closed = SetOnDrop(&self.closed);
                // SAFETY: this thread has made the object IN_USE.
                let value = unsafe { &mut *self.value.get() }.take();
                self.state.store(CLOSED, Ordering::Release);
                return value.and_then(ProcessOwned::into_inner).map(finish);
            }
            match self.state.load(Ordering::Relaxed) {
                IN_USE => (self.interrupt)(),
                CLOSED => {
                    wait_for(&self.closed);
                    return None;
                }
                _ => return None,
            }
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
    /// Set once the context of its callback was freed, after the last call.
    callback: Option<Arc<Latch>>,
    closed: Latch,
    fork_guard: ForkGuard,
}

impl<T: Send + Sync + 'static> Shared<T> {
    pub(crate) fn new(name: String, value: T) -> Arc<Shared<T>> {
        Shared::with_end(name, value, |_| (), None)
    }

    /// As [`Shared::new`]. Closing it calls `end`, which ends the waits of other threads, and waits for `callback`.
    pub(crate) fn with_end(
        name: String,
        value: T,
        end: fn(&T),
        callback: Option<Arc<Latch>>,
    ) -> Arc<Shared<T>> {
        let value = Mutex::new(Some(Arc::new(ProcessOwned::new(value))));
        let (closed, fork_guard) = (Latch::new(), ForkGuard::here());
        Arc::new(Shared { name, value, end, callback, closed, fork_guard })
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

    /// Closes it. When it returns, the first caller has ended what it held, and its callback is not called again, also
    /// if another thread still uses the object; except in a callback.
    pub(crate) fn close(&self) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        let taken = lock(&self.value).take();
        if let Some(value) = taken {
            let _closed = SetOnDrop(&self.closed);
            (self.end)(&value);
            drop(value);
        }
        wait_for(&self.closed);
        self.callback.iter().for_each(|callback| wait_for(callback));
    }
}

/// An object that is closed with its node.
pub(crate) trait Member: Send + Sync {
    fn close(&self);
    /// As [`Member::close`], by the user, who frees it.
    fn free(&self) {
        self.close();
    }
    /// Set once its callback has ended, if it has one.
    fn callback(&self) -> Option<&Arc<Latch>> {
        None
    }
}

impl<T: Send + 'static> Member for Exclusive<T> {
    fn close(&self) {
        Exclusive::close(self);
    }
    fn free(&self) {
        self.set_borrowed(false);
        Exclusive::close(self);
    }
}

impl<T: Send + Sync + 'static> Member for Shared<T> {
    fn close(&self) {
        Shared::close(self);
    }
    fn callback(&self) -> Option<&Arc<Latch>> {
        self.callback.as_ref()
    }
}

/// The user's handle of an object. Freeing it closes the object.
pub(crate) struct Handle<M: Member> {
    object: Arc<M>,
    /// Those of its node; none without a node.
    members: Arc<MemberList>,
    is_detached: bool,
}

impl<M: Member + 'static> Handle<M> {
    /// The handle of an object that is closed with its node.
    pub(crate) fn new(members: &Arc<MemberList>, kind: MemberKind, object: Arc<M>) -> Handle<M> {
        members.add(kind, &object);
        Handle { object, members: members.clone(), is_detached: false }
    }

    pub(crate) fn without_node(object: Arc<M>) -> Handle<M> {
        Handle { object, members: Arc::new(MemberList::new()), is_detached: false }
    }

    /// For other objects of the same node.
    pub(crate) fn members(&self) -> &Arc<MemberList> {
        &self.members
    }

    /// Keeps the object, which calls a callback, until its node is closed.
    pub(crate) fn detach(mut self) {
        self.members.keep(self.object.clone());
        self.is_detached = true;
    }
}

impl<M: Member> Deref for Handle<M> {
    type Target = Arc<M>;

    #[inline]
    fn deref(&self) -> &Arc<M> {
        &self.object
    }
}

impl<M: Member> Drop for Handle<M> {
    fn drop(&mut self) {
        if !self.is_detached {
            self.object.free();
        }
    }
}

/// The kind of a member. A node closes its members in this order: callbacks of a subscriber may still publish.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemberKind {
    WaitSet,
    /// Before callbacks, which may sleep with one while a simulated time stands still.
    Rate,
    /// Before callbacks: this ends the wait of a handler that calls another service, or receives.
    Client,
    Service,
    Subscriber,
    Publisher,
    Param,
    Timer,
    Guard,
    State,
}

/// A member of a node.
struct MemberEntry {
    kind: MemberKind,
    member: Weak<dyn Member>,
    /// See [`Member::callback`]: a member that was freed within its callback may still run it.
    callback: Option<Arc<Latch>>,
    /// Keeps a callback that has no other owner.
    detached: Option<Arc<dyn Member>>,
}

impl MemberEntry {
    fn has_ended(&self) -> bool {
        self.callback.as_ref().is_none_or(|callback| callback.get().is_some())
    }
}

#[derive(Default)]
struct Members {
    all: Vec<Arc<MemberEntry>>,
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
        self.register(kind, member.clone(), false);
    }

    /// Keeps a callback until the node is closed, or what calls it was.
    pub(crate) fn keep(&self, callback: Arc<dyn Member>) {
        self.register(MemberKind::Guard, callback, true);
    }

    fn register(&self, kind: MemberKind, member: Arc<dyn Member>, detached: bool) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        // Dropped after the lock: the end of a detached callback may wait for a thread that registers a member.
        let mut ended = Vec::new();
        let mut members = lock(&self.members);
        if members.closed {
            drop(members);
            return member.close();
        }
        // Amortised: the list is searched when it has doubled.
        if members.all.len() == members.all.capacity() {
            let has_ended = |entry: &mut Arc<MemberEntry>| {
                entry.has_ended() && (entry.detached.is_some() || entry.member.strong_count() == 0)
            };
            ended.extend(members.all.extract_if(.., has_ended));
        }
        let (weak, callback) = (Arc::downgrade(&member), member.callback().cloned());
        let detached = detached.then_some(member);
        members.all.push(Arc::new(MemberEntry { kind, member: weak, callback, detached }));
    }

    /// Closes all members, also if another thread already does.
    pub(crate) fn close(&self) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        let mut members = lock(&self.members);
        members.closed = true;
        members.all.sort_by_key(|entry| entry.kind);
        let all = members.all.clone();
        drop(members);
        for entry in all {
            match entry.member.upgrade() {
                Some(member) => member.close(),
                None => entry.callback.iter().for_each(|callback| wait_for(callback)),
            }
        }
    }
}
