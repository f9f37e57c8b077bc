//! `rnet topic pub`.
//!
//! Runs a node with a publisher. It offers reliable and transient_local, which satisfies every subscriber,
//! and evicts a subscriber that makes no progress, so that it never hangs.

use std::time::{Duration, Instant};

use rnet::inspect::{Domain, Snapshot};
use rnet::{Error, Lane, MessageType, OnFull, Publisher};
use serde_json::json;

use super::args::{LaneArg, PubArgs};
use super::payload::{Payload, PayloadTypes, encode_last_will};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use rnet_monitor::type_name;

/// Longest time between two checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a subscriber may make no progress before it is evicted.
const STALL_LIMIT: Duration = Duration::from_secs(1);
/// Minimum lifetime of the publisher: observers scan for new ones ten times a second.
const MIN_PUBLISHER_LIFETIME: Duration = Duration::from_millis(300);
/// How long the publisher waits until its last messages are read.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

pub fn run(context: &mut Context, args: PubArgs) -> Outcome {
    let payload = Payload::of(&args)?;
    let types = PayloadTypes::of(&args, &payload)?;
    let topic = args.topic.as_str();
    let mut domain = context.domain()?;
    let (snapshot, bytes, message_type) = resolve(context, &mut domain, &args, &payload, &types)?;
    warn_if_command(context, &mut domain, topic)?;
    let desc = message_type.desc();
    let will =
        args.will.as_deref().map(|data| encode_last_will(data, &message_type)).transpose()?;
    let node = context.node("pub", &args.own_node)?;
    let mut builder = node.publisher::<[u8]>(topic).message_type(message_type).transient_local(1);
    builder = builder.reliable(OnFull::Detach { stall: STALL_LIMIT });
    if lane(&args, &snapshot) == Some(Lane::Urgent) {
        builder = builder.urgent();
    }
    if let Some(will) = will {
        builder = builder.last_will(will.as_slice());
    }
    let mut publisher = builder.open()?;
    let begun = Instant::now();
    let wanted = if args.once { Some(1) } else { args.count };
    if wanted.is_some() && !args.no_wait {
        wait_for_subscriber(&publisher, args.timeout)?;
    }
    let ended = send_all(&mut publisher, &bytes, wanted, args.rate);
    let subscribers = publisher.subscriber_count();
    if ended.is_ok() {
        wait_until_drained(context, &mut domain, publisher.topic(), publisher.id());
        while begun.elapsed() < MIN_PUBLISHER_LIFETIME && !signal::stop_requested() {
            std::thread::sleep(STOP_CHECK_INTERVAL);
        }
    }
    let sent = publisher.sent();
    if context.json() {
        context.document(&json!({
            "topic": topic,
            "type": type_name(&desc),
            "node": node.name(),
            "sent": sent,
            "len": bytes.len(),
            "subscribers": subscribers,
        }))?;
    } else {
        let s = |n: u64| if n == 1 { "" } else { "s" };
        context.eprintln(format_args!(
            "published {sent} message{} on {topic} to {subscribers} subscriber{}",
            s(sent),
            s(subscribers as u64)
        ));
    }
    ended
}

/// Warns that the topic is a command: its publisher sees subscribers, but the receiver ignores messages
/// without authority.
fn warn_if_command(context: &Context, domain: &mut Domain, topic: &str) -> Outcome {
    let status = domain.topic_snapshot(&rnet::command_status_topic(topic))?;
    if let Some(receiver) = status.publishers.first() {
        let node = &receiver.node;
        context.note(&format!(
            "{topic} is a command, and {node} ignores messages sent without authority; to send with authority, \
             use rnet command take {topic}"
        ));
    }
    Ok(())
}

