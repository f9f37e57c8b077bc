//! A publisher blocks no longer than its configured limit while the cable is cut, and while the link of the
//! other host is stopped. The tests do not check the longest send, which depends on the machine, but that
//! each send returns as its publisher has configured while nothing changes on the other side.

use crate::common;
use crate::hosts;

use std::time::{Duration, Instant};

use crate::hostile::peer::Peer;
use crate::status::Watch;
use common::{LONG, eventually};
use hosts::Hosts;
use rnet::msgs::link_status::{Cause, Direction, State, Topic};
use rnet::{Error, Lane, Node, OnFull, Publisher};
use rnet_net::wire::{Document, Item, Subscribe};
use rnet_net::{HostId, Presence};

const CHOSEN: Duration = Duration::from_millis(50);
const LEN: usize = 1 << 10;
/// More than everything in between can hold: the log, the stream, and the credit.
const TOO_MANY: u64 = (64 << 20) / LEN as u64;
/// Twice the capacity in between.
const MANY: u64 = (20 << 20) / LEN as u64;

fn publishers(node: &Node) -> (Publisher<[u8]>, Publisher<[u8]>) {
    let publisher = |topic| node.publisher::<[u8]>(topic).log_len_bytes(1 << 16);
    let waits = publisher("/waits").reliable(OnFull::Wait(CHOSEN));
    (waits.open().unwrap(), publisher("/best_effort").open().unwrap())
}

fn message(number: u64) -> Vec<u8> {
    [&number.to_le_bytes()[..], &[7; LEN - 8]].concat()
}

fn number(message: &[u8]) -> u64 {
    u64::from_le_bytes(message[..8].try_into().unwrap())
}

/// Sends with both publishers while the other host is silent. Returns how many messages each has sent.
fn send_into_silence(
    (waits, best_effort): (&mut Publisher<[u8]>, &mut Publisher<[u8]>),
) -> (u64, u64) {
    let (mut sent, mut refused) = (0, 0);
    while refused < 3 {
        assert!(sent < TOO_MANY, "nothing blocks it: the other host was disconnected");
        let begun = Instant::now();
        match waits.send(&message(sent)) {
            // A link that was late by the same time still had capacity.
            Ok(()) => (sent, refused) = (sent + 1, 0),
            Err(Error::Full { .. }) => {
                assert!(begun.elapsed() >= CHOSEN, "{:?}", begun.elapsed());
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    for number in 0..MANY {
        best_effort.send(&message(number)).unwrap();
    }
    // Nothing has changed meanwhile: the reliable publisher is still full.
    assert!(matches!(waits.send(&message(sent)), Err(Error::Full { .. })));
    (sent, MANY)
}

/// A cut cable until this is dropped: a link waits for it at the end of the test.
struct Cut<'a>(&'a Hosts);

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        self.0.heal(0, 1);
    }
}

