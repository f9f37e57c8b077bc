//! Sending and receiving with libnanomsg.

use super::ffi;
use crate::{Pattern, STOP_CHECK_INTERVAL_MS};
use bench_harness::{Error, Net, Profile, Publisher, Result, Sink, Subscription, Topic};
use std::ffi::{CStr, CString, c_int, c_void};
use std::net::TcpListener;

/// The kernel cuts it to net.core.wmem_max and rmem_max.
const KERNEL_BUFFER_BYTES: c_int = 4 << 20;
/// How many ports are tried: another process may take one between asking for it and binding it.
const BIND_TRIES: usize = 10;

pub fn version() -> Result<String> {
    let path = loaded_from();
    if path.contains("nanomsg") {
        return Ok(format!("nanomsg {}", env!("NANOMSG_VERSION")));
    }
    Err(Error::new(format!("{path} stands in for libnanomsg: link libnanomsg before it")))
}

/// The file that nanomsg's functions come from: libnng has a layer with the same names.
fn loaded_from() -> String {
    // SAFETY: all bit patterns of a Dl_info are valid, null pointers among them.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the name, where there is one, is a C string that lives
    // as long as the library.
    unsafe {
        if libc::dladdr(ffi::nn_socket as *const c_void, &raw mut info) == 0
            || info.dli_fname.is_null()
        {
            return "an unknown library".into();
        }
        CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned()
    }
}

pub fn publisher(pattern: Pattern, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
    let socket = match pattern {
        Pattern::PubSub => Socket::open(ffi::NN_PUB, topic)?,
        Pattern::Pair => Socket::open(ffi::NN_PAIR, topic)?,
    };
    if pattern == Pattern::Pair {
        socket.set(ffi::NN_SOL_SOCKET, ffi::NN_SNDTIMEO, STOP_CHECK_INTERVAL_MS)?;
    }
    let address = match pattern.address(net, topic) {
        Some(address) => {
            socket.bind(&address)?;
            address
        }
        None => socket.bind_to_tcp()?,
    };
    net.announce(topic, &address)?;
    Ok(Box::new(Sender { socket }))
}

pub fn subscribe(pattern: Pattern, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
    let socket = match pattern {
        Pattern::PubSub => Socket::open(ffi::NN_SUB, topic)?,
        Pattern::Pair => Socket::open(ffi::NN_PAIR, topic)?,
    };
    socket.set(ffi::NN_SOL_SOCKET, ffi::NN_RCVMAXSIZE, -1)?;
    if pattern == Pattern::PubSub {
        socket.subscribe_to_all()?;
    }
    for publisher in 0..topic.publishers {
        socket.connect(&net.find(topic, publisher)?)?;
    }
    let number = socket.0;
    let thread = std::thread::Builder::new()
        .name("nanomsg-receive".into())
        .spawn(move || receive(number, sink))?;
    Ok(Subscription::new(move || {
        // Closing ends the receive in progress, with EBADF.
        drop(socket);
        let _ = thread.join();
    }))
}

fn receive(socket: c_int, mut sink: Sink) {
    loop {
        let mut message: *mut c_void = std::ptr::null_mut();
        // SAFETY: a socket that was closed is refused; with NN_MSG the library sets `message`.
        let len = unsafe { ffi::nn_recv(socket, (&raw mut message).cast(), ffi::NN_MSG, 0) };
        let Ok(len) = usize::try_from(len) else {
            match errno() {
                libc::EINTR => continue,
                libc::EBADF => return,
                number => {
                    eprintln!("nanomsg: receiving ended: {}", text(number));
                    return;
                }
            }
        };
        // SAFETY: the message has `len` bytes and is ours until it is freed.
        unsafe {
            sink(std::slice::from_raw_parts(message.cast(), len));
            ffi::nn_freemsg(message);
        }
    }
}

fn errno() -> c_int {
    // SAFETY: reads a number of this thread.
    unsafe { ffi::nn_errno() }
}

fn text(errno: c_int) -> String {
    // SAFETY: nn_strerror gives a C string for any number.
    unsafe { CStr::from_ptr(ffi::nn_strerror(errno)) }.to_string_lossy().into_owned()
}

fn check(code: c_int) -> Result<()> {
    if code >= 0 { Ok(()) } else { Err(Error::new(format!("nanomsg: {}", text(errno())))) }
}

/// A socket, closed when dropped.
struct Socket(c_int);

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: the number is of a socket that is closed only here. Closing that was interrupted
        // is to be repeated (nn_close(3)).
        while unsafe { ffi::nn_close(self.0) } < 0 && errno() == libc::EINTR {}
    }
}

