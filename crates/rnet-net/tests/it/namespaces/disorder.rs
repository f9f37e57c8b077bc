//! A cable that delays each packet for a different time, so that packets overtake each other: a relay of
//! Ethernet frames between two interfaces, for kernels without `tc netem`.
//!
//! Frames carry the header in which the kernel states their remaining processing (`PACKET_VNET_HDR`): a
//! frame between namespaces may be longer than a cable allows, and have no checksum.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::ops::Range;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::random::Random;

/// The longest frame, with the kernel's header.
const FRAME_LEN_BYTES: usize = (64 << 10) + 256;
/// The most frames in flight in one direction; further ones are lost.
const FRAMES: usize = 4096;
/// The buffer requested for unread packets, which the kernel limits to its configuration. Its default holds
/// fewer than 300 short packets, which arrive while a busy machine preempts a thread.
pub const BUFFER_BYTES: usize = 4 << 20;
/// The interval between two checks for the end.
const LOOK: Duration = Duration::from_millis(50);

/// When a frame leaves, its number, and the frame.
type Frame = Reverse<(Instant, u64, Vec<u8>)>;

/// The relay. Dropping it loses the frames in flight.
pub struct Disorder {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Disorder {
    /// Relays between two interfaces of a network namespace. Each frame is delayed by a random time in
    /// `ms`.
    pub fn between(namespace: &str, ends: [&str; 2], ms: Range<u64>, random: &mut Random) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (namespace, ends) = (namespace.to_owned(), ends.map(str::to_owned));
        let opened = thread::spawn(move || {
            let inside = File::open(format!("/run/netns/{namespace}")).unwrap();
            // Only this thread moves; the sockets stay there.
            move_into_link_name_space(inside.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            ends.map(|end| Arc::new(packets_of(&end).unwrap()))
        });
        let [one, two] = opened.join().unwrap();
        let ways = [(one.clone(), two.clone()), (two, one)];
        let threads = ways.map(|(from, to)| {
            let (ended, ms, random) = (ended.clone(), ms.clone(), Random(random.next()));
            thread::spawn(move || pass(&from, &to, &ended, ms, random))
        });
        Self { ended, threads: threads.into() }
    }
}

impl Drop for Disorder {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn pass(from: &File, to: &File, ended: &AtomicBool, ms: Range<u64>, mut random: Random) {
    let (mut under_way, mut number) = (BinaryHeap::<Frame>::new(), 0);
    let mut buffer = vec![0; FRAME_LEN_BYTES];
    while !ended.load(Ordering::Relaxed) {
        let next = under_way.peek().map(|Reverse((due, ..))| *due);
        let limit =
            next.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK));
        let limit = Timespec::try_from(limit).unwrap();
        let _ = poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&limit));
        // Both interfaces may be gone with their hosts: then reads and writes fail.
        let mut reader = from;
        while let Ok(len @ 1..) = reader.read(&mut buffer) {
            if under_way.len() < FRAMES {
                let due = Instant::now() + random.ms(ms.clone());
                under_way.push(Reverse((due, number, buffer[..len].to_vec())));
                number += 1;
            }
        }
        while under_way.peek().is_some_and(|Reverse((due, ..))| *due <= Instant::now()) {
            let Some(Reverse((_, _, frame))) = under_way.pop() else { break };
            let mut writer = to;
            let _ = writer.write(&frame);
        }
    }
}

/// The packets that arrive on an interface of this thread's namespace; written data leaves there.
fn packets_of(interface: &str) -> io::Result<File> {
    let all = (libc::ETH_P_ALL as u16).to_be();
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the arguments are only numbers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened just now and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    set_socket_recv_buffer_size(&socket, BUFFER_BYTES)?;
    let name = CString::new(interface)?;
    // SAFETY: the name ends with a zero, and lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    let raw = std::os::fd::AsRawFd::as_raw_fd(&socket);
    for option in [libc::PACKET_VNET_HDR, libc::PACKET_IGNORE_OUTGOING] {
        let on: libc::c_int = 1;
        let (at, len) = (&raw const on, mem::size_of_val(&on) as libc::socklen_t);
        // SAFETY: the value has the stated length and lives through the call.
        let set = unsafe { libc::setsockopt(raw, libc::SOL_PACKET, option, at.cast(), len) };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: all its fields are numbers, for which 0 is valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = all;
    address.sll_ifindex = index as i32;
    let (at, len) = (&raw const address, mem::size_of_val(&address) as libc::socklen_t);
    // SAFETY: the address has the stated length and lives through the call.
    if unsafe { libc::bind(raw, at.cast(), len) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket.into())
}
