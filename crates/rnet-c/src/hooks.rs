//! Callbacks for events: matches, missed deadlines, liveliness, nodes and endpoints.

use std::ffi::c_void;
use std::sync::Arc;

use rnet::{
    CallbackGuard, DeadlineMissed, EndpointEvent, LivelinessChange, MatchEvent, NodeEvent,
    Subscriber,
};

use crate::border::{enter, give, given};
use crate::callback::{Context, rnet_free_function, rnet_guard};
use crate::error::{Outcome, invalid, rnet_code, rnet_error};
use crate::events::{
    rnet_deadline_event, rnet_endpoint_event, rnet_liveliness_event, rnet_match_event,
    rnet_node_event,
};
use crate::handle::MemberList;
use crate::node::{node_of, rnet_node};
use crate::options::{Options, options};
use crate::publisher::{publisher_of, rnet_publisher};
use crate::subscriber::{receiving_of, rnet_subscriber, rnet_subscription};

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

/// Callbacks for events of an endpoint. Initialise it with RNET_EVENT_CALLBACKS_INIT; null: none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_event_callbacks {
    /// sizeof(rnet_event_callbacks), set by the initialiser.
    pub struct_size: usize,
    /// Called for each match change.
    pub on_match: rnet_match_function,
    /// Of a publisher: called when a period of its deadline passes without a message. The first period starts with
    /// the first message. Of a subscriber: called when a publisher has sent nothing for a period of the subscriber's
    /// deadline. The first period of each publisher starts with its first message. A publisher whose process has died
    /// has missed its deadline at once, for the last time; one that closes has missed none.
    pub on_deadline: rnet_deadline_function,
    /// Called when a publisher becomes alive, or is no longer alive; not for publishers.
    pub on_liveliness: rnet_liveliness_function,
}

options!(rnet_event_callbacks);

/// The C function as a callback of `rnet`.
fn callback<E: 'static, C: for<'a> From<&'a E> + 'static>(
    function: unsafe extern "C" fn(*const C, *mut c_void),
    context: &Arc<Context>,
) -> Box<dyn FnMut(&E) + Send> {
    let context = context.clone();
    Box::new(move |event: &E| {
        let event = C::from(event);
        // SAFETY: the caller has passed the function and the context for each other.
        unsafe { function(&raw const event, context.pointer()) };
    })
}

/// Gives the guard of new callbacks to the caller.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn give_guard(
    out: *mut *mut rnet_guard,
    members: &Arc<MemberList>,
    registration: impl Send + Sync + 'static,
    context: Arc<Context>,
) -> Outcome {
    let freed = context.freed();
    // The guard, if `out` is null, waits until the callbacks have freed it.
    drop(context);
    // SAFETY: as promised by the caller.
    unsafe { give(out, rnet_guard::new(members, registration, freed)) }
}

/// What registers a callback for an event `E`.
type Register<'a, E> = &'a dyn Fn(Box<dyn FnMut(&E) + Send>) -> CallbackGuard;

impl rnet_event_callbacks {
    /// Registers the callbacks of an endpoint, which has no event where it gives `None`.
    fn register(
        &self,
        context: &Arc<Context>,
        on_match: Register<'_, MatchEvent>,
        on_deadline: Register<'_, DeadlineMissed>,
        on_liveliness: Option<Register<'_, LivelinessChange>>,
    ) -> Outcome<Vec<CallbackGuard>> {
        let liveliness = match (self.on_liveliness, on_liveliness) {
            (Some(function), Some(add)) => Some(add(callback(function, context))),
            (Some(_), None) => return Err(invalid("on_liveliness is not for publishers")),
            (None, _) => None,
        };
        let matches = self.on_match.map(|function| on_match(callback(function, context)));
        let deadlines = self.on_deadline.map(|function| on_deadline(callback(function, context)));
        let guards: Vec<_> = [matches, deadlines, liveliness].into_iter().flatten().collect();
        if guards.is_empty() { Err(invalid("no callback is set")) } else { Ok(guards) }
    }
}

