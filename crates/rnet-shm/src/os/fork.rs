//! `fork()`: what a child inherits and must neither use nor release.
//!
//! A child has all objects and descriptors of its parent and none of its threads. This has three
//! consequences:
//!
//! - The lock on a node's name belongs to the *open file description*, which the child shares: the kernel
//!   would hold it until the child has exited too, and peers would not notice the parent's death. So a
//!   handler of `pthread_atfork` closes the child's share ([`UnsharedFd`]) before anything else runs in the
//!   child. The descriptor's number stays occupied, so that a later close does not close another file.
//! - An object that was created before the fork belongs to its creator. The handler counts forks, and every
//!   object that acts on shared memory stores the count in its [`ForkGuard`]: one relaxed load detects an
//!   object of the parent. Its operations then fail, and its drop does nothing.
//! - A thread that only the parent has may hold a mutex. So this check comes before any lock is taken.
//!
//! `vfork`, `posix_spawn` and raw `clone` run no handlers. The first two lead to an `execve`, which closes
//! the descriptors (all are close-on-exec); raw `clone` is unsupported. See docs/decisions/0013-fork.md.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

use rnet_core::{Error, Result};

/// The number of forks of this process and its ancestors; global because a fork affects the whole process.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Whether the handlers are installed; changed under the fork lock.
static INSTALLED: AtomicBool = AtomicBool::new(false);
static FORK_LOCK: ForkLock = ForkLock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static FIRST_BLOCK: FdBlock = FdBlock::new();

/// Held while descriptors are opened and closed, and during each fork: no fork happens between the opening of
/// a descriptor and its entry in the list. A mutex of the C library, because std's cannot be locked in one
/// function and unlocked in another.
struct ForkLock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: only functions of the C library access it, and they support concurrent use.
unsafe impl Sync for ForkLock {}

impl ForkLock {
    fn lock(&self) {
        // SAFETY: initialised statically, never moved or destroyed.
        let code = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        debug_assert_eq!(code, 0);
    }

    fn unlock(&self) {
        // SAFETY: as above; this thread, or the parent's thread of which it is a copy, has locked it.
        let code = unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        debug_assert_eq!(code, 0);
    }

    fn with<R>(&self, act: impl FnOnce() -> R) -> R {
        struct Unlock<'a>(&'a ForkLock);
        impl Drop for Unlock<'_> {
            fn drop(&mut self) {
                self.0.unlock();
            }
        }
        self.lock();
        let _unlock = Unlock(self);
        act()
    }
}

/// Runs a function during which this process does not fork.
pub(crate) fn without_fork<R>(act: impl FnOnce() -> R) -> R {
    install();
    FORK_LOCK.with(act)
}

/// Descriptors that are not shared with children: a list of blocks that only grows, so that the handler can
/// walk it without a lock or an allocation.
struct FdBlock {
    fds: [AtomicI32; 62],
    next: AtomicPtr<FdBlock>,
}

/// Marks a free entry.
const NO_FD: RawFd = -1;

