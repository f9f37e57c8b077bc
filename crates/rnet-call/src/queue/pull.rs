//! A worker of a work queue: a server that runs one call at a time, without a backlog.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rnet_core::{CancelReason, Error, Result};
use rnet_node::sync::{lock, wait};
use rnet_node::types::choose_type;
use rnet_shm::ring::fail_point;

use super::super::server_core::{Call, HandlerOutcome};
use super::super::service::{CallContext, HandlerError, Service, run_handler};
use super::super::service_stats::ServiceStats;
use super::super::settings::ServerSettings;
use super::super::{Bytes, REDELIVERED, Received};
use rnet_node::{Message, MessageType, NodeHandle};

/// A builder for a worker, made by `rnet::Node::pull`.
#[must_use = "no job comes until open() or on() is called"]
pub struct PullBuilder<J: ?Sized> {
    node: NodeHandle,
    name: String,
    ty: Option<MessageType>,
    _type: PhantomData<fn(&J)>,
}

impl<J: Message + ?Sized> PullBuilder<J> {
    #[doc(hidden)]
    pub fn new(node: &NodeHandle, name: &str) -> Self {
        PullBuilder { node: node.clone(), name: name.to_owned(), ty: None, _type: PhantomData }
    }

    /// The type, for jobs that leave it open: `[u8]`, which are then received as they are, and
    /// [`rnet_node::Dynamic`].
    pub fn message_type(mut self, ty: MessageType) -> Self {
        self.ty = Some(ty);
        self
    }

    /// Opens a worker whose jobs are received and acknowledged one by one.
    ///
    /// # Errors
    /// `BadName`; `BadValue` for a type that does not match the jobs; as `rnet::Node::subscriber`.
    pub fn open(self) -> Result<Puller<J>> {
        let ty = choose_type::<J>(&self.name, self.ty)?;
        let slot = Arc::new(JobSlot::default());
        let this = slot.clone();
        let run = move |call: &mut Call| this.offer(call);
        let types = (ty.clone(), choose_type::<[u8]>(&self.name, None)?);
        let service = Service::open(&self.node, worker_settings(&self.name), types, Box::new(run))?;
        Ok(Puller { slot, service, ty, _type: PhantomData })
    }

    /// Opens a worker with a handler on its own thread. A job is acknowledged when its handler returns; a job
    /// that fails or panics is reported to the pusher, and not delivered again. This also applies while the
    /// worker closes, unless the handler has read `true` from [`JobContext::is_cancelled`]: such a job goes
    /// to another worker.
    ///
    /// # Errors
    /// As [`PullBuilder::open`].
    pub fn on(
        self,
        handler: impl Fn(&J, &JobContext) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Result<Service> {
        let ty = choose_type::<J>(&self.name, self.ty)?;
        let types = (ty.clone(), choose_type::<[u8]>(&self.name, None)?);
        let errors = self.node.core.state.errors.clone();
        let run = move |call: &mut Call| {
            let outcome = run_handler(call, &ty, &errors, |job, call| {
                handler(job, &JobContext(call.context())).map(|()| HandlerOutcome::Returned)
            });
            match outcome {
                // A handler that has seen the cancellation may have left the job half done.
                outcome if call.is_cancel_seen() => outcome,
                HandlerOutcome::Failed(error) => HandlerOutcome::JobResult(Err(error)),
                _ => HandlerOutcome::JobResult(Ok(())),
            }
        };
        Service::open(&self.node, worker_settings(&self.name), types, Box::new(run))
    }
}

/// A busy worker refuses: the pusher has others, or waits for one.
fn worker_settings(name: &str) -> ServerSettings {
    ServerSettings { backlog: 0, requeues: true, ..ServerSettings::new(name) }
}

/// Status of a job for its worker.
#[derive(Clone)]
pub struct JobContext(CallContext);

impl JobContext {
    /// Whether another worker had it and was lost, or did not acknowledge it in time. It may already be done.
    pub fn redelivered(&self) -> bool {
        self.0.number & REDELIVERED != 0
    }

    /// The node that pushed it.
    pub fn pusher(&self) -> &str {
        self.0.caller()
    }

