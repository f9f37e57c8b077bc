//! `rnet_malformed_counter`: messages that the program could not decode.

use std::ffi::c_char;

use rnet::{MalformedCounter, Subscriber};

use crate::border::{enter, free, give, given};
use crate::bytes::text;
use crate::error::{rnet_code, rnet_error};
use crate::subscriber::{receiving_of, rnet_subscriber};

/// Counts messages that the program could not decode. Any thread may use it, also after its subscriber is closed.
pub struct rnet_malformed_counter(MalformedCounter);

/// A counter of malformed messages of a subscriber, for programs that decode messages themselves. The caller frees it
/// with rnet_malformed_counter_free().
///
/// Errors: RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_malformed_counter_new(
    subscriber: *mut rnet_subscriber,
    out: *mut *mut rnet_malformed_counter,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { receiving_of(subscriber) }?;
        let counter = object.with(|it| it.subscriber.read(Subscriber::malformed_counter))?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_malformed_counter(counter)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Counts a message as malformed, and makes its error: always RNET_MALFORMED, unless an argument is invalid.
///
/// `publisher` is rnet_sample_publisher() of the message, `why` the reason.
///
/// # Safety
/// `counter` is a counter, `why` a string, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_malformed_counter_count(
    counter: *const rnet_malformed_counter,
    publisher: u64,
    why: *const c_char,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (counter, why) = unsafe { (given(counter, "counter")?, text(why, "why")?) };
        Err(counter.0.malformed(publisher, why.to_owned()).into())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees a counter. Null is allowed.
///
/// # Safety
/// `counter` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_malformed_counter_free(counter: *mut rnet_malformed_counter) {
    // SAFETY: as promised by the caller.
    unsafe { free(counter) }
}
