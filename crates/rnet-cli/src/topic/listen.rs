//! The loop of the commands that listen: poll, pause, report, end when told.
//!
//! With nothing to read it sleeps, and publishers wake it at most once a millisecond; a log holds far
//! more than a millisecond of messages, and what it cannot hold is counted and said.

use std::time::{Duration, Instant};

use rnet::inspect::{Follow, Heard};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::near::nearest;
use crate::signal;

/// Between two reports, and between two words on stderr.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Messages between two looks at the clock, in a flood.
const MESSAGES_PER_CLOCK: u32 = 64;

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    On,
    Enough,
}

/// What a listening command does with what it hears.
pub trait Listener {
    /// A message.
    fn message(&mut self, context: &mut Context, heard: &Heard<'_>, bytes: &[u8]) -> Outcome<Go>;

    /// A second has passed.
    fn second(&mut self, _context: &mut Context) -> Outcome<Go> {
        Ok(Go::On)
    }

    /// The last word, however it ended.
    fn finish(&mut self, _context: &mut Context) -> Outcome {
        Ok(())
    }

    /// At the end of the time: whether what was asked for has come.
    fn satisfied(&self) -> bool;
}

/// Follows `topic` until the listener has enough, the time is over, or somebody says stop.
pub fn listen(
    context: &mut Context,
    topic: &str,
    history: bool,
    timeout: Option<Duration>,
    listener: &mut impl Listener,
) -> Outcome {
    let domain = context.domain()?;
    let id = domain.id().to_owned();
    let mut follow = Follow::new(domain, topic, history)?;
    let begun = Instant::now();
    let deadline = timeout.and_then(|t| begun.checked_add(t));
    let mut next_report = begun + REPORT_INTERVAL;
    let mut bytes = Vec::new();
    let mut until_clock = 0;
    let mut waiting_said = false;
    let ended = loop {
        let idle = match follow.poll(&mut bytes)? {
            Some(heard) => {
                if listener.message(context, &heard, &bytes)? == Go::Enough {
                    break Ok(());
                }
                false
            }
            None => true,
        };
        if idle {
            if !waiting_said && follow.publisher_count() == 0 {
                waiting_said = true;
                let near = near(context, topic);
                context
                    .say(format_args!("no publisher of {topic} in domain {id} yet; waiting{near}"));
            }
            context.flush()?;
        } else if until_clock > 0 {
            until_clock -= 1;
            continue;
        }
        until_clock = MESSAGES_PER_CLOCK;
        tell_events(context, &mut follow);
        if signal::stopped() {
            break Err(Failure::Interrupted);
        }
        let now = Instant::now();
        if deadline.is_some_and(|end| now >= end) {
            let what = || format!("timed out after {:?} on {topic}", timeout.unwrap_or_default());
            break if listener.satisfied() { Ok(()) } else { Err(Failure::TimedOut(what())) };
        }
        if now >= next_report {
            next_report = now + REPORT_INTERVAL;
            tell_lost(context, &mut follow);
            let go = listener.second(context)?;
            context.flush()?;
            if go == Go::Enough {
                break Ok(());
            }
        }
        if idle {
            let until = deadline.map_or(next_report, |end| end.min(next_report));
            follow.wait(until.saturating_duration_since(now));
        }
    };
    listener.finish(context)?;
    context.flush()?;
    tell_lost(context, &mut follow);
    ended
}

/// ` (did you mean /scan?)`, if somebody publishes on a topic of a like name.
fn near(context: &Context, topic: &str) -> String {
    let snapshot = context.domain().and_then(|mut domain| Ok(domain.snapshot()?));
    // What cannot be seen now is looked for, and told, by the loop.
    let Ok(snapshot) = snapshot else { return String::new() };
    let topics = snapshot.publishers.iter().map(|p| p.topic.as_str());
    match nearest(topic, topics) {
        Some(near) => format!(" (did you mean {near}?)"),
        None => String::new(),
    }
}

fn tell_events(context: &Context, follow: &mut Follow) {
    for event in follow.take_events() {
        context.say(format_args!("{event}"));
    }
}

fn tell_lost(context: &Context, follow: &mut Follow) {
    let lost = follow.take_lost();
    if lost > 0 {
        let all = follow.missed();
        context.say(format_args!(
            "{lost} messages passed unseen: this observer was too slow (so far: {} overwritten in the log, {} large \
             ones reused; subscribers have their own counts)", all.overrun, all.reused
        ));
    }
}
