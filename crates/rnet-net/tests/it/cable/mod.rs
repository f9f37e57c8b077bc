//! A cable to a port of this machine that can be frozen: data sent meanwhile is lost, and neither side is
//! notified.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Accepts connections while the process lives.
pub struct Cable {
    /// How often it was frozen.
    frozen: Arc<AtomicU64>,
}

impl Cable {
    /// Forwards connections to the port `near` to the port `far`, and those to the next port likewise.
    pub fn lay(near: u16, far: u16) -> Cable {
        let frozen = Arc::new(AtomicU64::new(0));
        for lane in 0..2 {
            let listener = TcpListener::bind(("127.0.0.1", near + lane)).unwrap();
            let frozen = Arc::clone(&frozen);
            thread::spawn(move || {
                // Kept open until the end: neither side may see the other one close.
                let kept = Mutex::new(Vec::new());
                for near in listener.incoming().flatten() {
                    let Ok(far) = TcpStream::connect(("127.0.0.1", far + lane)) else { continue };
                    let made = frozen.load(Ordering::SeqCst);
                    for (from, to) in [(&near, &far), (&far, &near)] {
                        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                        let frozen = Arc::clone(&frozen);
                        thread::spawn(move || {
                            pass(from, to, || frozen.load(Ordering::SeqCst) != made)
                        });
                    }
                    kept.lock().unwrap().push((near, far));
                }
            });
        }
        Cable { frozen }
    }

    /// Freezes all existing connections. New ones are forwarded.
    pub fn freeze(&self) {
        self.frozen.fetch_add(1, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_frozen: impl Fn() -> bool) {
    let mut buffer = [0; 64 << 10];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        if is_frozen() || to.write_all(&buffer[..len]).is_err() {
            return;
        }
    }
    // The end of a connection is forwarded as well.
    if !is_frozen() {
        let _ = to.shutdown(std::net::Shutdown::Write);
    }
}
