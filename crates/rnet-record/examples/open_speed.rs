//! Measures how long it takes to open a recording by its index.
//!
//!     cargo run --release -p rnet-record --example open_speed -- GIGABYTES [json]
//!
//! The crate `mcap` writes the file: uncompressed chunks of 1 MiB, each with messages of 20 channels. The
//! messages are zeros and become holes, so the file uses little disk space, but has a complete index. The
//! file is opened once with nothing of it in memory, and four more times.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rnet_record::mcap::WriteOptions;
use rnet_record::mcap::records::MessageHeader;
use rnet_record::read::Recording;
use rustix::fs::{Advice, fadvise};

const CHANNELS: u64 = 20;
const CHUNK_LEN_BYTES: u64 = 1 << 20;
/// Runs of zeros of at least this length become holes.
const HOLE_LEN_BYTES: usize = 4096;
const ROUNDS: usize = 5;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let as_json = args.pop_if(|arg| arg == "json").is_some();
    let [gigabytes] = &args[..] else { return Err("GIGABYTES [json] are wanted".into()) };
    let len = (gigabytes.parse::<f64>()? * 1e9) as u64;
    let path = std::env::temp_dir().join(format!("open-speed-{}.mcap", std::process::id()));
    let measured = measure(&path, len);
    std::fs::remove_file(&path)?;
    let (len, times) = measured?;
    let ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    let best = ms.iter().skip(1).copied().fold(f64::INFINITY, f64::min);
    match as_json {
        true => {
            let figures = serde_json::json!({"file_bytes": len, "cold_ms": ms[0], "warm_ms": best});
            println!("{figures}");
        }
        false => println!("{len} bytes: {:.1} ms, and {best:.1} ms once it was read", ms[0]),
    }
    Ok(())
}

fn measure(path: &Path, len: u64) -> Result<(u64, Vec<Duration>), Failure> {
    write(path, len)?;
    let file = File::open(path)?;
    file.sync_all()?;
    fadvise(file.as_fd(), 0, None, Advice::DontNeed)?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let recording = Recording::open(path)?;
        times.push(begun.elapsed());
        let found = recording.info();
        if !found.problems.is_empty() || found.messages() == 0 {
            return Err(format!("the index was not used: {:?}", found.problems).into());
        }
    }
    Ok((file.metadata()?.len(), times))
}

fn write(path: &Path, len: u64) -> Result<(), Failure> {
    let options = WriteOptions::new().compression(None).chunk_size(Some(CHUNK_LEN_BYTES));
    let mut writer = options.create(Sparse { file: File::create_new(path)?, at: 0, end: 0 })?;
    let name = |n: u64| format!("/channel{n}");
    let channels =
        (0..CHANNELS).map(|n| writer.add_channel(0, &name(n), "bytes", &Default::default()));
    let channels: Vec<u16> = channels.collect::<Result<_, _>>()?;
    let message = vec![0; (CHUNK_LEN_BYTES / CHANNELS) as usize];
    for n in 0..len / message.len() as u64 {
        let channel_id = channels[(n % CHANNELS) as usize];
        let header = MessageHeader { channel_id, sequence: n as u32, log_time: n, publish_time: n };
        writer.write_to_known_channel(&header, &message)?;
    }
    writer.finish()?;
    Ok(())
}

/// A file in which long runs of zeros are holes. Its length is the end of the last run, which may exceed the
/// written data.
struct Sparse {
    file: File,
    at: u64,
    end: u64,
}

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_hole = bytes.len() >= HOLE_LEN_BYTES && bytes.iter().all(|byte| *byte == 0);
        if !is_hole {
            self.file.write_all_at(bytes, self.at)?;
        }
        self.at += bytes.len() as u64;
        self.end = self.end.max(self.at);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Sparse {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        self.at = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
