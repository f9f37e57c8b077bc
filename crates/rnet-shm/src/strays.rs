//! What a node leaves that died before its peers knew it, or after they had forgotten it: a name
//! without a folder, a folder that nobody watches.
//!
//! A node holds its name's file open for writing for as long as it lives. The kernel tells who watches
//! `names/` when such a file is closed, and which, so that somebody sweeps at once and nobody has to
//! look again and again.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::domain::DomainDir;
use crate::presence;

/// When to look after the kernel has told of a close: it does so just before it releases the lock, and
/// a dying process may be held up between the two.
const LOOKS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(200)];

/// Hears when a name's file is closed.
#[derive(Debug)]
pub struct NameWatch(OwnedFd);

impl NameWatch {
    /// Watches the names of a domain; `None` where the kernel has no watch left for this user. Then
    /// strays stay until a node joins.
    fn new(dir: &DomainDir) -> Option<NameWatch> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        inotify::add_watch(&fd, dir.names(), WatchFlags::CLOSE_WRITE).ok()?;
        Some(NameWatch(fd))
    }

    /// Adds the names that were closed to `names`; `false` if there were too many to be told.
    fn hear(&self, names: &mut BTreeSet<String>) -> bool {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut room);
        let mut whole = true;
        while let Ok(event) = events.next() {
            whole &= !event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            names.extend(event.file_name().and_then(|name| name.to_str().ok()).map(str::to_owned));
        }
        whole
    }
}

impl AsFd for NameWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sweeps the strays of a domain as they come to be. One node of each process does it: a user has a
/// hundred watches or so.
#[derive(Debug)]
pub struct Strays {
    dir: DomainDir,
    watch: Option<NameWatch>,
    /// Names that were given up.
    names: BTreeSet<String>,
    /// Whether all have to be looked at.
    all: bool,
    /// When to look next, and which look that is.
    next: Option<(Instant, usize)>,
}

impl Strays {
    /// Sweeps what is there; nothing is heard yet.
    pub fn new(dir: &DomainDir) -> Strays {
        sweep(dir);
        Strays { dir: dir.clone(), watch: None, names: BTreeSet::new(), all: false, next: None }
    }

    /// Begins to hear, or leaves it to another; returns what has to be listened to from now on.
    pub fn hear(&mut self, yes: bool) -> Option<&NameWatch> {
        if yes == self.watch.is_some() {
            return None;
        }
        self.watch = if yes { NameWatch::new(&self.dir) } else { None };
        self.watch.as_ref()
    }

    /// Call it when there is something to hear.
    pub fn heard(&mut self) {
        let Some(watch) = &self.watch else { return };
        self.all |= !watch.hear(&mut self.names);
        self.next = Some((Instant::now(), 0));
    }

    /// When to call [`Strays::look`] next.
    pub fn due(&self) -> Option<Instant> {
        self.next.map(|(at, _)| at)
    }

    /// Looks at the names that were given up, if it is time to.
    pub fn look(&mut self) {
        let now = Instant::now();
        let Some((_, which)) = self.next.filter(|(at, _)| *at <= now) else { return };
        if self.all {
            sweep(&self.dir);
        } else {
            sweep_only(&self.dir, |stem| self.names.contains(stem));
        }
        self.next = LOOKS.get(which + 1).map(|pause| (now + *pause, which + 1));
        if self.next.is_none() {
            self.names.clear();
            self.all = false;
        }
    }
}

/// Removes every folder and every name that belongs to nobody alive.
fn sweep(dir: &DomainDir) {
    sweep_only(dir, |_| true);
}

fn sweep_only(dir: &DomainDir, wanted: impl Fn(&str) -> bool) {
    let list = |path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    };
    for folder in list(dir.nodes()) {
        if let Some((stem, incarnation)) = presence::parse_folder_name(&folder)
            && wanted(stem)
        {
            presence::sweep(dir, stem, incarnation);
        }
    }
    for stem in list(dir.names()).filter(|stem| wanted(stem)) {
        presence::sweep_name(dir, &stem);
    }
}
