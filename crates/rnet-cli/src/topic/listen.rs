//! The loop of the commands that listen: poll, pause, report, end when told.
//!
//! With nothing to read it sleeps, and publishers wake it at most once a millisecond; a log holds far
//! more than a millisecond of messages, and what it cannot hold is counted and said.

use std::time::{Duration, Instant};

use rnet::inspect::{Follow, FollowEvent, Heard, UnheardCause, is_internal};

use super::interest::Interest;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use rnet_monitor::near::did_you_mean;

/// Between two reports, and between two words on stderr.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// For so long at least no message comes before that is told.
const MIN_SILENCE: Duration = Duration::from_secs(2);
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

    /// There is nothing to read at the moment.
    fn idle(&mut self, _context: &mut Context, _follow: &Follow) -> Outcome<Go> {
        Ok(Go::On)
    }

    /// A second has passed.
    fn second(&mut self, _context: &mut Context, _follow: &Follow) -> Outcome<Go> {
        Ok(Go::On)
    }

    /// The last word, however it ended.
    fn finish(&mut self, _context: &mut Context) -> Outcome {
        Ok(())
    }

    /// Whether people want to know which publishers come and go.
    fn tells_publishers(&self) -> bool {
        true
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
    let mut follow = Follow::new(domain, topic, history)?;
    let begun = Instant::now();
    let deadline = timeout.and_then(|t| begun.checked_add(t));
    let mut next_report = begun + REPORT_INTERVAL;
    let mut bytes = Vec::new();
    let mut until_clock = 0;
    let mut waiting_said = false;
    let mut interest = Interest::default();
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
            if listener.idle(context, &follow)? == Go::Enough {
                break Ok(());
            }
            interest.show(context, topic, follow.publishers());
            if !std::mem::replace(&mut waiting_said, true) && follow.publisher_count() == 0 {
                tell_waiting(context, topic, "publisher", "yet");
            }
            context.flush()?;
        } else if until_clock > 0 {
            until_clock -= 1;
            continue;
        }
        until_clock = MESSAGES_PER_CLOCK;
        tell_events(context, &mut follow, listener.tells_publishers());
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
            let go = listener.second(context, &follow)?;
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

/// What is told while no messages come for long: once, and again when other publishers are left.
#[derive(Default)]
pub struct Quiet {
    told: Option<String>,
    /// When messages came last.
    last: Option<Instant>,
    longest_gap: Duration,
}

impl Quiet {
    pub fn tell<'a>(&mut self, context: &Context, nodes: impl Iterator<Item = &'a str>) {
        let nodes: Vec<&str> = nodes.collect();
        let since = self.last.get_or_insert_with(Instant::now).elapsed();
        let left = match nodes.is_empty() {
            true => "no publishers remain".to_owned(),
            // A slow topic is not silent yet.
            false if since < MIN_SILENCE.max(3 * self.longest_gap) => return,
            false => format!("publishers: {}", nodes.join(", ")),
        };
        if self.told.as_ref() != Some(&left) {
            context.say(format_args!("no new messages; {left}"));
            self.told = Some(left);
        }
    }

    /// A message has come.
    pub fn end(&mut self) {
        self.told = None;
        let gap = self.last.replace(Instant::now()).map_or(Duration::ZERO, |last| last.elapsed());
        self.longest_gap = self.longest_gap.max(gap);
    }
}

/// Says that nobody is there, yet or any more; or that there is no such topic, and which one may have been meant.
pub fn tell_waiting(context: &Context, topic: &str, whom: &str, since: &str) {
    let seen = context.domain().and_then(|mut domain| {
        let snapshot = domain.snapshot()?;
        let topics = snapshot.topics();
        let exists = topics.contains(&topic);
        let near = did_you_mean(topic, topics.into_iter().filter(|topic| !is_internal(topic)));
        Ok((domain.id().to_owned(), exists, near))
    });
    // What cannot be seen now is looked for, and told, by the loop.
    let Ok((id, exists, near)) = seen else { return };
    if exists {
        return context.say(format_args!("no {whom} of {topic} in domain {id} {since}; waiting"));
    }
    let hint = near.unwrap_or_else(|| "see rnet topic list".to_owned());
    context.say(format_args!("topic {topic} not found in domain {id}; {hint} (waiting for it)"));
}

fn tell_events(context: &Context, follow: &mut Follow, publishers: bool) {
    for event in follow.take_events() {
        let is_told = match &event {
            FollowEvent::Joined(_) | FollowEvent::Gone(_) => publishers,
            // `Unreadable` has said it.
            FollowEvent::Unheard(unheard) => unheard.why != UnheardCause::Unreadable,
            _ => true,
        };
        if !is_told {
            continue;
        }
        context.say(format_args!("{event}"));
    }
}

fn tell_lost(context: &Context, follow: &mut Follow) {
    let lost = follow.take_lost();
    if lost > 0 {
        let all = follow.missed();
        context.say(format_args!(
            "missed {lost} messages: this observer was too slow (total: {} overwritten in the log, {} large \
             ones reused; subscribers count their losses separately)", all.overrun, all.reused
        ));
    }
}
