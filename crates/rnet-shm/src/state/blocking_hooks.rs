//! What a thread does while it waits for the disk, by whoever called: a binding lets other threads of its
//! interpreter run, and looks for signals.

use std::cell::Cell;

/// What is to be done around a wait for the disk.
pub trait BlockingHooks: Sync {
    /// Runs what may wait. The caller of the region holds no lock of ours meanwhile.
    fn run_blocking(&self, wait: &mut (dyn FnMut() + Send));
    /// Asked again and again while it goes on; with `false` it ends with `Interrupted`.
    fn should_continue(&self) -> bool;
}

thread_local! {
    static HOOKS: Cell<Option<&'static dyn BlockingHooks>> = const { Cell::new(None) };
}

/// Runs `act`, whose waits for the disk in this thread are left to `hooks`.
///
/// A write that `hooks` interrupts is withdrawn, and nothing has changed, unless the persister has begun to
/// write it: then it may come yet.
pub fn with_blocking_hooks<T>(hooks: &'static dyn BlockingHooks, act: impl FnOnce() -> T) -> T {
    /// Also behind a panic.
    struct RestoreHooks(Option<&'static dyn BlockingHooks>);
    impl Drop for RestoreHooks {
        fn drop(&mut self) {
            HOOKS.set(self.0);
        }
    }
    let _restore = RestoreHooks(HOOKS.replace(Some(hooks)));
    act()
}

pub(super) fn run_blocking<T: Send>(wait: impl FnOnce() -> T + Send) -> T {
    let Some(hooks) = HOOKS.get() else { return wait() };
    let (mut wait, mut done) = (Some(wait), None);
    hooks.run_blocking(&mut || done = wait.take().map(|wait| wait()));
    done.expect("what is to wait is run")
}

pub(super) fn should_continue() -> bool {
    HOOKS.get().is_none_or(BlockingHooks::should_continue)
}
