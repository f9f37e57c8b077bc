//! Publishes the messages of a recording again.
//!
//! A thread reads ahead; the caller's thread publishes. A message is due at its send time relative to the
//! start of the recording, divided by the rate. Recordings of robot-net contain send times. Other writers
//! define that field differently, so for their files the log time is used.
//!
//! Each channel of the file gets a publisher of the same type and quality of service in the player's node.
//! The types come from the file. A message keeps its recorded origin. A message without one gets its
//! publisher and number, with host 0, which is not the id of any host; the node shows that it is played. A
//! message also carries its first send time (`source_ns`).

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

/// Maximum recorded lateness of a message: an hour, in ns.
const MAX_LATE_NS: u64 = 3_600_000_000_000;

/// Options of playback.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// Which messages are played.
    pub select: crate::read::Select,
    /// Playback speed relative to the recording; `None` for as fast as reliable subscribers allow.
    pub rate: Option<f64>,
    /// Restart from the beginning at the end.
    pub looped: bool,
    /// Publish the time of the recording on `/clock`, this many times per second of it.
    pub clock_hz: Option<f64>,
    /// Topics that are renamed.
    pub remap: Vec<(String, String)>,
    /// Topics whose quality of service differs from the file, by their names in the file.
    pub qos: Vec<(String, QosOverride)>,
    /// Also publish on topics that another node publishes.
    pub force: bool,
    /// Start paused.
    pub paused: bool,
    /// How long to wait until the existing subscribers are connected.
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

/// Quality of service of a played topic; `None` keeps the value of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosOverride {
    /// Its reliability.
    pub reliability: Option<Reliability>,
    /// Its durability.
    pub durability: Option<Durability>,
}

/// A command to a player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlaybackCommand {
    /// Pause or resume.
    TogglePause,
    /// Publish one message and stay paused.
    Step,
    /// Move the position by this many ns, forward or backward.
    Seek(i64),
    /// Multiply the playback speed by this factor.
    ScaleRate(f64),
    /// Toggle the restart at the end.
    ToggleLoop,
    /// Stop playback.
    Quit,
}

/// Position of a player.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Time of the recording, in ns since 1970 UTC.
    pub now_ns: u64,
    /// Playback is paused.
    pub paused: bool,
    /// Playback speed; `None` for as fast as possible.
    pub rate: Option<f64>,
    /// Playback restarts at the end.
    pub looped: bool,
}

/// Controls a player, which polls it about fifty times a second.
pub trait PlaybackController {
    /// The next command. `None` continues.
    fn next_command(&mut self, position: &Position) -> Option<PlaybackCommand>;
    /// Reports a message that could not be read or published, and is skipped.
    fn on_problem(&mut self, problem: &dyn std::fmt::Display);
    /// All messages are published. When this returns, the publishers, here by topic and id, are dropped,
    /// together with messages that their subscribers have not read.
    fn on_finished(&mut self, publishers: &mut dyn Iterator<Item = (&str, u64)>);
}

/// Result of playback.
#[derive(Debug)]
pub struct PlaybackReport {
    /// Messages published.
    pub messages: u64,
    /// Their total bytes.
    pub bytes: u64,
    /// Messages that could not be published.
    pub failed: u64,
    /// Damaged places of the file.
    pub damaged: u64,
    /// How often the end was reached.
    pub rounds: u64,
    /// Duration of the playback.
    pub took: Duration,
    /// How late each message was published, in ns. Empty at the highest rate, where no message has a due
    /// time.
    pub late_ns: Histogram<u64>,
}

/// Plays a recording.
///
/// # Errors
/// [`PlayError`]: another node publishes one of the topics, or a publisher cannot be created. Problems of
/// single messages are reported to the controller.
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
    /// Path of the file, for error messages.
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

/// Result of waiting for a message.
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
                // The message has no publisher, so it is neither waited for nor a step.
                Some(Ok(due)) if self.publishers.of(due.message.channel.id).is_none() => {}
                Some(Ok(due)) => match self.wait_for(&due) {
                    NextAction::Publish => self.publish(&due),
                    NextAction::Reread => {}
                    NextAction::Quit => break,
                },
                Some(Err(problem)) => self.report_problem(&problem),
                None => {
                    self.played.rounds += 1;
                    // An empty recording would loop forever.
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

    /// Waits until a message is due; publishes the time on `/clock` before it.
    fn wait_for(&mut self, due: &DueMessage) -> NextAction {
        // Messages sent before the start were kept for late joiners, and are due at once.
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
                // Limits the number of reports if many messages fail.
                if self.played.failed.is_power_of_two() {
                    let failed = self.played.failed;
                    self.controller.on_problem(&format!("{error} ({failed} so far)"));
                }
            }
        }
    }
}
