//! Serves a recording: sends messages at their log times; a client can pause, resume, seek and change the
//! speed.
//!
//! The thread `rnet-foxglove` waits for the first subscription, so that no client misses the beginning.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rnet::Durability;
use rnet_record::read::{Message, Problem, Recording, Select};
use serde_json::json;

use crate::backend::Backend;
use crate::channel_format::ChannelFormat;
use crate::hub::{Hub, TopicMessage};
use crate::incoming::PlaybackControl;
use crate::outgoing::{self, PlaybackState, PlaybackStatus};

/// Interval between two times sent to clients while no message is due, and minimum interval otherwise.
const CLOCK_INTERVAL: Duration = Duration::from_millis(50);
const CLOCK_MIN_INTERVAL: Duration = Duration::from_micros(16_667);
/// Permitted speed factors.
const SUPPORTED_RATES: std::ops::RangeInclusive<f32> = 0.01..=100.0;

pub struct PlaybackBackend {
    recording: Arc<Recording>,
    hub: Arc<Hub>,
    times: (u64, u64),
    clock: Mutex<PlaybackClock>,
    changed: Condvar,
}

/// Playback position: at `since`, the time of the recording was `at_ns`.
#[derive(Clone, Copy, Debug)]
struct PlaybackClock {
    is_playing: bool,
    has_ended: bool,
    rate: f64,
    at_ns: u64,
    since: Instant,
    /// When the time was last sent to clients.
    time_sent_at: Option<Instant>,
    /// Counts seeks, so that the reading loop notices that it must restart.
    seek_count: u64,
}

impl PlaybackClock {
    fn now_ns(&self) -> u64 {
        let past =
            if self.is_playing { self.since.elapsed().as_nanos() as f64 * self.rate } else { 0.0 };
        self.at_ns.saturating_add(past as u64)
    }

