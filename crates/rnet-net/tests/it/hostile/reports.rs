//! The link's reports about hostile links: bounded in number, and without false problems.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet::msgs::link_status::{Direction, State};
use rnet_net::config::Config;
use rnet_net::in_memory_transport::{MemoryLink, MemoryNet};
use rnet_net::link::{Link, LinkOptions};
use rnet_net::stream::Frame;
use rnet_net::{Connection, Transport};

use super::*;

/// The channel of the publisher that the peer has announced, once a subscription here receives its
/// messages.
pub fn flows(peer: &Peer, hears: &mut Subscriber<[u8]>) -> u32 {
    wait(peer, "it is requested", || subscribe_requests(peer).len() == 1);
    let channel = subscribe_requests(peer)[0].channel;
    let (seq, count, cause) = (0, 0, rnet::LossCause::Link);
    assert!(peer.say(Lane::Bulk, &Item::Gap { channel, seq, count, cause }));
    assert!(peer.say(Lane::Bulk, &Item::Delivery { channel, subscription: 0, active: true }));
    wait(peer, "it is admitted", || hears.publisher_count() == 1);
    channel
}

/// A network that blocks its link while the link reads the connections, if requested.
struct Slow {
    link: Arc<MemoryLink>,
    blocked: Arc<AtomicBool>,
    is_read: Arc<AtomicBool>,
}

impl Transport for Slow {
    fn send(&self, lane: Lane, to: HostId, frame: Frame) -> std::io::Result<()> {
        self.link.send(lane, to, frame)
    }

    fn connections(&self) -> Vec<Connection> {
        while self.blocked.load(Ordering::SeqCst) {
            self.is_read.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1)); // sleep: interval between two checks
        }
        Vec::new()
    }
}

/// This many messages of 16 KiB exceed the log and the waiting messages.
const FILLING: u64 = 2_000;
/// As many problems may wait for the control thread of a link.
const BACKLOG: usize = (64 << 20) / 256;
/// More empty messages than may be in flight: a window of 4 MiB and the data that waits for it, at some
/// bytes each.
const UNDER_WAY: usize = 2_000_000;

#[test]
fn owner_that_ignores_its_credit_is_disconnected() {
    let (domain, net) = (common::Net::new("credit"), MemoryNet::new());
    let [blocked, is_read] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let options = LinkOptions {
        node: domain.builder("/_rnet/link"),
        presence: Presence { host: HostId(1), term: 1 },
        config: Config::from_toml("network.lost_after_ms = 30000", Path::new("robot.toml"))
            .unwrap(),
        holds_role: Arc::new(|| true),
    };
    let _link = Link::open(options, |own, sink| {
        let link = net.join(own, sink);
        Ok(Arc::new(Slow { link, blocked: blocked.clone(), is_read: is_read.clone() }))
    });
    let peer = Peer::join(&net, Presence { host: EVIL, term: 1 }, HostId(1));
    let node = domain.node("hears");
    let mut hears = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    let small = r#""reliability":"reliable","pool_limit_bytes":65536"#;
    let opened = publisher(7, "/t").replace(r#""reliability":"reliable""#, small);
    introduce(&peer, 1, &opened);
    let channel = flows(&peer, &mut hears);
    // The status looks for the address of a host that has none, which blocks the control thread.
    blocked.store(true, Ordering::SeqCst);
    eventually("the control thread is blocked", || is_read.load(Ordering::SeqCst));
    // The first messages fill the log and the waiting queue. All that follow are refused until the owner is
    // disconnected: then it is not answered any more, and has no capacity.
    let has_room = |item: &Item<'_>| {
        let begun = Instant::now();
        while !peer.push(Lane::Bulk, item) {
            peer.pump();
            if begun.elapsed() > Duration::from_secs(10) {
                return false;
            }
            std::thread::yield_now();
        }
        true
    };
    let payload = [7; 16 << 10];
    let filled = (0..FILLING).take_while(|seq| has_room(&data(channel, *seq, &payload))).count();
    let refused = (FILLING..).take(BACKLOG + UNDER_WAY);
    let taken = refused.take_while(|seq| has_room(&data(channel, *seq, b""))).count();
    // Before any failure: at its end the link waits for the control thread.
    blocked.store(false, Ordering::SeqCst);
    assert_eq!(
        filled as u64,
        FILLING,
        "it was disconnected too early; {} sessions",
        peer.sessions()
    );
    assert!(taken < BACKLOG + UNDER_WAY, "all were accepted, whatever the backlog");
    wait(&peer, "it is disconnected", || peer.sessions() == 2);
    assert!(peer.greet("evil"));
    is_told(&peer, "too many requests at once");
}

