//! The trait of a compared system, and its parameters.

use crate::Net;
use std::fmt;

/// An error of a driver, in words for the report.
#[derive(Clone, Debug)]
pub struct Error(String);

impl Error {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lets `?` turn any library's error into its text. (Hence [`Error`] itself is not a `std` error: the two
/// conversions would meet.)
impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The result of a driver's call.
pub type Result<T> = std::result::Result<T, Error>;

/// The workload's requirement; a driver sets its library up for it as that library's documentation advises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// As many messages as possible, without loss: with batching and back-pressure.
    Throughput,
    /// Each message as soon as possible: no batching, `send` passes it on at once.
    Latency,
}

/// How urgent a topic is. A driver uses the best means its system has: priorities, an own socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Ordinary data.
    Bulk,
    /// Events that must not queue after ordinary data.
    Urgent,
}

/// A topic as one endpoint sees it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Topic {
    /// Its name: lower-case letters, digits and `_`, without a slash.
    pub name: String,
    /// The workload's requirement.
    pub profile: Profile,
    /// How urgent it is.
    pub lane: Lane,
    /// The longest message, in bytes.
    pub max_len: usize,
    /// How many publishers the topic has; they are numbered from 0.
    pub publishers: usize,
    /// How many subscribers the topic has; they are numbered from 0.
    pub subscribers: usize,
    /// The number of this endpoint among the publishers, or among the subscribers.
    pub index: usize,
}

/// How a system is described in the report.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct About {
    /// The name in tables, for instance "ZeroMQ PUB/SUB tcp".
    pub label: String,
    /// The client library and its language, for instance "libzmq through the crate zmq (Rust)".
    pub client: String,
    /// Each setting that differs from the library's default, and where its documentation advises it.
    pub settings: Vec<String>,
}

/// A server that a system needs.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Broker {
    /// The program, searched in `PATH` and in `bench/.tools/bin`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Files to write before it starts: path and content.
    pub files: Vec<(std::path::PathBuf, String)>,
}

/// Receives each message: its bytes, in place where the library gives a view of them.
///
/// Called on whichever thread the library delivers on.
pub type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// One system under comparison, in one configuration.
pub trait System: Sync {
    /// The name on the command line and in raw data: lower-case letters, digits and `-`.
    fn id(&self) -> &'static str;

    /// How the report describes it.
    fn about(&self) -> About;

    /// The language in which it sends and receives: "rust" or "c++".
    fn language(&self) -> &'static str {
        "rust"
    }

    /// The version of the library in use.
    ///
    /// # Errors
    /// If the system cannot run here; the text names the missing part and how to install it.
    fn version(&self) -> Result<String>;

    /// The server it needs, listening on `net`'s broker address and port and keeping its files in its `dir`.
    fn broker(&self, _net: &Net, _port: u16) -> Option<Broker> {
        None
    }

    /// Whether its driver carries messages between hosts, as set in [`Net::host`].
    fn spans_hosts(&self) -> bool {
        false
    }

    /// A process, beside the server, that connects each of two hosts with the other.
    fn link(&self, _net: &Net) -> Option<Broker> {
        None
    }

    /// Why it may lose messages when they come faster than they are read, where that is so by its design and
    /// no setting changes it; the report shows it and counts the losses.
    fn may_lose(&self) -> Option<&'static str> {
        None
    }

    /// Whether it can carry such a topic.
    ///
    /// # Errors
    /// Why not, for instance "PAIR joins exactly two".
    fn supports(&self, _topic: &Topic) -> Result<()> {
        Ok(())
    }

    /// Opens a publisher. Messages sent before a subscriber has joined may be lost.
    ///
    /// # Errors
    /// The library's own.
    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>>;

    /// Subscribes: from now on `sink` gets each message. Returns without waiting for a publisher
    /// where the library allows it.
    ///
    /// # Errors
    /// The library's own.
    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription>;
}

thread_local! {
    static SCRATCH: std::cell::Cell<Vec<u8>> = const { std::cell::Cell::new(Vec::new()) };
}

/// The sending end.
pub trait Publisher: Send {
    /// Sends one message. Waits while the system has no capacity; [`Profile::Throughput`] may collect
    /// messages until [`flush`](Self::flush).
    ///
    /// # Errors
    /// The library's own. A permanently refused message is an error.
    fn send(&mut self, message: &[u8]) -> Result<()>;

    /// Hands over what `send` has collected.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Sends a message of `len` bytes that `fill` writes, in the system's own memory where it lends
    /// some. `fill` writes each byte and reads none.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        // One buffer for all messages, as a user of such a system keeps.
        let mut message = SCRATCH.take();
        message.resize(message.len().max(len), 0);
        fill(&mut message[..len]);
        let sent = self.send(&message[..len]);
        SCRATCH.set(message);
        sent
    }
}

/// A running subscription. Dropping it ends its threads and removes what the system would otherwise
/// leave behind in the file system.
pub struct Subscription {
    stop: Option<Box<dyn FnOnce()>>,
}

impl Subscription {
    /// A subscription that `stop` ends.
    pub fn new(stop: impl FnOnce() + 'static) -> Self {
        Self { stop: Some(Box::new(stop)) }
    }

    /// Keeps `held` (a library's subscriber, a runtime) until the subscription is dropped.
    pub fn holding(held: impl Sized + 'static) -> Self {
        Self::new(move || drop(held))
    }

    /// A subscription that is a thread running `body`, which returns soon after `stop` reads true.
    pub fn thread(
        name: &str,
        body: impl FnOnce(&std::sync::atomic::AtomicBool) + Send + 'static,
    ) -> Result<Self> {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let seen = stop.clone();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || body(&seen))?;
        Ok(Self::new(move || {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            let _ = thread.join();
        }))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop();
        }
    }
}
