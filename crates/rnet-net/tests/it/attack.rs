//! Floods of connections, for the tests of each server with an open port.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The connections of a flood.
pub const CONNECTIONS: usize = 10_000;
/// Those that are open at a time, at most; the server may end them earlier.
const OPEN: usize = 4_000;
/// The computer of the attacker: another one than those of the hosts and users.
const FROM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// What an attacker sends on a connection, `step` bytes at a time. Then it waits.
pub struct Conversation {
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
    pub step: usize,
}

struct Attack {
    stream: TcpStream,
    conversation: Conversation,
    sent: usize,
}

impl Attack {
    /// Begins to connect. The connection is refused or made later.
    fn open(conversation: Conversation) -> io::Result<Attack> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddrV4::new(FROM, 0))?;
        match connect(&socket, &conversation.to) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Attack { stream: socket.into(), conversation, sent: 0 })
    }

    /// Sends the next bytes. Returns whether the connection is open.
    fn go_on(&mut self) -> bool {
        let Conversation { bytes, step, .. } = &self.conversation;
        let waits = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let rest = &bytes[self.sent..bytes.len().min(self.sent + step)];
        if !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(len) => self.sent += len,
                Err(error) if waits(&error) => return true,
                Err(_) => return false,
            }
        }
        self.stream.read(&mut [0; 4096]).map_or_else(|error| waits(&error), |len| len > 0)
    }
}

/// HTTP requests whose headers do not end: none, a part of them, the same slowly, and huge ones.
pub fn endless_headers(to: SocketAddr, number: usize) -> Conversation {
    let head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ";
    let (bytes, step) = match number % 4 {
        0 => (Vec::new(), 1),
        1 => (head.to_vec(), head.len()),
        2 => (head.to_vec(), 1),
        _ => ([&head[..], &[b'a'; 64 << 10]].concat(), 4096),
    };
    Conversation { to, bytes, step }
}

/// Raises this process's limit of descriptors, which a flood needs.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// Opens [`CONNECTIONS`], and more until `is_over`. `next` makes the conversation of the connection of this
/// number. `check` is called five times a second, with the number of open connections. Returns how many were
/// opened.
///
/// The attacker shares the processors with its target, so it does little work itself.
pub fn flood(
    is_over: &AtomicBool,
    mut next: impl FnMut(usize) -> Conversation,
    mut check: impl FnMut(usize),
) -> usize {
    let (mut open, mut opened) = (VecDeque::new(), 0);
    while opened < CONNECTIONS || !is_over.load(Ordering::Relaxed) {
        for _ in 0..20 {
            for _ in 0..25 {
                // Each connection of an address needs another port.
                if let Some(attack) = (opened < 2 * CONNECTIONS).then(|| Attack::open(next(opened)))
                {
                    open.push_back(attack.unwrap());
                    opened += 1;
                }
            }
            std::thread::sleep(Duration::from_millis(10)); // sleep: the rate of connections
        }
        open.retain_mut(Attack::go_on);
        open.drain(..open.len().saturating_sub(OPEN));
        check(open.len());
    }
    opened
}

/// The descriptors that a process has open.
pub fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// The resident memory of a process, in bytes.
pub fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The median and the 99th percentile of durations, in microseconds.
pub fn percentiles(mut took: Vec<Duration>) -> [u128; 2] {
    took.sort_unstable();
    [50, 99].map(|percent| took[took.len() * percent / 100].as_micros())
}