    /// Whether the acknowledgement is no longer needed: its pusher is gone or no longer waits, or the worker
    /// is closing.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// As [`CallContext::peek_cancel_reason`].
    #[doc(hidden)]
    pub fn peek_cancel_reason(&self) -> Option<CancelReason> {
        self.0.peek_cancel_reason()
    }
}

/// The slot in which a server thread leaves its job for the receiver, and waits for its outcome.
#[derive(Default)]
enum SlotState {
    #[default]
    Empty,
    Offered(Bytes, JobContext),
    Taken,
    Ended(HandlerOutcome),
    /// Whether the job of the waiting thread was already received.
    Closed {
        taken: bool,
    },
}

#[derive(Default)]
struct JobSlot {
    state: Mutex<SlotState>,
    changed: Condvar,
    /// A task that waits for an offer.
    task: Mutex<Option<Waker>>,
}

impl JobSlot {
    fn offer(&self, call: &mut Call) -> HandlerOutcome {
        let mut state = lock(&self.state);
        if !matches!(*state, SlotState::Closed { .. }) {
            *state = SlotState::Offered(call.take_request(), JobContext(call.context()));
            self.changed.notify_all();
            drop(state);
            self.wake();
            state = lock(&self.state);
        }
        loop {
            match std::mem::take(&mut *state) {
                SlotState::Ended(outcome) => {
                    self.changed.notify_all();
                    return outcome;
                }
                SlotState::Closed { taken } => {
                    *state = SlotState::Closed { taken: false };
                    return match taken {
                        true => {
                            HandlerOutcome::Failed(HandlerError::new("closed", "the worker closed"))
                        }
                        false => HandlerOutcome::NotStarted,
                    };
                }
                other => *state = other,
            }
            state = wait(&self.changed, state, None);
        }
    }

    /// Without the lock of the state: waking a task may wait for a lock of that task.
    fn wake(&self) {
        let task = lock(&self.task).take();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Whether a job is available or the worker is closed. If not, the task is woken then.
    fn is_ready(&self, context: &Context<'_>) -> bool {
        // Before the check, so that a later job wakes the task.
        let mut task = lock(&self.task);
        *task = Some(context.waker().clone());
        drop(task);
        matches!(*lock(&self.state), SlotState::Offered(..) | SlotState::Closed { .. })
    }

    /// The offered job; waits for one until this time; `None` on a timeout.
    ///
    /// # Errors
    /// The worker was closed.
    fn take(&self, until: Option<Instant>) -> Result<Option<(Bytes, JobContext)>, WorkerClosed> {
        let mut state = lock(&self.state);
        loop {
            match std::mem::take(&mut *state) {
                SlotState::Offered(_, context) if context.is_cancelled() => {
                    *state = SlotState::Ended(HandlerOutcome::NotStarted);
                    self.changed.notify_all();
                }
                SlotState::Offered(bytes, context) => {
                    *state = SlotState::Taken;
                    return Ok(Some((bytes, context)));
                }
                closed @ SlotState::Closed { .. } => {
                    *state = closed;
                    return Err(WorkerClosed);
                }
                other => *state = other,
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(None);
            }
            state = wait(&self.changed, state, until);
        }
    }

    fn end(&self, result: Result<(), HandlerError>) {
        let mut state = lock(&self.state);
        if matches!(*state, SlotState::Taken) {
            *state = SlotState::Ended(HandlerOutcome::JobResult(result));
            self.changed.notify_all();
        }
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        // The thread of the previous job must first read that job's outcome.
        while matches!(*state, SlotState::Ended(_)) {
            state = wait(&self.changed, state, None);
        }
        if !matches!(*state, SlotState::Closed { .. }) {
            *state = SlotState::Closed { taken: matches!(*state, SlotState::Taken) };
        }
        drop(state);
        self.changed.notify_all();
        self.wake();
    }
}

struct WorkerClosed;

/// A worker of a work queue, created by [`PullBuilder::open`]. It takes the next job after finishing the
/// current one. Dropping it closes it: an unfinished job is delivered to another worker.
#[must_use = "the worker closes when this is dropped"]
pub struct Puller<J: Message + ?Sized> {
    slot: Arc<JobSlot>,
    service: Service,
    ty: MessageType,
    _type: PhantomData<fn() -> Box<J>>,
}

impl<J: Message + ?Sized> Puller<J> {
    /// Waits for the next job. Any number of threads may wait.
    ///
    /// A job that is not a valid message of its type is reported to its pusher and skipped.
    ///
    /// # Errors
    /// `Closed` after [`Puller::close`] and in a forked child.
    pub fn recv(&self) -> Result<Job<J>> {
        loop {
            if let Some(job) = self.recv_until(None)? {
                return Ok(job);
            }
        }
    }

