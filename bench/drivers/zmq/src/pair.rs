//! PAIR: exactly one socket at either end, and nothing dropped.

use crate::{context, receive};
use bench_harness::{About, Error, Net, Publisher, Result, Sink, Subscription, System, Topic};
use std::sync::atomic::{AtomicU64, Ordering};
use zmq::{Message, Sendable, Socket, SocketEvent};

/// How long a send waits for capacity before it checks whether the subscriber has left.
const STOP_CHECK_INTERVAL_MS: i32 = 100;

/// PAIR over TCP.
pub struct Pair;

impl System for Pair {
    fn id(&self) -> &'static str {
        "zmq-pair"
    }

    fn about(&self) -> About {
        About {
            label: "ZeroMQ PAIR tcp".into(),
            client: "libzmq through the crate zmq (Rust)".into(),
            settings: context::settings(),
        }
    }

    fn version(&self) -> Result<String> {
        Ok(context::version())
    }

    fn supports(&self, topic: &Topic) -> Result<()> {
        match (topic.publishers, topic.subscribers) {
            (1, 1) => Ok(()),
            _ => Err(Error::new("PAIR joins exactly two")),
        }
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let socket = context::socket(zmq::PAIR, topic)?;
        socket.set_sndtimeo(STOP_CHECK_INTERVAL_MS)?;
        let peer = Peer::watch(&socket)?;
        socket.bind("tcp://127.0.0.1:*")?;
        net.announce(topic, &context::bound_address(&socket)?)?;
        Ok(Box::new(Sender { socket, peer }))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        let socket = context::socket(zmq::PAIR, topic)?;
        socket.connect(&net.find(topic, 0)?)?;
        receive::receive(socket, sink)
    }
}

/// Whether there is a socket at the other end, by a socket monitor (zmq_socket_monitor(3)).
struct Peer {
    monitor: Socket,
    present: bool,
}

impl Peer {
    fn watch(socket: &Socket) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let address = format!("inproc://pair-monitor-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let events = SocketEvent::ACCEPTED.to_raw() | SocketEvent::DISCONNECTED.to_raw();
        socket.monitor(&address, i32::from(events))?;
        let monitor = context::monitor_socket()?;
        monitor.connect(&address)?;
        Ok(Self { monitor, present: false })
    }

    fn is_present(&mut self) -> Result<bool> {
        loop {
            // The first two bytes are the event's number, in native byte order.
            match self.monitor.recv_multipart(zmq::DONTWAIT) {
                Ok(event) => {
                    let number = event.first().and_then(|bytes| bytes.first_chunk::<2>());
                    let number = number.map(|bytes| u16::from_ne_bytes(*bytes));
                    self.present = number == Some(SocketEvent::ACCEPTED.to_raw());
                }
                Err(zmq::Error::EAGAIN) => return Ok(self.present),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

struct Sender {
    socket: Socket,
    peer: Peer,
}

impl Sender {
    /// Waits while the subscriber's queue is full. Without a subscriber the message is dropped, as any
    /// publisher may: PAIR itself would wait for one forever.
    fn send_when_writable(&mut self, mut make: impl FnMut() -> Message) -> Result<()> {
        loop {
            match make().send(&self.socket, 0) {
                Err(zmq::Error::EAGAIN) if !self.peer.is_present()? => return Ok(()),
                Err(zmq::Error::EAGAIN) => {}
                result => return Ok(result?),
            }
        }
    }
}

impl Publisher for Sender {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.send_when_writable(|| Message::from(message))
    }

    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        self.send_when_writable(|| {
            let mut message = Message::with_size(len);
            fill(&mut message);
            message
        })
    }
}