    /// Time until a time of the recording; `None` while paused.
    fn time_until(&self, ns: u64) -> Option<Duration> {
        let left = ns.saturating_sub(self.now_ns()) as f64 / 1e9 / self.rate;
        self.is_playing.then(|| Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX))
    }

    fn state(&self, end_ns: u64) -> PlaybackState {
        let status = match (self.has_ended, self.is_playing) {
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

/// Problems of the file that were reported to clients. Only the first problem of each kind is reported.
#[derive(Debug, Default)]
struct ReportedProblems {
    kinds: HashSet<Discriminant<Problem>>,
    /// Channels with a message that does not match its type.
    channels: BTreeSet<u16>,
}

/// A channel of the file.
struct PlayedChannel {
    /// Its id for clients.
    id: u32,
    format: ChannelFormat,
    /// How many messages its publisher kept for late joiners.
    latch_depth: usize,
}

/// Result of waiting for a message.
enum WaitOutcome {
    Due,
    /// The position was changed.
    Seeked,
    ShutDown,
}

impl PlaybackBackend {
    pub fn new(recording: Recording, hub: Arc<Hub>, paused: bool) -> PlaybackBackend {
        let times = recording.info().times.unwrap_or_default();
        let clock = PlaybackClock {
            is_playing: !paused,
            has_ended: false,
            rate: 1.0,
            at_ns: times.0,
            since: Instant::now(),
            time_sent_at: None,
            seek_count: 0,
        };
        let (recording, clock, changed) = (Arc::new(recording), Mutex::new(clock), Condvar::new());
        PlaybackBackend { recording, hub, times, clock, changed }
    }

    fn clock(&self) -> MutexGuard<'_, PlaybackClock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays until the hub shuts down.
    pub fn run(&self, session: &str) {
        let time = |ns: u64| json!({"sec": ns / 1_000_000_000, "nsec": ns % 1_000_000_000});
        self.hub.set_server_info(json!({
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
            let format = ChannelFormat::of_channel(channel);
            let latch_depth = match channel.source().map(|source| source.durability) {
                Ok(Durability::TransientLocal { depth }) => depth as usize,
                _ => 0,
            };
            let id = self.hub.get_or_create_channel(&channel.topic, &format);
            channels.insert(channel.id, PlayedChannel { id, format, latch_depth });
        }
        while self.hub.channels_to_follow(&BTreeSet::new()).is_empty() && !self.hub.is_shut_down() {
            self.hub.wait_for_change(Duration::from_secs(1));
        }
        self.clock().since = Instant::now();
        let mut reported = ReportedProblems::default();
        loop {
            let (seek_count, start_ns) = {
                let clock = self.clock();
                (clock.seek_count, clock.at_ns)
            };
            let select =
                Select { start_ns: Some(start_ns), with_latched: true, ..Select::default() };
            match self.play(select, seek_count, &channels, &mut reported) {
                WaitOutcome::ShutDown => return,
                // The messages kept for late joiners are read again at the new position.
                WaitOutcome::Seeked => self.hub.clear_latched(),
                WaitOutcome::Due => {
                    let ended = {
                        let mut clock = self.clock();
                        (clock.is_playing, clock.has_ended, clock.at_ns) =
                            (false, true, self.times.1);
                        clock.state(self.times.1)
                    };
                    self.hub.broadcast(&outgoing::playback(&ended));
                    // Until a seek changes the count.
                    if let WaitOutcome::ShutDown = self.wait_until(u64::MAX, seek_count) {
                        return;
                    }
                    self.hub.clear_latched();
                }
            }
        }
    }

    /// Plays to the end, or until a seek.
    fn play(
        &self,
        select: Select,
        seek_count: u64,
        channels: &BTreeMap<u16, PlayedChannel>,
        reported: &mut ReportedProblems,
    ) -> WaitOutcome {
        for message in self.recording.messages(select) {
            let message = match message {
                Ok(message) => message,
                Err(error) => {
                    if reported.kinds.insert(discriminant(&error.problem)) {
                        self.warn(&error.to_string());
                    }
                    continue;
                }
            };
            match self.wait_until(message.log_ns(), seek_count) {
                WaitOutcome::Due => self.forward(&message, channels, reported),
                other => return other,
            }
        }
        self.wait_until(self.times.1, seek_count)
    }

    fn forward(
        &self,
        message: &Message,
        channels: &BTreeMap<u16, PlayedChannel>,
        reported: &mut ReportedProblems,
    ) {
        let id = message.channel.id;
        let Some(PlayedChannel { id: channel, format, latch_depth }) = channels.get(&id) else {
            return;
        };
        let (publisher, time_ns) = (u64::from(id), message.log_ns());
        match format.payload(message.data()) {
            Ok(payload) => {
                let message = TopicMessage {
                    publisher,
                    time_ns,
                    payload: &payload,
                    latch_depth: *latch_depth,
                };
                self.hub.send_message(*channel, &message);
            }
            Err(why) if reported.channels.insert(id) => {
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
        self.hub.broadcast(&outgoing::status(outgoing::Level::Warning, &what));
    }

    /// Waits until this time in the recording, and sends the time to clients meanwhile.
    fn wait_until(&self, ns: u64, seek_count: u64) -> WaitOutcome {
        loop {
            let mut clock = self.clock();
            if self.hub.is_shut_down() {
                return WaitOutcome::ShutDown;
            }
            if clock.seek_count != seek_count {
                return WaitOutcome::Seeked;
            }
            let until = clock.time_until(ns);
            let is_due = until == Some(Duration::ZERO);
            // If reading is slower than playback, the time follows the messages.
            let (least, now_ns) = match is_due {
                true => (CLOCK_MIN_INTERVAL, ns),
                false => (CLOCK_INTERVAL, clock.now_ns()),
            };
            if clock.is_playing && clock.time_sent_at.is_none_or(|at| at.elapsed() >= least) {
                clock.time_sent_at = Some(Instant::now());
                drop(clock);
                self.hub.broadcast_time(now_ns);
                continue;
            }
            if is_due {
                return WaitOutcome::Due;
            }
            let limit = until.unwrap_or(Duration::MAX).min(CLOCK_INTERVAL);
            drop(self.changed.wait_timeout(clock, limit));
        }
    }
}

impl Backend for PlaybackBackend {
    fn control_playback(&self, control: &PlaybackControl) -> Result<PlaybackState, String> {
        if !SUPPORTED_RATES.contains(&control.rate) {
            let (from, to) = (SUPPORTED_RATES.start(), SUPPORTED_RATES.end());
            return Err(format!("playback speed {} is not within {from} to {to}", control.rate));
        }
        let mut clock = self.clock();
        let now_ns = clock.now_ns().clamp(self.times.0, self.times.1);
        // Playing at the end restarts from the beginning.
        let again = (control.is_playing && clock.has_ended && control.seek_ns.is_none())
            .then_some(self.times.0);
        let goes_to = control.seek_ns.or(again).map(|ns| ns.clamp(self.times.0, self.times.1));
        clock.at_ns = goes_to.unwrap_or(now_ns);
        clock.since = Instant::now();
        clock.rate = f64::from(control.rate);
        clock.is_playing = control.is_playing;
        if goes_to.is_some() {
            clock.seek_count += 1;
            clock.has_ended = false;
        }
        let mut state = clock.state(self.times.1);
        state.did_seek = goes_to.is_some();
        drop(clock);
        self.changed.notify_all();
        Ok(state)
    }
}
