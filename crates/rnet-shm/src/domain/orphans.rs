//! What a node leaves that died before its peers knew it, or after they had forgotten it: a name
//! without a folder, a folder that nobody watches.
//!
//! A node holds its name's file open for writing for as long as it lives. The kernel tells who watches
//! `names/` when such a file is closed, and which, so that somebody sweeps at once and nobody has to
//! look again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::domain::deaths;
use crate::domain::directory::DomainDir;
use crate::domain::observers::Observers;
use crate::domain::presence;
use crate::domain::watch::Watch;
use crate::os::fork::UnsharedFd;
use crate::os::temp_file;

/// When to look after the kernel has told of a close: it does so just before it releases the lock, and
/// a dying process may be held up between the two.
const CHECK_DELAYS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(200)];
/// Looks come no closer than this: each lists the domain, and where many come and go there is always
/// one due.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Hears when a name's file is closed. A forked child gives back its share: the kernel has few.
#[derive(Debug)]
struct NameWatch(UnsharedFd);

impl NameWatch {
    /// Watches the names of a domain; `None` where the kernel has no watch left for this user. Then
    /// orphans stay until a node joins.
    fn new(dir: &DomainDir) -> Option<NameWatch> {
        let open = || inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let fd = UnsharedFd::open(open).ok()?;
        let what = WatchFlags::CLOSE_WRITE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        inotify::add_watch(&fd, dir.names(), what).ok()?;
        Some(NameWatch(fd))
    }

    /// The names that were closed; `None` if there were too many to be told. And whether the folder was
    /// removed.
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

/// A look that is due at some time.
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

/// Names of which it is time to see who bears them, and what was left.
#[derive(Debug, Default)]
pub struct ReleasedNames {
    all: bool,
    names: BTreeSet<String>,
}

impl ReleasedNames {
    /// Whether this name is among them.
    pub fn has(&self, stem: &str) -> bool {
        self.all || self.names.contains(stem)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        !self.all && self.names.is_empty()
    }
}

/// Sweeps the orphans of a domain as they come to be. One node of each process does it: a user has a
/// hundred watches or so.
#[derive(Debug)]
pub struct OrphanSweeper {
    dir: DomainDir,
    is_watching: bool,
    watch: Option<NameWatch>,
    /// Names that were given up, and when to look at each.
    names: BTreeMap<String, ScheduledCheck>,
    /// When to look at all.
    all: Option<ScheduledCheck>,
    /// The last look.
    last_check: Option<Instant>,
}

impl OrphanSweeper {
    /// Nothing is looked at and nothing heard yet.
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

    /// Begins to look and to hear, by events with this mark, or leaves it to another.
    pub fn set_watching(&mut self, yes: bool, events: &Watch, mark: u32) {
        if yes != self.is_watching {
            self.is_watching = yes;
            // Nobody may have looked for a while.
            self.all = yes.then(ScheduledCheck::first);
        }
        if yes == self.watch.is_some() {
            return;
        }
        if let Some(watch) = self.watch.take() {
            // Not by closing it alone: a copy of it, in a child between vfork and exec say, would
            // keep it among the events, and nobody could take them out.
            let _ = events.ignore(&watch.0);
            return;
        }
        // Where it cannot be listened to, orphans stay until a node joins.
        let watch = NameWatch::new(&self.dir);
        self.watch = watch.filter(|watch| events.listen(&watch.0, mark, false).is_ok());
        if self.watch.is_some() {
            // Nobody may have heard for a while.
            self.all = Some(ScheduledCheck::first());
        }
    }

    /// Call it when there is something to hear. `true` if somebody has removed the folder of the names.
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

    /// The folder of the names is another one now: the next [`OrphanSweeper::set_watching`] listens there.
    pub fn unwatch(&mut self, events: &Watch) {
        if let Some(watch) = self.watch.take() {
            let _ = events.ignore(&watch.0);
        }
    }

    /// When to call [`OrphanSweeper::take_due`] next.
    pub fn due(&self) -> Option<Instant> {
        let next = self.names.values().chain(&self.all).map(|look| look.at).min()?;
        Some(self.last_check.map_or(next, |looked| next.max(looked + MIN_CHECK_INTERVAL)))
    }

    /// The names to be looked at now: first at the peers who bore them, so that their end is told,
    /// then with [`OrphanSweeper::sweep`].
    pub fn take_due(&mut self) -> ReleasedNames {
        let now = Instant::now();
        let mut due = ReleasedNames::default();
        if self.due().is_none_or(|at| at > now) {
            return due;
        }
        self.last_check = Some(now);
        if let Some(look) = self.all.filter(|look| look.at <= now) {
            due.all = true;
            self.all = look.after(now);
        }
        self.names.retain(|name, look| {
            if look.at > now {
                return true;
            }
            due.names.insert(name.clone());
            look.after(now).inspect(|next| *look = *next).is_some()
        });
        due
    }

    /// Removes those of these names that nobody bears.
    pub fn sweep(&self, due: &ReleasedNames) {
        if !due.is_empty() {
            sweep(&self.dir, due);
        }
    }
}

/// Removes what the dead have left in a domain whose nodes may all be dead: folders, names, observers' files
/// and temporary files. Whoever lives holds a lock, and so does a node that starts meanwhile: they keep what is theirs.
pub fn sweep_all(dir: &DomainDir) {
    // Without a list of them the domain is being made.
    for (stem, incarnation) in presence::list(dir).unwrap_or_default() {
        deaths::sweep(dir, &stem, incarnation);
    }
    sweep(dir, &ReleasedNames { all: true, names: BTreeSet::new() });
    temp_file::sweep(dir.path());
    Observers::new(dir).refresh();
    deaths::forget_all(dir);
}

/// Removes the names that belong to nobody alive. The folders are for the registry to find, so that an end
/// is told of before its traces are gone.
fn sweep(dir: &DomainDir, due: &ReleasedNames) {
    // A temporary file whose close was heard has no maker any more; of the others only the old ones go.
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
