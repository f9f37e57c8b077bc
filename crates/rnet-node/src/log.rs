//! Log lines on `/log`.

mod limit;

use std::fmt::Display;
use std::io::Write;
use std::panic::Location;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use crate::NodeCore;
use crate::sync::lock;
use rnet_core::{Error, Result, TopicName};

use crate::typed::Publisher;
use crate::{PublisherBuilder, msgs};
use limit::{
    Limiter, MAX_LINES_PER_S_PER_LOCATION, MAX_LINES_PER_S_PER_NODE, SourceLocation,
    SuppressedLines,
};

/// The topic of all log lines, of type `foxglove.Log`.
pub const LOG_TOPIC: &str = "/log";

/// Lines of a node that late joiners receive.
const HISTORY_LINES: u32 = 100;
/// A longer text is truncated at the end: text and names together must fit into the publisher's log.
const MAX_TEXT_LEN_BYTES: usize = 3_000;
/// A longer file name is truncated at the start.
const MAX_FILE_LEN_BYTES: usize = 256;

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LogLevel {
    /// Details for developers.
    Debug = 1,
    /// As expected.
    Info = 2,
    /// Unexpected, but the work continues.
    Warning = 3,
    /// Something could not be done.
    Error = 4,
    /// The program ends.
    Fatal = 5,
}

impl LogLevel {
    const ALL: [LogLevel; 5] =
        [LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error, LogLevel::Fatal];

    /// `debug`, `info`, `warning`, `error` or `fatal`.
    pub fn name(self) -> &'static str {
        ["debug", "info", "warning", "error", "fatal"][self as usize - 1]
    }

    /// The level of a `foxglove.Log.level` number; `None` for UNKNOWN and for undefined numbers.
    pub fn from_number(number: i32) -> Option<LogLevel> {
        LogLevel::ALL.into_iter().find(|level| *level as i32 == number)
    }
}

impl FromStr for LogLevel {
    type Err = Error;

    /// # Errors
    /// `BadValue` for other words than those of [`LogLevel::name`] and `warn`.
    fn from_str(word: &str) -> Result<LogLevel> {
        let word = if word == "warn" { "warning" } else { word };
        LogLevel::ALL.into_iter().find(|level| level.name() == word).ok_or_else(|| {
            Error::bad_value(
                "log level",
                format!("it is {word:?}; it must be debug, info, warning, error or fatal"),
            )
        })
    }
}

/// The log of a node: text lines on the topic `/log` and on stderr.
///
/// Logging never blocks and returns no errors: a line that cannot be published goes to stderr. Late
/// subscribers get the last 100 lines of each node. Logging is rate limited: 100 lines per second from one
/// place in the source, and 1,000 from a node. Suppressed lines are counted, and reported once a second.
/// Clones are handles to the same log, and keep its node alive.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("log{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
/// node.log().info("the arm is at home");
/// node.log().warning(format_args!("joint {} is at {:.1} °C", 3, 71.5));
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # std::fs::remove_dir_all(path).ok();
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Logger(Arc<LogState>);

/// A handle to the log of a node that does not keep the node alive, for objects that live as long as the
/// process.
#[derive(Clone, Debug)]
pub struct WeakLogger(Weak<LogState>);

struct LogState {
    core: Arc<NodeCore>,
    level: AtomicU8,
    suppressed_count: AtomicU64,
    limiter: Mutex<Limiter>,
    publisher: Mutex<LogPublisher>,
}

/// The publisher of log lines.
#[derive(Default)]
enum LogPublisher {
    /// No line was logged yet.
    #[default]
    Unopened,
    Open {
        publisher: Box<Publisher<msgs::Log>>,
        failure_reported: bool,
    },
    /// The publisher could not be opened, which was reported.
    Failed,
}

impl Logger {
    pub(crate) fn new(core: &Arc<NodeCore>, level: LogLevel) -> Logger {
        Logger(Arc::new(LogState {
            core: core.clone(),
            level: AtomicU8::new(level as u8),
            suppressed_count: AtomicU64::new(0),
            limiter: Mutex::new(Limiter::new(Instant::now())),
            publisher: Mutex::default(),
        }))
    }

