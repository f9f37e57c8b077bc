//! `rnet.Merge`: one wait for many topics.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rnet::Error;

use crate::errors::{OrRaise, bad_value, is_malformed, pass_over};
use crate::held::lock;
use crate::receive::{Passing, RawSample, SubscriberCore};
use crate::subscriber::Subscriber;
use crate::together::{Locked, One, Together};
use crate::wait::{Stop, WaitLimit};

/// Receives from several subscribers of one node, in turn, with one wait for all.
///
/// `for subscriber, message in Merge(a, b)` receives for ever; it ends when all are closed.
///
/// >>> imu, stop = node.subscribe("/imu"), node.subscribe("/stop")
/// >>> button = node.publisher("/stop")
/// >>> button.wait_for_subscribers()
/// >>> button.send(b"now")
/// >>> ready, message = rnet.Merge(imu, stop).recv(timeout=10)
/// >>> ready.topic, bytes(message)
/// ('/stop', b'now')
#[pyclass(frozen, module = "rnet")]
pub(crate) struct Merge {
    subscribers: Vec<Py<Subscriber>>,
    by_name: Vec<Arc<SubscriberCore>>,
    /// In the order in which their locks are taken, which is the same for everybody.
    by_address: Vec<One>,
    /// For each of `by_name` its place in `by_address`.
    places: Vec<usize>,
    together: Together,
    /// Who is asked first.
    turn: Mutex<usize>,
}

/// A message and whose it is.
type Found<'py> = (Py<Subscriber>, Bound<'py, PyAny>);

impl Merge {
    /// As [`SubscriberCore::passes_over`], of the subscriber that it happened to.
    fn passes_over(&self, error: &Error) -> Passing {
        let topic = match error {
            Error::IncompatibleType { topic, .. } | Error::IncompatibleQos { topic, .. } => topic,
            _ => return self.by_name[0].passes_over(error),
        };
        let of_topic = self.by_name.iter().filter(|core| core.topic() == topic);
        let mut passing = of_topic.map(|core| core.passes_over(error));
        passing.find(|one| matches!(one, Passing::Silent)).unwrap_or(Passing::Warns)
    }

    fn all_closed(&self) -> bool {
        self.by_name.iter().all(|core| core.is_closed())
    }

    /// A message that is there, and whose it is. Who is asked first moves on, so that a busy topic
    /// hides no other. `locked` is by address.
    fn look(&self, locked: &mut [Locked<'_>]) -> rnet::Result<Option<(usize, RawSample)>> {
        let count = self.by_name.len();
        let mut turn = lock(&self.turn);
        for step in 0..count {
            let at = (*turn + step) % count;
            let core = &self.by_name[at];
            let Locked::Subscriber(_, state) = &mut locked[self.places[at]] else { continue };
            match core.look_with(state) {
                Ok(Some(received)) => {
                    *turn = (at + 1) % count;
                    return Ok(Some((at, received)));
                }
                Ok(None) => {}
                Err(Error::Closed { .. }) if core.is_closed() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Waits for a message for a slice of time, as [`Together::wait`].
    fn next(&self, slice: Duration, gave_way: bool) -> rnet::Result<(usize, RawSample)> {
        let check = || match self.all_closed() {
            true => Err(Error::Closed { what: "every subscriber of the merge".to_owned() }),
            false => Ok(()),
        };
        check()?;
        let look = |locked: &mut [Locked<'_>]| match self.look(locked) {
            Ok(None) => check().map(|()| None),
            found => found,
        };
        self.together.wait(&self.by_address, slice, gave_way, look)
    }

    fn take<'py>(&self, py: Python<'py>, wait_limit: &WaitLimit) -> Result<Found<'py>, Stop> {
        let mut gave_way = false;
        let (at, received) = wait_limit.run(py, |slice| {
            let result = self.next(slice, gave_way);
            gave_way = matches!(result, Err(Error::Interrupted));
            result
        })?;
        let subscriber = &self.subscribers[at];
        let message = subscriber.get().value_of(py, received).map_err(Stop::Raised)?;
        Ok((subscriber.clone_ref(py), message))
    }
}

#[pymethods]
impl Merge {
    #[new]
    #[pyo3(signature = (*subscribers))]
    fn new(py: Python<'_>, subscribers: Vec<Py<Subscriber>>) -> PyResult<Merge> {
        let Some(first) = subscribers.first() else {
            return Err(bad_value(py, "Merge", "it needs a subscriber or more"));
        };
        if subscribers.iter().any(|s| !Arc::ptr_eq(s.get().node(), first.get().node())) {
            return Err(bad_value(py, "Merge", "all subscribers must be of one node"));
        }
        let (together, _) = Together::new(first.get().node()).or_raise(py)?;
        let by_name: Vec<_> = subscribers.iter().map(|s| s.get().core().clone()).collect();
        let mut by_address = by_name.clone();
        by_address.sort_by_key(Arc::as_ptr);
        by_address.dedup_by(|a, b| Arc::ptr_eq(a, b));
        if by_address.len() < subscribers.len() {
            return Err(bad_value(py, "Merge", "a subscriber is named twice: name each once"));
        }
        let place = |core| by_address.iter().position(|other| Arc::ptr_eq(other, core));
        let places = by_name.iter().filter_map(place).collect();
        let by_address = by_address.into_iter().map(One::Subscriber).collect();
        Ok(Merge { subscribers, by_name, by_address, places, together, turn: Mutex::new(0) })
    }

    /// The next message of any, with its subscriber: `subscriber, message = merge.recv()`.
    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Found<'py>> {
        self.take(py, &WaitLimit::new(py, timeout)?).map_err(|stop| stop.into_err(py))
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Found<'py>>> {
        loop {
            match self.take(py, &WaitLimit::endless()) {
                Ok(found) => return Ok(Some(found)),
                Err(Stop::Error(Error::Closed { .. })) => return Ok(None),
                // As in the iteration of a single subscriber.
                Err(Stop::Error(error)) => {
                    let passing = py.detach(|| self.passes_over(&error));
                    pass_over(py, &error, passing)?;
                }
                Err(Stop::Raised(error)) if is_malformed(py, &error) => {}
                Err(stop) => return Err(stop.into_err(py)),
            }
        }
    }

    /// The subscribers.
    #[getter]
    fn subscribers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.subscribers)
    }
}
