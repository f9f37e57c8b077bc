//! `rnet.WaitSet`: one wait for messages, changes of the state and ticks. `rnet.Merge` waits with one, too.
//!
//! A waiting thread holds the locks of all members. While it waits for one of these locks, it does not notice
//! requests for the others. So it asks a thread that waits with the lock to release it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rnet::{Error, WaitSetHandle, Waitable};

use crate::errors::{OrRaise, bad_value};
use crate::fair_mutex::{FairMutex, FairMutexGuard};
use crate::fork::{ForkGuard, ProcessOwned};
use crate::interpreter;
use crate::lock::lock;
use crate::members::{Member, MemberKind};
use crate::node::Node;
use crate::node_core::NodeCore;
use crate::reader::{Reader, ReaderState, Receiver, SHARED_WAIT_LIMIT};
use crate::state::watch::Watch;
use crate::subscriber::Subscriber;
use crate::timer::Rate;
use crate::wait::WaitLimit;
use crate::wait_queue::{self, Pollable};

/// If a wait set was asked to release its locks, it queues for this long before it asks for them itself.
/// Otherwise two waits for the same receivers would only interrupt each other.
const MAX_QUEUE_WAIT: Duration = Duration::from_millis(10);

/// A reader whose lock a wait set takes.
pub(crate) trait WaitSetReader: Pollable {
    /// Like [`FairMutex::lock_for_wait_set`]. Call it without the GIL.
    fn lock_member(&self, turn: Duration) -> rnet::Result<Box<dyn LockedMember + '_>>;
}

/// A member whose lock is held.
pub(crate) trait LockedMember {
    /// The part that rnet waits for. `None` if nothing will arrive: a message is already held, or the member
    /// was closed. A member that is being closed ends the wait.
    fn waitable(&mut self) -> rnet::Result<Option<&mut dyn Waitable>>;

    /// Whether a brief request for the lock is queued.
    fn has_brief_waiter(&self) -> bool {
        false
    }
}

impl<R: Receiver> WaitSetReader for Reader<R> {
    fn lock_member(&self, turn: Duration) -> rnet::Result<Box<dyn LockedMember + '_>> {
        Ok(Box::new((self, self.lock_for_wait_set(turn)?)))
    }
}

