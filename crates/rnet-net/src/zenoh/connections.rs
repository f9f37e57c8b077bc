//! The TCP connections of this process, as Linux shows them: Zenoh says neither whose they are nor how they are.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::Connection;

/// What `tr` says while the other end takes nothing more. It is asked again and again whether it does, and answers.
const ASKS_FOR_WINDOW: &str = "04";

/// Those that are open. Empty where they cannot be read.
pub(super) fn of_this_process() -> Vec<Connection> {
    let inode = |entry: std::io::Result<fs::DirEntry>| {
        let target = fs::read_link(entry.ok()?.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    let ours: HashSet<u64> =
        fs::read_dir("/proc/self/fd").into_iter().flatten().filter_map(inode).collect();
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .into_iter()
        .flat_map(|table| parse(&fs::read_to_string(table).unwrap_or_default(), &ours))
        .collect()
}

/// The lines of established connections with one of these inodes (`Documentation/networking/proc_net_tcp.rst`).
fn parse(table: &str, ours: &HashSet<u64>) -> Vec<Connection> {
    let connection = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, peer, "01", _, timer, repeated, _, probes, inode, ..] = words[..] else {
            return None;
        };
        if !ours.contains(&inode.parse().ok()?) {
            return None;
        }
        let answered = match timer.split_once(':')?.0 {
            // One question may be under way.
            ASKS_FOR_WINDOW => matches!(probes, "0" | "1"),
            _ => u32::from_str_radix(repeated, 16).ok()? == 0,
        };
        Some(Connection { peer: address(peer)?, answered })
    };
    table.lines().skip(1).filter_map(connection).collect()
}

/// The address is written as 32-bit numbers of this machine, whose bytes are in the order of the network.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let mut bytes = Vec::new();
    for at in (0..address.len()).step_by(8) {
        let word = u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let address: IpAddr = match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(Ipv4Addr::from)?.into(),
        _ => <[u8; 16]>::try_from(bytes).ok().map(Ipv6Addr::from)?.to_canonical(),
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// The connection to this address.
    fn to(address: SocketAddr) -> Option<Connection> {
        of_this_process().into_iter().find(|connection| connection.peer == address)
    }

    #[test]
    fn a_connection_is_answered_though_nobody_reads_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let address = listener.local_addr().unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            let (mut other, _) = listener.accept().unwrap();
            stream.write_all(b"some words").unwrap();
            other.read_exact(&mut [0; 10]).unwrap();
            assert_eq!(to(address), Some(Connection { peer: address, answered: true }));
            // As much as there is room for, in both systems.
            stream.set_nonblocking(true).unwrap();
            while stream.write(&[0; 64 << 10]).is_ok() {}
            let answered = || to(address).is_some_and(|connection| connection.answered);
            while !answered() {
                std::thread::yield_now();
            }
            drop(stream);
            assert_eq!(to(address), None);
        }
    }

    #[test]
    fn one_that_was_cut_is_not_answered() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 02004D0A:1D1A 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 7 1 0 100 0\n\
             1: 02004D0A:1D1A 01004D0A:C350 01 00000140:00000000 01:0000001E 00000002 0 0 8 3 0 88 4\n\
             2: 02004D0A:1D1A 03004D0A:C351 01 00000000:00000000 00:00000000 00000000 0 0 9 3 0 88 4\n\
             3: 02004D0A:1D1A 03004D0A:C352 01 00000000:00000000 00:00000000 00000000 0 0 10 3 0 88 4\n";
        let connection =
            |peer: &str, answered| Connection { peer: peer.parse().unwrap(), answered };
        let found = parse(table, &HashSet::from([7, 8, 9]));
        let [cut, fine] = [("10.77.0.1:50000", false), ("10.77.0.3:50001", true)];
        assert_eq!(found, [connection(cut.0, cut.1), connection(fine.0, fine.1)]);
    }
}
