//! Detaches the link from the process that starts it.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::args::Options;

/// Closes file descriptors inherited from the starting process: pipes and sockets of a node would stay open
/// while the link runs. Call it before anything is opened here.
pub fn close_inherited_fds() {
    let numbers =
        |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let open: Vec<i32> = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries.filter_map(numbers).collect(),
        // Without /proc, the usual range.
        Err(_) => (3..1024).collect(),
    };
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: this process has not opened anything yet that could have this number, and closing an
        // unused number is harmless.
        unsafe { libc::close(fd) };
    }
}

/// Starts a link in the background. Its messages before it links go to stderr.
pub fn spawn(options: &Options) -> Outcome {
    let failed = |e: std::io::Error| format!("cannot start the link: {e}");
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(["run", "--background"]).args(options.to_args());
    // The starting process exits earlier than the link and does not wait for it.
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map(drop).map_err(failed)
}

/// Leaves the session and its terminal: Ctrl-C there must not reach a background link.
pub fn start_session() {
    // Fails if this process leads a group; then `spawn` did not start it.
    let _ = rustix::process::setsid();
}

/// Silences stderr: the starting process expects no more output.
pub fn silence_stderr() {
    let open = || OpenOptions::new().write(true).open("/dev/null");
    if let Ok(null) = open() {
        let _ = redirect(&null);
    }
}

fn redirect(to: &File) -> rustix::io::Result<()> {
    rustix::stdio::dup2_stderr(to.as_fd())
}
