//! Bytes in hex: as a dump, as digits, from digits.

use std::io::{self, Write};

/// Bytes on a line of a hex dump.
const DUMP_ROW_LEN: usize = 16;

/// Prints bytes as `hexdump -C` does: offset, hex, printable characters. What lies behind `limit`
/// bytes is counted.
pub fn hex_dump(out: &mut impl Write, bytes: &[u8], limit: usize) -> io::Result<()> {
    let shown = &bytes[..bytes.len().min(limit)];
    for (row, chunk) in shown.chunks(DUMP_ROW_LEN).enumerate() {
        write!(out, "{:08x} ", row * DUMP_ROW_LEN)?;
        for i in 0..DUMP_ROW_LEN {
            let gap = if i == DUMP_ROW_LEN / 2 { " " } else { "" };
            match chunk.get(i) {
                Some(byte) => write!(out, "{gap} {byte:02x}")?,
                None => write!(out, "{gap}   ")?,
            }
        }
        let text: String = chunk
            .iter()
            .map(|b| if (0x20..0x7f).contains(b) { char::from(*b) } else { '.' })
            .collect();
        writeln!(out, "  |{text}|")?;
    }
    match bytes.len() - shown.len() {
        0 => Ok(()),
        more => writeln!(out, "... ({more} more bytes)"),
    }
}

/// Bytes as hex digits without anything between.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from hex digits; blanks, colons and a leading `0x` are ignored.
pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let text = text.strip_prefix("0x").unwrap_or(text);
    let mut digits = Vec::new();
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != ':') {
        let digit = c.to_digit(16).ok_or_else(|| format!("{c:?} is not a hex digit"))?;
        digits.push(digit as u8);
    }
    if digits.len() % 2 != 0 {
        return Err(format!("{} hex digits do not make whole bytes", digits.len()));
    }
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps() {
        let bytes: Vec<u8> = (0x30..0x42).collect();
        let mut out = Vec::new();
        hex_dump(&mut out, &bytes, 17).unwrap();
        let shown = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[0],
            "00000000  30 31 32 33 34 35 36 37  38 39 3a 3b 3c 3d 3e 3f  |0123456789:;<=>?|"
        );
        assert!(lines[1].starts_with("00000010  40   ") && lines[1].ends_with("  |@|"));
        assert_eq!(lines[2], "... (1 more bytes)");
    }

    #[test]
    fn hex_both_ways() {
        assert_eq!(from_hex("00 ff:1A").unwrap(), [0, 255, 26]);
        assert_eq!(from_hex("0x10").unwrap(), [16]);
        assert_eq!(hex(&[0, 255, 26]), "00ff1a");
        assert!(from_hex("abc").is_err() && from_hex("zz").is_err());
    }
}
