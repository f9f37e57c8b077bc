//! Watches for nodes that join and leave, without joining the domain and without polling.
//!
//! A node creates a folder when it joins and removes it when it leaves; `inotify` reports both. [`Watch`]
//! reports deaths, as it does to nodes. Once a second everything is scanned anyway, for systems on which the
//! kernel grants no `inotify`.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rnet_core::{Error, Result};
use rnet_shm::domain::exit_watch::{POLL_INTERVAL, Watch};
use rnet_shm::domain::registry::Registry;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use super::Domain;
use rnet_node::NodeEvent;

const FOLDERS: u32 = 0;
/// A node's folder exists about 0.1 ms before the node is complete. The watcher retries after this time, then
/// after twice this time, …
const MIN_RETRY: Duration = Duration::from_millis(1);

/// A domain whose nodes are watched.
#[derive(Debug)]
pub struct NodeWatcher {
    domain: Domain,
    watch: Watch,
    folders: Option<OwnedFd>,
    /// The folder that inotify watches, and its watch descriptor.
    watched: Option<(PathBuf, i32)>,
    /// When everything was last scanned.
    last_check: Option<Instant>,
    /// When to retry a node that was not complete.
    retry_after: Option<Duration>,
}

impl Domain {
    /// Watches the nodes from now on.
    ///
    /// # Errors
    /// `Io` if no file descriptor is left.
    pub fn watch_nodes(self) -> Result<NodeWatcher> {
        let failed = |e: rustix::io::Errno| Error::io("cannot watch", self.path.clone(), &e.into());
        let watch = Watch::new().map_err(failed)?;
        let folders = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        if let Some(folders) = &folders {
            watch.listen(folders, FOLDERS, false).map_err(failed)?;
        }
        Ok(NodeWatcher {
            domain: self,
            watch,
            folders,
            watched: None,
            last_check: None,
            retry_after: None,
        })
    }
}

impl NodeWatcher {
    /// The domain.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Waits until nodes have joined or left, until `limit` has passed, or until a signal arrives, and
    /// returns the changes, which may be empty. The first call does not wait and reports every present node
    /// as joined.
    ///
    /// # Errors
    /// As [`Domain::node_events`].
    pub fn wait(&mut self, limit: Duration) -> Result<Vec<NodeEvent>> {
        let Some(last_check) = self.last_check else { return self.check() };
        let due = last_check + self.retry_after.unwrap_or(POLL_INTERVAL);
        let time = limit.min(due.saturating_duration_since(Instant::now()));
        let woken = self.watch.wait(Some(time)).unwrap_or_default();
        if woken.listened.contains(&FOLDERS) {
            self.drain();
        }
        let nothing = woken.peers.is_empty() && woken.listened.is_empty();
        if nothing && Instant::now() < due {
            return Ok(Vec::new());
        }
        self.check()
    }

    fn check(&mut self) -> Result<Vec<NodeEvent>> {
        self.last_check = Some(Instant::now());
        // Before the scan, so that later changes are reported.
        self.watch_folders();
        let mut events = self.domain.node_events()?;
        if self.watch_folders() {
            events.extend(self.domain.node_events()?);
        }
        if let Some(registry) = &mut self.domain.registry {
            self.watch.follow(registry);
        }
        let incomplete = self.domain.registry.as_ref().is_some_and(Registry::is_incomplete);
        self.retry_after = incomplete
            .then(|| self.retry_after.map_or(MIN_RETRY, |step| POLL_INTERVAL.min(step * 2)));
        Ok(events)
    }

    /// Watches the nodes' folders with inotify or, while the domain does not exist, its parent. `true` if
    /// that is another folder than before.
    fn watch_folders(&mut self) -> bool {
        let Some(folders) = &self.folders else { return false };
        let place = match &self.domain.registry {
            Some(registry) => registry.domain().nodes(),
            None => self.domain.path.parent().unwrap_or(&self.domain.path).to_owned(),
        };
        if self.watched.as_ref().is_some_and(|(watched, _)| *watched == place) {
            return false;
        }
        if let Some((_, before)) = self.watched.take() {
            let _ = inotify::remove_watch(folders, before);
        }
        let flags = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::ONLYDIR;
        let Ok(number) = inotify::add_watch(folders, &place, flags) else { return false };
        self.watched = Some((place, number));
        true
    }

    /// The events are not examined: everything is scanned.
    fn drain(&mut self) {
        let Some(folders) = &self.folders else { return };
        let mut buf = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(folders, &mut buf);
        while let Ok(event) = reader.next() {
            // The domain was removed with its folder.
            if event.events().contains(inotify::ReadFlags::IGNORED)
                && self.watched.as_ref().is_some_and(|(_, number)| *number == event.wd())
            {
                self.watched = None;
            }
        }
    }
}
