//! A relay that delays the bytes of TCP connections: a long cable, for kernels without `tc netem`.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The most pieces of at most this length in flight in one direction; then the sender waits.
const PIECES: usize = 4096;
const PIECE_LEN_BYTES: usize = 16 << 10;

type Piece = (Instant, Vec<u8>);

/// Accepts connections on `listener` while the process lives, and forwards each to `to`; the data arrives
/// `delay` later, in either direction.
pub fn relay(listener: &TcpListener, to: SocketAddr, delay: Duration) {
    for near in listener.incoming().flatten() {
        // If the connection fails, the client sees the end of its connection, as it would without the
        // relay.
        if let Ok(far) = TcpStream::connect(to) {
            let _ = pass(&near, &far, delay).and_then(|()| pass(&far, &near, delay));
        }
    }
}

fn pass(from: &TcpStream, to: &TcpStream, delay: Duration) -> io::Result<()> {
    let (from, to) = (from.try_clone()?, to.try_clone()?);
    to.set_nodelay(true)?;
    let (sender, receiver) = sync_channel(PIECES);
    thread::spawn(move || take(from, &sender, delay));
    thread::spawn(move || give(to, &receiver));
    Ok(())
}

fn take(mut from: TcpStream, sender: &SyncSender<Piece>, delay: Duration) {
    let mut buffer = [0; PIECE_LEN_BYTES];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        if sender.send((Instant::now() + delay, buffer[..len].to_vec())).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Read);
}

fn give(mut to: TcpStream, receiver: &Receiver<Piece>) {
    for (due, piece) in receiver {
        thread::sleep(due.saturating_duration_since(Instant::now())); // sleep: the delay of the relay
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
