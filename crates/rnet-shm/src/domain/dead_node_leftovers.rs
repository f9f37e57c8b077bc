//! Leftovers of nodes that died before their peers knew them, or after their peers had forgotten them: a name
//! without a folder, or a folder that no peer watches.
//!
//! A node holds its name's file open for writing while it lives. The kernel notifies watchers of `names/`
//! when such a file is closed, with the file's name. So orphans are swept at once, without polling.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::domain::death_notes;
use crate::domain::directory::DomainDir;
use crate::domain::exit_watch::Watch;
use crate::domain::observers::Observers;
use crate::domain::presence;
use crate::os::fork::UnsharedFd;
use crate::os::temp_file;

/// Delays of the checks after a close event: the kernel reports the close just before it releases the lock,
/// and a dying process may be delayed between the two.
const CHECK_DELAYS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(200)];
/// Minimum interval between checks: each lists the domain, and in a busy domain a check is always due.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Reports closes of name files. A forked child releases its share: the kernel limits inotify instances.
#[derive(Debug)]
struct NameWatch(UnsharedFd);

impl NameWatch {
    /// Watches the names of a domain; `None` if the kernel grants this user no more watches. Then orphans
    /// stay until a node joins.
    fn new(dir: &DomainDir) -> Option<NameWatch> {
        let open = || inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let fd = UnsharedFd::open(open).ok()?;
        let what = WatchFlags::CLOSE_WRITE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        inotify::add_watch(&fd, dir.names(), what).ok()?;
        Some(NameWatch(fd))
    }

    /// Reads the names that were closed, `None` if the queue overflowed, and whether the folder was removed.
    fn read_events(&self) -> (Option<BTreeSet<String>>, bool) {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut room);
        let mut names = BTreeSet::new();
        let (mut whole, mut removed) = (true, false);
        let end = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED;
        while let Ok(event) = events.next() {
            removed |= event.events().intersects(end);
            whole &= !event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            names.extend(event.file_name().and_then(|name| name.to_str().ok()).map(str::to_owned));
        }
        (whole.then_some(names), removed)
    }
}

/// A scheduled check.
#[derive(Clone, Copy, Debug)]
struct ScheduledCheck {
    at: Instant,
    attempt: usize,
}

impl ScheduledCheck {
    fn first() -> ScheduledCheck {
        ScheduledCheck { at: Instant::now(), attempt: 0 }
    }

    fn after(self, now: Instant) -> Option<ScheduledCheck> {
        let attempt = self.attempt + 1;
        CHECK_DELAYS.get(attempt).map(|pause| ScheduledCheck { at: now + *pause, attempt })
    }
}

/// Names that were released and whose leftovers must be checked.
#[derive(Debug, Default)]
pub struct ReleasedNames {
    all: bool,
    names: BTreeSet<String>,
}

impl ReleasedNames {
    /// Whether this name is included.
    pub fn has(&self, stem: &str) -> bool {
        self.all || self.names.contains(stem)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        !self.all && self.names.is_empty()
    }
}

/// Sweeps orphans as they appear. One node of each process does it, because a user may have only about a
/// hundred watches.
#[derive(Debug)]
pub struct OrphanSweeper {
    dir: DomainDir,
    is_watching: bool,
    watch: Option<NameWatch>,
    /// Names that were released, and when to check each.
    names: BTreeMap<String, ScheduledCheck>,
    /// When to check all names.
    all: Option<ScheduledCheck>,
    /// The last check.
    last_check: Option<Instant>,
}

impl OrphanSweeper {
    /// Creates a sweeper that does not watch yet.
    pub fn new(dir: &DomainDir) -> OrphanSweeper {
        let names = BTreeMap::new();
        OrphanSweeper {
            dir: dir.clone(),
            is_watching: false,
            watch: None,
            names,
            all: None,
            last_check: None,
        }
    }

