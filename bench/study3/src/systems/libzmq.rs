//! ZeroMQ itself: libzmq through the crate `zmq`. Not in the study, which names ZeroMQ and measures
//! the pure-Rust crate.
//!
//! At its defaults PUB drops beyond a high-water mark of 1,000 messages, which is just the length of
//! an iteration: even an iteration that is waited for loses a message or two, as the reader reports
//! its progress in steps of 500. So it gets what bench/drivers/zmq gives it: ZMQ_XPUB_NODROP, by
//! which `send` waits instead, and longer queues, as long as the `zeromq` crate's.

use super::System;
use crate::function::Publish;
use crate::{Arrivals, TestMessage};
use bench_harness::{Error, Result};
use std::sync::Arc;
use std::thread::JoinHandle;
use zmq::{Context, Socket};

pub(super) const SYSTEM: System = System {
    function: "libzmq",
    name: "ZeroMQ (libzmq)",
    setup: "ZMQ_XPUB_NODROP (send waits at the high-water mark, where PUB would drop) and \
            high-water marks of 100,000 instead of 1,000; PUB/SUB over tcp",
    open,
};

/// Queue length of each endpoint in messages.
const QUEUE: i32 = 100_000;

struct LibZmq {
    context: Context,
    socket: Option<Socket>,
    subscriber: Option<JoinHandle<()>>,
}

fn open(arrivals: Arc<Arrivals>) -> Result<Box<dyn Publish>> {
    let context = Context::new();
    let mut socket = context.socket(zmq::PUB)?;
    socket.set_linger(0)?;
    socket.set_sndhwm(QUEUE)?;
    set_nodrop(&mut socket)?;
    socket.bind("tcp://127.0.0.1:*")?;
    let endpoint = socket
        .get_last_endpoint()?
        .map_err(|_| Error::new("libzmq names an endpoint that is no text"))?;
    let receiving = context.socket(zmq::SUB)?;
    receiving.set_rcvhwm(QUEUE)?;
    receiving.set_subscribe(b"")?;
    receiving.connect(&endpoint)?;
    let subscriber = std::thread::Builder::new().name("subscriber".into()).spawn(move || {
        let mut message = zmq::Message::new();
        // Ends when the context does.
        while receiving.recv(&mut message, 0).is_ok() {
            arrivals.add();
        }
    })?;
    Ok(Box::new(LibZmq { context, socket: Some(socket), subscriber: Some(subscriber) }))
}

/// Sets ZMQ_XPUB_NODROP, for which the crate has no method.
fn set_nodrop(socket: &mut Socket) -> Result<()> {
    let on: std::ffi::c_int = 1;
    // SAFETY: the pointer is a live libzmq socket that only this thread uses, and the value is an
    // int that lives until the call is over.
    let code = unsafe {
        zmq_sys::zmq_setsockopt(
            socket.as_mut_ptr(),
            zmq_sys::ZMQ_XPUB_NODROP as std::ffi::c_int,
            (&raw const on).cast(),
            size_of_val(&on),
        )
    };
    if code == 0 { Ok(()) } else { Err(Error::new("this libzmq does not know ZMQ_XPUB_NODROP")) }
}

impl Publish for LibZmq {
    fn publish(&mut self, count: u64) -> Result<()> {
        let socket = self.socket.as_ref().ok_or_else(|| Error::new("the socket is closed"))?;
        for _ in 0..count {
            socket.send(TestMessage::new().encode_to_vec(), 0)?;
        }
        Ok(())
    }
}

impl Drop for LibZmq {
    fn drop(&mut self) {
        // The context ends when all its sockets are closed; ending it wakes the subscriber, which
        // closes the last one.
        drop(self.socket.take());
        let _ = self.context.destroy();
        if let Some(subscriber) = self.subscriber.take() {
            let _ = subscriber.join();
        }
    }
}
