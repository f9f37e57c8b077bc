//! The recording of the dashboard: one at a time, in its folder.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rnet_monitor::link::own_host;
use rnet_record::blackbox::TRIGGER_SERVICE;
use rnet_record::{Progress, RecordError, RecordOptions, Recorder, Selection};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::operator_node::OperatorNode;
use super::recordings::{self, EXTENSION, MAX_NAME_LEN_BYTES};
use crate::app_state::{AppState, lock, try_lock};
use crate::background_task::BackgroundTask;
use crate::wire::{Answer, Refusal, fields_of};

/// Timeout of an answer of the black box.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A folder that does not respond for this long is reported.
const FOLDER_TIMEOUT: Duration = Duration::from_secs(3);
const FOLDER_THREAD: &str = "rnet-dash-disk";

#[derive(Default)]
pub struct Recording {
    /// Held while a recording starts, which waits for a disk. Reading the progress does not wait.
    starting: Mutex<()>,
    running: Mutex<Option<Running>>,
    folder: Mutex<FolderStatus>,
}

struct Running {
    recorder: Recorder,
    since: Instant,
    file: PathBuf,
    problem: Option<String>,
}

/// Status of the folder of recordings.
#[derive(Default)]
struct FolderStatus {
    /// A running scan of the folder, and its start time.
    scan: Option<(Instant, BackgroundTask<Vec<Json>>)>,
    problem: Option<String>,
    /// The recordings in the folder.
    files: Vec<Json>,
}

impl FolderStatus {
    /// The result of the last scan. Starts the next scan if none is running, and never waits: a network file
    /// system may hang.
    fn poll(
        &mut self,
        folder: &Path,
        now: Instant,
        check: impl FnOnce() -> Result<Vec<Json>, Refusal> + Send + 'static,
    ) -> Option<String> {
        if let Some((since, scan)) = &self.scan {
            let silent = now.saturating_duration_since(*since);
            if let Some(found) = scan.take() {
                (self.files, self.problem) = match found {
                    Ok(files) => (files, None),
                    Err(refusal) => (Vec::new(), Some(refusal.message)),
                };
                self.scan = None;
            } else if silent >= FOLDER_TIMEOUT {
                self.problem = Some(format!(
                    "{} (--recordings) has not responded for {} s: check that its file system is mounted, \
                     and that its disk or network responds",
                    folder.display(),
                    silent.as_secs()
                ));
            }
        }
        if self.scan.is_none() {
            match BackgroundTask::start(FOLDER_THREAD, check) {
                Ok(scan) => self.scan = Some((now, scan)),
                Err(refusal) => self.problem = Some(refusal.message),
            }
        }
        self.problem.clone()
    }
}

impl From<RecordError> for Refusal {
    fn from(error: RecordError) -> Refusal {
        Refusal::failed(error.to_string())
    }
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    topics: Vec<String>,
    name: Option<String>,
}

impl Recording {
    /// Locks the start of a recording.
    fn begin(&self) -> Result<MutexGuard<'_, ()>, Refusal> {
        let already = || Refusal::new("refused", "a recording is already being started");
        try_lock(&self.starting).ok_or_else(already)
    }

    /// The recordings in the folder, and the last known reason why the folder is not writable.
    pub fn folder(&self, app: &Arc<AppState>, now: Instant) -> (Vec<Json>, Option<String>) {
        let Some(folder) = app.options.recordings.clone() else { return Default::default() };
        let (asked, path) = (app.clone(), folder.clone());
        let check = move || {
            let found = asked.options.check_recordings();
            found.map_err(|why| Refusal::new("refused", why.to_string()))?;
            let why = |why| Refusal::failed(format!("{} cannot be read: {why}", path.display()));
            recordings::list(&path).map_err(why)
        };
        let mut known = lock(&self.folder);
        let problem = known.poll(&folder, now, check);
        (known.files.clone(), problem)
    }

    /// Progress of the recording; `None` without one.
    pub fn progress(&self) -> Option<Json> {
        let mut running = lock(&self.running);
        let running = running.as_mut()?;
        let progress = running.recorder.progress();
        // The newest note is the most important, such as a full disk.
        running.problem = running.recorder.take_notes().pop().or(running.problem.take());
        let mut status = document(&progress, &running.file);
        status["seconds"] = running.since.elapsed().as_secs_f64().into();
        status["problem"] = running.problem.clone().into();
        Some(status)
    }

    /// `record.start`.
    pub fn start(&self, operator: &OperatorNode, fields: Json) -> Answer {
        let Start { topics, name } = fields_of(fields)?;
        let options = &operator.app.options;
        let Some(folder) = &options.recordings else {
            return Err(Refusal::new("refused", "the dashboard was started without --recordings"));
        };
        let file = folder.join(file_name(name)?);
        let _starting = self.begin()?;
        options.check_recordings().map_err(|error| Refusal::new("refused", error.to_string()))?;
        if let Some(running) = &*lock(&self.running) {
            let file = running.file.display();
            return Err(Refusal::new(
                "refused",
                format!("{file} is being recorded; stop it first"),
            ));
        }
        let mut selection = Selection::default();
        for topic in &topics {
            selection = selection.topic(topic).map_err(|error| Refusal::bad(error.to_string()))?;
        }
        let snapshot = operator.app.snapshot()?;
        let mut options = RecordOptions::default();
        options.selection = selection;
        options.host = Some(own_host(&snapshot));
        options.location = Some(operator.app.options.location.clone());
        options.command_line = "rnet dashboard".to_owned();
        let recorder = Recorder::start(&file, options)?;
        let since = Instant::now();
        *lock(&self.running) = Some(Running { recorder, since, file: file.clone(), problem: None });
        Ok(json!({"file": file}))
    }

    /// `record.stop`.
    pub fn stop(&self) -> Answer {
        let Some(Running { recorder, file, .. }) = lock(&self.running).take() else {
            return Err(Refusal::new("refused", "no recording is running"));
        };
        Ok(document(&recorder.stop()?, &file))
    }
}

