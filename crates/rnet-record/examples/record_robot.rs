//! Measures the cost of recording the robot of `rnet demo`, alone or with a camera of 1 GB/s.
//!
//!     cargo run --release -p rnet-record --example record_robot -- RNET SECONDS [camera] [json]
//!
//! RNET is the command `rnet`, which runs the robot. The example fails if a message is neither recorded nor
//! counted as missing. For each publisher, recorded and missing messages have to cover all its numbers, from
//! the first one that the recorder has seen to the last one sent when the recording was stopped. The camera
//! starts after the recorder, so all messages that it reports as sent have to be covered. CPU is that of the
//! recorder, in percent of a core. For comparison, the crate `mcap` alone writes the messages of the
//! recording again, in the same way.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::inspect::Location;
use rnet_record::mcap::records::MessageHeader;
use rnet_record::mcap::{Compression, WriteOptions, Writer};
use rnet_record::read::{Message, Recording, Select};
use rnet_record::{ChunkCompression, Progress, RecordOptions, Recorder};
use serde_json::{Value, json};

const CAMERA: &str = "/bench/camera";
/// 1 GB/s.
const FRAME_LEN_BYTES: usize = 16_666_667;
const FRAMES_HZ: u32 = 60;
/// Topic of the messages that the recorder missed (docs/design/recording.md).
const MISSED_TOPIC: &str = "/_rnet/recording/missed";
const START_TIMEOUT: Duration = Duration::from_secs(60);
const CHUNK_LEN_BYTES: u64 = 1 << 20;
/// Maximum size of the recorded messages in memory that `mcap` alone writes again.
const AGAIN_LEN_BYTES: usize = 1 << 30;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, domain] = &args[..]
        && word == "publish"
    {
        return publish(domain);
    }
    let mut is = |word: &str| {
        let at = args.iter().position(|arg| arg == word);
        at.map(|at| args.remove(at)).is_some()
    };
    let (with_camera, as_json) = (is("camera"), is("json"));
    let [program, seconds] = &args[..] else {
        return Err("RNET SECONDS [camera] [json] are wanted".into());
    };
    let time = Duration::from_secs(seconds.parse()?);
    let domain = format!("record_robot_{}", std::process::id());
    let location = Location::new(Some(&domain), None, None)?;
    let dir = std::env::temp_dir().join(&domain);
    std::fs::create_dir(&dir)?;
    let figures = measure(Path::new(program), &location, &dir, time, with_camera);
    std::fs::remove_dir_all(&dir)?;
    let _ = std::fs::remove_dir_all(location.path());
    let figures = figures?;
    match as_json {
        true => println!("{figures}"),
        false => println!("{figures:#}"),
    }
    match figures["uncounted"] == 0 {
        true => Ok(()),
        false => Err("messages are neither recorded nor counted as missing".into()),
    }
}

/// Publishes frames until its stdin is closed, and prints their number.
fn publish(domain: &str) -> Result<(), Failure> {
    let node = Node::builder("bench_camera").domain(domain).open()?;
    let mut publisher = node.publisher::<[u8]>(CAMERA).open()?;
    println!("ready");
    let (sender, is_over) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let _ = sender.send(line.is_ok());
        }
        drop(sender);
    });
    // Waits for the start signal.
    is_over.recv()?;
    let (start, period) = (Instant::now(), Duration::from_secs(1) / FRAMES_HZ);
    let mut sent = 0_u32;
    while is_over.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
        let mut frame = publisher.loan(FRAME_LEN_BYTES)?;
        // A camera writes to the memory by itself; here a line of each frame is changed.
        frame[..64].fill(sent as u8);
        frame.send().map_err(|(_, error)| error)?;
        sent += 1;
        std::thread::sleep((period * sent).saturating_sub(start.elapsed()));
    }
    println!("{sent}");
    Ok(())
}

/// A process that is killed when its handle is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The camera process, and its stdout.
struct Camera(Process, BufReader<std::process::ChildStdout>);

impl Camera {
    fn start(location: &Location) -> Result<Camera, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["publish", location.id().as_str()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or("it has a stdout")?);
        let mut camera = Camera(Process(child), out);
        camera.line()?;
        Ok(camera)
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.1.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let stdin = self.0.0.stdin.as_mut().ok_or("it has a stdin")?;
        Ok(writeln!(stdin, "begin")?)
    }

    /// Closes stdin, and returns the number of frames sent.
    fn end(&mut self) -> Result<u64, Failure> {
        drop(self.0.0.stdin.take());
        Ok(self.line()?.parse()?)
    }
}

