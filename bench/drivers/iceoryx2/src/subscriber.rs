//! The receiving end: a thread with a node of its own.

use crate::{Wake, service};
use bench_harness::{Net, Result, Sink, Subscription, Topic};
use iceoryx2::port::listener::Listener;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

type Port = Subscriber<ipc::Service, [u8], ()>;

/// Longest wait without a check of the queue. Seen once in hundreds of runs, on a machine that was busy with
/// others: both subscribers slept with full queues, and the publisher waited for them forever.
const STOP_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Subscribes.
pub(crate) fn open(net: &Net, topic: &Topic, wake: Wake, sink: Sink) -> Result<Subscription> {
    // The listener waits for long. To end it, it gets one more event.
    let ending = service::join(net, topic, wake)?;
    let end =
        ending.events.as_ref().map(|events| events.notifier_builder().create()).transpose()?;

    let stop = Arc::new(AtomicBool::new(false));
    let (is_open, opened) = channel();
    let body = {
        let (net, topic, stop) = (net.clone(), topic.clone(), stop.clone());
        // The ports are made on the thread that uses them.
        move || match Receiver::open(&net, &topic, wake) {
            Ok(receiver) => {
                let _ = is_open.send(Ok(()));
                receiver.run(&stop, sink);
            }
            Err(error) => {
                let _ = is_open.send(Err(error));
            }
        }
    };
    let thread = std::thread::Builder::new().name(format!("iox2 {}", topic.name)).spawn(body)?;
    opened.recv()??;
    Ok(Subscription::new(move || {
        stop.store(true, Ordering::SeqCst);
        if let Some(end) = end {
            let _ = end.notify();
        }
        let _ = thread.join();
        drop(ending);
    }))
}

struct Receiver {
    samples: Port,
    wake: Option<Listener<ipc::Service>>,
    // Last, so that the ports are dropped before their services and their node.
    _endpoint: service::Endpoint,
}

impl Receiver {
    fn open(net: &Net, topic: &Topic, wake: Wake) -> Result<Self> {
        let endpoint = service::join(net, topic, wake)?;
        let wake = endpoint.events.as_ref().map(|events| events.listener_builder().create());
        let samples = endpoint.samples.subscriber_builder().create()?;
        Ok(Self { samples, wake: wake.transpose()?, _endpoint: endpoint })
    }

    fn run(&self, stop: &AtomicBool, mut sink: Sink) {
        let ended = match &self.wake {
            Some(listener) => self.take_when_woken(listener, stop, &mut sink),
            None => self.poll(stop, &mut sink),
        };
        if let Err(error) = ended {
            // The error cannot be reported here; missing messages are counted.
            eprintln!("iceoryx2: the subscriber ended: {error}");
        }
    }

    fn take_when_woken(
        &self,
        listener: &Listener<ipc::Service>,
        stop: &AtomicBool,
        sink: &mut Sink,
    ) -> Result<()> {
        while !stop.load(Ordering::SeqCst) {
            listener.timed_wait(|_| {}, STOP_CHECK_INTERVAL)?;
            // One event may cover many samples.
            while let Some(sample) = self.samples.receive()? {
                sink(sample.payload());
            }
        }
        Ok(())
    }

    fn poll(&self, stop: &AtomicBool, sink: &mut Sink) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            match self.samples.receive()? {
                Some(sample) => sink(sample.payload()),
                None => std::hint::spin_loop(),
            }
        }
        Ok(())
    }
}
