//! Measures the cost of a message in the links of two hosts, in instructions: both links, both programs and
//! an in-memory network in one process, which callgrind separates by thread.
//!
//!     cargo build --release -p rnet-net --example link_cost
//!     valgrind --tool=callgrind --separate-threads=yes --callgrind-out-file=/tmp/cost \
//!         target/release/examples/link_cost LEN COUNT [HZ]
//!     callgrind_annotate --inclusive=yes /tmp/cost-NN | less
//!
//! HZ 0 sends as fast as the receiver reads. Run it for COUNT and for twice COUNT: the difference is the
//! cost of COUNT messages without the fixed cost.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::{Node, OnFull};
use rnet_net::config::Config;
use rnet_net::in_memory_transport::MemoryNet;
use rnet_net::link::{Link, LinkOptions};
use rnet_net::{HostId, Presence};

const TOPIC: &str = "/cost";
const LIMIT: Duration = Duration::from_secs(600);

fn link(net: &Arc<MemoryNet>, dir: &Path, id: u64) -> Link {
    std::fs::create_dir_all(dir).expect("a directory");
    // Under valgrind a host is silent for long.
    let text = "[network]\nlost_after_ms = 60000";
    let mut config = Config::from_toml(text, Path::new("robot.toml")).expect("a configuration");
    config.host = format!("host{id}");
    let node = Node::builder("/_rnet/link").domain("cost").dir(dir).state_dir(dir);
    let presence = Presence { host: HostId(id), term: 1 };
    let options = LinkOptions { node, presence, config, holds_role: Arc::new(|| true) };
    Link::open(options, |own, sink| Ok(net.join(own, sink))).expect("a link")
}

fn main() {
    let words: Vec<u64> =
        std::env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    let (len, count, hz) = (words[0] as usize, words[1], words.get(2).copied().unwrap_or(0));
    let place = std::env::temp_dir().join(format!("rnet-link-cost-{}", std::process::id()));
    let (here, there) = (place.join("a"), place.join("b"));
    let net = MemoryNet::with_lease(LIMIT);
    let links = [link(&net, &here, 1), link(&net, &there, 2)];
    let node = |dir: &Path, name: &str| {
        Node::builder(name).domain("cost").dir(dir).state_dir(dir).open().expect("a node")
    };
    let (sender, receiver) = (node(&here, "sender"), node(&there, "receiver"));
    let mut messages = receiver.subscriber::<[u8]>(TOPIC).reliable().open().expect("a subscriber");
    let receive = std::thread::Builder::new().name("receiver".to_owned()).spawn(move || {
        for _ in 0..count {
            messages.recv_timeout(LIMIT).expect("a message");
        }
    });
    let mut publisher = sender
        .publisher::<[u8]>(TOPIC)
        .reliable(OnFull::Wait(LIMIT))
        .log_len_bytes(8 << 20)
        .open()
        .expect("a publisher");
    publisher.wait_for_subscribers_timeout(1, LIMIT).expect("a subscriber");
    let (message, begun) = (vec![7; len], Instant::now());
    for number in 0..count {
        if let Some(due) = (number * 1_000_000_000).checked_div(hz) {
            std::thread::sleep(Duration::from_nanos(due).saturating_sub(begun.elapsed())); // sleep: the rate
        }
        publisher.send(&message).expect("it is sent");
    }
    receive.expect("a thread").join().expect("it has received");
    println!("{count} messages of {len} bytes in {:.3} s", begun.elapsed().as_secs_f64());
    drop((publisher, sender, receiver, links));
    let _ = std::fs::remove_dir_all(&place);
}
