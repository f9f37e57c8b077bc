//! Reads single keys from the terminal without echo.

use std::collections::VecDeque;
use std::io::stdin;

use rnet_record::play::PlaybackCommand;
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, tcgetpgrp, tcsetattr};

use crate::failure::Outcome;
use crate::signal;
use crate::terminal_keys::{Key, Keys};

/// Seek distance of the arrow keys.
const SEEK_NS: i64 = 5_000_000_000;
/// Rate factor of the arrow keys.
const RATE_FACTOR: f64 = 1.25;

/// Restores the terminal when dropped, or when a second signal ends the process.
pub struct Keyboard {
    keys: Keys,
    /// Keys that were pressed and not handled yet.
    pressed: VecDeque<Key>,
}

impl Keyboard {
    /// `None` for a background job of a shell: keys are not for this process, and reading them would stop it.
    pub fn open() -> Outcome<Option<Keyboard>> {
        if tcgetpgrp(stdin()).is_ok_and(|group| group != getpgrp()) {
            return Ok(None);
        }
        let keys = Keys::open()?;
        let mut mode = signal::save_terminal(&keys.terminal, None)?;
        mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        let changed = tcsetattr(&keys.terminal, OptionalActions::Now, &mode);
        changed.map_err(std::io::Error::from)?;
        Ok(Some(Keyboard { keys, pressed: VecDeque::new() }))
    }

    /// The command of the next pressed key that has one.
    pub fn control(&mut self) -> Option<PlaybackCommand> {
        self.pressed.extend(self.keys.take().unwrap_or_default());
        while let Some(key) = self.pressed.pop_front() {
            if let control @ Some(_) = control_of(key) {
                return control;
            }
        }
        None
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        signal::restore_terminal();
    }
}

fn control_of(key: Key) -> Option<PlaybackCommand> {
    Some(match key {
        Key::Char(' ' | 'p') => PlaybackCommand::TogglePause,
        Key::Char('s' | '.') => PlaybackCommand::Step,
        Key::Char('l') => PlaybackCommand::ToggleLoop,
        Key::Char('q') => PlaybackCommand::Quit,
        Key::Up => PlaybackCommand::ScaleRate(RATE_FACTOR),
        Key::Down => PlaybackCommand::ScaleRate(1.0 / RATE_FACTOR),
        Key::Right => PlaybackCommand::Seek(SEEK_NS),
        Key::Left => PlaybackCommand::Seek(-SEEK_NS),
        _ => return None,
    })
}
