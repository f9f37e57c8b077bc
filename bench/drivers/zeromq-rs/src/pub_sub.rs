//! PUB and SUB over TCP.

use crate::in_flight::InFlight;
use bench_harness::{About, Net, Publisher, Result, Sink, Subscription, System, Topic};
use futures_util::FutureExt;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use zeromq::{PubSocket, Socket, SocketRecv, SocketSend, SubSocket};

/// PUB and SUB of the crate `zeromq`.
pub struct PubSub;

impl System for PubSub {
    fn id(&self) -> &'static str {
        "zeromq-rs"
    }

    fn about(&self) -> About {
        About {
            label: "zeromq (pure Rust) PUB/SUB tcp".into(),
            client: "the crate zeromq (Rust) on tokio".into(),
            settings: vec![
                "tokio's multi-threaded runtime, one per process, as in the crate's examples".into(),
                "PUB drops where a queue of 100,000 messages is full and has no setting for it \
                 (SocketSend::send: \"PUB sockets may drop messages\"); here the application counts \
                 what is in flight by the owner of a message's bytes and waits at 64 MiB or 8,192 \
                 messages, so that no queue is ever full and nothing is lost"
                    .into(),
                "an urgent topic has sockets of its own; the crate has no priorities".into(),
            ],
        }
    }

    fn version(&self) -> Result<String> {
        // The crate does not report it, so it is read from the build's Cargo.lock.
        let lock = include_str!("../../../Cargo.lock");
        let version = lock
            .split_once("name = \"zeromq\"\nversion = \"")
            .and_then(|(_, rest)| rest.split_once('"'))
            .map_or("of unknown version", |(version, _)| version);
        Ok(format!("zeromq {version}"))
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let runtime = runtime()?;
        let (socket, endpoint) = runtime.block_on(async {
            let mut socket = PubSocket::new();
            let endpoint = socket.bind("tcp://127.0.0.1:0").await?;
            Ok::<_, zeromq::ZmqError>((socket, endpoint))
        })?;
        net.announce(topic, &endpoint.to_string())?;
        Ok(Box::new(Sender { socket: Some(socket), in_flight: Arc::default(), runtime }))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, mut sink: Sink) -> Result<Subscription> {
        let runtime = runtime()?;
        let addresses =
            (0..topic.publishers).map(|i| net.find(topic, i)).collect::<Result<Vec<_>>>()?;
        let mut socket = runtime.block_on(async {
            let mut socket = SubSocket::new();
            socket.subscribe("").await?;
            for address in &addresses {
                socket.connect(address).await?;
            }
            Ok::<_, zeromq::ZmqError>(socket)
        })?;
        // The sink may send, which enters the runtime: so it is called outside of it, and what has
        // arrived already is taken without entering it once more.
        let stopped = Arc::new(Notify::new());
        let stop = stopped.clone();
        let receiving = std::thread::Builder::new().name("zeromq-rs".into()).spawn(move || {
            let next = async |socket: &mut SubSocket| {
                tokio::select! { message = socket.recv() => Some(message), () = stopped.notified() => None }
            };
            while let Some(first) = runtime.block_on(next(&mut socket)) {
                let mut message = first;
                // An error: a publisher is gone; others may continue, and the crate reconnects to it.
                while let Ok(frames) = &message {
                    frames.iter().for_each(|frame| sink(frame));
                    match socket.recv().now_or_never() {
                        Some(more) => message = more,
                        None => break,
                    }
                }
            }
            let _inside = runtime.enter();
            drop(socket);
        })?;
        Ok(Subscription::new(move || {
            stop.notify_one();
            let _ = receiving.join();
        }))
    }
}

/// The process's runtime.
fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

struct Sender {
    /// Taken when dropped: the socket is to be dropped inside the runtime.
    socket: Option<PubSocket>,
    in_flight: Arc<InFlight>,
    runtime: &'static Runtime,
}

impl Sender {
    fn send_bytes(&mut self, bytes: Vec<u8>) -> Result<()> {
        let Some(socket) = &mut self.socket else { return Ok(()) };
        if !self.in_flight.has_room() {
            self.runtime.block_on(self.in_flight.room());
        }
        let mut sending = socket.send(self.in_flight.count(bytes).into());
        // The crate's PUB puts the message in a queue, and the first poll suffices. Should it have to wait,
        // then the same future is continued: one that is dropped might have sent a part.
        let first = {
            let _inside = self.runtime.enter();
            (&mut sending).now_or_never()
        };
        first.unwrap_or_else(|| self.runtime.block_on(sending))?;
        Ok(())
    }
}

impl Publisher for Sender {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.send_bytes(message.to_vec())
    }

    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        // The library takes the message over, so each has memory of its own; zeroing it would be
        // a pass over the message that no user makes.
        let mut bytes = Vec::<u8>::with_capacity(len);
        let memory = &raw mut bytes.spare_capacity_mut()[..len];
        // SAFETY: the memory is allocated and exclusively owned. `fill` writes each byte, as
        // `Publisher::send_in_place` demands, so all `len` bytes are written when it returns; the harness's
        // and the tests' read none before.
        unsafe {
            fill(&mut *(memory as *mut [u8]));
            bytes.set_len(len);
        }
        self.send_bytes(bytes)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _inside = self.runtime.enter();
        drop(self.socket.take());
    }
}
