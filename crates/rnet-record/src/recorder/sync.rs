//! The thread that sees to it that the disk has what was written: once a second, and when a file has ended.
//!
//! It has a thread of its own because the disk may take long, and what is written meanwhile need not wait for that.

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::progress::Shared;

const INTERVAL: Duration = Duration::from_secs(1);

/// The thread; dropped, it has synced all that it was given.
pub struct Syncer {
    files: Option<Sender<File>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    pub fn start(shared: Arc<Shared>) -> std::io::Result<Syncer> {
        let (files, given) = channel();
        let builder = std::thread::Builder::new().name("rnet-rec-sync".to_owned());
        let thread = builder.spawn(move || sync(&given, &shared))?;
        Ok(Syncer { files: Some(files), thread: Some(thread) })
    }

    /// This file is written from now on; the one before is written no more.
    pub fn now(&self, file: File) {
        if let Some(files) = &self.files {
            // It only ends when nobody can give it anything.
            let _ = files.send(file);
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.files = None;
        if let Some(thread) = self.thread.take() {
            // What it could not do it has noted.
            let _ = thread.join();
        }
    }
}

fn sync(files: &Receiver<File>, shared: &Shared) {
    let mut current: Option<File> = None;
    loop {
        let given = files.recv_timeout(INTERVAL);
        if let Some(file) = &current
            && let Err(error) = file.sync_data()
        {
            shared.note(format!("the disk may not have the last second of the recording: {error}"));
        }
        match given {
            Ok(file) => current = Some(file),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
