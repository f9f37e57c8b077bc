//! The sending end.

use crate::{Wake, service};
use bench_harness::{Net, Profile, Result, Topic};
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher as Port;
use iceoryx2::prelude::*;
use std::mem::MaybeUninit;

/// In a flood, a notification covers this many messages,
const NOTIFY_EVERY: usize = 128;
/// or this part of a subscriber's queue.
const QUEUE_PART: usize = 8;

struct Publisher {
    samples: Port<ipc::Service, [u8], ()>,
    wake: Option<Notifier<ipc::Service>>,
    notify_every: usize,
    /// Messages sent since the last notification.
    unnotified: usize,
    // Last, so that the ports are dropped before their services and their node.
    _endpoint: service::Endpoint,
}

// SAFETY: an `ipc::Service` counts references without atomics, so all that hold one must be on one thread at
// a time. They are all in this struct: the ports, their services and their node were made for it alone in
// `open`, none was passed on, and a loaned sample lives only during a call of `send`. They therefore move
// together, as `Publisher: Send` is used: once, before the first send.
unsafe impl Send for Publisher {}

/// A publisher on a node of its own.
pub(crate) fn open(
    net: &Net,
    topic: &Topic,
    wake: Wake,
) -> Result<Box<dyn bench_harness::Publisher>> {
    let endpoint = service::join(net, topic, wake)?;
    let samples = endpoint
        .samples
        .publisher_builder()
        .initial_max_slice_len(topic.max_len.max(1))
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()?;
    let wake = endpoint.events.as_ref().map(|events| events.notifier_builder().create());
    Ok(Box::new(Publisher {
        samples,
        wake: wake.transpose()?,
        notify_every: notify_every(topic),
        unnotified: 0,
        _endpoint: endpoint,
    }))
}

/// Sending waits inside of iceoryx2 while a subscriber's queue is full, and no thread may sleep then. A
/// subscriber sleeps only when it has found its queue empty. That queue, of this publisher alone, holds
/// several times as many messages as go without a notification: one comes before it is full.
fn notify_every(topic: &Topic) -> usize {
    match topic.profile {
        Profile::Latency => 1,
        Profile::Throughput => NOTIFY_EVERY.min(service::queue_messages(topic) / QUEUE_PART),
    }
}

impl Publisher {
    fn sent(&mut self) -> Result<()> {
        self.unnotified += 1;
        if self.unnotified >= self.notify_every { self.notify() } else { Ok(()) }
    }

    fn notify(&mut self) -> Result<()> {
        self.unnotified = 0;
        if let Some(notifier) = &self.wake {
            notifier.notify()?;
        }
        Ok(())
    }
}

impl bench_harness::Publisher for Publisher {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.samples.loan_slice_uninit(message.len())?.write_from_slice(message).send()?;
        self.sent()
    }

    fn flush(&mut self) -> Result<()> {
        if self.unnotified > 0 { self.notify() } else { Ok(()) }
    }

    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let mut sample = self.samples.loan_slice_uninit(len)?;
        let place: *mut [MaybeUninit<u8>] = sample.payload_mut();
        // SAFETY: the bytes are this sample's alone until it is sent. They are memory shared between
        // processes, which the kernel gave out as zeros and publishers have written bytes to since: the
        // compiler, which sees only a pointer from a library, cannot consider them uninitialised. `fill`
        // writes each of them.
        fill(unsafe { &mut *(place as *mut [u8]) });
        // SAFETY: `fill` has written each byte.
        unsafe { sample.assume_init() }.send()?;
        self.sent()
    }
}
