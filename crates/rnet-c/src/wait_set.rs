//! `rnet_wait_set`: one wait for many objects.
//!
//! A waiting thread uses all attached objects exclusively. It releases them when an object is attached, detached or
//! closed, and then waits for those that are left.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use rnet::{Error, WaitSetHandle, Waitable};

use crate::border::{enter, enter_or, free, give, given, write};
use crate::error::{Failure, Outcome, rnet_code, rnet_error};
use crate::handle::{Exclusive, ExclusiveGuard, Handle, MemberKind, lock};
use crate::node::{node_of, rnet_node};
use crate::options::duration;
use crate::state_watch::{rnet_watch, watching_of};
use crate::stream::{EventSource, Pollable};
use crate::subscriber::{RNET_FOREVER, Receiving, receiving_of, rnet_subscriber};
use crate::timer::{RateObject, rate_of, rnet_rate};

/// An object that [`rnet_wait_set`] can wait for.
pub(crate) trait WaitMember: Send + 'static {
    /// Notes the wait set that waits for it, if closing the object does not end its wait otherwise.
    fn set_waiter(&mut self, _waiter: &WaitSetHandle) {}
    /// What rnet waits for.
    ///
    /// # Errors
    /// `BadValue` if it is used in a way that excludes a wait set.
    fn waitable(&mut self) -> Outcome<&mut dyn Waitable>;
}

impl WaitMember for Receiving {
    fn waitable(&mut self) -> Outcome<&mut dyn Waitable> {
        self.current = None;
        self.subscriber.waitable()
    }
}

impl<S: EventSource + Waitable + Send + 'static> WaitMember for Pollable<S> {
    fn waitable(&mut self) -> Outcome<&mut dyn Waitable> {
        match self {
            Pollable::Direct(source) => Ok(source),
            _ => Err(Error::bad_value(
                "wait for an object in a wait set",
                "it has a file descriptor: use either the descriptor or the wait set",
            )
            .into()),
        }
    }
}

impl WaitMember for RateObject {
    fn set_waiter(&mut self, waiter: &WaitSetHandle) {
        *lock(&self.waiter) = Some(waiter.clone());
    }
    fn waitable(&mut self) -> Outcome<&mut dyn Waitable> {
        Ok(&mut self.rate)
    }
}

/// An attached object of any kind.
trait Lockable: Send + Sync {
    fn lock(&self, waiter: &WaitSetHandle) -> Outcome<Box<dyn LockedMember + '_>>;
}

/// An attached object that no other call can use.
trait LockedMember {
    fn waitable(&mut self) -> Outcome<&mut dyn Waitable>;
}

impl<T: WaitMember> Lockable for Exclusive<T> {
    fn lock(&self, waiter: &WaitSetHandle) -> Outcome<Box<dyn LockedMember + '_>> {
        self.end_borrow_if_closing();
        let guard = self.try_lock()?;
        self.set_borrowed(false);
        guard.value.set_waiter(waiter);
        Ok(Box::new(guard))
    }
}

impl<T: WaitMember> LockedMember for ExclusiveGuard<'_, T> {
    fn waitable(&mut self) -> Outcome<&mut dyn Waitable> {
        self.value.waitable()
    }
}

/// The pointer by which the user knows an attached object.
#[derive(Clone, Copy, PartialEq, Eq)]
struct MemberPointer(*const c_void);

// SAFETY: it is compared and given back, and never read.
unsafe impl Send for MemberPointer {}

/// The set, used by the thread that waits.
struct Waiting {
    set: rnet::WaitSet,
    /// The result of the last wait.
    ready: Vec<MemberPointer>,
}

/// Waits until one of several subscribers, watches and rates of a node is ready. One thread at a time waits;
/// any thread may attach, detach and interrupt, also during a wait.
pub struct rnet_wait_set {
    waiting: Handle<Exclusive<Waiting>>,
    handle: WaitSetHandle,
    /// In the order of attachment. An object that its user has freed is no longer attached.
    attached: Mutex<Vec<(MemberPointer, Weak<dyn Lockable>)>>,
    /// Whether rnet_wait_set_interrupt() has ended a wait; other calls only restart it.
    interrupted: AtomicBool,
}

