//! Keys of the terminal, one by one and unseen.

use std::io::stdin;

use rnet_record::play::Control;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::read;
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

use crate::failure::Outcome;
use crate::signal;

/// How far the arrows go.
const SEEK_NS: i64 = 5_000_000_000;
/// How much faster or slower the arrows play.
const FASTER: f64 = 1.25;

/// The terminal is as it was when this is dropped, or a second signal ends the process.
pub struct Keyboard {
    before: Termios,
    /// What was pressed and not looked at yet.
    pressed: Vec<u8>,
}

impl Keyboard {
    /// `None` in the background of a shell: the keys are not for this process, which would be stopped.
    pub fn open() -> Outcome<Option<Keyboard>> {
        if tcgetpgrp(stdin()).is_ok_and(|group| group != getpgrp()) {
            return Ok(None);
        }
        let before = tcgetattr(stdin()).map_err(std::io::Error::from)?;
        signal::restore_at_exit();
        let mut termios = before.clone();
        termios.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        termios.special_codes[SpecialCodeIndex::VMIN] = 0;
        termios.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Now, &termios).map_err(std::io::Error::from)?;
        Ok(Some(Keyboard { before, pressed: Vec::new() }))
    }

    /// What the next key that was pressed means, if one means anything.
    pub fn control(&mut self) -> Option<Control> {
        let stdin = stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let mut keys = [0; 64];
        if self.pressed.len() < keys.len()
            && poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|n| n > 0)
            && let Ok(len) = read(&stdin, &mut keys)
        {
            self.pressed.extend(&keys[..len]);
        }
        while let Some((len, control)) = first_of(&self.pressed) {
            self.pressed.drain(..len);
            if control.is_some() {
                return control;
            }
        }
        None
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // A terminal that is gone needs no care.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// What follows an escape for longer than this is no key.
const LONGEST: usize = 16;

/// How many bytes the first key has, and what it means; `None` while more of it may come.
fn first_of(keys: &[u8]) -> Option<(usize, Option<Control>)> {
    let control = match keys {
        [] | [0x1b] | [0x1b, b'[' | b'O'] => return None,
        [0x1b, b'[' | b'O', rest @ ..] => {
            // Parameters, then a letter.
            let mut start = rest.iter().take(LONGEST);
            let letter = start.position(|byte| (0x40..=0x7e).contains(byte));
            let Some(letter) = letter else {
                return (rest.len() >= LONGEST).then_some((1, None));
            };
            let control = match rest[letter] {
                b'A' => Some(Control::Faster(FASTER)),
                b'B' => Some(Control::Faster(1.0 / FASTER)),
                b'C' => Some(Control::Seek(SEEK_NS)),
                b'D' => Some(Control::Seek(-SEEK_NS)),
                _ => None,
            };
            return Some((letter + 3, control));
        }
        [b' ' | b'p', ..] => Some(Control::Pause),
        [b's' | b'.', ..] => Some(Control::Step),
        [b'l', ..] => Some(Control::Loop),
        [b'q', ..] => Some(Control::Quit),
        _ => None,
    };
    Some((1, control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_help_says() {
        for (keys, control) in [
            (&b" "[..], Some(Control::Pause)),
            (b"s", Some(Control::Step)),
            (b"l", Some(Control::Loop)),
            (b"q", Some(Control::Quit)),
            (b"\x1b[A", Some(Control::Faster(FASTER))),
            (b"\x1b[B", Some(Control::Faster(1.0 / FASTER))),
            (b"\x1bOC", Some(Control::Seek(SEEK_NS))),
            (b"\x1b[1;5D", Some(Control::Seek(-SEEK_NS))),
            (b"\x1b[Z", None),
            (b"x", None),
        ] {
            assert_eq!(first_of(keys), Some((keys.len(), control)), "{keys:?}");
        }
    }

    #[test]
    fn keys_that_come_together_or_in_pieces_are_told_apart() {
        let all = |mut keys: &[u8]| {
            let mut all = Vec::new();
            while let Some((len, control)) = first_of(keys) {
                (keys, _) = (&keys[len..], all.extend(control));
            }
            (all, keys.len())
        };
        assert_eq!(
            all(b"ss\x1b[Axs"),
            (vec![Control::Step, Control::Step, Control::Faster(FASTER), Control::Step], 0)
        );
        assert_eq!(all(b"s\x1b["), (vec![Control::Step], 2));
        // Escape by itself, and then another key.
        assert_eq!(all(b"\x1bs"), (vec![Control::Step], 0));
        assert_eq!(all(b"\x1b"), (vec![], 1));
        assert_eq!(all(&[&b"\x1b["[..], &[b'0'; 40], b"q"].concat()).0, [Control::Quit]);
    }
}
