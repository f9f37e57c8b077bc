//! `rnet_request`: what a handler gets, and the handlers of services, actions and work queues.

use std::cell::OnceCell;
use std::ffi::{CStr, CString, c_char, c_void};

use rnet::{CallContext, CancelReason, Error, HandlerError, JobContext};

use crate::border::{enter, enter_or, given};
use crate::bytes::{bytes, rnet_bytes};
use crate::callback::Context;
use crate::error::{Outcome, c_text, invalid, rnet_code, rnet_error};

/// Why a call, a goal or a job was cancelled.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_cancel_reason {
    /// It is wanted, or it has ended.
    RNET_CANCEL_NONE = 0,
    /// Its caller cancelled it.
    RNET_CANCEL_CALLER = 1,
    /// Its caller is gone.
    RNET_CANCEL_CALLER_GONE = 2,
    /// Its time limit is over.
    RNET_CANCEL_TIMED_OUT = 3,
    /// A newer goal replaces it.
    RNET_CANCEL_PREEMPTED = 4,
    /// The server closes.
    RNET_CANCEL_SERVER_CLOSING = 5,
    /// An operator or a supervisor cancelled all goals.
    RNET_CANCEL_OPERATOR = 6,
    /// A reason that this version does not know.
    RNET_CANCEL_UNKNOWN = 7,
}

impl From<Option<CancelReason>> for rnet_cancel_reason {
    fn from(reason: Option<CancelReason>) -> rnet_cancel_reason {
        match reason {
            None => rnet_cancel_reason::RNET_CANCEL_NONE,
            Some(CancelReason::Caller) => rnet_cancel_reason::RNET_CANCEL_CALLER,
            Some(CancelReason::CallerGone) => rnet_cancel_reason::RNET_CANCEL_CALLER_GONE,
            Some(CancelReason::TimedOut) => rnet_cancel_reason::RNET_CANCEL_TIMED_OUT,
            Some(CancelReason::Preempted) => rnet_cancel_reason::RNET_CANCEL_PREEMPTED,
            Some(CancelReason::ServerClosing) => rnet_cancel_reason::RNET_CANCEL_SERVER_CLOSING,
            Some(CancelReason::Operator) => rnet_cancel_reason::RNET_CANCEL_OPERATOR,
            Some(_) => rnet_cancel_reason::RNET_CANCEL_UNKNOWN,
        }
    }
}

/// What a request is, and its state.
pub(crate) enum Origin {
    Call(CallContext),
    Goal(CallContext),
    Job(JobContext),
}

/// Sends a reply, or feedback.
pub(crate) type SendFn<'a> = &'a mut dyn FnMut(&[u8]) -> rnet::Result<()>;

enum Answer {
    /// The only reply, or the result of a goal.
    Only(Vec<u8>),
    /// Some replies were sent, or the handler has ended the replies.
    Sent,
    Failed(HandlerError),
}

/// What the handler of a service, of an action or of a work queue gets. Valid until the handler returns; only
/// the thread of the handler may use it.
pub struct rnet_request {
    data: rnet_bytes,
    origin: Origin,
    /// `'static` stands for "until the handler returns". A job has none.
    send: Option<SendFn<'static>>,
    answer: Option<Answer>,
    caller: OnceCell<CString>,
}

/// Called for each request, goal or job, on a thread of the server. If the server was opened with `at_once`,
/// several threads call it at a time. It may block, and call other services.
///
/// Before it returns, it answers: see rnet_request_answer(), rnet_request_send(), rnet_request_fail(). A call
/// that it does not answer fails with RNET_CALL_FAILED, of the kind "not_answered"; a job is then
/// acknowledged.
pub type rnet_request_function =
    Option<unsafe extern "C" fn(request: *mut rnet_request, context: *mut c_void)>;

/// A handler of C with its context.
pub(crate) struct Handler {
    function: unsafe extern "C" fn(*mut rnet_request, *mut c_void),
    context: Context,
}

impl Handler {
    pub(crate) fn new(function: rnet_request_function, context: Context) -> Outcome<Handler> {
        let function = function.ok_or_else(|| invalid("handler is null"))?;
        Ok(Handler { function, context })
    }