impl rnet_wait_set {
    /// Adds an object, which the user knows by `pointer`.
    pub(crate) fn attach<T: WaitMember, P>(
        &self,
        pointer: *const P,
        object: &Arc<Exclusive<T>>,
    ) -> Outcome {
        let pointer = MemberPointer(pointer.cast());
        let object: Weak<Exclusive<T>> = Arc::downgrade(object);
        let mut attached = lock(&self.attached);
        attached.retain(|(_, other)| other.strong_count() > 0);
        if attached.iter().any(|(other, _)| *other == pointer) {
            let why = "it is already attached: detach it first";
            return Err(Error::bad_value("attach to a wait set", why).into());
        }
        attached.push((pointer, object));
        drop(attached);
        self.handle.interrupt();
        Ok(())
    }

    fn wait(&self, timeout: Option<Duration>) -> Outcome<usize> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            match self.waiting.with(|waiting| self.wait_once(waiting, left)) {
                Err(Failure::Rnet(Error::Interrupted)) if !self.take_interrupt() => {}
                result => return result,
            }
        }
    }

    fn take_interrupt(&self) -> bool {
        self.interrupted.swap(false, Ordering::AcqRel)
    }

    /// Waits until an object is ready; fails with `Interrupted` if the attached objects may have changed.
    fn wait_once(&self, waiting: &mut Waiting, left: Option<Duration>) -> Outcome<usize> {
        waiting.ready.clear();
        let attached = lock(&self.attached).clone();
        let with_object = |(pointer, object): (MemberPointer, Weak<dyn Lockable>)| {
            object.upgrade().map(|object| (pointer, object))
        };
        let attached: Vec<_> = attached.into_iter().filter_map(with_object).collect();
        let mut locked = Vec::with_capacity(attached.len());
        for (_, object) in &attached {
            locked.push(match object.lock(&self.handle) {
                Ok(one) => Some(one),
                Err(failure @ Failure::WrongThread(_)) => return Err(failure),
                // It is ready: its next call reports that it is closed.
                Err(_) => None,
            });
        }
        let mut found = ready(&mut locked)?;
        if found.is_empty() {
            let awaited = locked.iter_mut().flatten().map(|one| one.waitable());
            let mut awaited = awaited.collect::<Outcome<Vec<_>>>()?;
            let may_be_ready = match left {
                Some(left) => waiting.set.wait_timeout(&mut awaited, left)?,
                None => waiting.set.wait(&mut awaited).map(|()| true)?,
            };
            // Also before a time-out is reported.
            found = ready(&mut locked)?;
            if found.is_empty() && may_be_ready {
                return Err(Error::Interrupted.into());
            }
        }
        drop(locked);
        let still = lock(&self.attached);
        let found = found.into_iter().map(|at| attached[at].0);
        let any = found.len() > 0;
        waiting.ready.extend(found.filter(|found| still.iter().any(|(one, _)| one == found)));
        if any && waiting.ready.is_empty() {
            // They were detached meanwhile.
            return Err(Error::Interrupted.into());
        }
        Ok(waiting.ready.len())
    }
}