/// The bytes to send and their type, which may not be known yet.
fn resolve(
    context: &Context,
    domain: &mut Domain,
    args: &PubArgs,
    payload: &Payload,
    types: &PayloadTypes,
) -> Outcome<(Snapshot, Vec<u8>, MessageType)> {
    let topic = args.topic.as_str();
    let mut said = false;
    let found = signal::poll(args.timeout, STOP_CHECK_INTERVAL, || {
        let snapshot = domain.topic_snapshot(topic)?;
        if let Some((bytes, message_type)) = payload.resolve(topic, &snapshot, types)? {
            return Ok(Some((snapshot, bytes, message_type)));
        }
        if let Some(why) = types.why_type_is_unknown(payload) {
            return Err(Failure::Usage(format!(
                "{why}; {topic} has no endpoint that declares the type: start the other side first, give the \
                 type's file with --proto, or send text with --text"
            )));
        }
        if !std::mem::replace(&mut said, true) {
            context.eprintln(format_args!(
                "{topic} has no endpoint yet, so its type is unknown; waiting"
            ));
        }
        Ok(None)
    })?;
    found.ok_or_else(|| {
        Failure::TimedOut(format!(
            "{topic} had no endpoint for {:?}, so the type of DATA is unknown: start the other side first, \
             give the type (TYPE, --proto), or send bytes with --hex, --text or --file",
            args.timeout
        ))
    })
}

/// The lane of a publisher: a topic has one, so that of the others unless the user chose one.
fn lane(args: &PubArgs, snapshot: &Snapshot) -> Option<Lane> {
    let publishers = snapshot.publishers.iter().map(|p| p.qos.lane);
    match args.lane {
        Some(LaneArg::Urgent) => Some(Lane::Urgent),
        Some(LaneArg::Bulk) => Some(Lane::Bulk),
        None => publishers.chain(snapshot.subscriptions.iter().filter_map(|s| s.qos.lane)).next(),
    }
}

fn wait_for_subscriber(publisher: &Publisher<[u8]>, timeout: Duration) -> Outcome {
    let found = signal::poll(timeout, Duration::ZERO, || {
        match publisher.wait_for_subscribers_timeout(1, STOP_CHECK_INTERVAL) {
            Ok(()) => Ok(Some(())),
            Err(Error::Timeout { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    })?;
    found.ok_or_else(|| {
        Failure::TimedOut(format!(
            "{} had no subscriber for {timeout:?}; nothing was sent. rnet topic echo does not count as a \
             subscriber: use --no-wait to send anyway, or rnet doctor --topic {0} to find the cause",
            publisher.topic()
        ))
    })
}

fn send_all(
    publisher: &mut Publisher<[u8]>,
    bytes: &[u8],
    wanted: Option<u64>,
    rate_hz: f64,
) -> Outcome {
    let period = Duration::from_secs_f64(1.0 / rate_hz);
    let mut next = Instant::now();
    loop {
        if signal::stop_requested() {
            return Err(Failure::Interrupted);
        }
        publisher.send(bytes)?;
        if Some(publisher.sent()) == wanted {
            return Ok(());
        }
        next += period;
        let now = Instant::now();
        if next + STALL_LIMIT < now {
            // After a long block, continue at the rate without catching up.
            next = now;
        }
        while let Some(left) = next.checked_duration_since(Instant::now()) {
            if left.is_zero() || signal::stop_requested() {
                break;
            }
            std::thread::sleep(left.min(STOP_CHECK_INTERVAL));
        }
    }
}

/// Waits until the subscribers have read everything: the log is removed with its publisher.
pub fn wait_until_drained(context: &Context, domain: &mut Domain, topic: &str, publisher: u64) {
    let deadline = Instant::now() + DRAIN_TIMEOUT;
    while let Ok(snapshot) = domain.topic_snapshot(topic) {
        let waiting: Vec<(&str, u64)> = snapshot
            .subscriptions
            .iter()
            .flat_map(|s| s.channels.iter().map(|c| (s.node.as_str(), c)))
            .filter(|(_, c)| c.publisher == publisher && c.behind.messages > 0)
            .map(|(node, c)| (node, c.behind.messages))
            .collect();
        if waiting.is_empty() || signal::stop_requested() {
            return;
        }
        if Instant::now() >= deadline {
            for (node, messages) in waiting {
                context.eprintln(format_args!("{node} has not read the last {messages} messages"));
            }
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
