//! `rnet_publisher` and `rnet_loan`: sending.

use std::ffi::c_char;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::{Error, Meta, OnFull, OwnedLoan, Publisher, PublisherBuilder};

use crate::border::{enter, free, give, given, write};
use crate::bytes::{rnet_bytes, text};
use crate::error::{Failure, Outcome, invalid, rnet_code, rnet_error};
use crate::handle::{Exclusive, Handle, MemberKind};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, duration, optional_duration, options, set};
use crate::subscriber::{RNET_FOREVER, lane};
use crate::types::{rnet_type, type_of};

/// How long a wait keeps an object from [`Exclusive::take`].
pub(crate) const WAIT_SLICE: Duration = Duration::from_millis(20);

/// What a send of a reliable publisher does while a subscriber is full.
#[allow(dead_code, reason = "option structs hold its numbers")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_on_full {
    /// Waits for `full_timeout_ns`, then fails with RNET_FULL.
    RNET_ON_FULL_WAIT = 0,
    /// Fails with RNET_FULL at once.
    RNET_ON_FULL_REFUSE = 1,
    /// Waits; a subscriber that reads nothing for `full_timeout_ns` is detached.
    RNET_ON_FULL_DETACH = 2,
}

/// Options of rnet_publisher_new(). Initialise it with RNET_PUBLISHER_OPTIONS_INIT; 0 and null mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_publisher_options {
    /// sizeof(rnet_publisher_options), set by the initialiser.
    pub struct_size: usize,
    /// The type of the messages; default: raw bytes.
    pub message_type: *const rnet_type,
    /// Whether subscribers may be reliable.
    pub reliable: bool,
    /// Whether to allocate all memory of the log now, so that a send never does.
    pub reserve_log: bool,
    /// What a send does while a reliable subscriber is full, an rnet_on_full.
    pub on_full: i32,
    /// The time for `on_full`, in ns; default 1 s. To wait for no time, choose RNET_ON_FULL_REFUSE.
    pub full_timeout_ns: i64,
    /// Number of messages that are kept for late subscribers.
    pub transient_local: u32,
    /// The lane, an rnet_lane; default: bulk.
    pub lane: i32,
    /// Largest length of the log in bytes, a power of two; default 512 KiB.
    pub log_len_bytes: u64,
    /// Largest memory for messages of more than 4096 bytes, in bytes; default 2 GiB.
    pub pool_limit_bytes: u64,
    /// Number of messages of more than 4096 bytes that stay readable; default 11.
    pub large_depth: u32,
    /// Promises a message at least this often, in ns.
    pub deadline_ns: i64,
    /// Messages that are older than this expire, in ns.
    pub lifespan_ns: i64,
    /// The publisher is alive only while it sends, or calls rnet_publisher_assert_alive(), this often, in ns.
    pub liveliness_lease_ns: i64,
    /// The message that each subscriber receives if this process dies; at most 4096 bytes. Default: none.
    pub last_will: rnet_bytes,
}

options!(rnet_publisher_options);

impl rnet_publisher_options {
    fn on_full(&self) -> Outcome<OnFull> {
        let limit = optional_duration(self.full_timeout_ns, "full_timeout_ns")?;
        let limit = limit.unwrap_or(Duration::from_secs(1));
        match self.on_full {
            0 => Ok(OnFull::Wait(limit)),
            1 => Ok(OnFull::Refuse),
            2 => Ok(OnFull::Detach { stall: limit }),
            other => Err(invalid(format!("on_full is {other}, which is not an rnet_on_full"))),
        }
    }