    /// Logs details for developers.
    #[track_caller]
    pub fn debug(&self, text: impl Display) {
        self.log(LogLevel::Debug, text);
    }

    /// Logs an expected event.
    #[track_caller]
    pub fn info(&self, text: impl Display) {
        self.log(LogLevel::Info, text);
    }

    /// Logs an unexpected event; the work continues.
    #[track_caller]
    pub fn warning(&self, text: impl Display) {
        self.log(LogLevel::Warning, text);
    }

    /// Logs that something could not be done.
    #[track_caller]
    pub fn error(&self, text: impl Display) {
        self.log(LogLevel::Error, text);
    }

    /// Logs that the program ends; the caller ends it.
    #[track_caller]
    pub fn fatal(&self, text: impl Display) {
        self.log(LogLevel::Fatal, text);
    }

    /// Logs a line of this level.
    #[track_caller]
    pub fn log(&self, level: LogLevel, text: impl Display) {
        let caller = Location::caller();
        self.log_from(level, text, caller.file(), caller.line());
    }

    /// As [`Logger::log`], with an explicit source location; for bindings.
    pub fn log_from(&self, level: LogLevel, text: impl Display, file: &str, line: u32) {
        if self.is_enabled(level) {
            self.0.log(level, text, file, line, true);
        }
    }

    /// Publishes a line of another logging library: ignores the node's level and does not print to stderr.
    pub fn publish(&self, level: LogLevel, text: impl Display, file: &str, line: u32) {
        self.0.log(level, text, file, line, false);
    }

    /// The minimum level: lines below it are dropped. The default is `RNET_LOG`, or info.
    pub fn level(&self) -> LogLevel {
        let number = self.0.level.load(Ordering::Relaxed);
        LogLevel::from_number(i32::from(number)).unwrap_or(LogLevel::Info)
    }

    /// Drops lines below `level` from now on.
    pub fn set_level(&self, level: LogLevel) {
        self.0.level.store(level as u8, Ordering::Relaxed);
    }

    /// Whether a line of this level is logged, apart from the rate limits.
    pub fn is_enabled(&self, level: LogLevel) -> bool {
        level >= self.level()
    }

    /// Number of lines suppressed by the rate limit since the node was opened.
    pub fn suppressed_count(&self) -> u64 {
        self.0.suppressed_count.load(Ordering::Relaxed)
    }

    /// A handle that does not keep the node alive.
    pub fn downgrade(&self) -> WeakLogger {
        WeakLogger(Arc::downgrade(&self.0))
    }
}

impl WeakLogger {
    /// As [`Logger::publish`]; returns false once the node is closed.
    pub fn publish(&self, level: LogLevel, text: impl Display, file: &str, line: u32) -> bool {
        self.write(level, text, (file, line), false)
    }

    /// As [`WeakLogger::publish`], and prints to stderr if `to_stderr` is set.
    pub(crate) fn write(
        &self,
        level: LogLevel,
        text: impl Display,
        (file, line): (&str, u32),
        to_stderr: bool,
    ) -> bool {
        let shared = self.0.upgrade();
        if let Some(shared) = &shared {
            shared.log(level, text, file, line, to_stderr);
        }
        shared.is_some()
    }
}

crate::debug_by!(
    [] Logger, "Logger", |this| "level": this.level(), "suppressed_count": this.suppressed_count()
);

crate::debug_by!([] LogState, "LogState", |this| "node": this.name());

impl LogState {
    fn name(&self) -> &str {
        self.core.state.own.name().as_str()
    }

