//! What a node leaves that died before its peers knew it, or after they had forgotten it: a name
//! without a folder, a folder that nobody watches.
//!
//! A node holds its name's file open for writing for as long as it lives. The kernel tells who watches
//! `names/` when such a file is closed, so that somebody sweeps at once and nobody has to look again
//! and again.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use crate::domain::DomainDir;
use crate::presence;

/// When to look after the kernel has told of a close: it does so just before it releases the lock, and
/// a dying process may be held up between the two.
pub const LOOKS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(200)];

/// Hears when a name's file is closed.
#[derive(Debug)]
pub struct NameWatch(OwnedFd);

impl NameWatch {
    /// Watches the names of a domain; `None` where the kernel has no watch left for this user. Then
    /// strays stay until a node joins.
    pub fn new(dir: &DomainDir) -> Option<NameWatch> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        inotify::add_watch(&fd, dir.names(), WatchFlags::CLOSE_WRITE).ok()?;
        Some(NameWatch(fd))
    }

    /// Forgets what it has heard.
    pub fn drain(&self) {
        let mut events = [0u8; 4096];
        while matches!(rustix::io::read(&self.0, &mut events), Ok(1..)) {}
    }
}

impl AsFd for NameWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Removes every folder and every name that belongs to nobody alive.
pub fn sweep(dir: &DomainDir) {
    let list = |path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    };
    for folder in list(dir.nodes()) {
        if let Some((stem, incarnation)) = presence::parse_folder_name(&folder) {
            presence::sweep(dir, stem, incarnation);
        }
    }
    for stem in list(dir.names()) {
        presence::sweep_name(dir, &stem);
    }
}
