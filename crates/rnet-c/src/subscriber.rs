//! `rnet_subscriber`: receiving.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use rnet::fork::ProcessOwned;
use rnet::{Error, Sample, Subscriber, SubscriberBuilder, Wait};

use crate::border::{close, enter, free, give, given, write};
use crate::bytes::text;
use crate::callback::{Context, rnet_free_function};
use crate::error::{Failure, Outcome, invalid, rnet_code, rnet_error};
use crate::handle::{Exclusive, Handle, MemberKind, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, duration, optional_duration, options, set};
use crate::publisher::wait_in_slices;
use crate::sample::rnet_sample;
use crate::stream::{KeptEvent, Pollable};
use crate::types::{rnet_type, type_of};

/// Waits without a limit.
pub const RNET_FOREVER: i64 = i64::MAX;

/// How a subscriber waits for the next message.
#[allow(dead_code, reason = "option structs hold its numbers")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_wait {
    /// Spins for as long as a message is likely, then sleeps.
    RNET_WAIT_ADAPTIVE = 0,
    /// Spins: lowest latency, one processor core.
    RNET_WAIT_SPIN = 1,
    /// Sleeps at once: least processor time.
    RNET_WAIT_BLOCK = 2,
}

/// The lane of a topic.
#[allow(dead_code, reason = "option structs hold its numbers")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_lane {
    /// That of the publisher; for a publisher, bulk.
    RNET_LANE_DEFAULT = 0,
    /// The lane of ordinary messages.
    RNET_LANE_BULK = 1,
    /// The lane that bulk messages do not delay.
    RNET_LANE_URGENT = 2,
}

/// Options of rnet_subscriber_new(). Initialise it with RNET_SUBSCRIBER_OPTIONS_INIT; 0 and null mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_subscriber_options {
    /// sizeof(rnet_subscriber_options), set by the initialiser.
    pub struct_size: usize,
    /// The type of the messages, which must be compatible with the publisher's; default: every message, as bytes.
    pub message_type: *const rnet_type,
    /// Keeps the last n unread messages of each publisher and skips older ones; default 10, or all if reliable.
    pub keep_last: u32,
    /// Whether to keep all unread messages that the publisher's log still holds.
    pub keep_all: bool,
    /// Whether reliable publishers wait for this subscriber.
    pub reliable: bool,
    /// Whether to receive first the messages that publishers keep for late subscribers.
    pub transient_local: bool,
    /// How to wait, an rnet_wait.
    pub wait: i32,
    /// The lane that publishers must have, an rnet_lane; default: any.
    pub lane: i32,
    /// Requests a message of each publisher at least this often, in ns.
    pub deadline_ns: i64,
    /// Requests publishers that show that they are alive at least this often, in ns.
    pub liveliness_lease_ns: i64,
}

options!(rnet_subscriber_options);

impl rnet_subscriber_options {
    /// # Safety
    /// `message_type` is null or a type.
    pub(crate) unsafe fn apply(
        &self,
        mut builder: SubscriberBuilder<[u8]>,
    ) -> Outcome<SubscriberBuilder<[u8]>> {
        // SAFETY: as promised by the caller.
        builder = builder.message_type(unsafe { type_of(self.message_type) });
        let keep_last = Some(self.keep_last).filter(|count| *count > 0);
        builder = set(builder, keep_last, SubscriberBuilder::keep_last);
        builder = if self.keep_all { builder.keep_all() } else { builder };
        builder = if self.reliable { builder.reliable() } else { builder };
        builder = if self.transient_local { builder.transient_local() } else { builder };
        builder = set(builder, lane(self.lane)?, SubscriberBuilder::lane);
        builder = match self.wait {
            0 => builder,
            1 => builder.wait(Wait::Spin),
            2 => builder.wait(Wait::Block),
            other => return Err(invalid(format!("wait is {other}, which is not an rnet_wait"))),
        };
        let deadline = optional_duration(self.deadline_ns, "deadline_ns")?;
        let lease = optional_duration(self.liveliness_lease_ns, "liveliness_lease_ns")?;
        let builder = set(builder, deadline, SubscriberBuilder::deadline);
        Ok(set(builder, lease, SubscriberBuilder::manual_by_topic))
    }
}

