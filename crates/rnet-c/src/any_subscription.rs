//! `rnet_any_subscription`: one callback for all topics that match a pattern.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use rnet::AnySubscription;
use rnet::fork::ProcessOwned;

use crate::border::{enter, free, give, given};
use crate::bytes::text;
use crate::callback::{Context, rnet_free_function};
use crate::error::{Failure, Outcome, invalid, rnet_code, rnet_error};
use crate::handle::{MemberKind, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::Options;
use crate::sample::rnet_sample;
use crate::stats::{rnet_name_list, rnet_stats_list};
use crate::subscriber::{rnet_error_function, rnet_sample_function, rnet_subscriber_options};

/// A callback for all topics that match a pattern. Any thread may use it.
pub struct rnet_any_subscription(Arc<Shared<AnySubscription>>);

impl Drop for rnet_any_subscription {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// Passes each message of each topic that matches `pattern`, including future topics, to `on_message`, and each
/// error to `on_error` if that is not null. In a pattern, * matches one part of a name and ** any number of parts.
/// rnet_sample_topic() and rnet_sample_node() tell where a message is from.
///
/// The callbacks run on the node's threads: those of the urgent and the bulk lane may call them at the same time.
/// Each topic is subscribed with the same options when its first publisher is found; earlier messages are received
/// only with `transient_local`. `free_context` is called once with `context` after the last call, also if this function
/// fails. The caller frees the subscription with rnet_any_subscription_free().
///
/// Errors: RNET_BAD_NAME for an invalid pattern, RNET_BAD_QOS, RNET_BAD_VALUE, RNET_IO, RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `pattern` a string, `options` null or initialised, `out` valid for a write, `error` null or valid
/// for a write. Two other threads at a time may use the functions and the context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_subscribe_any(
    node: *const rnet_node,
    pattern: *const c_char,
    options: *const rnet_subscriber_options,
    on_message: rnet_sample_function,
    on_error: rnet_error_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_any_subscription,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        // SAFETY: as promised by the caller.
        let (node, pattern) = unsafe { (node_of(node)?, text(pattern, "pattern")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_subscriber_options::read(options)? };
        let on_message = on_message.ok_or_else(|| invalid("on_message is null"))?;
        let builder = node.get()?.subscriber::<[u8]>(pattern);
        // SAFETY: as promised by the caller.
        let builder = unsafe { options.apply(builder) }?;
        let any = builder.on_any(move |result| match result {
            Ok(sample) => {
                // SAFETY: dropped at the end of this call.
                let mut sample = unsafe { rnet_sample::borrowed(sample) };
                // SAFETY: the caller has passed the function and the context for each other.
                unsafe { on_message(&raw mut sample, context.pointer()) };
            }
            Err(failed) => {
                let Some(on_error) = on_error else { return };
                let failed = Failure::from(failed).into_error();
                // SAFETY: as above.
                unsafe { on_error(&raw const failed, context.pointer()) };
            }
        })?;
        let object = Shared::new(format!("the subscription of {}", any.pattern()), any);
        node.add(MemberKind::Subscriber, &object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_any_subscription(object)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// # Safety
/// As [`given`].
unsafe fn any_of(any: *const rnet_any_subscription) -> Outcome<Arc<ProcessOwned<AnySubscription>>> {
    // SAFETY: as promised by the caller.
    unsafe { given(any, "subscription") }?.0.get()
}

/// The topics found so far, including those without a publisher now. The caller frees the list with
/// rnet_name_list_free().
///
/// Errors: RNET_CLOSED.
///
/// # Safety
/// `any` is a subscription, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_any_subscription_topics(
    any: *const rnet_any_subscription,
    out: *mut *mut rnet_name_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let topics = unsafe { any_of(any) }?.topics();
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_name_list::new(&topics)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_subscription_stats(), for one of the topics found; empty for another one.
///
/// Errors: RNET_CLOSED.
///
/// # Safety
/// `any` is a subscription, `topic` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_any_subscription_stats(
    any: *const rnet_any_subscription,
    topic: *const c_char,
    out: *mut *mut rnet_stats_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (any, topic) = unsafe { (any_of(any)?, text(topic, "topic")?) };
        let stats = any.stats().remove(topic).unwrap_or_default();
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_stats_list::from(stats)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Ends the callbacks and frees the subscription. When it returns, they do not run and are not called again, except
/// within a callback of the same node. Null is allowed.
///
/// # Safety
/// `any` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_any_subscription_free(any: *mut rnet_any_subscription) {
    // SAFETY: as promised by the caller.
    unsafe { free(any) }
}
