//! `rnet_any_subscription`: one callback for all topics that match a pattern.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use rnet::AnySubscription;
use rnet::fork::ProcessOwned;
use rnet::state::Value;

use crate::border::{enter, free, give, given};
use crate::bytes::text;
use crate::callback::{Context, rnet_free_function};
use crate::error::{Outcome, rnet_code, rnet_error};
use crate::handle::{Handle, MemberKind, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::Options;
use crate::state_value::{give_value, rnet_value};
use crate::stats::rnet_stats_list;
use crate::subscriber::{
    message_callback, rnet_error_function, rnet_sample_function, rnet_subscriber_options,
};

/// A callback for all topics that match a pattern. Any thread may use it.
pub struct rnet_any_subscription(Handle<Shared<AnySubscription>>);

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
        let builder = node.get()?.subscriber::<[u8]>(pattern);
        // SAFETY: as promised by the caller.
        let builder = unsafe { options.apply(builder) }?;
        let freed = context.freed();
        let any = builder.on_any(message_callback(on_message, on_error, context)?)?;
        let name = format!("the subscription of {}", any.pattern());
        let object = node.add(MemberKind::Subscriber, Shared::with_end(name, any, |_| (), freed));
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

/// The topics found so far, including those without a publisher now, as a list of strings. The caller frees it with
/// rnet_value_free().
///
/// Errors: RNET_CLOSED.
///
/// # Safety
/// `any` is a subscription, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_any_subscription_topics(
    any: *const rnet_any_subscription,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give_value(out, Value::list(any_of(any)?.topics()))) }
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
    // SAFETY: as promised by the caller.
    let stats = || Outcome::Ok(unsafe { any_of(any)?.stats().remove(text(topic, "topic")?) });
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give(out, stats()?.unwrap_or_default().into())) }
}

/// Ends the callbacks and frees the subscription. When it returns, they do not run and are not called again, except
/// within a callback. Null is allowed.
///
/// # Safety
/// `any` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_any_subscription_free(any: *mut rnet_any_subscription) {
    // SAFETY: as promised by the caller.
    unsafe { free(any) }
}