pub(crate) fn lane(value: i32) -> Outcome<Option<rnet::Lane>> {
    match value {
        0 => Ok(None),
        1 => Ok(Some(rnet::Lane::Bulk)),
        2 => Ok(Some(rnet::Lane::Urgent)),
        other => Err(invalid(format!("lane is {other}, which is not an rnet_lane"))),
    }
}

/// Receives the messages of one topic. One thread at a time may use it; a second one gets RNET_WRONG_THREAD.
pub struct rnet_subscriber {
    pub(crate) receiving: Handle<Exclusive<Receiving>>,
    pub(crate) event: KeptEvent,
}

/// A subscriber and the sample that its user reads.
pub(crate) struct Receiving {
    /// Dropped before each use of the subscriber, and before it.
    pub(crate) current: Option<rnet_sample>,
    pub(crate) subscriber: Pollable<Subscriber<[u8]>>,
}

impl Receiving {
    /// The next message, within the time; null if there is none and `timeout_ns` is 0.
    #[inline]
    fn recv(&mut self, timeout_ns: i64) -> Outcome<*const rnet_sample> {
        self.current = None;
        let Pollable::Direct(subscriber) = &mut self.subscriber else {
            return self.recv_polled(timeout_ns);
        };
        let sample = match timeout_ns {
            RNET_FOREVER => subscriber.recv()?,
            0 => match subscriber.try_recv()? {
                Some(sample) => sample,
                None => return Ok(std::ptr::null()),
            },
            ns => subscriber.recv_timeout(duration(ns, "timeout_ns")?)?,
        };
        // SAFETY: `current` is dropped before the subscriber is used again.
        let sample = unsafe { rnet_sample::borrowed(sample) };
        // It is `None`: nothing is to be dropped a second time.
        std::mem::forget(self.current.replace(sample));
        Ok(self.current_pointer())
    }

    /// As [`Receiving::recv`], for a subscriber with a descriptor.
    #[cold]
    fn recv_polled(&mut self, timeout_ns: i64) -> Outcome<*const rnet_sample> {
        let sample = self.subscriber.receive(
            timeout_ns,
            |it| Ok(it.try_recv()?.map(rnet_sample::unbound)),
            |it| it.recv().map(rnet_sample::unbound),
            |it, limit| it.recv_timeout(limit).map(rnet_sample::unbound),
        )?;
        Ok(self.set_current(sample))
    }

    fn latest(&mut self, timeout_ns: i64) -> Outcome<*const rnet_sample> {
        self.current = None;
        let sample = self.subscriber.receive(
            timeout_ns,
            Subscriber::try_latest,
            Subscriber::latest,
            Subscriber::latest_timeout,
        )?;
        Ok(self.set_current(sample.map(rnet_sample::owned)))
    }

    /// The sample that the user reads; null for none. Functions that read its names write to it.
    #[inline]
    fn current_pointer(&mut self) -> *const rnet_sample {
        self.current.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut).cast_const()
    }

    /// The sample that the user reads from now on; null for none.
    fn set_current(&mut self, sample: Option<rnet_sample>) -> *const rnet_sample {
        self.current = sample;
        self.current_pointer()
    }
}

/// Subscribes to a topic. The caller frees the subscriber with rnet_subscriber_free().
///
/// Errors: RNET_BAD_NAME, RNET_BAD_QOS, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `topic` a string, `options` null or initialised, `out` valid for a write, `error` null or valid
/// for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_new(
    node: *const rnet_node,
    topic: *const c_char,
    options: *const rnet_subscriber_options,
    out: *mut *mut rnet_subscriber,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (node, topic) = unsafe { (node_of(node)?, text(topic, "topic")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_subscriber_options::read(options)? };
        let builder = node.get()?.subscriber::<[u8]>(topic);
        // SAFETY: as promised by the caller.
        let mut subscriber = unsafe { options.apply(builder) }?.open()?;
        let interrupter = subscriber.interrupter();
        let name = format!("the subscriber of {}", subscriber.topic());
        let receiving = Receiving { current: None, subscriber: Pollable::Direct(subscriber) };
        let receiving =
            Exclusive::new("subscriber", name, receiving, move || interrupter.interrupt());
        let receiving = node.add(MemberKind::Client, receiving);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_subscriber { receiving, event: KeptEvent::default() }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// # Safety
/// As [`given`].
pub(crate) unsafe fn receiving_of<'a>(
    subscriber: *const rnet_subscriber,
) -> Outcome<&'a Handle<Exclusive<Receiving>>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(subscriber, "subscriber") }?.receiving)
}

