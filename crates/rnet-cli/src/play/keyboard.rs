//! Keys of the terminal, one by one and unseen.

use std::collections::VecDeque;
use std::io::stdin;

use rnet_record::play::PlaybackCommand;
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, tcgetpgrp, tcsetattr};

use crate::failure::Outcome;
use crate::keys::{Key, Keys};
use crate::signal;

/// How far the arrows go.
const SEEK_NS: i64 = 5_000_000_000;
/// How much faster or slower the arrows play.
const RATE_FACTOR: f64 = 1.25;

/// The terminal is as it was when this is dropped, or a second signal ends the process.
pub struct Keyboard {
    keys: Keys,
    /// What was pressed and not looked at yet.
    pressed: VecDeque<Key>,
}

impl Keyboard {
    /// `None` in the background of a shell: the keys are not for this process, which would be stopped.
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

    /// What the next key that was pressed means, if one means anything.
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
