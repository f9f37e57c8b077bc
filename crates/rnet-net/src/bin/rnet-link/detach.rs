//! Detaches the link from the process that starts it.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use crate::args::Options;

/// Starts a link in the background, and returns its process id. Its messages before it links go to stderr.
pub fn spawn(options: &Options) -> Result<u32, String> {
    let failed = |e: std::io::Error| format!("cannot start the link: {e}");
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(["run", "--background"]).args(options.to_args());
    // The starting process exits earlier than the link and does not wait for it.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map(|child| child.id())
        .map_err(failed)
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
