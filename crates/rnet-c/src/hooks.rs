//! Callbacks for events: matches, missed deadlines, liveliness, nodes and endpoints.

use std::ffi::c_void;

use rnet::{CallbackGuard, EndpointWatch, Publisher, Subscriber, Subscription};

use crate::border::{enter, give, given};
use crate::callback::{Context, Registration, rnet_free_function, rnet_guard};
use crate::error::{Outcome, invalid, rnet_code, rnet_error};
use crate::events::{
    rnet_deadline_event, rnet_endpoint_event, rnet_liveliness_event, rnet_match_event,
    rnet_node_event,
};
use crate::handle::MemberList;
use crate::node::{node_of, rnet_node};
use crate::publisher::{publisher_of, rnet_publisher};
use crate::subscriber::{receiving_of, rnet_subscriber, rnet_subscription, subscription_of};

/// Called for each match change, on the node's thread for the bulk lane.
pub type rnet_match_function =
    Option<unsafe extern "C" fn(event: *const rnet_match_event, context: *mut c_void)>;
/// Called for missed deadlines, on the node's thread for the bulk lane.
pub type rnet_deadline_function =
    Option<unsafe extern "C" fn(event: *const rnet_deadline_event, context: *mut c_void)>;
/// Called for each change of liveliness, on the node's thread for the bulk lane.
pub type rnet_liveliness_function =
    Option<unsafe extern "C" fn(event: *const rnet_liveliness_event, context: *mut c_void)>;
/// Called when a node joins, leaves or dies, on the node's thread for the bulk lane.
pub type rnet_node_event_function =
    Option<unsafe extern "C" fn(event: *const rnet_node_event, context: *mut c_void)>;
/// Called for each endpoint, on the node's thread for the bulk lane.
pub type rnet_endpoint_function =
    Option<unsafe extern "C" fn(event: *const rnet_endpoint_event, context: *mut c_void)>;

impl Registration for EndpointWatch {
    fn detach(self: Box<Self>) {
        EndpointWatch::detach(*self);
    }
}

/// The C function as a callback of `rnet`.
fn callback<E: 'static, C: for<'a> From<&'a E> + 'static>(
    function: Option<unsafe extern "C" fn(*const C, *mut c_void)>,
    context: Context,
) -> Outcome<impl FnMut(&E) + Send + 'static> {
    let function = function.ok_or_else(|| invalid("callback is null"))?;
    Ok(move |event: &E| {
        let event = C::from(event);
        // SAFETY: the caller has passed the function and the context for each other.
        unsafe { function(&raw const event, context.pointer()) };
    })
}

/// Gives the guard of a new callback to the caller.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn give_guard(
    out: *mut *mut rnet_guard,
    members: &MemberList,
    registration: impl Registration + 'static,
) -> Outcome {
    // SAFETY: as promised by the caller.
    unsafe { give(out, rnet_guard::new(members, registration)) }
}

/// A callback that `rnet` takes.
type Boxed<E> = Box<dyn FnMut(&E) + Send>;

/// Registers a callback of a publisher with `add`.
///
/// # Safety
/// As for rnet_publisher_on_match().
unsafe fn hook_publisher<E: 'static>(
    publisher: *mut rnet_publisher,
    callback: Outcome<impl FnMut(&E) + Send + 'static>,
    add: impl FnOnce(&Publisher<[u8]>, Boxed<E>) -> CallbackGuard,
    out: *mut *mut rnet_guard,
) -> Outcome {
    let callback = Box::new(callback?);
    // SAFETY: as promised by the caller.
    let (object, handle) = unsafe { (publisher_of(publisher)?, given(publisher, "publisher")?) };
    let guard = object.with_here(|publisher| Ok(add(publisher, callback)))?;
    // SAFETY: as promised by the caller.
    unsafe { give_guard(out, &handle.1, guard) }
}

/// Registers a callback of a subscriber with `add`.
///
/// # Safety
/// As for rnet_subscriber_on_match().
unsafe fn hook_subscriber<E: 'static>(
    subscriber: *mut rnet_subscriber,
    callback: Outcome<impl FnMut(&E) + Send + 'static>,
    add: impl FnOnce(&Subscriber<[u8]>, Boxed<E>) -> CallbackGuard,
    out: *mut *mut rnet_guard,
) -> Outcome {
    let callback = Box::new(callback?);
    // SAFETY: as promised by the caller.
    let (object, handle) = unsafe { (receiving_of(subscriber)?, given(subscriber, "subscriber")?) };
    let guard =
        object.with_here(|it| it.subscriber.read(|subscriber| add(subscriber, callback)))?;
    // SAFETY: as promised by the caller.
    unsafe { give_guard(out, &handle.members, guard) }
}

/// Registers a callback of a subscription with `add`.
///
/// # Safety
/// As for rnet_subscription_on_match().
unsafe fn hook_subscription<E: 'static>(
    subscription: *const rnet_subscription,
    callback: Outcome<impl FnMut(&E) + Send + 'static>,
    add: impl FnOnce(&Subscription, Boxed<E>) -> CallbackGuard,
    out: *mut *mut rnet_guard,
) -> Outcome {
    let callback = Box::new(callback?);
    // SAFETY: as promised by the caller.
    let (object, handle) =
        unsafe { (subscription_of(subscription)?, given(subscription, "subscription")?) };
    // SAFETY: as promised by the caller.
    unsafe { give_guard(out, &handle.1, add(&object, callback)) }
}

