//! A process truncates files that others have mapped: no process dies, the affected ones get an error, and
//! all others lose nothing.

use crate::common;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::inspect::{Domain, FollowEvent, Follower};
use rnet::{Error, Node, OnFull, Wait};

/// Messages of the channel that must not be affected.
const HONEST: u64 = 200;
/// Large messages: in chunks of their own.
const LARGE_LEN: usize = 300_000;

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    let node = net.node("peer");
    match role.as_str() {
        // Sends until an error stops it.
        "small" => {
            let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            tell("ready");
            let payload = [7; 1000];
            let error = loop {
                if let Err(error) = publisher.send(&payload) {
                    break error;
                }
            };
            tell(&error.to_string());
            // Reports whether the same publisher can continue.
            tell(if publisher.send(&payload).is_ok() { "goes on" } else { "does not go on" });
            drop(orders.recv());
        }
        // Sends without end. A truncated resource may fail, and nothing else.
        "large" => {
            let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            tell("ready");
            while orders.try_recv().is_err() {
                if let Err(error) = publisher.send(&[7; LARGE_LEN]) {
                    assert!(error.to_string().contains("truncated"), "{error}");
                }
            }
        }
        // Sends one message per order.
        "on demand" => {
            let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            tell("ready");
            for line in orders {
                let sent = publisher.send(&vec![7; line.parse().unwrap()]);
                tell(if sent.is_ok() { "sent" } else { "failed" });
            }
        }
        "reads" => {
            let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
            subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
            tell("ready");
            let error = loop {
                if let Err(error) = subscriber.recv_timeout(LONG) {
                    break error;
                }
            };
            tell(&error.to_string());
            drop(orders.recv());
        }
        other => panic!("unknown role: {other}"),
    }
}

/// Files of a node whose names begin with `prefix`.
fn files(net: &Net, node: &str, prefix: &str) -> Vec<PathBuf> {
    let nodes = net.base().join(format!("rnet-{}-t/nodes", rustix::process::geteuid().as_raw()));
    let folders = std::fs::read_dir(nodes).unwrap().flatten();
    let ours = folders.filter(|f| f.file_name().to_string_lossy().starts_with(&format!("{node}@")));
    let all = ours.flat_map(|f| std::fs::read_dir(f.path()).into_iter().flatten().flatten());
    all.filter(|f| f.file_name().to_string_lossy().starts_with(prefix)).map(|f| f.path()).collect()
}

#[derive(Clone, Copy, Debug)]
enum Cut {
    All,
    AfterFirstPage,
    Middle,
}

const CUTS: [Cut; 3] = [Cut::All, Cut::AfterFirstPage, Cut::Middle];

/// Truncates the files. Fails if there are none.
fn cut(paths: &[PathBuf], how: Cut) {
    assert!(!paths.is_empty(), "no file to truncate");
    for path in paths {
        // A file that is unlinked meanwhile was no longer in use.
        let Ok(file) = std::fs::OpenOptions::new().write(true).open(path) else { continue };
        let file_now = file.metadata().unwrap();
        let len = file_now.len();
        // A log uses the first part of its file and grows: the rest is unused.
        let used = (file_now.blocks() * 512).min(len);
        let left = match how {
            Cut::All => 0,
            Cut::AfterFirstPage => 4096,
            // At a page boundary: the rest of a partially truncated page reads as zeros.
            Cut::Middle => (used / 2) & !4095,
        };
        assert!(left < len, "{} is too short to be cut", path.display());
        file.set_len(left).unwrap();
    }
}

/// Another channel of the same node that must lose nothing.
struct Honest {
    publisher: rnet::Publisher<[u8]>,
    subscriber: rnet::Subscriber<[u8]>,
    _node: Node,
}

