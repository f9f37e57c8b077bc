//! `rnet.CallbackHandle`: a callback that runs until it is cancelled or its node is closed.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use rnet::{Sample, SubscriberQos};

use crate::callback::Callback;
use crate::codec::Codec;
use crate::compare::published_type;
use crate::errors::OrRaise;
use crate::events;
use crate::interpreter;
use crate::lock::lock;
use crate::members::Member;
use crate::meta::make;
use crate::receive::Incoming;
use crate::resource::Resource;
use crate::sample;

/// Number of publishers whose types are cached.
const MAX_CACHED_PUBLISHERS: usize = 4096;
/// Number of messages that wait for the event loop of an async callback. Each may be large and in place, and
/// a reader may keep 64 of these.
const MAX_PENDING_MESSAGES: usize = 16;

/// A running callback, kept by its node until it is cancelled. Dropping the value ends the callback.
type HandleCore = Resource<Box<dyn Any + Send>>;

/// Removes a callback that was cancelled. A handle that is only collected leaves it in place.
struct HookGuard {
    guard: Option<rnet::CallbackGuard>,
    cancelled: Arc<AtomicBool>,
}

impl Drop for HookGuard {
    fn drop(&mut self) {
        match self.guard.take() {
            Some(guard) if self.cancelled.load(Ordering::SeqCst) => drop(guard),
            guard => guard.map(rnet::CallbackGuard::detach).unwrap_or_default(),
        }
    }
}

/// A function of the engine for one kind of event.
type Hook<E> = Box<dyn FnMut(&E) + Send>;

/// A hook that calls `callback` with the event that `make` makes, until the returned flag is set.
fn hook<E: 'static>(
    py: Python<'_>,
    callback: &Callback,
    make: fn(Python<'_>, &E) -> PyResult<Py<PyAny>>,
) -> PyResult<(Arc<AtomicBool>, Hook<E>)> {
    let cancelled = Arc::<AtomicBool>::default();
    let over = cancelled.clone();
    let callback = callback.for_threads_until(py, None, &cancelled)?;
    let call = move |event: &E| {
        if !over.load(Ordering::Acquire) {
            events::call_with_event(&callback, |py| make(py, event));
        }
    };
    Ok((cancelled, Box::new(call)))
}

/// A registered callback, called until it is cancelled or its node is closed. Created by `Node.on_endpoint`,
/// `Node.on_node`, `Node.subscribe_any`, and by the `on_match`, `on_deadline` and `on_liveliness` of publishers
/// and subscribers.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct CallbackHandle {
    core: Arc<HandleCore>,
    /// Ends the calls of a hook at once. Not set by the collection of the handle, after which the hook runs on.
    cancelled: Arc<AtomicBool>,
    /// The object that runs an async callback on an event loop.
    on_loop: Option<Py<PyAny>>,
}

impl CallbackHandle {
    fn start<H: Any + Send>(
        py: Python<'_>,
        cancelled: Arc<AtomicBool>,
        start: impl FnOnce() -> rnet::Result<H> + Send,
    ) -> PyResult<CallbackHandle> {
        let held: Box<dyn Any + Send> = Box::new(py.detach(start).or_raise(py)?);
        let core = HandleCore::with_callbacks("the callback".to_owned(), held, cancelled.clone());
        Ok(CallbackHandle { core: Arc::new(core), cancelled, on_loop: None })
    }

    /// The handle of a callback for events of a node or an endpoint, which keep it until it is cancelled.
    pub(crate) fn for_events<E: 'static>(
        py: Python<'_>,
        callback: Callback,
        make: fn(Python<'_>, &E) -> PyResult<Py<PyAny>>,
        add: impl FnOnce(Hook<E>) -> PyResult<rnet::CallbackGuard>,
    ) -> PyResult<CallbackHandle> {
        let (cancelled, hook) = hook(py, &callback, make)?;
        let guard = Some(add(hook)?);
        let held: Box<dyn Any + Send> = Box::new(HookGuard { guard, cancelled: cancelled.clone() });
        let core = HandleCore::with_callbacks("the callback".to_owned(), held, Arc::default());
        Ok(CallbackHandle { core: Arc::new(core), cancelled, on_loop: None })
    }

