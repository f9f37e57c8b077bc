//! What a thread does while it waits for the disk, by whoever called: a binding lets other threads of its
//! interpreter run, and looks for signals.

use std::cell::Cell;

/// What is to be done around a wait for the disk.
pub trait Waits: Sync {
    /// Runs what may wait. The caller of the region holds no lock of ours meanwhile.
    fn aside(&self, wait: &mut (dyn FnMut() + Send));
    /// Asked again and again while it goes on; with `false` it ends with `Interrupted`.
    fn go_on(&self) -> bool;
}

thread_local! {
    static WAITS: Cell<Option<&'static dyn Waits>> = const { Cell::new(None) };
}

/// Runs `act`, whose waits for the disk in this thread are left to `waits`.
///
/// A write that `waits` interrupts is withdrawn, and nothing has changed, unless the persister has begun to
/// write it: then it may come yet.
pub fn with_waits<T>(waits: &'static dyn Waits, act: impl FnOnce() -> T) -> T {
    /// Also behind a panic.
    struct Before(Option<&'static dyn Waits>);
    impl Drop for Before {
        fn drop(&mut self) {
            WAITS.set(self.0);
        }
    }
    let _before = Before(WAITS.replace(Some(waits)));
    act()
}

pub(super) fn aside<T: Send>(wait: impl FnOnce() -> T + Send) -> T {
    let Some(waits) = WAITS.get() else { return wait() };
    let (mut wait, mut done) = (Some(wait), None);
    waits.aside(&mut || done = wait.take().map(|wait| wait()));
    done.expect("what is to wait is run")
}

pub(super) fn go_on() -> bool {
    WAITS.get().is_none_or(Waits::go_on)
}
