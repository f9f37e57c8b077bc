//! The sync thread: calls fsync once a second, and when a file has ended.
//!
//! A separate thread, because the disk may take long and writing need not wait for it.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::progress::Shared;

const INTERVAL: Duration = Duration::from_secs(1);

/// What is synced: a file, or a substitute in a test.
pub trait SyncTarget: Send + 'static {
    fn sync_data(&self) -> io::Result<()>;

    /// Free space of its file system in bytes, if known.
    fn free_bytes(&self) -> Option<u64>;
}

impl SyncTarget for File {
    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn free_bytes(&self) -> Option<u64> {
        let stat = rustix::fs::fstatvfs(self).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// Handle of the thread. Dropping it syncs all files it was given.
pub struct Syncer<D: SyncTarget = File> {
    files: Option<Sender<Option<D>>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    pub fn start(shared: Arc<Shared>) -> io::Result<Syncer> {
        Syncer::with_interval(INTERVAL, shared)
    }
}

impl<D: SyncTarget> Syncer<D> {
    fn with_interval(interval: Duration, shared: Arc<Shared>) -> io::Result<Syncer<D>> {
        let (files, given) = channel();
        let builder = std::thread::Builder::new().name("rnet-rec-sync".to_owned());
        let thread = builder.spawn(move || sync(&given, interval, &shared))?;
        Ok(Syncer { files: Some(files), thread: Some(thread) })
    }

    /// Switches to a new file; the previous one is no longer written.
    pub fn switch_to(&self, file: D) {
        self.send(Some(file));
    }

    /// Ends the current file. It is synced and closed: an open file occupies disk space even after it was
    /// removed.
    pub fn finish_file(&self) {
        self.send(None);
    }

    fn send(&self, file: Option<D>) {
        if let Some(files) = &self.files {
            // The thread only exits when the sender is dropped.
            let _ = files.send(file);
        }
    }
}

impl<D: SyncTarget> Drop for Syncer<D> {
    fn drop(&mut self) {
        self.files = None;
        if let Some(thread) = self.thread.take() {
            // The thread has noted its errors.
            let _ = thread.join();
        }
    }
}

fn sync<D: SyncTarget>(files: &Receiver<Option<D>>, interval: Duration, shared: &Shared) {
    let mut current: Option<D> = None;
    loop {
        let given = files.recv_timeout(interval);
        if let Some(file) = &current
            && let Err(error) = file.sync_data()
        {
            shared
                .note(format!("the last second of the recording may not be on the disk: {error}"));
        }
        // Measured here and not in the topic reader: a disk that does not respond blocks the caller.
        let free_bytes = current.as_ref().and_then(D::free_bytes);
        shared.progress().free_bytes = free_bytes;
        match given {
            Ok(file) => current = file,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::time::Instant;

    use super::*;

    /// Bytes written to a file, and bytes of it that were synced.
    #[derive(Clone, Default)]
    struct CountingDisk {
        written: Arc<AtomicU64>,
        kept: Arc<AtomicU64>,
        syncs: Arc<AtomicU64>,
        is_broken: bool,
    }

    impl SyncTarget for CountingDisk {
        fn sync_data(&self) -> io::Result<()> {
            self.syncs.fetch_add(1, SeqCst);
            if self.is_broken {
                return Err(io::Error::other("the disk is gone"));
            }
            self.kept.store(self.written.load(SeqCst), SeqCst);
            Ok(())
        }

        fn free_bytes(&self) -> Option<u64> {
            Some(self.written.load(SeqCst))
        }
    }

    fn until(so: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !so() {
            assert!(Instant::now() < end, "never");
            std::thread::sleep(Duration::from_millis(1)); // sleep: between two checks of a condition
        }
    }

    #[test]
    fn syncs_data_after_each_interval_and_at_end_of_file() {
        const MESSAGES: u64 = 50;
        let shared = Arc::new(Shared::default());
        let syncer = Syncer::with_interval(Duration::from_millis(1), shared.clone()).unwrap();
        let file = CountingDisk::default();
        syncer.switch_to(file.clone());
        for n in 1..=MESSAGES {
            file.written.store(n, SeqCst);
            // The thread polls; it is not notified of writes.
            until(|| file.kept.load(SeqCst) == n);
        }
        assert!(file.syncs.load(SeqCst) >= MESSAGES);
        until(|| shared.progress().free_bytes == Some(MESSAGES));
        drop(syncer);

        // Files that end within the interval, which is longer than the test.
        let syncer = Syncer::with_interval(Duration::from_secs(3600), shared.clone()).unwrap();
        let (first, second) = (CountingDisk::default(), CountingDisk::default());
        for file in [&first, &second] {
            file.written.store(7, SeqCst);
            syncer.switch_to(file.clone());
        }
        until(|| first.kept.load(SeqCst) == 7);
        // An ended file is synced and closed, even without a following file.
        syncer.finish_file();
        until(|| Arc::strong_count(&second.kept) == 1);
        assert_eq!(second.kept.load(SeqCst), 7);
        drop(syncer);
        assert!(shared.take_notes().is_empty());
    }

    #[test]
    fn reports_failing_disk_and_retries() {
        let shared = Arc::new(Shared::default());
        let syncer = Syncer::with_interval(Duration::from_millis(1), shared.clone()).unwrap();
        let file = CountingDisk { is_broken: true, ..CountingDisk::default() };
        syncer.switch_to(file.clone());
        until(|| file.syncs.load(SeqCst) >= 3);
        drop(syncer);
        let notes = shared.take_notes();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].ends_with("the disk is gone"), "{notes:?}");
    }
}
