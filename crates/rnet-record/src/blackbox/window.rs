//! A pending file: the time that it is to cover, and the parts copied so far.
//!
//! A window is a directory next to the files, `.NAME.pending`. Parts of the ring are copied there when they
//! end. So the ring keeps its limits however long the window gets. After a box was killed, the window
//! contains all that is needed to write the file ([`write_file`]): `pending.json`, which is written first,
//! and the parts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::folder::{Folder, is_of_domain, list_named};
use super::ring::read_part;
use super::trigger_queue::{FiredTrigger, TriggerQueue};
use super::write::write;
use crate::error::{RecordError, Result};
use crate::recorder::RingPart;

/// Maximum time from the first trigger to the end of a window.
const MAX_WINDOW: Duration = Duration::from_secs(600);
/// Maximum number of triggers that a file names; further ones are counted.
const MAX_FIRED: usize = 1000;
/// Interval between two attempts to copy when the disk is full.
const COPY_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long after its end a window waits for the part that contains the end.
const PART_WAIT: Duration = Duration::from_secs(5);

/// A shorter gap without messages at the end is not reported as missing.
const MIN_REPORTED_GAP: Duration = Duration::from_secs(1);

const PENDING_FILE: &str = "pending.json";
const GRAPH_FILE: &str = "graph.json";
const SUFFIX: &str = ".pending";

/// Description of a window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendingFile {
    /// Name of the file.
    pub file: String,
    /// The time that the file is to cover, CLOCK_MONOTONIC.
    pub from_ns: u64,
    pub to_ns: u64,
    pub fired: Vec<FiredTrigger>,
    /// Number of further triggers.
    pub more: u64,
    /// Why the file lacks data of its time, if it does.
    #[serde(default)]
    pub incomplete: Option<String>,
}

/// A window that has ended.
pub struct FinishedWindow {
    pub dir: PathBuf,
    /// See [`PendingFile::incomplete`]; kept here too, because a full disk may prevent saving it.
    pub incomplete: Option<String>,
}

impl From<PathBuf> for FinishedWindow {
    fn from(dir: PathBuf) -> FinishedWindow {
        FinishedWindow { dir, incomplete: None }
    }
}

pub struct Window {
    folder: Folder,
    dir: PathBuf,
    pending: PendingFile,
    graph: Option<Vec<u8>>,
    /// `pending.json` is up to date, apart from `incomplete`.
    is_saved: bool,
    /// `pending.json` contains `incomplete`.
    is_reason_saved: bool,
    /// Names and total bytes of the copied parts.
    copied: BTreeSet<OsString>,
    len_bytes: u64,
    /// The parts of its time that the ring had at some poll, by name, and the time that each covers, in ns.
    seen: BTreeMap<OsString, u64>,
    /// Names of the parts that the ring had removed before they were copied.
    gone: BTreeSet<OsString>,
    /// When and why the last write failed.
    failed: Option<(Instant, String)>,
    /// Why any earlier write failed.
    copy_error: Option<String>,
}

impl Window {
    /// A new window, for the first trigger.
    pub fn new(
        folder: Folder,
        prefix: &str,
        fired: FiredTrigger,
        (before, after): (Duration, Duration),
        graph: Option<Vec<u8>>,
    ) -> Window {
        let unix_ns = fired.at_ns.saturating_add_signed(rnet::wall_offset().offset_ns);
        let file = format!("{prefix}{}-{}.mcap", unix_ns / 1_000_000, slug(&fired.name));
        let dir = folder.path().join(format!(".{file}{SUFFIX}"));
        let from_ns = fired.at_ns.saturating_sub(before.as_nanos() as u64);
        let to_ns = fired.at_ns.saturating_add(after.as_nanos() as u64);
        let pending =
            PendingFile { file, from_ns, to_ns, fired: vec![fired], more: 0, incomplete: None };
        Window::of(folder, dir, pending, graph)
    }

    fn of(folder: Folder, dir: PathBuf, pending: PendingFile, graph: Option<Vec<u8>>) -> Window {
        Window {
            folder,
            dir,
            pending,
            graph,
            is_saved: false,
            is_reason_saved: true,
            copied: BTreeSet::new(),
            len_bytes: 0,
            seen: BTreeMap::new(),
            gone: BTreeSet::new(),
            failed: None,
            copy_error: None,
        }
    }