/// Calls `callback` for each match change of a publisher, until the guard is freed.
///
/// This and the following functions: the caller frees the guard with rnet_guard_free(), or detaches it with
/// rnet_guard_detach(). `free_context` is called once with `context` after the last call, also if the function
/// fails. Errors: RNET_CLOSED, RNET_WRONG_THREAD, RNET_INVALID_ARGUMENT.
///
/// # Safety
/// `publisher` is a publisher, `out` valid for a write, `error` null or valid for a write. The functions and the
/// context may be used by other threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_on_match(
    publisher: *mut rnet_publisher,
    callback: rnet_match_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let callback = self::callback(callback, Context::new(context, free_context));
    let add = |it: &Publisher<[u8]>, callback| it.on_match(callback);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || hook_publisher(publisher, callback, add, out)) }
}

/// Calls `callback` when a period of the publisher's deadline passes without a message. The first period starts with
/// the first message. See rnet_publisher_on_match().
///
/// # Safety
/// As for rnet_publisher_on_match().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_on_deadline(
    publisher: *mut rnet_publisher,
    callback: rnet_deadline_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let callback = self::callback(callback, Context::new(context, free_context));
    let add = |it: &Publisher<[u8]>, callback| it.on_deadline(callback);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || hook_publisher(publisher, callback, add, out)) }
}

/// Calls `callback` for each match change of a subscriber. See rnet_publisher_on_match().
///
/// # Safety
/// `subscriber` is a subscriber; otherwise as for rnet_publisher_on_match().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_on_match(
    subscriber: *mut rnet_subscriber,
    callback: rnet_match_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let callback = self::callback(callback, Context::new(context, free_context));
    let add = |it: &Subscriber<[u8]>, callback| it.on_match(callback);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || hook_subscriber(subscriber, callback, add, out)) }
}

/// Calls `callback` when a publisher has sent nothing for a period of the subscriber's deadline. The first period of
/// each publisher starts with its first message. A publisher whose process has died has missed its deadline at once,
/// for the last time; one that closes has missed none. See rnet_publisher_on_match().
///
/// # Safety
/// As for rnet_subscriber_on_match().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_on_deadline(
    subscriber: *mut rnet_subscriber,
    callback: rnet_deadline_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let callback = self::callback(callback, Context::new(context, free_context));
    let add = |it: &Subscriber<[u8]>, callback| it.on_deadline(callback);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || hook_subscriber(subscriber, callback, add, out)) }
}

/// Calls `callback` when a publisher becomes alive, or is no longer alive. See rnet_publisher_on_match().
///
/// # Safety
/// As for rnet_subscriber_on_match().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_on_liveliness(
    subscriber: *mut rnet_subscriber,
    callback: rnet_liveliness_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let callback = self::callback(callback, Context::new(context, free_context));
    let add = |it: &Subscriber<[u8]>, callback| it.on_liveliness(callback);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || hook_subscriber(subscriber, callback, add, out)) }
}

/// As rnet_subscriber_on_match(), for a subscription.
///
/// # Safety
/// `subscription` is a subscription; otherwise as for rnet_publisher_on_match().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_on_match(
    subscription: *const rnet_subscription,
    callback: rnet_match_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let callback = self::callback(callback, Context::new(context, free_context));
    let add = |it: &Subscription, callback| it.on_match(callback);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || hook_subscription(subscription, callback, add, out)) }
}

/// As rnet_subscriber_on_deadline(), for a subscription.
///
/// # Safety
/// As for rnet_subscription_on_match().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_on_deadline(
    subscription: *const rnet_subscription,
    callback: rnet_deadline_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let callback = self::callback(callback, Context::new(context, free_context));
    let add = |it: &Subscription, callback| it.on_deadline(callback);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || hook_subscription(subscription, callback, add, out)) }
}

/// As rnet_subscriber_on_liveliness(), for a subscription.
///
/// # Safety
/// As for rnet_subscription_on_match().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_on_liveliness(
    subscription: *const rnet_subscription,
    callback: rnet_liveliness_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let callback = self::callback(callback, Context::new(context, free_context));
    let add = |it: &Subscription, callback| it.on_liveliness(callback);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || hook_subscription(subscription, callback, add, out)) }
}

/// Calls `callback` when nodes of the domain join, leave or die. Nodes of other hosts count as died also when their
/// host is not reachable. See rnet_publisher_on_match().
///
/// # Safety
/// `node` is a node; otherwise as for rnet_publisher_on_match().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_on_node(
    node: *const rnet_node,
    callback: rnet_node_event_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        let callback = self::callback(callback, context)?;
        // SAFETY: as promised by the caller.
        let node = unsafe { node_of(node) }?;
        let guard = node.get()?.on_node(callback);
        // SAFETY: as promised by the caller.
        unsafe { give_guard(out, &node.members, guard) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Calls `callback` for each publisher and subscriber of the domain, including those of this node: once for each that
/// exists, then when one is opened or closed. See rnet_publisher_on_match(); also RNET_IO.
///
/// # Safety
/// As for rnet_node_on_node().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_on_endpoint(
    node: *const rnet_node,
    callback: rnet_endpoint_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        let callback = self::callback(callback, context)?;
        // SAFETY: as promised by the caller.
        let node = unsafe { node_of(node) }?;
        let watch = node.get()?.on_endpoint(callback)?;
        // SAFETY: as promised by the caller.
        unsafe { give_guard(out, &node.members, watch) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}
