//! Actions: their servers, `rnet_action_client` and `rnet_goal`.

use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

use rnet::{ActionClient, ActionContext, Error, Goal, GoalPolicy, HandlerError};

use crate::border::{close, enter, free, give, give_optional, given, write};
use crate::bytes::{bytes, text};
use crate::callback::{Context, rnet_free_function};
use crate::error::{c_text, invalid, rnet_code, rnet_error};
use crate::handle::{Handle, MemberKind, MemberList, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, fill, options};
use crate::request::{Handler, Origin, rnet_request_function};
use crate::sample::rnet_sample;
use crate::service::rnet_service;
use crate::service_client::{call_options, rnet_call_options, rnet_client_stats, wait_within};
use crate::types::{rnet_type, type_of};

/// What an action does with a goal that arrives while another one runs.
#[allow(dead_code, reason = "option structs hold its numbers")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_goal_policy {
    /// Refuses it: its caller gets RNET_REFUSED.
    RNET_GOAL_REJECT = 0,
    /// Queues it; see `queue` of rnet_action_options.
    RNET_GOAL_QUEUE = 1,
    /// Cancels the earlier goals, with the reason RNET_CANCEL_PREEMPTED. The new one begins when the handler
    /// of the running one has returned.
    RNET_GOAL_REPLACE = 2,
}

/// Options of rnet_action_new() and rnet_action_client_new(). Initialise it with RNET_ACTION_OPTIONS_INIT; 0
/// and null mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_action_options {
    /// sizeof(rnet_action_options), set by the initialiser.
    pub struct_size: usize,
    /// The type of goals; default: raw bytes.
    pub goal_type: *const rnet_type,
    /// The type of feedback; default: raw bytes.
    pub feedback_type: *const rnet_type,
    /// The type of results; default: raw bytes.
    pub result_type: *const rnet_type,
    /// What the server does with a goal while another one runs, an rnet_goal_policy.
    pub policy: i32,
    /// For RNET_GOAL_QUEUE: how many goals may wait, 1 to 65,536. It has no default.
    pub queue: u32,
}

options!(rnet_action_options);

impl rnet_action_options {
    /// # Safety
    /// The types are null or valid.
    unsafe fn types(&self) -> [rnet::MessageType; 3] {
        // SAFETY: as promised by the caller.
        [self.goal_type, self.feedback_type, self.result_type].map(|ty| unsafe { type_of(ty) })
    }

    fn policy(&self) -> crate::error::Outcome<GoalPolicy> {
        match (self.policy, self.queue) {
            (0, 0) => Ok(GoalPolicy::Reject),
            (1, goals) => Ok(GoalPolicy::Queue(goals as usize)),
            (2, 0) => Ok(GoalPolicy::Replace),
            (0 | 2, _) => {
                Err(Error::bad_value("queue", "it is set, but the policy is not RNET_GOAL_QUEUE")
                    .into())
            }
            (other, _) => {
                Err(invalid(format!("policy is {other}, which is not an rnet_goal_policy")))
            }
        }
    }
}

/// Serves an action: `handler` is called for each goal, one at a time. It sends feedback with
/// rnet_request_send(), and gives the result with rnet_request_answer(). The caller frees the server with
/// rnet_service_free().
///
/// A goal whose handler has asked for its cancellation, and saw it, ends with RNET_CANCELLED,
/// whatever the handler answers.
///
/// `free_context` is called once with `context` after the last call, also if this function fails.
///
/// Errors: as for rnet_service_new().
///
/// # Safety
/// As for rnet_service_new().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_action_new(
    node: *const rnet_node,
    name: *const c_char,
    options: *const rnet_action_options,
    handler: rnet_request_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_service,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        // SAFETY: as promised by the caller.
        let (node, name) = unsafe { (node_of(node)?, text(name, "name")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_action_options::read(options)? };
        let freed = context.freed();
        let handler = Handler::new(handler, context)?;
        // SAFETY: as promised by the caller.
        let [goal, feedback, result] = unsafe { options.types() };
        let builder = node.get()?.action::<[u8], [u8], [u8]>(name).policy(options.policy()?);
        let builder = builder.message_types(goal, feedback, result);
        let run = move |goal: &[u8], context: &mut ActionContext<'_, [u8]>| {
            let origin = Origin::Goal(context.context());
            let result =
                handler.run(goal, origin, Some(&mut |bytes: &[u8]| context.feedback(bytes)))?;
            result.ok_or_else(|| HandlerError::new("not_answered", "the goal has no result"))
        };
        let service = builder.serve(run)?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_service::new(node, service, freed)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

type Actions = ActionClient<[u8], [u8], [u8]>;
type Sent = Goal<[u8], [u8]>;

/// Sends goals to one action. Any thread may use it, with any number of goals at a time.
pub struct rnet_action_client {
    object: Arc<Shared<Actions>>,
    members: Arc<MemberList>,
    name: CString,
}

