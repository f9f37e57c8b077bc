//! Into the background: nothing of the process that starts a link stays with it.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::args::Options;

/// Closes what the starting process has left open: pipes and sockets of a node would stay open for as long as the link
/// runs. To be called before anything is opened here.
pub fn close_inherited_fds() {
    let numbers =
        |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let open: Vec<i32> = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries.filter_map(numbers).collect(),
        // Without /proc, those that there usually are.
        Err(_) => (3..1024).collect(),
    };
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: nothing of this process has been opened yet that could be behind the number, and closing a number
        // behind which nothing is does no harm.
        unsafe { libc::close(fd) };
    }
}

/// Starts a link in the background. What it has to say before it links stands on stderr.
pub fn spawn(options: &Options) -> Outcome {
    let failed = |e: std::io::Error| format!("cannot start the link: {e}");
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(["run", "--background"]).args(options.to_args());
    // Who started this ends sooner than it does, and does not wait for it.
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map(drop).map_err(failed)
}

/// Leaves the session, and so the terminal: Ctrl-C there is not meant for a link in the background.
pub fn start_session() {
    // Refused where this process leads a group, and then it was not started by `spawn`.
    let _ = rustix::process::setsid();
}

/// Has nothing more to say to whoever started it.
pub fn silence_stderr() {
    let open = || OpenOptions::new().write(true).open("/dev/null");
    if let Ok(null) = open() {
        let _ = redirect(&null);
    }
}

fn redirect(to: &File) -> rustix::io::Result<()> {
    rustix::stdio::dup2_stderr(to.as_fd())
}