impl FdBlock {
    const fn new() -> FdBlock {
        FdBlock {
            fds: [const { AtomicI32::new(NO_FD) }; 62],
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    fn next(&self) -> Option<&'static FdBlock> {
        // SAFETY: null or a block that was leaked.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

fn slots() -> impl Iterator<Item = &'static AtomicI32> {
    std::iter::successors(Some(&FIRST_BLOCK), |block| block.next()).flat_map(|block| &block.fds)
}

/// Registers a descriptor. Call it under the fork lock.
fn register_fd(fd: RawFd) -> &'static AtomicI32 {
    let mut block = &FIRST_BLOCK;
    loop {
        // Relaxed: the fork lock orders all writers.
        if let Some(free) = block.fds.iter().find(|fd| fd.load(Ordering::Relaxed) == NO_FD) {
            free.store(fd, Ordering::Relaxed);
            return free;
        }
        block = match block.next() {
            Some(next) => next,
            None => {
                let new: &'static FdBlock = Box::leak(Box::new(FdBlock::new()));
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
    FORK_LOCK.with(|| {
        if !INSTALLED.load(Ordering::Relaxed) {
            // SAFETY: functions of this library, which is never unloaded.
            let code = unsafe {
                libc::pthread_atfork(Some(before_fork), Some(after_in_parent), Some(after_in_child))
            };
            // Fails only if memory is short; then the next object retries.
            INSTALLED.store(code == 0, Ordering::Release);
        }
    });
}

unsafe extern "C" fn before_fork() {
    FORK_LOCK.lock();
}

unsafe extern "C" fn after_in_parent() {
    FORK_LOCK.unlock();
}

/// Runs in the child before `fork` returns there: only async-signal-safe operations.
unsafe extern "C" fn after_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    neutralize_unshared_fds();
    FORK_LOCK.unlock();
}

/// Replaces each registered descriptor by a neutral one.
fn neutralize_unshared_fds() {
    let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
    // SAFETY: the call takes no pointers.
    let mut nothing = unsafe { libc::eventfd(0, flags) };
    let mut keep = false;
    for slot in slots() {
        let fd = slot.swap(NO_FD, Ordering::Relaxed);
        if fd == NO_FD {
            continue;
        }
        if nothing < 0 {
            // No number was free; now this one is.
            // SAFETY: the number belongs to the object that registered it, which is never used here.
            unsafe { libc::close(fd) };
            // SAFETY: the call takes no pointers.
            nothing = unsafe { libc::eventfd(0, flags) };
            keep = nothing == fd;
        }
        if nothing >= 0 && nothing != fd {
            // SAFETY: replaces our own descriptor number; no pointers.
            unsafe { libc::dup3(nothing, fd, libc::O_CLOEXEC) };
        }
    }
    if nothing >= 0 && !keep {
        // SAFETY: opened above, and used only here.
        unsafe { libc::close(nothing) };
    }
}

/// The number of forks of this process and its ancestors.
pub(crate) fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// A number that a child does not share with its parent; never 0.
pub(crate) fn generation() -> u32 {
    install();
    count().wrapping_add(1)
}

/// The process in which an object was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkGuard(u32);

impl ForkGuard {
    /// A guard for an object that is created now.
    pub fn here() -> ForkGuard {
        install();
        ForkGuard(FORKS.load(Ordering::Relaxed))
    }

    /// Whether the object was created before a fork, in the parent.
    #[inline]
    pub fn is_from_parent(self) -> bool {
        self.0 != FORKS.load(Ordering::Relaxed)
    }

    /// The name of an object in errors about such use.
    pub fn name(self, thing: String) -> String {
        if self.is_from_parent() {
            format!("{thing}, created before this process was forked from its parent,")
        } else {
            thing
        }
    }

    /// Rejects the use of an object of the parent.
    ///
    /// # Errors
    /// `Closed`, with the object's name and the fact that it was created before the fork.
    #[inline]
    pub fn check(self, thing: impl FnOnce() -> String) -> Result<()> {
        if self.is_from_parent() { Err(self.closed_error(thing())) } else { Ok(()) }
    }

    #[cold]
    fn closed_error(self, thing: String) -> Error {
        Error::Closed { what: self.name(thing) }
    }
}

/// An object that only the process that created it may drop.
#[derive(Debug)]
pub struct ProcessOwned<T> {
    thing: ManuallyDrop<T>,
    fork_guard: ForkGuard,
}

impl<T> ProcessOwned<T> {
    /// Wraps an object that was created in this process.
    pub fn new(thing: T) -> ProcessOwned<T> {
        ProcessOwned { thing: ManuallyDrop::new(thing), fork_guard: ForkGuard::here() }
    }

    /// The value; `None` in a forked child of its owner, which must not use it.
    pub fn into_inner(self) -> Option<T> {
        let mut this = ManuallyDrop::new(self);
        if this.fork_guard.is_from_parent() {
            return None;
        }
        // SAFETY: `this` is not dropped, so that nothing else takes or drops the value.
        Some(unsafe { ManuallyDrop::take(&mut this.thing) })
    }
}

impl<T> Drop for ProcessOwned<T> {
    fn drop(&mut self) {
        if !self.fork_guard.is_from_parent() {
            // SAFETY: the object is not used after the drop of its owner.
            unsafe { ManuallyDrop::drop(&mut self.thing) }
        }
    }
}

impl<T> Deref for ProcessOwned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.thing
    }
}

impl<T> DerefMut for ProcessOwned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.thing
    }
}

/// A descriptor whose open file description is not shared with forked children.
#[derive(Debug)]
pub struct UnsharedFd {
    fd: ManuallyDrop<OwnedFd>,
    slot: &'static AtomicI32,
    fork_guard: ForkGuard,
}

impl UnsharedFd {
    /// The process in which it was opened.
    pub fn fork_guard(&self) -> ForkGuard {
        self.fork_guard
    }

    /// Opens it; no fork happens in between.
    pub fn open(
        open: impl FnOnce() -> rustix::io::Result<OwnedFd>,
    ) -> rustix::io::Result<UnsharedFd> {
        let fork_guard = ForkGuard::here();
        FORK_LOCK.with(|| {
            let fd = open()?;
            let slot = register_fd(fd.as_raw_fd());
            Ok(UnsharedFd { fd: ManuallyDrop::new(fd), slot, fork_guard })
        })
    }
}

impl Drop for UnsharedFd {
    fn drop(&mut self) {
        FORK_LOCK.with(|| {
            if !self.fork_guard.is_from_parent() {
                self.slot.store(NO_FD, Ordering::Relaxed);
            }
            // SAFETY: the descriptor is not used after the drop of its owner.
            unsafe { ManuallyDrop::drop(&mut self.fd) }
        });
    }
}

impl AsFd for UnsharedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
