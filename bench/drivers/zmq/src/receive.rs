//! The receiving thread.

use bench_harness::{Result, Sink, Subscription};
use zmq::{Message, Socket};

/// How long one receive waits before it checks for a stop.
const STOP_CHECK_INTERVAL_MS: i32 = 100;

/// Hands each message that `socket` receives to `sink`, on a thread of its own.
///
/// The time-out costs nothing while there are messages: libzmq checks it only where it would otherwise sleep
/// forever.
pub fn receive(socket: Socket, mut sink: Sink) -> Result<Subscription> {
    socket.set_rcvtimeo(STOP_CHECK_INTERVAL_MS)?;
    Subscription::thread("zmq-receive", move |stop| {
        let mut message = Message::new();
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            match socket.recv(&mut message, 0) {
                Ok(()) => sink(&message),
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => {}
                Err(error) => {
                    eprintln!("zmq: receiving ended: {error}");
                    return;
                }
            }
        }
    })
}