    /// Starts watching, by events with this mark, or stops because another node watches.
    pub fn set_watching(&mut self, yes: bool, events: &Watch, mark: u32) {
        if yes != self.is_watching {
            self.is_watching = yes;
            // No node may have checked for a while.
            self.all = yes.then(ScheduledCheck::first);
        }
        if yes == self.watch.is_some() {
            return;
        }
        if let Some(watch) = self.watch.take() {
            // Closing it is not enough: a copy of it, for example in a child between vfork and exec, would
            // stay in the epoll set, and could not be removed.
            let _ = events.ignore(&watch.0);
            return;
        }
        // If the folder cannot be watched, orphans stay until a node joins.
        let watch = NameWatch::new(&self.dir);
        self.watch = watch.filter(|watch| events.listen(&watch.0, mark, false).is_ok());
        if self.watch.is_some() {
            // No node may have received events for a while.
            self.all = Some(ScheduledCheck::first());
        }
    }

    /// Call it when events are pending. Returns `true` if the folder of the names was removed.
    pub fn process_events(&mut self) -> bool {
        let Some(watch) = &self.watch else { return false };
        let (names, removed) = watch.read_events();
        match names {
            Some(names) => {
                self.names.extend(names.into_iter().map(|name| (name, ScheduledCheck::first())))
            }
            None => self.all = Some(ScheduledCheck::first()),
        }
        removed
    }

    /// The folder of the names was replaced: the next [`OrphanSweeper::set_watching`] watches the new one.
    pub fn unwatch(&mut self, events: &Watch) {
        if let Some(watch) = self.watch.take() {
            let _ = events.ignore(&watch.0);
        }
    }

    /// When to call [`OrphanSweeper::take_due`] next.
    pub fn due(&self) -> Option<Instant> {
        let next = self.names.values().chain(&self.all).map(|check| check.at).min()?;
        Some(self.last_check.map_or(next, |looked| next.max(looked + MIN_CHECK_INTERVAL)))
    }

    /// Takes the names that are due for a check: first check the peers that hold them, so that their exit is
    /// reported, then call [`OrphanSweeper::sweep`].
    pub fn take_due(&mut self) -> ReleasedNames {
        let now = Instant::now();
        let mut due = ReleasedNames::default();
        if self.due().is_none_or(|at| at > now) {
            return due;
        }
        self.last_check = Some(now);
        if let Some(check) = self.all.filter(|check| check.at <= now) {
            due.all = true;
            self.all = check.after(now);
        }
        self.names.retain(|name, check| {
            if check.at > now {
                return true;
            }
            due.names.insert(name.clone());
            check.after(now).inspect(|next| *check = *next).is_some()
        });
        due
    }

    /// Removes those of these names that no living node holds.
    pub fn sweep(&self, due: &ReleasedNames) {
        if !due.is_empty() {
            sweep(&self.dir, due);
        }
    }
}

/// Removes what dead nodes left in a domain that may have no living node: folders, names, observers' files
/// and temporary files. Living nodes, including a node that starts meanwhile, hold locks and keep their
/// files.
pub fn sweep_all(dir: &DomainDir) {
    // If the list is missing, the domain is being created.
    for (stem, incarnation) in presence::list(dir).unwrap_or_default() {
        death_notes::sweep(dir, &stem, incarnation);
    }
    sweep(dir, &ReleasedNames { all: true, names: BTreeSet::new() });
    temp_file::sweep(dir.path());
    Observers::new(dir).refresh();
    death_notes::forget_all(dir);
}

/// Removes the names that no living node holds. The registry removes the folders, so that an exit is reported
/// before its traces are removed.
fn sweep(dir: &DomainDir, due: &ReleasedNames) {
    // A temporary file whose close was reported has no writer any more; of the others, only old ones are
    // removed.
    due.names.iter().for_each(|stem| presence::sweep_name(dir, stem));
    if due.all {
        let entries = std::fs::read_dir(dir.names()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|stem| !temp_file::is_temp_file(stem.as_bytes()))
            .for_each(|stem| presence::sweep_name(dir, &stem));
        temp_file::sweep(&dir.names());
    }
}
