//! Publishing the messages of a recording again.
//!
//! A thread reads ahead; the caller's thread publishes. A message is due at the time at which it was sent, as far from
//! the start of the playing as it was from the start of the recording, divided by the rate. Times of recordings of
//! robot-net are those of sending; other writers set what they like there, so of their files it is the log time.
//!
//! Each channel of the file gets a publisher of the same type and quality of service in the node of the player. The
//! types come from the file. A message carries the origin that it had, or else its publisher and number, with host 0,
//! which is the id of none: that it is played says also the node. It carries when it was first sent, too
//! (`source_ns`).

mod clock;
mod order;
mod playback_clock;
mod publishers;
mod read_ahead;
mod recorded_meta;

use std::time::Duration;

use hdrhistogram::Histogram;
use rnet::{Durability, Node, Reliability};

use crate::read::{ReadError, Recording};
pub(crate) use clock::ClockPublisher;
pub(crate) use order::{DueMessage, OrderedMessages};
use playback_clock::{PlaybackClock, WaitOutcome};
pub(crate) use publishers::Publishers;
use read_ahead::ReadAhead;

pub use publishers::{ExistingEndpoints, INTERNAL_TOPICS, PlayError};

/// Longest time that is told as such of a message that was late: an hour, in ns.
const MAX_LATE_NS: u64 = 3_600_000_000_000;

/// How to play.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// What is played.
    pub select: crate::read::Select,
    /// How many times as fast as it was; `None` for as fast as those can who receive reliably.
    pub rate: Option<f64>,
    /// From the start again, when the end is reached.
    pub looped: bool,
    /// Publish the time of the recording on `/clock`, so many times a second of it.
    pub clock_hz: Option<f64>,
    /// Topics that get another name.
    pub remap: Vec<(String, String)>,
    /// Topics that get another quality of service than the file says, by their names in the file.
    pub qos: Vec<(String, QosOverride)>,
    /// Publish also on topics that somebody else publishes.
    pub force: bool,
    /// Begin with the playing stopped.
    pub paused: bool,
    /// How long to wait for the subscribers that are there to be connected.
    pub wait: Duration,
}

impl Default for PlayOptions {
    fn default() -> Self {
        Self {
            select: crate::read::Select::default(),
            rate: Some(1.0),
            looped: false,
            clock_hz: None,
            remap: Vec::new(),
            qos: Vec::new(),
            force: false,
            paused: false,
            wait: Duration::from_secs(5),
        }
    }
}

/// Quality of service for a topic that is played; what is `None` is as the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosOverride {
    /// Its reliability.
    pub reliability: Option<Reliability>,
    /// What it keeps for late joiners.
    pub durability: Option<Durability>,
}

/// What is asked of a player while it plays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlaybackCommand {
    /// Stop, or go on.
    TogglePause,
    /// Publish one message and stay stopped.
    Step,
    /// Go on at a place so many ns later, or earlier.
    Seek(i64),
    /// Play so many times as fast.
    ScaleRate(f64),
    /// Begin again when the end is reached, or do not any more.
    ToggleLoop,
    /// End.
    Quit,
}

/// Where a player is.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Time of the recording, in ns since 1970 UTC.
    pub now_ns: u64,
    /// It is stopped.
    pub paused: bool,
    /// How many times as fast it plays; `None` for as fast as it can.
    pub rate: Option<f64>,
    /// It begins again when the end is reached.
    pub looped: bool,
}

/// What a player asks while it plays, some fifty times a second.
pub trait PlaybackController {
    /// What to do now. `None` is to go on.
    fn next_command(&mut self, position: &Position) -> Option<PlaybackCommand>;
    /// Something that could not be read or published, and is left out.
    fn on_problem(&mut self, problem: &dyn std::fmt::Display);
    /// All has been published. The publishers, by topic and id, go when this returns, and with them what their
    /// subscribers have not read.
    fn on_finished(&mut self, publishers: &mut dyn Iterator<Item = (&str, u64)>);
}

/// What was played.
#[derive(Debug)]
pub struct PlaybackReport {
    /// Messages that were published.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that could not be published.
    pub failed: u64,
    /// Places of the file that could not be read.
    pub damaged: u64,
    /// Times that the end was reached.
    pub rounds: u64,
    /// How long it took.
    pub took: Duration,
    /// How much later than it was due each message was published, in ns. Empty where nothing is due: at the highest rate.
    pub late_ns: Histogram<u64>,
}

/// Plays a recording.
///
/// # Errors
/// [`PlayError`]: somebody publishes one of the topics, or a publisher cannot be made. What is wrong with single
/// messages is told to the controller.
pub fn play(
    recording: &Recording,
    node: &Node,
    existing: &ExistingEndpoints,
    options: &PlayOptions,
    controller: &mut dyn PlaybackController,
) -> Result<PlaybackReport, PlayError> {
    let publishers = Publishers::open(recording, node, existing, options)?;
    for why in &publishers.skipped {
        controller.on_problem(&format!("{why}; it is not played"));
    }
    let clock = match options.clock_hz {
        Some(hz) => Some(ClockPublisher::open(node, hz)?),
        None => None,
    };
    for topic in publishers.wait(clock.as_ref(), existing, options.wait) {
        let after = options.wait;
        controller.on_problem(&format!(
            "{topic} has subscribers that are not connected after {after:?}; they miss messages that are \
             played"
        ));
    }
    let times = recording.info().times.unwrap_or_default();
    let start_ns = options.select.start_ns.unwrap_or(times.0).max(times.0);
    let read_ahead = ReadAhead::start(recording, &options.select).map_err(PlayError::Thread)?;
    let player = Player {
        path: recording.path(),
        looped: options.looped,
        publishers,
        clock,
        playback_clock: PlaybackClock::new(start_ns, options.rate, options.paused),
        start_ns,
        end_ns: options.select.end_ns.unwrap_or(u64::MAX).min(times.1),
        read_ahead,
        controller,
        played: PlaybackReport {
            messages: 0,
            bytes: 0,
            failed: 0,
            damaged: 0,
            rounds: 0,
            took: Duration::ZERO,
            late_ns: Histogram::new_with_bounds(1, MAX_LATE_NS, 3)
                .expect("bounds that are allowed"),
        },
    };
    Ok(player.run())
}

