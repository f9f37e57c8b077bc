//! ZeroMQ in pure Rust: the crate `zeromq`, as in the study.
//!
//! The study's subscriber asks for messages that begin with the topic's name, and its messages do
//! not; here it asks for all. The study knows this system with the mutex only; without, the socket
//! belongs to the loop.

use super::System;
use crate::function::Publish;
use crate::{Arrivals, TestMessage};
use bench_harness::Result;
use std::sync::Arc;
use tokio::runtime::Runtime;
use zeromq::{PubSocket, Socket, SocketRecv, SocketSend, SubSocket};

pub(super) const SYSTEM: System = System {
    function: "zeromq",
    name: "ZeroMQ (crate zeromq, pure Rust)",
    setup: "defaults (PUB drops when its queue of 100,000 is full); PUB/SUB over tcp",
    open,
};

struct ZeroMq {
    socket: PubSocket,
    runtime: Runtime,
}

fn open(arrivals: Arc<Arrivals>) -> Result<Box<dyn Publish>> {
    let runtime = Runtime::new()?;
    let socket = runtime.block_on(async {
        let mut socket = PubSocket::new();
        let endpoint = socket.bind("tcp://127.0.0.1:0").await?;
        let mut subscriber = SubSocket::new();
        subscriber.connect(&endpoint.to_string()).await?;
        subscriber.subscribe("").await?;
        tokio::spawn(async move {
            while subscriber.recv().await.is_ok() {
                arrivals.add();
            }
        });
        bench_harness::Result::Ok(socket)
    })?;
    Ok(Box::new(ZeroMq { socket, runtime }))
}

impl Publish for ZeroMq {
    fn publish(&mut self, count: u64) -> Result<()> {
        let socket = &mut self.socket;
        self.runtime.block_on(async {
            for _ in 0..count {
                socket.send(TestMessage::new().encode_to_vec().into()).await?;
            }
            Ok(())
        })
    }
}
