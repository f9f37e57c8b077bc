//! Keys, from what a terminal sends for them (ECMA-48 control sequences, as xterm and the Linux console send them).

/// A key that `rnet top` or `rnet play` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the key of its name")]
pub enum Key {
    /// A letter, digit or sign.
    Char(char),
    Tab,
    Enter,
    Esc,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C.
    Interrupt,
}

/// Takes the keys out of `bytes`. The beginning of a sequence or of a letter stays there; unknown sequences are dropped.
pub fn take_keys(bytes: &mut Vec<u8>) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = &bytes[..];
    while let Some((key, len)) = first_key(rest) {
        keys.extend(key);
        rest = &rest[len..];
    }
    let taken = bytes.len() - rest.len();
    bytes.drain(..taken);
    keys
}

/// The first key and its length in bytes; no key for what is unknown, `None` for what is incomplete.
fn first_key(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let key = |key| Some((Some(key), 1));
    match bytes {
        [] => None,
        [b'\t', ..] => key(Key::Tab),
        [b'\r' | b'\n', ..] => key(Key::Enter),
        [0x7f | 0x08, ..] => key(Key::Backspace),
        [0x03, ..] => key(Key::Interrupt),
        // A terminal sends a sequence at once: an Esc alone is the key.
        [0x1b] => key(Key::Esc),
        // F1 to F5 of the Linux console.
        [0x1b, b'[', b'[', _, ..] => Some((None, 4)),
        [0x1b, b'[', b'['] => None,
        [0x1b, b'[' | b'O', sequence @ ..] => {
            let end = sequence.iter().position(|byte| !(0x20..0x40).contains(byte))?;
            // Another key has broken the sequence off.
            if !(0x40..=0x7e).contains(&sequence[end]) {
                return Some((None, end + 2));
            }
            let key = match (sequence[end], &sequence[..end]) {
                (b'A', _) => Some(Key::Up),
                (b'B', _) => Some(Key::Down),
                (b'C', _) => Some(Key::Right),
                (b'D', _) => Some(Key::Left),
                (b'H', _) | (b'~', [b'1' | b'7', ..]) => Some(Key::Home),
                (b'F', _) | (b'~', [b'4' | b'8', ..]) => Some(Key::End),
                (b'~', [b'5', ..]) => Some(Key::PageUp),
                (b'~', [b'6', ..]) => Some(Key::PageDown),
                _ => None,
            };
            Some((key, end + 3))
        }
        [0x1b, ..] => key(Key::Esc),
        [0..0x20, ..] => Some((None, 1)),
        [first, ..] => {
            let len = match first {
                0xc0..0xe0 => 2,
                0xe0..0xf0 => 3,
                0xf0.. => 4,
                _ => 1,
            };
            let letter = std::str::from_utf8(bytes.get(..len)?).ok();
            match letter.and_then(|letter| letter.chars().next()) {
                Some(letter) => Some((Some(Key::Char(letter)), len)),
                None => Some((None, 1)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_and_letters_are_keys_also_in_pieces() {
        let mut bytes =
            b"q\x1b[A\x1bOB\x1bOC\x1b[1;5D\x1b[1;5H\x1b[6~\x1b[5~\x1b[99z\t\r\x7f\x03\x1b".to_vec();
        let wanted = [
            Key::Char('q'),
            Key::Up,
            Key::Down,
            Key::Right,
            Key::Left,
            Key::Home,
            Key::PageDown,
            Key::PageUp,
            Key::Tab,
            Key::Enter,
            Key::Backspace,
            Key::Interrupt,
            Key::Esc,
        ];
        assert_eq!(take_keys(&mut bytes), wanted);
        assert!(bytes.is_empty());
        bytes.extend(b"\x1b[[A\x1b[\x03q");
        assert_eq!(take_keys(&mut bytes), [Key::Interrupt, Key::Char('q')]);
        bytes.extend(b"\xc3");
        assert_eq!(take_keys(&mut bytes), []);
        bytes.extend(b"\xa4\x1b[4");
        assert_eq!(take_keys(&mut bytes), [Key::Char('ä')]);
        bytes.extend(b"~\xff/");
        assert_eq!(take_keys(&mut bytes), [Key::End]);
        bytes.extend(b"abc");
        let letters = ['/', 'a', 'b', 'c'].map(Key::Char);
        assert_eq!(take_keys(&mut bytes), letters);
    }
}