/// The positions of the objects that may have something.
fn ready(locked: &mut [Option<Box<dyn LockedMember + '_>>]) -> Outcome<Vec<usize>> {
    let mut ready = Vec::new();
    for (at, one) in locked.iter_mut().enumerate() {
        let is_ready = match one {
            Some(one) => one.waitable()?.is_ready(),
            None => true,
        };
        if is_ready {
            ready.push(at);
        }
    }
    Ok(ready)
}

/// Creates a wait set for objects of `node`. The caller frees it with rnet_wait_set_free().
///
/// Errors: RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_wait_set_new(
    node: *const rnet_node,
    out: *mut *mut rnet_wait_set,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { node_of(node) }?;
        let node = object.get()?;
        let set = rnet::WaitSet::new(&**node);
        let (handle, interrupter) = (set.handle(), set.handle());
        let name = format!("a wait set of {}", node.name());
        let waiting = Waiting { set, ready: Vec::new() };
        let waiting = Exclusive::new("wait set", name, waiting, move || interrupter.interrupt());
        let waiting = object.add(MemberKind::WaitSet, waiting);
        let (attached, interrupted) = Default::default();
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_wait_set { waiting, handle, attached, interrupted }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Adds a subscriber of the same node, until it is detached or freed; also during a wait. Receive from it as usual,
/// with its own functions. While a thread waits with the set, other calls with the subscriber fail with
/// RNET_WRONG_THREAD.
///
/// Errors: RNET_BAD_VALUE if it is already attached.
///
/// # Safety
/// `set` is a wait set, `subscriber` a subscriber, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_wait_set_attach_subscriber(
    set: *const rnet_wait_set,
    subscriber: *mut rnet_subscriber,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (set, object) = unsafe { (given(set, "set")?, receiving_of(subscriber)?) };
        set.attach(subscriber, object)
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_wait_set_attach_subscriber(), for a watch of the state: receive its changes with rnet_watch_recv().
///
/// # Safety
/// `set` is a wait set, `watch` a watch, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_wait_set_attach_watch(
    set: *const rnet_wait_set,
    watch: *mut rnet_watch,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (set, object) = unsafe { (given(set, "set")?, watching_of(watch)?) };
        set.attach(watch, object)
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_wait_set_attach_subscriber(), for a rate: take its ticks with rnet_rate_sleep() and a timeout of 0.
///
/// # Safety
/// `set` is a wait set, `rate` a rate, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_wait_set_attach_rate(
    set: *const rnet_wait_set,
    rate: *mut rnet_rate,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (set, object) = unsafe { (given(set, "set")?, rate_of(rate)?) };
        set.attach(rate, object)
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Removes an object; also during a wait. The object itself is unchanged.
///
/// Errors: RNET_BAD_VALUE if it is not attached.
///
/// # Safety
/// `set` is a wait set, `error` null or valid for a write. `object` is only compared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_wait_set_detach(
    set: *const rnet_wait_set,
    object: *const c_void,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let set = unsafe { given(set, "set") }?;
        let mut attached = lock(&set.attached);
        let before = attached.len();
        attached.retain(|(pointer, _)| pointer.0 != object);
        if attached.len() == before {
            let why = "it is not attached: attach it first";
            return Err(Error::bad_value("detach from a wait set", why).into());
        }
        drop(attached);
        set.handle.interrupt();
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Waits until an attached object may have a message, a change, a tick or an error, for at most `timeout_ns`:
/// RNET_FOREVER waits without a limit, 0 does not wait. `*ready_count` becomes the number of such objects, which
/// rnet_wait_set_ready() gives; 0 when the time is over, which is not an error.
///
/// An object that was not read is ready again at the next wait, and one may be ready without having anything. A closed
/// object is ready until it is detached or freed. Ends the borrowed samples of attached subscribers.
///
/// Errors: RNET_INTERRUPTED after rnet_wait_set_interrupt(); RNET_BAD_VALUE if an attached object belongs to another
/// node or has a file descriptor; RNET_CLOSED; RNET_WRONG_THREAD if another thread uses the set or an attached object.
///
/// # Safety
/// `set` is a wait set, `ready_count` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_wait_set_wait(
    set: *const rnet_wait_set,
    timeout_ns: i64,
    ready_count: *mut usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let set = unsafe { given(set, "set") }?;
        let timeout = duration(timeout_ns, "timeout_ns")?;
        let count = set.wait(Some(timeout).filter(|_| timeout_ns != RNET_FOREVER))?;
        // SAFETY: as promised by the caller.
        unsafe { write(ready_count, count) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The ready objects of the last wait, in the order of attachment: the pointers that were attached. Null from the
/// number that rnet_wait_set_wait() has given on, and if another thread waits.
///
/// # Safety
/// `set` is null or a wait set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_wait_set_ready(
    set: *const rnet_wait_set,
    at: usize,
) -> *const c_void {
    enter_or(std::ptr::null(), || {
        // SAFETY: as promised by the caller.
        let set = unsafe { given(set, "set") }?;
        let found = set.waiting.with(|waiting| Ok(waiting.ready.get(at).copied()))?;
        Ok(found.map_or(std::ptr::null(), |pointer| pointer.0))
    })
}

/// Ends the wait in progress, or the next one, with RNET_INTERRUPTED. A wait that becomes ready at the same moment
/// returns normally; then the next wait that is not ready is interrupted. Any thread may call it.
///
/// # Safety
/// `set` is null or a wait set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_wait_set_interrupt(set: *const rnet_wait_set) {
    enter_or((), || {
        // SAFETY: as promised by the caller.
        let set = unsafe { given(set, "set") }?;
        set.interrupted.store(true, Ordering::Release);
        set.handle.interrupt();
        Ok(())
    });
}

/// Frees a wait set; the attached objects stay open. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `set` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_wait_set_free(set: *mut rnet_wait_set) {
    // SAFETY: as promised by the caller.
    unsafe { free(set) }
}
