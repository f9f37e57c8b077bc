//! A recording instead of a domain: its messages go to clients at the times at which they were logged, and a client
//! plays on, stops, goes elsewhere and changes the speed.
//!
//! The thread `rnet-foxglove` waits until somebody has subscribed, so that nobody misses the beginning.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rnet_record::read::{Message, Recording, Select};
use serde_json::json;

use crate::backend::Backend;
use crate::hub::{Hub, Passed};
use crate::say::{self, PlaybackState, PlaybackStatus};
use crate::shape::Shape;
use crate::wire::Control;

/// Between two times that clients are told.
const CLOCK_INTERVAL: Duration = Duration::from_millis(50);
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
            channels.insert(channel.id, (self.hub.channel(&channel.topic, &shape), shape));
        }
        while self.hub.wanted(&BTreeSet::new()).is_empty() && !self.hub.is_over() {
            self.hub.wait(Duration::from_secs(1));
        }
        self.pace().since = Instant::now();
        loop {
            let (jumps, start_ns) = {
                let pace = self.pace();
                (pace.jumps, pace.at_ns)
            };
            let select = Select { start_ns: Some(start_ns), ..Select::default() };
            match self.play(select, jumps, &channels) {
                Waited::Over => return,
                Waited::Jumped => {}
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
                }
            }
        }
    }

    /// Plays to the end, or until the playing goes on elsewhere.
    fn play(&self, select: Select, jumps: u64, channels: &BTreeMap<u16, (u32, Shape)>) -> Waited {
        for message in self.recording.messages(select) {
            let message = match message {
                Ok(message) => message,
                Err(problem) => {
                    let said = say::status(say::Level::Warning, &problem.to_string());
                    self.hub.broadcast(&said);
                    continue;
                }
            };
            match self.wait(message.log_ns(), jumps) {
                Waited::Due => self.pass(&message, channels),
                other => return other,
            }
        }
        self.wait(self.times.1, jumps)
    }

    fn pass(&self, message: &Message, channels: &BTreeMap<u16, (u32, Shape)>) {
        let Some((channel, shape)) = channels.get(&message.channel.id) else { return };
        if let Ok(payload) = shape.payload(message.data()) {
            let publisher = u64::from(message.channel.id);
            let time_ns = message.log_ns();
            self.hub.message(*channel, &Passed { publisher, time_ns, payload: &payload, keeps: 0 });
        }
    }

    /// Waits until it is this time in the recording, and tells the time meanwhile.
    fn wait(&self, ns: u64, jumps: u64) -> Waited {
        let mut told: Option<Instant> = None;
        loop {
            let mut pace = self.pace();
            if self.hub.is_over() {
                return Waited::Over;
            }
            if pace.jumps != jumps {
                return Waited::Jumped;
            }
            let until = pace.until(ns);
            if until == Some(Duration::ZERO) {
                return Waited::Due;
            }
            if pace.plays && told.is_none_or(|at| at.elapsed() >= CLOCK_INTERVAL) {
                let now_ns = pace.now_ns();
                drop(pace);
                self.hub.broadcast(&say::time(now_ns));
                told = Some(Instant::now());
                pace = self.pace();
                if pace.jumps != jumps {
                    return Waited::Jumped;
                }
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
            return Err(format!("a playback speed of {} is not in {from} to {to}", control.rate));
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
