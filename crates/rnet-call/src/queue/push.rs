//! The pushing end of a work queue: a client that has at most one call with each worker, and a thread that
//! assigns jobs to free workers.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_core::Stream;
use rnet_core::{Error, Result};
use rnet_node::options::deadline;
use rnet_node::sync::{join_callbacks, lock, wait};
use rnet_node::types::choose_type;
use rnet_shm::ring::fail_point;

use super::super::call_future::Pending;
use super::super::client::{Client, ClientBuilder};
use super::super::open_call::OpenCall;
use super::super::{Bytes, REDELIVERED, Received, WANTS_ALL_REPLIES};
use rnet_node::{Message, MessageType, NodeHandle};

/// How often waiting jobs look for a new worker, or one that other pushers kept busy.
const WORKER_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_BACKLOG: usize = 1 << 16;

/// Counters of the jobs of a pusher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PushStats {
    /// Jobs that [`Pusher::push`] accepted.
    pub pushed: u64,
    /// Jobs that a worker has acknowledged.
    pub done: u64,
    /// Jobs that were sent to a second worker.
    pub redelivered: u64,
    /// Jobs that were returned, for any reason.
    pub undelivered: u64,
    /// Jobs that are not done yet, including those that wait for a worker.
    pub open: usize,
}

/// A returned job that no worker acknowledged.
#[non_exhaustive]
pub struct Undelivered<J: Message + ?Sized> {
    /// The job.
    pub job: Received<J>,
    /// The reason: `CallFailed` with the error of its worker; `ServerLost`, `CallLost`, `Timeout` or
    /// `Cancelled` if two workers had it and neither acknowledged it; `IncompatibleType` if workers expect
    /// another type; `Closed` if the pusher was dropped first.
    pub error: Error,
}

type OnUndelivered = Box<dyn Fn(Vec<u8>, Error) + Send>;

/// A builder for a pusher, made by `rnet::Node::push`.
#[must_use = "nothing is pushed until open() is called"]
pub struct PushBuilder<J: Message + ?Sized> {
    node: NodeHandle,
    name: String,
    backlog: usize,
    push_timeout: Duration,
    ack: Option<Duration>,
    ty: Option<MessageType>,
    undelivered: Option<Box<dyn Fn(Undelivered<J>) + Send>>,
}

impl<J: Message + ?Sized> PushBuilder<J> {
    #[doc(hidden)]
    pub fn new(node: &NodeHandle, name: &str) -> Self {
        PushBuilder {
            node: node.clone(),
            name: name.to_owned(),
            backlog: 1024,
            push_timeout: Duration::ZERO,
            ack: None,
            ty: None,
            undelivered: None,
        }
    }

    /// Maximum number of open jobs: 1 to 65,536, 1,024 by default. [`PushBuilder::wait_for_capacity`] sets
    /// the behaviour beyond it.
    pub fn backlog(mut self, jobs: usize) -> Self {
        self.backlog = jobs;
        self
    }

    /// How long a push waits for capacity in a full backlog before it refuses. By default it refuses at once.
    pub fn wait_for_capacity(mut self, limit: Duration) -> Self {
        self.push_timeout = limit;
        self
    }

    /// Time limit of a worker for a job. A worker that does not acknowledge in time, for example because its
    /// process is stopped, counts as lost. By default there is no limit.
    pub fn ack_within(mut self, limit: Duration) -> Self {
        self.ack = Some(limit);
        self
    }

    /// The type, for jobs that leave it open: `[u8]`, which are then sent as they are, and
    /// [`rnet_node::Dynamic`].
    pub fn message_type(mut self, ty: MessageType) -> Self {
        self.ty = Some(ty);
        self
    }

    /// Called on the pusher's thread with each job that no worker acknowledged. Without a callback, a line in
    /// the node's log reports the job.
    pub fn on_undelivered(mut self, callback: impl Fn(Undelivered<J>) + Send + 'static) -> Self {
        self.undelivered = Some(Box::new(callback));
        self
    }

