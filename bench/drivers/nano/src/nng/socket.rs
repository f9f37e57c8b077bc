//! Sending and receiving with libnng.

use super::ffi;
use crate::{Pattern, STOP_CHECK_INTERVAL_MS};
use bench_harness::{Error, Net, Publisher, Result, Sink, Subscription, Topic};
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// Bytes that each queue may hold. PUB drops beyond it, so a burst of a thousand MiB is to fit.
const QUEUE_BYTES: usize = 1 << 30;
/// Messages that a queue may hold at most, by nng_options(5).
const QUEUE_MESSAGES: usize = 8192;
const QUEUE_MESSAGES_MIN: usize = 16;

pub fn version() -> Result<String> {
    // SAFETY: nng_version gives a constant C string.
    let version = unsafe { CStr::from_ptr(ffi::nng_version()) };
    Ok(format!("nng {}", version.to_string_lossy()))
}

pub fn publisher(pattern: Pattern, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
    let socket = match pattern {
        Pattern::PubSub => Socket::open(ffi::nng_pub0_open)?,
        Pattern::Pair => Socket::open(ffi::nng_pair0_open)?,
    };
    socket.set_int(c"send-buffer", queue_len(topic))?;
    let peers = match pattern {
        Pattern::PubSub => None,
        Pattern::Pair => {
            socket.set_ms(c"send-timeout", STOP_CHECK_INTERVAL_MS)?;
            Some(socket.count_peers()?)
        }
    };
    let address = match pattern.address(net, topic) {
        Some(address) => {
            socket.listen(&address)?;
            address
        }
        None => socket.listen_on_tcp()?,
    };
    net.announce(topic, &address)?;
    Ok(Box::new(Sender { socket, peers }))
}

pub fn subscribe(pattern: Pattern, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
    let socket = match pattern {
        Pattern::PubSub => Socket::open(ffi::nng_sub0_open)?,
        Pattern::Pair => Socket::open(ffi::nng_pair0_open)?,
    };
    socket.set_int(c"recv-buffer", queue_len(topic))?;
    socket.set_size(c"recv-size-max", 0)?;
    if pattern == Pattern::PubSub {
        socket.subscribe_to_all()?;
    }
    for publisher in 0..topic.publishers {
        socket.dial(&net.find(topic, publisher)?)?;
    }
    let id = socket.0;
    let thread =
        std::thread::Builder::new().name("nng-receive".into()).spawn(move || receive(id, sink))?;
    Ok(Subscription::new(move || {
        // Closing ends the receive in progress, with ECLOSED.
        drop(socket);
        let _ = thread.join();
    }))
}

fn queue_len(topic: &Topic) -> c_int {
    (QUEUE_BYTES / topic.max_len.max(1)).clamp(QUEUE_MESSAGES_MIN, QUEUE_MESSAGES) as c_int
}

fn receive(socket: ffi::Socket, mut sink: Sink) {
    loop {
        let mut message = std::ptr::null_mut();
        // SAFETY: a socket that was closed is refused; `message` is set when the result is 0.
        let code = unsafe { ffi::nng_recvmsg(socket, &raw mut message, 0) };
        if code == ffi::ECLOSED {
            return;
        }
        if let Err(error) = check(code) {
            eprintln!("nng: receiving ended: {error}");
            return;
        }
        // SAFETY: the message is ours until it is freed, which no view of it outlives.
        unsafe {
            sink(body(message));
            ffi::nng_msg_free(message);
        }
    }
}

/// # Safety
/// The message is valid and not used elsewhere while the view exists.
unsafe fn body<'a>(message: *mut ffi::Message) -> &'a mut [u8] {
    // SAFETY: nng_msg_body points to nng_msg_len bytes that were received or zeroed.
    unsafe {
        match ffi::nng_msg_len(message) {
            // The pointer of an empty message may be null.
            0 => &mut [],
            len => std::slice::from_raw_parts_mut(ffi::nng_msg_body(message).cast(), len),
        }
    }
}

fn check(code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: nng_strerror gives a C string for any number.
    let text = unsafe { CStr::from_ptr(ffi::nng_strerror(code)) };
    Err(Error::new(format!("nng: {}", text.to_string_lossy())))
}

/// A socket, closed when dropped.
struct Socket(ffi::Socket);

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: any number may be closed; this one is of a socket that is closed only here.
        unsafe { ffi::nng_close(self.0) };
    }
}

impl Socket {
    fn open(open: unsafe extern "C" fn(*mut ffi::Socket) -> c_int) -> Result<Self> {
        let mut socket = ffi::Socket::default();
        // SAFETY: `open` is one of the nng_*_open, which write the socket's number.
        check(unsafe { open(&raw mut socket) })?;
        Ok(Self(socket))
    }

