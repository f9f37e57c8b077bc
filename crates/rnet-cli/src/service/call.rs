//! `rnet service call`: a node with a client of the service.

use std::path::Path;
use std::time::{Duration, Instant};

use rnet::inspect::ServerInfo;
use rnet::limits::MAX_MESSAGE_LEN_BYTES;
use rnet::{CallOptions, Error, MessageType, Pending, Received};
use serde_json::{Value, json};

use super::list::Kind;
use super::{CallArgs, DataArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::{self, InputLimit};
use crate::signal;
use rnet_format::suggestions::did_you_mean;
use rnet_format::value::hex::{from_hex, hex};
use rnet_format::value::{Limits, Message, message_input};

/// Longest time between two checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Interval between two polls for something that is expected soon.
const REPLY_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// How long present servers may take to become ready. A stopped server never does.
const SERVERS_READY_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_LIMIT: InputLimit =
    InputLimit::new(MAX_MESSAGE_LEN_BYTES, "a request", "MAX_MESSAGE_LEN_BYTES");

type Replies = Pending<[u8]>;

/// The request of the command line.
pub enum RequestInput {
    Bytes(Vec<u8>),
    Fields(Value),
    /// Fields for a typed service, otherwise bytes.
    File(Vec<u8>),
}

pub fn run(context: &mut Context, args: &CallArgs) -> Outcome {
    let given = read_request(&args.data)?;
    let service = args.service.as_str();
    let begun = Instant::now();
    let (request_type, reply_type) =
        types(context, Kind::Service, service, args.timeout, known_types)?;
    let request = encode_request(service, given, &request_type)?;
    let node = context.node("service", &args.own_node)?;
    let client = node
        .client::<[u8], [u8]>(service)
        .message_types(request_type, reply_type.clone())
        .open()?;
    let mut options = CallOptions::new();
    if let Some(key) = &args.key {
        wait_for_servers(context, service, args.timeout, || client.server_count())?;
        options = options.key(key);
    }
    let options = options.timeout(args.timeout.saturating_sub(begun.elapsed()));
    let replies = match args.stream {
        true => client.stream(&request, options)?,
        false => client.start(&request, options)?,
    };
    let mut first = true;
    while let Some(reply) = next_reply(&replies)? {
        let document = json!({"service": service});
        print(context, document, &reply_type, &reply, (first, args.stream))?;
        // A reader that waits for progress sees it.
        context.flush()?;
        first = false;
        if !args.stream {
            break;
        }
    }
    Ok(())
}

pub fn read_request(args: &DataArgs) -> Outcome<RequestInput> {
    let usage = |why: String| Failure::Usage(why);
    if let Some(text) = &args.text {
        return Ok(RequestInput::Bytes(text.clone().into_bytes()));
    }
    if let Some(text) = &args.hex {
        return from_hex(text).map(RequestInput::Bytes).map_err(|e| usage(format!("--hex: {e}")));
    }
    if let Some(path) = &args.file {
        return input::read(Path::new(path), &REQUEST_LIMIT).map(RequestInput::File);
    }
    Ok(RequestInput::Fields(message_input::fields(args.data.as_deref().unwrap_or("{}"))?))
}

/// The types of a service, as soon as `known` finds them for a server.
pub fn types<T>(
    context: &Context,
    kind: Kind,
    service: &str,
    timeout: Duration,
    known: impl Fn(&ServerInfo<'_>) -> Option<T>,
) -> Outcome<T> {
    let mut domain = context.domain()?;
    let (mut said, mut unread) = (false, None);
    let mut hint = None;
    let found = signal::poll(timeout, STOP_CHECK_INTERVAL, || {
        let snapshot = domain.snapshot()?;
        let servers = Kind::Service.servers(&snapshot, service);
        if servers.is_empty() && !std::mem::replace(&mut said, true) {
            hint = did_you_mean(service, kind.names(&snapshot).into_iter());
            let hint = hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
            context.eprintln(format_args!("{service} has no server yet; waiting{hint}"));
        }
        let problem = snapshot.problems.iter().chain(&snapshot.unread).next();
        unread = servers.first().zip(problem).map(|(server, problem)| {
            format!("cannot read the types of {service} in {}: {problem}", server.node())
        });
        Ok(servers.iter().find_map(&known))
    })?;
    found.ok_or_else(|| match unread {
        Some(why) => Failure::Failed(why),
        None => {
            let hint = hint.unwrap_or_else(|| {
                "see rnet service list, and rnet domain list for other domains".to_owned()
            });
            Failure::TimedOut(format!("{service} had no server for {timeout:?}; {hint}"))
        }
    })
}

/// Waits for all present servers. A key chooses among the ready servers: with fewer of them, it might choose
/// another server than that of the previous call.
pub fn wait_for_servers(
    context: &Context,
    service: &str,
    limit: Duration,
    ready: impl Fn() -> usize,
) -> Outcome {
    let mut domain = context.domain()?;
    let all_ready = signal::poll(limit.min(SERVERS_READY_TIMEOUT), REPLY_POLL_INTERVAL, || {
        let there = Kind::Service.servers(&domain.snapshot()?, service).len();
        Ok((ready() >= there).then_some(()))
    })?;
    if all_ready.is_none() {
        context.eprintln(format_args!(
            "{service} has servers that do not answer; the key selects one of the others"
        ));
    }
    Ok(())
}

fn known_types(server: &ServerInfo<'_>) -> Option<(MessageType, MessageType)> {
    Some((server.request_type().message_type()?, server.reply_type()?.message_type()?))
}

pub fn encode_request(
    service: &str,
    given: RequestInput,
    request: &MessageType,
) -> Outcome<Vec<u8>> {
    let raw = matches!(request, MessageType::Raw);
    let value =
        match given {
            RequestInput::Bytes(bytes) | RequestInput::File(bytes) if raw => return Ok(bytes),
            RequestInput::Bytes(_) => {
                let name = request.desc();
                return Err(Failure::Usage(format!(
                    "{service} takes requests of type {name}: give the fields, such as '{}'",
                    message_input::example(request)
                )));
            }
            RequestInput::Fields(_) if raw => {
                return Err(Failure::Usage(format!(
                    "{service} takes raw bytes, which have no fields: use --text, --hex or --file"
                )));
            }
            RequestInput::Fields(value) => value,
            RequestInput::File(bytes) => {
                let text = String::from_utf8(bytes);
                message_input::fields(&text.map_err(|_| {
                    Failure::Failed("the content of --file is not valid UTF-8".into())
                })?)?
            }
        };
    message_input::encode("DATA", request, &value)
}

/// The next reply; a signal cancels the call.
fn next_reply(replies: &Replies) -> Outcome<Option<Received<[u8]>>> {
    loop {
        match replies.next_within(STOP_CHECK_INTERVAL) {
            Err(Error::Interrupted) if signal::stop_requested() => {
                return Err(Failure::Interrupted);
            }
            Err(Error::Interrupted) => {}
            next => return Ok(next?),
        }
    }
}

/// Prints a message: as one of several documents if there are `many`. `document` has the additional JSON
/// fields.
pub fn print(
    context: &mut Context,
    mut document: Value,
    ty: &MessageType,
    bytes: &[u8],
    (first, many): (bool, bool),
) -> Outcome {
    let message = Message::decode(ty, bytes).map_err(|why| {
        let name = ty.desc().name().unwrap_or("raw").to_owned();
        Failure::Failed(format!("the reply is not a valid {name}: {why}"))
    })?;
    if !context.json() {
        if !first {
            context.line(format_args!("---"))?;
        }
        return message.print(context.out(), Limits::of(usize::MAX, true));
    }
    document["type"] = ty.desc().name().unwrap_or("raw").into();
    match &message {
        Message::Raw(bytes) => document["hex"] = hex(bytes).into(),
        typed => document["data"] = typed.json()?,
    }
    match many {
        true => context.json_line(&document),
        false => context.document(&document),
    }
}