    /// # Safety
    /// `message_type` is null or a type, `last_will` a valid view.
    unsafe fn apply(&self, mut builder: PublisherBuilder<[u8]>) -> Outcome<PublisherBuilder<[u8]>> {
        // SAFETY: as promised by the caller.
        builder = builder.message_type(unsafe { type_of(self.message_type) });
        if self.reliable {
            builder = builder.reliable(self.on_full()?);
        } else if self.on_full != 0 || self.full_timeout_ns != 0 {
            return Err(Error::BadQos {
                topic: String::new(),
                why: "on_full and full_timeout_ns need reliable".to_owned(),
            }
            .into());
        }
        let given = |number: u64| Some(number).filter(|number| *number > 0);
        let given_u32 = |number: u32| Some(number).filter(|number| *number > 0);
        builder = if self.reserve_log { builder.reserve_log() } else { builder };
        builder = set(builder, given_u32(self.transient_local), PublisherBuilder::transient_local);
        let is_urgent = lane(self.lane)? == Some(rnet::Lane::Urgent);
        builder = if is_urgent { builder.urgent() } else { builder };
        builder = set(builder, given(self.log_len_bytes), PublisherBuilder::log_len_bytes);
        builder = set(builder, given(self.pool_limit_bytes), PublisherBuilder::pool_limit_bytes);
        builder = set(builder, given_u32(self.large_depth), PublisherBuilder::large_depth);
        let deadline = optional_duration(self.deadline_ns, "deadline_ns")?;
        builder = set(builder, deadline, PublisherBuilder::deadline);
        let lifespan = optional_duration(self.lifespan_ns, "lifespan_ns")?;
        builder = set(builder, lifespan, PublisherBuilder::lifespan);
        let lease = optional_duration(self.liveliness_lease_ns, "liveliness_lease_ns")?;
        builder = set(builder, lease, PublisherBuilder::manual_by_topic);
        if !self.last_will.data.is_null() {
            // SAFETY: as promised by the caller.
            builder = builder.last_will(unsafe { self.last_will.get("last_will") }?);
        }
        Ok(builder)
    }
}

/// Sends messages on one topic. One thread at a time may use it; a second one gets RNET_WRONG_THREAD.
pub struct rnet_publisher(Handle<Exclusive<Publisher<[u8]>>>);

/// # Safety
/// As [`given`].
#[inline]
pub(crate) unsafe fn publisher_of<'a>(
    publisher: *const rnet_publisher,
) -> Outcome<&'a Handle<Exclusive<Publisher<[u8]>>>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(publisher, "publisher") }?.0)
}

/// Creates a publisher of a topic. The caller frees it with rnet_publisher_free().
///
/// Errors: RNET_BAD_NAME, RNET_BAD_QOS, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `topic` a string, `options` null or initialised, `out` valid for a write, `error` null or valid
/// for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_new(
    node: *const rnet_node,
    topic: *const c_char,
    options: *const rnet_publisher_options,
    out: *mut *mut rnet_publisher,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (node, topic) = unsafe { (node_of(node)?, text(topic, "topic")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_publisher_options::read(options)? };
        let builder = node.get()?.publisher::<[u8]>(topic);
        // SAFETY: as promised by the caller.
        let publisher = unsafe { options.apply(builder) }?.open()?;
        let interrupter = publisher.interrupter();
        let name = format!("the publisher of {}", publisher.topic());
        let object = Exclusive::new("publisher", name, publisher, move || interrupter.interrupt());
        let object = node.add(MemberKind::Publisher, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_publisher(object)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Sends one message. On an error it was not sent.
///
/// Errors: RNET_FULL if a reliable subscriber is full and `on_full` did not help; RNET_OUT_OF_MEMORY and
/// RNET_MESSAGE_TOO_LARGE for large messages; RNET_BAD_VALUE if the length does not match a plain type; RNET_CLOSED,
/// RNET_WRONG_THREAD.
///
/// # Safety
/// `publisher` is a publisher, `data` valid for reads of `len` bytes, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_send(
    publisher: *mut rnet_publisher,
    data: *const u8,
    len: usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, bytes) =
            unsafe { (publisher_of(publisher)?, rnet_bytes { data, len }.get("data")?) };
        object.with(|publisher| Ok(publisher.send(bytes)?))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Metadata of a message: see rnet_publisher_send_with(). Initialise it with RNET_META_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_meta {
    /// sizeof(rnet_meta), set by the initialiser.
    pub struct_size: usize,
    /// The time of its source in ns since 1970 UTC; 0: none.
    pub source_ns: i64,
    /// A number that relates it to another message; 0: none.
    pub correlation: u64,
}

options!(rnet_meta);

impl rnet_meta {
    /// # Safety
    /// `meta` is null or initialised.
    unsafe fn meta(meta: *const rnet_meta) -> Outcome<Meta> {
        // SAFETY: as promised by the caller.
        let given = unsafe { rnet_meta::read(meta) }?;
        let mut meta = Meta::default();
        if given.source_ns != 0 {
            meta = meta.with_source_ns(given.source_ns);
        }
        if given.correlation != 0 {
            meta = meta.with_correlation(given.correlation);
        }
        Ok(meta)
    }
}

/// As rnet_publisher_send(), with metadata.
///
/// # Safety
/// As for rnet_publisher_send(); `meta` is null or initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_send_with(
    publisher: *mut rnet_publisher,
    data: *const u8,
    len: usize,
    meta: *const rnet_meta,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, bytes) =
            unsafe { (publisher_of(publisher)?, rnet_bytes { data, len }.get("data")?) };
        // SAFETY: as promised by the caller.
        let meta = unsafe { rnet_meta::meta(meta) }?;
        object.with(|publisher| Ok(publisher.send_with(bytes, meta)?))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Memory for a message, which the user fills in place and sends. One thread at a time may use it.
