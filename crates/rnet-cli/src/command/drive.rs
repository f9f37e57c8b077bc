//! `rnet command take` and `release`: a node that drives.

use std::time::{Duration, Instant};

use rnet::inspect::CallType;
use rnet::{Driver, MessageType, Node};

use super::args::{ReleaseArgs, TakeArgs};
use super::look_at;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::value::given;
use crate::{signal, yaml};

/// Longest time between two checks for a stop request.
const STEP: Duration = Duration::from_millis(20);

pub fn take(context: &mut Context, args: &TakeArgs) -> Outcome {
    let topic = args.topic.as_str();
    if !(args.rate > 0.0 && args.rate <= 1e5) {
        return Err(Failure::Usage(format!(
            "--rate is {}, and must be above 0, up to 100000",
            args.rate
        )));
    }
    let message_type = type_of(context, topic)?;
    let data = args.data.as_deref().map(|data| encoded(data, &message_type)).transpose()?;
    let node = context.node("command", &args.me)?;
    let mut driver = driver(&node, topic, message_type, (args.priority, args.lease), args.timeout)?;
    context.say(format_args!(
        "{} drives {topic} with priority {}; Ctrl-C gives it back",
        node.name(),
        args.priority
    ));
    let period = match &data {
        Some(_) => Duration::from_secs_f64(1.0 / args.rate),
        None => args.lease / 3,
    };
    let end = args.duration.and_then(|time| Instant::now().checked_add(time));
    let mut next = Instant::now();
    while end.is_none_or(|end| Instant::now() < end) {
        if signal::stopped() {
            driver.release()?;
            return Err(Failure::Interrupted);
        }
        let now = Instant::now();
        if now < next {
            // Told at once that it has lost authority.
            if !driver.in_force() {
                driver.renew()?;
            }
            std::thread::sleep((next - now).min(STEP));
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
    let message_type = type_of(context, topic)?;
    let node = context.node("command", &args.me)?;
    let lease = Duration::from_millis(500);
    let driver = driver(&node, topic, message_type, (args.priority, lease), args.timeout)?;
    driver.release()?;
    context.say(format_args!("nobody drives {topic}; its receiver has fallen back"));
    Ok(())
}

fn driver(
    node: &Node,
    topic: &str,
    message_type: MessageType,
    (priority, lease): (i32, Duration),
    timeout: Duration,
) -> Outcome<Driver<[u8]>> {
    let drive = node.drive::<[u8]>(topic).priority(priority).lease(lease);
    Ok(drive.message_type(message_type).take(Some(timeout))?)
}

/// The type of what the receiver takes.
fn type_of(context: &Context, topic: &str) -> Outcome<MessageType> {
    let snapshot = look_at(context, topic)?;
    let found =
        snapshot.subscriptions.iter().find(|of| of.topic == topic && of.type_desc.name().is_some());
    let Some(subscription) = found else { return Ok(MessageType::Raw) };
    let taken = CallType { desc: &subscription.type_desc, schema: subscription.schema.as_ref() };
    taken.message_type().ok_or_else(|| {
        Failure::Failed(format!("the type of {topic} in {} cannot be read", subscription.node))
    })
}

fn encoded(data: &str, message_type: &MessageType) -> Outcome<Vec<u8>> {
    let value = yaml::json(data).map_err(|why| {
        Failure::Usage(format!("DATA is no message: {why}; write its fields as '{{x: 1.0}}'"))
    })?;
    given::encode("DATA", message_type, &value)
}
