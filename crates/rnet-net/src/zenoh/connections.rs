//! The TCP connections of this process: Zenoh reports neither their peers nor their state.

use rnet_shm::os::tcp::{TcpConnection, connections_of_this_process};

use crate::Connection;

/// The established connections.
pub(super) fn tcp_connections() -> Vec<Connection> {
    connections_of_this_process().into_iter().map(judged).collect()
}

fn judged(connection: TcpConnection) -> Connection {
    let TcpConnection { peer, retransmits, probes } = connection;
    // While the other end accepts nothing more, this system probes it repeatedly, and its system answers:
    // one probe may be in flight.
    Connection { peer, answered: retransmits == 0 && probes <= 1 }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn unread_connection_is_answered() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let address = listener.local_addr().unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            let _other = listener.accept().unwrap();
            // Fills the buffers of both systems.
            stream.set_nonblocking(true).unwrap();
            while stream.write(&[0; 64 << 10]).is_ok() {}
            let to = |one: &Connection| one.peer == address;
            while !tcp_connections().into_iter().find(to).is_some_and(|one| one.answered) {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn cut_connection_is_not_answered() {
        let peer: SocketAddr = "10.77.0.1:50000".parse().unwrap();
        let answered =
            |retransmits, probes| judged(TcpConnection { peer, retransmits, probes }).answered;
        assert!(answered(0, 0) && answered(0, 1));
        assert!(!answered(1, 0) && !answered(0, 2));
    }
}
