//! Round trips: a process that sends and waits for each reply, and one that returns each message.

use crate::clock::{now_ns, precise_sleep, sleep_until};
use crate::control::{Inbox, Note};
use crate::message::{self, HEADER_LEN, Header, Kind};
use crate::result::PhaseResult;
use crate::spec::{Event, Order, PingLoad};
use crate::{Error, Net, Publisher, Result, System, Topic};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// A round trip that takes longer is a message lost.
const WAIT_LIMIT: Duration = Duration::from_secs(1);
/// So many lost, and the rest of the phase is not run.
const LOST_LIMIT: u64 = 10;

/// A reply: its time, its header, and whether its content is correct.
struct Reply {
    at_ns: u64,
    header: Header,
    len: usize,
    right: bool,
}

/// Runs the side that measures.
///
/// # Errors
/// The library's own.
pub fn ping(
    system: &dyn System,
    net: &Net,
    there: &Topic,
    back: &Topic,
    loads: &[PingLoad],
    inbox: &Inbox,
) -> Result<()> {
    let mut publisher = system.publisher(net, there)?;
    let (sender, replies) = channel();
    let template = message::patterned(back.max_len.max(HEADER_LEN));
    // The moment of return is taken here, on the receiving thread; that the sending thread is then woken is
    // not part of the round trip.
    let sink = Box::new(move |bytes: &[u8]| forward_reply(bytes, &template, &sender));
    let _subscription = system.subscribe(net, back, sink)?;
    precise_sleep();
    let mut ready = false;
    loop {
        if !ready {
            let mut hello = [0; HEADER_LEN];
            header(Kind::Hello, 0, 0).write(&mut hello);
            publisher.send(&hello)?;
            publisher.flush()?;
            if replies.try_recv().is_ok() {
                ready = true;
                rnet_bench::worker::send_event(&Event::Ready)?;
            }
        }
        // Hellos are repeated until one is back; then there is only to wait.
        match inbox.next((!ready).then_some(Duration::from_millis(5)))? {
            None | Some(Note::Report(..)) => {}
            Some(Note::Order(Order::Stop { .. })) => return Ok(()),
            Some(Note::Order(Order::Go { go, .. })) => {
                let load = loads.get(go).ok_or_else(|| Error::new("no such phase"))?;
                let result = Box::new(trips(&mut *publisher, go, load, &replies)?);
                rnet_bench::worker::send_event(&Event::Done { phase: go, result })?;
            }
        }
    }
}

fn forward_reply(bytes: &[u8], template: &[u8], replies: &Sender<Reply>) {
    let at_ns = now_ns();
    let Some(header) = Header::read(bytes) else { return };
    let right =
        header.kind != Kind::Data || message::content_is_right(bytes, header.number, template);
    // Fails if the worker is closing.
    let _ = replies.send(Reply { at_ns, header, len: bytes.len(), right });
}

fn header(kind: Kind, phase: usize, number: u64) -> Header {
    Header { stamp_ns: now_ns(), kind, phase: phase as u8, publisher: 0, number }
}

fn trips(
    publisher: &mut dyn Publisher,
    phase: usize,
    load: &PingLoad,
    replies: &Receiver<Reply>,
) -> Result<PhaseResult> {
    let longest = load.first_len + load.step_len * (load.count.max(1) as usize - 1);
    let mut template = message::patterned(longest);
    let mut result = PhaseResult::default();
    let start_ns = now_ns();
    for number in 0..load.count {
        sleep_until(start_ns + (load.period_ms * 1e6 * number as f64) as u64);
        let len = load.first_len + load.step_len * number as usize;
        let message = &mut template[..len];
        message::number_pages(message, number);
        let sent = header(Kind::Data, phase, number);
        sent.write(message);
        publisher.send(message)?;
        publisher.flush()?;
        match reply_to(&sent, replies) {
            Some(reply) if reply.len == len && reply.right => {
                result.round_trips.push((len, reply.at_ns - sent.stamp_ns));
            }
            _ => result.round_trips_lost += 1,
        }
        if result.round_trips_lost >= LOST_LIMIT {
            break;
        }
    }
    Ok(result)
}

/// Waits for the reply; others are Hellos still under way and replies that were given up.
fn reply_to(sent: &Header, replies: &Receiver<Reply>) -> Option<Reply> {
    let deadline = Instant::now() + WAIT_LIMIT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let reply = replies.recv_timeout(left).ok()?;
        if reply.header == *sent {
            return Some(reply);
        }
    }
}

/// Runs the side that sends back.
///
/// # Errors
/// The library's own.
pub fn echo(
    system: &dyn System,
    net: &Net,
    there: &Topic,
    back: &Topic,
    inbox: &Inbox,
) -> Result<()> {
    let mut publisher = system.publisher(net, back)?;
    let (sender, failures) = channel();
    let sink = Box::new(move |bytes: &[u8]| {
        let returned = publisher.send(bytes).and_then(|()| publisher.flush());
        if let Err(error) = returned {
            let _ = sender.send(error);
        }
    });
    let _subscription = system.subscribe(net, there, sink)?;
    rnet_bench::worker::send_event(&Event::Ready)?;
    loop {
        if let Ok(error) = failures.try_recv() {
            return Err(error);
        }
        match inbox.next(Some(Duration::from_millis(500)))? {
            None | Some(Note::Report(..)) => {}
            Some(Note::Order(Order::Stop { .. })) => return Ok(()),
            Some(Note::Order(Order::Go { go, .. })) => {
                rnet_bench::worker::send_event(&Event::Done { phase: go, result: Box::default() })?;
            }
        }
    }
}
