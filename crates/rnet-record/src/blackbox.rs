//! The black box keeps the last seconds of a domain in memory, and a trigger writes them to a file.
//!
//! The ring is an endless recording in memory, in parts of two seconds ([`ring`]). The recorder of this crate
//! writes and bounds it. Triggers ([`trigger`]) are fired by messages ([`messages`]), by counters and deaths
//! of nodes ([`counters`]), and by calls of the service `/blackbox/trigger`. A trigger opens a [`window`],
//! which copies the parts it needs to the disk. When the window ends, a thread writes its file
//! ([`mod@write`]). docs/design/blackbox.md describes the file layout, and what is lost when a process dies.

mod counters;
mod folder;
mod limit;
mod messages;
mod options;
mod recover;
mod report;
mod ring;
mod status;
mod trigger;
mod trigger_queue;
mod window;
mod write;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet::inspect::Location;
use rnet::{HandlerError, Node, Service};
use serde_json::json;

use crate::error::{RecordError, Result};
use crate::mcap_file::ChunkCompression;
use crate::recorder::{Progress, RecordOptions, Recorder, RingPart, resolve_location};
use counters::CounterTriggers;
pub use counters::ExpectedExits;
pub use folder::list_files;
use folder::{Folder, prefix, remove_oldest};
use limit::{RateLimit, Verdict};
use messages::MessageTriggers;
pub use options::BlackBoxOptions;
pub use recover::recover;
use recover::resume_windows;
pub use report::{file_document, file_row, status_rows};
use ring::Ring;
pub use ring::RingMemory;
pub use status::BlackBoxStatus;
use status::{SharedStatus, set_problem, with_status};
pub use trigger::Trigger;
pub use trigger_queue::FiredTrigger;
use trigger_queue::{PendingTrigger, TriggerQueue};
use window::{FinishedWindow, Window};

/// Name of the black box's node, and prefix of the names of its services.
pub const NODE: &str = "/blackbox";
/// Service: writes a file. The request is the reason as text, the reply is [`BlackBoxStatus`] as JSON.
pub const TRIGGER_SERVICE: &str = "/blackbox/trigger";
/// Service: returns [`BlackBoxStatus`] as JSON. The request is empty.
pub const STATUS_SERVICE: &str = "/blackbox/status";

/// Minimum memory of a black box.
pub const MIN_MEMORY_BYTES: u64 = 64 << 20;
/// Default limit for the size of all files of a domain.
pub const DEFAULT_MAX_DISK_BYTES: u64 = 200 << 20;
/// Default memory of a black box, if the file system has at least four times as much.
pub const DEFAULT_MEMORY_BYTES: u64 = 256 << 20;
/// Space that a part of the ring reserves beyond its end.
const RESERVE_BYTES: u64 = 8 << 20;
/// Maximum time that a file covers before its first trigger, and after its last one.
pub const MAX_TIME: Duration = Duration::from_secs(600);
const PART_TIME: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const FOLDER_CHECK_INTERVAL: Duration = Duration::from_secs(1);
const WRITE_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Trigger name of a requested file.
const CALL: &str = "call";
/// Longest reason of a call, in bytes.
const MAX_REASON_BYTES: usize = 1000;

/// Keeps the last seconds of a domain until it is stopped or dropped.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir().join(format!("blackbox{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let node = rnet::Node::builder("arm").dir(&dir).domain("t").open()?;
/// # let location = rnet::inspect::Location::new(Some("t"), Some(dir.clone()), None)?;
/// use rnet_record::blackbox::{BlackBox, BlackBoxOptions};
///
/// let mut options = BlackBoxOptions::default();
/// options.triggers = vec!["/battery.voltage < 21".parse()?, "death".parse()?];
/// # options.location = Some(location);
/// # options.folder = dir.join("files");
/// let blackbox = BlackBox::start(options)?;
/// blackbox.trigger("it smells of smoke");
/// let status = blackbox.stop()?; // writes a pending file first
/// assert_eq!(status.files, 1);
/// # drop(node);
/// # std::fs::remove_dir_all(dir)?;
/// # Ok(()) }
/// ```
pub struct BlackBox {
    trigger_queue: Arc<TriggerQueue>,
    status: SharedStatus,
    thread: Option<JoinHandle<Result<()>>>,
    _services: Vec<Service>,
    _node: Node,
}

