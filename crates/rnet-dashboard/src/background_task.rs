//! Work that may have to wait, for another host or a disk: on a thread of its own, because that of turns waits for neither.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use crate::wire::Refusal;

/// Work that is under way.
#[derive(Debug)]
pub struct BackgroundTask<T>(Receiver<Result<T, Refusal>>);

impl<T: Send + 'static> BackgroundTask<T> {
    /// Begins it.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(
        thread: &str,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<BackgroundTask<T>, Refusal> {
        let (tell, answer) = sync_channel(1);
        let begun = std::thread::Builder::new().name(thread.to_owned()).spawn(move || {
            // Nobody may be left to be told.
            let _ = tell.send(work());
        });
        begun.map_err(|why| Refusal::failed(format!("cannot start a thread: {why}")))?;
        Ok(BackgroundTask(answer))
    }

    /// What came of it; `None` while it is under way.
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