    /// As [`Puller::recv`], for at most `timeout`; `None` if no job arrived.
    ///
    /// # Errors
    /// As [`Puller::recv`].
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Option<Job<J>>> {
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Whether [`Puller::recv`] returns without a wait. If not, the task is woken once it does.
    pub fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let ready = self.service.check_fork().is_err() || self.slot.is_ready(context);
        if ready { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The name of the queue.
    pub fn name(&self) -> &str {
        self.service.name()
    }

    /// Counters of this worker: `calls` are jobs, `refused` the jobs that arrived while it had one or was
    /// closing.
    pub fn stats(&self) -> ServiceStats {
        self.service.stats()
    }

    /// Stops taking jobs, as dropping it does, also while other threads wait in [`Puller::recv`]: its
    /// current job is delivered to another worker, and a job that was not received yet does not count as
    /// redelivered.
    pub fn close(&self) {
        // In a forked child, the lock may be held by a thread that exists only in the parent.
        if self.service.check_fork().is_ok() {
            // First: its pusher must learn that the worker closes, not that the job failed.
            self.service.begin_close();
            self.slot.close();
        }
    }

    fn recv_until(&self, until: Option<Instant>) -> Result<Option<Job<J>>> {
        self.service.check_fork()?;
        loop {
            let closed = |WorkerClosed| Error::closed(format!("the worker of {}", self.name()));
            let Some((bytes, context)) = self.slot.take(until).map_err(closed)? else {
                return Ok(None);
            };
            match Received::decode(bytes, &self.ty) {
                Ok(job) => return Ok(Some(Job { job, context, slot: Some(self.slot.clone()) })),
                Err(why) => {
                    let text = format!("the job is malformed: {why}");
                    self.slot.end(Err(HandlerError::new("malformed", text)));
                }
            }
        }
    }

    /// Iterates over the jobs, without an end. Each job must be acknowledged.
    pub fn iter(&mut self) -> impl Iterator<Item = Job<J>> {
        std::iter::from_fn(move || self.recv().ok())
    }
}

impl<J: Message + ?Sized> Drop for Puller<J> {
    fn drop(&mut self) {
        self.close();
    }
}

/// A job of a worker, until the worker reports its outcome. Dropping it without a report is a failure, which
/// is reported to the pusher.
#[must_use = "dropping a job fails it; call ack() when it is done"]
pub struct Job<J: Message + ?Sized> {
    job: Received<J>,
    context: JobContext,
    slot: Option<Arc<JobSlot>>,
}

impl<J: Message + ?Sized> Job<J> {
    /// Acknowledges the job.
    pub fn ack(mut self) {
        fail_point!("queue.done");
        self.end(Ok(()));
    }

    /// Reports a failure: the pusher gets the error, and the job is not delivered again.
    pub fn fail(mut self, error: impl Into<HandlerError>) {
        self.end(Err(error.into()));
    }

    /// The origin of the job, and whether it was delivered before.
    pub fn context(&self) -> &JobContext {
        &self.context
    }

    fn end(&mut self, result: Result<(), HandlerError>) {
        if let Some(slot) = self.slot.take() {
            slot.end(result);
        }
    }
}

impl<J: Message + ?Sized> Deref for Job<J> {
    type Target = J;

    fn deref(&self) -> &J {
        &self.job
    }
}

impl<J: Message + ?Sized + fmt::Debug> fmt::Debug for Job<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.job.fmt(f)
    }
}

impl<J: Message + ?Sized> Drop for Job<J> {
    fn drop(&mut self) {
        let text = "the worker dropped the job without acknowledging it";
        self.end(Err(HandlerError::new("not_acknowledged", text)));
    }
}