#[test]
fn cut_cable_blocks_a_send_no_longer_than_its_limit() {
    let hosts = Hosts::patient("held by a cut", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let (mut waits, mut best_effort) = publishers(&from);
    let mut hears = to.subscriber::<[u8]>("/waits").reliable().open().unwrap();
    let mut hears_some = to.subscriber::<[u8]>("/best_effort").keep_all().open().unwrap();
    for publisher in [&waits, &best_effort] {
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    }
    hosts.cut(0, 1);
    let cut = Cut(&hosts);
    let (sent, sent_some) = send_into_silence((&mut waits, &mut best_effort));
    assert_eq!((waits.subscriber_count(), best_effort.subscriber_count()), (1, 1));
    drop(cut);
    // Accepted messages arrive once and in order; refused ones do not.
    for expected in 0..sent {
        assert_eq!(number(&hears.recv_timeout(LONG).unwrap()), expected);
    }
    assert_eq!(hears.lost().total(), 0);
    // Each message of the other publisher has arrived or is counted.
    let (mut next, mut received) = (0, 0);
    eventually("all messages are accounted for", || {
        while let Some(message) = hears_some.try_recv().unwrap() {
            assert!(number(&message) >= next, "in order");
            next = number(&message) + 1;
            received += 1;
        }
        received + hears_some.lost().total() == sent_some
    });
    assert!(received > 0);
    hosts.settle();
    assert!(hears.try_recv().unwrap().is_none(), "refused messages were not sent");
}

#[test]
fn stopped_link_blocks_a_send_no_longer_than_its_limit() {
    let hosts = Hosts::patient("held by a link", 1);
    let (mut waits, mut best_effort) = publishers(&hosts.node(0, "from"));
    let peer = Peer::join(hosts.net(), Presence { host: HostId(9), term: 1 }, HostId(1));
    let wait = |what: &str, is: &mut dyn FnMut() -> bool| {
        eventually(what, || {
            peer.pump();
            is()
        });
    };
    wait("a session begins", &mut || peer.sessions() == 1);
    assert!(peer.greet("stopped") && peer.document(Document::Endpoints, br#"{"all":true}"#));
    let announced = || peer.documents(Document::Endpoints).concat();
    wait("both are known", &mut || {
        ["/waits", "/best_effort"].iter().all(|of| announced().contains(of))
    });
    for (channel, publisher, reliable) in [(1, &waits, true), (2, &best_effort, false)] {
        let (publisher, credit) = (publisher.id(), 4 << 20);
        let want = Subscribe {
            channel,
            publisher,
            from: None,
            reliable,
            transient_local: 0,
            credit,
            wills: false,
            confirms_end: false,
        };
        wait("it asks", &mut || peer.say(Lane::Bulk, &Item::Subscribe(want)));
    }
    let flows = |item: &Item<'_>| matches!(item, Item::Delivery { active: true, .. });
    wait("both flow", &mut || peer.count(flows) == 2);
    // From now on the peer sends nothing, not even acknowledgements.
    let (sent, _) = send_into_silence((&mut waits, &mut best_effort));
    // The peer resumes and reads, and has exactly the accepted messages.
    wait("it reads", &mut || peer.say(Lane::Bulk, &Item::Credit { channel: 1, read: u64::MAX }));
    let data = |item: &Item<'_>| matches!(item, Item::Data(data) if data.channel == 1);
    wait("it has all accepted messages", &mut || peer.count(data) as u64 == sent);
    assert_eq!(peer.sessions(), 1);
}

/// The length of an 8 MB image: the log has slots for thousands of them, and the pool has space for
/// hundreds.
const IMAGE_LEN: usize = 8_000_000;

/// Sends images until none is accepted after `settle`, and returns how many were accepted.
fn send_images(publisher: &mut Publisher<[u8]>, mut settle: impl FnMut()) -> u64 {
    let (mut sent, mut settled) = (0_u64, false);
    let mut image = vec![7; IMAGE_LEN];
    loop {
        assert!(sent < 20, "nothing blocks it");
        image[..8].copy_from_slice(&sent.to_le_bytes());
        match publisher.send(&image) {
            Ok(()) => (sent, settled) = (sent + 1, false),
            Err(Error::Full { reader_node, .. }) => {
                assert_eq!(&*reader_node, "@host1/to");
                if settled {
                    return sent;
                }
                settle();
                settled = true;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A publisher of images and a reliable subscriber of them on another host.
fn images(from: &Node, to: &Node) -> (Publisher<[u8]>, rnet::Subscriber<[u8]>) {
    let publisher = from.publisher::<[u8]>("/image").reliable(OnFull::Refuse).open().unwrap();
    let subscriber = to.subscriber::<[u8]>("/image").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    (publisher, subscriber)
}

#[test]
fn saturated_network_blocks_a_publisher_of_images() {
    let hosts = Hosts::patient("images held by a cut", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let (mut publisher, mut subscriber) = images(&from, &to);
    hosts.cut(0, 1);
    let cut = Cut(&hosts);
    let mut watch = Watch::of(&from);
    let sent = send_images(&mut publisher, || {
        let of = ("/image", Direction::Out);
        let is_held = |topic: &Topic| topic.held_back() == Cause::Window;
        watch.until("the network is saturated", State::Connected, of, is_held);
    });
    // One crosses, and one waits.
    assert!((1..=3).contains(&sent), "{sent} were sent");
    drop(cut);
    for expected in 0..sent {
        assert_eq!(number(&subscriber.recv_timeout(LONG).unwrap()), expected);
    }
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn full_remote_subscriber_blocks_a_publisher_of_images() {
    let hosts = Hosts::new("images held by a reader", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let (mut publisher, mut subscriber) = images(&from, &to);
    let sent = send_images(&mut publisher, || hosts.settle());
    // Those on that host, and those that wait for capacity there.
    assert!((3..=7).contains(&sent), "{sent} were sent");
    for expected in 0..sent {
        assert_eq!(number(&subscriber.recv_timeout(LONG).unwrap()), expected);
    }
    assert_eq!(subscriber.lost().total(), 0);
    eventually("the publisher has capacity", || publisher.send(&[7; IMAGE_LEN]).is_ok());
}
