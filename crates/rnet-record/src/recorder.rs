//! The recorder: observes publishers, and writes their messages to MCAP files.
//!
//! It has three threads. One reads the publishers' logs and does nothing slow ([`topic_reader`]). It fills a
//! queue of bounded size ([`queue`]). The second compresses and writes ([`writer`], [`part_writer`]), and the
//! third waits for the disk ([`sync`]). Messages that exceed the capacity of any of them are counted by
//! topic, node and cause ([`loss`]), in the file and in the progress.

mod item;
mod json;
mod latched;
mod loss;
mod message_hook;
mod options;
mod part_writer;
mod progress;
mod queue;
mod remote_subscriptions;
mod report;
mod selection;
mod state_follower;
mod status_report;
mod sync;
mod topic_reader;
mod writer;

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rnet::inspect::{PriorityChange, lower_priority};

use crate::error::{RecordError, Result};
pub(crate) use item::Publisher;
pub use loss::{CauseCounts, LossCounts, RecordLossCause, UnheardCounts};
pub(crate) use message_hook::MessageHook;
pub use options::RecordOptions;
pub(crate) use options::{part_path, resolve_location};
pub use progress::Progress;
pub(crate) use progress::RingPart;
use progress::Shared;
use queue::Queue;
pub use selection::Selection;
use topic_reader::TopicReader;
use writer::Writer;

/// Records a domain until it is stopped or dropped.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("record{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(&dir).domain(&domain).open()?;
/// # let location = rnet::inspect::Location::new(Some(&domain), Some(dir.clone()), None)?;
/// # let file = dir.join(format!("{domain}.mcap"));
/// use rnet_record::{RecordOptions, Recorder};
///
/// let mut angles = node.publisher::<[u8]>("/angles").open()?;
/// let mut options = RecordOptions::default();
/// # options.location = Some(location);
/// options.state = false;
/// let recorder = Recorder::start(&file, options)?;
/// angles.send(b"0.25")?;
/// let report = recorder.stop()?;
/// assert_eq!((report.messages, report.losses.total()), (1, 0));
/// # std::fs::remove_file(file)?;
/// # drop(angles);
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<Result<()>>>,
    writer: Option<JoinHandle<Result<()>>>,
}

impl Recorder {
    /// Starts recording into `file`, which must not exist yet. Every message that a followed publisher sends
    /// from then on is in the recording, or counted as missing. A publisher that exists only between two
    /// polls is not seen at all: docs/limits.md gives the duration.
    ///
    /// # Errors
    /// [`RecordError`]: the file cannot be created, or the domain cannot be followed.
    pub fn start(file: &Path, options: RecordOptions) -> Result<Recorder> {
        let options = options.validate()?;
        let shared = Arc::new(Shared::default());
        let limit = usize::try_from(options.buffer_len_bytes).unwrap_or(usize::MAX);
        let queue = Arc::new(Queue::new(limit));
        let writer = {
            let (path, options) = (file.to_owned(), options.clone());
            let (queue, shared) = (queue.clone(), shared.clone());
            let begin = move || Writer::new(&path, options, queue, shared);
            start_thread(file, "rnet-rec-write", "writer", begin, |writer| {
                writer.run();
                Ok(())
            })?
        };
        let reader = {
            let (queue, shared) = (queue.clone(), shared.clone());
            let begin = move || {
                let mut reader = TopicReader::new(options, queue, shared)?;
                reader.begin().map(|()| reader)
            };
            start_thread(file, "rnet-rec-follow", "reader", begin, TopicReader::run)
        };
        let (reader, failed) = match reader {
            Ok(reader) => (Some(reader), None),
            Err(error) => (None, Some(error)),
        };
        let recorder = Recorder { shared, reader, writer: Some(writer) };
        let Some(error) = failed else { return Ok(recorder) };
        queue.close();
        recorder.stop()?;
        Err(error)
    }

    /// Progress of the recording.
    pub fn progress(&self) -> Progress {
        self.shared.progress().clone()
    }

    /// Notes since the last call, such as unreadable types or a full disk.
    pub fn take_notes(&self) -> Vec<String> {
        self.shared.take_notes()
    }

    /// Reports a problem outside of the recording itself, such as one of the black box, with the others.
    pub(crate) fn set_problem(&self, of: &'static str, why: Option<String>) {
        self.shared.set_problem(of, why);
    }

    /// Whether it has finished: its time is over, or it failed. [`Recorder::stop`] returns the error.
    pub fn is_finished(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
            || self.writer.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the recording after all messages sent before, and returns the final progress.
    ///
    /// # Errors
    /// The error that ended it earlier, if any. The file is complete in any case.
    pub fn stop(mut self) -> Result<Progress> {
        self.join()?;
        Ok(Progress { notes: self.take_notes(), ..self.progress() })
    }

    fn join(&mut self) -> Result<()> {
        self.shared.stop();
        let followed = match self.reader.take().map(JoinHandle::join) {
            Some(Ok(followed)) => followed,
            Some(Err(_)) => Err(RecordError::Panicked("reader")),
            None => Ok(()),
        };
        match self.writer.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(RecordError::Panicked("writer")),
            _ => followed,
        }
    }
}

/// Starts a thread with lower priority than nodes; threads that it starts inherit the priority. Returns when
/// `begin` has returned.
///
/// # Errors
/// The thread cannot be started, or `begin` failed or panicked.
fn start_thread<T>(
    file: &Path,
    thread: &str,
    name: &'static str,
    begin: impl FnOnce() -> Result<T> + Send + 'static,
    run: impl FnOnce(T) -> Result<()> + Send + 'static,
) -> Result<JoinHandle<Result<()>>> {
    let (sender, has_begun) = mpsc::sync_channel(1);
    let work = move || {
        lower_priority(PriorityChange::Batch);
        let (made, started) = match begin() {
            Ok(made) => (Some(made), Ok(())),
            Err(error) => (None, Err(error)),
        };
        // The starting thread waits for this.
        let _ = sender.send(started);
        made.map_or(Ok(()), run)
    };
    let thread = std::thread::Builder::new().name(thread.to_owned()).spawn(work);
    let thread = thread.map_err(|e| RecordError::file("start a thread for", file, e))?;
    has_begun.recv().unwrap_or(Err(RecordError::Panicked(name)))?;
    Ok(thread)
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // `stop` returns the error; `drop` ignores it.
        let _ = self.join();
    }
}
