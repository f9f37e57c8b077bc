//! Reads keys from a terminal.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::unix::fs::OpenOptionsExt;

pub use rnet_monitor::top::Key;
use rnet_monitor::top::take_keys;

/// The terminal that keys are read from: stdin, or the terminal of the session.
pub struct Keys {
    pub terminal: File,
    /// An incomplete key sequence.
    bytes: Vec<u8>,
}

impl Keys {
    pub fn open() -> io::Result<Keys> {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let path = if io::stdin().is_terminal() { "/proc/self/fd/0" } else { "/dev/tty" };
        let terminal = File::options().read(true).custom_flags(flags).open(path)?;
        Ok(Keys { terminal, bytes: Vec::new() })
    }

    /// The available keys.
    pub fn take(&mut self) -> io::Result<Vec<Key>> {
        let mut read = [0; 256];
        match self.terminal.read(&mut read) {
            Ok(len) => self.bytes.extend(&read[..len]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(take_keys(&mut self.bytes))
    }
}