    /// Opens the pusher. Its workers may start later.
    ///
    /// # Errors
    /// `BadName`; `BadValue` for a backlog that is not allowed; as `rnet::Node::subscriber`.
    pub fn open(self) -> Result<Pusher<J>> {
        if !(1..=MAX_BACKLOG).contains(&self.backlog) {
            let why = format!("it is {}; it must be 1 to {MAX_BACKLOG}", self.backlog);
            return Err(Error::bad_value("backlog of a pusher", why));
        }
        let ty = choose_type::<J>(&self.name, self.ty)?;
        let client =
            ClientBuilder::new(&self.node, &self.name).types(Some(ty.clone()), None).open()?;
        let name = client.name().to_owned();
        let on_undelivered: OnUndelivered = match self.undelivered {
            Some(callback) => {
                let (ty, errors) = (ty.clone(), self.node.core.state.errors.clone());
                let queue = name.clone();
                Box::new(move |encoded, error| {
                    // It was encoded by `push`, so it can be decoded.
                    if let Ok(job) = Received::decode(Bytes::copy_of(&encoded), &ty) {
                        let undelivered = Undelivered { job, error };
                        // The other jobs continue.
                        let called = catch_unwind(AssertUnwindSafe(|| callback(undelivered)));
                        if let Err(panic) = called {
                            errors.note_panic(&format!("on_undelivered of {queue}"), &*panic);
                        }
                    }
                })
            }
            None => {
                let (log, name) = (self.node.log.clone(), name.clone());
                Box::new(move |_, error| {
                    log.warning(format!("a job of {name} was not completed: {error}"))
                })
            }
        };
        let shared = Arc::new(PusherShared::default());
        let work = PushLoop {
            shared: shared.clone(),
            client: client.clone(),
            ack: self.ack,
            on_undelivered,
        };
        let errors = self.node.core.state.errors.clone();
        let thread = rnet_shm::os::thread::spawn("rnet-push", move || {
            errors.attach_thread();
            work.run();
        })?;
        let (limit, push_timeout) = (self.backlog, self.push_timeout);
        Ok(Pusher {
            shared,
            client,
            name,
            limit,
            push_timeout,
            ty,
            thread: Mutex::new(Some(thread)),
            _type: PhantomData,
        })
    }
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<PendingJob>,
    stats: PushStats,
    /// The thread has work.
    has_work: bool,
    closed: bool,
    /// Tasks that wait for jobs to end.
    wakers: Vec<Waker>,
}

#[derive(Default)]
struct PusherShared {
    state: Mutex<QueueState>,
    /// Wakes the thread.
    condvar: Condvar,
    /// Signals that a job has ended.
    ended: Condvar,
}

impl PusherShared {
    /// Waits until at most this many jobs are open, or the pusher is closed; false on a timeout.
    fn wait_for(&self, open: usize, until: Option<Instant>) -> (MutexGuard<'_, QueueState>, bool) {
        let mut state = lock(&self.state);
        while state.stats.open > open && !state.closed {
            if until.is_some_and(|until| until <= Instant::now()) {
                return (state, false);
            }
            state = wait(&self.ended, state, until);
        }
        (state, true)
    }
}

impl Wake for PusherShared {
    fn wake(self: Arc<Self>) {
        lock(&self.state).has_work = true;
        self.condvar.notify_one();
    }
}

/// The pushing end of a work queue. Any number of threads may push. Dropping it returns unfinished jobs.
pub struct Pusher<J: Message + ?Sized> {
    shared: Arc<PusherShared>,
    client: Client<[u8], [u8]>,
    name: String,
    limit: usize,
    push_timeout: Duration,
    ty: MessageType,
    thread: Mutex<Option<JoinHandle<()>>>,
    _type: PhantomData<fn(&J)>,
}

impl<J: Message + ?Sized> Pusher<J> {
    /// Adds a job to the queue. It is sent to a worker as soon as one is free. If that worker is lost before
    /// it has acknowledged the job, the job is sent once more, to another worker.
    ///
    /// # Errors
    /// `LimitReached` if the backlog is full, after the wait that the pusher was opened with; the job was not
    /// accepted. `BadValue` for a job of another type; `Closed` in a forked child.
    pub fn push(&self, job: &J) -> Result<()> {
        self.push_timeout(job, self.push_timeout)
    }