pub struct rnet_loan {
    /// `None` once it was sent.
    loan: Option<OwnedLoan>,
    memory: rnet_mut_bytes,
    publisher: Arc<Exclusive<Publisher<[u8]>>>,
}

/// A view of bytes that the user writes: not owned.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_mut_bytes {
    /// The first byte.
    pub data: *mut u8,
    /// Number of bytes.
    pub len: usize,
}

impl Drop for rnet_loan {
    fn drop(&mut self) {
        if let Some(loan) = self.loan.take() {
            // A publisher that is closed or busy in another thread frees it later.
            let _ = self.publisher.with(|publisher| {
                publisher.drop_loan(loan);
                Ok(())
            });
            self.publisher.give_back();
        }
    }
}

/// Lends memory for a message of `len` bytes: of a publisher whose message has more than 4096, the memory that its
/// subscribers read, so that nothing is copied. Its bytes have arbitrary values. The caller sends it with
/// rnet_loan_send(), and frees it with rnet_loan_free().
///
/// Errors: RNET_OUT_OF_MEMORY, RNET_MESSAGE_TOO_LARGE, RNET_FULL, RNET_BAD_VALUE, RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `publisher` is a publisher, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_loan(
    publisher: *mut rnet_publisher,
    len: usize,
    out: *mut *mut rnet_loan,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { publisher_of(publisher) }?;
        let (loan, memory) = object.with(|publisher| {
            let mut loan = publisher.loan_owned(len)?;
            let bytes = publisher.loaned(&mut loan);
            let memory = rnet_mut_bytes { data: bytes.as_mut_ptr(), len: bytes.len() };
            object.lend();
            Ok((loan, memory))
        })?;
        let loan = rnet_loan { loan: Some(loan), memory, publisher: Arc::clone(object) };
        // SAFETY: as promised by the caller.
        unsafe { give(out, loan) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The memory of a loan, 8-byte aligned, valid until it is sent or freed, even if its publisher is closed before.
/// Empty if `loan` is null or was sent.
///
/// # Safety
/// `loan` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_loan_data(loan: *const rnet_loan) -> rnet_mut_bytes {
    // SAFETY: as promised by the caller.
    let loan = unsafe { loan.as_ref() }.filter(|loan| loan.loan.is_some());
    loan.map_or(rnet_mut_bytes { data: std::ptr::null_mut(), len: 0 }, |loan| loan.memory)
}

/// Shortens a loan: only its first `len` bytes are sent. Its memory does not move.
///
/// Errors: RNET_BAD_VALUE if `len` exceeds its length; RNET_CLOSED if it was sent.
///
/// # Safety
/// `loan` is a loan, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_loan_truncate(
    loan: *mut rnet_loan,
    len: usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        unsafe { given(loan, "loan") }?;
        // SAFETY: not null, and as promised by the caller.
        let rnet_loan { loan: held, memory, .. } = unsafe { &mut *loan };
        let held = held.as_mut().ok_or_else(|| Error::closed("the loan"))?;
        if len > memory.len {
            let why = format!("it cannot be cut to {len} bytes, because it has {}", memory.len);
            return Err(Error::bad_value("the loan", why).into());
        }
        held.truncate(len);
        memory.len = len;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Sends a loan. On an error it was not sent, keeps its content, and may be sent again. It must still be freed.
///
/// Errors: as for rnet_publisher_send(); RNET_CLOSED also for a loan that was sent.
///
/// # Safety
/// `loan` is a loan, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_loan_send(
    loan: *mut rnet_loan,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { rnet_loan_send_with(loan, std::ptr::null(), error) }
}

