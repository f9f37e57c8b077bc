//! `rnet record`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use rnet::TopicName;
use rnet_monitor::link::own_host;
use rnet_record::{ChunkCompression, RecordOptions, Recorder, Selection};
use rustix::process::{Pid, getppid};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::shared_args::{bytes, seconds};
use crate::signal;

/// Record topics, state and parameters to an MCAP file.
///
/// Records everything unless topics, types, nodes or hosts are given. The recorder does not slow publishers: it is an
/// observer, not a subscriber, and reports messages that it missed by topic and cause. Messages of other hosts cross
/// the network only for a subscriber, so the recorder subscribes to those topics. Ctrl-C finishes the file.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Topics or topic patterns: `*` matches one part of a name, `**` any number of parts
    #[arg(value_name = "TOPIC")]
    pub topics: Vec<String>,
    /// The file; it must not exist yet. Further parts are NAME_1.mcap, NAME_2.mcap
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Stop after this many seconds
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Only messages of this type: `rnet.msgs.Imu`, or its last part
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    /// Only messages published by this node, or by nodes that match this pattern
    #[arg(long = "node", value_name = "PATTERN")]
    pub nodes: Vec<String>,
    /// Only messages published by nodes of this host
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Exclude this topic, or topics that match this pattern
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// Compression of the file's chunks
    #[arg(long, value_name = "HOW", default_value = "zstd")]
    pub compress: Compression,
    /// Record images and point clouds as sent, without conversion to Foxglove messages
    #[arg(long)]
    pub raw: bool,
    /// Write a file for ROS 2: built-in messages are converted to standard ROS 2 messages in CDR; others are listed,
    /// counted and omitted
    #[arg(long, conflicts_with = "raw")]
    pub ros2: bool,
    /// Start a new file at this size in bytes; accepts binary units: 64K, 1M, 1G
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub split_size: Option<u64>,
    /// Start a new file after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub split_time: Option<Duration>,
    /// Delete the oldest files to keep the total size below this many bytes [without --split-size: split at one
    /// eighth of it]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_disk: Option<u64>,
    /// Record only while this topic has a publisher, to a new file each time
    #[arg(long = "while", value_name = "TOPIC")]
    pub while_topic: Option<TopicName>,
    /// Memory for data that waits to be written, in bytes
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = bytes)]
    pub buffer: u64,
    /// Do not record state and parameters
    #[arg(long)]
    pub no_state: bool,
    /// For bindings: the process that records; the recording stops when it exits
    #[arg(long, value_name = "PID", hide = true)]
    pub parent: Option<i32>,
}

/// Compression of the file's chunks.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Compression {
    /// Small files
    Zstd,
    /// Less CPU time
    Lz4,
    /// No compression
    None,
}

impl From<Compression> for ChunkCompression {
    fn from(how: Compression) -> Self {
        match how {
            Compression::Zstd => Self::Zstd,
            Compression::Lz4 => Self::Lz4,
            Compression::None => Self::None,
        }
    }
}

/// Interval between two checks whether the recording has ended or a stop was requested.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between two progress reports: on a terminal, where one line is overwritten, and elsewhere.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
const LOG_PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

pub fn run(context: &mut Context, args: &RecordArgs) -> Outcome {
    let options = options(context, args)?;
    let begun = Instant::now();
    let recorder = Recorder::start(&args.output, options)?;
    let mut progress = ProgressPrinter::new(context.json());
    let mut interrupted = false;
    while !recorder.is_finished() && !args.parent.is_some_and(is_orphaned) {
        progress.print(context, &recorder, begun.elapsed())?;
        if let Err(failure) = signal::sleep(STOP_CHECK_INTERVAL) {
            interrupted = matches!(failure, Failure::Interrupted);
            break;
        }
    }
    progress.finish_line();
    let notes = recorder.take_notes();
    print_notes(context, notes);
    let mut report = recorder.stop()?;
    print_notes(context, std::mem::take(&mut report.notes));
    if context.json() {
        let mut document = report.document(begun.elapsed());
        document["event"] = "end".into();
        context.json_line(&document)?;
    } else {
        for line in report.summary(begun.elapsed()) {
            context.eprintln(format_args!("{line}"));
        }
    }
    if !report.gone.is_empty() {
        let gone: Vec<String> = report.gone.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::Failed(format!(
            "{} was removed while it was being written; its messages are lost",
            gone.join(", ")
        )));
    }
    if interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

