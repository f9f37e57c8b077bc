//! `fork()`: what a child inherits, and must neither use nor end.
//!
//! A child has all objects and descriptors of its parent and none of its threads. Three things
//! follow, and each has its part here:
//!
//! - The lock on a node's name belongs to the *open file description*, which the child shares: the
//!   kernel would hold it until the child has ended, too, and nobody would see the parent die. So
//!   a handler of `pthread_atfork` gives back the child's share ([`Unshared`]) before anything else
//!   runs in it. The number of the descriptor stays taken, so that whoever closes it later closes
//!   nothing of somebody else's.
//! - What was made before the fork is its maker's. The handler counts forks, and everything that
//!   acts on shared memory remembers the count at its [`ForkGuard`]: one relaxed load tells a child
//!   that a thing is its parent's. Then it gives an error, or, dropped, does nothing.
//! - A mutex may be held by a thread that only the parent has. So the question comes before any
//!   lock is taken.
//!
//! `vfork`, `posix_spawn` and raw `clone` run no handlers. The first two lead to an `execve`, which
//! closes the descriptors (all are close-on-exec); whoever uses the third is on his own. See
//! docs/decisions/0013-fork.md.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

use rnet_core::{Error, Result};

/// How often this process and its ancestors have forked; global because a fork is an event of
/// the whole process.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Whether the handlers are in place; changed behind the gate.
static INSTALLED: AtomicBool = AtomicBool::new(false);
static GATE: Gate = Gate(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static FIRST: Block = Block::new();

/// Closed while descriptors come and go, and during each fork: so no child is born between the
/// opening of one and its entry in the list. A mutex of the C library, because std's cannot be
/// locked in one function and unlocked in another.
struct Gate(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: only the functions of the C library touch it, and they are made for that.
unsafe impl Sync for Gate {}

impl Gate {
    fn lock(&self) {
        // SAFETY: initialised statically, never moved or destroyed.
        let code = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        debug_assert_eq!(code, 0);
    }

    fn unlock(&self) {
        // SAFETY: as above; locked by this thread, or by the one that it is a copy of.
        let code = unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        debug_assert_eq!(code, 0);
    }

    fn pass<R>(&self, act: impl FnOnce() -> R) -> R {
        struct Opened<'a>(&'a Gate);
        impl Drop for Opened<'_> {
            fn drop(&mut self) {
                self.0.unlock();
            }
        }
        self.lock();
        let _opened = Opened(self);
        act()
    }
}

/// Runs something during which this process does not fork.
pub(crate) fn gated<R>(act: impl FnOnce() -> R) -> R {
    install();
    GATE.pass(act)
}

/// Descriptors of which children give back their share: a list of blocks that only grows, so that
/// the handler can walk it without a lock or an allocation.
struct Block {
    fds: [AtomicI32; 62],
    next: AtomicPtr<Block>,
}

/// No descriptor.
const NONE: RawFd = -1;

impl Block {
    const fn new() -> Block {
        Block {
            fds: [const { AtomicI32::new(NONE) }; 62],
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    fn next(&self) -> Option<&'static Block> {
        // SAFETY: null or a block that was leaked.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

fn places() -> impl Iterator<Item = &'static AtomicI32> {
    std::iter::successors(Some(&FIRST), |block| block.next()).flat_map(|block| &block.fds)
}

/// Notes a descriptor. Call it behind the gate.
fn enter(fd: RawFd) -> &'static AtomicI32 {
    let mut block = &FIRST;
    loop {
        // Relaxed: the gate orders all who write.
        if let Some(free) = block.fds.iter().find(|fd| fd.load(Ordering::Relaxed) == NONE) {
            free.store(fd, Ordering::Relaxed);
            return free;
        }
        block = match block.next() {
            Some(next) => next,
            None => {
                let new: &'static Block = Box::leak(Box::new(Block::new()));
                block.next.store((&raw const *new).cast_mut(), Ordering::Release);
                new
            }
        };
    }
}

fn install() {
    if INSTALLED.load(Ordering::Acquire) {
        return;
    }
    GATE.pass(|| {
        if !INSTALLED.load(Ordering::Relaxed) {
            // SAFETY: functions of this library, which is never unloaded.
            let code = unsafe {
                libc::pthread_atfork(Some(before_fork), Some(after_in_parent), Some(after_in_child))
            };
            // For want of memory only; then the next object tries again.
            INSTALLED.store(code == 0, Ordering::Release);
        }
    });
}

unsafe extern "C" fn before_fork() {
    GATE.lock();
}

unsafe extern "C" fn after_in_parent() {
    GATE.unlock();
}

/// Runs in the child before `fork` returns there: only what may be done in a signal handler.
unsafe extern "C" fn after_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    give_back_shares();
    GATE.unlock();
}

