//! `rnet_command`: the receiving end of a command.

use std::ffi::{CString, c_char, c_void};
use std::panic::resume_unwind;
use std::sync::Arc;

use rnet::binding::AlreadyCounted;
use rnet::msgs::command_status::{Reason, State};
use rnet::{Command, CommandBuilder, CommandStats, Error, FallbackReason, MessageType};

use crate::border::{close, enter, free, give, given};
use crate::bytes::{optional_text, rnet_bytes, text};
use crate::callback::{Context, rnet_free_function};
use crate::error::{Outcome, c_text, invalid, rnet_code, rnet_error};
use crate::handle::{Handle, MemberKind, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, fill, optional_duration, options, set};
use crate::types::{rnet_type, type_of};

/// What a receiver does when no command is in force.
#[allow(dead_code, reason = "option structs hold its numbers")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_fallback {
    /// Calls `on_fallback`.
    RNET_FALLBACK_HANDLER = 0,
    /// Applies `fallback_message`.
    RNET_FALLBACK_MESSAGE = 1,
    /// Applies the default message of the type: zero for velocities and torques.
    RNET_FALLBACK_ZERO = 2,
    /// Applies the last command again, for positions; nothing before the first.
    RNET_FALLBACK_HOLD = 3,
}

/// Why a receiver has fallen back, or why the last driver lost authority.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_fallback_reason {
    /// It has not: a command was applied.
    RNET_REASON_NONE = 0,
    /// It was opened.
    RNET_REASON_OPENED = 1,
    /// A driver has authority, and no command was applied yet.
    RNET_REASON_GRANTED = 2,
    /// No command arrived within the deadline.
    RNET_REASON_DEADLINE = 3,
    /// The lease of the driver expired.
    RNET_REASON_EXPIRED = 4,
    /// The driver released its authority.
    RNET_REASON_RELEASED = 5,
    /// The process or host of the driver is gone.
    RNET_REASON_DRIVER_LOST = 6,
    /// A driver of a higher priority took authority.
    RNET_REASON_PREEMPTED = 7,
    /// Applying a command took longer than the deadline.
    RNET_REASON_OVERRUN = 8,
    /// The function that applies commands failed.
    RNET_REASON_PANICKED = 9,
    /// The receiver closes.
    RNET_REASON_CLOSED = 10,
    /// A reason that this version does not know.
    RNET_REASON_UNKNOWN = 11,
}

use rnet_fallback_reason::*;

impl From<FallbackReason> for rnet_fallback_reason {
    fn from(reason: FallbackReason) -> rnet_fallback_reason {
        match reason {
            FallbackReason::Opened => RNET_REASON_OPENED,
            FallbackReason::Deadline => RNET_REASON_DEADLINE,
            FallbackReason::Expired => RNET_REASON_EXPIRED,
            FallbackReason::Released => RNET_REASON_RELEASED,
            FallbackReason::DriverLost => RNET_REASON_DRIVER_LOST,
            FallbackReason::Preempted => RNET_REASON_PREEMPTED,
            FallbackReason::Overrun => RNET_REASON_OVERRUN,
            FallbackReason::Panicked => RNET_REASON_PANICKED,
            FallbackReason::Closed => RNET_REASON_CLOSED,
            _ => RNET_REASON_UNKNOWN,
        }
    }
}

impl From<Reason> for rnet_fallback_reason {
    fn from(reason: Reason) -> rnet_fallback_reason {
        match reason {
            Reason::Unspecified => RNET_REASON_NONE,
            Reason::Opened => RNET_REASON_OPENED,
            Reason::Granted => RNET_REASON_GRANTED,
            Reason::Deadline => RNET_REASON_DEADLINE,
            Reason::Expired => RNET_REASON_EXPIRED,
            Reason::Released => RNET_REASON_RELEASED,
            Reason::DriverLost => RNET_REASON_DRIVER_LOST,
            Reason::Preempted => RNET_REASON_PREEMPTED,
            Reason::Overrun => RNET_REASON_OVERRUN,
            Reason::Panicked => RNET_REASON_PANICKED,
            Reason::Closed => RNET_REASON_CLOSED,
        }
    }
}

/// Applies a command, or the fallback message. The bytes are 8-byte aligned, and valid until it returns.
///
/// It runs on a thread of its own, with real-time priority if permitted, and should return well within the
/// deadline. If it takes longer, or returns false because it failed, the fallback follows. To say why it
/// failed, it calls rnet_report_callback_error() first.
pub type rnet_apply_function =
    Option<unsafe extern "C" fn(command: rnet_bytes, context: *mut c_void) -> bool>;

