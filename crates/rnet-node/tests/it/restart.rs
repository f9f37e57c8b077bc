//! A node that returns under its name replaces its predecessor and leaves nothing of it.

use crate::common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::{Error, LossCounts, OnFull, PublisherStats};

/// Messages that a publisher keeps for late joiners.
const KEPT: u64 = 10;

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

/// Entry point of the child processes; the number of the role follows a colon.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let (role, n) = role.split_once(':').unwrap_or((&role, "0"));
    let n: u64 = n.parse().unwrap();
    match role {
        // Keeps the numbers from n on, and reports its publisher id.
        "persister" => {
            let orders = common::orders();
            let node = net.node("victim");
            let publisher = node.publisher::<[u8]>("/kept").reliable(OnFull::Refuse);
            let mut publisher = publisher.transient_local(KEPT as u32).open().unwrap();
            for number in n..n + KEPT {
                publisher.send(&number.to_le_bytes()).unwrap();
            }
            tell(&publisher.id().to_string());
            drop(orders.recv());
        }
        // Sends n messages of 100 kB to one reliable reader, which reads at its own pace.
        "large" => {
            let orders = common::orders();
            let node = net.node("victim");
            let mut publisher =
                node.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
            publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
            for number in 0..n {
                let mut bytes = vec![0; 100_000];
                bytes[..8].copy_from_slice(&number.to_le_bytes());
                publisher.send(&bytes).unwrap();
            }
            tell("sent");
            drop(orders.recv());
        }
        // Reads, and reports the messages.
        "reader" => {
            let _orders = common::orders();
            let node = net.node("victim");
            let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
            loop {
                tell(&number(&subscriber.recv_timeout(LONG).unwrap()).to_string());
            }
        }
        // Exits slowly, because its memory has to be unmapped first.
        "heavy" => {
            let orders = common::orders();
            let _node = net.node("victim");
            let heavy = vec![1_u8; 256 << 20];
            tell("ready");
            drop(orders.recv());
            drop(heavy);
        }
        "cycles" => cycles(&net, n),
        // One incarnation of the reader's peers: sends to two readers until it is killed.
        "brief" => {
            let _orders = common::orders();
            let node = net.node("victim");
            let mut publisher = node.publisher::<[u8]>("/t").transient_local(1).open().unwrap();
            publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
            for number in 0..3_u64 {
                publisher.send(&number.to_le_bytes()).unwrap();
                publisher.send(&[number as u8; 10_000]).unwrap();
            }
            tell("sent");
            let _reader = node.subscriber::<[u8]>("/back").open().unwrap();
            drop(_orders.recv());
        }
        other => panic!("unknown role: {other}"),
    }
}

#[test]
fn every_kind_of_subscriber_sees_the_new_publisher_and_its_history() {
    let net = Net::new("restart");
    let node = net.node("survivor");
    let subscriber =
        || node.subscriber::<[u8]>("/kept").reliable().transient_local().open().unwrap();
    let (mut plain, mut newest, mut stream) =
        (subscriber(), subscriber(), subscriber().into_stream());
    let incoming: Arc<Mutex<BTreeMap<u64, Vec<u64>>>> = Arc::default();
    let noted = incoming.clone();
    let callback = subscriber().on(move |sample| {
        noted.lock().unwrap().entry(sample.publisher()).or_default().push(number(&sample));
    });
    let mut publishers = Vec::new();
    for life in 0..4 {
        let mut child = Child::spawn(&net, &format!("persister:{}", life * 100));
        let id: u64 = child.hear().parse().unwrap();
        assert!(!publishers.contains(&id), "a publisher that came back is a new one");
        publishers.push(id);
        let kept: Vec<u64> = (life * 100..life * 100 + KEPT).collect();
        // For existing subscribers, and for a late joiner.
        let mut late =
            node.subscriber::<[u8]>("/kept").reliable().transient_local().open().unwrap();
        for subscriber in [&mut plain, &mut late] {
            for number_kept in &kept {
                let sample = subscriber.recv_timeout(LONG).unwrap();
                assert_eq!((number(&sample), sample.publisher()), (*number_kept, id));
            }
        }
        for number_kept in &kept {
            let sample = common::block_on(stream.recv()).unwrap();
            assert_eq!((number(&sample), sample.publisher()), (*number_kept, id));
        }
        eventually("the callback has them all", || {
            incoming.lock().unwrap().get(&id) == Some(&kept)
        });
        // The newest number may be expected while the others are still arriving.
        loop {
            let sample = newest.latest_timeout(LONG).unwrap();
            assert_eq!(sample.publisher(), id);
            if number(&sample) == *kept.last().unwrap() {
                break;
            }
        }
        child.kill();
        for result in [
            plain.recv_timeout(LONG).map(drop),
            late.recv_timeout(LONG).map(drop),
            newest.latest_timeout(LONG).map(drop),
            common::block_on(stream.recv()).map(drop),
        ] {
            assert!(matches!(&result, Err(Error::PeerLost { node, .. }) if node == "/victim"));
        }
    }
    let stats = plain.stats();
    assert_eq!(stats.iter().map(|s| s.publisher).collect::<Vec<_>>(), publishers);
    let each = |s: &PublisherStats| (s.received, s.lost.total(), s.connected);
    assert!(stats.iter().all(|s| each(s) == (KEPT, 0, false)), "{stats:?}");
    assert_eq!(sum(&stream.with_source(|s| s.stats()).unwrap()), (4 * KEPT, LossCounts::default()));
    assert_eq!(sum(&callback.stats()), (4 * KEPT, LossCounts::default()));
}

