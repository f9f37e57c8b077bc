//! Nodes of two hosts, whose links communicate over Zenoh.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rnet::msgs::LinkStatus;
use rnet::{DomainId, Error, Node, OnFull};
use rnet_net::config::Config;
use rnet_net::link::{Link, LinkOptions};
use rnet_net::zenoh::{ZenohNet, ZenohOptions};
use rnet_net::{HostId, Presence};

use super::net::{Net, Way};
use super::peer::{ACTOR_LIMIT, PORT, Peer, say};

const LONG: Duration = ACTOR_LIMIT;
/// The listener prints a line per this many messages, and the talker sends a multiple of it.
const LINE: u64 = 100;

/// The link of a host, in its own process.
pub fn link(id: &str, connect: &[&str]) {
    let presence = Presence { host: HostId(id.parse().unwrap()), term: 1 };
    let mut config = Config::from_toml("", Path::new("robot.toml")).unwrap();
    config.host = format!("host{id}");
    let node = Node::builder("_link1");
    let options = LinkOptions { node, presence, config, holds_role: Arc::new(|| true) };
    let network = ZenohOptions {
        listen: vec![format!("tcp/0.0.0.0:{PORT}").parse().unwrap()],
        connect: connect
            .iter()
            .map(|address| format!("tcp/{address}:{PORT}").parse().unwrap())
            .collect(),
        ..ZenohOptions::default()
    };
    let domain = DomainId::default();
    let open = |presence, sink| {
        ZenohNet::open(&network, presence, &domain, sink).map_err(std::io::Error::other)
    };
    let _link = Link::open(options, open).unwrap();
    say("ready");
    let _ = std::io::read_to_string(std::io::stdin());
}

/// Sends numbers, a thousand a second, until its input ends, and prints how many. Uses a log of this
/// length, if given.
pub fn talk(log_len_bytes: Option<u64>) {
    let node = Node::builder("talker").open().unwrap();
    let mut numbers = node.publisher::<[u8]>("/numbers").reliable(OnFull::Wait(LONG));
    if let Some(len_bytes) = log_len_bytes {
        numbers = numbers.log_len_bytes(len_bytes);
    }
    let mut numbers = numbers.open().unwrap();
    say("ready");
    numbers.wait_for_subscribers_timeout(1, LONG).unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&ended);
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
    });
    let mut sent = 0_u64;
    while !sent.is_multiple_of(LINE) || !ended.load(Ordering::Relaxed) {
        numbers.send(&sent.to_le_bytes()).unwrap();
        sent += 1;
        thread::sleep(Duration::from_millis(1)); // sleep: the rate at which it talks
    }
    say(&format!("sent {sent}"));
    // The last messages may have to be sent again.
    thread::sleep(LONG); // sleep: killed by the test
}

/// Prints after each hundredth number how many were received and how many were counted as lost.
pub fn listen() {
    let node = Node::builder("listener").open().unwrap();
    let mut numbers = node.subscriber::<[u8]>("/numbers").reliable().open().unwrap();
    say("ready");
    let (mut received, mut next) = (0_u64, 0_u64);
    loop {
        let number = match numbers.recv_timeout(LONG) {
            Ok(sample) => u64::from_le_bytes(sample[..].try_into().unwrap()),
            Err(Error::PeerLost { node, .. }) => {
                say(&format!("lost {node}"));
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        if number < next {
            say(&format!("twice {number}"));
        }
        (received, next) = (received + 1, number + 1);
        if next.is_multiple_of(LINE) {
            let lost = numbers.lost();
            say(&format!("causes of {next}: {lost:?}"));
            say(&format!("heard {next}: {received} {}", lost.total()));
        }
    }
}

/// Prints which other links the link of its host has connected to, and where.
pub fn watch() {
    let node = Node::builder("watcher").open().unwrap();
    let mut statuses =
        node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    say("ready");
    while let Ok(status) = statuses.recv_timeout(LONG) {
        for peer in &status.peers {
            say(&format!("{} at {}", peer.host, peer.address));
        }
    }
}

#[test]
fn numbers_come_once_or_are_counted_through_losses_and_cuts() {
    let test = "nodes::numbers_come_once_or_are_counted_through_losses_and_cuts";
    let Some(mut net) = Net::new(test) else { return };
    let (one, two) = (net.host(), net.host());
    let _link = Peer::actor(&one, "link 1");
    let _other = Peer::actor(&two, &format!("link 2 {}", one.address()));
    let listener = Peer::actor(&two, "listen");
    let mut talker = Peer::actor(&one, "talk");
    let more = |count: usize| listener.wait("heard", listener.count("heard") + count).1;
    more(3);

    for host in [&one, &two] {
        host.lose(20, Way::In);
    }
    more(3);
    for host in [&one, &two] {
        host.heal();
    }

    for (turn, way) in [Way::Both, Way::In, Way::Out].into_iter().enumerate() {
        let cut = Instant::now();
        two.lose(100, way);
        let (node, lost) = listener.wait("lost", turn + 1);
        assert_eq!(node, "@host1/talker");
        let healed = Instant::now();
        two.heal();
        println!(
            "cut {way:?}: PeerLost after {:?}, heard again after {:?}",
            lost - cut,
            more(1) - healed
        );
    }

    talker.end_input();
    let sent: u64 = talker.wait("sent", 1).0.parse().unwrap();
    let (counts, _) = listener.wait(&format!("heard {sent}:"), 1);
    let counts: Vec<u64> = counts.split(' ').map(|number| number.parse().unwrap()).collect();
    let causes = listener.wait(&format!("causes of {sent}:"), 1).0;
    println!("{sent} sent, {} received, {} lost: {causes}", counts[0], counts[1]);
    assert_eq!(counts[0] + counts[1], sent);
    assert_eq!(listener.count("twice"), 0);
}