#[test]
fn request_for_a_closed_publisher_is_not_a_problem() {
    let (hosts, peer) = hosts("closed", "");
    let (mut problems, _node) = Problems::of(&hosts);
    introduce(&peer, 1, "");
    let want = Subscribe {
        channel: 9,
        publisher: 99,
        from: None,
        reliable: false,
        transient_local: 0,
        credit: 1 << 20,
        wills: false,
        confirms_end: false,
    };
    assert!(peer.say(Lane::Bulk, &Item::Subscribe(want)));
    let ended = |item: &Item<'_>| {
        matches!(item, Item::Delivery { channel: 9, subscription: 0, active: false })
    };
    wait(&peer, "its channel has ended", || peer.count(ended) == 1);
    // The problem reported then is the only one.
    assert!(peer.document(Document::Nodes, b"no JSON"));
    let mut reported = Vec::new();
    wait(&peer, "a problem", || {
        reported = problems.now();
        !reported.is_empty()
    });
    assert!(reported.len() == 1 && reported[0].contains("nodes of another host"), "{reported:?}");
}

#[test]
fn repeated_problem_is_reported_once() {
    let (hosts, peer) = hosts("again", "");
    let (mut problems, _node) = Problems::of(&hosts);
    introduce(&peer, 1, "");
    assert!(peer.document(Document::Nodes, br#"{"joined":[{"name":"/a/../b"}]}"#));
    for _ in 0..100 {
        assert!(peer.document(Document::Nodes, b"no JSON"));
    }
    assert!(peer.document(Document::Nodes, br#"{"joined":"/last"}"#));
    let mut reported = Vec::new();
    wait(&peer, "the last one", || {
        let now = problems.now();
        reported = if now.is_empty() { std::mem::take(&mut reported) } else { now };
        reported.last().is_some_and(|last| last.contains("expected a sequence"))
    });
    assert_eq!(reported.len(), 3, "{reported:?}");
    assert!(reported[0].contains("/a/../b"), "no problem displaces another: {reported:?}");
}

#[test]
fn refused_host_keeps_its_counters_and_shows_the_reason() {
    let (hosts, peer) = hosts("refused", "");
    let node = hosts.node(0, "hears");
    let mut statuses =
        node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    let mut hears = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    introduce(&peer, 1, &publisher(7, "/t"));
    let channel = flows(&peer, &mut hears);
    for seq in 0..3 {
        assert!(peer.say(Lane::Bulk, &data(channel, seq, b"x")));
    }
    // The earlier fragments of that message were not sent.
    let (meta, compressed) = (Meta::default(), false);
    let (sent_ns, total, offset, bytes) = (0, 9, 5, b"x");
    let middle = Fragment { channel, seq: 3, sent_ns, meta, total, offset, bytes, compressed };
    assert!(peer.say(Lane::Bulk, &Item::Fragment(middle)));
    let mut lost = None;
    wait(&peer, "the status shows it as refused", || {
        while let Some(status) = statuses.try_recv().unwrap() {
            let peer = status.peers.first().filter(|peer| peer.state() == State::Refused);
            lost = lost.take().or(peer.cloned());
        }
        lost.is_some()
    });
    let lost = lost.unwrap();
    assert!(
        lost.text.contains("disconnected it") && lost.text.contains("does not follow"),
        "{lost:?}"
    );
    let counted = lost.topics.iter().find(|t| t.name == "/t" && t.direction() == Direction::In);
    assert_eq!(counted.map(|topic| topic.messages), Some(3), "{lost:?}");
}
