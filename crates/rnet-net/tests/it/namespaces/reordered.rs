//! A cable that delays and reorders packets loses none of them.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::disorder::BUFFER_BYTES;
use super::net::Net;
use super::peer::{ACTOR_LIMIT, PORT, Peer, say};
use crate::random::Random;

const DATAGRAMS: u32 = 500;

/// Sends numbers, one each millisecond: the kernel keeps a few hundred of them until it knows the
/// receiver's link address, which takes two delays of the cable.
pub fn send(to: &str) {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    say("ready");
    for number in 0..DATAGRAMS {
        socket.send_to(&number.to_le_bytes(), (to, PORT)).unwrap();
        thread::sleep(Duration::from_millis(1)); // sleep: the rate at which it sends
    }
    let _ = io::read_to_string(io::stdin());
}

/// Prints how many of these numbers came, and how many of them after a higher one.
pub fn receive() {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap();
    socket.set_read_timeout(Some(ACTOR_LIMIT)).unwrap();
    set_socket_recv_buffer_size(&socket, BUFFER_BYTES).unwrap();
    say("ready");
    let (mut received, mut late, mut highest) = (0, 0, 0);
    while received < DATAGRAMS {
        let mut number = [0; 4];
        socket.recv(&mut number).unwrap();
        let number = u32::from_le_bytes(number);
        received += 1;
        late += u32::from(number < highest);
        highest = highest.max(number);
    }
    say(&format!("came {late}"));
}

#[test]
fn delaying_cable_reorders_and_loses_nothing() {
    let Some(mut net) = Net::new("reordered::delaying_cable_reorders_and_loses_nothing") else {
        return;
    };
    let (one, two) = (net.host(), net.host());
    let mut random = Random(1);
    one.delay(0..40, &mut random);
    let receiver = Peer::actor(&two, "receive");
    let sender = Peer::actor(&one, &format!("send {}", two.address()));
    let late: u32 = receiver.wait("came", 1).0.parse().unwrap();
    assert!(late > DATAGRAMS / 10, "{late} of {DATAGRAMS} were overtaken");
    drop((sender, receiver));
    // After healing, all come in order.
    one.heal();
    let receiver = Peer::actor(&one, "receive");
    let _sender = Peer::actor(&two, &format!("send {}", one.address()));
    assert_eq!(receiver.wait("came", 1).0, "0");
}