    pub(crate) fn on_endpoint(
        py: Python<'_>,
        node: &rnet::Node,
        callback: Callback,
    ) -> PyResult<CallbackHandle> {
        let (cancelled, hook) = hook(py, &callback, events::endpoint)?;
        Self::start(py, cancelled, || node.on_endpoint(hook))
    }

    pub(crate) fn subscribe_any(
        py: Python<'_>,
        node: &rnet::Node,
        pattern: &str,
        qos: SubscriberQos,
        (callback, on_error): (Callback, Option<Callback>),
    ) -> PyResult<CallbackHandle> {
        let cancelled = Arc::<AtomicBool>::default();
        let is_async = callback.is_async(py)?;
        let callback = callback.for_threads_until(py, Some(MAX_PENDING_MESSAGES), &cancelled)?;
        let on_error = Callback::optional(py, on_error, None)?;
        let on_loop = is_async.then(|| callback.clone_ref(py));
        let (over, types) = (cancelled.clone(), TypeCache::default());
        let decoder = Codec::new(py, None)?.for_subscriber(rnet::MalformedCounter::default());
        let call = move |message: rnet::Result<Sample<'_, [u8]>>| {
            if over.load(Ordering::Acquire) {
                return;
            }
            match message {
                Ok(sample) => {
                    let topic = sample.topic().to_owned();
                    events::call_with_optional_event(&callback, |py| {
                        let named = types.of(py, &sample)?;
                        let incoming = Incoming::Borrowed(sample);
                        let Some(sample) = incoming.unless_expired() else { return Ok(None) };
                        let sample = sample::new(py, sample, decoder.clone())?;
                        make(py, "AnyMessage", (topic, named, sample)).map(Some)
                    });
                }
                Err(error) => events::report_error(&callback, on_error.as_ref(), &error),
            }
        };
        let handle =
            Self::start(py, cancelled, || node.subscriber::<[u8]>(pattern).qos(qos).on_any(call))?;
        Ok(CallbackHandle { on_loop, ..handle })
    }

    pub(crate) fn core(&self) -> &Arc<HandleCore> {
        &self.core
    }
}

/// The types of publishers, as `rnet.types.PublishedType`, by publisher id. The lock is not held while Python
/// runs, because Python may switch threads.
#[derive(Default)]
struct TypeCache(Mutex<HashMap<u64, Py<PyAny>>>);

impl TypeCache {
    /// The type of a message's publisher.
    fn of(&self, py: Python<'_>, sample: &Sample<'_, [u8]>) -> PyResult<Py<PyAny>> {
        let publisher = sample.publisher();
        if let Some(known) = lock(&self.0).get(&publisher) {
            return Ok(known.clone_ref(py));
        }
        // A type that cannot be read is shown without its descriptor set.
        let schema = sample.schema().ok().flatten();
        let (node, desc) = (sample.node(), sample.type_desc());
        let made = published_type(py, publisher, node, desc, schema.as_ref())?;
        let mut types = lock(&self.0);
        let forgotten = (types.len() >= MAX_CACHED_PUBLISHERS).then(|| std::mem::take(&mut *types));
        types.insert(publisher, made.clone_ref(py));
        drop(types);
        drop(forgotten);
        Ok(made)
    }
}

#[pymethods]
impl CallbackHandle {
    /// Cancels the callback. Waits for a running call, except in a callback.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.cancelled.store(true, Ordering::SeqCst);
        let core = self.core.clone();
        interpreter::close(py, move || core.close())
    }

    /// Whether it was cancelled.
    #[getter]
    fn cancelled(&self) -> bool {
        self.core.is_closed()
    }

    /// Messages skipped for an async callback of `Node.subscribe_any`: at most 16 wait for its event loop; of
    /// more, the oldest are skipped.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> PyResult<u64> {
        let skipped = |on_loop: &Py<PyAny>| on_loop.getattr(py, "skipped")?.extract(py);
        self.on_loop.as_ref().map_or(Ok(0), skipped)
    }
}
