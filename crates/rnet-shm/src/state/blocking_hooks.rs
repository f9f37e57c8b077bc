//! What a thread does while it waits for the disk, as chosen by the caller: a binding lets other threads of
//! its interpreter run and checks for signals.

use std::cell::Cell;

/// Hooks for waits for the disk.
pub trait BlockingHooks: Sync {
    /// Runs a call that may block. The caller of the region holds none of our locks during the call.
    fn run_blocking(&self, wait: &mut (dyn FnMut() + Send));
    /// Called repeatedly during the wait; `false` ends it with `Interrupted`.
    fn should_continue(&self) -> bool;
}

thread_local! {
    static HOOKS: Cell<Option<&'static dyn BlockingHooks>> = const { Cell::new(None) };
}

/// Runs `act`; `hooks` run its waits for the disk in this thread.
///
/// A write that `hooks` interrupts is withdrawn without effect, unless the persister has started to write it:
/// then it may still complete.
pub fn with_blocking_hooks<T>(hooks: &'static dyn BlockingHooks, act: impl FnOnce() -> T) -> T {
    /// Also restored after a panic.
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
    done.expect("`run_blocking` runs its argument")
}

pub(super) fn should_continue() -> bool {
    HOOKS.get().is_none_or(BlockingHooks::should_continue)
}
