//! Ten hosts of ten nodes, in mode `lan`, with the program `rnet-link`.

use std::time::{Duration, Instant};

use rnet::{Error, Node};

use super::net::{Host, Net, Way};
use super::peer::{Peer, say};

const HOSTS: usize = 10;
const NODES: usize = 10;
/// The interval of a node's messages. Ninety pairs of links, unoptimized, keep two cores busy without any
/// messages.
const PERIOD: Duration = Duration::from_millis(100);

/// The messages that a subscriber has received of its publisher.
#[derive(Default)]
struct ReceivedSequence {
    /// When the other host was booted: its numbers restart.
    boot: u64,
    first: u64,
    next: u64,
    received: u64,
    lost_before: u64,
    lost: u64,
    is_fresh: bool,
}

impl ReceivedSequence {
    fn take(&mut self, message: &[u8], lost: u64) {
        let word = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().unwrap());
        let (boot, number) = (word(0), word(8));
        if boot != self.boot {
            *self = ReceivedSequence {
                boot,
                first: number,
                next: number,
                lost_before: lost,
                ..ReceivedSequence::default()
            };
        }
        if number < self.next {
            say(&format!("twice {number}"));
        }
        (self.next, self.lost, self.is_fresh) = (number + 1, lost, true);
        self.received += 1;
    }

    fn is_whole(&self) -> bool {
        self.received + self.lost - self.lost_before == self.next - self.first
    }
}

/// The nodes of a host, each of which subscribes to one of the next host. Prints `round` each time all have
/// received more, and every missing message was counted.
pub fn actor(host: &str) {
    let host: usize = host.parse().unwrap();
    let boot = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let boot = boot.as_nanos() as u64;
    let nodes: Vec<Node> =
        (0..NODES).map(|n| Node::builder(&format!("n{n}")).open().unwrap()).collect();
    let topic = |host: usize, n: usize| format!("/h{}/n{n}", host % HOSTS);
    let mut publishers: Vec<_> =
        (0..NODES).map(|n| nodes[n].publisher::<[u8]>(&topic(host, n)).open().unwrap()).collect();
    let mut subscribers: Vec<_> = (0..NODES)
        .map(|n| {
            let subscriber = nodes[n].subscriber::<[u8]>(&topic(host + 1, n)).keep_all().open();
            (subscriber.unwrap(), ReceivedSequence::default())
        })
        .collect();
    say("ready");
    let (mut number, mut said) = (0_u64, Instant::now());
    loop {
        for publisher in &mut publishers {
            publisher.send(&[boot.to_le_bytes(), number.to_le_bytes()].concat()).unwrap();
        }
        number += 1;
        for (subscriber, received) in &mut subscribers {
            loop {
                match subscriber.try_recv() {
                    Ok(Some(message)) => {
                        let message = message.to_vec();
                        received.take(&message, subscriber.lost().total());
                    }
                    Ok(None) => break,
                    Err(Error::PeerLost { .. }) => say("lost"),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        let all = subscribers.iter().all(|(_, received)| received.is_fresh && received.is_whole());
        if all && said.elapsed() > 5 * PERIOD {
            said = Instant::now();
            subscribers.iter_mut().for_each(|(_, received)| received.is_fresh = false);
            say("round");
        }
        std::thread::sleep(PERIOD); // sleep: the rate at which the nodes send
    }
}

fn boot(host: &Host, index: usize) -> Peer {
    let crowd = Peer::actor(host, &format!("crowd {index}"));
    let mut link = host.command(env!("CARGO_BIN_EXE_rnet-link"));
    link.arg("start").env("RNET_NETWORK", "lan").env("RNET_HOST", format!("h{index}"));
    let output = link.current_dir("/").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    crowd
}

#[test]
fn ten_hosts_of_ten_nodes_are_cut_and_rebooted() {
    let Some(mut net) = Net::alone("crowd::ten_hosts_of_ten_nodes_are_cut_and_rebooted") else {
        return;
    };
    let hosts: Vec<Host> = (0..HOSTS).map(|_| net.host()).collect();
    let mut crowds: Vec<Peer> =
        hosts.iter().enumerate().map(|(index, host)| boot(host, index)).collect();
    let began = Instant::now();
    let more = |crowd: &Peer, count: usize| crowd.wait("round", crowd.count("round") + count).1;
    let all = |crowds: &[Peer]| crowds.iter().map(|crowd| more(crowd, 1)).max().unwrap();
    println!("ten hosts of ten nodes hear each other after {:?}", all(&crowds) - began);

    // Host 3 hears host 4, and host 4 hears host 5.
    let cut = Instant::now();
    hosts[4].lose(100, Way::Both);
    let lost = [3, 4].map(|host| crowds[host].wait("lost", NODES).1 - cut);
    let before = [3, 4].map(|host| crowds[host].count("round"));
    let healed = Instant::now();
    hosts[4].heal();
    let back = [3, 4].map(|host| crowds[host].wait("round", before[host - 3] + 1).1 - healed);
    println!("cut: PeerLost after {lost:?}, all heard again {back:?} after healing");

    hosts[7].reboot();
    let began = Instant::now();
    crowds[7] = boot(&hosts[7], 7);
    println!(
        "reboot: all heard again after {:?}",
        [6, 7].map(|host| more(&crowds[host], 2) - began)
    );
    all(&crowds);
    assert!(crowds.iter().all(|crowd| crowd.count("twice") == 0));
}
