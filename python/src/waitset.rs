//! `rnet.WaitSet`: one wait for messages, changes of the state and ticks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rnet::{Error, WaitSetHandle};

use crate::errors::{OrRaise, bad_value};
use crate::gate;
use crate::held::lock;
use crate::members::{Kind, Member};
use crate::node::Node;
use crate::receive::SubscriberCore;
use crate::shared::NodeShared;
use crate::state::watch::{Watch, WatchCore};
use crate::subscriber::Subscriber;
use crate::timer::Rate;
use crate::together::{Locked, One, Together};
use crate::wait::{Stop, WaitLimit};

enum Source {
    Subscriber(Arc<SubscriberCore>),
    Watch(Arc<WatchCore>),
    Rate(Py<Rate>),
}

struct Attached {
    object: Py<PyAny>,
    source: Source,
}

impl Attached {
    /// `None` for a rate that another thread sleeps with.
    fn one(&self) -> Option<One> {
        match &self.source {
            Source::Subscriber(core) => Some(One::Subscriber(core.clone())),
            Source::Watch(core) => Some(One::Watch(core.clone())),
            Source::Rate(rate) => gate::enter(|py| {
                rate.bind(py).try_borrow_mut().ok().map(|mut rate| One::Rate(rate.same()))
            })?,
        }
    }
}

/// What the Python object and the node share.
struct WaitSetCore {
    name: String,
    together: Together,
    /// Ends the wait that goes on.
    handle: WaitSetHandle,
    closed: AtomicBool,
}

impl WaitSetCore {
    fn check(&self) -> rnet::Result<()> {
        if self.together.is_parents() || self.closed.load(Ordering::Acquire) {
            let what = self.together.of_parent(format!("a wait set of node {}", self.name));
            return Err(Error::Closed { what });
        }
        Ok(())
    }
}

impl Member for WaitSetCore {
    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.handle.interrupt();
    }
}

/// One wait for any number of subscribers and watches of a node, and of rates, which come and go at run time.
///
/// `wait` says which of them have something; what is not taken ends the next wait at once. So a busy one hides
/// no other, and the program chooses whom it serves first. Any thread may use it. Ctrl-C ends a wait.
///
/// >>> orders, mode = node.subscribe("/orders", bytes), node.state.watch("/mode")
/// >>> waiting = rnet.WaitSet(node)
/// >>> waiting.attach(orders)
/// >>> waiting.attach(mode)
/// >>> node.state["/mode"] = "idle"
/// >>> [member.try_recv().value for member in waiting.wait(timeout=10)]
/// ['idle']
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct WaitSet {
    core: Arc<WaitSetCore>,
    node: Arc<NodeShared>,
    /// In the order in which they were attached. Never held while anything else is waited for.
    attached: Mutex<Vec<Arc<Attached>>>,
}

impl WaitSet {
    fn source(&self, object: &Bound<'_, PyAny>) -> PyResult<Source> {
        let (node, source) = if let Ok(subscriber) = object.cast::<Subscriber>() {
            let subscriber = subscriber.get();
            (subscriber.node(), Source::Subscriber(subscriber.core().clone()))
        } else if let Ok(watch) = object.cast::<Watch>() {
            (watch.get().node(), Source::Watch(watch.get().core().clone()))
        } else if let Ok(rate) = object.cast::<Rate>() {
            (&self.node, Source::Rate(rate.clone().unbind()))
        } else {
            let shown = object.repr()?;
            return Err(PyTypeError::new_err(format!("{shown} is no Subscriber, Watch or Rate")));
        };
        if Arc::ptr_eq(node, &self.node) {
            return Ok(source);
        }
        let (theirs, ours) = (&node.name, &self.node.name);
        let why =
            format!("it is of node {theirs} and the set of node {ours}: make one for each node");
        Err(bad_value(object.py(), "attach to a wait set", why))
    }

    fn place(attached: &[Arc<Attached>], object: &Bound<'_, PyAny>) -> Option<usize> {
        attached.iter().position(|one| one.object.is(object))
    }
}

