//! Work that may block on another host or a disk runs on its own thread, because the tick thread must not
//! block.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use crate::wire::Refusal;

/// Work in progress.
#[derive(Debug)]
pub struct BackgroundTask<T>(Receiver<Result<T, Refusal>>);

impl<T: Send + 'static> BackgroundTask<T> {
    /// Starts the work.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(
        thread: &str,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<BackgroundTask<T>, Refusal> {
        let (sender, answer) = sync_channel(1);
        let begun = std::thread::Builder::new().name(thread.to_owned()).spawn(move || {
            // The receiver may be gone.
            let _ = sender.send(work());
        });
        begun.map_err(|why| Refusal::failed(format!("cannot start a thread: {why}")))?;
        Ok(BackgroundTask(answer))
    }

    /// The result; `None` while the work is in progress.
    pub fn take(&self) -> Option<Result<T, Refusal>> {
        match self.0.try_recv() {
            Ok(done) => Some(done),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Err(Refusal::failed("the thread of this request has panicked")))
            }
        }
    }
}
