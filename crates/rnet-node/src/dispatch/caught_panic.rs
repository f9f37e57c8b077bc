//! A panic of a callback ends neither its thread nor the other callbacks: it is caught here, and reported.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rnet_core::Lane;
use rnet_shm::os::bell::Waiter;

use super::{Activity, DispatchLoop};

impl DispatchLoop<'_> {
    /// As [`DispatchLoop::run_once`], for callbacks that may panic.
    pub(super) fn run_once_and_catch(&mut self, waiter: &Waiter) {
        let turned = catch_unwind(AssertUnwindSafe(|| self.run_once(waiter)));
        if let Err(panic) = turned
            && !self.shared.fork_guard.is_from_parent()
        {
            self.drop_panicked(&*panic);
            // Dropping the panic payload may panic, too.
            std::mem::forget(panic);
        }
    }

    /// Counts a panic and drops the task that caused it: its state is unknown, so it does not run again. The
    /// other tasks continue.
    #[cold]
    fn drop_panicked(&mut self, panic: &(dyn Any + Send)) {
        let lane = if self.shared.lane == Lane::Urgent { "urgent" } else { "bulk" };
        let activity = self.activity.take();
        let (task, name) = match activity {
            Activity::Task(at) if at < self.tasks.len() => {
                let task = self.tasks.swap_remove(at);
                let name = catch_unwind(AssertUnwindSafe(|| task.describe())).ok();
                (Some(task), name)
            }
            Activity::Timers => (None, Some(format!("a timer of the {lane} lane"))),
            _ => (None, None),
        };
        if !matches!(activity, Activity::Other) {
            self.shared.errors.note_dropped();
        }
        let name = name.unwrap_or_else(|| format!("a callback of the {lane} lane"));
        self.shared.errors.note_panic(&name, panic);
        drop_task(task);
    }
}

/// Drops a task or a timer. Dropping the values that the user's callback captured may panic, too.
pub(super) fn drop_task<T>(task: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
}