fn document(progress: &Progress, file: &Path) -> Json {
    json!({
        "file": progress.path.as_deref().or(progress.ended.last().map(PathBuf::as_path)).unwrap_or(file),
        "messages": progress.messages,
        "bytes": progress.file_bytes,
        "missing": progress.losses.total(),
        "unheard": progress.unheard.total(),
    })
}

/// Validates a file name, which must be in the folder of recordings.
fn file_name(name: Option<String>) -> Result<String, Refusal> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        let now_s = rnet::msgs::timestamp_now().to_string();
        let digits: String = now_s.chars().take_while(|c| *c != '.').collect();
        return Ok(format!("{}.mcap", digits.replace([':', 'T'], "-").trim_end_matches('Z')));
    };
    if !recordings::is_plain(&name) {
        return Err(Refusal::bad(format!(
            "{name:?} is not a valid name for a recording: use up to {MAX_NAME_LEN_BYTES} letters, digits, \
             -, _ and ., and do not start with ."
        )));
    }
    Ok(if name.ends_with(EXTENSION) { name } else { format!("{name}{EXTENSION}") })
}

/// `blackbox.trigger`.
pub fn trigger(operator: &OperatorNode, fields: Json) -> Answer {
    #[derive(Deserialize)]
    struct Trigger {
        #[serde(default)]
        why: String,
    }
    let Trigger { why } = fields_of(fields)?;
    let snapshot = operator.app.snapshot()?;
    if !snapshot.servers().iter().any(|server| server.service == TRIGGER_SERVICE) {
        let id = operator.app.options.location.id();
        return Err(Refusal::not_found(format!(
            "domain {id} has no black box; start one with rnet blackbox run"
        )));
    }
    let why = if why.is_empty() { "the dashboard" } else { &why };
    let reply =
        operator.node()?.call_timeout::<[u8], [u8]>(TRIGGER_SERVICE, why.as_bytes(), TIMEOUT)?;
    let blackbox: Json = serde_json::from_slice(&reply).unwrap_or_default();
    Ok(json!({"blackbox": blackbox}))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn hanging_disk_is_reported_and_blocks_nothing() {
        let path = Path::new("/mnt/robot");
        let (answer, asked) = channel::<Vec<Json>>();
        let mut folder = FolderStatus::default();
        let begun = Instant::now();
        let hangs = move || asked.recv().map_err(|_| Refusal::failed("it is gone"));
        assert_eq!(folder.poll(path, begun, hangs), None);
        let again = || panic!("a scan is running");
        assert_eq!(folder.poll(path, begun + FOLDER_TIMEOUT / 2, again), None);
        let status = folder.poll(path, begun + 2 * FOLDER_TIMEOUT, again).unwrap();
        assert!(
            status.starts_with("/mnt/robot (--recordings) has not responded for 6 s"),
            "{status}"
        );
        drop(answer);
        // The final error becomes the problem, and a success clears it.
        let mut until = |wanted: Option<&str>| {
            while folder.poll(path, begun, || Ok(Vec::new())).as_deref() != wanted {
                std::thread::yield_now();
            }
        };
        until(Some("it is gone"));
        until(None);
    }

    #[test]
    fn starts_one_recording_at_a_time_without_blocking_readers() {
        let recording = Recording::default();
        let starting = recording.begin().unwrap();
        assert_eq!(recording.begin().unwrap_err().code, "refused");
        assert!(recording.progress().is_none());
        drop(starting);
        assert!(recording.begin().is_ok());
    }

    #[test]
    fn recordings_stay_in_their_folder() {
        assert_eq!(file_name(Some("drive-1".into())).unwrap(), "drive-1.mcap");
        assert_eq!(file_name(Some("a.mcap".into())).unwrap(), "a.mcap");
        assert!(file_name(Some("../a".into())).is_err());
        let by_time = file_name(None).unwrap();
        assert_eq!(file_name(Some(by_time.clone())).unwrap(), by_time);
    }
}
