//! The terminal on which `rnet top` draws, which may take no output: a window that is suspended, a connection that hangs.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

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
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