    fn log(&self, level: LogLevel, text: impl Display, file: &str, line: u32, to_stderr: bool) {
        // In a forked child another thread may have held a lock; the topic belongs to the parent.
        if self.core.state.fork_guard().is_from_parent() {
            let text = truncate(text.to_string());
            return print(level, self.name(), &text);
        }
        let location = SourceLocation { file: file_tail(file).to_owned(), line };
        let now = Instant::now();
        let mut limiter = lock(&self.limiter);
        let due = limiter.take_due(now);
        let admitted = limiter.admit(&location, level, now);
        drop(limiter);
        self.report(due, to_stderr);
        if admitted {
            // Not under a lock: the value that formats the text may log, too.
            self.write(level, truncate(text.to_string()), location, to_stderr);
        } else {
            self.suppressed_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn report(&self, held: Vec<SuppressedLines>, to_stderr: bool) {
        for SuppressedLines { location, level, count } in held {
            let lines = if count == 1 { "line" } else { "lines" };
            let from = match location.line {
                0 => location.file.clone(),
                line => format!("{}:{line}", location.file),
            };
            let text = format!(
                "{count} {lines} from {from} suppressed: at most {MAX_LINES_PER_S_PER_LOCATION} per second from one place, \
                 {MAX_LINES_PER_S_PER_NODE} from a node"
            );
            self.write(level, text, location, to_stderr);
        }
    }

    fn write(&self, level: LogLevel, text: String, location: SourceLocation, to_stderr: bool) {
        if to_stderr {
            print(level, self.name(), &text);
        }
        let message = msgs::Log {
            timestamp: Some(msgs::timestamp_now()),
            level: level as i32,
            message: text,
            name: self.name().to_owned(),
            file: location.file,
            line: location.line,
        };
        let published = lock(&self.publisher).publish(&self.core, &message);
        if let Err(error) = published {
            print(
                LogLevel::Warning,
                self.name(),
                &format!("log lines are not published on {LOG_TOPIC}: {error}"),
            );
            if !to_stderr {
                print(level, self.name(), &message.message);
            }
        }
    }
}

impl LogPublisher {
    /// # Errors
    /// The first failure; later failures of the same kind are not returned.
    fn publish(&mut self, core: &Arc<NodeCore>, message: &msgs::Log) -> Result<()> {
        if let LogPublisher::Unopened = self {
            let topic = TopicName::new(LOG_TOPIC);
            let log = topic.map(|topic| PublisherBuilder::at(core, topic));
            match log.and_then(|log| log.transient_local(HISTORY_LINES).open()) {
                Ok(opened) => {
                    let publisher = Box::new(opened);
                    *self = LogPublisher::Open { publisher, failure_reported: false };
                }
                Err(error) => {
                    *self = LogPublisher::Failed;
                    return Err(error);
                }
            }
        }
        if let LogPublisher::Open { publisher, failure_reported } = self
            && let Err(error) = publisher.send(message)
            && !std::mem::replace(failure_reported, true)
        {
            return Err(error);
        }
        Ok(())
    }
}

impl Drop for LogState {
    fn drop(&mut self) {
        if !self.core.state.fork_guard().is_from_parent() {
            let held = lock(&self.limiter).take_all();
            self.report(held, true);
        }
    }
}

/// The text for a terminal: further lines are indented, so that they cannot look like other entries, and
/// control characters are escaped.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\n    "),
            '\t' => out.push(c),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Prints a line in ROS format. Ignores a closed stderr.
fn print(level: LogLevel, node: &str, text: &str) {
    let now = msgs::timestamp_now();
    let level = match level {
        LogLevel::Warning => "WARN".to_owned(),
        level => level.name().to_uppercase(),
    };
    let text = printable(text);
    let line = format!("[{level}] [{}.{:09}] [{node}]: {text}\n", now.seconds, now.nanos);
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn truncate(mut text: String) -> String {
    let mut end = text.len().min(MAX_TEXT_LEN_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end < text.len() {
        let more = text.len() - end;
        text.truncate(end);
        text += &format!(" [{more} more bytes]");
    }
    text
}

fn file_tail(file: &str) -> &str {
    let mut begin = file.len().saturating_sub(MAX_FILE_LEN_BYTES);
    while !file.is_char_boundary(begin) {
        begin += 1;
    }
    &file[begin..]
}

/// The level in `RNET_LOG`, or info.
pub(crate) fn level_from_env() -> Result<LogLevel> {
    match std::env::var_os("RNET_LOG").filter(|word| !word.is_empty()) {
        None => Ok(LogLevel::Info),
        Some(word) => word.to_string_lossy().parse().map_err(|_| {
            Error::bad_value(
                "RNET_LOG",
                format!("it is {word:?}; it must be debug, info, warning, error or fatal"),
            )
        }),
    }
}