impl std::fmt::Debug for BlackBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlackBox").field("status", &self.status).finish_non_exhaustive()
    }
}

impl BlackBox {
    /// Acquires the ring of the domain, and writes the files that an earlier black box left unwritten.
    ///
    /// # Errors
    /// [`RecordError`]: the domain already has a black box or a node of its name; the ring or the folder
    /// cannot be created.
    pub fn start(options: BlackBoxOptions) -> Result<BlackBox> {
        if options.memory_len_bytes < MIN_MEMORY_BYTES {
            let wrong = format!(
                "{} bytes of memory are too few for a black box; the minimum is {MIN_MEMORY_BYTES}",
                options.memory_len_bytes
            );
            return Err(RecordError::Options(wrong));
        }
        if options.before.max(options.after) > MAX_TIME {
            let wrong = format!(
                "a file can contain at most {} s before and after a trigger",
                MAX_TIME.as_secs()
            );
            return Err(RecordError::Options(wrong));
        }
        let location = resolve_location(&options.location)?;
        let ring = Ring::acquire(&location, options.memory_len_bytes)?;
        check_memory(&Ring::path_of(location.path()), options.memory_len_bytes)?;
        let folder = Folder::open(&options.folder)?;
        let (trigger_queue, prefix) = (Arc::new(TriggerQueue::default()), prefix(&location));
        let left = ring.parts_of_this_boot();
        let waiting = window::pending_windows(&options.folder, &prefix)?;
        let (waiting, taken) = resume_windows(waiting, &left, &trigger_queue);
        if let Err(error) = taken {
            trigger_queue
                .note(format!("a file of an earlier black box will be incomplete: {error}"));
        }
        let status = BlackBoxStatus {
            domain: location.id().as_str().to_owned(),
            ring: Ring::path_of(location.path()),
            memory_bytes: options.memory_len_bytes,
            triggers: options.triggers.iter().map(ToString::to_string).collect(),
            folder: std::path::absolute(&options.folder).unwrap_or_else(|_| options.folder.clone()),
            ..BlackBoxStatus::default()
        };
        let status = Arc::new(Mutex::new(status));
        let message_hook = MessageTriggers::new(&options.triggers, trigger_queue.clone());
        let counters =
            CounterTriggers::new(&location, &options.triggers, options.expected.clone())?;
        let state_dir = options.state_dir.clone();
        let recorder =
            Recorder::start(&ring.file(), record_options(&options, &location, left, message_hook))?;
        let node = open_node(&location, state_dir.as_deref())?;
        let services = serve(&node, &trigger_queue, &status)?;
        let worker = BlackBoxWorker {
            options,
            folder,
            prefix,
            trigger_queue: trigger_queue.clone(),
            status: status.clone(),
            counters,
            limit: RateLimit::default(),
            began: Instant::now(),
            node: node.clone(),
            folder_checked_at: None,
            window: None,
            reported_problems: BTreeMap::new(),
            _ring: ring,
        };
        let run = move || worker.run(recorder, waiting);
        let thread = std::thread::Builder::new().name("rnet-blackbox".to_owned()).spawn(run);
        let thread =
            thread.map_err(|e| RecordError::file("start a thread for", Path::new(NODE), e))?;
        Ok(BlackBox {
            trigger_queue,
            status,
            thread: Some(thread),
            _services: services,
            _node: node,
        })
    }

    /// Requests a file, for this reason.
    pub fn trigger(&self, why: &str) {
        self.trigger_queue.push(call_trigger(why), None);
    }

