//! A simulated disk that records its operations, so that a test can cut the power after any of them, and that
//! fails on demand.

use std::io;
use std::sync::{Arc, Mutex};

use redb::StorageBackend;

use super::TestRng;

/// Unit that a disk writes atomically.
const SECTOR_LEN_BYTES: usize = 512;

/// A recorded operation.
#[derive(Clone, Debug)]
pub enum Op {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

/// Fate of unsynced writes at a power cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Lost,
    Kept,
    /// Each one is lost, kept or torn between its sectors, in any order.
    Torn(u64),
}

#[derive(Debug, Default)]
struct Inner {
    /// The content for a reader.
    now: Vec<u8>,
    ops: Vec<Op>,
    /// Number of writes, length changes and syncs before all fail.
    fails_after: Option<(usize, i32)>,
}

/// A handle on the disk.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<Inner>>);

impl Disk {
    /// A disk with this content.
    pub fn of(image: Vec<u8>) -> Disk {
        Disk(Arc::new(Mutex::new(Inner { now: image, ..Inner::default() })))
    }

    /// Its content while the power is on.
    pub fn image(&self) -> Vec<u8> {
        self.0.lock().unwrap().now.clone()
    }

    /// The operations so far.
    pub fn ops(&self) -> Vec<Op> {
        self.0.lock().unwrap().ops.clone()
    }

    /// Number of operations so far.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap().ops.len()
    }

    /// Makes all operations fail with this system error after `more` further ones.
    pub fn fail_after(&self, more: usize, errno: i32) {
        self.0.lock().unwrap().fails_after = Some((more, errno));
    }

    fn act(&self, op: Op) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        match &mut inner.fails_after {
            Some((0, errno)) => return Err(io::Error::from_raw_os_error(*errno)),
            Some((more, _)) => *more -= 1,
            None => {}
        }
        apply(&mut inner.now, &op);
        inner.ops.push(op);
        Ok(())
    }
}

fn apply(image: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Write(offset, bytes) => {
            let (from, to) = (*offset as usize, *offset as usize + bytes.len());
            if image.len() < to {
                image.resize(to, 0);
            }
            image[from..to].copy_from_slice(bytes);
        }
        Op::SetLen(len) => image.resize(*len as usize, 0),
        Op::Sync => {}
    }
}

/// The content of a disk that held `before`, after a power cut following these operations.
pub fn cut(before: &[u8], ops: &[Op], fate: Fate) -> Vec<u8> {
    let synced = ops.iter().rposition(|op| matches!(op, Op::Sync)).map_or(0, |at| at + 1);
    let mut image = before.to_vec();
    for op in &ops[..synced] {
        apply(&mut image, op);
    }
    let rest = &ops[synced..];
    match fate {
        Fate::Lost => {}
        Fate::Kept => rest.iter().for_each(|op| apply(&mut image, op)),
        Fate::Torn(seed) => tear(&mut image, rest, &mut TestRng(seed)),
    }
    image
}

fn tear(image: &mut Vec<u8>, ops: &[Op], rng: &mut TestRng) {
    let mut order: Vec<&Op> = ops.iter().collect();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.next(i as u64 + 1) as usize);
    }
    for op in order {
        match (op, rng.next(3)) {
            (_, 0) => {}
            (Op::Write(offset, bytes), 1) => {
                // Sectors are aligned to the disk, not to the write.
                let mut at = 0;
                while at < bytes.len() {
                    let place = *offset as usize + at;
                    let len = (SECTOR_LEN_BYTES - place % SECTOR_LEN_BYTES).min(bytes.len() - at);
                    if rng.next(2) == 0 {
                        apply(image, &Op::Write(place as u64, bytes[at..at + len].to_vec()));
                    }
                    at += len;
                }
            }
            (op, _) => apply(image, op),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.0.lock().unwrap();
        let from = inner.now.get(offset as usize..).unwrap_or_default();
        let from = from.get(..out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(from);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.act(Op::SetLen(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.act(Op::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.act(Op::Write(offset, data.to_vec()))
    }
}