fn measure(
    program: &Path,
    location: &Location,
    dir: &Path,
    time: Duration,
    with_camera: bool,
) -> Result<Value, Failure> {
    let seconds = (time.as_secs() + 15).to_string();
    let mut demo = Command::new(program);
    demo.args(["demo", "--model", "embedded", "--seconds", &seconds]);
    demo.args(["--domain", location.id().as_str()]);
    let demo = Process(demo.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    wait_until_running(location)?;
    let mut camera = with_camera.then(|| Camera::start(location)).transpose()?;
    let mut options = RecordOptions::default();
    options.location = Some(location.clone());
    let file = dir.join("run.mcap");
    let recorder = Recorder::start(&file, options)?;
    if let Some(camera) = &mut camera {
        camera.begin()?;
    }
    std::thread::sleep(Duration::from_secs(1));
    let (before, cpu, begun) = (recorder.progress(), cpu_time(), Instant::now());
    std::thread::sleep(time);
    let (after, cpu, took) = (recorder.progress(), cpu_time() - cpu, begun.elapsed());
    let frames = camera.as_mut().map(Camera::end).transpose()?;
    let sent = sent(location)?;
    let report = recorder.stop()?;
    drop(demo);
    drop(camera);
    let percent = |cpu: Duration, took: Duration| 100.0 * cpu.as_secs_f64() / took.as_secs_f64();
    let rate = |of: fn(&Progress) -> u64| {
        of(&after).saturating_sub(of(&before)) as f64 / took.as_secs_f64()
    };
    let (account, again) = account(&file, &sent, frames)?;
    let cpu_alone = alone(&dir.join("alone.mcap"), &again)?;
    let again_s = again.len() as f64 / rate(|p| p.messages).max(1.0);
    Ok(json!({
        "seconds": took.as_secs_f64(),
        "camera": with_camera,
        "messages_per_s": rate(|p| p.messages),
        "bytes_per_s": rate(|p| p.bytes),
        "cpu_percent": percent(cpu, took),
        "mcap_alone_cpu_percent": percent(cpu_alone, Duration::from_secs_f64(again_s)),
        "recorded": report.messages,
        "file_bytes": report.file_bytes,
        "missing": report.losses.total(),
        "missing_by_cause": report.losses.by_cause().into_iter().map(|(c, n)| (c.name(), n)).collect::<BTreeMap<_, _>>(),
        "frames_sent": frames,
        "publishers": account.publishers,
        "uncounted": account.uncounted,
    }))
}

/// Waits until the robot is running.
fn wait_until_running(location: &Location) -> Result<(), Failure> {
    let mut domain = location.domain()?;
    let end = Instant::now() + START_TIMEOUT;
    while Instant::now() < end {
        let of = domain.topic_snapshot("/camera/image")?;
        if of.publishers.iter().any(|publisher| publisher.sent > 30) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err("the robot of `rnet demo` does not run".into())
}

/// The number of messages that each publisher has sent, by its id.
fn sent(location: &Location) -> Result<HashMap<u64, u64>, Failure> {
    let snapshot = location.domain()?.snapshot()?;
    Ok(snapshot.publishers.iter().map(|publisher| (publisher.id, publisher.sent)).collect())
}

struct Account {
    /// Publishers whose messages were checked.
    publishers: usize,
    /// Messages that are neither recorded nor counted, or both.
    uncounted: u64,
}

/// The recorded data of a publisher.
#[derive(Default)]
struct PublisherAccount {
    topic: String,
    first: Option<u64>,
    /// One more than the last number that was recorded or counted.
    end: u64,
    messages: u64,
}

impl PublisherAccount {
    fn add(&mut self, first: u64, count: u64) {
        self.first.get_or_insert(first);
        self.end = self.end.max(first + count);
        self.messages += count;
    }
}

/// Checks each message of each publisher. Also returns the first messages of the file.
fn account(
    file: &Path,
    sent: &HashMap<u64, u64>,
    frames: Option<u64>,
) -> Result<(Account, Vec<Message>), Failure> {
    let recording = Recording::open(file)?;
    let (mut of, mut again, mut len) = (HashMap::<u64, PublisherAccount>::new(), Vec::new(), 0);
    for message in recording.messages(Select { with_reserved: true, ..Select::default() }) {
        let message = message?;
        if message.channel.topic == MISSED_TOPIC {
            let said: Value = serde_json::from_slice(message.data())?;
            let publisher = said["publisher"].as_str().ok_or("no publisher")?.parse()?;
            let number = |key: &str| said[key].as_u64().ok_or("no number");
            of.entry(publisher).or_default().add(number("first_seq")?, number("count")?);
        } else if !message.channel.is_reserved() {
            let source = message.channel.source()?;
            let one = of.entry(source.publisher).or_default();
            one.topic.clone_from(&message.channel.topic);
            one.add(message.sequence().into(), 1);
        }
        if len < AGAIN_LEN_BYTES {
            len += message.data().len();
            again.push(message);
        }
    }
    let mut uncounted = 0;
    for (publisher, one) in &of {
        let first = one.first.unwrap_or(0);
        let (mut from, mut to) = (first, one.end);
        match frames.filter(|_| one.topic == CAMERA) {
            Some(frames) => (from, to) = (0, frames),
            // A publisher that exited before is missing in the final snapshot.
            None => to = to.max(sent.get(publisher).copied().unwrap_or(0)),
        }
        let lacking = (to - from).abs_diff(one.messages);
        if lacking > 0 {
            eprintln!("{}: {} of {from} to {to} are accounted for", one.topic, one.messages);
        }
        uncounted += lacking;
    }
    Ok((Account { publishers: of.len(), uncounted }, again))
}

/// Writes messages with the crate `mcap` alone, with the same compression; returns the CPU time.
fn alone(path: &Path, messages: &[Message]) -> Result<Duration, Failure> {
    let cpu = cpu_time();
    let zstd =
        (RecordOptions::default().compress == ChunkCompression::Zstd).then_some(Compression::Zstd);
    let options = WriteOptions::new()
        .compression(zstd)
        .compression_level(1)
        .chunk_size(Some(CHUNK_LEN_BYTES));
    let file = std::io::BufWriter::new(std::fs::File::create_new(path)?);
    let mut writer = Writer::with_options(file, options)?;
    let mut channels = HashMap::new();
    for message in messages {
        let id = message.channel.id;
        if let std::collections::hash_map::Entry::Vacant(entry) = channels.entry(id) {
            entry.insert(writer.add_channel(
                0,
                &message.channel.topic,
                "bytes",
                &BTreeMap::new(),
            )?);
        }
        let header = MessageHeader { channel_id: channels[&id], ..*message.header() };
        writer.write_to_known_channel(&header, message.data())?;
    }
    writer.finish()?;
    Ok(cpu_time() - cpu)
}

/// CPU time of this process so far.
fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
