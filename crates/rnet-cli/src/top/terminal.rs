//! The terminal on which `rnet top` draws, which may take no output: a window that is suspended, a connection that hangs.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use crate::signal;

/// Writes to the terminal, and waits for it until a signal comes: what it does not take then is left out, so that the
/// command ends.
pub struct Patient(File);

impl Patient {
    /// The terminal of stdout, opened anew: whether a write waits is not to change for the shell, which has it as well.
    fn open() -> io::Result<Patient> {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        File::options().write(true).custom_flags(flags).open("/proc/self/fd/1").map(Patient)
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if signal::stopped() {
                        return Ok(bytes.len());
                    }
                    signal::wait_writable(self.0.as_fd())?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // It has hung up, which ends the command. Ratatui would panic where it cannot tell of this error.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => return Ok(bytes.len()),
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal from which keys come, as crossterm chooses it.
///
/// Crossterm 0.29 reads on without end where a terminal has hung up, and heeds no signal meanwhile: so it is asked for
/// keys only while there is one.
pub struct Keys(File);

impl Keys {
    pub fn open() -> io::Result<Keys> {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let path = if io::stdin().is_terminal() { "/proc/self/fd/0" } else { "/dev/tty" };
        File::options().read(true).custom_flags(flags).open(path).map(Keys)
    }

    /// Waits until there is a key, for a time at most; false once the terminal has hung up.
    pub fn wait(&self, limit: Duration) -> io::Result<bool> {
        signal::wait_readable_for(self.0.as_fd(), Some(limit), false)?;
        let mut now = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure of this function, for the time of the call.
        unsafe { libc::poll(&raw mut now, 1, 0) };
        Ok(now.revents & (libc::POLLHUP | libc::POLLERR) == 0)
    }
}

/// The terminal, which is as it was once this is dropped; a panic restores it too, before it is told.
pub struct Screen(Terminal<CrosstermBackend<Patient>>);

impl Screen {
    pub fn open() -> io::Result<Screen> {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            hook(info);
        }));
        signal::restore_at_exit();
        enable_raw_mode()?;
        let opened = Patient::open().and_then(|mut out| {
            execute!(out, EnterAlternateScreen)?;
            Terminal::new(CrosstermBackend::new(out))
        });
        opened.map(Screen).inspect_err(|_| restore())
    }
}

fn restore() {
    // Whoever cannot be told that the terminal stays as it is cannot be told this either.
    let _ = disable_raw_mode();
    let _ = Patient::open().and_then(|mut out| execute!(out, LeaveAlternateScreen));
}

impl Deref for Screen {
    type Target = Terminal<CrosstermBackend<Patient>>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Screen {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}
