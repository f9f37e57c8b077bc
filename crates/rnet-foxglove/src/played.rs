//! A recording instead of a domain: its messages go to clients at the times at which they were logged, and a client
//! plays on, stops, goes elsewhere and changes the speed.
//!
//! The thread `rnet-foxglove` waits until somebody has subscribed, so that nobody misses the beginning.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rnet::Durability;
use rnet_record::read::{Message, Problem, Recording, Select};
use serde_json::json;

use crate::backend::Backend;
use crate::hub::{Hub, Passed};
use crate::say::{self, PlaybackState, PlaybackStatus};
use crate::shape::Shape;
use crate::wire::Control;

/// Between two times that clients are told, while no message is due; and the least between two, where some are.
const CLOCK_INTERVAL: Duration = Duration::from_millis(50);
const CLOCK_MIN_INTERVAL: Duration = Duration::from_micros(16_667);
/// A speed beyond these is none.
const RATES: std::ops::RangeInclusive<f32> = 0.01..=100.0;

pub struct Played {
    recording: Arc<Recording>,
    hub: Arc<Hub>,
    times: (u64, u64),
    pace: Mutex<Pace>,
    changed: Condvar,
}

/// Where the playing is: at `since` the time of the recording was `at_ns`.
#[derive(Clone, Copy, Debug)]
struct Pace {
    plays: bool,
    has_ended: bool,
    rate: f64,
    at_ns: u64,
    since: Instant,
    /// When clients were told the time last.
    told: Option<Instant>,
    /// Counts the jumps, so that who reads the file finds that it is to begin anew.
    jumps: u64,
}

impl Pace {
    fn now_ns(&self) -> u64 {
        let past =
            if self.plays { self.since.elapsed().as_nanos() as f64 * self.rate } else { 0.0 };
        self.at_ns.saturating_add(past as u64)
    }

    /// How long until a time of the recording; `None` while it does not come.
    fn until(&self, ns: u64) -> Option<Duration> {
        let left = ns.saturating_sub(self.now_ns()) as f64 / 1e9 / self.rate;
        self.plays.then(|| Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX))
    }

    fn state(&self, end_ns: u64) -> PlaybackState {
        let status = match (self.has_ended, self.plays) {
            (true, _) => PlaybackStatus::Ended,
            (false, true) => PlaybackStatus::Playing,
            (false, false) => PlaybackStatus::Paused,
        };
        PlaybackState {
            status,
            now_ns: self.now_ns().min(end_ns),
            rate: self.rate as f32,
            did_seek: false,
            request: None,
        }
    }
}

/// What clients were told to be wrong with the file. Of many damages of a kind they are told the first.
#[derive(Debug, Default)]
struct Told {
    kinds: HashSet<Discriminant<Problem>>,
    /// Channels with a message that does not fit its type.
    channels: BTreeSet<u16>,
}

/// A channel of the file.
struct Line {
    /// Its number for clients.
    id: u32,
    shape: Shape,
    /// How many messages its publisher kept for late joiners.
    keeps: usize,
}

/// What comes of waiting for a message.
enum Waited {
    Due,
    /// The playing goes on elsewhere.
    Jumped,
    Over,
}

