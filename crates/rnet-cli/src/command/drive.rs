//! `rnet command take` and `release`: run a driver node.

use std::time::{Duration, Instant};

use rnet::inspect::{CallType, Snapshot};
use rnet::{DriveBuilder, Driver, Error, MessageType, Node};
use rnet_monitor::documents::receivers;
use serde_json::json;

use super::args::{ReleaseArgs, TakeArgs};
use super::show::status_of;
use super::snapshot_with_command;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use rnet_format::value::message_input;
use rnet_format::yaml;

/// Longest time between two checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How long the receiver may take to report its deadline.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);
/// Messages per deadline of the receiver: two may be late.
const SENDS_PER_DEADLINE: f64 = 3.0;
/// Minimum rate, in messages per second.
const MIN_RATE: f64 = 20.0;
const MAX_RATE: f64 = 1e5;
/// Lease of the authority that ends another driver's, in case this command is killed.
const RELEASE_LEASE: Duration = Duration::from_millis(500);

pub fn take(context: &mut Context, args: &TakeArgs) -> Outcome {
    let topic = args.topic.as_str();
    if let Some(rate) = args.rate.filter(|rate| !(*rate > 0.0 && *rate <= MAX_RATE)) {
        return Err(Failure::Usage(format!(
            "--rate is {rate}, but must be above 0 and at most {MAX_RATE}"
        )));
    }
    let snapshot = wait_for_receiver(context, topic, args.timeout)?;
    let message_type = type_of(&snapshot, topic)?;
    let data = args.data.as_deref().map(|data| encode_fields(data, &message_type)).transpose()?;
    let node = context.node("command", &args.own_node)?;
    let rate = rate_of(context, &node, &snapshot, args)?;
    let drive = node.drive::<[u8]>(topic).priority(args.priority).lease(args.lease);
    // If this command dies, a driven robot falls back at once; a stopped robot stays stopped.
    let drive = drive.outlasts_driver(data.is_none()).message_type(message_type);
    let mut driver = acquire(drive, args.timeout)?;
    if context.json() {
        context.document(&json!({
            "command": topic,
            "driver": node.name(),
            "priority": args.priority,
            "lease_ns": u64::try_from(args.lease.as_nanos()).unwrap_or(u64::MAX),
            "rate_hz": data.as_ref().map(|_| rate),
        }))?;
        // A reader of the output waits for authority, not for the end. A closed stdout is no reason to
        // release authority.
        let _ = context.flush();
    }
    context.eprintln(format_args!(
        "{} drives {topic} with priority {}; press Ctrl-C to release it",
        node.name(),
        args.priority
    ));
    let period = match &data {
        Some(_) => Duration::from_secs_f64(1.0 / rate),
        None => args.lease / 3,
    };
    let end = args.duration.and_then(|time| Instant::now().checked_add(time));
    let mut next = Instant::now();
    while end.is_none_or(|end| Instant::now() < end) {
        if signal::stop_requested() {
            driver.release()?;
            return Err(Failure::Interrupted);
        }
        let now = Instant::now();
        if now < next {
            // Reports a loss of authority at once.
            if !driver.in_force() {
                driver.renew()?;
            }
            std::thread::sleep((next - now).min(STOP_CHECK_INTERVAL));
            continue;
        }
        next = now + period;
        match &data {
            Some(data) => driver.send(data)?,
            None => driver.renew()?,
        }
    }
    Ok(driver.release()?)
}

pub fn release(context: &mut Context, args: &ReleaseArgs) -> Outcome {
    let topic = args.topic.as_str();
    let message_type = type_of(&snapshot_with_command(context, topic)?, topic)?;
    let node = context.node("command", &args.own_node)?;
    let drive = node.drive::<[u8]>(topic).lease(RELEASE_LEASE).message_type(message_type);
    let drive = match args.priority {
        Some(priority) => drive.priority(priority),
        None => drive.above_all(),
    };
    acquire(drive, args.timeout)?.release()?;
    if context.json() {
        context.document(&json!({"command": topic, "released": true}))?;
    }
    context.eprintln(format_args!("{topic} has no driver; its receiver has fallen back"));
    Ok(())
}