    /// As [`Pusher::push`], with its own time limit.
    ///
    /// # Errors
    /// As [`Pusher::push`].
    pub fn push_timeout(&self, job: &J, limit: Duration) -> Result<()> {
        self.client.shared().core.check_fork()?;
        let mut encoded = Vec::new();
        Bytes::encode(job, &self.ty, &mut encoded)
            .map_err(|why| Error::bad_value(format!("job of {}", self.name), why))?;
        let (mut state, room) =
            self.shared.wait_for(self.limit - 1, Instant::now().checked_add(limit));
        self.check_open(&state)?;
        if !room {
            let (what, limit) = (format!("open jobs of a pusher of {}", self.name), self.limit);
            let hint = "start more workers, wait for capacity, or open it with a longer backlog"
                .to_owned();
            return Err(Error::LimitReached { what, limit, hint });
        }
        state.stats.pushed += 1;
        state.stats.open += 1;
        state.waiting.push_back(PendingJob { encoded, lost_worker: None });
        state.has_work = true;
        self.shared.condvar.notify_one();
        Ok(())
    }

    /// Waits until every job has been acknowledged or returned.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn wait_until_done(&self) -> Result<()> {
        self.wait_for_end(None)
    }

    /// As [`Pusher::wait_until_done`], for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`; as [`Pusher::wait_until_done`].
    pub fn wait_until_done_timeout(&self, timeout: Duration) -> Result<()> {
        self.wait_for_end(Some(timeout))
    }

    fn wait_for_end(&self, timeout: Option<Duration>) -> Result<()> {
        self.client.shared().core.check_fork()?;
        let until = deadline(timeout);
        let (state, done) = self.shared.wait_for(0, until);
        self.check_open(&state)?;
        if done {
            return Ok(());
        }
        let what = format!("{} jobs of {} to finish", state.stats.open, self.name);
        Err(Error::timeout(self.name.as_str(), what, timeout.unwrap_or_default()))
    }

    fn check_open(&self, state: &QueueState) -> Result<()> {
        match state.closed {
            true => Err(Error::closed(format!("the pusher of {}", self.name))),
            false => Ok(()),
        }
    }

    /// Returns unfinished jobs, as dropping it does, also while other threads wait; for bindings. Its waits and
    /// later pushes fail with `Closed`.
    #[doc(hidden)]
    pub fn close(&self) {
        if self.client.shared().core.is_from_parent() {
            return;
        }
        lock(&self.shared.state).closed = true;
        self.shared.condvar.notify_one();
        self.shared.ended.notify_all();
        let thread = lock(&self.thread).take();
        // The callback for a returned job may close the pusher.
        join_callbacks(thread);
    }

    /// Whether every job has been acknowledged or returned. If not, the task is woken when that may have
    /// changed.
    pub fn poll_done(&self, context: &mut Context<'_>) -> Poll<()> {
        self.poll_open(context, 0)
    }

    /// Whether a push would have capacity. If not, the task is woken when that may have changed.
    pub fn poll_capacity(&self, context: &mut Context<'_>) -> Poll<()> {
        self.poll_open(context, self.limit - 1)
    }

    fn poll_open(&self, context: &mut Context<'_>, open: usize) -> Poll<()> {
        if self.client.shared().core.is_from_parent() {
            return Poll::Ready(());
        }
        let mut state = lock(&self.shared.state);
        if state.stats.open <= open {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// The name of the queue.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of connected workers, free or busy.
    pub fn worker_count(&self) -> usize {
        self.client.server_count()
    }

    /// Counters of the jobs so far.
    pub fn stats(&self) -> PushStats {
        // In a forked child, the lock may be held by a thread that exists only in the parent.
        if self.client.shared().core.is_from_parent() {
            return PushStats::default();
        }
        lock(&self.shared.state).stats
    }
}

impl<J: Message + ?Sized> Drop for Pusher<J> {
    fn drop(&mut self) {
        if self.client.shared().core.is_from_parent() {
            let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(thread.take());
            return;
        }
        self.close();
    }
}

/// A job that is not done.
struct PendingJob {
    encoded: Vec<u8>,
    /// The worker that had it and was lost.
    lost_worker: Option<u64>,
}

/// A job that a worker has, or that waits for the first worker.
struct ActiveJob {
    job: PendingJob,
    pending: Pending<[u8]>,
}

struct PushLoop {
    shared: Arc<PusherShared>,
    client: Client<[u8], [u8]>,
    ack: Option<Duration>,
    on_undelivered: OnUndelivered,
}

impl PushLoop {
    fn run(self) {
        let waker = Waker::from(self.shared.clone());
        let mut active: Vec<ActiveJob> = Vec::new();
        loop {
            let mut refused = false;
            let mut at = 0;
            while at < active.len() {
                match poll_job(&mut active[at].pending, &mut Context::from_waker(&waker)) {
                    Poll::Pending => at += 1,
                    Poll::Ready(end) => refused |= self.on_job_ended(active.swap_remove(at), end),
                }
            }
            // Without workers, one job waits for the first: it detects an incompatible type.
            let workers = self.client.server_count().max(1);
            let mut state = lock(&self.shared.state);
            if state.closed {
                let waiting = std::mem::take(&mut state.waiting);
                drop(state);
                let running = active.drain(..).map(|active_job| active_job.job);
                running.chain(waiting).for_each(|job| self.return_on_close(job));
                return;
            }
            let mut started = false;
            while !refused && active.len() < workers {
                // A job whose worker was lost waits for another, and does not delay other jobs.
                let core = &self.client.shared().core;
                let is_next = |job: &PendingJob| {
                    job.lost_worker.is_none_or(|lost| core.server_count_without(Some(lost)) > 0)
                };
                let at = state.waiting.iter().position(is_next);
                let Some(job) = at.and_then(|at| state.waiting.remove(at)) else { break };
                drop(state);
                active.push(self.start(job));
                started = true;
                state = lock(&self.shared.state);
            }
            // New calls are polled first: otherwise nothing wakes this thread for them.
            if !started && !state.has_work {
                let until =
                    (!state.waiting.is_empty()).then(|| Instant::now() + WORKER_POLL_INTERVAL);
                state = wait(&self.shared.condvar, state, until);
            }
            state.has_work = false;
        }
    }

    fn start(&self, job: PendingJob) -> ActiveJob {
        let client = self.client.shared();
        let mut open = OpenCall::new(job.encoded.clone(), None, false);
        let mut wants = WANTS_ALL_REPLIES;
        if let Some(lost) = job.lost_worker {
            open.exclude_server(lost);
            wants |= REDELIVERED;
        }
        let number = client.core.start(open, wants, self.ack);
        fail_point!("queue.started");
        let pending = Pending::new(client.clone(), number, self.ack.unwrap_or_default());
        ActiveJob { job, pending }
    }

    /// Handles the end of a job; returns `true` if no worker was free, so that the job waits again.
    fn on_job_ended(&self, ActiveJob { mut job, pending }: ActiveJob, end: Result<()>) -> bool {
        let worker = pending.server();
        // The call ends, and its worker is notified, before another worker gets the job.
        drop(pending);
        let error = match end {
            Ok(()) => {
                self.count_ended(|stats| stats.done += 1);
                return false;
            }
            Err(error) => error,
        };
        let busy = matches!(error, Error::Refused { .. } | Error::Full { .. });
        // Its time limit passed before a worker had it.
        let unsent = matches!(error, Error::Timeout { .. }) && worker.is_none();
        if busy || unsent {
            lock(&self.shared.state).waiting.push_front(job);
            return true;
        }
        let lost = matches!(
            error,
            Error::ServerLost { .. } | Error::CallLost { .. } | Error::Timeout { .. }
        );
        if lost && job.lost_worker.is_none() {
            job.lost_worker = worker.or(Some(0));
            let mut state = lock(&self.shared.state);
            state.stats.redelivered += 1;
            state.waiting.push_front(job);
            return false;
        }
        (self.on_undelivered)(job.encoded, error);
        self.count_ended(|stats| stats.undelivered += 1);
        false
    }

    fn return_on_close(&self, job: PendingJob) {
        let what = format!("the pusher of {}", self.client.name());
        (self.on_undelivered)(job.encoded, Error::Closed { what });
        self.count_ended(|stats| stats.undelivered += 1);
    }

    fn count_ended(&self, count: impl FnOnce(&mut PushStats)) {
        let mut state = lock(&self.shared.state);
        count(&mut state.stats);
        state.stats.open -= 1;
        self.shared.ended.notify_all();
        let wakers = std::mem::take(&mut state.wakers);
        // Without the lock: waking a task may wait for a lock of that task.
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Whether a worker has reported the outcome of a job. Replies do not matter.
fn poll_job(pending: &mut Pending<[u8]>, context: &mut Context<'_>) -> Poll<Result<()>> {
    loop {
        match Pin::new(&mut *pending).poll_next(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(Ok(())),
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
        }
    }
}