impl Played {
    pub fn new(recording: Recording, hub: Arc<Hub>, paused: bool) -> Played {
        let times = recording.found().times.unwrap_or_default();
        let pace = Pace {
            plays: !paused,
            has_ended: false,
            rate: 1.0,
            at_ns: times.0,
            since: Instant::now(),
            told: None,
            jumps: 0,
        };
        let (recording, pace, changed) = (Arc::new(recording), Mutex::new(pace), Condvar::new());
        Played { recording, hub, times, pace, changed }
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays until the hub ends.
    pub fn run(&self, session: &str) {
        let time = |ns: u64| json!({"sec": ns / 1_000_000_000, "nsec": ns % 1_000_000_000});
        self.hub.set_info(json!({
            "op": "serverInfo",
            "name": self.recording.path().display().to_string(),
            "capabilities": ["playbackControl", "time"],
            "supportedEncodings": [],
            "metadata": {"rnet": rnet::VERSION},
            "sessionId": session,
            "dataStartTime": time(self.times.0),
            "dataEndTime": time(self.times.1),
        }));
        let mut channels = BTreeMap::new();
        for channel in self.recording.channels().filter(|channel| !channel.is_reserved()) {
            let shape = Shape::recorded(channel);
            let keeps = match channel.source().map(|source| source.durability) {
                Ok(Durability::TransientLocal { depth }) => depth as usize,
                _ => 0,
            };
            let id = self.hub.channel(&channel.topic, &shape);
            channels.insert(channel.id, Line { id, shape, keeps });
        }
        while self.hub.wanted(&BTreeSet::new()).is_empty() && !self.hub.is_over() {
            self.hub.wait(Duration::from_secs(1));
        }
        self.pace().since = Instant::now();
        let mut told = Told::default();
        loop {
            let (jumps, start_ns) = {
                let pace = self.pace();
                (pace.jumps, pace.at_ns)
            };
            let select =
                Select { start_ns: Some(start_ns), with_latched: true, ..Select::default() };
            match self.play(select, jumps, &channels, &mut told) {
                Waited::Over => return,
                // Late subscribers get what is kept there, which is read again.
                Waited::Jumped => self.hub.forget_kept(),
                Waited::Due => {
                    let ended = {
                        let mut pace = self.pace();
                        (pace.plays, pace.has_ended, pace.at_ns) = (false, true, self.times.1);
                        pace.state(self.times.1)
                    };
                    self.hub.broadcast(&say::playback(&ended));
                    // Until somebody goes elsewhere: then the number of jumps differs.
                    if let Waited::Over = self.wait(u64::MAX, jumps) {
                        return;
                    }
                    self.hub.forget_kept();
                }
            }
        }
    }

    /// Plays to the end, or until the playing goes on elsewhere.
    fn play(
        &self,
        select: Select,
        jumps: u64,
        channels: &BTreeMap<u16, Line>,
        told: &mut Told,
    ) -> Waited {
        for message in self.recording.messages(select) {
            let message = match message {
                Ok(message) => message,
                Err(error) => {
                    if told.kinds.insert(discriminant(&error.problem)) {
                        self.warn(&error.to_string());
                    }
                    continue;
                }
            };
            match self.wait(message.log_ns(), jumps) {
                Waited::Due => self.pass(&message, channels, told),
                other => return other,
            }
        }
        self.wait(self.times.1, jumps)
    }

    fn pass(&self, message: &Message, channels: &BTreeMap<u16, Line>, told: &mut Told) {
        let id = message.channel.id;
        let Some(Line { id: channel, shape, keeps }) = channels.get(&id) else { return };
        let (publisher, time_ns) = (u64::from(id), message.log_ns());
        match shape.payload(message.data()) {
            Ok(payload) => {
                let passed = Passed { publisher, time_ns, payload: &payload, keeps: *keeps };
                self.hub.message(*channel, &passed);
            }
            Err(why) if told.channels.insert(id) => {
                self.warn(&format!(
                    "a message of {} cannot be shown: {why}",
                    message.channel.topic
                ));
            }
            Err(_) => {}
        }
    }

    fn warn(&self, what: &str) {
        let file = self.recording.path().display();
        let what = format!("{file}: {what}; further messages of this kind are not reported");
        self.hub.broadcast(&say::status(say::Level::Warning, &what));
    }

    /// Waits until it is this time in the recording, and tells the time meanwhile.
    fn wait(&self, ns: u64, jumps: u64) -> Waited {
        loop {
            let mut pace = self.pace();
            if self.hub.is_over() {
                return Waited::Over;
            }
            if pace.jumps != jumps {
                return Waited::Jumped;
            }
            let until = pace.until(ns);
            let is_due = until == Some(Duration::ZERO);
            // Where the file is read more slowly than it is played, the time is that of the messages.
            let (least, now_ns) = match is_due {
                true => (CLOCK_MIN_INTERVAL, ns),
                false => (CLOCK_INTERVAL, pace.now_ns()),
            };
            if pace.plays && pace.told.is_none_or(|at| at.elapsed() >= least) {
                pace.told = Some(Instant::now());
                drop(pace);
                self.hub.time(now_ns);
                continue;
            }
            if is_due {
                return Waited::Due;
            }
            let limit = until.unwrap_or(Duration::MAX).min(CLOCK_INTERVAL);
            drop(self.changed.wait_timeout(pace, limit));
        }
    }
}

impl Backend for Played {
    fn control(&self, control: &Control) -> Result<PlaybackState, String> {
        if !RATES.contains(&control.rate) {
            let (from, to) = (RATES.start(), RATES.end());
            return Err(format!("playback speed {} is not within {from} to {to}", control.rate));
        }
        let mut pace = self.pace();
        let now_ns = pace.now_ns().clamp(self.times.0, self.times.1);
        // Who plays on at the end begins again.
        let again =
            (control.plays && pace.has_ended && control.seek_ns.is_none()).then_some(self.times.0);
        let goes_to = control.seek_ns.or(again).map(|ns| ns.clamp(self.times.0, self.times.1));
        pace.at_ns = goes_to.unwrap_or(now_ns);
        pace.since = Instant::now();
        pace.rate = f64::from(control.rate);
        pace.plays = control.plays;
        if goes_to.is_some() {
            pace.jumps += 1;
            pace.has_ended = false;
        }
        let mut state = pace.state(self.times.1);
        state.did_seek = goes_to.is_some();
        drop(pace);
        self.changed.notify_all();
        Ok(state)
    }
}
