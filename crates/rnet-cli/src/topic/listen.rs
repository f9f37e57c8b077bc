//! The loop of the listening commands: poll, pause, report, stop on request.
//!
//! If nothing is available it sleeps, and publishers wake it at most once per millisecond. A log holds far
//! more than a millisecond of messages; lost messages are counted and reported.

use std::time::{Duration, Instant};

use rnet::inspect::{FollowEvent, Follower, ObservedMessage, UnreadCause, is_internal};

use super::interest::RemoteInterest;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use rnet_format::suggestions::did_you_mean;

/// Interval between two reports, and between two messages on stderr.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum silence before it is reported.
const MIN_SILENCE: Duration = Duration::from_secs(2);
/// Messages between two clock reads, in a flood.
const MESSAGES_PER_CLOCK_CHECK: u32 = 64;

/// Whether to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

/// A listening command's callbacks.
pub trait Listener {
    /// A message was received.
    fn on_message(
        &mut self,
        context: &mut Context,
        heard: &ObservedMessage<'_>,
        bytes: &[u8],
    ) -> Outcome<Flow>;

    /// No message is available at the moment.
    fn on_idle(&mut self, _context: &mut Context, _follow: &Follower) -> Outcome<Flow> {
        Ok(Flow::Continue)
    }

    /// A second has passed.
    fn on_second(&mut self, _context: &mut Context, _follow: &Follower) -> Outcome<Flow> {
        Ok(Flow::Continue)
    }

    /// The final output, however the command ended.
    fn on_finish(&mut self, _context: &mut Context) -> Outcome {
        Ok(())
    }

    /// Whether the user wants to see which publishers appear and disappear.
    fn reports_publishers(&self) -> bool {
        true
    }

    /// At the time limit: whether the requested messages have arrived.
    fn is_satisfied(&self) -> bool;
}

/// Follows `topic` until the listener has enough, the time limit has passed, or a stop is requested.
pub fn listen(
    context: &mut Context,
    topic: &str,
    history: bool,
    timeout: Option<Duration>,
    listener: &mut impl Listener,
) -> Outcome {
    let domain = context.domain()?;
    let mut follow = Follower::new(domain, topic, history)?;
    let begun = Instant::now();
    let deadline = timeout.and_then(|t| begun.checked_add(t));
    let mut next_report = begun + REPORT_INTERVAL;
    let mut bytes = Vec::new();
    let mut until_clock_check = 0;
    let mut is_waiting_reported = false;
    let mut interest = RemoteInterest::default();
    let ended = loop {
        let idle = match follow.poll(&mut bytes)? {
            Some(heard) => {
                if listener.on_message(context, &heard, &bytes)? == Flow::Stop {
                    break Ok(());
                }
                false
            }
            None => true,
        };
        if idle {
            if listener.on_idle(context, &follow)? == Flow::Stop {
                break Ok(());
            }
            interest.subscribe_if_remote(context, topic, follow.publishers());
            if !std::mem::replace(&mut is_waiting_reported, true) && follow.publisher_count() == 0 {
                report_waiting(context, topic, "publisher", "yet");
            }
            context.flush()?;
        } else if until_clock_check > 0 {
            until_clock_check -= 1;
            continue;
        }
        until_clock_check = MESSAGES_PER_CLOCK_CHECK;
        report_events(context, &mut follow, listener.reports_publishers());
        if signal::stop_requested() {
            break Err(Failure::Interrupted);
        }
        let now = Instant::now();
        if deadline.is_some_and(|end| now >= end) {
            let what = || format!("timed out after {:?} on {topic}", timeout.unwrap_or_default());
            break if listener.is_satisfied() { Ok(()) } else { Err(Failure::TimedOut(what())) };
        }
        if now >= next_report {
            next_report = now + REPORT_INTERVAL;
            report_missed(context, &mut follow);
            let go = listener.on_second(context, &follow)?;
            context.flush()?;
            if go == Flow::Stop {
                break Ok(());
            }
        }
        if idle {
            let until = deadline.map_or(next_report, |end| end.min(next_report));
            follow.wait(until.saturating_duration_since(now));
        }
    };
    listener.on_finish(context)?;
    context.flush()?;
    report_missed(context, &mut follow);
    ended
}

/// Reports a long silence: once, and again when the set of publishers has changed.
#[derive(Default)]
pub struct SilenceReporter {
    last_report: Option<String>,
    /// When the last messages arrived.
    last: Option<Instant>,
    longest_gap: Duration,
}

impl SilenceReporter {
    pub fn report<'a>(&mut self, context: &Context, nodes: impl Iterator<Item = &'a str>) {
        let nodes: Vec<&str> = nodes.collect();
        let since = self.last.get_or_insert_with(Instant::now).elapsed();
        let left = match nodes.is_empty() {
            true => "no publishers remain".to_owned(),
            // A slow topic is not silent yet.
            false if since < MIN_SILENCE.max(3 * self.longest_gap) => return,
            false => format!("publishers: {}", nodes.join(", ")),
        };
        if self.last_report.as_ref() != Some(&left) {
            context.eprintln(format_args!("no new messages; {left}"));
            self.last_report = Some(left);
        }
    }

    /// A message has arrived.
    pub fn reset(&mut self) {
        self.last_report = None;
        let gap = self.last.replace(Instant::now()).map_or(Duration::ZERO, |last| last.elapsed());
        self.longest_gap = self.longest_gap.max(gap);
    }
}

/// Reports that no publisher exists yet or any more, or that the topic does not exist, with a similar name as
/// a suggestion.
pub fn report_waiting(context: &Context, topic: &str, whom: &str, since: &str) {
    let seen = context.domain().and_then(|mut domain| {
        let snapshot = domain.snapshot()?;
        let topics = snapshot.topics();
        let exists = topics.contains(&topic);
        let near = did_you_mean(topic, topics.into_iter().filter(|topic| !is_internal(topic)));
        Ok((domain.id().to_owned(), exists, near))
    });
    // The loop retries and reports what cannot be read now.
    let Ok((id, exists, near)) = seen else { return };
    if exists {
        return context
            .eprintln(format_args!("no {whom} of {topic} in domain {id} {since}; waiting"));
    }
    let hint = near.unwrap_or_else(|| "see rnet topic list".to_owned());
    context
        .eprintln(format_args!("topic {topic} not found in domain {id}; {hint} (waiting for it)"));
}

fn report_events(context: &Context, follow: &mut Follower, publishers: bool) {
    for event in follow.take_events() {
        let is_reported = match &event {
            FollowEvent::Joined(_) | FollowEvent::Gone(_) => publishers,
            // `Unreadable` was already reported.
            FollowEvent::Unread(unheard) => unheard.why != UnreadCause::Unreadable,
            _ => true,
        };
        if !is_reported {
            continue;
        }
        context.eprintln(format_args!("{event}"));
    }
}

fn report_missed(context: &Context, follow: &mut Follower) {
    let lost = follow.take_lost();
    if lost > 0 {
        let all = follow.missed();
        context.eprintln(format_args!(
            "missed {lost} messages: this observer was too slow (total: {} overwritten in the log, {} large \
             ones reused; subscribers count their losses separately)", all.overrun, all.reused
        ));
    }
}
