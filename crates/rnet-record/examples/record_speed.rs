//! Measures the cost of recording: this process records streams of messages of one size, published by another
//! process.
//!
//!     cargo run --release -p rnet-record --example record_speed -- STREAMS HZ LEN_BYTES SECONDS [COMPRESS] [json]
//!
//! COMPRESS is `zstd` (default) or `none`. For comparison, the crate `mcap` alone writes the same number of
//! messages of the same bytes from memory, with the same compression, in chunks of 1 MiB. CPU is that of the
//! whole process, in percent of a core over SECONDS.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::inspect::Location;
use rnet_record::mcap::records::MessageHeader;
use rnet_record::mcap::{Compression, WriteOptions, Writer};
use rnet_record::{ChunkCompression, RecordOptions, Recorder};

const DOMAIN: &str = "record_speed";
const CHUNK_LEN_BYTES: u64 = 1 << 20;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let as_json = args.pop_if(|arg| arg == "json").is_some();
    let compress = match args.pop_if(|arg| ["zstd", "none"].contains(&arg.as_str())).as_deref() {
        Some("none") => ChunkCompression::None,
        _ => ChunkCompression::Zstd,
    };
    let publishes = args.first().is_some_and(|arg| arg == "publish");
    let numbers = args.iter().skip(usize::from(publishes)).map(|arg| arg.parse());
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
    let &[streams, hz, len, seconds] = &numbers[..] else {
        return Err("STREAMS HZ LEN_BYTES SECONDS are wanted".into());
    };
    match publishes {
        true => publish(streams, hz, message(len)),
        false => {
            let figures = measure((streams, hz, len), Duration::from_secs(seconds), compress)?;
            figures.print(as_json);
            Ok(())
        }
    }
}

/// Bytes that compress like sensor data: half of them are the same in each message.
fn message(len: u64) -> Vec<u8> {
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|n| if n % 2 == 0 { 7 } else { random() }).collect()
}

/// Publishes until it is killed.
fn publish(streams: u64, hz: u64, message: Vec<u8>) -> Result<(), Failure> {
    let node = Node::builder("publisher").domain(DOMAIN).open()?;
    let publish = |n: u64| node.publisher::<[u8]>(&format!("/stream{n}")).open();
    let mut publishers: Vec<_> = (0..streams).map(publish).collect::<Result<_, _>>()?;
    let (start, period) = (Instant::now(), Duration::from_nanos(1_000_000_000 / hz));
    for n in 1.. {
        for publisher in &mut publishers {
            publisher.send(&message)?;
        }
        std::thread::sleep((period * n).saturating_sub(start.elapsed()));
    }
    Ok(())
}

struct Publisher(Child);

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Streams, their rate in Hz, and the length of their messages in bytes.
type Load = (u64, u64, u64);

/// CPU in percent of a core.
struct Figures {
    messages: u64,
    len_bytes: u64,
    cpu_percent: f64,
    missing: u64,
    alone_percent: f64,
}

impl Figures {
    fn print(&self, as_json: bool) {
        let Figures { messages, len_bytes, cpu_percent, missing, alone_percent } = self;
        if as_json {
            let figures = serde_json::json!({
                "messages": messages,
                "message_len_bytes": len_bytes,
                "cpu_percent": cpu_percent,
                "missing": missing,
                "mcap_alone_cpu_percent": alone_percent,
            });
            println!("{figures}");
            return;
        }
        println!(
            "recorder: {messages} messages of {len_bytes} bytes, {cpu_percent:.1} % of a core, {missing} missing"
        );
        println!("mcap alone: {alone_percent:.1} % of a core");
    }
}

fn measure(load: Load, time: Duration, compress: ChunkCompression) -> Result<Figures, Failure> {
    let dir = std::env::temp_dir().join(format!("record-speed-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    let location = Location::new(Some(DOMAIN), None, None)?;
    let measured = measure_in(&dir, location.clone(), load, time, compress);
    std::fs::remove_dir_all(location.path())?;
    std::fs::remove_dir_all(&dir)?;
    measured
}

fn measure_in(
    dir: &Path,
    location: Location,
    (streams, hz, len): Load,
    time: Duration,
    compress: ChunkCompression,
) -> Result<Figures, Failure> {
    let args = [streams, hz, len, 0].map(|number| number.to_string());
    let publisher = Command::new(std::env::current_exe()?).arg("publish").args(&args).spawn()?;
    let publisher = Publisher(publisher);
    let mut options = RecordOptions::default();
    options.location = Some(location);
    options.compress = compress;
    let recorder = Recorder::start(&dir.join("run.mcap"), options)?;
    std::thread::sleep(Duration::from_secs(1));
    let (before, cpu) = (recorder.progress().messages, cpu_time());
    std::thread::sleep(time);
    let (after, cpu) = (recorder.progress().messages, cpu_time() - cpu);
    let report = recorder.stop()?;
    drop(publisher);
    let percent = |cpu: Duration| 100.0 * cpu.as_secs_f64() / time.as_secs_f64();
    let messages = after - before;
    let (cpu_percent, begun) = (percent(cpu), cpu_time());
    alone(&dir.join("alone.mcap"), messages, &message(len), compress)?;
    Ok(Figures {
        messages,
        len_bytes: len,
        cpu_percent,
        missing: report.losses.total(),
        alone_percent: percent(cpu_time() - begun),
    })
}

/// Writes messages with the crate `mcap` alone.
fn alone(
    path: &Path,
    messages: u64,
    message: &[u8],
    compress: ChunkCompression,
) -> Result<(), Failure> {
    let zstd = (compress == ChunkCompression::Zstd).then_some(Compression::Zstd);
    let options = WriteOptions::new().compression(zstd).chunk_size(Some(CHUNK_LEN_BYTES));
    let file = std::io::BufWriter::new(std::fs::File::create_new(path)?);
    let mut writer = Writer::with_options(file, options)?;
    let channel_id = writer.add_channel(0, "/stream", "bytes", &Default::default())?;
    for n in 0..messages {
        let header = MessageHeader { channel_id, sequence: n as u32, log_time: n, publish_time: n };
        writer.write_to_known_channel(&header, message)?;
    }
    writer.finish()?;
    Ok(())
}

/// CPU time of this process so far.
fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
