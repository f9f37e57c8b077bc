//! The black box: the last seconds are kept at all times, and something that happens makes a file of them.
//!
//! The ring is a recording without an end, in parts of two seconds in memory ([`ring`]), which the recorder of this crate
//! writes and bounds. Triggers ([`trigger`]) are fired by messages ([`messages`]), by what nodes count and by their
//! deaths ([`counters`]), and by whoever calls the service `/blackbox/trigger`. A trigger opens a [`window`], which copies
//! the parts that it needs to the disk; when it is over, a thread writes its file ([`mod@write`]). docs/design/blackbox.md
//! says what stands where, and what is lost when something dies.

mod bell;
mod counters;
mod folder;
mod limit;
mod messages;
mod options;
mod recover;
mod ring;
mod status;
mod trigger;
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
use crate::part::Compress;
use crate::recorder::{Progress, RecordOptions, Recorder, RingPart, located};
pub use bell::Fired;
use bell::{Bell, Rung};
use counters::Counters;
pub use counters::Expected;
pub use folder::files_of;
use folder::{Folder, prefix, trim};
use limit::{Limit, Verdict};
use messages::Messages;
pub use options::BlackBoxOptions;
pub use recover::recover;
use recover::take_over;
pub use ring::Memory;
use ring::Ring;
pub use status::Status;
use status::{SharedStatus, change, problem};
pub use trigger::Trigger;
use window::{Over, Window};

/// Name of the box's node, and what the names of its services begin with.
pub const NODE: &str = "/blackbox";
/// Service: writes a file. The request is the reason as text, the reply [`Status`] as JSON.
pub const TRIGGER_SERVICE: &str = "/blackbox/trigger";
/// Service: [`Status`] as JSON. The request is empty.
pub const STATUS_SERVICE: &str = "/blackbox/status";

/// The least memory that a box can do with.
pub const MIN_MEMORY_BYTES: u64 = 64 << 20;
/// What all files of a domain may have, if nobody says otherwise.
pub const DEFAULT_MAX_DISK_BYTES: u64 = 200 << 20;
/// The memory of a box, if nobody says otherwise and the file system has four times as much.
pub const DEFAULT_MEMORY_BYTES: u64 = 256 << 20;
/// What a part of the ring reserves beyond its end.
const RESERVE_BYTES: u64 = 8 << 20;
/// The most that a file may have before its first trigger, and after its last one.
pub const MAX_TIME: Duration = Duration::from_secs(600);
/// Length of the ring's parts, in time.
const PART_TIME: Duration = Duration::from_secs(2);
/// Between two looks at what has fired.
const STEP: Duration = Duration::from_millis(50);
/// Between two looks at whether a file could be made.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Between two tries to write a file.
const RETRY: Duration = Duration::from_secs(5);
/// The trigger of a file that somebody asks for.
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
/// let status = blackbox.stop()?; // what is in the making is written first
/// assert_eq!(status.files, 1);
/// # drop(node);
/// # std::fs::remove_dir_all(dir)?;
/// # Ok(()) }
/// ```
pub struct BlackBox {
    bell: Arc<Bell>,
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
    /// Takes the ring of the domain, and writes what a box before it could not write any more.
    ///
    /// # Errors
    /// [`RecordError`]: the domain has a box, or a node of its name; the ring or the folder cannot be made.
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
        let location = located(&options.location)?;
        let ring = Ring::take(&location, options.memory_len_bytes)?;
        has_room(&Ring::path_of(location.path()), options.memory_len_bytes)?;
        let folder = Folder::open(&options.folder)?;
        let (bell, prefix) = (Arc::new(Bell::default()), prefix(&location));
        let left = ring.left_of_this_boot();
        let waiting = window::waiting(&options.folder, &prefix)?;
        let (waiting, taken) = take_over(waiting, &left, &bell);
        if let Err(error) = taken {
            bell.note(format!("a file of an earlier black box will be incomplete: {error}"));
        }
        let status = Status {
            domain: location.id().as_str().to_owned(),
            ring: Ring::path_of(location.path()),
            memory_bytes: options.memory_len_bytes,
            triggers: options.triggers.iter().map(ToString::to_string).collect(),
            folder: std::path::absolute(&options.folder).unwrap_or_else(|_| options.folder.clone()),
            ..Status::default()
        };
        let status = Arc::new(Mutex::new(status));
        let watch = Messages::new(&options.triggers, bell.clone());
        let counters = Counters::new(&location, &options.triggers, options.expected.clone())?;
        let state_dir = options.state_dir.clone();
        let recorder = Recorder::start(&ring.file(), recording(&options, &location, left, watch))?;
        let node = open_node(&location, state_dir.as_deref())?;
        let services = serve(&node, &bell, &status)?;
        let box_ = Box_ {
            options,
            folder,
            prefix,
            bell: bell.clone(),
            status: status.clone(),
            counters,
            limit: Limit::default(),
            began: Instant::now(),
            node: node.clone(),
            looked: None,
            window: None,
            told: BTreeMap::new(),
            _ring: ring,
        };
        let run = move || box_.run(recorder, waiting);
        let thread = std::thread::Builder::new().name("rnet-blackbox".to_owned()).spawn(run);
        let thread =
            thread.map_err(|e| RecordError::file("start a thread for", Path::new(NODE), e))?;
        Ok(BlackBox { bell, status, thread: Some(thread), _services: services, _node: node })
    }

    /// Asks for a file, for this reason.
    pub fn trigger(&self, why: &str) {
        self.bell.ring(called(why), None);
    }

    /// How it is.
    pub fn status(&self) -> Status {
        change(&self.status, |status| status.clone())
    }

    /// What happened since the last call, in words.
    pub fn take_notes(&self) -> Vec<String> {
        self.bell.take_notes()
    }

    /// Whether it has ended: it failed, which [`BlackBox::stop`] tells.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it. A file that is in the making is written with what there is.
    ///
    /// # Errors
    /// Why it ended before, if it did.
    pub fn stop(mut self) -> Result<Status> {
        self.join()?;
        Ok(self.status())
    }

    fn join(&mut self) -> Result<()> {
        self.bell.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(RecordError::Panicked("black box")),
            Some(Ok(ended)) => ended,
            None => Ok(()),
        }
    }
}

