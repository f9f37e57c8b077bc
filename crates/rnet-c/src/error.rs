//! `rnet_code` and `rnet_error`: what C programs get for an error.

use std::ffi::{CString, c_char};
use std::ptr;

use rnet::Error;

/// The outcome of a call. A code keeps its number in all later versions.
///
/// Codes from 1 to 99 are the errors of robot-net in every language (docs/guide/errors.md); codes from 100 on
/// do not exist in Rust.
#[allow(dead_code, reason = "the codes of Rust are made from their numbers")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_code {
    /// The call succeeded.
    RNET_OK = 0,
    /// The name of a topic, node, domain or key is invalid.
    RNET_BAD_NAME = 1,
    /// The message exceeds the limit of the topic or of robot-net. Nothing was sent.
    RNET_MESSAGE_TOO_LARGE = 2,
    /// Publisher and subscriber describe the messages of the topic differently.
    RNET_INCOMPATIBLE_TYPE = 3,
    /// The subscriber requests more than the publisher offers.
    RNET_INCOMPATIBLE_QOS = 4,
    /// A reliable subscriber is behind. The message was not sent.
    RNET_FULL = 5,
    /// The time limit is over.
    RNET_TIMEOUT = 6,
    /// A reliable publisher detached this subscriber because it made no progress.
    RNET_DETACHED = 7,
    /// The process of a peer exited without closing its node.
    RNET_PEER_LOST = 8,
    /// Shared memory for a message is not available.
    RNET_OUT_OF_MEMORY = 9,
    /// A limit of robot-net is reached.
    RNET_LIMIT_REACHED = 10,
    /// The subscriber already holds the maximum number of large samples.
    RNET_TOO_MANY_PINS = 11,
    /// Another live node of the domain has this name.
    RNET_NAME_TAKEN = 12,
    /// The user may not access a file or directory of the domain.
    RNET_NO_PERMISSION = 13,
    /// Another version of robot-net created a file in shared memory.
    RNET_LAYOUT_VERSION = 14,
    /// A peer's shared memory contains data that no correct peer writes.
    RNET_CORRUPT = 15,
    /// One message could not be decoded. It is skipped and counted.
    RNET_MALFORMED = 16,
    /// The object, or the node that it belongs to, was closed.
    RNET_CLOSED = 17,
    /// Another thread, or a signal, ended the wait.
    RNET_INTERRUPTED = 18,
    /// Contradictory or invalid quality-of-service settings.
    RNET_BAD_QOS = 19,
    /// A value does not match its type or is out of range.
    RNET_BAD_VALUE = 20,
    /// A key of the state was written since it was read. Nothing was changed.
    RNET_CONFLICT = 21,
    /// A key of the state holds values of another type. Nothing was changed.
    RNET_STATE_TYPE = 22,
    /// State could not be written to disk.
    RNET_STORAGE = 23,
    /// The server exited before it answered. The call may or may not have run.
    RNET_SERVER_LOST = 24,
    /// The home host of a key of the state does not answer.
    RNET_HOME_AWAY = 25,
    /// The handler of a service failed.
    RNET_CALL_FAILED = 26,
    /// The server is busy. The call was not started.
    RNET_REFUSED = 27,
    /// A driver lacks authority over a command.
    RNET_NOT_IN_FORCE = 28,
    /// Another node already receives this command.
    RNET_RECEIVER_EXISTS = 29,
    /// The call was cancelled.
    RNET_CANCELLED = 30,
    /// Messages of a call were lost.
    RNET_CALL_LOST = 31,
    /// The operating system refused an operation.
    RNET_IO = 32,
    /// An error that this version of the C library does not know; its text describes it.
    RNET_OTHER = 99,
    /// Another thread is using the object, and only one may use it at a time.
    RNET_WRONG_THREAD = 100,
    /// A fault of robot-net itself. The object accepts only free from now on.
    RNET_INTERNAL = 101,
    /// An argument is null, not UTF-8, or an option struct is not initialised.
    RNET_INVALID_ARGUMENT = 102,
    /// A recording did not start, or ended early.
    RNET_RECORD_FAILED = 103,
    /// A recording, or a part of it, cannot be read, or lacks the topic.
    RNET_READ_FAILED = 104,
}

use rnet_code::*;

// The codes that all languages share are 1 to RNET_IO, in the order of `Error::CODES`.
const _: () = assert!(Error::CODES.len() == RNET_IO as usize);

