//! The terminal on which `rnet top` draws. It may accept no output: a suspended window, a hanging connection.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use anstyle::Style;
use rnet_monitor::top::Canvas;
use rustix::termios::{OptionalActions, tcgetwinsize, tcsetattr};

use crate::signal;
use crate::terminal_keys::Keys;

/// Writes to the terminal, and waits for it until a signal arrives. Output that it does not accept then is
/// dropped, so that the command ends.
pub struct TerminalWriter(File);

impl TerminalWriter {
    /// Opens the terminal of stdout a second time: its non-blocking mode must not affect the shell, which
    /// shares it.
    fn open() -> io::Result<TerminalWriter> {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        File::options().write(true).custom_flags(flags).open("/proc/self/fd/1").map(TerminalWriter)
    }
}

impl Write for TerminalWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if signal::stop_requested() {
                        return Ok(bytes.len());
                    }
                    signal::wait_writable(self.0.as_fd())?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The terminal has hung up, which ends the command.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => return Ok(bytes.len()),
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Enters xterm's alternate screen without a cursor; the other constant leaves it.
const ENTER_ALTERNATE_SCREEN: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE_ALTERNATE_SCREEN: &[u8] = b"\x1b[?25h\x1b[?1049l";
/// The default size, for a terminal that does not report its own.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// Restores the terminal when dropped; a panic also restores it, before it is reported.
pub struct Screen {
    out: TerminalWriter,
    shown: Canvas,
}

impl Screen {
    pub fn open(keys: &Keys) -> io::Result<Screen> {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            signal::restore_terminal();
            hook(info);
        }));
        let mut out = TerminalWriter::open()?;
        let mut mode =
            signal::save_terminal(&keys.terminal, Some((&out.0, LEAVE_ALTERNATE_SCREEN)))?;
        // Keys arrive at once, without echo and uninterpreted.
        mode.make_raw();
        tcsetattr(&keys.terminal, OptionalActions::Now, &mode)?;
        let entered = out.write_all(ENTER_ALTERNATE_SCREEN.as_bytes());
        entered.inspect_err(|_| signal::restore_terminal())?;
        Ok(Screen { out, shown: Canvas::new(0, 0) })
    }

    /// Columns and rows.
    fn size(&self) -> (usize, usize) {
        match tcgetwinsize(&self.out.0) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (usize::from(size.ws_col), usize::from(size.ws_row))
            }
            _ => DEFAULT_SIZE,
        }
    }

    /// Whether the size of the terminal has changed since the last drawing.
    pub fn is_resized(&self) -> bool {
        self.size() != (self.shown.width, self.shown.height)
    }

    /// Draws the rows that have changed.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Canvas)) -> io::Result<()> {
        let (width, height) = self.size();
        let mut canvas = Canvas::new(width, height);
        draw(&mut canvas);
        let mut text = String::new();
        let is_resized = (width, height) != (self.shown.width, self.shown.height);
        if is_resized {
            text.push_str("\x1b[2J");
        }
        for row in 0..height {
            let cells = canvas.row(row);
            if is_resized || cells != self.shown.row(row) {
                let _ = write!(text, "\x1b[{};1H", row + 1);
                write_row(&mut text, cells);
            }
        }
        self.shown = canvas;
        self.out.write_all(text.as_bytes())
    }
}

/// Writes a row with the escape sequences of its styles.
fn write_row(text: &mut String, cells: &[(char, Style)]) {
    let blank = (' ', Style::new());
    let len = cells.iter().rposition(|cell| *cell != blank).map_or(0, |at| at + 1);
    for run in cells[..len].chunk_by(|a, b| a.1 == b.1) {
        let style = run[0].1;
        let _ = write!(text, "{style}");
        text.extend(run.iter().map(|(c, _)| c));
        let _ = write!(text, "{style:#}");
    }
    // After a full row the cursor is still in the last column, which this would clear.
    if len < cells.len() {
        text.push_str("\x1b[K");
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If a terminal accepts no output until a signal arrives, it cannot leave the alternate screen
        // either.
        let _ = signal::wait_writable(self.out.0.as_fd());
        signal::restore_terminal();
    }
}