/// Called to fall back, on the thread that applies commands. False: it failed.
pub type rnet_fallback_function =
    Option<unsafe extern "C" fn(reason: rnet_fallback_reason, context: *mut c_void) -> bool>;

/// Options of rnet_command_new(). Initialise it with RNET_COMMAND_OPTIONS_INIT; 0 and null mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_command_options {
    /// sizeof(rnet_command_options), set by the initialiser.
    pub struct_size: usize,
    /// The type of the commands; default: raw bytes.
    pub message_type: *const rnet_type,
    /// Longest time between two commands, in ns: 1 ms to 1 h; default 100 ms.
    pub deadline_ns: i64,
    /// What to do when no command is in force, an rnet_fallback; default: RNET_FALLBACK_HANDLER.
    pub fallback: i32,
    /// For RNET_FALLBACK_MESSAGE: the message.
    pub fallback_message: rnet_bytes,
    /// The topic on which valid commands and the fallback are published, instead of `apply`; default: none.
    pub forward: *const c_char,
}

options!(rnet_command_options, rnet_command_stats);

/// Counters of a receiver.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_command_stats {
    /// sizeof(rnet_command_stats), set by the caller: see RNET_COMMAND_STATS_INIT.
    pub struct_size: usize,
    /// Commands that were applied.
    pub applied: u64,
    /// Commands that were older than the deadline.
    pub late: u64,
    /// Commands that were already applied, or older than an applied one.
    pub repeated: u64,
    /// Commands of drivers whose authority had ended.
    pub superseded: u64,
    /// Commands of nodes that never had the authority that they claimed.
    pub unauthorised: u64,
    /// Commands that could not be decoded.
    pub malformed: u64,
    /// Commands that were passed over for a newer one, or lost in transit.
    pub skipped: u64,
    /// How often it has fallen back, except at opening and closing.
    pub fallbacks: u64,
    /// How often the function that applies commands, or the fallback, failed.
    pub panics: u64,
    /// How often applying a command took longer than the deadline.
    pub overruns: u64,
}

impl From<CommandStats> for rnet_command_stats {
    fn from(s: CommandStats) -> rnet_command_stats {
        rnet_command_stats {
            struct_size: size_of::<Self>(),
            applied: s.applied,
            late: s.late,
            repeated: s.repeated,
            superseded: s.superseded,
            unauthorised: s.unauthorised,
            malformed: s.malformed,
            skipped: s.skipped,
            fallbacks: s.fallbacks,
            panics: s.panics,
            overruns: s.overruns,
        }
    }
}

/// The receiving end of a command. Any thread may use it.
pub struct rnet_command {
    object: Handle<Shared<Command>>,
    topic: CString,
}

/// Ends the function of the user that has failed: the receiver falls back.
fn check_applied(applied: bool) {
    if !applied {
        resume_unwind(Box::new(AlreadyCounted));
    }
}

impl rnet_command_options {
    /// # Safety
    /// The fields are valid, and `context` belongs to `on_fallback`.
    unsafe fn set_fallback(
        &self,
        builder: CommandBuilder<[u8]>,
        ty: &MessageType,
        on_fallback: rnet_fallback_function,
        context: &Arc<Context>,
    ) -> Outcome<CommandBuilder<[u8]>> {
        if on_fallback.is_some() && self.fallback != 0 {
            return Err(invalid("on_fallback needs the fallback RNET_FALLBACK_HANDLER"));
        }
        Ok(match (self.fallback, on_fallback) {
            (0, None) => builder,
            (0, Some(on_fallback)) => {
                let context = context.clone();
                builder.fallback_handler(move |reason| {
                    // SAFETY: as promised by the caller.
                    check_applied(unsafe { on_fallback(reason.into(), context.pointer()) });
                })
            }
            // SAFETY: as promised by the caller.
            (1, _) => builder.fallback(unsafe { self.fallback_message.get("fallback_message") }?),
            (2, _) => match ty {
                MessageType::Plain(plain) => builder.fallback(&vec![0; plain.size][..]),
                MessageType::Protobuf(_) => builder.fallback(&[][..]),
                _ => return Err(Error::bad_value("fallback", "zero needs a message_type").into()),
            },
            (3, _) => builder.fallback_hold(),
            (other, _) => {
                return Err(invalid(format!("fallback is {other}, which is not an rnet_fallback")));
            }
        })
    }
}

