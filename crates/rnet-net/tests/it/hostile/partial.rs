//! Large messages that are never completed.

use rnet::LossCause;

use super::*;

/// The most bytes of incomplete messages, without the message that begins.
const LARGE_LEN_BYTES: u64 = 1 << 30;
/// The peer sends only while the test runs.
const PATIENT: &str = "[network]\nlost_after_ms = 30000";
const TOPICS: [&str; 3] = ["/a", "/b", "/c"];

/// A fragment that begins a message, and completes it only if it has the full length.
fn fragment(channel: u32, seq: u64, total: u64, offset: u64, bytes: &[u8]) -> Item<'_> {
    let (sent_ns, meta, compressed) = (0, Meta::default(), false);
    Item::Fragment(Fragment { channel, seq, sent_ns, meta, total, offset, bytes, compressed })
}

fn say(peer: &Peer, item: &Item<'_>) {
    wait(peer, "the stream has capacity", || peer.say(Lane::Bulk, item));
}

/// Three publishers there that are heard here, and their channels.
fn matched_publishers(hosts: &Hosts, peer: &Peer) -> (rnet::Node, [Subscriber<[u8]>; 3], [u32; 3]) {
    let node = hosts.node(0, "hears");
    let mut hears = TOPICS.map(|topic| node.subscriber::<[u8]>(topic).reliable().open().unwrap());
    let all: Vec<String> = (1..).zip(TOPICS).map(|(id, topic)| publisher(id, topic)).collect();
    introduce(peer, 1, &all.join(","));
    wait(peer, "all are requested", || subscribe_requests(peer).len() == 3);
    let of = |id: u64| {
        subscribe_requests(peer).into_iter().find(|want| want.publisher == id).unwrap().channel
    };
    let channels = [of(1), of(2), of(3)];
    for channel in channels {
        say(peer, &Item::Gap { channel, seq: 0, count: 0, cause: LossCause::Link });
        say(peer, &Item::Delivery { channel, subscription: 0, active: true });
    }
    wait(peer, "all flow", || hears.iter_mut().all(|hears| hears.publisher_count() == 1));
    (node, hears, channels)
}

/// Waits until so many are counted as lost, and no message has come.
fn wait_for_lost(peer: &Peer, hears: &mut Subscriber<[u8]>, count: u64) {
    wait(peer, "they are counted", || {
        assert!(hears.try_recv().unwrap().is_none());
        hears.lost().link == count
    });
    assert_eq!(hears.lost().total(), count);
}

#[test]
fn large_message_beyond_the_memory_limit_is_lost_alone() {
    let (hosts, peer) = hosts("no room", PATIENT);
    let (mut problems, _looks) = Problems::of(&hosts);
    let (_node, mut hears, [a, b, c]) = matched_publishers(&hosts, &peer);
    for channel in [a, b] {
        say(&peer, &fragment(channel, 0, LARGE_LEN_BYTES, 0, b"x"));
    }
    // All fragments of the third arrive, and none of them is kept.
    let (len, part) = (1 << 20, vec![7; 32 << 10]);
    for offset in (0..len).step_by(part.len()) {
        say(&peer, &fragment(c, 0, len, offset, &part));
    }
    wait_for_lost(&peer, &mut hears[2], 1);
    problems.wait(&peer, "a message on /c of 1048576 bytes is lost");
    // It counts as read nevertheless, so its publisher may continue.
    let read = |item: &Item<'_>| matches!(item, Item::Credit { channel, read } if *channel == c && *read >= len + 64);
    let mut next = 1;
    wait(&peer, "it counts as read", || {
        // A small number of read bytes is reported with the next message a second later.
        say(&peer, &data(c, next, b"small"));
        next += 1;
        peer.count(read) > 0
    });
    let mut received = 1;
    wait(&peer, "small ones come", || {
        received += u64::from(hears[2].try_recv().unwrap().is_some());
        received == next
    });
    // Another message in its place ends one of the incomplete messages: it is lost and frees memory.
    say(&peer, &fragment(b, 1, 3, 0, b"new"));
    let mut new = None;
    wait(&peer, "it comes", || {
        new = hears[1].try_recv().unwrap().map(|sample| sample.to_vec());
        new.is_some()
    });
    assert_eq!(new.as_deref(), Some(&b"new"[..]));
    wait_for_lost(&peer, &mut hears[1], 1);
    for offset in (0..len).step_by(part.len()) {
        say(&peer, &fragment(c, next, len, offset, &part));
    }
    let mut received = 0;
    wait(&peer, "there is memory again", || {
        received = hears[2].try_recv().unwrap().map_or(0, |sample| sample.len() as u64);
        received > 0
    });
    assert_eq!((received, hears[2].lost().total()), (len, 1));
    assert_eq!((hears[0].lost().total(), hears[1].lost().total()), (0, 1));
    assert_eq!(peer.sessions(), 1, "no session was ended");
}

#[test]
fn incomplete_large_messages_are_lost_and_keep_the_session() {
    let (hosts, peer) = hosts("only begin", PATIENT);
    let (_node, mut hears, [a, b, c]) = matched_publishers(&hosts, &peer);
    say(&peer, &fragment(a, 0, LARGE_LEN_BYTES, 0, b"x"));
    const COUNT: u64 = 3_000;
    for seq in 0..COUNT {
        for channel in [b, c] {
            say(&peer, &fragment(channel, seq, LARGE_LEN_BYTES, 0, b"x"));
        }
    }
    for (channel, hears) in [b, c].into_iter().zip(&mut hears[1..]) {
        say(&peer, &data(channel, COUNT, b"end"));
        wait(&peer, "the end comes", || hears.try_recv().unwrap().is_some());
        wait_for_lost(&peer, hears, COUNT);
    }
    assert_eq!(peer.sessions(), 1);
}