fn sum(stats: &[PublisherStats]) -> (u64, LossCounts) {
    stats.iter().fold((0, LossCounts::default()), |(received, mut lost), stats| {
        lost.add(&stats.lost);
        (received + stats.received, lost)
    })
}

/// Chunks are removed with their publisher: unopened ones count as lost with that cause, completely, at each
/// reader and over several incarnations.
#[test]
fn losses_of_a_restart_are_counted_as_restart() {
    const SENT: u64 = 20;
    let net = Net::new("restart large");
    let node = net.node("survivor");
    let mut eager = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    let mut lazy = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    for life in 1..=4 {
        let mut child = Child::spawn(&net, &format!("large:{SENT}"));
        child.expect("sent");
        for expected in 0..SENT {
            assert_eq!(number(&eager.recv_timeout(LONG).unwrap()), expected);
        }
        for expected in 0..3 {
            assert_eq!(number(&lazy.recv_timeout(LONG).unwrap()), expected);
        }
        child.kill();
        // The next incarnation sweeps the leftovers of the last one.
        drop(net.node("victim"));
        for subscriber in [&mut eager, &mut lazy] {
            let (_, error) = common::until_error(subscriber);
            assert!(matches!(error, Error::PeerLost { .. }), "{error:?}");
            let (received, lost) = sum(&subscriber.stats());
            assert_eq!(received + lost.restart, life * SENT);
            assert_eq!(lost.total(), lost.restart, "{lost:?}");
        }
        assert_eq!(eager.lost().total(), 0);
        let each = lazy.stats();
        assert!(each.iter().all(|s| s.received + s.lost.restart == SENT), "{each:?}");
    }
    assert!(lazy.lost().restart > 0, "all chunks still existed: nothing was tested");
}

#[test]
fn a_reliable_reader_that_comes_back_is_served_again() {
    let net = Net::new("reader restart");
    let node = net.node("survivor");
    let mut publisher = node.publisher::<[u8]>("/t").reliable(OnFull::Wait(LONG)).open().unwrap();
    for life in 0..4_u64 {
        let mut child = Child::spawn(&net, "reader");
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        for number in life * 10..life * 10 + 10 {
            publisher.send(&number.to_le_bytes()).unwrap();
            child.expect(&number.to_string());
        }
        assert_eq!(publisher.subscribers()[0].node, "/victim");
        child.kill();
        eventually("the dead reader is no longer served", || publisher.subscriber_count() == 0);
    }
}

#[test]
fn a_name_can_be_taken_again_the_moment_its_node_is_killed() {
    let net = Net::new("kill and start");
    for _ in 0..3 {
        let mut child = Child::spawn(&net, "heavy");
        child.expect("ready");
        // SAFETY: the signal goes to a child that was not waited for yet.
        assert_eq!(unsafe { libc::kill(child.pid() as libc::pid_t, libc::SIGKILL) }, 0);
        // Without a wait: the kernel still frees its memory.
        drop(net.node("victim"));
    }
}