impl Drop for BlackBox {
    fn drop(&mut self) {
        // Whoever wants to know how it ended stops it.
        let _ = self.join();
    }
}

/// The memory that a box of this domain takes if nobody says how much: the ring takes of it what its time needs.
pub fn default_memory(location: &Location) -> u64 {
    let stat = rustix::fs::statvfs(location.base());
    // A tmpfs without a bound says 0.
    let all = stat.map_or(0, |stat| stat.f_blocks.saturating_mul(stat.f_frsize));
    let share = if all == 0 { DEFAULT_MEMORY_BYTES } else { all / 4 };
    share.clamp(MIN_MEMORY_BYTES, DEFAULT_MEMORY_BYTES)
}

/// That the ring leaves the nodes their memory: they share the file system.
fn has_room(ring: &Path, memory_bytes: u64) -> Result<()> {
    let Ok(stat) = rustix::fs::statvfs(ring) else { return Ok(()) };
    let all = stat.f_blocks.saturating_mul(stat.f_frsize);
    // A tmpfs without a bound says 0.
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

fn called(why: &str) -> Fired {
    Fired { name: CALL.to_owned(), why: why.to_owned(), at_ns: rnet::now_ns() }
}

/// Of the memory, one of so many shares each is for what waits to be written, and for what each part says once more.
const SHARES: u64 = 8;

/// What the ring may have of the memory.
fn ring_bytes(options: &BlackBoxOptions) -> u64 {
    options.memory_len_bytes - 2 * (options.memory_len_bytes / SHARES) - RESERVE_BYTES
}

fn recording(
    options: &BlackBoxOptions,
    location: &Location,
    left: Vec<RingPart>,
    watch: Messages,
) -> RecordOptions {
    let share = options.memory_len_bytes / SHARES;
    RecordOptions {
        selection: options.selection.clone(),
        compress: Compress::Lz4,
        split_time: Some(PART_TIME),
        keep_time: Some(options.before + PART_TIME),
        max_disk: Some(ring_bytes(options)),
        buffer_len_bytes: share,
        host: options.host.clone(),
        said: options.said.clone(),
        location: Some(location.clone()),
        state_dir: options.state_dir.clone(),
        past: left,
        watch: Some(Arc::new(watch)),
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

fn serve(node: &Node, bell: &Arc<Bell>, status: &SharedStatus) -> Result<Vec<Service>> {
    let say = |status: &SharedStatus| {
        let text = change(status, |status| serde_json::to_vec(status));
        text.map_err(|error| HandlerError::new("Format", error.to_string()))
    };
    let (bell, of_trigger, of_status) = (bell.clone(), status.clone(), status.clone());
    let trigger = node.service::<[u8], [u8]>(TRIGGER_SERVICE).serve(move |request| {
        let why = std::str::from_utf8(request).ok().filter(|why| why.len() <= MAX_REASON_BYTES);
        let why = why.ok_or_else(|| {
            let wrong = format!("a reason must be text of at most {MAX_REASON_BYTES} bytes");
            HandlerError::new("BadValue", wrong)
        })?;
        bell.ring(called(why), None);
        say(&of_trigger)
    })?;
    let status = node.service::<[u8], [u8]>(STATUS_SERVICE);
    Ok(vec![trigger, status.serve(move |_| say(&of_status))?])
}

/// What the thread of a box has.
struct Box_ {
    options: BlackBoxOptions,
    folder: Folder,
    prefix: String,
    bell: Arc<Bell>,
    status: SharedStatus,
    counters: Counters,
    limit: Limit,
    began: Instant,
    /// Says in the log of the domain what keeps the box from writing.
    node: Node,
    /// When the folder was looked at last.
    looked: Option<Instant>,
    window: Option<Window>,
    /// What was told of `Status::problems`.
    told: BTreeMap<&'static str, String>,
    _ring: Ring,
}

impl Box_ {
    fn run(mut self, recorder: Recorder, waiting: Vec<Over>) -> Result<()> {
        let (windows, given) = channel();
        let writer = self.start_writer(given, waiting)?;
        while !self.bell.is_stopped() && !recorder.is_over() {
            self.step(&recorder, &windows);
        }
        // The last that fired, and the part that holds it.
        self.step(&recorder, &windows);
        recorder.take_notes().into_iter().for_each(|note| self.bell.note(note));
        let stopped = recorder.stop();
        if let Ok(progress) = &stopped {
            progress.notes.iter().for_each(|note| self.bell.note(note.clone()));
            self.tell(progress);
        }
        let parts = stopped.as_ref().map_or(Vec::new(), |progress| progress.parts.clone());
        let mut has_all = true;
        if let Some(mut window) = self.window.take() {
            has_all = window.take_last(&parts, &self.bell);
            problem(&self.status, "window", window.problem().map(str::to_owned));
            self.end_window(window, &windows);
        }
        drop(windows);
        let written = writer.join().map_err(|_| RecordError::Panicked("black box file"));
        if stopped.is_ok() && has_all {
            // Who was stopped, and did not die, leaves no ring.
            for part in parts {
                let _ = std::fs::remove_file(part.path);
            }
        }
        written.and(stopped.map(drop))
    }

    fn step(&mut self, recorder: &Recorder, windows: &Sender<Over>) {
        let (fired, more) = self.bell.wait(STEP);
        recorder.take_notes().into_iter().for_each(|note| self.bell.note(note));
        for Rung { fired, by } in fired {
            // Whoever stops a driver knows that its command falls back.
            if !by.is_some_and(|node| self.counters.is_expected(&node)) {
                self.fire(fired);
            }
        }
        if let Some(window) = self.window.as_mut().filter(|_| more > 0) {
            window.extend_by(more);
        }
        change(&self.status, |status| status.fired += more);
        self.counters.look(&self.bell);
        self.look_at_folder();
        let progress = recorder.progress();
        if let Some(window) = &mut self.window {
            window.take(&progress.parts, self.options.max_disk / 2, &self.bell);
        }
        if let Some(window) = self.window.take_if(|window| window.is_over(&progress.parts)) {
            self.end_window(window, windows);
            // What kept it is told as over with it, and not as something that works again.
            self.told.remove("window");
            recorder.set_problem("window", None);
        }
        let why = self.window.as_ref().and_then(Window::problem);
        problem(&self.status, "window", why.map(str::to_owned));
        self.tell(&progress);
        self.tell_problems(recorder);
    }

    /// Hands a window over to the thread that writes its file, and tells what it lacks.
    fn end_window(&self, window: Window, windows: &Sender<Over>) {
        let file = window.pending().file.clone();
        let over = window.end();
        if let Some(why) = &over.incomplete {
            let text =
                format!("{file} is incomplete: not all of it could be written in time: {why}");
            self.node.log().error(text.clone());
            self.bell.note(text);
            change(&self.status, |status| status.incomplete_files += 1);
        }
        // It only ends when nobody can give it anything.
        let _ = windows.send(over);
    }

    /// Whether a file could be made now: who learns of it when something fires learns of it too late.
    fn look_at_folder(&mut self) {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK_INTERVAL) {
            return;
        }
        self.looked = Some(Instant::now());
        problem(&self.status, "folder", self.folder.why_not(self.options.memory_len_bytes));
    }

    /// Says what keeps the box from writing since this moment, and what does no more: in the log of the domain, which is on
    /// stderr too, and to those who look at recorders.
    fn tell_problems(&mut self, recorder: &Recorder) {
        let now = change(&self.status, |status| status.problems.clone());
        if now == self.told {
            return;
        }
        for (of, why) in now.iter().filter(|(of, why)| self.told.get(*of) != Some(*why)) {
            let text = format!("the black box cannot write its {of}: {why}");
            self.node.log().error(text);
        }
        for of in self.told.keys().filter(|of| !now.contains_key(*of)) {
            let text = format!("the black box can write its {of} again");
            self.node.log().info(text);
        }
        for of in ["folder", "window", "file"] {
            recorder.set_problem(of, now.get(of).cloned());
        }
        self.told = now;
    }

    fn fire(&mut self, fired: Fired) {
        self.bell.note(format!("{}: {}", fired.name, fired.why));
        change(&self.status, |status| {
            status.fired += 1;
            status.last = Some(fired.clone());
        });
        let (is_open, is_call) = (self.window.is_some(), fired.name == CALL);
        let verdict = self.limit.judge(&fired, is_open, is_call, Instant::now());
        if verdict != Verdict::Counts {
            change(&self.status, |status| status.merged += 1);
            return match &mut self.window {
                Some(window) => window.extend_by(1),
                None if verdict == Verdict::TooMany => {
                    let text = "no file is written: the limit of files per minute is reached";
                    self.bell.note(text.to_owned());
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

    /// The nodes that there are, as JSON.
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

    fn tell(&self, progress: &Progress) {
        let mut why = progress.problems.get("recording").cloned();
        if progress.disk_is_full {
            why = Some("the disk is full".to_owned());
        }
        problem(&self.status, "ring", why);
        let first_ns = progress.parts.first().map_or(rnet::now_ns(), |part| part.from_ns);
        change(&self.status, |status| {
            status.ring_bytes = progress.file_bytes;
            status.messages = progress.messages;
            status.missing = progress.losses.total();
            status.unheard = progress.unheard.total();
            status.kept_s = rnet::now_ns().saturating_sub(first_ns) as f64 / 1e9;
            status.shorter = self.shorter(progress, status.kept_s);
            status.pending = self.window.as_ref().map(|window| window.pending().file.clone());
        });
    }

    /// Why the ring keeps less than the time that a file is to have before its trigger, if its memory is the reason.
    fn shorter(&self, progress: &Progress, kept_s: f64) -> Option<String> {
        let (before_s, most) = (self.options.before.as_secs_f64(), ring_bytes(&self.options));
        // A ring that is full holds nearly as much: its oldest part has just been removed.
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

    /// The thread that writes files, so that a slow disk keeps nobody from the ring.
    fn start_writer(&self, given: Receiver<Over>, mut todo: Vec<Over>) -> Result<JoinHandle<()>> {
        let (bell, status) = (self.bell.clone(), self.status.clone());
        let (folder, prefix, max) =
            (self.folder.clone(), self.prefix.clone(), self.options.max_disk);
        let write = move || {
            let mut is_last = false;
            while !is_last || !todo.is_empty() {
                let mut failed = None;
                todo.retain(|over| match window::finish(over, &bell) {
                    Ok(None) => false,
                    Err(why) if folder.has_disk() && window::is_gone(&over.dir) => {
                        let dir = over.dir.display();
                        bell.note(format!("{dir} was removed, so its file is lost: {why}"));
                        change(&status, |status| status.lost_files += 1);
                        false
                    }
                    Ok(Some(file)) => {
                        bell.note(format!("{} is written", file.display()));
                        change(&status, |status| {
                            status.files += 1;
                            status.last_file = Some(file);
                        });
                        trim(folder.path(), &prefix, max, &bell);
                        false
                    }
                    Err(why) => {
                        bell.note(format!("{why}; its data stays in {}", over.dir.display()));
                        failed = Some(why);
                        true
                    }
                });
                problem(&status, "file", failed);
                if is_last {
                    // What cannot be written now, the next box writes.
                    return;
                }
                match given.recv_timeout(RETRY) {
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