/// Ends the borrowed sample.
pub(crate) fn end_borrow(object: &Exclusive<Receiving>) -> Outcome {
    object.borrow(|it| {
        it.current = None;
        Ok(std::ptr::null::<rnet_sample>())
    })?;
    Ok(())
}

/// Waits for the next message, for at most `timeout_ns`: RNET_FOREVER waits without a limit, 0 does not wait.
///
/// `*out` becomes a borrowed sample, valid until the next call with this subscriber; null if nothing has arrived and
/// `timeout_ns` is 0, which is not an error.
///
/// Errors: RNET_TIMEOUT; once each, an event of one publisher while the others continue: RNET_PEER_LOST,
/// RNET_DETACHED, RNET_INCOMPATIBLE_TYPE, RNET_INCOMPATIBLE_QOS, RNET_CORRUPT, RNET_TOO_MANY_PINS; RNET_CLOSED,
/// RNET_WRONG_THREAD.
///
/// # Safety
/// `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_recv(
    subscriber: *mut rnet_subscriber,
    timeout_ns: i64,
    out: *mut *const rnet_sample,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let sample = || unsafe { receiving_of(subscriber) }?.borrow(|it| it.recv(timeout_ns));
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || write(out, sample()?)) }
}

/// As rnet_subscriber_recv(), for the newest unread message of all publishers. Older ones are counted as skipped.
///
/// # Safety
/// As for rnet_subscriber_recv().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_latest(
    subscriber: *mut rnet_subscriber,
    timeout_ns: i64,
    out: *mut *const rnet_sample,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let sample = || unsafe { receiving_of(subscriber) }?.borrow(|it| it.latest(timeout_ns));
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || write(out, sample()?)) }
}

/// Waits until at least `count` publishers are matched: messages sent after that are received or counted as lost.
///
/// Errors: RNET_TIMEOUT; RNET_INCOMPATIBLE_TYPE or RNET_INCOMPATIBLE_QOS if an incompatible publisher appears;
/// RNET_LIMIT_REACHED; RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `subscriber` is a subscriber, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_wait_for_publishers(
    subscriber: *mut rnet_subscriber,
    count: usize,
    timeout_ns: i64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { receiving_of(subscriber) }?;
        end_borrow(object)?;
        object.with(|it| match timeout_ns {
            RNET_FOREVER => it.subscriber.wait(|it| it.wait_for_publishers(count)),
            ns => {
                let limit = duration(ns, "timeout_ns")?;
                it.subscriber.wait(|it| it.wait_for_publishers_timeout(count, limit))
            }
        })
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Number of publishers that serve the subscriber now.
///
/// # Safety
/// `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_publisher_count(
    subscriber: *mut rnet_subscriber,
    out: *mut usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { receiving_of(subscriber) }?;
        end_borrow(object)?;
        let count = object.with(|it| it.subscriber.with(Subscriber::publisher_count))?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, count) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a subscriber: its calls fail with RNET_CLOSED from then on, and a wait of another thread ends. Null and a
/// closed subscriber are allowed. A sample that another thread has borrowed stays valid until that thread's next call.
///
/// # Safety
/// `subscriber` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_close(subscriber: *mut rnet_subscriber) {
    // SAFETY: as promised by the caller.
    unsafe { close(subscriber, |subscriber| subscriber.receiving.close_here()) }
}

/// Closes and frees a subscriber. Null is allowed. No other thread may be about to use it, or a borrowed sample of it.
///
/// # Safety
/// `subscriber` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_free(subscriber: *mut rnet_subscriber) {
    // SAFETY: as promised by the caller.
    unsafe { free(subscriber) }
}

