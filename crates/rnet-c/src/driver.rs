//! `rnet_driver`: the sending end of a command.

use std::ffi::{CString, c_char};
use std::time::{Duration, Instant};

use rnet::{Driver, Error};

use crate::border::{close, enter, free, give, given, write};
use crate::bytes::{rnet_bytes, text};
use crate::error::{Failure, Outcome, c_text, rnet_code, rnet_error};
use crate::handle::{Exclusive, Handle, MemberKind};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, optional_duration, options};
use crate::types::{rnet_type, type_of};

/// Default wait for a receiver.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of rnet_driver_take(). Initialise it with RNET_DRIVER_OPTIONS_INIT; 0 and null mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_driver_options {
    /// sizeof(rnet_driver_options), set by the initialiser.
    pub struct_size: usize,
    /// The type of the commands; default: raw bytes.
    pub message_type: *const rnet_type,
    /// The driver takes authority from drivers of a lower priority, up to 2,147,483,646; default 0.
    pub priority: i32,
    /// Whether lost authority is requested again by send, renew and in_force. Only if the robot may resume by
    /// itself.
    pub auto_retake: bool,
    /// Whether authority lasts until the lease expires even if this process dies first, as for a robot stop.
    pub outlasts_driver: bool,
    /// How long authority lasts after the last command, in ns: 1 ms to 1 h; default 200 ms.
    pub lease_ns: i64,
    /// How long take and retake wait for a receiver, in ns; default 10 s; RNET_FOREVER: without a limit.
    pub timeout_ns: i64,
}

options!(rnet_driver_options);

/// The sending end of a command, with authority until that ends. One thread at a time may use it; a second
/// one gets RNET_WRONG_THREAD.
pub struct rnet_driver {
    object: Handle<Exclusive<Driver<[u8]>>>,
    timeout: Duration,
    topic: CString,
}

/// # Safety
/// As [`given`].
unsafe fn driver_of<'a>(driver: *const rnet_driver) -> Outcome<&'a Exclusive<Driver<[u8]>>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(driver, "driver") }?.object)
}

/// Takes authority over a command; waits for a receiver, but not for authority. The caller frees the driver
/// with rnet_driver_free(), which releases authority.
///
/// Errors: RNET_NOT_IN_FORCE if a driver of the same or a higher priority has authority, or the process of
/// the receiver is stopped; RNET_TIMEOUT without a receiver; RNET_BAD_VALUE for a lease or priority that is
/// not allowed; RNET_INCOMPATIBLE_TYPE, RNET_BAD_NAME, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `topic` a string, `options` null or initialised, `out` valid for a write, `error` null
/// or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_driver_take(
    node: *const rnet_node,
    topic: *const c_char,
    options: *const rnet_driver_options,
    out: *mut *mut rnet_driver,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (node, topic) = unsafe { (node_of(node)?, text(topic, "topic")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_driver_options::read(options)? };
        let timeout =
            optional_duration(options.timeout_ns, "timeout_ns")?.unwrap_or(DEFAULT_TIMEOUT);
        let builder = node.get()?.drive::<[u8]>(topic);
        // SAFETY: as promised by the caller.
        let builder = builder.message_type(unsafe { type_of(options.message_type) });
        let builder = builder.priority(options.priority).auto_retake(options.auto_retake);
        let mut builder = builder.outlasts_driver(options.outlasts_driver).timeout(timeout);
        if let Some(lease) = optional_duration(options.lease_ns, "lease_ns")? {
            builder = builder.lease(lease);
        }
        let taken = builder.take_interruptible(|| node.get().is_ok());
        if matches!(taken, Err(Error::Interrupted)) {
            // The node was closed.
            node.get()?;
        }
        let driver = taken?;
        let topic = c_text(driver.topic());
        let what = format!("the driver of {}", driver.topic());
        let object = Exclusive::new("driver", what, driver, || ());
        // Closed before the publishers of the node: it publishes its release.
        let object = node.add(MemberKind::Client, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_driver { object, timeout, topic }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The topic of the command. Valid until the driver is freed; "" if `driver` is null.
///
/// # Safety
/// `driver` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_driver_topic(driver: *const rnet_driver) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { driver.as_ref() }.map_or(c"".as_ptr(), |driver| driver.topic.as_ptr())
}

/// Sends a command and renews the lease. It is applied if it arrives within the deadline of the receiver, and
/// the driver still has authority.
///
/// Errors: RNET_NOT_IN_FORCE if the receiver has reported that the authority has ended; as for
/// rnet_publisher_send().
///
/// # Safety
/// `driver` is a driver, `data` valid for reads of `len` bytes, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_driver_send(
    driver: *mut rnet_driver,
    data: *const u8,
    len: usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, command) =
            unsafe { (driver_of(driver)?, rnet_bytes { data, len }.get("data")?) };
        object.with(|driver| Ok(driver.send(command)?))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Renews the lease without a command; waits for the receiver, for at most the lease. Closing the driver ends the wait.