    fn set_int(&self, name: &CStr, value: c_int) -> Result<()> {
        // SAFETY: the name ends in NUL.
        check(unsafe { ffi::nng_socket_set_int(self.0, name.as_ptr(), value) })
    }

    fn set_size(&self, name: &CStr, value: usize) -> Result<()> {
        // SAFETY: the name ends in NUL.
        check(unsafe { ffi::nng_socket_set_size(self.0, name.as_ptr(), value) })
    }

    fn set_ms(&self, name: &CStr, value: i32) -> Result<()> {
        // SAFETY: the name ends in NUL.
        check(unsafe { ffi::nng_socket_set_ms(self.0, name.as_ptr(), value) })
    }

    fn subscribe_to_all(&self) -> Result<()> {
        let (name, nothing) = (c"sub:subscribe", c"");
        // SAFETY: of the value no byte is read.
        check(unsafe { ffi::nng_socket_set(self.0, name.as_ptr(), nothing.as_ptr().cast(), 0) })
    }

    fn listen(&self, url: &str) -> Result<ffi::Listener> {
        let url = CString::new(url)?;
        let mut listener = ffi::Listener::default();
        // SAFETY: the URL ends in NUL and the listener's number is written to a local.
        check(unsafe { ffi::nng_listen(self.0, url.as_ptr(), &raw mut listener, 0) })?;
        Ok(listener)
    }

    /// Listens on a free port; gives the address.
    fn listen_on_tcp(&self) -> Result<String> {
        let listener = self.listen("tcp://127.0.0.1:0")?;
        let (name, mut port) = (c"tcp-bound-port", 0);
        // SAFETY: the name ends in NUL and the port is written to a local.
        check(unsafe { ffi::nng_listener_get_int(listener, name.as_ptr(), &raw mut port) })?;
        Ok(format!("tcp://127.0.0.1:{port}"))
    }

    fn dial(&self, url: &str) -> Result<()> {
        let url = CString::new(url)?;
        // SAFETY: the URL ends in NUL; no dialer is asked for.
        check(unsafe { ffi::nng_dial(self.0, url.as_ptr(), std::ptr::null_mut(), 0) })
    }

    /// The number of sockets at the other end, kept up to date.
    fn count_peers(&self) -> Result<&'static AtomicI32> {
        // A publisher's four bytes are never freed, so that no late callback can miss them.
        let peers: &'static AtomicI32 = Box::leak(Box::new(AtomicI32::new(0)));
        for event in [ffi::PIPE_EV_ADD_POST, ffi::PIPE_EV_REM_POST] {
            let arg = std::ptr::from_ref(peers).cast_mut().cast();
            // SAFETY: count_peer may be called at any time from any thread; `arg` lives forever.
            check(unsafe { ffi::nng_pipe_notify(self.0, event, count_peer, arg) })?;
        }
        Ok(peers)
    }
}

unsafe extern "C" fn count_peer(_: ffi::Pipe, event: c_int, peers: *mut c_void) {
    // SAFETY: `peers` is what count_peers passed.
    let peers = unsafe { &*peers.cast::<AtomicI32>() };
    peers.fetch_add(if event == ffi::PIPE_EV_ADD_POST { 1 } else { -1 }, Ordering::Relaxed);
}

struct Sender {
    socket: Socket,
    /// Number of connected sockets, if sending would wait for one.
    peers: Option<&'static AtomicI32>,
}

impl Sender {
    /// Calls `send` until the queue has capacity. Without a subscriber the message is dropped, as any
    /// publisher may: PAIR itself would wait for one forever.
    fn send_when_writable(&self, mut send: impl FnMut(ffi::Socket) -> c_int) -> Result<()> {
        loop {
            let code = send(self.socket.0);
            if code != ffi::ETIMEDOUT {
                return check(code);
            }
            if self.peers.is_some_and(|peers| peers.load(Ordering::Relaxed) == 0) {
                return Ok(());
            }
        }
    }
}

impl Publisher for Sender {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        // SAFETY: nng_send copies the bytes.
        self.send_when_writable(|socket| unsafe {
            ffi::nng_send(socket, message.as_ptr().cast(), message.len(), 0)
        })
    }

    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let mut message = std::ptr::null_mut();
        // SAFETY: a message is allocated where the result is 0.
        check(unsafe { ffi::nng_msg_alloc(&raw mut message, len) })?;
        // SAFETY: the message is ours, and the view ends here.
        fill(unsafe { body(message) });
        let mut sent = false;
        let result = self.send_when_writable(|socket| {
            // SAFETY: the message is ours until a send succeeds, and no other send follows it.
            let code = unsafe { ffi::nng_sendmsg(socket, message, 0) };
            sent = code == 0;
            code
        });
        if !sent {
            // SAFETY: a message that was not sent is still ours.
            unsafe { ffi::nng_msg_free(message) };
        }
        result
    }
}