/// The codes that Rust does not have, with the names that `rnet_code_name` gives.
const OWN: [(&str, rnet_code); 7] = [
    ("ok", RNET_OK),
    ("other", RNET_OTHER),
    ("wrong_thread", RNET_WRONG_THREAD),
    ("internal", RNET_INTERNAL),
    ("invalid_argument", RNET_INVALID_ARGUMENT),
    ("record_failed", RNET_RECORD_FAILED),
    ("read_failed", RNET_READ_FAILED),
];

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Rnet(Error),
    /// The object is in use by another thread; its description.
    WrongThread(&'static str),
    /// The text of a panic, or the object that one has poisoned.
    Internal(String),
    /// The argument, and its fault.
    InvalidArgument(String),
    /// The text of an error that is not one of crate `rnet`, and its code.
    Coded(rnet_code, String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Rnet(error)
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

pub(crate) fn invalid(text: impl Into<String>) -> Failure {
    Failure::InvalidArgument(text.into())
}

impl Failure {
    pub(crate) fn code(&self) -> rnet_code {
        match self {
            Failure::Rnet(error) => code_of(error),
            Failure::WrongThread(_) => RNET_WRONG_THREAD,
            Failure::Internal(_) => RNET_INTERNAL,
            Failure::InvalidArgument(_) => RNET_INVALID_ARGUMENT,
            Failure::Coded(code, _) => *code,
        }
    }

    pub(crate) fn into_error(self) -> rnet_error {
        let code = self.code();
        let (topic, node) = match &self {
            Failure::Rnet(error) => (error.topic().map(c_text), error.node().map(c_text)),
            _ => (None, None),
        };
        let (kind, detail) = match &self {
            Failure::Rnet(Error::CallFailed { failure, .. }) => {
                (Some(c_text(&failure.kind)), Some(c_text(&failure.text)))
            }
            Failure::Rnet(Error::Cancelled { reason, .. }) => (Some(c_text(reason.name())), None),
            Failure::Rnet(Error::Refused { running, .. }) if !running.is_empty() => {
                (None, Some(c_text(running)))
            }
            _ => (None, None),
        };
        let text = match self {
            Failure::Rnet(error) => error.to_string(),
            Failure::WrongThread(what) => format!(
                "another thread is using this {what}, and only one may use it at a time; protect it with a mutex, or give each thread its own"
            ),
            Failure::Internal(text) => {
                format!("internal fault: {text}; this object can only be freed; please report it")
            }
            Failure::InvalidArgument(text) | Failure::Coded(_, text) => text,
        };
        rnet_error { code, text: c_text(&text), topic, node, kind, detail }
    }
}

fn code_of(error: &Error) -> rnet_code {
    let at = Error::CODES.iter().position(|code| *code == error.code());
    // SAFETY: the enum has all numbers from 1 to RNET_IO, which is the number of codes.
    at.map_or(RNET_OTHER, |at| unsafe { std::mem::transmute::<u32, rnet_code>(at as u32 + 1) })
}

/// The text as C reads it. A NUL within it becomes a blank.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// An error: its code, its text, and the topic and node that it is about. Owned by the caller, who frees it with
/// rnet_error_free(). Any thread may use it.
#[derive(Clone)]
pub struct rnet_error {
    code: rnet_code,
    text: CString,
    topic: Option<CString>,
    node: Option<CString>,
    kind: Option<CString>,
    detail: Option<CString>,
}

/// Stores a failure at `error`, if the caller asked for it, and returns its code.
///
/// # Safety
/// `error` is null or valid for a write.
#[cold]
pub(crate) unsafe fn store(failure: Failure, error: *mut *mut rnet_error) -> rnet_code {
    let code = failure.code();
    if !error.is_null() {
        let made = Box::into_raw(Box::new(failure.into_error()));
        // SAFETY: as promised by the caller.
        unsafe { error.write(made) };
    }
    code
}

/// The code of an error. RNET_OK if `error` is null.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_error_code(error: Option<&rnet_error>) -> rnet_code {
    error.map_or(RNET_OK, |error| error.code)
}

/// What failed, on which topic or node, and what to do. Valid until the error is freed; "" if `error` is null.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_error_text(error: Option<&rnet_error>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.text.as_ptr())
}

/// The topic, service or command of an error; null if it is not about one. Valid until the error is freed.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_error_topic(error: Option<&rnet_error>) -> *const c_char {
    error.and_then(|error| error.topic.as_ref()).map_or(ptr::null(), |topic| topic.as_ptr())
}

/// The peer node that an error is about; null if it is not about one. Valid until the error is freed.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_error_node(error: Option<&rnet_error>) -> *const c_char {
    error.and_then(|error| error.node.as_ref()).map_or(ptr::null(), |node| node.as_ptr())
}

/// For RNET_CALL_FAILED the kind of the handler's error, such as the class of its exception; for RNET_CANCELLED the
/// name of the reason, such as "caller"; otherwise null. Valid until the error is freed.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_error_kind(error: Option<&rnet_error>) -> *const c_char {
    error.and_then(|error| error.kind.as_ref()).map_or(ptr::null(), |kind| kind.as_ptr())
}

/// For RNET_CALL_FAILED the text of the handler's error; for RNET_REFUSED by an action the node whose goal runs;
/// otherwise null. Valid until the error is freed.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_error_detail(error: Option<&rnet_error>) -> *const c_char {
    error.and_then(|error| error.detail.as_ref()).map_or(ptr::null(), |detail| detail.as_ptr())
}

/// A copy of an error that belongs to the library, such as that of a callback. The caller frees it. Null if `error` is
/// null.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_error_clone(error: Option<&rnet_error>) -> *mut rnet_error {
    error.map_or(ptr::null_mut(), |error| Box::into_raw(Box::new(error.clone())))
}

/// Frees an error. Null is allowed.
///
/// # Safety
/// `error` is null or an error that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_error_free(error: *mut rnet_error) {
    // SAFETY: made by `store`; for the rest as promised by the caller.
    unsafe { crate::border::free(error) }
}

/// The name of a code as in docs/guide/errors.md: "timeout". "ok" for RNET_OK, "other" for an unknown number.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_code_name(code: i32) -> *const c_char {
    static NAMES: std::sync::OnceLock<Vec<(i32, CString)>> = std::sync::OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let own = OWN.into_iter().map(|(name, code)| (code as i32, c_text(name)));
        (1..).zip(Error::CODES.iter().map(|name| c_text(name))).chain(own).collect()
    });
    let found = names.iter().find(|(number, _)| *number == code);
    found.map_or(c"other".as_ptr(), |(_, name)| name.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_codes_have_the_names_of_rust_in_its_order() {
        for (number, name) in (1..).zip(Error::CODES) {
            // SAFETY: the enum has all numbers from 1 to RNET_IO.
            let code = unsafe { std::mem::transmute::<u32, rnet_code>(number) };
            assert_eq!(format!("{code:?}"), format!("RNET_{}", name.to_uppercase()));
        }
    }
}
