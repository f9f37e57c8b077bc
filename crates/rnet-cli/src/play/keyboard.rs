//! Keys of the terminal, one by one and unseen.

use std::io::stdin;

use rnet_record::play::Control;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::read;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::failure::Outcome;

/// How far the arrows go.
const SEEK_NS: i64 = 5_000_000_000;
/// How much faster or slower the arrows play.
const FASTER: f64 = 1.25;

/// The terminal is as it was when this is dropped.
pub struct Keyboard {
    before: Termios,
}

impl Keyboard {
    pub fn open() -> Outcome<Keyboard> {
        let before = tcgetattr(stdin()).map_err(std::io::Error::from)?;
        let mut termios = before.clone();
        termios.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        termios.special_codes[SpecialCodeIndex::VMIN] = 0;
        termios.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Now, &termios).map_err(std::io::Error::from)?;
        Ok(Keyboard { before })
    }

    /// What has been pressed, if anything has.
    pub fn control(&mut self) -> Option<Control> {
        let stdin = stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        if poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).ok()? == 0 {
            return None;
        }
        // A key is at most a few bytes, which come together.
        let mut keys = [0; 8];
        let len = read(&stdin, &mut keys).ok()?;
        meant_by(&keys[..len])
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // A terminal that is gone needs no care.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

fn meant_by(keys: &[u8]) -> Option<Control> {
    match keys {
        [b' ' | b'p', ..] => Some(Control::Pause),
        [b's' | b'.', ..] => Some(Control::Step),
        [b'q', ..] => Some(Control::Quit),
        [0x1b, b'[', arrow, ..] => match arrow {
            b'A' => Some(Control::Faster(FASTER)),
            b'B' => Some(Control::Faster(1.0 / FASTER)),
            b'C' => Some(Control::Seek(SEEK_NS)),
            b'D' => Some(Control::Seek(-SEEK_NS)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_help_says() {
        for (keys, control) in [
            (&b" "[..], Some(Control::Pause)),
            (b"s", Some(Control::Step)),
            (b"q", Some(Control::Quit)),
            (b"\x1b[A", Some(Control::Faster(FASTER))),
            (b"\x1b[B", Some(Control::Faster(1.0 / FASTER))),
            (b"\x1b[C", Some(Control::Seek(SEEK_NS))),
            (b"\x1b[D", Some(Control::Seek(-SEEK_NS))),
            (b"\x1b[Z", None),
            (b"\x1b", None),
            (b"x", None),
            (b"", None),
        ] {
            assert_eq!(meant_by(keys), control, "{keys:?}");
        }
    }
}