    /// The current status.
    pub fn status(&self) -> BlackBoxStatus {
        with_status(&self.status, |status| status.clone())
    }

    /// Messages about events since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        self.trigger_queue.take_notes()
    }

    /// Whether it has finished, which means that it failed: [`BlackBox::stop`] returns the error.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops it. A pending file is written with the data available.
    ///
    /// # Errors
    /// The error that ended it earlier, if any.
    pub fn stop(mut self) -> Result<BlackBoxStatus> {
        self.join()?;
        Ok(self.status())
    }

    fn join(&mut self) -> Result<()> {
        self.trigger_queue.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(RecordError::Panicked("black box")),
            Some(Ok(ended)) => ended,
            None => Ok(()),
        }
    }
}

impl Drop for BlackBox {
    fn drop(&mut self) {
        // `stop` returns the error; `drop` ignores it.
        let _ = self.join();
    }
}

/// Default memory of a black box of this domain. The ring takes as much of it as its time needs.
pub fn default_memory(location: &Location) -> u64 {
    let stat = rustix::fs::statvfs(location.base());
    // An unlimited tmpfs reports 0.
    let all = stat.map_or(0, |stat| stat.f_blocks.saturating_mul(stat.f_frsize));
    let share = if all == 0 { DEFAULT_MEMORY_BYTES } else { all / 4 };
    share.clamp(MIN_MEMORY_BYTES, DEFAULT_MEMORY_BYTES)
}

/// Checks that the ring leaves memory for the nodes: they share the file system.
fn check_memory(ring: &Path, memory_bytes: u64) -> Result<()> {
    let Ok(stat) = rustix::fs::statvfs(ring) else { return Ok(()) };
    let all = stat.f_blocks.saturating_mul(stat.f_frsize);
    // An unlimited tmpfs reports 0.
    if all == 0 || all / 2 >= memory_bytes {
        return Ok(());
    }
    Err(RecordError::Options(format!(
        "a black box of {memory_bytes} bytes takes more than half of the {all} of {}, which the nodes need; \
         enlarge it (mount -o remount,size=…; docker run --shm-size), or disable the black box ([blackbox] \
         enabled = false)",
        ring.display()
    )))
}

fn call_trigger(why: &str) -> FiredTrigger {
    FiredTrigger { name: CALL.to_owned(), why: why.to_owned(), at_ns: rnet::now_ns() }
}

/// The write queue and the repeated records of the parts each get one of this many shares of the memory.
const MEMORY_SHARES: u64 = 8;

fn ring_bytes(options: &BlackBoxOptions) -> u64 {
    options.memory_len_bytes - 2 * (options.memory_len_bytes / MEMORY_SHARES) - RESERVE_BYTES
}

fn record_options(
    options: &BlackBoxOptions,
    location: &Location,
    left: Vec<RingPart>,
    message_hook: MessageTriggers,
) -> RecordOptions {
    let share = options.memory_len_bytes / MEMORY_SHARES;
    RecordOptions {
        selection: options.selection.clone(),
        compress: ChunkCompression::Lz4,
        split_time: Some(PART_TIME),
        keep_time: Some(options.before + PART_TIME),
        max_disk: Some(ring_bytes(options)),
        buffer_len_bytes: share,
        host: options.host.clone(),
        command_line: options.command_line.clone(),
        location: Some(location.clone()),
        state_dir: options.state_dir.clone(),
        earlier_parts: left,
        message_hook: Some(Arc::new(message_hook)),
        ..RecordOptions::default()
    }
}

fn open_node(location: &Location, state_dir: Option<&Path>) -> Result<Node> {
    let mut builder = Node::builder(NODE).domain(location.id().as_str()).dir(location.base());
    if let Some(dir) = state_dir {
        builder = builder.state_dir(dir);
    }
    if let Some(group) = location.group() {
        builder = builder.group(group);
    }
    Ok(builder.open()?)
}

