//! Records which messages a victim was about to send and which it had sent: a file outside of robot-net,
//! which the kernel keeps when the victim is killed between two instructions.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The streams of a victim.
pub const STREAMS: usize = 3;

/// The line of one stream in the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The publisher's id; 0 while there is none.
    pub publisher: u64,
    /// Messages whose sending has begun.
    pub started: u64,
    /// Messages whose sending has returned.
    pub committed: u64,
}

/// Lines of one victim: one for each stream of each of its lives, the first at 0.
#[derive(Debug)]
pub struct Ledger(File);

const LINE_LEN_BYTES: u64 = 24;

impl Ledger {
    /// Creates an empty ledger.
    pub fn create(path: &Path) -> io::Result<Ledger> {
        Ok(Ledger(File::options().write(true).create_new(true).open(path)?))
    }

    fn put(&self, line: usize, word: u64, value: u64) -> io::Result<()> {
        self.0.write_all_at(&value.to_le_bytes(), line as u64 * LINE_LEN_BYTES + word * 8)
    }

    /// Assigns a line to the publisher with this id.
    pub fn open_line(&self, line: usize, publisher: u64) -> io::Result<()> {
        self.0.write_all_at(&[0; LINE_LEN_BYTES as usize], line as u64 * LINE_LEN_BYTES)?;
        self.put(line, 0, publisher)
    }

    /// Records that sending begins of the message that makes the count `count`.
    pub fn starts(&self, line: usize, count: u64) -> io::Result<()> {
        self.put(line, 1, count)
    }

    /// Records that sending has returned for the message that makes the count `count`.
    pub fn committed(&self, line: usize, count: u64) -> io::Result<()> {
        self.put(line, 2, count)
    }

    /// All lines of a ledger.
    pub fn read(path: &Path) -> io::Result<Vec<Line>> {
        let bytes = std::fs::read(path)?;
        let words: Vec<u64> =
            bytes.as_chunks::<8>().0.iter().map(|eight| u64::from_le_bytes(*eight)).collect();
        let line = |w: &[u64; 3]| Line { publisher: w[0], started: w[1], committed: w[2] };
        Ok(words.as_chunks::<3>().0.iter().map(line).collect())
    }
}
