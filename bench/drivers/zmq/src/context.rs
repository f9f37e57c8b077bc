//! The process's context, and the settings that all its sockets share.

use bench_harness::{Lane, Result, Topic};
use std::sync::OnceLock;
use zmq::{Context, Socket, SocketType};

/// Bytes that each of a connection's two queues may hold.
const QUEUE_BYTES: usize = 64 << 20;
/// Messages that each of a connection's two queues may hold, however small they are.
const QUEUE_MESSAGES: usize = 10_000;
const QUEUE_MESSAGES_MIN: usize = 16;

/// The settings in words.
pub fn settings() -> Vec<String> {
    vec![
        format!(
            "ZMQ_SNDHWM and ZMQ_RCVHWM: {QUEUE_MESSAGES} messages, fewer where they would exceed \
             {} MiB (default 1,000; zmq_setsockopt(3): a high-water mark bounds messages, not bytes)",
            QUEUE_BYTES >> 20
        ),
        "ZMQ_LINGER: 0 (zmq_setsockopt(3)): once a run is over nobody waits for what is left"
            .into(),
        "one context per process (the Guide, \"Getting the Context Right\") with two I/O threads: \
         one for bulk, as the Guide's rule of one per GB/s says, and one for urgent topics by \
         ZMQ_AFFINITY; it sleeps where a process has none"
            .into(),
    ]
}

/// The version of libzmq.
pub fn version() -> String {
    let (major, minor, patch) = zmq::version();
    format!("libzmq {major}.{minor}.{patch}")
}

/// A socket for the topic, not yet bound or connected.
pub fn socket(kind: SocketType, topic: &Topic) -> Result<Socket> {
    let socket = context()?.socket(kind)?;
    let queue = (QUEUE_BYTES / topic.max_len.max(1)).clamp(QUEUE_MESSAGES_MIN, QUEUE_MESSAGES);
    socket.set_sndhwm(queue as i32)?;
    socket.set_rcvhwm(queue as i32)?;
    socket.set_linger(0)?;
    // A bit for each I/O thread.
    socket.set_affinity(match topic.lane {
        Lane::Bulk => 0b01,
        Lane::Urgent => 0b10,
    })?;
    Ok(socket)
}

/// A socket that receives connection events of another.
pub fn monitor_socket() -> Result<Socket> {
    Ok(context()?.socket(zmq::PAIR)?)
}

/// The address that a bound socket got.
pub fn bound_address(socket: &Socket) -> Result<String> {
    socket.get_last_endpoint()?.map_err(|_| bench_harness::Error::new("the address is not UTF-8"))
}

fn context() -> zmq::Result<&'static Context> {
    static CONTEXT: OnceLock<Context> = OnceLock::new();
    if let Some(context) = CONTEXT.get() {
        return Ok(context);
    }
    let context = Context::new();
    context.set_io_threads(2)?;
    Ok(CONTEXT.get_or_init(|| context))
}