    /// Runs it; returns the only reply, if it has given one.
    pub(crate) fn run(
        &self,
        data: &[u8],
        origin: Origin,
        send: Option<SendFn<'_>>,
    ) -> Result<Option<Vec<u8>>, HandlerError> {
        // SAFETY: the lifetime is the only difference, and the request is dropped at the end of this call.
        let send =
            unsafe { std::mem::transmute::<Option<SendFn<'_>>, Option<SendFn<'static>>>(send) };
        let (data, caller) = (rnet_bytes::of(data), OnceCell::new());
        let mut request = rnet_request { data, origin, send, answer: None, caller };
        // SAFETY: the caller has passed the function and the context for each other.
        unsafe { (self.function)(&raw mut request, self.context.pointer()) };
        match request.answer {
            Some(Answer::Only(bytes)) => Ok(Some(bytes)),
            Some(Answer::Failed(error)) => Err(error),
            Some(Answer::Sent) => Ok(None),
            None if matches!(request.origin, Origin::Job(_)) => Ok(None),
            None => {
                Err(HandlerError::new("not_answered", "the handler returned without an answer"))
            }
        }
    }
}

impl rnet_request {
    /// # Errors
    /// `InvalidArgument` if it was answered.
    fn check_open(&self) -> Outcome {
        match self.answer {
            Some(Answer::Only(_) | Answer::Failed(_)) => {
                Err(invalid("the request was already answered"))
            }
            _ => Ok(()),
        }
    }
}

/// # Safety
/// As [`given`]; no other reference to it is used meanwhile.
unsafe fn request_of<'a>(request: *mut rnet_request) -> Outcome<&'a mut rnet_request> {
    // SAFETY: as promised by the caller.
    unsafe { given(request, "request") }?;
    // SAFETY: not null, and as promised by the caller.
    Ok(unsafe { &mut *request })
}

/// The bytes of the request, of the goal or of the job, 8-byte aligned. Empty if `request` is null.
///
/// # Safety
/// `request` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_request_data(request: *const rnet_request) -> rnet_bytes {
    // SAFETY: as promised by the caller.
    unsafe { request.as_ref() }.map_or(rnet_bytes::EMPTY, |request| request.data)
}

/// The node that sent it. Valid as long as the request; "" if `request` is null.
///
/// # Safety
/// `request` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_request_caller(request: *const rnet_request) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { request.as_ref() }.map_or(c"".as_ptr(), |request| {
        let caller = request.caller.get_or_init(|| match &request.origin {
            Origin::Call(context) | Origin::Goal(context) => c_text(context.caller()),
            Origin::Job(context) => c_text(context.pusher()),
        });
        caller.as_ptr()
    })
}

/// Whether the answer is no longer wanted: the handler should return. For a goal, its answer is then dropped:
/// a handler that has reached the goal does not ask. False if `request` is null.
///
/// # Safety
/// `request` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_request_is_cancelled(request: *const rnet_request) -> bool {
    enter_or(false, || {
        // SAFETY: as promised by the caller.
        Ok(match &unsafe { given(request, "request") }?.origin {
            Origin::Call(context) => context.is_cancelled(),
            Origin::Goal(context) => context.cancel_reason().is_some(),
            Origin::Job(context) => context.is_cancelled(),
        })
    })
}

/// As rnet_request_is_cancelled(), with the reason.
///
/// # Safety
/// `request` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_request_cancel_reason(
    request: *const rnet_request,
) -> rnet_cancel_reason {
    enter_or(rnet_cancel_reason::RNET_CANCEL_NONE, || {
        // SAFETY: as promised by the caller.
        let reason = match &unsafe { given(request, "request") }?.origin {
            Origin::Call(context) | Origin::Goal(context) => context.cancel_reason(),
            Origin::Job(context) if context.is_cancelled() => context.peek_cancel_reason(),
            Origin::Job(_) => None,
        };
        Ok(rnet_cancel_reason::from(reason))
    })
}

