//! The link between hosts is replaced: subscribers read successive proxies and get each message once.

use crate::common;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{Child, LONG, Net, block_on, eventually, role, tell};
use rnet::bridge::BridgePublisherBuilder;
use rnet::bridge::ProxyPublisher;
use rnet::{
    Error, LossCause, MatchEvent, Meta, Node, OnFull, Origin, Proxy, Publisher, PublisherBuilder,
    Subscriber,
};

/// How long a subscriber waits for a successor.
const SUCCESSOR_TIMEOUT: Duration = Duration::from_secs(3);

fn proxied(link: &Node, endpoint: u64) -> PublisherBuilder<[u8]> {
    let publisher = link.publisher("/t").reliable(OnFull::Wait(LONG));
    publisher.proxy(Proxy::new("robot2", "/arm", endpoint).unwrap())
}

fn meta(seq: u64) -> Meta {
    Meta::default().with_origin(Origin { host: 2, publisher: 7, seq })
}

fn send(proxy: &mut Publisher<[u8]>, seq: u64, len: usize) {
    let mut message = vec![seq as u8; len];
    message[..8].copy_from_slice(&seq.to_le_bytes());
    proxy.send_with(&message, meta(seq)).unwrap();
}

fn number(message: &[u8]) -> u64 {
    assert!(message[8..].iter().all(|byte| *byte == message[0]));
    u64::from_le_bytes(message[..8].try_into().unwrap())
}

/// One incarnation of the link: sends the messages `first..=last` of this length once it has this many
/// subscribers, and waits.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let [first, last, len, subscribers] =
        role.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<u64>>()[..]
    else {
        panic!("{role}")
    };
    let net = Net::of_parent();
    let link = net.node(&format!("link{}", std::process::id()));
    let mut proxy = proxied(&link, 7).open().unwrap();
    proxy.wait_for_subscribers_timeout(subscribers as usize, LONG).unwrap();
    (first..=last).for_each(|seq| send(&mut proxy, seq, len as usize));
    tell("sent");
    for order in common::orders() {
        match order.as_str() {
            "gap" => proxy.publish_gap(LossCause::Link, 5).unwrap(),
            "close" => {
                drop(std::mem::replace(&mut proxy, link.publisher("/other").open().unwrap()))
            }
            _ => send(&mut proxy, order.parse().unwrap(), len as usize),
        }
        tell("done");
    }
}

fn live_for(subscribers: usize, net: &Net, first: u64, last: u64, len: usize) -> Child {
    let mut link = Child::spawn(net, &format!("{first} {last} {len} {subscribers}"));
    link.expect("sent");
    link
}

fn live(net: &Net, first: u64, last: u64, len: usize) -> Child {
    live_for(1, net, first, last, len)
}

/// Two incarnations of the link; the second repeats the last 50 of 100 messages. `read` determines whether
/// the first is killed before, while or after they are read.
fn two_lives(net: &Net, len: usize, read: impl FnOnce(&mut dyn FnMut())) -> Child {
    let mut first = live(net, 1, 100, len);
    let mut second = None;
    read(&mut || {
        kill(&mut first);
        second = Some(live(net, 51, 150, len));
    });
    second.unwrap()
}

thread_local! {
    /// When this test last killed an incarnation of the link.
    static KILLED: Cell<Instant> = Cell::new(Instant::now());
}

fn kill(link: &mut Child) {
    KILLED.set(Instant::now());
    link.kill();
}