fn options(context: &Context, args: &RecordArgs) -> Outcome<RecordOptions> {
    let mut selection = Selection::default();
    for topic in &args.topics {
        selection = selection.topic(topic)?;
    }
    for node in &args.nodes {
        selection = selection.node(node)?;
    }
    for topic in &args.exclude {
        selection = selection.exclude(topic)?;
    }
    selection = args.types.iter().fold(selection, |all, name| all.type_name(name));
    selection = args.hosts.iter().fold(selection, |all, name| all.host(name));
    let mut options = RecordOptions::default();
    options.selection = selection;
    options.compress = args.compress.into();
    options.raw = args.raw;
    options.ros2 = args.ros2;
    options.duration = args.duration;
    options.split_size = args.split_size;
    options.split_time = args.split_time;
    options.max_disk = args.max_disk;
    options.while_topic = args.while_topic.as_ref().map(|topic| topic.as_str().to_owned());
    options.buffer_len_bytes = args.buffer;
    options.state = !args.no_state;
    options.host = Some(own_host(&context.domain()?.snapshot()?));
    options.location = Some(context.existing_location()?);
    options.command_line = command_line();
    Ok(options)
}

/// Whether the process that started the recording is gone.
fn is_orphaned(parent: i32) -> bool {
    getppid().map(Pid::as_raw_nonzero).is_none_or(|pid| pid.get() != parent)
}

/// The command line in shell syntax.
pub fn command_line() -> String {
    let is_plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./:,@".contains(c))
    };
    let quoted = |word: String| match is_plain(&word) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    [vec!["rnet".to_owned()], words.collect()].concat().join(" ")
}

/// The progress that was reported.
struct ProgressPrinter {
    json: bool,
    on_terminal: bool,
    next: Instant,
    /// Whether the terminal shows a progress line, which the next one overwrites.
    has_line: bool,
    messages: u64,
}

impl ProgressPrinter {
    fn new(json: bool) -> ProgressPrinter {
        let on_terminal = std::io::stderr().is_terminal();
        ProgressPrinter { json, on_terminal, next: Instant::now(), has_line: false, messages: 0 }
    }

    fn print(&mut self, context: &mut Context, recorder: &Recorder, since: Duration) -> Outcome {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        let every =
            if self.json || self.on_terminal { PROGRESS_INTERVAL } else { LOG_PROGRESS_INTERVAL };
        self.next = now + every;
        let notes = recorder.take_notes();
        if !notes.is_empty() {
            self.finish_line();
            print_notes(context, notes);
        }
        let progress = recorder.progress();
        if self.json {
            let mut document = progress.document(since);
            document["event"] = "progress".into();
            context.json_line(&document)?;
            return context.flush();
        }
        let new = progress.messages - self.messages.min(progress.messages);
        self.messages = progress.messages;
        let line = progress.line(since, new as f64 / every.as_secs_f64());
        if self.on_terminal {
            // Returns to the start of the line, and clears the rest behind the new text. Ignores a closed
            // stderr.
            let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
            self.has_line = true;
        } else {
            context.eprintln(format_args!("{line}"));
        }
        Ok(())
    }

    fn finish_line(&mut self) {
        if std::mem::take(&mut self.has_line) {
            let _ = writeln!(std::io::stderr());
        }
    }
}

/// Prints notes on stderr. The text that they quote is untrusted.
pub fn print_notes(context: &Context, notes: Vec<String>) {
    notes.iter().for_each(|note| context.note(note));
}