/// Receives the commands of the only driver with authority: `apply` is called with each, and with the
/// fallback message. It falls back at once. The caller frees the receiver with rnet_command_free().
///
/// `apply` is null if `forward` of the options is set; `on_fallback` is null unless the fallback is
/// RNET_FALLBACK_HANDLER. `free_context` is called once with `context` after the last call of both, also if
/// this function fails.
///
/// Errors: RNET_RECEIVER_EXISTS; RNET_BAD_VALUE without a fallback, for a fallback that is not of the type or
/// fails, or for a deadline that is not allowed; RNET_BAD_NAME, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY,
/// RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `topic` a string, `options` null or initialised, `out` valid for a write, `error` null
/// or valid for a write. The functions and the context may be used by other threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_command_new(
    node: *const rnet_node,
    topic: *const c_char,
    options: *const rnet_command_options,
    apply: rnet_apply_function,
    on_fallback: rnet_fallback_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_command,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Arc::new(Context::new(context, free_context));
    let freed = context.freed();
    let body = move || {
        // SAFETY: as promised by the caller.
        let (node, topic) = unsafe { (node_of(node)?, text(topic, "topic")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_command_options::read(options)? };
        // SAFETY: as promised by the caller.
        let forward = unsafe { optional_text(options.forward, "forward") }?;
        // SAFETY: as promised by the caller.
        let ty = unsafe { type_of(options.message_type) };
        let builder = node.get()?.command::<[u8]>(topic).message_type(ty.clone());
        let deadline = optional_duration(options.deadline_ns, "deadline_ns")?;
        let builder = set(builder, deadline, CommandBuilder::deadline);
        // SAFETY: as promised by the caller.
        let builder = unsafe { options.set_fallback(builder, &ty, on_fallback, &context) }?;
        let command = match (apply, forward) {
            (Some(apply), None) => builder.apply(move |command| {
                // SAFETY: the caller has passed the function and the context for each other.
                check_applied(unsafe { apply(rnet_bytes::of(command), context.pointer()) });
            })?,
            (None, Some(topic)) => {
                // Closing the receiver waits until it is freed.
                drop(context);
                builder.forward(topic)?
            }
            _ => return Err(invalid("pass either apply or the option forward")),
        };
        let topic = c_text(command.topic());
        let what = format!("the receiver of {}", command.topic());
        let object = Shared::with_end(what, command, |_| (), freed);
        let object = node.add(MemberKind::Service, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_command { object, topic }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The topic of the command. Valid until the receiver is freed; "" if `command` is null.
///
/// # Safety
/// `command` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_command_topic(command: *const rnet_command) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { command.as_ref() }.map_or(c"".as_ptr(), |command| command.topic.as_ptr())
}

/// The counters of a receiver.
///
/// # Safety
/// `command` is a receiver, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_command_get_stats(
    command: *const rnet_command,
    out: *mut rnet_command_stats,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body = || unsafe { fill(out, given(command, "command")?.object.get()?.stats().into()) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The state of a receiver at one moment. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_command_status {
    /// The node of the driver with authority; "" without one.
    pub driver: *const c_char,
    /// The priority of that driver.
    pub priority: i32,
    /// The number of its authority, as in rnet_driver_number(); 0 without one.
    pub number: u64,
    /// Whether commands are applied; false after a fallback.
    pub in_force: bool,
    /// Whether the last fallback failed: the robot may not be safe.
    pub fallback_failed: bool,
    /// Why it is in this state.
    pub reason: rnet_fallback_reason,
}

/// A status with the text that it points to. C has a pointer to the first field.
#[repr(C)]
struct OwnedStatus {
    status: rnet_command_status,
    _driver: CString,
}

/// The driver with authority, and whether the receiver has fallen back. The caller frees it with
/// rnet_command_status_free().
///
/// # Safety
/// `command` is a receiver, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_command_get_status(
    command: *const rnet_command,
    out: *mut *mut rnet_command_status,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let found = unsafe { given(command, "command") }?.object.get()?.status();
        let driver = c_text(&found.holder);
        let status = rnet_command_status {
            driver: driver.as_ptr(),
            priority: found.priority,
            number: found.number,
            in_force: found.state() == State::InForce,
            fallback_failed: found.fallback_failed,
            reason: found.reason().into(),
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out.cast(), OwnedStatus { status, _driver: driver }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees a status. Null is allowed.
///
/// # Safety
/// `status` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_command_status_free(status: *mut rnet_command_status) {
    // SAFETY: made by rnet_command_get_status(); for the rest as promised by the caller.
    unsafe { free(status.cast::<OwnedStatus>()) }
}

/// Falls back for the last time, and closes the receiver. When it returns, its functions do not run and are not called
/// again, except within a callback. Null and a closed receiver are allowed.
///
/// # Safety
/// `command` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_command_close(command: *const rnet_command) {
    // SAFETY: as promised by the caller.
    unsafe { close(command, |command| command.object.close()) }
}

/// Closes and frees a receiver. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `command` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_command_free(command: *mut rnet_command) {
    // SAFETY: as promised by the caller.
    unsafe { free(command) }
}