/// Takes authority; Ctrl-C ends the wait.
fn acquire(drive: DriveBuilder<[u8]>, timeout: Duration) -> Outcome<Driver<[u8]>> {
    match drive.timeout(timeout).take_interruptible(|| !signal::stop_requested()) {
        Err(Error::Interrupted) => Err(Failure::Interrupted),
        taken => Ok(taken?),
    }
}

/// A snapshot once the command has a receiver.
fn wait_for_receiver(context: &Context, topic: &str, timeout: Duration) -> Outcome<Snapshot> {
    let end = Instant::now().checked_add(timeout);
    // A receiver that opens declares its type before it accepts messages.
    let takes = |found: &Snapshot| found.subscriptions.iter().any(|of| of.topic == topic);
    let mut said = false;
    loop {
        match snapshot_with_command(context, topic) {
            Ok(found) if takes(&found) => return Ok(found),
            Err(Failure::Failed(why)) if end.is_some_and(|end| Instant::now() >= end) => {
                return Err(Failure::TimedOut(format!("after {timeout:?}: {why}")));
            }
            found if end.is_some_and(|end| Instant::now() >= end) => return found,
            Err(Failure::Failed(why)) if !said => {
                said = true;
                context.eprintln(format_args!("waiting for a receiver: {why}"));
            }
            _ => {}
        }
        if signal::stop_requested() {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(STOP_CHECK_INTERVAL);
    }
}

/// The rate at which DATA is sent, so that the receiver does not fall back in between.
fn rate_of(
    context: &mut Context,
    node: &Node,
    snapshot: &Snapshot,
    args: &TakeArgs,
) -> Outcome<f64> {
    let topic = args.topic.as_str();
    let of_topic = receivers(snapshot).into_iter().find(|(of, _)| *of == topic);
    let until = Instant::now() + args.timeout.min(STATUS_TIMEOUT);
    let status = match of_topic {
        Some((_, receiver)) if args.data.is_some() => status_of(node, topic, receiver, until)?,
        _ => None,
    };
    let deadline_s = status.map(|said| said.status.deadline as f64 / 1e9);
    let per_deadline = deadline_s.map_or(0.0, |deadline| SENDS_PER_DEADLINE / deadline.max(1e-9));
    let rate = args.rate.unwrap_or_else(|| per_deadline.clamp(MIN_RATE, MAX_RATE));
    if let Some(deadline) = deadline_s.filter(|deadline| 1.0 / rate >= *deadline) {
        context.eprintln(format_args!(
            "--rate {rate} is below one message per receiver deadline ({} ms), so the receiver would fall back \
             between messages; give --rate {} or more",
            deadline * 1e3,
            (SENDS_PER_DEADLINE / deadline).ceil()
        ));
    }
    Ok(rate)
}

/// The message type of the receiver.
fn type_of(snapshot: &Snapshot, topic: &str) -> Outcome<MessageType> {
    let found =
        snapshot.subscriptions.iter().find(|of| of.topic == topic && of.type_desc.name().is_some());
    let Some(subscription) = found else { return Ok(MessageType::Raw) };
    let taken = CallType { desc: &subscription.type_desc, schema: subscription.schema.as_ref() };
    taken.message_type().ok_or_else(|| {
        Failure::Failed(format!("cannot read the type of {topic} in {}", subscription.node))
    })
}

fn encode_fields(data: &str, message_type: &MessageType) -> Outcome<Vec<u8>> {
    let value = yaml::json(data).map_err(|why| {
        Failure::Usage(format!("invalid DATA: {why}; write the fields as '{{x: 1.0}}'"))
    })?;
    message_input::encode("DATA", message_type, &value)
}
