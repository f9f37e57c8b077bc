//! Processes that do not outlive the one that started them.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the kernel kill the child when the *thread* that spawns it ends, however it ends: start children from
/// a thread that outlives them.
pub fn dies_with_its_parent(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec only prctl and getppid are called, which are safe there.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() as u32 == parent {
                Ok(())
            } else {
                Err(std::io::ErrorKind::Other.into())
            }
        });
    }
}