/// Whether it is a job that another worker had, which was lost or did not acknowledge it in time: it may be
/// done. False for requests, for goals, and if `request` is null.
///
/// # Safety
/// `request` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_request_redelivered(request: *const rnet_request) -> bool {
    // SAFETY: as promised by the caller.
    unsafe { request.as_ref() }.is_some_and(|request| match &request.origin {
        Origin::Job(context) => context.redelivered(),
        Origin::Call(_) | Origin::Goal(_) => false,
    })
}

/// Answers with the only reply, or with the result of a goal. The bytes are copied, and sent when the handler
/// returns.
///
/// Errors: RNET_INVALID_ARGUMENT for a job, or if it was answered.
///
/// # Safety
/// `request` is valid, `data` valid for reads of `len` bytes, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_request_answer(
    request: *mut rnet_request,
    data: *const u8,
    len: usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (request, bytes) = unsafe { (request_of(request)?, bytes(data, len)?) };
        request.check_open()?;
        match (&request.origin, &request.answer) {
            (Origin::Job(_), _) => Err(invalid("a job has no replies")),
            (_, Some(_)) => {
                Err(invalid("replies were sent; use rnet_request_send() for each of them"))
            }
            (_, None) => {
                request.answer = Some(Answer::Only(bytes.to_vec()));
                Ok(())
            }
        }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Sends one of several replies of a service now, or feedback of a goal.
///
/// A caller that expects one reply takes the first. Waits for at most a second if the caller does not read. The replies
/// end when the handler returns. Only the first feedback waits until the caller is connected; feedback that the caller
/// does not read is dropped, and counted at the caller.
///
/// Errors: RNET_CANCELLED if the caller wants no more replies, or the goal was cancelled: the handler should return;
/// RNET_FULL, RNET_BAD_VALUE, RNET_INCOMPATIBLE_TYPE; RNET_INVALID_ARGUMENT for a job, or if it was answered.
///
/// # Safety
/// As for rnet_request_answer().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_request_send(
    request: *mut rnet_request,
    data: *const u8,
    len: usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (request, bytes) = unsafe { (request_of(request)?, bytes(data, len)?) };
        request.check_open()?;
        let send = request.send.as_mut().ok_or_else(|| invalid("a job has no replies"))?;
        let sent = send(bytes);
        let is_reply = matches!(request.origin, Origin::Call(_));
        if is_reply && matches!(sent, Ok(()) | Err(Error::Cancelled { .. })) {
            request.answer = Some(Answer::Sent);
        }
        Ok(sent?)
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Says that the handler has sent all replies of a stream, which may be none. Needed only if it has sent
/// none.
///
/// Errors: RNET_INVALID_ARGUMENT for a goal or a job, or if it was answered.
///
/// # Safety
/// `request` is valid, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_request_end(
    request: *mut rnet_request,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let request = unsafe { request_of(request) }?;
        request.check_open()?;
        if !matches!(request.origin, Origin::Call(_)) {
            return Err(invalid("only a request of a service may have no replies"));
        }
        request.answer = Some(Answer::Sent);
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The error of a handler. The text of an exception need not be UTF-8.
///
/// # Safety
/// Both are null or strings.
pub(crate) unsafe fn handler_error(kind: *const c_char, text: *const c_char) -> HandlerError {
    let lossy = |text: *const c_char, otherwise: &str| match text.is_null() {
        true => otherwise.to_owned(),
        // SAFETY: not null, and as promised by the caller.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    HandlerError::new(lossy(kind, "failed"), lossy(text, ""))
}

/// Fails the call, the goal or the job: its caller gets RNET_CALL_FAILED with the kind and the text. The node
/// logs it. An earlier answer is dropped; replies that were sent are not. `kind` is for programs, null means
/// "failed"; `text` is for people, null means none.
///
/// Errors: RNET_INVALID_ARGUMENT.
///
/// # Safety
/// `request` is valid, `kind` and `text` are null or strings, `error` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_request_fail(
    request: *mut rnet_request,
    kind: *const c_char,
    text: *const c_char,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (request, failed) = unsafe { (request_of(request)?, handler_error(kind, text)) };
        request.answer = Some(Answer::Failed(failed));
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}