/// Calls `callbacks` for events of a publisher, until the guard is freed.
///
/// This and the following functions: the caller frees the guard with rnet_guard_free(), or detaches it with
/// rnet_guard_detach(). `free_context` is called once with `context` after the last call, also if the function
/// fails. Errors: RNET_CLOSED, RNET_WRONG_THREAD, RNET_INVALID_ARGUMENT.
///
/// # Safety
/// `publisher` is a publisher, `callbacks` initialised, `out` valid for a write, `error` null or valid for a write.
/// The functions and the context may be used by other threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_on_event(
    publisher: *mut rnet_publisher,
    callbacks: *const rnet_event_callbacks,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Arc::new(Context::new(context, free_context));
    let body = move || {
        // SAFETY: as promised by the caller.
        let (callbacks, object) =
            unsafe { (rnet_event_callbacks::read(callbacks)?, publisher_of(publisher)?) };
        let guards = object.with_here(|it| {
            callbacks.register(&context, &|f| it.on_match(f), &|f| it.on_deadline(f), None)
        })?;
        // SAFETY: as promised by the caller.
        unsafe { give_guard(out, object.members(), guards, context) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Calls `callbacks` for events of a subscriber. See rnet_publisher_on_event().
///
/// # Safety
/// `subscriber` is a subscriber; otherwise as for rnet_publisher_on_event().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_on_event(
    subscriber: *mut rnet_subscriber,
    callbacks: *const rnet_event_callbacks,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Arc::new(Context::new(context, free_context));
    let body = move || {
        // SAFETY: as promised by the caller.
        let (callbacks, object) =
            unsafe { (rnet_event_callbacks::read(callbacks)?, receiving_of(subscriber)?) };
        let register = |it: &Subscriber<[u8]>| {
            let liveliness: Register<'_, LivelinessChange> = &|f| it.on_liveliness(f);
            let deadlines: Register<'_, DeadlineMissed> = &|f| it.on_deadline(f);
            callbacks.register(&context, &|f| it.on_match(f), deadlines, Some(liveliness))
        };
        let guards = object.with_here(|it| it.subscriber.read(register))??;
        // SAFETY: as promised by the caller.
        unsafe { give_guard(out, object.members(), guards, context) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_subscriber_on_event(), for a subscription.
///
/// # Safety
/// `subscription` is a subscription; otherwise as for rnet_publisher_on_event().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_on_event(
    subscription: *const rnet_subscription,
    callbacks: *const rnet_event_callbacks,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Arc::new(Context::new(context, free_context));
    let body = move || {
        // SAFETY: as promised by the caller.
        let (callbacks, subscription) = unsafe {
            (rnet_event_callbacks::read(callbacks)?, given(subscription, "subscription")?)
        };
        let it = subscription.0.get()?;
        let liveliness: Register<'_, LivelinessChange> = &|f| it.on_liveliness(f);
        let deadlines: Register<'_, DeadlineMissed> = &|f| it.on_deadline(f);
        let guards =
            callbacks.register(&context, &|f| it.on_match(f), deadlines, Some(liveliness))?;
        // SAFETY: as promised by the caller.
        unsafe { give_guard(out, subscription.0.members(), guards, context) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Calls `callback` when nodes of the domain join, leave or die. Nodes of other hosts count as died also when their
/// host is not reachable. See rnet_publisher_on_event().
///
/// # Safety
/// `node` is a node; otherwise as for rnet_publisher_on_event().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_on_node(
    node: *const rnet_node,
    callback: rnet_node_event_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Arc::new(Context::new(context, free_context));
    let body = move || {
        let callback = callback.ok_or_else(|| invalid("callback is null"))?;
        // SAFETY: as promised by the caller.
        let node = unsafe { node_of(node) }?;
        let guard = node.get()?.on_node(self::callback::<NodeEvent, _>(callback, &context));
        // SAFETY: as promised by the caller.
        unsafe { give_guard(out, &node.members, guard, context) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Calls `callback` for each publisher and subscriber of the domain, including those of this node: once for each that
/// exists, then when one is opened or closed. See rnet_publisher_on_event(); also RNET_IO.
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
    let context = Arc::new(Context::new(context, free_context));
    let body = move || {
        let callback = callback.ok_or_else(|| invalid("callback is null"))?;
        // SAFETY: as promised by the caller.
        let node = unsafe { node_of(node) }?;
        let watch =
            node.get()?.on_endpoint(self::callback::<EndpointEvent, _>(callback, &context))?;
        // SAFETY: as promised by the caller.
        unsafe { give_guard(out, &node.members, watch, context) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}