struct Player<'a> {
    /// The file, for messages.
    path: &'a std::path::Path,
    looped: bool,
    publishers: Publishers,
    clock: Option<ClockPublisher>,
    playback_clock: PlaybackClock,
    start_ns: u64,
    end_ns: u64,
    read_ahead: ReadAhead,
    controller: &'a mut dyn PlaybackController,
    played: PlaybackReport,
}

/// What comes of waiting for a message.
enum NextAction {
    Publish,
    Reread,
    Quit,
}

impl Player<'_> {
    fn run(mut self) -> PlaybackReport {
        let begun = std::time::Instant::now();
        loop {
            match self.read_ahead.next() {
                // Nothing is published of it, so nobody waits for it, and it is no step.
                Some(Ok(due)) if self.publishers.of(due.message.channel.id).is_none() => {}
                Some(Ok(due)) => match self.wait_for(&due) {
                    NextAction::Publish => self.publish(&due),
                    NextAction::Reread => {}
                    NextAction::Quit => break,
                },
                Some(Err(problem)) => self.report_problem(&problem),
                None => {
                    self.played.rounds += 1;
                    // An empty recording would go round without an end.
                    if !self.looped || self.played.messages == 0 {
                        break;
                    }
                    self.seek(self.start_ns);
                }
            }
        }
        self.played.took = begun.elapsed();
        let clock = self.clock.as_ref().map(ClockPublisher::publisher);
        let clock = clock.map(|publisher| (publisher.topic(), publisher.id()));
        self.controller.on_finished(&mut self.publishers.iter().chain(clock));
        self.played
    }

    fn report_problem(&mut self, problem: &ReadError) {
        self.played.damaged += 1;
        self.controller.on_problem(&format!("{}: {problem}", self.path.display()));
    }

    /// Waits until a message is due, with the time of `/clock` before it.
    fn wait_for(&mut self, due: &DueMessage) -> NextAction {
        // Those that were sent before the start were kept for late joiners, and are due at once.
        let at_ns = due.at_ns.max(self.start_ns);
        loop {
            let tick = self.clock.as_ref().and_then(|clock| clock.due(at_ns));
            match self.playback_clock.wait(tick.unwrap_or(at_ns)) {
                WaitOutcome::Due => match (tick, &mut self.clock) {
                    (Some(tick), Some(clock)) => {
                        if let Err(error) = clock.tick(tick) {
                            self.controller.on_problem(&error);
                        }
                    }
                    _ => return NextAction::Publish,
                },
                WaitOutcome::PollController => {}
            }
            let position = Position { looped: self.looped, ..self.playback_clock.position() };
            match self.controller.next_command(&position) {
                None => {}
                Some(PlaybackCommand::ToggleLoop) => self.looped = !self.looped,
                Some(PlaybackCommand::TogglePause) => self.playback_clock.toggle_pause(),
                Some(PlaybackCommand::ScaleRate(times)) => self.playback_clock.scale_rate(times),
                Some(PlaybackCommand::Step) => {
                    self.playback_clock.step_to(at_ns);
                    return NextAction::Publish;
                }
                Some(PlaybackCommand::Seek(by)) => {
                    let now = self.playback_clock.position().now_ns;
                    self.seek(now.saturating_add_signed(by).clamp(self.start_ns, self.end_ns));
                    return NextAction::Reread;
                }
                Some(PlaybackCommand::Quit) => return NextAction::Quit,
            }
        }
    }

    fn seek(&mut self, ns: u64) {
        self.read_ahead.restart(ns);
        self.playback_clock.seek(ns);
        if let Some(clock) = &mut self.clock {
            clock.seek(ns);
        }
    }

    fn publish(&mut self, due: &DueMessage) {
        let message = &due.message;
        let Some(publisher) = self.publishers.of(message.channel.id) else { return };
        let late = self.playback_clock.late_ns(due.at_ns.max(self.start_ns));
        let sent = match message.content() {
            Ok(content) => {
                publisher.send_with(&content, due.meta).map_err(|error| error.to_string())
            }
            Err(why) => {
                Err(format!("message {} of {}: {why}", message.sequence(), message.channel.topic))
            }
        };
        match sent {
            Ok(()) => {
                self.played.messages += 1;
                self.played.bytes += message.data().len() as u64;
                if let Some(late) = late {
                    self.played.late_ns.saturating_record(late);
                }
            }
            Err(error) => {
                self.played.failed += 1;
                // A flood of messages that fail must not be one of words.
                if self.played.failed.is_power_of_two() {
                    let failed = self.played.failed;
                    self.controller.on_problem(&format!("{error} ({failed} so far)"));
                }
            }
        }
    }
}