#[pymethods]
impl WaitSet {
    /// A set for what is of `node`.
    #[new]
    fn new(py: Python<'_>, node: &Node) -> PyResult<WaitSet> {
        let node = node.shared.clone();
        let (together, handle) = Together::new(&node).or_raise(py)?;
        let name = node.name.clone();
        let core = Arc::new(WaitSetCore { name, together, handle, closed: AtomicBool::new(false) });
        py.detach(|| node.members.add(Kind::WaitSet, &core));
        Ok(WaitSet { core, node, attached: Mutex::default() })
    }

    /// Has the set wait for a Subscriber, a Watch or a Rate, until it is detached; a wait that goes on includes it.
    #[pyo3(signature = (member, /))]
    fn attach(&self, member: &Bound<'_, PyAny>) -> PyResult<()> {
        self.core.check().or_raise(member.py())?;
        let (source, object) = (self.source(member)?, member.clone().unbind());
        let mut attached = lock(&self.attached);
        if WaitSet::place(&attached, member).is_some() {
            drop(attached);
            return Err(bad_value(
                member.py(),
                "attach to a wait set",
                "it is attached already: detach it first",
            ));
        }
        attached.push(Arc::new(Attached { object, source }));
        drop(attached);
        self.core.handle.interrupt();
        Ok(())
    }

    /// Has the set wait for it no longer, not even in a wait that goes on. It stays as it is otherwise.
    #[pyo3(signature = (member, /))]
    fn detach(&self, member: &Bound<'_, PyAny>) -> PyResult<()> {
        self.core.check().or_raise(member.py())?;
        let mut attached = lock(&self.attached);
        let detached = WaitSet::place(&attached, member).map(|at| attached.remove(at));
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

    /// Waits until one or more of what is attached may have a message, a change, a tick or an error, and returns
    /// these, in the order in which they were attached: call `try_recv` or `try_tick` of each. Returns an empty
    /// list when `timeout` seconds are over. One that was closed is returned, too, until it is detached. Raises
    /// Closed when the node is closed.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Vec<Py<PyAny>>> {
        let mut gave_way = false;
        let waited = WaitLimit::new(py, timeout)?.run(py, |slice| {
            self.core.check()?;
            let attached = lock(&self.attached).clone();
            let with_place = |(at, one): (usize, &Arc<Attached>)| Some((one.one()?, at));
            let mut ones: Vec<_> = attached.iter().enumerate().filter_map(with_place).collect();
            ones.sort_by_key(|(one, _)| one.address());
            let (ones, places): (Vec<One>, Vec<usize>) = ones.into_iter().unzip();
            let look = |locked: &mut [Locked<'_>]| {
                let mut ready = Vec::new();
                for (one, at) in locked.iter_mut().zip(&places) {
                    ready.extend(one.is_ready()?.then_some(*at));
                }
                ready.sort_unstable();
                Ok((!ready.is_empty()).then_some(ready))
            };
            let ready = self.core.together.wait(&ones, slice, gave_way, look);
            gave_way = matches!(ready, Err(Error::Interrupted));
            let mut ready: Vec<_> = ready?.into_iter().map(|at| attached[at].clone()).collect();
            // What was detached meanwhile has nothing to say; then the wait goes on.
            let still = lock(&self.attached);
            ready.retain(|one| still.iter().any(|other| Arc::ptr_eq(one, other)));
            drop(still);
            if ready.is_empty() { Err(Error::Interrupted) } else { Ok(ready) }
        });
        match waited {
            Ok(ready) => Ok(ready.iter().map(|one| one.object.clone_ref(py)).collect()),
            Err(Stop::Error(Error::Timeout { .. })) => Ok(Vec::new()),
            Err(stop) => Err(stop.into_err(py)),
        }
    }

    fn __len__(&self) -> usize {
        if self.core.together.is_parents() { 0 } else { lock(&self.attached).len() }
    }
}
