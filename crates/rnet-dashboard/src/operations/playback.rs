//! Playback of a recording from the dashboard's folder, one at a time.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::inspect::Domain;
use rnet_record::play::{
    ExistingEndpoints, PlayError, PlayOptions, PlaybackCommand, PlaybackController, PlaybackReport,
    Position, play,
};
use rnet_record::read::Recording;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::operator_node::OperatorNode;
use super::recordings;
use crate::app_state::{lock, try_lock};
use crate::wire::{Answer, Refusal, fields_of};

const THREAD: &str = "rnet-dash-play";
/// Timeout for the start: opening the publishers and connecting their subscribers.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for subscribers to read the last messages before the publishers close.
const DRAIN: Duration = Duration::from_secs(2);
/// Between two checks for unread messages.
const DRAIN_POLL: Duration = Duration::from_millis(5);

#[derive(Default)]
pub struct Playback {
    /// Held while playback starts, which waits for the disk and for subscribers. Reading the progress does
    /// not wait.
    starting: Mutex<()>,
    running: Mutex<Option<Running>>,
}

/// A playback, possibly finished.
struct Running {
    name: String,
    start_ns: u64,
    length_s: f64,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the player thread and the pages.
#[derive(Default)]
struct Progress {
    quit: AtomicBool,
    /// A page asked to pause or to resume.
    pause: AtomicBool,
    is_paused: AtomicBool,
    now_ns: AtomicU64,
    /// The last problem.
    problem: Mutex<Option<String>>,
    /// Published messages, set when playback has finished.
    played: Mutex<Option<u64>>,
    is_over: AtomicBool,
}

#[derive(Deserialize)]
struct Start {
    name: String,
    #[serde(default = "real_time")]
    rate: f64,
    #[serde(default, rename = "loop")]
    looped: bool,
}

fn real_time() -> f64 {
    1.0
}

impl Playback {
    /// The progress; `None` before the first playback.
    pub fn progress(&self) -> Option<Json> {
        let running = lock(&self.running);
        let Running { name, start_ns, length_s, progress, .. } = running.as_ref()?;
        let now_ns = progress.now_ns.load(Ordering::Relaxed);
        Some(json!({
            "name": name,
            "at_s": now_ns.saturating_sub(*start_ns) as f64 / 1e9,
            "length_s": length_s,
            "paused": progress.is_paused.load(Ordering::Relaxed),
            "problem": *lock(&progress.problem),
            "played": *lock(&progress.played),
            "is_over": progress.is_over.load(Ordering::Relaxed),
        }))
    }

    /// `play.start`.
    pub fn start(&self, operator: &OperatorNode, fields: Json) -> Answer {
        let Start { name, rate, looped } = fields_of(fields)?;
        if !(0.01..=100.0).contains(&rate) {
            return Err(Refusal::bad(format!("rate is {rate}, must be 0.01 to 100")));
        }
        let Some(_starting) = try_lock(&self.starting) else {
            return Err(Refusal::new("refused", "another recording is already being started"));
        };
        if let Some(running) = lock(&self.running).as_ref().filter(|running| running.is_playing()) {
            let why = format!("{} is being played; stop it first", running.name);
            return Err(Refusal::new("refused", why));
        }
        // Refuses symbolic links that leave the folder.
        recordings::open(&operator.app, &name)?;
        let path = recordings::path(&operator.app, &name)?;
        let recording =
            Recording::open(&path).map_err(|error| Refusal::failed(error.to_string()))?;
        let (node, domain) = (operator.node()?, operator.app.options.location.domain()?);
        let (start_ns, end_ns) = recording.info().times.unwrap_or_default();
        let progress = Arc::new(Progress::default());
        progress.now_ns.store(start_ns, Ordering::Relaxed);
        let options = PlayOptions { rate: Some(rate), looped, ..PlayOptions::default() };
        let (sender, started) = sync_channel(1);
        let control = PlaybackControl { progress: progress.clone(), domain, started: Some(sender) };
        let thread = std::thread::Builder::new().name(THREAD.to_owned());
        let thread = thread.spawn(move || control.play(&recording, &node, &options));
        let thread =
            thread.map_err(|why| Refusal::failed(format!("cannot start a thread: {why}")))?;
        let length_s = end_ns.saturating_sub(start_ns) as f64 / 1e9;
        // A playback that cannot start has already finished; the error goes to the page.
        match started.recv_timeout(START_TIMEOUT) {
            Ok(Ok(())) | Err(RecvTimeoutError::Timeout) => {
                let thread = Some(thread);
                let running = Running { name, start_ns, length_s, progress, thread };
                *lock(&self.running) = Some(running);
                Ok(json!({"file": path}))
            }
            Ok(Err(why)) => Err(Refusal::new("refused", why)),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Refusal::failed("the playback thread has panicked"))
            }
        }
    }

    /// `play.pause`: pauses or resumes.
    pub fn pause(&self) -> Answer {
        let running = lock(&self.running);
        let running = running.as_ref().filter(|running| running.is_playing());
        let running = running.ok_or_else(not_playing)?;
        running.progress.pause.store(true, Ordering::Relaxed);
        Ok(json!({}))
    }

    /// `play.stop`.
    pub fn stop(&self) -> Answer {
        let (progress, thread) = {
            let mut running = lock(&self.running);
            let running = running.as_mut().filter(|running| running.is_playing());
            let running = running.ok_or_else(not_playing)?;
            running.progress.quit.store(true, Ordering::Relaxed);
            (running.progress.clone(), running.thread.take())
        };
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        Ok(json!({"played": *lock(&progress.played)}))
    }
}