/// Opens a client of an action, whose servers may start later. The caller frees it with
/// rnet_action_client_free().
///
/// Errors: as for rnet_client_new().
///
/// # Safety
/// As for rnet_client_new().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_action_client_new(
    node: *const rnet_node,
    name: *const c_char,
    options: *const rnet_action_options,
    out: *mut *mut rnet_action_client,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (node, name) = unsafe { (node_of(node)?, text(name, "name")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_action_options::read(options)? };
        // SAFETY: as promised by the caller.
        let [goal, feedback, result] = unsafe { options.types() };
        let builder = node.get()?.action_client::<[u8], [u8], [u8]>(name);
        let client = builder.message_types(goal, feedback, result).open()?;
        let (name, members) = (c_text(client.name()), node.members.clone());
        let what = format!("the client of {}", client.name());
        let object = Shared::with_end(what, client, Actions::close, None);
        members.add(MemberKind::Client, &object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_action_client { object, members, name }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// A goal that was sent. Any thread may use it.
pub struct rnet_goal {
    object: Handle<Shared<Sent>>,
    action: String,
}

/// Sends a goal, without waiting. If no server exists, it goes to the first that starts. The caller frees it
/// with rnet_goal_free(), which cancels it.
///
/// Errors: RNET_BAD_VALUE, RNET_CLOSED. Others are those of rnet_goal_result().
///
/// # Safety
/// `client` is a client, `data` valid for reads of `len` bytes, `options` null or initialised, `out` valid
/// for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_action_client_send(
    client: *const rnet_action_client,
    data: *const u8,
    len: usize,
    options: *const rnet_call_options,
    out: *mut *mut rnet_goal,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (client, goal) = unsafe { (given(client, "client")?, bytes(data, len)?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { call_options(options)? };
        let open = client.object.get()?;
        let goal = open.send(goal, options)?;
        let action = open.name().to_owned();
        let what = format!("the goal of {action}");
        let object = Shared::with_end(what, goal, Sent::abandon, None);
        let object = Handle::new(&client.members, MemberKind::Client, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_goal { object, action }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Asks all servers of the action to cancel all goals, of every client, and stores the number of servers: for
/// operators and supervisors.
///
/// Errors: RNET_FULL if a server does not read; RNET_CLOSED.
///
/// # Safety
/// `client` is a client, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_action_client_cancel_all(
    client: *const rnet_action_client,
    out: *mut usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body = || unsafe { write(out, given(client, "client")?.object.get()?.cancel_all()?) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The name of the action, with its leading slash. Valid until the client is freed; "" if `client` is null.
///
/// # Safety
/// `client` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_action_client_name(
    client: *const rnet_action_client,
) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { client.as_ref() }.map_or(c"".as_ptr(), |client| client.name.as_ptr())
}

/// The counters of a client.
///
/// # Safety
/// `client` is a client, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_action_client_get_stats(
    client: *const rnet_action_client,
    out: *mut rnet_client_stats,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let client = unsafe { given(client, "client") }?.object.get()?;
        // SAFETY: as promised by the caller.
        unsafe { fill(out, rnet_client_stats::new(&client.stats(), client.server_count())) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a client: its goals are cancelled and end with RNET_CLOSED, also those that other threads wait for.
/// Null and a closed client are allowed.
///
/// # Safety
/// `client` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_action_client_close(client: *const rnet_action_client) {
    // SAFETY: as promised by the caller.
    unsafe { close(client, |client| client.object.close()) }
}

/// Frees a client. Goals that it sent continue; see rnet_action_client_close(). Null is allowed. No other
/// thread may be about to use it.
///
/// # Safety
/// `client` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_action_client_free(client: *mut rnet_action_client) {
    // SAFETY: as promised by the caller.
    unsafe { free(client) }
}

/// Waits for the next feedback, for at most `timeout_ns`. `*out` becomes an owned sample, which the caller
/// frees; null once the goal has ended. Up to 1,024 unread messages wait; older ones are skipped and counted.
///
/// Errors: RNET_TIMEOUT if none is there yet; RNET_CLOSED.
///
/// # Safety
/// `goal` is a goal, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_goal_feedback(
    goal: *const rnet_goal,
    timeout_ns: i64,
    out: *mut *mut rnet_sample,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let rnet_goal { object, action } = unsafe { given(goal, "goal") }?;
        let feedback = object.wait(|goal| {
            let what = format!("feedback of {action}");
            let over = |limit| Error::timeout(action.as_str(), what, limit);
            wait_within(timeout_ns, |left| goal.feedback_within(left), over)
        })?;
        // SAFETY: as promised by the caller.
        unsafe { give_optional(out, feedback.map(rnet_sample::received)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Waits for the result, for at most `timeout_ns`. `*out` becomes an owned sample, which the caller frees.
/// The result is given once.
///
/// Errors: RNET_TIMEOUT, after which the goal continues, unless its own time limit is over; RNET_CANCELLED
/// once the handler has returned; RNET_CLOSED if the result was given; the others of rnet_client_call().
///
/// # Safety
/// As for rnet_goal_feedback().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_goal_result(
    goal: *const rnet_goal,
    timeout_ns: i64,
    out: *mut *mut rnet_sample,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let rnet_goal { object, action } = unsafe { given(goal, "goal") }?;
        let result = object.wait(|goal| {
            let what = format!("the result of a goal of {action}");
            let over = |limit| Error::timeout(action.as_str(), what, limit);
            wait_within(timeout_ns, |left| goal.result_within(left), over)
        })?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_sample::received(result)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Asks the server to cancel the goal: it ends with RNET_CANCELLED once its handler has returned, or with its
/// result if that came first.
///
/// Errors: RNET_FULL if the server does not read: it was not asked; RNET_CLOSED.
///
/// # Safety
/// `goal` is a goal, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_goal_cancel(
    goal: *const rnet_goal,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body = || Ok(unsafe { given(goal, "goal") }?.object.get()?.cancel()?);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Cancels and frees a goal, without waiting. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `goal` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_goal_free(goal: *mut rnet_goal) {
    // SAFETY: as promised by the caller.
    unsafe { free(goal) }
}