#[test]
fn a_name_is_taken_while_its_node_is_stopped() {
    let net = Net::new("stop and start");
    let mut child = Child::spawn(&net, "persister:0");
    child.hear();
    child.stop();
    let error = net.builder("victim").open().unwrap_err();
    assert_eq!(error, Error::NameTaken { node: "/victim".to_owned(), pid: Some(child.pid()) });
    // Killed while stopped, which is dead all the same.
    // SAFETY: the signal goes to a child that was not waited for yet.
    assert_eq!(unsafe { libc::kill(child.pid() as libc::pid_t, libc::SIGKILL) }, 0);
    drop(net.node("victim"));
}

#[test]
fn hundred_restarts_leave_nothing_behind() {
    lives(100);
}

#[test]
#[ignore = "a minute: part of the soak"]
fn soak_thousand_restarts_leave_nothing_behind() {
    lives(1000);
}

fn lives(count: u64) {
    let net = Net::for_long("lives", std::time::Duration::from_secs(600));
    // In a separate process, so that no other test opens a file meanwhile.
    let mut survivor = Child::spawn(&net, &format!("cycles:{count}"));
    while survivor.hear_for(600) != "done" {}
    survivor.finish();
    let left: Vec<_> = std::fs::read_dir(net.inspect_path()).unwrap().flatten().collect();
    // The survivor itself exited without closing its node, and no node has swept it since. Of the nodes
    // before, the last one of each name has left a record of its death.
    for folder in ["names", "nodes", "deaths"] {
        let inside = std::fs::read_dir(net.inspect_path().join(folder)).unwrap().count();
        assert!(inside <= 1, "{inside} in {folder}");
    }
    assert_eq!(left.len(), 4, "{left:?}");
}

/// Kernel resources of this process: descriptors, mappings, threads and memory.
fn holdings() -> [usize; 3] {
    let count = |path: &str| std::fs::read_dir(path).unwrap().count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    // Heap mappings change independently.
    let shared = maps.lines().filter(|line| line.contains("/dev/shm/")).count();
    [count("/proc/self/fd"), shared, count("/proc/self/task")]
}

/// Private memory only: shared mappings and program pages vary with other processes.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn cycles(net: &Net, count: u64) {
    let _orders = common::orders();
    let node = net.node("survivor");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let incoming: Arc<Mutex<u64>> = Arc::default();
    let noted = incoming.clone();
    let callback =
        node.subscriber::<[u8]>("/t").open().unwrap().on(move |_| *noted.lock().unwrap() += 1);
    let back = node.publisher::<[u8]>("/back").open().unwrap();
    let mut before = [0; 3];
    let mut resident = 0;
    for life in 1..=count {
        let mut child = Child::spawn(net, "brief");
        child.expect("sent");
        back.wait_for_subscribers_timeout(1, LONG).unwrap();
        if life % 2 == 0 {
            // Every other one is killed with unread messages.
            for _ in 0..6 {
                subscriber.recv_timeout(LONG).unwrap();
            }
        }
        child.kill();
        drop(child);
        let (_, error) = common::until_error(&mut subscriber);
        assert!(matches!(error, Error::PeerLost { .. }), "{error:?}");
        let (received, lost) = sum(&subscriber.stats());
        assert_eq!(received + lost.restart, life * 6, "{lost:?}");
        assert_eq!(lost.total(), lost.restart);
        eventually("the callback's share is counted", || {
            let (received, lost) = sum(&callback.stats());
            assert_eq!(lost.total(), lost.restart);
            received == *incoming.lock().unwrap() && received + lost.restart == life * 6
        });
        eventually("the reader is gone", || back.subscriber_count() == 0);
        let domain = net.inspect_path();
        for folder in ["names", "nodes"] {
            eventually("the dead node is swept", || {
                std::fs::read_dir(domain.join(folder)).unwrap().count() == 1
            });
        }
        // All resources have reached their final size by then; pending releases are awaited.
        let now = holdings();
        if life <= 10 {
            before = [0, 1, 2].map(|at| if life == 1 { now[at] } else { before[at].min(now[at]) });
            resident = resident_kib();
        } else {
            eventually("all opened descriptors are closed", || {
                holdings().iter().zip(&before).all(|(now, before)| now <= before)
            });
        }
        assert!(subscriber.stats().len() as u64 <= life.min(65));
        if life % 50 == 0 {
            tell(&format!("life {life}: {:?}, {} KiB resident", holdings(), resident_kib()));
        }
    }
    // Less than one page per incarnation.
    let grown = resident_kib().saturating_sub(resident);
    assert!(grown < 1024 + count * 2, "{grown} KiB more than {resident}");
    tell("done");
    drop(_orders.recv());
}