/// Called for each message, on the node's thread for the lane of the topic. The sample is borrowed.
pub type rnet_sample_function =
    Option<unsafe extern "C" fn(sample: *const rnet_sample, context: *mut c_void)>;

/// Called for an error of one publisher, or of one message. The error belongs to the library.
pub type rnet_error_function =
    Option<unsafe extern "C" fn(error: *const rnet_error, context: *mut c_void)>;

/// A subscriber whose messages go to a callback. Any thread may use it.
pub struct rnet_subscription(pub(crate) Handle<Shared<rnet::Subscription>>);

/// # Safety
/// As [`given`].
pub(crate) unsafe fn subscription_of(
    subscription: *const rnet_subscription,
) -> Outcome<Arc<ProcessOwned<rnet::Subscription>>> {
    // SAFETY: as promised by the caller.
    unsafe { given(subscription, "subscription") }?.0.get()
}

/// The functions of C as a callback of `rnet`.
pub(crate) fn message_callback(
    on_message: rnet_sample_function,
    on_error: rnet_error_function,
    context: Context,
) -> Outcome<impl Fn(rnet::Result<Sample<'_, [u8]>>) + Send + Sync + 'static> {
    let on_message = on_message.ok_or_else(|| invalid("on_message is null"))?;
    Ok(move |result: rnet::Result<Sample<'_, [u8]>>| match result {
        Ok(sample) => {
            // SAFETY: dropped at the end of this call.
            let mut sample = unsafe { rnet_sample::borrowed(sample) };
            // SAFETY: the caller has passed the function and the context for each other.
            unsafe { on_message(&raw mut sample, context.pointer()) };
        }
        Err(failed) => call_with_error(on_error, failed, &context),
    })
}

/// Passes an error to a function of a C program, if there is one.
pub(crate) fn call_with_error(on_error: rnet_error_function, failed: Error, context: &Context) {
    if let Some(on_error) = on_error {
        let failed = Failure::from(failed).into_error();
        // SAFETY: the caller has passed the function and the context for each other.
        unsafe { on_error(&raw const failed, context.pointer()) };
    }
}

/// Passes each message to `on_message`, and each error to `on_error` if that is not null, on the node's thread for the
/// lane of the topic, one at a time, until the subscription is closed or freed. Consumes the subscriber: the caller
/// frees it as usual, and its other calls fail with RNET_CLOSED.
///
/// `free_context` is called once with `context` after the last call, also if this function fails. The caller frees
/// the subscription with rnet_subscription_free().
///
/// # Safety
/// `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write. The functions and the
/// context may be used by other threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_on(
    subscriber: *mut rnet_subscriber,
    on_message: rnet_sample_function,
    on_error: rnet_error_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_subscription,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        // SAFETY: as promised by the caller.
        let subscriber = unsafe { given(subscriber, "subscriber") }?;
        let freed = context.freed();
        let callback = message_callback(on_message, on_error, context)?;
        let members = subscriber.receiving.members();
        let Receiving { current, subscriber } = subscriber.receiving.consume()?;
        drop(current);
        let subscription = subscriber.into_direct()?.on_result(callback);
        let name = format!("the subscription of {}", subscription.topic());
        let object = Shared::with_end(name, subscription, |_| (), freed);
        let object = Handle::new(members, MemberKind::Subscriber, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_subscription(object)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Ends the callback and frees the subscription. When it returns, the callback does not run and is not called again,
/// except within a callback. Null is allowed.
///
/// # Safety
/// `subscription` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_free(subscription: *mut rnet_subscription) {
    // SAFETY: as promised by the caller.
    unsafe { free(subscription) }
}

/// Waits until the callback has at least `count` publishers.
///
/// Errors: as for rnet_subscriber_wait_for_publishers(); RNET_BAD_VALUE in a callback of the same lane.
///
/// # Safety
/// `subscription` is a subscription, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_wait_for_publishers(
    subscription: *const rnet_subscription,
    count: usize,
    timeout_ns: i64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        wait_in_slices(timeout_ns, |slice| {
            // SAFETY: as promised by the caller.
            let subscription = unsafe { subscription_of(subscription) }?;
            Ok(subscription.wait_for_publishers_timeout(count, slice))
        })
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}