/// The next message. On a busy machine the successor may arrive after the wait for it has ended.
fn next<T>(mut receive: impl FnMut() -> Result<T, Error>) -> T {
    loop {
        match receive() {
            Ok(message) => return message,
            Err(Error::PeerLost { .. }) if KILLED.get().elapsed() >= SUCCESSOR_TIMEOUT => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn subscriber(node: &Node) -> Subscriber<[u8]> {
    node.subscriber("/t").reliable().open().unwrap()
}

fn expect(subscriber: &mut Subscriber<[u8]>, numbers: impl IntoIterator<Item = u64>) {
    for expected in numbers {
        assert_eq!(next(|| subscriber.recv_timeout(LONG).map(|m| number(&m))), expected);
    }
}

/// Messages received, lost and skipped by a subscriber, over all incarnations.
fn sums(subscriber: &Subscriber<[u8]>) -> (u64, u64, u64) {
    let stats = subscriber.stats();
    let received = stats.iter().map(|s| s.received).sum();
    let skipped = stats.iter().map(|s| s.skipped).sum();
    (received, subscriber.lost().total(), skipped)
}

fn nothing_more(subscriber: &mut Subscriber<[u8]>) {
    let more = subscriber.recv_timeout(Duration::from_millis(50));
    assert!(matches!(more, Err(Error::Timeout { .. })), "{more:?}");
}

#[test]
fn each_message_comes_once_and_in_order_read_before_and_after_the_death() {
    for read_before in [0, 1, 99, 100] {
        let net = Net::new("succession recv");
        let node = net.node("reader");
        let mut reader = subscriber(&node);
        let _second = two_lives(&net, 16, |die| {
            expect(&mut reader, 1..=read_before);
            die();
            expect(&mut reader, read_before + 1..=150);
        });
        nothing_more(&mut reader);
        assert_eq!(sums(&reader), (150, 0, 0), "{read_before}");
        assert_eq!(reader.publisher_count(), 1);
    }
}

#[test]
fn all_forms_of_receiving_get_each_message_once() {
    let net = Net::new("succession forms");
    let node = net.node("reader");
    let open = || subscriber(&node);
    let (mut iterated, mut batched, mut streamed) = (open(), open(), open().into_stream());
    let (tell, called) = mpsc::channel();
    let _callback = open().on_result(move |result| tell.send(result.map(|m| number(&m))).unwrap());
    let mut second = None;
    let mut first = live_for(4, &net, 1, 100, 16);
    let mut seen = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for half in [60, 150] {
        let more = |seen: &Vec<u64>| half as usize - seen.len();
        let count = more(&seen[0]);
        seen[0].extend(iterated.iter().take(count).map(|m| number(&m)));
        while seen[1].len() < half as usize {
            let (max, batch) = (more(&seen[1]), &mut seen[1]);
            let take = |m: rnet::Sample<'_, [u8]>| {
                batch.push(number(&m));
                ControlFlow::Continue(())
            };
            let mut got = Some(batched.recv_batch_timeout(max, LONG, take));
            next(|| got.take().unwrap_or(Ok(0)));
        }
        while seen[2].len() < half as usize {
            seen[2].push(next(|| block_on(streamed.recv()).map(|m| number(&m))));
        }
        while seen[3].len() < half as usize {
            seen[3].push(next(|| called.recv_timeout(LONG).unwrap()));
        }
        if second.is_none() {
            kill(&mut first);
            second = Some(live_for(4, &net, 51, 150, 16));
        }
    }
    assert!(seen.iter().all(|seen| seen.iter().copied().eq(1..=150)), "{seen:?}");
}

#[test]
fn keep_last_subscriber_gets_no_message_twice() {
    let net = Net::new("succession keep last");
    let node = net.node("reader");
    let mut subscriber = node.subscriber::<[u8]>("/t").keep_last(10).open().unwrap();
    let mut numbers = Vec::new();
    let _second = two_lives(&net, 16, |die| {
        for _ in 0..3 {
            numbers.push(next(|| subscriber.recv_timeout(LONG).map(|m| number(&m))));
        }
        die();
        while numbers.last() != Some(&150) {
            numbers.push(next(|| subscriber.recv_timeout(LONG).map(|m| number(&m))));
        }
    });
    let expected: Vec<u64> = (91..=100).chain(141..=150).collect();
    assert_eq!(numbers, expected);
    assert_eq!(sums(&subscriber), (20, 0, 130));
}

#[test]
fn latest_never_returns_an_older_message() {
    for read_before in [false, true] {
        let net = Net::new("succession latest");
        let node = net.node("reader");
        let mut reader = subscriber(&node);
        let latest = |reader: &mut Subscriber<[u8]>| {
            next(|| reader.latest_timeout(LONG).map(|m| number(&m)))
        };
        let mut first = live(&net, 1, 100, 16);
        if read_before {
            assert_eq!(latest(&mut reader), 100);
        }
        kill(&mut first);
        // Each message is a repetition.
        let mut second = live(&net, 51, 100, 16);
        if !read_before {
            assert_eq!(latest(&mut reader), 100);
        }
        let more = reader.latest_timeout(Duration::from_millis(50));
        assert!(matches!(more, Err(Error::Timeout { .. })), "{more:?}");
        for seq in 101..=110 {
            second.say(&seq.to_string());
            second.expect("done");
        }
        assert_eq!(latest(&mut reader), 110);
        assert_eq!(sums(&reader), (2, 0, 108), "{read_before}");
    }
}

/// Large messages lost through the publisher's death are counted, and are not delivered again.
#[test]
fn large_messages_arrive_once_or_are_counted() {
    for read_before in [10, 20] {
        let net = Net::new("succession large");
        let node = net.node("reader");
        let mut reader = subscriber(&node);
        let mut first = live(&net, 1, 20, 50_000);
        let mut numbers = Vec::new();
        while numbers.len() < read_before {
            numbers.push(next(|| reader.recv_timeout(LONG).map(|m| number(&m))));
        }
        kill(&mut first);
        let _second = live(&net, 11, 30, 50_000);
        while numbers.last() != Some(&30) {
            numbers.push(next(|| reader.recv_timeout(LONG).map(|m| number(&m))));
        }
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        let (received, lost, skipped) = sums(&reader);
        assert_eq!((received, received + lost, skipped), (numbers.len() as u64, 30, 0));
        assert!(read_before < 20 || lost == 0, "{lost} lost");
    }
}

#[test]
fn a_proxy_without_successor_is_lost_after_the_grace_time() {
    let net = Net::new("succession none");
    let node = net.node("reader");
    let mut reader = subscriber(&node);
    let (tell, events) = mpsc::channel();
    reader.on_match(move |event| tell.send(event.clone()).unwrap()).detach();
    let mut first = live(&net, 1, 3, 16);
    let died = Instant::now();
    kill(&mut first);
    expect(&mut reader, 1..=3);
    let error = reader.recv_timeout(LONG).unwrap_err();
    let Error::PeerLost { node: lost, .. } = &error else { panic!("{error}") };
    assert_eq!(lost, "@robot2/arm");
    assert!(died.elapsed() >= SUCCESSOR_TIMEOUT);
    let event = || events.recv_timeout(LONG).unwrap();
    assert!(matches!(event(), MatchEvent::Matched(_)));
    assert!(matches!(event(), MatchEvent::Lost(info) if info.node == "@robot2/arm"));
    // A late successor is still accepted.
    let mut second = live(&net, 2, 5, 16);
    expect(&mut reader, 4..=5);
    // A closed proxy is not lost.
    second.say("close");
    second.expect("done");
    assert!(matches!(event(), MatchEvent::Matched(_)));
    assert!(matches!(event(), MatchEvent::Unmatched(_)));
    nothing_more(&mut reader);
    // Its delivered messages are still remembered.
    let _third = live(&net, 1, 6, 16);
    expect(&mut reader, 6..=6);
    assert_eq!(sums(&reader), (6, 0, 0));
}

/// A subscriber that reads late gets the remaining messages first, then the end.
#[test]
fn a_lost_proxy_is_read_to_its_end_first() {
    let net = Net::new("succession unread");
    let node = net.node("reader");
    let mut reader = subscriber(&node);
    let (tell, events) = mpsc::channel();
    reader.on_match(move |event| tell.send(event.clone()).unwrap()).detach();
    kill(&mut live(&net, 1, 3, 16));
    while !matches!(events.recv_timeout(LONG).unwrap(), MatchEvent::Lost(_)) {}
    expect(&mut reader, 1..=3);
    assert!(matches!(reader.recv_timeout(LONG), Err(Error::PeerLost { .. })));
}

#[test]
fn gap_reported_by_the_link_is_counted_once() {
    let net = Net::new("succession gap");
    let node = net.node("reader");
    let mut reader = subscriber(&node);
    let mut first = live(&net, 1, 3, 16);
    kill(&mut first);
    let mut second = live(&net, 2, 3, 16);
    second.say("gap");
    second.expect("done");
    second.say("9");
    second.expect("done");
    expect(&mut reader, [1, 2, 3, 9]);
    nothing_more(&mut reader);
    assert_eq!(reader.lost().link, 5);
    assert_eq!(sums(&reader), (4, 5, 0));
}

#[test]
fn sixty_four_incarnations_are_one_publisher() {
    const NEW: u64 = 20;
    const REPEATED: u64 = 10;
    let net = Net::for_long("succession many", Duration::from_secs(180));
    let node = net.node("reader");
    let mut reader = subscriber(&node);
    let mut unread = subscriber(&node);
    for life in 0..64 {
        let first = (life * NEW + 1).saturating_sub(REPEATED).max(1);
        let mut link = live_for(2, &net, first, (life + 1) * NEW, 16);
        if life % 2 == 0 {
            kill(&mut link);
        }
        expect(&mut reader, life * NEW + 1..=(life + 1) * NEW);
        kill(&mut link);
    }
    assert_eq!(sums(&reader), (64 * NEW, 0, 0));
    // A subscriber that has not read yet.
    let mut newest = 0;
    while newest < 64 * NEW {
        let seq = next(|| unread.recv_timeout(LONG).map(|m| number(&m)));
        assert!(seq > newest, "{seq} after {newest}");
        newest = seq;
    }
}

/// A stopped link is replaced while its process lives.
#[test]
fn messages_before_the_stop_of_a_link_are_read() {
    let net = Net::new("succession stopped");
    let node = net.node("reader");
    let mut reader = subscriber(&node);
    let mut first = live(&net, 1, 100, 16);
    first.stop();
    let mut second = live(&net, 51, 150, 16);
    expect(&mut reader, 1..=150);
    first.resume();
    first.say("close");
    first.expect("done");
    second.say("151");
    second.expect("done");
    expect(&mut reader, [151]);
    // The end of one of two proxies is not the end of the publisher.
    kill(&mut first);
    let _third = live(&net, 151, 152, 16);
    kill(&mut second);
    expect(&mut reader, [152]);
    nothing_more(&mut reader);
    assert_eq!(sums(&reader), (152, 0, 0));
}

/// A node cannot end another node's proxy, or prevent it from being read.
#[test]
fn proxy_with_a_foreign_identity_affects_only_itself() {
    let net = Net::new("succession claims");
    let (node, link, liar) = (net.node("reader"), net.node("link"), net.node("liar"));
    let open = |of: &Node| proxied(of, 7).open().unwrap();
    let mut reader = subscriber(&node);
    let mut good = open(&link);
    reader.wait_for_publishers_timeout(1, LONG).unwrap();
    send(&mut good, 1, 16);
    let mut bad = open(&liar);
    reader.wait_for_publishers_timeout(2, LONG).unwrap();
    send(&mut bad, u64::MAX, 16);
    send(&mut good, 2, 16);
    let got: BTreeSet<u64> =
        (0..3).map(|_| next(|| reader.recv_timeout(LONG).map(|m| number(&m)))).collect();
    assert_eq!(got, BTreeSet::from([1, 2, u64::MAX]));
    send(&mut good, 3, 16);
    expect(&mut reader, [3]);
    // A far-ahead number does not suppress the messages of a later proxy either.
    drop(good);
    drop(bad);
    nothing_more(&mut reader);
    let mut next = open(&link);
    reader.wait_for_publishers_timeout(1, LONG).unwrap();
    send(&mut next, 4, 16);
    expect(&mut reader, [4]);
}

#[test]
fn late_subscriber_of_a_successor_counts_losses() {
    let net = Net::new("late to the next");
    let (link, node) = (net.node("link"), net.node("node"));
    let mut proxy = proxied(&link, 7).open().unwrap();
    let (mut early, mut late) = (subscriber(&node), subscriber(&node));
    proxy.wait_for_subscribers_timeout(2, LONG).unwrap();
    (0..3).for_each(|seq| send(&mut proxy, seq, 22));
    let both = [&mut early, &mut late];
    both.into_iter().for_each(|subscriber| expect(subscriber, 0..3));
    let late_id = late.id();
    drop(proxy);
    let mut next_proxy = proxied(&link, 7).deferred().open().unwrap();
    eventually("both ask", || next_proxy.awaiting_admission().len() == 2);
    next_proxy.admit(early.id()).unwrap();
    next_proxy.wait_for_subscribers_timeout(1, LONG).unwrap();
    next_proxy.publish_gap(LossCause::Link, 4).unwrap();
    (7..9).for_each(|seq| send(&mut next_proxy, seq, 22));
    next_proxy.admit(late_id).unwrap();
    next_proxy.wait_for_subscribers_timeout(2, LONG).unwrap();
    send(&mut next_proxy, 9, 22);
    expect(&mut early, 7..10);
    expect(&mut late, 9..10);
    [&mut early, &mut late].into_iter().for_each(nothing_more);
    assert_eq!((early.lost().total(), early.lost().link), (4, 4));
    assert_eq!((late.lost().total(), late.lost().link), (6, 4));
}
