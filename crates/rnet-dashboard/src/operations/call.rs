//! Calls of services, and goals of actions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet::inspect::ServerInfo;
use rnet::{CallOptions, Error, MessageType};
use rnet_format::value::{base64, encode, message_to_json};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::operator_node::OperatorNode;
use crate::outbox::Outbox;
use crate::wire::{Answer, Refusal, fields_of, part};

/// Maximum interval between two checks whether a call is cancelled.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Default timeout of a service call.
const TIMEOUT_S: f64 = 5.0;
/// Maximum timeout that a page may request, in s.
const MAX_TIMEOUT_S: f64 = 86_400.0;
/// Timeout for an action to cancel a goal of a page that is gone.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of the discovery of a server.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct CallRequest {
    service: String,
    #[serde(default)]
    request: Json,
    timeout_s: Option<f64>,
}

/// The context of a running call.
pub struct JobContext<'a> {
    pub operator: &'a OperatorNode,
    pub outbox: &'a Outbox,
    pub id: u64,
    pub cancelled: &'a AtomicBool,
}

impl JobContext<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire) || self.operator.app.is_stopped()
    }

    fn send_part(&self, word: &str, value: Json) {
        self.outbox.answer(part(self.id, word, value));
    }
}

/// The types of a server.
struct Types {
    request: MessageType,
    reply: MessageType,
    /// The feedback type, for an action.
    feedback: Option<MessageType>,
}

/// `call`.
pub fn call(job: &JobContext<'_>, fields: Json) -> Answer {
    let asked: CallRequest = fields_of(fields)?;
    let timeout_s = asked.timeout_s.unwrap_or(TIMEOUT_S);
    if !(timeout_s > 0.0 && timeout_s <= MAX_TIMEOUT_S) {
        return Err(Refusal::bad(format!("timeout_s must be above 0 and at most {MAX_TIMEOUT_S}")));
    }
    let types = find_types(job, &asked.service)?;
    let request = encode_request(&types.request, &asked.request)?;
    let options = CallOptions::new();
    match &types.feedback {
        None => {
            let options = options.timeout(Duration::from_secs_f64(timeout_s));
            call_service(job, &asked.service, &types, &request, options)
        }
        Some(feedback) => {
            // A goal has no default timeout.
            let options = match asked.timeout_s {
                Some(timeout_s) => options.timeout(Duration::from_secs_f64(timeout_s)),
                None => options,
            };
            run_action(job, &asked.service, (&types, feedback), &request, options)
        }
    }
}

fn find_types(job: &JobContext<'_>, service: &str) -> Result<Types, Refusal> {
    let until = Instant::now() + DISCOVERY_TIMEOUT;
    let mut domain = job.operator.app.options.location.domain()?;
    let known = |server: &ServerInfo<'_>| {
        let feedback = match server.feedback_type() {
            Some(feedback) => Some(feedback.message_type()?),
            None => None,
        };
        let request = server.request_type().message_type()?;
        Some(Types { request, reply: server.reply_type()?.message_type()?, feedback })
    };
    loop {
        let snapshot = domain.snapshot()?;
        let servers = snapshot.servers();
        let mut of_name = servers.iter().filter(|server| server.service == service);
        if let Some(types) = of_name.clone().find_map(known) {
            return Ok(types);
        }
        if job.is_cancelled() {
            return Err(Refusal::new("cancelled", format!("the call of {service} was cancelled")));
        }
        if Instant::now() >= until {
            return Err(match of_name.next() {
                None => Refusal::not_found(format!("{service} has no server")),
                Some(server) => Refusal::failed(format!(
                    "the types of {service} in {} cannot be read",
                    server.node()
                )),
            });
        }
        std::thread::sleep(CANCEL_CHECK_INTERVAL);
    }
}

fn encode_request(request: &MessageType, value: &Json) -> Result<Vec<u8>, Refusal> {
    let name = request.desc().name().unwrap_or("raw").to_owned();
    match (request, value) {
        (MessageType::Raw, Json::Null) => Ok(Vec::new()),
        (MessageType::Raw, Json::String(text)) => Ok(text.clone().into_bytes()),
        (MessageType::Raw, _) => Err(Refusal::bad("requests are raw bytes: send a string")),
        (request, Json::Null) => encode(request, &json!({})).map_err(Refusal::bad),
        (request, value) => encode(request, value)
            .map_err(|why| Refusal::bad(format!("the request is not a valid {name}: {why}"))),
    }
}

/// A message for the page; raw bytes as text if they are UTF-8.
fn message_json(ty: &MessageType, bytes: &[u8]) -> Result<Json, Refusal> {
    match ty {
        MessageType::Raw => Ok(match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => base64(bytes).into(),
        }),
        ty => message_to_json(ty, bytes)
            .map_err(|why| Refusal::failed(format!("the reply cannot be decoded: {why}"))),
    }
}

fn call_service(
    job: &JobContext<'_>,
    service: &str,
    types: &Types,
    request: &[u8],
    options: CallOptions,
) -> Answer {
    let node = job.operator.node()?;
    let (request_type, reply_type) = (types.request.clone(), types.reply.clone());
    let client =
        node.client::<[u8], [u8]>(service).message_types(request_type, reply_type).open()?;
    let replies = client.stream(request, options)?;
    // The last message of a stream is the reply; earlier ones are sent immediately.
    let mut last = None;
    loop {
        match replies.next_within(CANCEL_CHECK_INTERVAL) {
            Ok(Some(reply)) => {
                let reply = message_json(&types.reply, &reply)?;
                if let Some(before) = last.replace(reply) {
                    job.send_part("reply", before);
                }
            }
            Ok(None) => return Ok(json!({"reply": last})),
            Err(Error::Interrupted) if job.is_cancelled() => {
                replies.cancel();
                let why = format!("the call of {service} was cancelled");
                return Err(Refusal::new("cancelled", why));
            }
            Err(Error::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn run_action(
    job: &JobContext<'_>,
    action: &str,
    (types, feedback_type): (&Types, &MessageType),
    goal: &[u8],
    options: CallOptions,
) -> Answer {
    let node = job.operator.node()?;
    let (goal_type, result_type) = (types.request.clone(), types.reply.clone());
    let client = node
        .action_client::<[u8], [u8], [u8]>(action)
        .message_types(goal_type, feedback_type.clone(), result_type)
        .open()?;
    let goal = client.send(goal, options)?;
    let mut cancelled = None::<Instant>;
    loop {
        if job.is_cancelled() && cancelled.is_none() {
            goal.cancel()?;
            cancelled = Some(Instant::now());
        }
        let is_ignored = cancelled.is_some_and(|at| at.elapsed() >= CANCEL_TIMEOUT);
        if is_ignored && job.outbox.is_closed() {
            return Err(Refusal::new(
                "cancelled",
                format!("{action} does not react to the cancellation"),
            ));
        }
        if job.operator.app.is_stopped() {
            return Err(Refusal::new("cancelled", "the dashboard is shutting down"));
        }
        match goal.feedback_within(CANCEL_CHECK_INTERVAL) {
            Ok(Some(feedback)) => {
                job.send_part("feedback", message_json(feedback_type, &feedback)?)
            }
            Ok(None) => break,
            Err(Error::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let result = goal.result()?;
    Ok(json!({"reply": message_json(&types.reply, &result)?}))
}