fn serve(
    node: &Node,
    trigger_queue: &Arc<TriggerQueue>,
    status: &SharedStatus,
) -> Result<Vec<Service>> {
    let reply = |status: &SharedStatus| {
        let text = with_status(status, |status| serde_json::to_vec(status));
        text.map_err(|error| HandlerError::new("Format", error.to_string()))
    };
    let (trigger_queue, of_trigger, of_status) =
        (trigger_queue.clone(), status.clone(), status.clone());
    let trigger = node.service::<[u8], [u8]>(TRIGGER_SERVICE).serve(move |request| {
        let why = std::str::from_utf8(request).ok().filter(|why| why.len() <= MAX_REASON_BYTES);
        let why = why.ok_or_else(|| {
            let wrong = format!("a reason must be text of at most {MAX_REASON_BYTES} bytes");
            HandlerError::new("BadValue", wrong)
        })?;
        trigger_queue.push(call_trigger(why), None);
        reply(&of_trigger)
    })?;
    let status = node.service::<[u8], [u8]>(STATUS_SERVICE);
    Ok(vec![trigger, status.serve(move |_| reply(&of_status))?])
}

struct BlackBoxWorker {
    options: BlackBoxOptions,
    folder: Folder,
    prefix: String,
    trigger_queue: Arc<TriggerQueue>,
    status: SharedStatus,
    counters: CounterTriggers,
    limit: RateLimit,
    began: Instant,
    /// Logs to the domain what prevents the box from writing.
    node: Node,
    folder_checked_at: Option<Instant>,
    window: Option<Window>,
    /// The part of `BlackBoxStatus::problems` that was already reported.
    reported_problems: BTreeMap<&'static str, String>,
    _ring: Ring,
}

impl BlackBoxWorker {
    fn run(mut self, recorder: Recorder, waiting: Vec<FinishedWindow>) -> Result<()> {
        let (windows, given) = channel();
        let writer = self.start_writer(given, waiting)?;
        while !self.trigger_queue.is_stopped() && !recorder.is_finished() {
            self.step(&recorder, &windows);
        }
        // Handles the last triggers, and the part that contains them.
        self.step(&recorder, &windows);
        recorder.take_notes().into_iter().for_each(|note| self.trigger_queue.note(note));
        let stopped = recorder.stop();
        if let Ok(progress) = &stopped {
            progress.notes.iter().for_each(|note| self.trigger_queue.note(note.clone()));
            self.update_status(progress);
        }
        let parts = stopped.as_ref().map_or(Vec::new(), |progress| progress.parts.clone());
        let mut has_all = true;
        if let Some(mut window) = self.window.take() {
            has_all = window.copy_last(&parts, &self.trigger_queue);
            set_problem(&self.status, "window", window.problem().map(str::to_owned));
            self.end_window(window, &windows);
        }
        drop(windows);
        let written = writer.join().map_err(|_| RecordError::Panicked("black box file"));
        if stopped.is_ok() && has_all {
            // A box that was stopped, and did not die, leaves no ring.
            for part in parts {
                let _ = std::fs::remove_file(part.path);
            }
        }
        written.and(stopped.map(drop))
    }

    fn step(&mut self, recorder: &Recorder, windows: &Sender<FinishedWindow>) {
        let (fired, more) = self.trigger_queue.wait(POLL_INTERVAL);
        recorder.take_notes().into_iter().for_each(|note| self.trigger_queue.note(note));
        for PendingTrigger { fired, by } in fired {
            // A deliberate stop of a driver makes its command fall back; this is not a trigger.
            if !by.is_some_and(|node| self.counters.is_expected(&node)) {
                self.fire(fired);
            }
        }
        if let Some(window) = self.window.as_mut().filter(|_| more > 0) {
            window.extend_by(more);
        }
        with_status(&self.status, |status| status.fired += more);
        self.counters.poll(&self.trigger_queue);
        self.check_folder();
        let progress = recorder.progress();
        if let Some(window) = &mut self.window {
            window.copy_from(&progress.parts, self.options.max_disk / 2, &self.trigger_queue);
        }
        if let Some(window) = self.window.take_if(|window| window.is_complete(&progress.parts)) {
            self.end_window(window, windows);
            // Its problem is reported as over, not as recovered.
            self.reported_problems.remove("window");
            recorder.set_problem("window", None);
        }
        let why = self.window.as_ref().and_then(Window::problem);
        set_problem(&self.status, "window", why.map(str::to_owned));
        self.update_status(&progress);
        self.report_problems(recorder);
    }

