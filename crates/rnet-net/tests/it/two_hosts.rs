//! Nodes of two hosts: two domains of this machine, joined by links over an in-memory network.

use crate::common;
use crate::hosts;

use std::time::Duration;

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::{EndpointEvent, Error, LossCause, Meta, OnFull};

/// The interval between two checks for capacity.
const PAUSE: Duration = Duration::from_millis(5);

#[test]
fn message_crosses() {
    let hosts = Hosts::new("crosses", 2);
    let (lidar, map) = (hosts.node(0, "lidar"), hosts.node(1, "map"));
    let mut scans = lidar.publisher::<[u8]>("/scan").open().unwrap();
    let mut subscriber = map.subscriber::<[u8]>("/scan").open().unwrap();
    scans.wait_for_subscribers_timeout(1, LONG).unwrap();
    assert_eq!(scans.subscribers()[0].node, "@host1/map");
    for number in 0..5_u8 {
        let meta = Meta::default().with_correlation(number.into()).with_source_ns(7);
        scans.send_with(&[number; 22], meta).unwrap();
    }
    for number in 0..5_u8 {
        let scan = subscriber.recv_timeout(LONG).unwrap();
        assert_eq!((&*scan, scan.node()), (&[number; 22][..], "@host0/lidar"));
        assert_eq!((scan.correlation(), scan.source_ns()), (Some(number.into()), Some(7)));
        let origin = scan.origin().unwrap();
        assert_eq!((origin.publisher, origin.seq), (scans.id(), number.into()));
    }
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn publisher_and_subscriber_may_wait_for_each_other() {
    let hosts = Hosts::new("waits", 2);
    let (lidar, map) = (hosts.node(0, "lidar"), hosts.node(1, "map"));
    let mut subscriber = map.subscriber::<[u8]>("/scan").open().unwrap();
    let mut scans = lidar.publisher::<[u8]>("/scan").open().unwrap();
    // A subscriber that has matched the publisher receives all messages sent from then on.
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    scans.send(b"first").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"first");
    scans.wait_for_subscribers_timeout(1, LONG).unwrap();
    drop(subscriber);
    eventually("it is not counted any more", || scans.subscriber_count() == 0);
    let mut subscriber = map.subscriber::<[u8]>("/scan").open().unwrap();
    scans.wait_for_subscribers_timeout(1, LONG).unwrap();
    scans.send(b"second").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"second");
    drop(scans);
    eventually("it has left", || subscriber.publisher_count() == 0);
}

#[test]
fn late_subscribers_get_kept_messages() {
    let hosts = Hosts::new("late", 2);
    let (lidar, map) = (hosts.node(0, "lidar"), hosts.node(1, "map"));
    let mut maps = lidar.publisher::<[u8]>("/map").transient_local(2).open().unwrap();
    for number in 0..4_u8 {
        maps.send(&[number; 8]).unwrap();
    }
    for _ in 0..2 {
        let mut first = map.subscriber::<[u8]>("/map").transient_local().open().unwrap();
        let mut volatile = map.subscriber::<[u8]>("/map").open().unwrap();
        assert_eq!(&*first.recv_timeout(LONG).unwrap(), &[2; 8]);
        assert_eq!(&*first.recv_timeout(LONG).unwrap(), &[3; 8]);
        volatile.wait_for_publishers_timeout(1, LONG).unwrap();
        assert!(volatile.try_recv().unwrap().is_none());
        // The next one gets them from the proxy.
        let mut second = map.subscriber::<[u8]>("/map").transient_local().open().unwrap();
        assert_eq!(&*second.recv_timeout(LONG).unwrap(), &[2; 8]);
        drop((first, volatile, second));
    }
}

#[test]
fn large_message_crosses_intact() {
    let hosts = Hosts::new("large", 2);
    let (camera, viewer) = (hosts.node(0, "camera"), hosts.node(1, "viewer"));
    let mut images =
        camera.publisher::<[u8]>("/image").reliable(OnFull::Wait(LONG)).open().unwrap();
    let mut seen = viewer.subscriber::<[u8]>("/image").reliable().open().unwrap();
    images.wait_for_subscribers_timeout(1, LONG).unwrap();
    for len in [8 << 10, (8 << 10) + 1, 100_000, 6 << 20] {
        let image: Vec<u8> = (0..len).map(|at: usize| (at * 7 / 3) as u8).collect();
        images.send(&image).unwrap();
        let got = seen.recv_timeout(LONG).unwrap();
        assert!(*got == image[..], "{len} bytes");
    }
    assert_eq!(seen.lost().total(), 0);
}