///
/// Errors: RNET_NOT_IN_FORCE, also if the receiver does not answer in time; RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `driver` is a driver, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_driver_renew(
    driver: *mut rnet_driver,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { driver_of(driver) }?;
        object.with(|driver| Ok(driver.renew_interruptible(|| !object.is_closing())?))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Takes authority again after it has ended; waits for a receiver for at most `timeout_ns`, 0: that of
/// rnet_driver_take(). A driver with authority keeps it.
///
/// Errors: as for rnet_driver_take(); RNET_WRONG_THREAD.
///
/// # Safety
/// `driver` is a driver, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_driver_retake(
    driver: *mut rnet_driver,
    timeout_ns: i64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let rnet_driver { object, timeout, .. } = unsafe { given(driver, "driver") }?;
        let timeout = optional_duration(timeout_ns, "timeout_ns")?.unwrap_or(*timeout);
        let begun = Instant::now();
        // In steps, so that another thread can close the driver.
        while !object.with(|driver| Ok(driver.retake_step(begun, timeout)?))? {}
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Whether the driver has authority, as last reported by the receiver.
///
/// Errors: RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `driver` is a driver, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_driver_in_force(
    driver: *mut rnet_driver,
    out: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let in_force = unsafe { driver_of(driver) }?.with(|driver| Ok(driver.in_force()))?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, in_force) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The number of its authority: higher for each that the receiver grants.
///
/// Errors: RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `driver` is a driver, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_driver_number(
    driver: *const rnet_driver,
    out: *mut u64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let number = unsafe { driver_of(driver) }?.with(|driver| Ok(driver.number()))?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, number) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Releases authority and closes the driver: the receiver falls back at once. It must still be freed. A
/// closed driver is allowed.
///
/// Errors: RNET_NOT_IN_FORCE if the process of the receiver is stopped; RNET_TIMEOUT if it does not answer
/// within the lease. Authority then ends with the lease. RNET_CLOSED if another thread closes the driver meanwhile.
///
/// # Safety
/// `driver` is a driver, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_driver_release(
    driver: *mut rnet_driver,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { driver_of(driver) }?;
        if object.is_closing() {
            object.close();
            return Ok(());
        }
        let released =
            object.with(|driver| Ok(driver.release_interruptible(|| !object.is_closing())?));
        object.close();
        match released {
            // Closing it has waited for the thread that used it, and has asked for the release.
            Err(Failure::WrongThread(_)) => Ok(()),
            released => released,
        }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_driver_release(), without reporting errors. Null and a closed driver are allowed.
///
/// # Safety
/// `driver` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_driver_close(driver: *mut rnet_driver) {
    // SAFETY: as promised by the caller.
    unsafe { close(driver, |driver| driver.object.close()) }
}

/// Closes and frees a driver. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `driver` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_driver_free(driver: *mut rnet_driver) {
    // SAFETY: as promised by the caller.
    unsafe { free(driver) }
}