    pub fn pending(&self) -> &PendingFile {
        &self.pending
    }

    /// Reopens the window of an earlier box.
    pub fn reopen(dir: PathBuf) -> Option<Window> {
        // `write_file` reports what is wrong with a window that cannot be read.
        let pending = read(&dir).ok()?;
        let copied = parts(&dir).ok()?;
        let copied: BTreeSet<OsString> =
            copied.iter().filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect();
        let folder = Folder::at(dir.parent().unwrap_or(&dir));
        Some(Window { is_saved: true, copied, ..Window::of(folder, dir, pending, None) })
    }

    /// Notes that the box exited within the window's time, if the rest of it is not recorded.
    pub fn note_early_exit(&mut self, ring: &[RingPart]) {
        let copied = parts(&self.dir).unwrap_or_default();
        let copied = copied.iter().filter_map(|path| Some(read_part(path)?.to_ns));
        let last_ns = ring.iter().map(|part| part.to_ns).chain(copied).max().unwrap_or(0);
        let lacks_ns = self.pending.to_ns.saturating_sub(last_ns.max(self.pending.from_ns));
        // Parts that are read back end with their last message; on a quiet robot the box may have exited much
        // later.
        if lacks_ns > MIN_REPORTED_GAP.as_nanos() as u64 {
            let lacks_s = lacks_ns as f64 / 1e9;
            let before = self.pending.incomplete.iter().map(|before| format!("{before}; "));
            let why = format!("its black box exited early, so the last {lacks_s:.1} s are missing");
            self.set_incomplete(before.chain([why]).collect());
        }
    }

