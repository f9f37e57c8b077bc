//! Recovers the files of a box that was killed, when the next box starts or without one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rnet::inspect::Location;

use super::folder::{Folder, prefix};
use super::ring::Ring;
use super::trigger_queue::{FiredTrigger, TriggerQueue};
use super::window::{self, FinishedWindow, Window};
use crate::error::{RecordError, Result};
use crate::recorder::RingPart;

/// Writes the files of a box that was killed: the pending files, or else one file of the ring. Returns the
/// paths of these files, and notes about problems with them. If nothing is left, it writes nothing.
///
/// # Errors
/// [`RecordError`]: a box runs; the folder cannot be read; a file cannot be written. The ring is then
/// unchanged.
pub fn recover(location: &Location, folder: &Path) -> Result<(Vec<PathBuf>, Vec<String>)> {
    let (trigger_queue, prefix) = (TriggerQueue::default(), prefix(location));
    let waiting = window::pending_windows(folder, &prefix)?;
    if waiting.is_empty() && !Ring::path_of(location.path()).exists() {
        return Ok(Default::default());
    }
    let ring = Ring::acquire(location, 0)?;
    let left = ring.remaining_parts();
    let (mut waiting, taken) = resume_windows(waiting, &left, &trigger_queue);
    taken?;
    if waiting.is_empty()
        && let (Some(first), Some(last)) = (left.first(), left.last())
    {
        let why = "the black box was killed".to_owned();
        let fired = FiredTrigger { name: "recover".to_owned(), why, at_ns: last.to_ns };
        let before = Duration::from_nanos(last.to_ns - first.from_ns.min(last.to_ns));
        let mut window =
            Window::new(Folder::at(folder), &prefix, fired, (before, Duration::ZERO), None);
        copy_remaining(&mut window, &left, &trigger_queue)?;
        waiting.push(window.end());
    }
    let mut files = Vec::new();
    let mut failed = None;
    for over in waiting {
        // A file that cannot be written does not prevent the others.
        match window::write_file(&over, &trigger_queue) {
            Ok(file) => files.extend(file),
            Err(why) => failed = failed.or(Some(RecordError::Format { path: over.dir, why })),
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    for part in &left {
        // Otherwise the next box would write the same file again.
        let removed = std::fs::remove_file(&part.path);
        removed.map_err(|error| RecordError::file("remove", &part.path, error))?;
    }
    Ok((files, trigger_queue.take_notes()))
}

/// Copies the parts that the windows of a killed box still need from its ring.
///
/// # Errors
/// The disk is full. The parts that fit have been copied.
pub(super) fn resume_windows(
    waiting: Vec<PathBuf>,
    left: &[RingPart],
    trigger_queue: &TriggerQueue,
) -> (Vec<FinishedWindow>, Result<()>) {
    let mut taken = Ok(());
    let mut take = |dir: PathBuf| {
        let Some(mut window) = Window::reopen(dir.clone()) else {
            return FinishedWindow::from(dir);
        };
        window.note_early_exit(left);
        let its = copy_remaining(&mut window, left, trigger_queue);
        taken = std::mem::replace(&mut taken, Ok(())).and(its);
        trigger_queue
            .note(format!("{} is written now: its black box had exited", window.pending().file));
        // The window lacks the parts that could not be copied.
        window.end()
    };
    let over = waiting.into_iter().map(&mut take).collect();
    (over, taken)
}

fn copy_remaining(
    window: &mut Window,
    left: &[RingPart],
    trigger_queue: &TriggerQueue,
) -> Result<()> {
    window.copy_from(left, u64::MAX, trigger_queue);
    match window.problem() {
        None => Ok(()),
        Some(why) => {
            let path = window.dir().to_owned();
            Err(RecordError::Format { path, why: why.to_owned() })
        }
    }
}
