//! Messages over byte streams: four bytes of length, little-endian, then the message.

use bench_harness::{Error, Profile, Publisher, Result, Sink, Subscription, Topic};
use std::io::{IoSlice, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

const BATCH_LEN: usize = 32 * 1024;
const READ_LEN: usize = 256 * 1024;
const PREFIX_LEN: usize = 4;

type Stream = Box<dyn Write + Send>;

/// The subscribers' connections; a thread accepts more of them.
#[derive(Clone)]
pub struct Streams(Arc<Mutex<Vec<Stream>>>);

impl Streams {
    /// Accepts connections by `accept` until it fails.
    pub fn accept(mut accept: impl FnMut() -> Result<Stream> + Send + 'static) -> Result<Self> {
        let streams = Self(Arc::default());
        let weak = Arc::downgrade(&streams.0);
        std::thread::Builder::new().name("accept".into()).spawn(move || {
            while let (Ok(stream), Some(streams)) = (accept(), weak.upgrade()) {
                streams.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
            }
        })?;
        Ok(streams)
    }

    fn each(&self, mut write: impl FnMut(&mut Stream) -> std::io::Result<()>) -> Result<()> {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter_mut().try_for_each(&mut write)?;
        Ok(())
    }
}

/// The publisher.
pub struct Sender {
    streams: Streams,
    batch: Vec<u8>,
    batching: bool,
}

impl Sender {
    /// Sends to all of `streams`.
    pub fn new(streams: Streams, topic: &Topic) -> Self {
        let batching = topic.profile == Profile::Throughput;
        Self { streams, batch: Vec::with_capacity(2 * BATCH_LEN), batching }
    }
}

impl Publisher for Sender {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        let prefix = (message.len() as u32).to_le_bytes();
        if self.batching && message.len() < BATCH_LEN {
            self.batch.extend_from_slice(&prefix);
            self.batch.extend_from_slice(message);
            return if self.batch.len() >= BATCH_LEN { self.flush() } else { Ok(()) };
        }
        self.flush()?;
        self.streams.each(|stream| write_both(stream, &prefix, message))
    }

    fn flush(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            let batch = &self.batch;
            self.streams.each(|stream| stream.write_all(batch))?;
            self.batch.clear();
        }
        Ok(())
    }
}

/// Writes prefix and message with one system call where the socket takes them whole.
fn write_both(stream: &mut Stream, prefix: &[u8], message: &[u8]) -> std::io::Result<()> {
    let written = stream.write_vectored(&[IoSlice::new(prefix), IoSlice::new(message)])?;
    if written < PREFIX_LEN {
        stream.write_all(&prefix[written..])?;
        return stream.write_all(message);
    }
    stream.write_all(&message[written - PREFIX_LEN..])
}

type Source = Box<dyn Read + Send>;
type Close = Box<dyn FnOnce()>;

/// Subscribes: a thread for each publisher, which `connect` connects to.
pub fn receive(
    topic: &Topic,
    sink: Sink,
    connect: impl Fn(usize) -> Result<(Source, Close)>,
) -> Result<Subscription> {
    let read_len = READ_LEN.max(topic.max_len + PREFIX_LEN);
    let mut closers: Vec<Close> = Vec::new();
    if topic.publishers == 1 {
        let (source, close) = connect(0)?;
        closers.push(close);
        let thread = spawn(source, read_len, sink)?;
        return Ok(ending(closers, vec![thread]));
    }
    let shared = Arc::new(Mutex::new(sink));
    let mut threads = Vec::new();
    for publisher in 0..topic.publishers {
        let (source, close) = connect(publisher)?;
        closers.push(close);
        let sink = shared.clone();
        let locked: Sink =
            Box::new(move |m| (sink.lock().unwrap_or_else(PoisonError::into_inner))(m));
        threads.push(spawn(source, read_len, locked)?);
    }
    Ok(ending(closers, threads))
}

fn ending(closers: Vec<Close>, threads: Vec<std::thread::JoinHandle<()>>) -> Subscription {
    Subscription::new(move || {
        closers.into_iter().for_each(|close| close());
        threads.into_iter().for_each(|thread| drop(thread.join()));
    })
}

fn spawn(
    mut source: Source,
    read_len: usize,
    mut sink: Sink,
) -> Result<std::thread::JoinHandle<()>> {
    let reading = std::thread::Builder::new().name("read".into());
    Ok(reading.spawn(move || {
        // Ends with the connection; missing messages are counted as lost.
        let _ = read_all(&mut *source, read_len, &mut sink);
    })?)
}

fn read_all(source: &mut dyn Read, read_len: usize, sink: &mut Sink) -> Result<()> {
    let mut buffer = vec![0; read_len];
    let mut filled = 0;
    loop {
        let read = source.read(&mut buffer[filled..])?;
        if read == 0 {
            return Err(Error::new("closed"));
        }
        filled += read;
        let mut at = 0;
        while let Some(message) = next_message(&buffer[at..filled]) {
            sink(message);
            at += PREFIX_LEN + message.len();
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
    }
}

fn next_message(bytes: &[u8]) -> Option<&[u8]> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX_LEN>()?;
    rest.get(..u32::from_le_bytes(*prefix) as usize)
}
