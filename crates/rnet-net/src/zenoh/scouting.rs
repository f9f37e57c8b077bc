//! Scouts for lost hosts of the LAN, more often than Zenoh does.
//!
//! Zenoh scouts by multicast when a session opens, 1, 3 and 7 s later, and then every 8 s, and has no
//! setting for that: a host that was cut off would be found within 8 s of healing. While a host is missing,
//! or no host is present, this sends the same scout twice a second and hands the answers to Zenoh's
//! scouting socket, so that Zenoh connects as if it had scouted itself.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_ip_multicast_if_with_ifindex;

pub(super) const SCOUT_INTERVAL: Duration = Duration::from_millis(500);
/// A scout in version 9 of Zenoh's protocol, for routers, peers and clients.
pub(super) const SCOUT: [u8; 3] = [0x01, 0x09, 0b111];
/// The low five bits of an answer's first byte.
pub(super) const HELLO: u8 = 0x02;
/// Longer answers are not forwarded: an answer has the addresses of a host.
const MAX_HELLO_LEN_BYTES: usize = 4096;

/// Scouts until it is dropped.
pub struct Scouting {
    ended: Arc<AtomicBool>,
}

/// Held while a session of Zenoh opens, to identify the sockets that it creates.
pub struct SocketSnapshot {
    _alone: MutexGuard<'static, ()>,
    before: BTreeSet<u16>,
}

impl SocketSnapshot {
    pub fn take() -> SocketSnapshot {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        SocketSnapshot { _alone: alone, before: udp_ports().unwrap_or_default() }
    }

    /// Starts to scout in `group` on these interfaces (all, if there are none), while `is_anyone_missing`
    /// returns true, for the session that was opened meanwhile.
    ///
    /// # Errors
    /// If the socket cannot be made, the session has none, or no thread can be started.
    pub fn start_scouting(
        self,
        group: SocketAddrV4,
        interfaces: Vec<String>,
        is_anyone_missing: impl Fn() -> bool + Send + 'static,
    ) -> io::Result<Scouting> {
        let ports = udp_ports()?;
        let zenoh = ports.difference(&self.before).find(|port| **port != group.port());
        let zenoh =
            *zenoh.ok_or_else(|| io::Error::other("the Zenoh session has no scouting socket"))?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        thread::Builder::new().name("rnet-scouting".into()).spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                if is_anyone_missing() {
                    send_scout(&socket, group, &interfaces);
                }
                forward_answers(&socket, zenoh);
            }
        })?;
        Ok(Scouting { ended })
    }
}

impl Drop for Scouting {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Scouts on all present interfaces that allow it; they may change.
pub(super) fn send_scout(socket: &UdpSocket, group: SocketAddrV4, interfaces: &[String]) {
    for index in interface_indexes(interfaces) {
        let any = Ipv4Addr::UNSPECIFIED;
        // An interface that is down is tried the next time.
        if set_ip_multicast_if_with_ifindex(socket, &any, &any, index).is_ok() {
            let _ = socket.send_to(&SCOUT, group);
        }
    }
}

/// The numbers of the present interfaces with these names; of all but the loopback, if none is named.
pub(super) fn interface_indexes(names: &[String]) -> impl Iterator<Item = u32> {
    let known = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    known.filter_map(|entry| entry.file_name().into_string().ok()).filter_map(move |name| {
        let is_ours = if names.is_empty() { name != "lo" } else { names.contains(&name) };
        let index = fs::read_to_string(format!("/sys/class/net/{name}/ifindex"));
        index.ok().and_then(|text| text.trim().parse().ok()).filter(|_| is_ours)
    })
}

/// Forwards answers to Zenoh until the next scout is due.
fn forward_answers(socket: &UdpSocket, zenoh: u16) {
    let until = Instant::now() + SCOUT_INTERVAL;
    let mut answer = [0; MAX_HELLO_LEN_BYTES + 1];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let _ = socket.set_read_timeout(Some(left));
        match socket.recv(&mut answer) {
            Ok(len @ 1..=MAX_HELLO_LEN_BYTES) if answer[0] & 0x1f == HELLO => {
                let _ = socket.send_to(&answer[..len], (Ipv4Addr::LOCALHOST, zenoh));
            }
            Ok(_) => {}
            // An error of the timeout, or of a packet that was sent.
            Err(_) => return thread::sleep(until.saturating_duration_since(Instant::now())),
        }
    }
}

/// The ports of all UDP sockets of this process that are bound to any IPv4 address.
fn udp_ports() -> io::Result<BTreeSet<u16>> {
    let ours: BTreeSet<String> = fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok()?.into_os_string().into_string().ok())
        .filter_map(|target| Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = fs::read_to_string("/proc/self/net/udp")?;
    let bound = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace();
        let (address, inode) = (words.nth(1)?, words.nth(7)?);
        let port = address.strip_prefix("00000000:")?;
        u16::from_str_radix(port, 16).ok().filter(|_| ours.contains(inode))
    });
    Ok(bound.collect())
}