    /// Hands a window over to the thread that writes its file, and reports missing data.
    fn end_window(&self, window: Window, windows: &Sender<FinishedWindow>) {
        let file = window.pending().file.clone();
        let over = window.end();
        if let Some(why) = &over.incomplete {
            let text =
                format!("{file} is incomplete: not all of it could be written in time: {why}");
            self.node.log().error(text.clone());
            self.trigger_queue.note(text);
            with_status(&self.status, |status| status.incomplete_files += 1);
        }
        // The thread only exits when the sender is dropped.
        let _ = windows.send(over);
    }

    /// Checks whether a file could be written now, because a trigger is too late to find out.
    fn check_folder(&mut self) {
        if self.folder_checked_at.is_some_and(|at| at.elapsed() < FOLDER_CHECK_INTERVAL) {
            return;
        }
        self.folder_checked_at = Some(Instant::now());
        set_problem(
            &self.status,
            "folder",
            self.folder.write_problem(self.options.memory_len_bytes),
        );
    }

    /// Reports new and resolved write problems: in the log of the domain, which also goes to stderr, and in
    /// the progress that inspection tools read.
    fn report_problems(&mut self, recorder: &Recorder) {
        let now = with_status(&self.status, |status| status.problems.clone());
        if now == self.reported_problems {
            return;
        }
        for (of, why) in
            now.iter().filter(|(of, why)| self.reported_problems.get(*of) != Some(*why))
        {
            let text = format!("the black box cannot write its {of}: {why}");
            self.node.log().error(text);
        }
        for of in self.reported_problems.keys().filter(|of| !now.contains_key(*of)) {
            let text = format!("the black box can write its {of} again");
            self.node.log().info(text);
        }
        for of in ["folder", "window", "file"] {
            recorder.set_problem(of, now.get(of).cloned());
        }
        self.reported_problems = now;
    }

    fn fire(&mut self, fired: FiredTrigger) {
        self.trigger_queue.note(format!("{}: {}", fired.name, fired.why));
        with_status(&self.status, |status| {
            status.fired += 1;
            status.last = Some(fired.clone());
        });
        let (is_open, is_call) = (self.window.is_some(), fired.name == CALL);
        let verdict = self.limit.check(&fired, is_open, is_call, Instant::now());
        if verdict != Verdict::Accepted {
            with_status(&self.status, |status| status.merged += 1);
            return match &mut self.window {
                Some(window) => window.extend_by(1),
                None if verdict == Verdict::TooMany => {
                    let text = "no file is written: the limit of files per minute is reached";
                    self.trigger_queue.note(text.to_owned());
                }
                None => {}
            };
        }
        match &mut self.window {
            Some(window) => window.extend(fired, self.options.after),
            None => {
                let graph = self.graph();
                let BlackBoxOptions { before, after, .. } = self.options;
                let (times, folder) = ((before, after), self.folder.clone());
                self.window = Some(Window::new(folder, &self.prefix, fired, times, graph));
            }
        }
    }

    /// The current nodes, as JSON.
    fn graph(&mut self) -> Option<Vec<u8>> {
        let snapshot = self.counters.snapshot().ok()?;
        let nodes = snapshot.nodes.iter().map(|node| {
            let (publishes, subscribes) = (&node.publishes, &node.subscribes);
            json!({
                "node": node.meta.name, "pid": node.meta.pid,
                "publishes": publishes, "subscribes": subscribes,
            })
        });
        serde_json::to_vec(&json!({"nodes": nodes.collect::<Vec<_>>()})).ok()
    }