#[test]
fn reliable_remote_subscriber_blocks_the_publisher() {
    let hosts = Hosts::new("reliable", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Refuse)
        .log_len_bytes(1 << 16)
        .open()
        .unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let message = |number: u64| [&number.to_le_bytes()[..], &[0; 1000]].concat();
    let (mut sent, mut refused) = (0_u64, 0);
    // Messages that the link reads free capacity, while the other host has capacity.
    while refused < 100 {
        match publisher.send(&message(sent)) {
            Ok(()) => (sent, refused) = (sent + 1, 0),
            Err(Error::Full { .. }) => {
                refused += 1;
                std::thread::sleep(PAUSE); // sleep: no event shows that the link reads no more
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(sent < 10_000, "the link has accepted {sent} messages of 1 kB");
    for number in 0..sent {
        let message = subscriber.recv_timeout(LONG).unwrap();
        assert_eq!(message[..8], number.to_le_bytes());
    }
    // And the publisher continues.
    eventually("the publisher has capacity", || publisher.send(&[0; 8]).is_ok());
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn types_and_qos_are_compared_between_hosts() {
    let hosts = Hosts::new("mismatch", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let publisher = from.publisher::<rnet::msgs::Imu>("/imu").open().unwrap();
    let mut other = to.subscriber::<rnet::msgs::JointState>("/imu").open().unwrap();
    let error = other.recv_timeout(LONG).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::IncompatibleType { .. }), "{text}");
    assert!(text.contains("@host0/from") && text.contains("/imu"), "{text}");
    eventually("the publisher knows", || {
        publisher.incompatible().iter().any(|error| error.to_string().contains("@host1/to"))
    });
    let mut strict = to.subscriber::<rnet::msgs::Imu>("/imu").reliable().open().unwrap();
    assert!(matches!(strict.recv_timeout(LONG).unwrap_err(), Error::IncompatibleQos { .. }));
}

#[test]
fn remote_death_is_reported() {
    let hosts = Hosts::new("death", 2);
    let to = hosts.node(1, "to");
    let mut subscriber = to.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = hosts.child(0, "talker");
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    child.say("send");
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"alive");
    child.kill();
    match subscriber.recv_timeout(LONG).unwrap_err() {
        Error::PeerLost { node, topic } => {
            assert_eq!((node.as_str(), topic.as_str()), ("@host0/talker", "/t"));
        }
        other => panic!("{other}"),
    }
}

#[test]
#[ignore = "entry point of child processes"]
fn child_entry() {
    let Some(role) = common::role() else { return };
    let node = common::Net::of_parent().node(&role);
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    for order in common::orders() {
        assert_eq!(order, "send");
        publisher.send(b"alive").unwrap();
    }
}

#[test]
fn cut_cable_causes_counted_loss_and_heals() {
    let hosts = Hosts::new("cut", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    // A short log, so that some of it is gone.
    let mut publisher = from.publisher::<[u8]>("/t").log_len_bytes(1 << 16).open().unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").keep_all().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&0_u64.to_le_bytes()).unwrap();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), 0_u64.to_le_bytes());
    hosts.cut(0, 1);
    assert!(matches!(subscriber.recv_timeout(LONG).unwrap_err(), Error::PeerLost { .. }));
    eventually("no subscriber there is counted", || publisher.subscriber_count() == 0);
    let many = 10_000_u64;
    for number in 1..many {
        publisher.send(&number.to_le_bytes()).unwrap();
    }
    hosts.heal(0, 1);
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&many.to_le_bytes()).unwrap();
    let (mut last, mut got) = (0, 0);
    while last < many {
        let message = subscriber.recv_timeout(LONG).unwrap();
        let number = u64::from_le_bytes(message[..8].try_into().unwrap());
        assert!(number > last, "{number} after {last}");
        (last, got) = (number, got + 1);
    }
    let lost = subscriber.lost();
    assert!(got < many, "the log is too short for all of them");
    // The burst after the healing may have been too large for a short log.
    assert_eq!(got + lost.total(), many, "{lost:?}");
    assert!(lost.link > 0 && lost.total() == lost.link + lost.overrun, "{lost:?}");
}

#[test]
fn endpoints_of_all_hosts_are_visible() {
    let hosts = Hosts::new("seen", 3);
    let (one, two) = (hosts.node(0, "one"), hosts.node(1, "two"));
    let (sender, receiver) = std::sync::mpsc::channel();
    let watcher = hosts.node(2, "watcher");
    let _watch = watcher
        .on_endpoint(move |event| {
            let endpoint = event.endpoint();
            if endpoint.proxy.is_some() {
                let opened = matches!(event, EndpointEvent::Opened(_));
                sender.send((endpoint.node.clone(), endpoint.topic.clone(), opened)).unwrap();
            }
        })
        .unwrap();
    let publisher = one.publisher::<rnet::msgs::Imu>("/imu").open().unwrap();
    let subscriber = two.subscriber::<[u8]>("/stop").open().unwrap();
    let next = || receiver.recv_timeout(LONG).unwrap();
    let mut seen = [next(), next()];
    seen.sort();
    let of = |node: &str, topic: &str, opened| (node.to_owned(), topic.to_owned(), opened);
    assert_eq!(seen, [of("@host0/one", "/imu", true), of("@host1/two", "/stop", true)]);
    drop(publisher);
    assert_eq!(next(), of("@host0/one", "/imu", false));
    drop(subscriber);
    assert_eq!(next(), of("@host1/two", "/stop", false));
}

#[test]
fn known_gap_is_counted_remotely() {
    let hosts = Hosts::new("gap", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send_with(b"x", Meta::default().with_gap(LossCause::Restart, 5)).unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"x");
    assert_eq!(subscriber.lost().restart, 5);
}

#[test]
fn messages_sent_in_a_cut_before_the_first_are_accounted_for() {
    let hosts = Hosts::new("first_cut", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").log_len_bytes(1 << 16).open().unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").keep_all().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    hosts.cut(0, 1);
    assert!(matches!(subscriber.recv_timeout(LONG).unwrap_err(), Error::PeerLost { .. }));
    eventually("no subscriber there is counted", || publisher.subscriber_count() == 0);
    for number in 0..10_u64 {
        publisher.send(&number.to_le_bytes()).unwrap();
    }
    hosts.heal(0, 1);
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&10_u64.to_le_bytes()).unwrap();
    let mut got = 0;
    loop {
        let message = subscriber.recv_timeout(LONG).unwrap();
        got += 1;
        if *message == 10_u64.to_le_bytes() {
            break;
        }
    }
    assert_eq!(got + subscriber.lost().total(), 11, "{:?}", subscriber.lost());
}

#[test]
fn loss_at_the_end_is_reported_without_a_later_message() {
    let hosts = Hosts::new("let_go", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Detach { stall: Duration::from_millis(10) })
        .log_len_bytes(1 << 16)
        .open()
        .unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&[0; 1000]).unwrap();
    subscriber.recv_timeout(LONG).unwrap();
    // The link is stopped by the cut, and is evicted.
    hosts.cut(0, 1);
    for _ in 0..1000 {
        publisher.send(&[1; 1000]).unwrap();
    }
    hosts.heal(0, 1);
    let (mut got, mut lost) = (1, 0);
    eventually("every message has come or is lost", || {
        // If this took too long, the error is that the host was lost.
        while let Some(message) = subscriber.try_recv().transpose() {
            got += u64::from(message.is_ok());
        }
        lost = subscriber.lost().total();
        got + lost == 1001
    });
    assert!(lost > 0);
}