impl Honest {
    fn new(net: &Net, victim: &Node) -> Honest {
        let node = net.node("honest");
        let wait = OnFull::Wait(Duration::from_secs(30));
        let mut publisher = node.publisher::<[u8]>("/honest").reliable(wait).open().unwrap();
        let subscriber = victim.subscriber::<[u8]>("/honest").reliable().open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        for i in 0..HONEST / 2 {
            publisher.send(&i.to_le_bytes()).unwrap();
        }
        Honest { publisher, subscriber, _node: node }
    }

    fn lost_nothing(mut self) {
        for i in HONEST / 2..HONEST {
            self.publisher.send(&i.to_le_bytes()).unwrap();
        }
        for i in 0..HONEST {
            assert_eq!(*self.subscriber.recv_timeout(LONG).unwrap(), i.to_le_bytes());
        }
    }
}

/// Afterwards, two new endpoints of the topic communicate.
fn a_new_pair_works(net: &Net) {
    let (a, b) = (net.node("new_a"), net.node("new_b"));
    let mut subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    // The victim's subscriber still exists, so a count would not show that the new one is matched.
    eventually("the new pair communicates", || {
        publisher.send(b"new").unwrap();
        subscriber.recv_timeout(Duration::from_millis(20)).is_ok_and(|sample| &*sample == b"new")
    });
}

/// Receives until an error occurs, and reads each byte.
fn until_error(subscriber: &mut rnet::Subscriber<[u8]>) -> Error {
    loop {
        match subscriber.recv_timeout(LONG) {
            Ok(sample) => {
                std::hint::black_box(sample.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b)));
            }
            Err(error) => return error,
        }
    }
}

#[track_caller]
fn says_truncated(error: &Error) {
    let Error::Corrupt { topic, publisher_node, what } = error else { panic!("{error}") };
    assert_eq!((topic.as_str(), publisher_node.as_str()), ("/t", "/peer"));
    assert!(what.contains("truncated"), "{what}");
}

#[test]
fn truncated_log() {
    for how in CUTS {
        let net = Net::new("cut_log");
        let victim = net.node("victim");
        let honest = Honest::new(&net, &victim);
        let mut subscriber = victim.subscriber::<[u8]>("/t").open().unwrap();
        let mut follow = Follower::new(
            Domain::open(Some("t"), Some(net.base().to_owned()), None).unwrap(),
            "/t",
            false,
        )
        .unwrap();
        let mut child = Child::spawn(&net, "small");
        child.expect("ready");
        subscriber.recv_timeout(LONG).unwrap();
        let mut bytes = Vec::new();
        eventually("the observer receives", || follow.poll(&mut bytes).unwrap().is_some());
        cut(&files(&net, "peer", "p0"), how);
        says_truncated(&until_error(&mut subscriber));
        eventually("the observer gets an error", || {
            let _ = follow.poll(&mut bytes).unwrap();
            follow.take_events().iter().any(
                |e| matches!(e, FollowEvent::Unreadable(_, what) if what.contains("truncated")),
            )
        });
        let answer = child.hear();
        assert!(answer.contains("truncated") && answer.contains("/p0"), "{answer}");
        child.expect("does not go on");
        assert!(matches!(subscriber.recv_timeout(Duration::ZERO), Err(Error::Timeout { .. })));
        child.kill();
        a_new_pair_works(&net);
        honest.lost_nothing();
    }
}

/// No message was ever sent, so only the control words are lost.
#[test]
fn truncated_log_of_a_silent_publisher() {
    let net = Net::new("cut_silent");
    let victim = net.node("victim");
    let mut subscriber = victim.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "on demand");
    child.expect("ready");
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    assert!(subscriber.try_recv().unwrap().is_none());
    cut(&files(&net, "peer", "p0"), Cut::All);
    says_truncated(&until_error(&mut subscriber));
    child.kill();
    a_new_pair_works(&net);
}