    fn update_status(&self, progress: &Progress) {
        let mut why = progress.problems.get("recording").cloned();
        if progress.disk_is_full {
            why = Some("the disk is full".to_owned());
        }
        set_problem(&self.status, "ring", why);
        let first_ns = progress.parts.first().map_or(rnet::now_ns(), |part| part.from_ns);
        with_status(&self.status, |status| {
            status.ring_bytes = progress.file_bytes;
            status.messages = progress.messages;
            status.missing = progress.losses.total();
            status.unheard = progress.unheard.total();
            status.kept_s = rnet::now_ns().saturating_sub(first_ns) as f64 / 1e9;
            status.shorter = self.shorter(progress, status.kept_s);
            status.pending = self.window.as_ref().map(|window| window.pending().file.clone());
        });
    }

    /// Why the ring covers less time than a file needs before its trigger, if its memory is the reason.
    fn shorter(&self, progress: &Progress, kept_s: f64) -> Option<String> {
        let (before_s, most) = (self.options.before.as_secs_f64(), ring_bytes(&self.options));
        // A full ring is at least half full here: its oldest part was just removed.
        let is_full = progress.file_bytes >= most / 2 && kept_s < before_s;
        (is_full && self.began.elapsed() > self.options.before).then(|| {
            let rate = progress.file_bytes as f64 / kept_s.max(1.0);
            let need = (rate * (before_s + PART_TIME.as_secs_f64())) as u64 + RESERVE_BYTES;
            format!(
                "{kept_s:.0} s of the {before_s} s before a trigger: at this data rate the memory holds no \
                 more; {} MiB would be enough",
                (need * 4 / 3) >> 20
            )
        })
    }

    /// Starts the thread that writes files, so that a slow disk does not block the ring.
    fn start_writer(
        &self,
        given: Receiver<FinishedWindow>,
        mut todo: Vec<FinishedWindow>,
    ) -> Result<JoinHandle<()>> {
        let (trigger_queue, status) = (self.trigger_queue.clone(), self.status.clone());
        let (folder, prefix, max) =
            (self.folder.clone(), self.prefix.clone(), self.options.max_disk);
        let write = move || {
            let mut is_last = false;
            while !is_last || !todo.is_empty() {
                let mut failed = None;
                todo.retain(|over| match window::write_file(over, &trigger_queue) {
                    Ok(None) => false,
                    Err(why) if folder.is_on_same_disk() && window::is_removed(&over.dir) => {
                        let dir = over.dir.display();
                        trigger_queue
                            .note(format!("{dir} was removed, so its file is lost: {why}"));
                        with_status(&status, |status| status.lost_files += 1);
                        false
                    }
                    Ok(Some(file)) => {
                        trigger_queue.note(format!("{} is written", file.display()));
                        with_status(&status, |status| {
                            status.files += 1;
                            status.last_file = Some(file);
                        });
                        remove_oldest(folder.path(), &prefix, max, &trigger_queue);
                        false
                    }
                    Err(why) => {
                        trigger_queue
                            .note(format!("{why}; its data stays in {}", over.dir.display()));
                        failed = Some(why);
                        true
                    }
                });
                set_problem(&status, "file", failed);
                if is_last {
                    // The next box writes the remaining windows.
                    return;
                }
                match given.recv_timeout(WRITE_RETRY_INTERVAL) {
                    Ok(over) => todo.push(over),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => is_last = true,
                }
            }
        };
        let thread = std::thread::Builder::new().name("rnet-blackbox-w".to_owned()).spawn(write);
        thread.map_err(|e| RecordError::file("start a thread for", Path::new(NODE), e))
    }
}
