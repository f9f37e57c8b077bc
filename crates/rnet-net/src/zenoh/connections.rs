//! The TCP connections of this process: Zenoh says neither whose they are nor how they are.

use rnet_shm::os::tcp::{TcpConnection, connections_of_this_process};

use crate::Connection;

/// Those that are open.
pub(super) fn tcp_connections() -> Vec<Connection> {
    connections_of_this_process().into_iter().map(judged).collect()
}

fn judged(connection: TcpConnection) -> Connection {
    let TcpConnection { peer, retransmits, probes } = connection;
    // While the other end takes nothing more, its system is asked again and again, and answers: one question may be
    // under way.
    Connection { peer, answered: retransmits == 0 && probes <= 1 }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_is_answered_though_nobody_reads_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let address = listener.local_addr().unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            let _other = listener.accept().unwrap();
            // As much as there is room for, in both systems.
            stream.set_nonblocking(true).unwrap();
            while stream.write(&[0; 64 << 10]).is_ok() {}
            let to = |one: &Connection| one.peer == address;
            while !tcp_connections().into_iter().find(to).is_some_and(|one| one.answered) {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn one_that_was_cut_is_not_answered() {
        let peer: SocketAddr = "10.77.0.1:50000".parse().unwrap();
        let answered =
            |retransmits, probes| judged(TcpConnection { peer, retransmits, probes }).answered;
        assert!(answered(0, 0) && answered(0, 1));
        assert!(!answered(1, 0) && !answered(0, 2));
    }
}