#[test]
fn truncated_chunk() {
    for how in CUTS {
        let net = Net::new("cut_chunk");
        let victim = net.node("victim");
        let honest = Honest::new(&net, &victim);
        let mut subscriber = victim.subscriber::<[u8]>("/t").open().unwrap();
        let mut child = Child::spawn(&net, "on demand");
        child.expect("ready");
        child.say(&LARGE_LEN.to_string());
        child.expect("sent");
        let held = subscriber.recv_timeout(LONG).unwrap().into_owned();
        assert!(held.iter().all(|b| *b == 7));
        cut(&files(&net, "peer", "p0."), how);
        // Truncated memory reads as zeros, and the channel reports it at the next receive.
        assert_eq!((held.len(), held[LARGE_LEN - 1]), (LARGE_LEN, 0));
        says_truncated(&until_error(&mut subscriber));
        drop(held);
        child.kill();
        a_new_pair_works(&net);
        honest.lost_nothing();
    }
}

#[test]
fn publisher_continues_after_truncation_of_its_chunks() {
    let net = Net::new("cut_own_chunk");
    let victim = net.node("victim");
    let subscriber = victim.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "large");
    child.expect("ready");
    // Without a subscriber, no pin makes the publisher use other chunks.
    drop(subscriber);
    let mut chunks = Vec::new();
    eventually("a message uses a chunk", || {
        // Not a file that is being created: that fails in other ways.
        let is_made = |path: &PathBuf| std::fs::read(path).is_ok_and(|bytes| bytes.contains(&7));
        chunks = files(&net, "peer", "p0.").into_iter().filter(is_made).collect();
        !chunks.is_empty()
    });
    cut(&chunks, Cut::All);
    // Each chunk was truncated, and whole messages still arrive in new chunks.
    let mut after = victim.subscriber::<[u8]>("/t").open().unwrap();
    let mut whole = 0;
    eventually("whole messages arrive again", || {
        if let Ok(sample) = after.recv_timeout(LONG) {
            whole += u32::from(sample.iter().all(|b| *b == 7));
        } else {
            // It subscribed too early, and received a truncated message.
            after = victim.subscriber::<[u8]>("/t").open().unwrap();
        }
        whole >= 10
    });
}