/// Puts a description of no meaning under each number.
fn give_back_shares() {
    let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
    // SAFETY: the call takes no pointers.
    let mut nothing = unsafe { libc::eventfd(0, flags) };
    let mut keep = false;
    for place in places() {
        let fd = place.swap(NONE, Ordering::Relaxed);
        if fd == NONE {
            continue;
        }
        if nothing < 0 {
            // There was no number left; now there is this one.
            // SAFETY: the number is taken by the thing that entered it, which is never used here.
            unsafe { libc::close(fd) };
            // SAFETY: the call takes no pointers.
            nothing = unsafe { libc::eventfd(0, flags) };
            keep = nothing == fd;
        }
        if nothing >= 0 && nothing != fd {
            // SAFETY: replaces what stands under our own number; no pointers.
            unsafe { libc::dup3(nothing, fd, libc::O_CLOEXEC) };
        }
    }
    if nothing >= 0 && !keep {
        // SAFETY: opened above, and known to nobody else.
        unsafe { libc::close(nothing) };
    }
}

/// How often this process and its ancestors have forked.
pub(crate) fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// A number that a child does not share with its parent; never 0.
pub(crate) fn generation() -> u32 {
    install();
    count().wrapping_add(1)
}

/// In which process something was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkGuard(u32);

impl ForkGuard {
    /// For something that is made now.
    pub fn here() -> ForkGuard {
        install();
        ForkGuard(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it was made before a fork, in the parent.
    #[inline]
    pub fn is_parents(self) -> bool {
        self.0 != FORKS.load(Ordering::Relaxed)
    }

    /// What an error calls a thing that was made then.
    pub fn name(self, thing: String) -> String {
        if self.is_parents() {
            format!("{thing}, created before this process was forked from its parent,")
        } else {
            thing
        }
    }

    /// Refuses what is the parent's.
    ///
    /// # Errors
    /// `Closed`, naming the thing and that it was made before the fork.
    #[inline]
    pub fn check(self, thing: impl FnOnce() -> String) -> Result<()> {
        if self.is_parents() { Err(self.refusal(thing())) } else { Ok(()) }
    }

    #[cold]
    fn refusal(self, thing: String) -> Error {
        Error::Closed { what: self.name(thing) }
    }
}

/// A thing that only the process which made it may drop.
#[derive(Debug)]
pub struct Own<T> {
    thing: ManuallyDrop<T>,
    fork_guard: ForkGuard,
}

impl<T> Own<T> {
    /// Made here.
    pub fn new(thing: T) -> Own<T> {
        Own { thing: ManuallyDrop::new(thing), fork_guard: ForkGuard::here() }
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if !self.fork_guard.is_parents() {
            // SAFETY: nothing uses the thing after the drop of its owner.
            unsafe { ManuallyDrop::drop(&mut self.thing) }
        }
    }
}

impl<T> Deref for Own<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.thing
    }
}

impl<T> DerefMut for Own<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.thing
    }
}

/// A descriptor whose description a forked child does not share.
#[derive(Debug)]
pub struct Unshared {
    fd: ManuallyDrop<OwnedFd>,
    place: &'static AtomicI32,
    fork_guard: ForkGuard,
}

impl Unshared {
    /// In which process it was opened.
    pub fn fork_guard(&self) -> ForkGuard {
        self.fork_guard
    }

    /// Opens it; no fork comes in between.
    pub fn open(
        open: impl FnOnce() -> rustix::io::Result<OwnedFd>,
    ) -> rustix::io::Result<Unshared> {
        let fork_guard = ForkGuard::here();
        GATE.pass(|| {
            let fd = open()?;
            let place = enter(fd.as_raw_fd());
            Ok(Unshared { fd: ManuallyDrop::new(fd), place, fork_guard })
        })
    }
}

impl Drop for Unshared {
    fn drop(&mut self) {
        GATE.pass(|| {
            if !self.fork_guard.is_parents() {
                self.place.store(NONE, Ordering::Relaxed);
            }
            // SAFETY: nothing uses the descriptor after the drop of its owner.
            unsafe { ManuallyDrop::drop(&mut self.fd) }
        });
    }
}

impl AsFd for Unshared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