    fn set_incomplete(&mut self, why: String) {
        if self.pending.incomplete.as_ref() != Some(&why) {
            self.pending.incomplete = Some(why);
            self.is_reason_saved = false;
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Adds a further trigger before the end; moves the end to `after` behind it.
    pub fn extend(&mut self, fired: FiredTrigger, after: Duration) {
        let first_ns = self.pending.fired[0].at_ns;
        let most_ns = first_ns.saturating_add(MAX_WINDOW.as_nanos() as u64);
        let to_ns = fired.at_ns.saturating_add(after.as_nanos() as u64).min(most_ns);
        self.pending.to_ns = self.pending.to_ns.max(to_ns);
        match self.pending.fired.len() < MAX_FIRED {
            true => self.pending.fired.push(fired),
            false => self.pending.more += 1,
        }
        self.is_saved = false;
    }

    /// Counts triggers without naming them.
    pub fn extend_by(&mut self, more: u64) {
        self.pending.more += more;
        self.is_saved = false;
    }

    /// Copies the parts of the ring that have ended and belong to the window. When it has `max` bytes, it
    /// ends now.
    pub fn copy_from(&mut self, ring: &[RingPart], max: u64, trigger_queue: &TriggerQueue) {
        self.try_copy(ring, max, trigger_queue);
        self.note_overwritten(ring);
    }

    fn try_copy(&mut self, ring: &[RingPart], max: u64, trigger_queue: &TriggerQueue) {
        if self.failed.as_ref().is_some_and(|(at, _)| at.elapsed() < COPY_RETRY_INTERVAL) {
            return;
        }
        self.failed = None;
        if let Err(error) = self.save().and_then(|()| self.copy(ring)) {
            trigger_queue.note(format!(
                "{} is waiting for disk space, and the ring overwrites its data meanwhile: {error}",
                self.dir.display()
            ));
            self.failed = Some((Instant::now(), error.to_string()));
            self.copy_error = Some(error.to_string());
        }
        if self.len_bytes >= max && rnet::now_ns() < self.pending.to_ns {
            trigger_queue
                .note(format!("{} ends early: it has {} bytes", self.pending.file, self.len_bytes));
            self.pending.to_ns = rnet::now_ns();
            self.is_saved = false;
        }
    }

    /// Records which parts of its time the ring has, and which were removed before they were copied, for the
    /// file.
    fn note_overwritten(&mut self, ring: &[RingPart]) {
        let PendingFile { from_ns, to_ns, .. } = self.pending;
        let names = |part: &RingPart| part.path.file_name().map(ToOwned::to_owned);
        let has: BTreeSet<OsString> = ring.iter().filter_map(names).collect();
        for part in ring.iter().filter(|part| part.to_ns >= from_ns && part.from_ns <= to_ns) {
            let covers_ns = part.to_ns.min(to_ns).saturating_sub(part.from_ns.max(from_ns));
            self.seen.extend(names(part).map(|name| (name, covers_ns)));
        }
        let is_gone = |name: &OsString| {
            !self.copied.contains(name) && (!has.contains(name) || self.gone.contains(name))
        };
        let gone = self.seen.iter().filter(|(name, _)| is_gone(name));
        let gone: Vec<u64> = gone.map(|(_, covers_ns)| *covers_ns).collect();
        if gone.is_empty() {
            return;
        }
        let lacks_s = gone.iter().sum::<u64>() as f64 / 1e9;
        let why = self.copy_error.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        self.set_incomplete(format!(
            "the ring overwrote {lacks_s:.1} s of it before they were copied{why}"
        ));
    }

    /// Why the last write failed.
    pub fn problem(&self) -> Option<&str> {
        self.failed.as_ref().map(|(_, why)| &**why)
    }

    /// Copies the remaining parts at the end; returns whether all were copied.
    pub fn copy_last(&mut self, ring: &[RingPart], trigger_queue: &TriggerQueue) -> bool {
        self.failed = None;
        self.copy_from(ring, u64::MAX, trigger_queue);
        self.failed.is_none()
    }

    /// Ends the window. It lacks the parts that the ring has removed, and those whose last write failed.
    pub fn end(mut self) -> FinishedWindow {
        if let Some((_, why)) = self.failed.take() {
            let forgotten = self.pending.incomplete.iter().map(|before| format!("{before}; "));
            self.set_incomplete(forgotten.chain([why]).collect());
        }
        // For the next box, if this one dies before the file is written.
        let _ = self.save();
        FinishedWindow { dir: self.dir, incomplete: self.pending.incomplete }
    }

    fn save(&mut self) -> io::Result<()> {
        let is_there = self.dir.is_dir();
        if self.is_saved && self.is_reason_saved && is_there {
            return Ok(());
        }
        if !is_there {
            // If the window was removed, the parts that the ring still has are copied again.
            (self.copied, self.len_bytes) = (BTreeSet::new(), 0);
        }
        self.folder.create(&self.dir)?;
        if let (false, Some(graph)) = (is_there, &self.graph) {
            // The file is valid without the graph.
            let _ = fs::write(self.dir.join(GRAPH_FILE), graph);
        }
        let path = self.dir.join(format!("{PENDING_FILE}.new"));
        let mut new = fs::File::create(&path)?;
        new.write_all(&serde_json::to_vec(&self.pending)?)?;
        // Otherwise a power cut may leave an empty file under the name, and parts without a description.
        new.sync_all()?;
        fs::rename(path, self.dir.join(PENDING_FILE))?;
        (self.is_saved, self.is_reason_saved) = (true, true);
        Ok(())
    }

    fn copy(&mut self, ring: &[RingPart]) -> io::Result<()> {
        let PendingFile { from_ns, to_ns, .. } = self.pending;
        for part in ring.iter().filter(|part| part.to_ns >= from_ns && part.from_ns <= to_ns) {
            let is_left =
                |name: &&OsStr| !self.copied.contains(*name) && !self.gone.contains(*name);
            let Some(name) = part.path.file_name().filter(is_left) else { continue };
            // The rename publishes the part only when it is complete.
            let new = self.dir.join("copy");
            let copied = fs::copy(&part.path, &new).and_then(|len| {
                fs::rename(&new, self.dir.join(name))?;
                Ok(len)
            });
            match copied {
                Ok(len) => self.len_bytes += len,
                // The ring has removed the part.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !part.path.exists() => {
                    self.gone.insert(name.to_owned());
                    continue;
                }
                Err(error) => {
                    let _ = fs::remove_file(&new);
                    return Err(error);
                }
            }
            self.copied.insert(name.to_owned());
        }
        Ok(())
    }

    /// Whether the window has all the parts it will get.
    pub fn is_complete(&self, ring: &[RingPart]) -> bool {
        let (to_ns, now_ns) = (self.pending.to_ns, rnet::now_ns());
        let has_all = ring.last().is_some_and(|part| part.to_ns >= to_ns) && self.failed.is_none();
        // No file can be made of a window that is not saved.
        self.is_saved
            && now_ns >= to_ns
            && (has_all || now_ns - to_ns >= PART_WAIT.as_nanos() as u64)
    }
}

/// The pending windows in a folder, of boxes with this prefix. Empty if the folder does not exist.
///
/// # Errors
/// The folder cannot be read.
pub fn pending_windows(folder: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
    let is_one = |name: &str| {
        let of = name.strip_prefix('.').is_some_and(|name| is_of_domain(name, prefix));
        of && name.ends_with(SUFFIX)
    };
    let mut dirs = match list_named(folder, is_one) {
        Ok(dirs) => dirs,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(RecordError::file("read", folder, error)),
    };
    dirs.sort();
    Ok(dirs)
}

/// Writes the file of a window, and removes the window. If the file exists, it was written before.
///
/// # Errors
/// The reason as text. The window is kept for another attempt.
pub fn write_file(
    over: &FinishedWindow,
    trigger_queue: &TriggerQueue,
) -> std::result::Result<Option<PathBuf>, String> {
    let dir = &over.dir;
    let parts =
        parts(dir).map_err(|error| format!("cannot read the folder {}: {error}", dir.display()))?;
    let pending = match read(dir) {
        Ok(pending) => pending,
        // The box was killed before it had saved the window.
        Err(error) if error.kind() == io::ErrorKind::NotFound && parts.is_empty() => {
            return remove(dir).map(|()| None);
        }
        Err(error) => {
            return Err(format!(
                "cannot read {}: {error}; if it is damaged, merge the {} parts next to it with rnet bag \
                 merge, and remove the folder",
                dir.join(PENDING_FILE).display(),
                parts.len()
            ));
        }
    };
    let file = dir.with_file_name(&pending.file);
    if !file.exists() {
        let new = dir.join("file");
        // Left by an interrupted attempt.
        let _ = fs::remove_file(&new);
        let graph = fs::read(dir.join(GRAPH_FILE)).ok();
        let incomplete = over.incomplete.as_deref().or(pending.incomplete.as_deref());
        let unread = write(&parts, &new, (&pending.fired, incomplete), graph);
        let unread = unread.map_err(|error| error.to_string())?;
        for what in unread {
            trigger_queue
                .note(format!("{} lacks data that cannot be read: {what}", file.display()));
        }
        let put = fs::rename(&new, &file)
            .and_then(|()| fs::File::open(file.parent().unwrap_or(dir))?.sync_all());
        put.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    remove(dir)?;
    Ok(Some(file))
}

fn remove(dir: &Path) -> std::result::Result<(), String> {
    fs::remove_dir_all(dir).map_err(|error| format!("cannot remove {}: {error}", dir.display()))
}

/// Whether a window was removed. If its folder cannot be read or searched, the window may still exist.
pub fn is_removed(dir: &Path) -> bool {
    let is_absent = dir.symlink_metadata().is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
    is_absent && dir.parent().is_some_and(|folder| fs::read_dir(folder).is_ok())
}

fn read(dir: &Path) -> io::Result<PendingFile> {
    let pending: PendingFile = serde_json::from_slice(&fs::read(dir.join(PENDING_FILE))?)?;
    // The file is written next to the window, whatever path the text contains.
    let is_name = Path::new(&pending.file).file_name() == Some(pending.file.as_ref());
    match is_name && !pending.fired.is_empty() {
        true => Ok(pending),
        false => Err(io::Error::other("it does not name a file next to the folder, or a trigger")),
    }
}

/// The parts of a window, the oldest first.
fn parts(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut parts = list_named(dir, |name| name.ends_with(".mcap"))?;
    // `ring-START-BOOT.mcap`, `ring-START-BOOT_1.mcap`: ordered by their numbers.
    parts.sort_by_key(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (start, number) = name.split_once('_').unwrap_or((&name, "0"));
        let start = start.split('-').nth(1).and_then(|start| start.parse::<u64>().ok());
        (start.unwrap_or(0), number.parse::<u64>().unwrap_or(0))
    });
    Ok(parts)
}

/// The name of a trigger in a form suitable for file names.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().take(40) {
        match c.is_ascii_alphanumeric() {
            true => slug.push(c.to_ascii_lowercase()),
            false if slug.is_empty() || slug.ends_with('_') => {}
            false => slug.push('_'),
        }
    }
    slug.trim_end_matches('_').to_owned()
}