#[test]
fn waiting_messages_are_read_after_their_publisher_closed() {
    const COUNT: u64 = 2000;
    let hosts = Hosts::new("room", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Wait(Duration::from_secs(30)))
        .open()
        .unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    // More than the log of the proxy holds, and less than the link accepts: the publisher does not wait for
    // the reader.
    for number in 0..COUNT {
        publisher.send(&[&number.to_le_bytes()[..], &[7; 1000]].concat()).unwrap();
    }
    drop(publisher);
    std::thread::sleep(20 * PAUSE); // sleep: no event shows that the other host knows of the end
    for number in 0..COUNT {
        let message = subscriber.recv_timeout(LONG).unwrap();
        assert_eq!(message[..8], number.to_le_bytes());
    }
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn slow_remote_reader_with_progress_is_waited_for() {
    // Twice what the link reads ahead of the reader; and the reader takes longer for it than any time-out.
    const LEN: usize = 16 << 10;
    const CREDIT_LEN: usize = 4 << 20;
    const POOL_LEN: usize = 1 << 20;
    const COUNT: u64 = (2 * CREDIT_LEN / LEN) as u64;
    const TAKES: Duration = Duration::from_millis(20);
    let stall = Duration::from_secs(2);
    let hosts = Hosts::new("slow", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let open = |(topic, on_full)| {
        let publisher = from
            .publisher::<[u8]>(topic)
            .reliable(on_full)
            .pool_limit_bytes(POOL_LEN as u64)
            .open()
            .unwrap();
        let subscriber = to.subscriber::<[u8]>(topic).reliable().open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        (publisher, subscriber)
    };
    let both = [("/waits", OnFull::Wait(stall)), ("/detaches", OnFull::Detach { stall })].map(open);
    std::thread::scope(|scope| {
        for (mut publisher, mut subscriber) in both {
            let (sender, receiver) = std::sync::mpsc::channel();
            scope.spawn(move || {
                // The credit limits what the link of the other host keeps; the rest is in the pools.
                let most = (CREDIT_LEN + 2 * POOL_LEN) / LEN + 8;
                let mut read = 0;
                for number in 0..COUNT {
                    publisher.send(&[&number.to_le_bytes()[..], &[7; LEN - 8]].concat()).unwrap();
                    read += receiver.try_iter().count();
                    assert!(number as usize - read <= most, "{number} were sent, {read} read");
                }
            });
            scope.spawn(move || {
                for number in 0..COUNT {
                    let message = subscriber.recv_timeout(LONG).unwrap();
                    assert_eq!(message[..8], number.to_le_bytes());
                    let _ = sender.send(());
                    std::thread::sleep(TAKES); // sleep: the reader is slow
                }
                assert_eq!(subscriber.lost().total(), 0);
            });
        }
    });
}

/// Compressed messages use little of the credit: all of them may wait on the other host.
#[test]
fn slow_remote_reader_of_compressed_messages_misses_none() {
    const LENS: [usize; 2] = [4 << 10, 1 << 20];
    const POOL_LEN: u64 = 4 << 20;
    let config = "[[network.topic]]\ntopic = \"/**\"\ncompression = \"lz4\"\n";
    let hosts = Hosts::with_config("compressed", &[config, ""]);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    for (len, topic) in LENS.into_iter().zip(["/small", "/large"]) {
        let wait = OnFull::Wait(LONG);
        let mut publisher =
            from.publisher::<[u8]>(topic).reliable(wait).pool_limit_bytes(POOL_LEN).open().unwrap();
        let mut subscriber = to.subscriber::<[u8]>(topic).reliable().open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        // Three times what the link would keep of uncompressed messages.
        let count = 3 * ((8 << 20) + POOL_LEN) / len as u64;
        // Even compressed, the large ones exceed the length of an unfragmented message: they cross in
        // fragments.
        let mut random = 1_u64;
        let noise = (0..len / 32).map(|_| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (random >> 56) as u8
        });
        let rest: Vec<u8> = noise.chain(std::iter::repeat(7)).take(len - 8).collect();
        for number in 0..count {
            publisher.send(&[&number.to_le_bytes()[..], &rest].concat()).unwrap();
        }
        hosts.settle();
        for number in 0..count {
            let message = subscriber.recv_timeout(LONG).unwrap();
            assert_eq!((message.len(), &message[..8]), (len, &number.to_le_bytes()[..]));
        }
        assert_eq!(subscriber.lost().total(), 0);
    }
}

/// Messages that wait for capacity are read, also those of a host that never returns, or that returns.
fn waiting_messages_when_host_is_lost(test: &str, reads_on: bool) {
    const COUNT: u64 = 2000;
    let hosts = Hosts::new(test, 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Wait(Duration::from_secs(30)))
        .open()
        .unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    // More than the log of the proxy holds, and less than the link accepts.
    for number in 0..COUNT {
        publisher.send(&[&number.to_le_bytes()[..], &[7; 1000]].concat()).unwrap();
    }
    hosts.settle();
    hosts.cut(0, 1);
    let known = || hosts.domain(1).inspect().publishers.iter().any(|info| info.topic == "/t");
    if reads_on {
        // Its nodes are lost at once, whatever waits.
        eventually("the host is lost", || {
            !hosts.domain(1).inspect().publishers.iter().any(|info| info.topic == "/_rnet/nodes")
        });
    } else {
        eventually("nothing is left of the host", || !known());
    }
    let (mut got, mut is_cut) = (0, true);
    while is_cut || got < COUNT {
        match subscriber.recv_timeout(LONG) {
            Ok(message) => {
                assert_eq!(message[..8], u64::to_le_bytes(got));
                got += 1;
            }
            Err(Error::PeerLost { .. }) if is_cut => {
                assert!(got > 0 && (got == COUNT) == reads_on, "{got} were read");
                is_cut = false;
                hosts.heal(0, 1);
            }
            Err(error) => panic!("{error}"),
        }
    }
    hosts.settle();
    assert!(subscriber.try_recv().unwrap().is_none(), "each came once");
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn waiting_messages_are_read_after_their_host_was_lost() {
    waiting_messages_when_host_is_lost("orphan_read", true);
}

#[test]
fn long_waiting_messages_come_again_with_their_host() {
    waiting_messages_when_host_is_lost("orphan_again", false);
}

#[test]
fn publisher_gone_before_it_was_read_leaves_nothing_remotely() {
    let hosts = Hosts::new("unread", 2);
    let to = hosts.node(1, "to");
    let known = || hosts.domain(1).inspect().publishers.iter().any(|info| info.topic == "/t");
    let mut child = hosts.child(0, "talker");
    eventually("it is known there", known);
    // From now on it admits no subscriber.
    child.stop();
    let _subscriber = to.subscriber::<[u8]>("/t").open().unwrap();
    eventually("the link requests it", || {
        hosts.domain(0).inspect().forwarders.iter().any(|info| info.topic == "/t")
    });
    child.kill();
    eventually("it is gone there", || !known());
}
