//! The log of a node: text lines for people, on the topic `/log` and on stderr.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

use rnet::{LogLevel, Logger};

use crate::border::enter_or;
use crate::error::{Outcome, invalid};
use crate::node::{node_of, rnet_node};

/// Severity of a log line.
#[allow(dead_code, reason = "options hold its numbers")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_log_level {
    /// Details for developers.
    RNET_LOG_DEBUG = 1,
    /// As expected.
    RNET_LOG_INFO = 2,
    /// Unexpected, but the work continues.
    RNET_LOG_WARNING = 3,
    /// Something could not be done.
    RNET_LOG_ERROR = 4,
    /// The program ends.
    RNET_LOG_FATAL = 5,
}

/// Runs `act` with the log of a node.
///
/// # Safety
/// `node` is null or a node.
unsafe fn with_log<R>(
    node: *const rnet_node,
    otherwise: R,
    act: impl FnOnce(&Logger) -> Outcome<R>,
) -> R {
    // SAFETY: as promised by the caller.
    enter_or(otherwise, || act(unsafe { node_of(node) }?.get()?.log()))
}

fn level_of(level: i32) -> Outcome<LogLevel> {
    LogLevel::from_number(level).ok_or_else(|| invalid(format!("{level} is not an rnet_log_level")))
}

/// The text, with replacement characters if it is not UTF-8; empty if it is null.
///
/// # Safety
/// `text` is null or a string that lives as long as the result.
unsafe fn any_text<'a>(text: *const c_char) -> Cow<'a, str> {
    if text.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: not null, and as promised by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// Logs a line at an rnet_log_level. `file` and `line` are its place in the source, __FILE__ and __LINE__; null and 0
/// if unknown.
///
/// Logging never blocks, and has no errors: a line that cannot be published goes to stderr. At most 100 lines per
/// second from one place, and 1,000 from a node, are logged; suppressed lines are counted and reported once per second.
/// Without effect on a null or closed node, and for a number that is not a level. Any thread may call it.
///
/// # Safety
/// `node` is null or a node; `text` and `file` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_log(
    node: *const rnet_node,
    level: i32,
    text: *const c_char,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        with_log(node, (), |log| {
            log.log_from(level_of(level)?, any_text(text), &any_text(file), line);
            Ok(())
        });
    }
}

/// As rnet_node_log(), for a sink of another logging library: ignores the level of the node, and does not print on
/// stderr.
///
/// # Safety
/// As for rnet_node_log().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_publish_log(
    node: *const rnet_node,
    level: i32,
    text: *const c_char,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        with_log(node, (), |log| {
            log.publish(level_of(level)?, any_text(text), &any_text(file), line);
            Ok(())
        });
    }
}

/// The lowest level that is logged, an rnet_log_level: RNET_LOG, or info. 0 if `node` is null or closed.
///
/// # Safety
/// `node` is null or a node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_log_level(node: *const rnet_node) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { with_log(node, 0, |log| Ok(log.level() as i32)) }
}

/// Drops lines below `level` from now on. Without effect if it is not an rnet_log_level.
///
/// # Safety
/// `node` is null or a node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_set_log_level(node: *const rnet_node, level: i32) {
    // SAFETY: as promised by the caller.
    unsafe {
        with_log(node, (), |log| {
            log.set_level(level_of(level)?);
            Ok(())
        });
    }
}

/// Whether lines of `level` are logged: to skip the formatting of others.
///
/// # Safety
/// `node` is null or a node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_is_log_enabled(node: *const rnet_node, level: i32) -> bool {
    // SAFETY: as promised by the caller.
    unsafe { with_log(node, false, |log| Ok(log.is_enabled(level_of(level)?))) }
}

/// Number of lines suppressed by the limits since the node was opened.
///
/// # Safety
/// `node` is null or a node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_suppressed_log_count(node: *const rnet_node) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe { with_log(node, 0, |log| Ok(log.suppressed_count())) }
}