impl Socket {
    fn open(protocol: c_int, topic: &Topic) -> Result<Self> {
        // SAFETY: only numbers are passed.
        let number = unsafe { ffi::nn_socket(ffi::AF_SP, protocol) };
        check(number)?;
        let socket = Self(number);
        socket.set(ffi::NN_SOL_SOCKET, ffi::NN_SNDBUF, KERNEL_BUFFER_BYTES)?;
        socket.set(ffi::NN_SOL_SOCKET, ffi::NN_RCVBUF, KERNEL_BUFFER_BYTES)?;
        let no_delay = topic.profile == Profile::Latency;
        socket.set(ffi::NN_TCP, ffi::NN_TCP_NODELAY, c_int::from(no_delay))?;
        Ok(socket)
    }

    fn set(&self, level: c_int, option: c_int, value: c_int) -> Result<()> {
        let value = &raw const value;
        // SAFETY: the value is an int that outlives the call.
        check(unsafe {
            ffi::nn_setsockopt(self.0, level, option, value.cast(), size_of::<c_int>())
        })
    }

    fn subscribe_to_all(&self) -> Result<()> {
        let nothing = c"".as_ptr().cast();
        // SAFETY: of the value no byte is read.
        check(unsafe { ffi::nn_setsockopt(self.0, ffi::NN_SUB, ffi::NN_SUB_SUBSCRIBE, nothing, 0) })
    }

    fn bind(&self, address: &str) -> Result<()> {
        let address = CString::new(address)?;
        // SAFETY: the address ends in NUL.
        check(unsafe { ffi::nn_bind(self.0, address.as_ptr()) })
    }

    /// Listens on a port; returns the address. nanomsg does not report the port that it got for 0, so a free
    /// one is chosen first.
    fn bind_to_tcp(&self) -> Result<String> {
        let mut result = Ok(());
        for _ in 0..BIND_TRIES {
            let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
            let address = format!("tcp://127.0.0.1:{port}");
            result = self.bind(&address);
            if result.is_ok() {
                return Ok(address);
            }
        }
        result.map(|()| String::new())
    }

    fn connect(&self, address: &str) -> Result<()> {
        let address = CString::new(address)?;
        // SAFETY: the address ends in NUL.
        check(unsafe { ffi::nn_connect(self.0, address.as_ptr()) })
    }

    fn has_peer(&self) -> bool {
        // SAFETY: only numbers are passed. (u64::MAX, for a socket that is none, cannot be.)
        unsafe { ffi::nn_get_statistic(self.0, ffi::NN_STAT_CURRENT_CONNECTIONS) > 0 }
    }
}

struct Sender {
    socket: Socket,
}

impl Sender {
    /// Calls `send` until the queue has capacity; returns whether it was sent. Without a subscriber the
    /// message is dropped, as any publisher may: PAIR itself would wait for one forever.
    fn send_when_writable(&self, mut send: impl FnMut(c_int) -> c_int) -> Result<bool> {
        loop {
            if send(self.socket.0) >= 0 {
                return Ok(true);
            }
            match errno() {
                libc::EINTR => {}
                libc::ETIMEDOUT if self.socket.has_peer() => {}
                libc::ETIMEDOUT => return Ok(false),
                number => return Err(Error::new(format!("nanomsg: {}", text(number)))),
            }
        }
    }
}

impl Publisher for Sender {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        // SAFETY: nn_send copies the bytes.
        self.send_when_writable(|socket| unsafe {
            ffi::nn_send(socket, message.as_ptr().cast(), message.len(), 0)
        })?;
        Ok(())
    }

    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        // SAFETY: only numbers are passed.
        let mut message = unsafe { ffi::nn_allocmsg(len, 0) };
        if message.is_null() {
            return Err(Error::new(format!("nanomsg: {}", text(errno()))));
        }
        // SAFETY: the message has `len` bytes and is ours. They are memory of the library's: the compiler,
        // which sees only a pointer from C, cannot consider them uninitialised. `fill` writes each without
        // reading any.
        fill(unsafe { std::slice::from_raw_parts_mut(message.cast(), len) });
        let result = self.send_when_writable(|socket| {
            let message = (&raw mut message).cast();
            // SAFETY: the message is ours until a send succeeds, and no other send follows it.
            unsafe { ffi::nn_send(socket, message, ffi::NN_MSG, 0) }
        });
        if !matches!(result, Ok(true)) {
            // SAFETY: a message that was not sent is still ours.
            unsafe { ffi::nn_freemsg(message) };
        }
        result.map(|_| ())
    }
}