impl<R: Receiver> LockedMember for (&Reader<R>, FairMutexGuard<'_, ProcessOwned<ReaderState<R>>>) {
    fn waitable(&mut self) -> rnet::Result<Option<&mut dyn Waitable>> {
        match self.0.inner(&mut self.1) {
            Ok((inner, lookahead)) => Ok(lookahead.is_none().then_some(inner as _)),
            Err(Error::Closed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn has_brief_waiter(&self) -> bool {
        self.1.has_brief_waiter()
    }
}

impl LockedMember for rnet::Rate {
    fn waitable(&mut self) -> rnet::Result<Option<&mut dyn Waitable>> {
        Ok(Some(self))
    }
}

enum MemberSource {
    Reader(Arc<dyn WaitSetReader>),
    Rate(Py<Rate>),
}

struct AttachedMember {
    object: Py<PyAny>,
    source: MemberSource,
}

/// One item of a wait.
enum WaitItem {
    Reader(Arc<dyn WaitSetReader>),
    Rate(rnet::Rate),
}

impl AttachedMember {
    /// `None` for a rate that another thread sleeps with.
    fn wait_item(&self) -> Option<WaitItem> {
        match &self.source {
            MemberSource::Reader(core) => Some(WaitItem::Reader(core.clone())),
            MemberSource::Rate(rate) => interpreter::attach(|py| {
                rate.bind(py)
                    .try_borrow_mut()
                    .ok()
                    .map(|mut rate| WaitItem::Rate(rate.clone_rate()))
            })?,
        }
    }
}

impl WaitItem {
    /// Every thread takes the locks in the order of these addresses.
    fn address(&self) -> usize {
        self.reader().map_or(0, |core| Arc::as_ptr(core).addr())
    }

    fn reader(&self) -> Option<&Arc<dyn WaitSetReader>> {
        match self {
            WaitItem::Reader(core) => Some(core),
            WaitItem::Rate(_) => None,
        }
    }

    fn lock(&self, turn: Duration) -> rnet::Result<Box<dyn LockedMember + '_>> {
        match self {
            WaitItem::Reader(core) => core.lock_member(turn),
            WaitItem::Rate(rate) => Ok(Box::new(rate.clone())),
        }
    }
}

/// The indices of the members that may have an item or an error.
fn ready(locked: &mut [Box<dyn LockedMember + '_>]) -> rnet::Result<Vec<usize>> {
    let mut ready = Vec::new();
    for (at, one) in locked.iter_mut().enumerate() {
        if one.waitable()?.is_none_or(|one| one.is_ready()) {
            ready.push(at);
        }
    }
    Ok(ready)
}

/// State shared by the Python object and the node.
struct WaitSetCore {
    name: String,
    /// Threads wait in turn.
    set: FairMutex<rnet::WaitSet>,
    /// Ends the current wait.
    handle: WaitSetHandle,
    closed: AtomicBool,
    fork_guard: ForkGuard,
}

impl WaitSetCore {
    fn check(&self) -> rnet::Result<()> {
        if self.fork_guard.is_from_parent() || self.closed.load(Ordering::Acquire) {
            let what = self.fork_guard.name(format!("a wait set of node {}", self.name));
            return Err(Error::Closed { what });
        }
        Ok(())
    }

    /// Waits for a slice of time until some of `ones`, which are sorted by address, are ready. `was_asked`:
    /// the last slice ended because another thread requested a lock. Call it without the GIL.
    fn wait(
        &self,
        ones: &[WaitItem],
        slice: Duration,
        was_asked: bool,
    ) -> rnet::Result<Vec<usize>> {
        let what = "an event of the wait set".to_owned();
        let timed_out = || Error::timeout("", what, Duration::ZERO);
        let began = Instant::now();
        let (mut set, _) = self.set.lock_to_wait(slice, timed_out.clone())?;
        let turn = if was_asked { MAX_QUEUE_WAIT.min(slice) } else { Duration::ZERO };
        let locked: rnet::Result<Vec<_>> = ones.iter().map(|one| one.lock(turn)).collect();
        let mut locked = locked?;
        let found = ready(&mut locked)?;
        if !found.is_empty() {
            return Ok(found);
        }
        if locked.iter().any(|one| one.has_brief_waiter()) {
            return Err(Error::Interrupted);
        }
        let awaited = locked.iter_mut().filter_map(|one| one.waitable().transpose());
        let mut awaited: Vec<&mut dyn Waitable> = awaited.collect::<rnet::Result<_>>()?;
        let mut left = slice.saturating_sub(began.elapsed());
        if ones.iter().filter_map(WaitItem::reader).any(|core| core.wait_queue().has_waiters()) {
            left = left.min(SHARED_WAIT_LIMIT);
        }
        set.wait_timeout(&mut awaited, left)?;
        // Also before the time-out is reported.
        let found = ready(&mut locked)?;
        if found.is_empty() { Err(timed_out()) } else { Ok(found) }
    }
}

impl Member for WaitSetCore {
    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.handle.interrupt();
    }
}

/// Waits for any number of subscribers and watches of a node, and of rates, which can be added and removed at
/// run time.
///
/// `wait` returns those that have something to read; what is not read ends the next wait at once. So a busy
/// member does not hide others, and the program decides which to serve first. Any thread may use it. Ctrl-C
/// ends a wait.
///
/// >>> orders, mode = node.subscriber("/orders", bytes), node.state.watch("/mode")
/// >>> waiting = rnet.WaitSet(node)
/// >>> waiting.attach(orders)
/// >>> waiting.attach(mode)
/// >>> node.state["/mode"] = "idle"
/// >>> [member.try_recv().value for member in waiting.wait(timeout=10)]
/// ['idle']
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct WaitSet {
    core: Arc<WaitSetCore>,
    node: Arc<NodeCore>,
    /// In the order of attachment. Never held during a wait.
    attached: Mutex<Vec<Arc<AttachedMember>>>,
}

impl WaitSet {
    pub(crate) fn of(py: Python<'_>, node: &Arc<NodeCore>) -> PyResult<WaitSet> {
        let mut set = node.with(py, rnet::WaitSet::new)?;
        set.set_interruptible(true);
        let core = Arc::new(WaitSetCore {
            name: node.name.clone(),
            handle: set.handle(),
            set: FairMutex::new(set),
            closed: AtomicBool::new(false),
            fork_guard: ForkGuard::here(),
        });
        py.detach(|| node.members.add(MemberKind::WaitSet, &core));
        Ok(WaitSet { core, node: node.clone(), attached: Mutex::default() })
    }

    /// Waits until a member is ready. The inner error is a time-out.
    fn take(&self, py: Python<'_>, limit: WaitLimit) -> PyResult<rnet::Result<Vec<Py<PyAny>>>> {
        let mut was_asked = false;
        let ready = limit.try_run(py, |slice| {
            self.core.check()?;
            let attached = lock(&self.attached).clone();
            let with_place =
                |(at, one): (usize, &Arc<AttachedMember>)| Some((one.wait_item()?, at));
            let mut ones: Vec<_> = attached.iter().enumerate().filter_map(with_place).collect();
            ones.sort_by_key(|(one, _)| one.address());
            let (ones, places): (Vec<WaitItem>, Vec<usize>) = ones.into_iter().unzip();
            let ready = self.core.wait(&ones, slice, was_asked);
            ones.iter().filter_map(WaitItem::reader).for_each(wait_queue::wake_or_arm);
            was_asked = matches!(ready, Err(Error::Interrupted));
            let mut ready: Vec<_> = ready?.into_iter().map(|at| places[at]).collect();
            ready.sort_unstable();
            let mut ready: Vec<_> = ready.into_iter().map(|at| attached[at].clone()).collect();
            // Members that were detached meanwhile are not reported; the wait then continues.
            let still = lock(&self.attached);
            ready.retain(|one| still.iter().any(|other| Arc::ptr_eq(one, other)));
            drop(still);
            if ready.is_empty() { Err(Error::Interrupted) } else { Ok(ready) }
        })?;
        Ok(ready.map(|ready| ready.iter().map(|one| one.object.clone_ref(py)).collect()))
    }

    fn source(&self, object: &Bound<'_, PyAny>) -> PyResult<MemberSource> {
        let (node, source) = if let Ok(subscriber) = object.cast::<Subscriber>() {
            let subscriber = subscriber.get();
            (subscriber.node(), MemberSource::Reader(subscriber.core().clone()))
        } else if let Ok(watch) = object.cast::<Watch>() {
            (watch.get().node(), MemberSource::Reader(watch.get().core().clone()))
        } else if let Ok(rate) = object.cast::<Rate>() {
            (&self.node, MemberSource::Rate(rate.clone().unbind()))
        } else {
            let shown = object.repr()?;
            return Err(PyTypeError::new_err(format!(
                "{shown} is not a Subscriber, Watch or Rate"
            )));
        };
        if Arc::ptr_eq(node, &self.node) {
            return Ok(source);
        }
        let (theirs, ours) = (&node.name, &self.node.name);
        let why = format!(
            "it belongs to node {theirs}, but the set to node {ours}: use one set per node"
        );
        Err(bad_value(object.py(), "attach to a wait set", why))
    }

    fn index_of(attached: &[Arc<AttachedMember>], object: &Bound<'_, PyAny>) -> Option<usize> {
        attached.iter().position(|one| one.object.is(object))
    }
}

#[pymethods]
impl WaitSet {
    /// Creates a wait set for members of `node`.
    #[new]
    fn new(py: Python<'_>, node: &Node) -> PyResult<WaitSet> {
        WaitSet::of(py, &node.shared)
    }

    /// A wait set of a subscriber's node.
    #[staticmethod]
    fn _of(py: Python<'_>, subscriber: &Subscriber) -> PyResult<WaitSet> {
        WaitSet::of(py, &subscriber.node)
    }

    /// Adds a Subscriber, a Watch or a Rate until it is detached; also takes effect in a running wait.
    #[pyo3(signature = (member, /))]
    fn attach(&self, member: &Bound<'_, PyAny>) -> PyResult<()> {
        self.core.check().or_raise(member.py())?;
        let (source, object) = (self.source(member)?, member.clone().unbind());
        let mut attached = lock(&self.attached);
        if WaitSet::index_of(&attached, member).is_some() {
            drop(attached);
            return Err(bad_value(
                member.py(),
                "attach to a wait set",
                "it is already attached: detach it first",
            ));
        }
        attached.push(Arc::new(AttachedMember { object, source }));
        drop(attached);
        self.core.handle.interrupt();
        Ok(())
    }

    /// Removes a member; also takes effect in a running wait. The member itself is unchanged.
    #[pyo3(signature = (member, /))]
    fn detach(&self, member: &Bound<'_, PyAny>) -> PyResult<()> {
        self.core.check().or_raise(member.py())?;
        let mut attached = lock(&self.attached);
        let detached = WaitSet::index_of(&attached, member).map(|at| attached.remove(at));
        drop(attached);
        if detached.is_none() {
            return Err(bad_value(
                member.py(),
                "detach from a wait set",
                "it is not attached: attach it first",
            ));
        }
        self.core.handle.interrupt();
        Ok(())
    }

    /// Waits until one or more members may have a message, a change, a tick or an error, and returns these in
    /// the order in which they were attached: call `try_recv` or `try_tick` on each. Returns an empty list
    /// after `timeout` seconds. Closed members are returned too, until they are detached. Raises ClosedError when
    /// the node is closed.
    #[pyo3(signature = (*, timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Vec<Py<PyAny>>> {
        // The inner error is the time-out of this wait. A WaitTimeoutError of a signal handler is raised.
        Ok(self.take(py, WaitLimit::new(py, timeout)?)?.unwrap_or_default())
    }

    /// Like `wait`, with `left`, the rest of `timeout`, as its limit; raises WaitTimeoutError when that is
    /// over.
    fn _wait(&self, py: Python<'_>, left: Option<f64>, timeout: Option<f64>) -> PyResult<()> {
        let limit = WaitLimit::new(py, left)?.part_of(py, timeout)?;
        self.take(py, limit)?.map(drop).or_raise(py)
    }

    fn __len__(&self) -> usize {
        if self.core.fork_guard.is_from_parent() { 0 } else { lock(&self.attached).len() }
    }
}