/// As rnet_loan_send(), with metadata.
///
/// # Safety
/// As for rnet_loan_send(); `meta` is null or initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_loan_send_with(
    loan: *mut rnet_loan,
    meta: *const rnet_meta,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let meta = unsafe { rnet_meta::meta(meta) }?;
        // SAFETY: as promised by the caller.
        unsafe { given(loan, "loan") }?;
        // SAFETY: not null, and as promised by the caller.
        let rnet_loan { loan: held, publisher, .. } = unsafe { &mut *loan };
        publisher.with(|publisher| {
            let loan = held.take().ok_or_else(|| Error::closed("the loan"))?;
            publisher.send_loan_with(loan, meta).map_err(|(loan, error)| {
                *held = Some(loan);
                Failure::Rnet(error)
            })
        })?;
        publisher.give_back();
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees a loan. If it was not sent, nothing is sent. Null is allowed.
///
/// # Safety
/// `loan` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_loan_free(loan: *mut rnet_loan) {
    // SAFETY: as promised by the caller.
    unsafe { free(loan) }
}

/// Waits in short steps, between which the object can be closed.
pub(crate) fn wait_in_slices<R>(
    timeout_ns: i64,
    mut wait: impl FnMut(Duration) -> Outcome<rnet::Result<R>>,
) -> Outcome<R> {
    let limit = duration(timeout_ns, "timeout_ns")?;
    let until = Some(limit).filter(|_| timeout_ns != RNET_FOREVER);
    let until = until.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let slice = left.map_or(WAIT_SLICE, |left| left.min(WAIT_SLICE));
        match wait(slice)? {
            Err(Error::Timeout { .. }) if until.is_none_or(|until| Instant::now() < until) => {}
            Err(Error::Timeout { topic, what, .. }) => {
                return Err(Error::timeout(topic, what, limit).into());
            }
            result => return Ok(result?),
        }
    }
}

/// Waits until at least `count` subscribers are matched: messages sent after that reach them.
///
/// Errors: RNET_TIMEOUT; once for each subscriber that cannot be matched, RNET_INCOMPATIBLE_TYPE,
/// RNET_INCOMPATIBLE_QOS or RNET_LIMIT_REACHED; RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `publisher` is a publisher, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_wait_for_subscribers(
    publisher: *mut rnet_publisher,
    count: usize,
    timeout_ns: i64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { publisher_of(publisher) }?;
        wait_in_slices(timeout_ns, |slice| {
            object.with(|publisher| Ok(publisher.wait_for_subscribers_timeout(count, slice)))
        })
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Number of subscribers that are served now.
///
/// # Safety
/// `publisher` is a publisher, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_subscriber_count(
    publisher: *mut rnet_publisher,
    out: *mut usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { publisher_of(publisher) }?;
        let count = object.with(|publisher| Ok(publisher.subscriber_count()))?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, count) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Shows that a publisher with a liveliness lease is alive.
///
/// # Safety
/// `publisher` is a publisher, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_assert_alive(
    publisher: *mut rnet_publisher,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body =
        || unsafe { publisher_of(publisher) }?.with(|publisher| Ok(publisher.assert_alive()?));
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Sets the message that each subscriber receives if this process dies; at most 4096 bytes. `data` null removes it.
///
/// # Safety
/// `publisher` is a publisher, `data` null or valid for reads of `len` bytes, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_set_last_will(
    publisher: *mut rnet_publisher,
    data: *const u8,
    len: usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { publisher_of(publisher) }?;
        if data.is_null() {
            return object.with(|publisher| Ok(publisher.clear_last_will()?));
        }
        // SAFETY: as promised by the caller.
        let will = unsafe { rnet_bytes { data, len }.get("data") }?;
        object.with(|publisher| Ok(publisher.set_last_will(will)?))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a publisher: waits for at most `timeout_ns` until its reliable subscribers have read its large messages. Its
/// calls fail with RNET_CLOSED from then on. Must still be freed. A closed publisher is allowed. If a loan exists, it
/// does not wait, and the publisher lives on until the loan is freed.
///
/// Errors: RNET_TIMEOUT if some are unread: they are lost, and counted by their subscribers.
///
/// # Safety
/// `publisher` is a publisher, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_close(
    publisher: *mut rnet_publisher,
    timeout_ns: i64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        let limit = duration(timeout_ns, "timeout_ns")?;
        // SAFETY: as promised by the caller.
        let closed = unsafe { publisher_of(publisher) }?.take(|publisher| publisher.close(limit));
        Ok(closed.unwrap_or(Ok(()))?)
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes and frees a publisher without waiting. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `publisher` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_free(publisher: *mut rnet_publisher) {
    // SAFETY: as promised by the caller.
    unsafe { free(publisher) }
}
