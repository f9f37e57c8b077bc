//! The TCP connections of this process, as the kernel sees them.
//!
//! `/proc/net/tcp` has the same facts, and costs milliseconds: the kernel walks its table of all connections
//! of all processes for each read. Each socket is asked here.

use std::fs;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::net::getpeername;

/// The kernel's number of the state of a connection that is established (`TCP_ESTABLISHED`).
const ESTABLISHED: u8 = 1;

/// An established connection of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConnection {
    /// The address of the other end.
    pub peer: SocketAddr,
    /// How often the oldest data that is not acknowledged were sent again.
    pub retransmits: u8,
    /// Probes that are not answered: of a full receive window, or of an idle connection (keep-alive).
    pub probes: u8,
}

/// The established connections of this process. Empty if `/proc` cannot be read.
pub fn connections_of_this_process() -> Vec<TcpConnection> {
    let number = |entry: std::io::Result<fs::DirEntry>| -> Option<RawFd> {
        entry.ok()?.file_name().to_str()?.parse().ok()
    };
    fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .filter_map(number)
        .filter_map(connection)
        .collect()
}

/// What this descriptor is the socket of; `None` if it is another file, or no connection.
fn connection(fd: RawFd) -> Option<TcpConnection> {
    // SAFETY: the descriptor may be closed meanwhile or be that of another file. Both calls only ask; they
    // fail then, or answer for that file.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    let peer = SocketAddr::try_from(getpeername(socket).ok()??).ok()?;
    let info = tcp_info(fd)?;
    let connection = TcpConnection {
        peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()),
        retransmits: info.tcpi_retransmits,
        probes: info.tcpi_probes,
    };
    (info.tcpi_state == ESTABLISHED).then_some(connection)
}

fn tcp_info(fd: RawFd) -> Option<libc::tcp_info> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len_bytes = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len_bytes` bytes to `info`, which has as many.
    let failed = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len_bytes,
        )
    };
    // SAFETY: it consists of integers, and is zero where the kernel wrote nothing.
    (failed == 0).then(|| unsafe { info.assume_init() })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn to(address: SocketAddr) -> Option<TcpConnection> {
        connections_of_this_process().into_iter().find(|connection| connection.peer == address)
    }

    #[test]
    fn a_connection_is_listed_until_it_is_closed() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let address = listener.local_addr().unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            let (mut other, _) = listener.accept().unwrap();
            stream.write_all(b"some words").unwrap();
            other.read_exact(&mut [0; 10]).unwrap();
            assert_eq!(
                to(address),
                Some(TcpConnection { peer: address, retransmits: 0, probes: 0 })
            );
            drop(stream);
            assert_eq!(to(address), None);
        }
    }
}