#[test]
fn truncated_subscription() {
    for how in CUTS {
        let net = Net::new("cut_subscription");
        let victim = net.node("victim");
        let mut publisher = victim
            .publisher::<[u8]>("/t")
            .reliable(OnFull::Wait(Duration::from_secs(30)))
            .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
            .open()
            .unwrap();
        let mut child = Child::spawn(&net, "reads");
        child.expect("ready");
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        for _ in 0..100 {
            publisher.send(&[1; 1000]).unwrap();
        }
        cut(&files(&net, "peer", "s0"), how);
        // Many times around the log: the publisher does not wait for a reader that it can no longer see.
        for _ in 0..1000 {
            publisher.send(&[1; 1000]).unwrap();
        }
        let answer = child.hear();
        assert!(answer.contains("own file was truncated"), "{answer}");
        let mut honest = net.node("new").subscriber::<[u8]>("/t").reliable().open().unwrap();
        honest.wait_for_publishers_timeout(1, LONG).unwrap();
        publisher.send(b"well").unwrap();
        assert_eq!(&*honest.recv_timeout(LONG).unwrap(), b"well");
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[test]
fn truncated_event_files() {
    for whose in ["victim", "peer"] {
        let net = Net::new("cut_bells");
        let victim = net.node("victim");
        let mut subscriber = victim.subscriber::<[u8]>("/t").wait(Wait::Block).open().unwrap();
        let mut child = Child::spawn(&net, "on demand");
        child.expect("ready");
        cut(&files(&net, whose, "bells"), Cut::All);
        if whose == "victim" {
            // Reported once, not merely slow.
            let error = subscriber.recv_timeout(LONG).unwrap_err();
            assert!(matches!(error, Error::Io { .. }), "{error}");
            let said = error.to_string();
            assert!(said.contains("truncated") && said.contains("/bells"), "{said}");
        }
        // Asleep throughout instead of spinning: it sleeps at most one second at a time.
        let (before, wait) = (cpu_time(), Duration::from_secs(2));
        assert!(matches!(subscriber.recv_timeout(wait), Err(Error::Timeout { .. })));
        let used = cpu_time() - before;
        assert!(used < wait / 4, "a truncated event file keeps the thread busy: {used:?}");
        for _ in 0..3 {
            child.say("22");
            child.expect("sent");
            assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [7; 22]);
        }
    }
}

/// An old truncation does not cause repeated checks.
#[test]
fn wait_for_an_unresponsive_publisher_sleeps_after_a_truncation() {
    let net = Net::new("cut_before");
    let victim = net.node("victim");
    let mut child = Child::spawn(&net, "on demand");
    let mut first = victim.subscriber::<[u8]>("/t").open().unwrap();
    child.expect("ready");
    first.wait_for_publishers_timeout(1, LONG).unwrap();
    let mut cut_off = victim.publisher::<[u8]>("/other").open().unwrap();
    cut_off.send(b"whole").unwrap();
    cut(&files(&net, "victim", "p"), Cut::All);
    eventually("the truncation is detected", || cut_off.send(&[1; 1000]).is_err());
    // No publisher admits the second subscriber.
    child.stop();
    let mut second = victim.subscriber::<[u8]>("/t").open().unwrap();
    let (before, wait) = (cpu_time(), Duration::from_secs(2));
    assert!(second.wait_for_publishers_timeout(1, wait).is_err());
    let used = cpu_time() - before;
    assert!(used < wait / 4, "the thread spins instead of sleeping: {used:?}");
    assert_eq!(second.publisher_count(), 0);
    child.resume();
    second.wait_for_publishers_timeout(1, LONG).unwrap();
}

#[test]
fn truncated_node_header_and_fifo() {
    let net = Net::new("cut_node");
    let victim = net.node("victim");
    let mut subscriber = victim.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "on demand");
    child.expect("ready");
    cut(&files(&net, "peer", "node"), Cut::All);
    for path in files(&net, "peer", "ctl") {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "no fifo").unwrap();
    }
    // Matched peers continue. Others find no node there, and none of them fails.
    child.say("22");
    child.expect("sent");
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [7; 22]);
    let _ = net.inspect();
    a_new_pair_works(&net);
    child.kill();
    a_new_pair_works(&net);
}

#[test]
fn files_truncated_before_they_are_mapped() {
    for how in CUTS {
        let net = Net::new("cut_before");
        let peer = net.node("peer");
        let _publisher = peer.publisher::<[u8]>("/t").open().unwrap();
        cut(&files(&net, "peer", "p0"), how);
        let victim = net.node("victim");
        let honest = Honest::new(&net, &victim);
        let mut subscriber = victim.subscriber::<[u8]>("/t").open().unwrap();
        let mut publisher = net.node("other").publisher::<[u8]>("/t").open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        publisher.send(b"well").unwrap();
        eventually("the other publisher's message arrives", || {
            // The error of the truncated publisher may come first.
            subscriber.recv_timeout(LONG).is_ok_and(|sample| &*sample == b"well")
        });
        honest.lost_nothing();
    }
}

#[test]
fn wait_for_changes_of_a_truncated_state_ends_with_an_error() {
    let net = Net::new("cut_state");
    let node = net.node("victim");
    let state = node.state().unwrap();
    let (mut alone, mut in_a_set) = (state.watch("/a").unwrap(), state.watch("/b").unwrap());
    let mut set = rnet::WaitSet::new(&node);
    std::thread::scope(|scope| {
        let alone = scope.spawn(move || alone.recv_timeout(LONG).unwrap_err());
        let waited = scope.spawn(move || {
            assert!(set.wait_timeout(&mut [&mut in_a_set], LONG).unwrap());
            in_a_set.try_recv().unwrap_err()
        });
        std::thread::sleep(Duration::from_millis(100)); // sleep: both wait by then
        cut(&[net.inspect_path().join("state")], Cut::All);
        assert_eq!(alone.join().unwrap().code(), "corrupt");
        assert_eq!(waited.join().unwrap().code(), "corrupt");
    });
}
