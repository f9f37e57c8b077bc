//! Sending: as fast as possible, or by a schedule.

use crate::clock::{now_ns, sleep_until};
use crate::message::{self, HEADER_LEN, Header, Kind};
use crate::result::Sent;
use crate::spec::{Load, PublishSpec};
use crate::{Publisher, Result};

/// Above this rate a message does not get a sleep of its own: those due within [`TICK_NS`] of each
/// other leave together.
const TICK_ABOVE_HZ: f64 = 15_000.0;
const TICK_NS: u64 = 100_000;

/// A publisher with its buffer and its numbers.
pub struct Stream {
    publisher: Box<dyn Publisher>,
    topic: String,
    index: u16,
    template: Vec<u8>,
    loads: Vec<Option<Load>>,
    /// Messages sent in the phase.
    count: u64,
}

impl Stream {
    /// A stream through `publisher` as specified by `spec`.
    pub fn new(publisher: Box<dyn Publisher>, spec: &PublishSpec) -> Self {
        Self {
            publisher,
            topic: spec.topic.name.clone(),
            index: spec.topic.index as u16,
            template: message::patterned(spec.topic.max_len.max(HEADER_LEN)),
            loads: spec.loads.clone(),
            count: 0,
        }
    }

    /// Its load in a phase, at `rate_hz` where that is given.
    pub fn load(&self, phase: usize, rate_hz: Option<f64>) -> Option<Load> {
        let mut load = self.loads.get(phase).cloned().flatten()?;
        load.rate_hz = rate_hz.or(load.rate_hz);
        Some(load)
    }

    /// Begins a phase without sending.
    pub fn begin(&mut self) {
        self.count = 0;
    }

    /// Sends a Hello (before the first phase) or the End of the phase that is over.
    ///
    /// # Errors
    /// The library's own.
    pub fn mark(&mut self, ended: Option<usize>) -> Result<()> {
        let header = match ended {
            None => header(Kind::Hello, 0, self.index, 0),
            Some(phase) => header(Kind::End, phase, self.index, self.count),
        };
        let mut marker = [0; HEADER_LEN];
        header.write(&mut marker);
        self.publisher.send(&marker)?;
        self.publisher.flush()
    }

    /// Sends the next message of a phase.
    ///
    /// # Errors
    /// The library's own.
    #[inline]
    pub fn send(&mut self, phase: usize, load: &Load) -> Result<()> {
        let number = self.count;
        self.count += 1;
        let index = self.index;
        if load.filled {
            return self.publisher.send_in_place(load.len, &mut |bytes| {
                message::fill(bytes, number);
                header(Kind::Filled, phase, index, number).write(bytes);
            });
        }
        let message = &mut self.template[..load.len];
        if load.len >= HEADER_LEN {
            message::number_pages(message, number);
            // The stamp last: earlier work on the message is the sender's own.
            header(Kind::Data, phase, index, number).write(message);
        }
        self.publisher.send(message)
    }

    /// Runs a load alone, on the calling thread.
    ///
    /// # Errors
    /// The library's own.
    pub fn run(&mut self, phase: usize, load: &Load) -> Result<Sent> {
        match load.rate_hz {
            None => self.flood(phase, load),
            Some(_) => {
                let mut sent = run_schedule(&mut [(self, load.clone())], phase)?;
                Ok(sent.pop().unwrap_or_default())
            }
        }
    }

    fn flood(&mut self, phase: usize, load: &Load) -> Result<Sent> {
        let start_ns = now_ns();
        let end_ns = start_ns + (load.seconds * 1e9) as u64;
        while self.count < load.count {
            // A clock reading costs as much as a message of the fastest systems, so not at each message.
            if (load.len > 4096 || self.count.is_multiple_of(64)) && now_ns() >= end_ns {
                break;
            }
            self.send(phase, load)?;
        }
        self.publisher.flush()?;
        Ok(self.sent(start_ns, 0))
    }

    fn sent(&self, start_ns: u64, lag_max_ns: u64) -> Sent {
        let elapsed_ns = now_ns() - start_ns;
        Sent { topic: self.topic.clone(), count: self.count, elapsed_ns, lag_max_ns }
    }
}

#[inline]
fn header(kind: Kind, phase: usize, publisher: u16, number: u64) -> Header {
    Header { stamp_ns: now_ns(), kind, phase: phase as u8, publisher, number }
}

/// Runs several paced loads on the calling thread, each message when it is due.
///
/// A late message is sent at once and the schedule kept, so that a stall of the sender does not thin
/// out the load behind it; the worst delay is reported.
///
/// # Errors
/// The library's own.
pub fn run_schedule(streams: &mut [(&mut Stream, Load)], phase: usize) -> Result<Vec<Sent>> {
    let slowest_hz = streams.iter().filter_map(|(_, load)| load.rate_hz).fold(f64::MAX, f64::min);
    // At a rate of seconds the first message, too, comes after a period of silence.
    let before_ns = if slowest_hz <= 1.0 { (1e9 / slowest_hz) as u64 } else { 1_000_000 };
    let start_ns = now_ns() + before_ns;
    let mut lag_max_ns = vec![0; streams.len()];
    let period_ns: Vec<f64> =
        streams.iter().map(|(_, load)| 1e9 / load.rate_hz.unwrap_or(1.0)).collect();
    // The streams' first messages are spread over a period, as those of independent nodes are.
    let due = |i: usize, count: u64, of: usize| {
        let shift = if of > 1 { period_ns[i] * i as f64 / of as f64 } else { 0.0 };
        start_ns + (period_ns[i] * count as f64 + shift) as u64
    };
    let of = streams.len();
    let mut tick = 0;
    loop {
        let next = streams
            .iter()
            .enumerate()
            .filter(|(i, (stream, load))| {
                let end_ns = start_ns + (load.seconds * 1e9) as u64;
                stream.count < load.count && due(*i, stream.count, of) < end_ns
            })
            .map(|(i, (stream, _))| (due(i, stream.count, of), i))
            .min();
        let Some((due_ns, i)) = next else { break };
        let (stream, load) = &mut streams[i];
        let mut now = now_ns();
        if now < due_ns {
            stream.publisher.flush()?;
            let fast = load.rate_hz.is_some_and(|rate| rate > TICK_ABOVE_HZ);
            tick = if fast { due_ns.max(tick + TICK_NS) } else { due_ns };
            sleep_until(tick);
            now = now_ns();
        }
        lag_max_ns[i] = lag_max_ns[i].max(now.saturating_sub(due_ns));
        stream.send(phase, load)?;
        if load.rate_hz.is_some_and(|rate| rate <= TICK_ABOVE_HZ) {
            stream.publisher.flush()?;
        }
    }
    let mut sent = Vec::new();
    for ((stream, _), lag) in streams.iter_mut().zip(lag_max_ns) {
        stream.publisher.flush()?;
        sent.push(stream.sent(start_ns, lag));
    }
    Ok(sent)
}