fn not_playing() -> Refusal {
    Refusal::new("refused", "no recording is being played")
}

impl Running {
    fn is_playing(&self) -> bool {
        !self.progress.is_over.load(Ordering::Relaxed)
    }
}

/// The player's callbacks.
struct PlaybackControl {
    progress: Arc<Progress>,
    domain: Domain,
    /// Receives one result: playback has started, or why it has not.
    started: Option<SyncSender<Result<(), String>>>,
}

impl PlaybackControl {
    fn play(mut self, recording: &Recording, node: &Node, options: &PlayOptions) {
        let existing = self.domain.snapshot().map(|snapshot| ExistingEndpoints::of(&snapshot));
        let played = existing
            .map_err(PlayError::from)
            .and_then(|existing| play(recording, node, &existing, options, &mut self));
        let result = match &played {
            Ok(PlaybackReport { messages, .. }) => {
                *lock(&self.progress.played) = Some(*messages);
                Ok(())
            }
            Err(error) => {
                *lock(&self.progress.problem) = Some(error.to_string());
                Err(error.to_string())
            }
        };
        self.report_start(result);
    }

    fn report_start(&mut self, result: Result<(), String>) {
        if let Some(started) = self.started.take() {
            // The requester may have timed out.
            let _ = started.send(result);
        }
    }

    fn has_unread(&mut self, topic: &str, publisher: u64) -> bool {
        self.domain.topic_snapshot(topic).is_ok_and(|snapshot| {
            let mut channels = snapshot.subscriptions.iter().flat_map(|s| &s.channels);
            channels.any(|c| c.publisher == publisher && c.behind.messages > 0)
        })
    }
}

impl Drop for PlaybackControl {
    /// Playback has finished, whatever ended it: another one can start.
    fn drop(&mut self) {
        if std::thread::panicking() {
            *lock(&self.progress.problem) = Some("the player has panicked".to_owned());
        }
        self.progress.is_over.store(true, Ordering::Relaxed);
    }
}

impl PlaybackController for PlaybackControl {
    fn next_command(&mut self, position: &Position) -> Option<PlaybackCommand> {
        self.report_start(Ok(()));
        self.progress.now_ns.store(position.now_ns, Ordering::Relaxed);
        self.progress.is_paused.store(position.paused, Ordering::Relaxed);
        if self.progress.quit.load(Ordering::Relaxed) {
            return Some(PlaybackCommand::Quit);
        }
        self.progress.pause.swap(false, Ordering::Relaxed).then_some(PlaybackCommand::TogglePause)
    }

    fn on_problem(&mut self, problem: &dyn Display) {
        *lock(&self.progress.problem) = Some(problem.to_string());
    }

    fn on_finished(&mut self, publishers: &mut dyn Iterator<Item = (&str, u64)>) {
        let deadline = Instant::now() + DRAIN;
        for (topic, publisher) in publishers {
            while self.has_unread(topic, publisher)
                && Instant::now() < deadline
                && !self.progress.quit.load(Ordering::Relaxed)
            {
                std::thread::sleep(DRAIN_POLL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rnet::inspect::Location;

    use super::*;

    #[test]
    fn player_that_panics_has_finished() {
        let location = Location::new(Some("playing"), Some(std::env::temp_dir()), None).unwrap();
        let (progress, domain) = (Arc::new(Progress::default()), location.domain().unwrap());
        let control = PlaybackControl { progress: progress.clone(), domain, started: None };
        let player = std::thread::spawn(move || {
            let _control = control;
            panic!("a player may panic");
        });
        assert!(player.join().is_err() && progress.is_over.load(Ordering::Relaxed));
        let problem = lock(&progress.problem).clone().unwrap();
        assert!(problem.contains("panicked"), "{problem}");
    }
}
