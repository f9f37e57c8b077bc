//! The last will of a publisher is read when its process has died, and only then.

use crate::common;

use std::sync::mpsc;
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell, until_error};
use rnet::schema::{Schema, compile_text};
use rnet::{Dynamic, Error, Lane, Plain, Publisher, PublisherBuilder, Subscriber, WaitSet};

#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[repr(C)]
struct Speed {
    forward: f64,
    turn: f64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Other {
    a: u64,
    b: u64,
}

const STOP: Speed = Speed { forward: 0.0, turn: 0.5 };
/// Number of processes, and of publishers in each, that die at once.
const MANY: (usize, usize) = (8, 8);

fn pose() -> Schema {
    let text = r#"syntax = "proto3"; message Pose { double x = 1; string frame = 2; }"#;
    compile_text("pose.proto", text).unwrap().schema("Pose").unwrap()
}

fn posed(json: &str) -> Dynamic {
    let json = serde_json::from_str(json).unwrap();
    Dynamic::from(rnet::schema::Dynamic::from_json(&pose(), &json).unwrap())
}

fn open(net: &Net) -> (rnet::Node, Publisher<[u8]>) {
    open_with(net, |publisher| publisher)
}

fn open_with(
    net: &Net,
    options: impl FnOnce(PublisherBuilder<[u8]>) -> PublisherBuilder<[u8]>,
) -> (rnet::Node, Publisher<[u8]>) {
    let node = net.node("victim");
    let publisher = options(node.publisher("/t")).last_will(&b"gone"[..]).open().unwrap();
    (node, publisher)
}

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    let wait = || drop(orders.recv());
    let (role, number) = role.split_once(' ').unwrap_or((&role, "1"));
    match role {
        // Sends three messages to the given number of subscribers and keeps its publisher open.
        "three" | "urgent" | "closes" | "drops" => {
            let options = |publisher: PublisherBuilder<_>| match role {
                "urgent" => publisher.urgent(),
                _ => publisher,
            };
            let (node, mut publisher) = open_with(&net, options);
            publisher.wait_for_subscribers_timeout(number.parse().unwrap(), LONG).unwrap();
            (0..3_u8).for_each(|number| publisher.send(&[number]).unwrap());
            tell("ready");
            match role {
                "closes" => {
                    wait();
                    drop((publisher, node));
                    tell("closed");
                    wait();
                }
                // Its process dies with the node still open.
                "drops" => {
                    drop(publisher);
                    tell("dropped");
                    wait();
                    drop(node);
                }
                _ => loop {
                    wait();
                },
            }
        }
        // Exits as soon as others may know of it.
        "opens" => {
            let (_node, _publisher) = open(&net);
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                .unwrap();
        }
        // Changes its will without end.
        "changes" => {
            let (_node, mut publisher) = open(&net);
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            tell("ready");
            for byte in (0..=255_u8).cycle() {
                publisher.set_last_will(&vec![byte; usize::from(byte) * 16]).unwrap();
            }
        }
        "cleared" => {
            let (_node, mut publisher) = open(&net);
            publisher.set_last_will(b"another").unwrap();
            publisher.clear_last_will().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            tell("ready");
            wait();
        }
        "typed" => {
            let node = net.node("victim");
            let plain = node.publisher::<Speed>("/speed").last_will(&STOP).open().unwrap();
            let typed = node.publisher::<Dynamic>("/pose").schema(&pose());
            let mut typed = typed.last_will(&posed(r#"{"x": 1.5}"#)).open().unwrap();
            typed.set_last_will(&posed(r#"{"x": 1.5, "frame": "map"}"#)).unwrap();
            plain.wait_for_subscribers_timeout(1, LONG).unwrap();
            typed.wait_for_subscribers_timeout(1, LONG).unwrap();
            tell("ready");
            wait();
        }
        "many" => {
            let node = net.node(&format!("victim{number}"));
            let publishers: Vec<_> = (0..MANY.1)
                .map(|each| {
                    let will = format!("{number} {each}");
                    node.publisher::<[u8]>("/t").last_will(will.as_bytes()).open().unwrap()
                })
                .collect();
            publishers.iter().for_each(|p| p.wait_for_subscribers_timeout(1, LONG).unwrap());
            tell("ready");
            wait();
            drop(publishers);
        }
        // Reports what it reads until a publisher's end.
        "reads" => {
            let node = net.node("reader");
            let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
            subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
            tell("matched");
            let (got, error) = until_error(&mut subscriber);
            tell(&format!("{got:?} {}", matches!(error, Error::PeerLost { .. })));
            wait();
        }
        // A forked child of it lives on.
        "forks" => {
            let (_node, mut publisher) = open(&net);
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            // SAFETY: the child only makes calls that are supported after a fork, and exits with the test at
            // the latest.
            if unsafe { libc::fork() } == 0 {
                let refused = publisher.set_last_will(b"the child's").unwrap_err();
                let closed = matches!(refused, Error::Closed { .. });
                drop(publisher);
                tell(if closed { "forked" } else { "it worked" });
                let mut byte = 0_u8;
                // SAFETY: the buffer is valid. The pipe closes when the test ends.
                while unsafe { libc::read(0, (&raw mut byte).cast(), 1) } > 0 {}
                // SAFETY: exits the process.
                unsafe { libc::_exit(0) };
            }
            loop {
                wait();
            }
        }
        other => panic!("unknown role: {other}"),
    }
}

/// The messages up to the end of the publisher, and whether each is a last will.
fn all(subscriber: &mut Subscriber<[u8]>) -> (Vec<(Vec<u8>, bool)>, Error) {
    let mut got = Vec::new();
    loop {
        match subscriber.recv_timeout(LONG) {
            Ok(sample) => got.push((sample.to_vec(), sample.is_last_will())),
            Err(error) => return (got, error),
        }
    }
}

fn is_lost(error: &Error) -> bool {
    matches!(error, Error::PeerLost { node, .. } if node == "/victim")
}

#[test]
fn will_of_a_killed_publisher_follows_all_its_messages() {
    for keeps_one in [false, true] {
        let net = Net::new("will");
        let node = net.node("survivor");
        let subscriber = node.subscriber::<[u8]>("/t");
        let subscriber = if keeps_one { subscriber.keep_last(1) } else { subscriber };
        let mut subscriber = subscriber.open().unwrap();
        let mut child = Child::spawn(&net, "three");
        child.expect("ready");
        child.kill();
        let (got, error) = all(&mut subscriber);
        assert!(is_lost(&error), "{error}");
        let first = if keeps_one { 2 } else { 0 };
        let sent = (first..3).map(|number| (vec![number], false));
        let expected: Vec<_> = sent.chain([(b"gone".to_vec(), true)]).collect();
        assert_eq!(got, expected);
        assert_eq!(subscriber.lost().total(), 0);
        assert!(subscriber.try_recv().unwrap().is_none(), "once");
    }
}

#[test]
fn will_names_its_publisher_and_is_kept_like_a_message() {
    let net = Net::new("will meta");
    let node = net.node("survivor");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "three");
    child.expect("ready");
    let publisher = subscriber.recv_timeout(LONG).unwrap().publisher();
    let before = rnet::now_ns();
    child.kill();
    let kept: Vec<_> =
        (0..3).map(|_| subscriber.recv_timeout(LONG).unwrap().into_owned()).collect();
    let will = &kept[2];
    assert!(will.is_last_will() && !kept[1].is_last_will());
    assert_eq!((&**will, will.seq(), will.publisher()), (&b"gone"[..], 3, publisher));
    assert!(will.sent_ns() >= before && will.sent_ns() <= rnet::now_ns());
    assert!(is_lost(&subscriber.recv_timeout(LONG).unwrap_err()));
    assert_eq!((&*kept[0], &**will), (&[1][..], &b"gone"[..]));
}

#[test]
fn a_publisher_that_is_closed_has_no_will() {
    for role in ["closes", "drops"] {
        let net = Net::new("no will");
        let node = net.node("survivor");
        let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
        let mut child = Child::spawn(&net, role);
        child.expect("ready");
        if role == "drops" {
            // Its process dies after the close.
            child.expect("dropped");
            child.kill();
        } else {
            child.say("close");
            child.expect("closed");
        }
        let got: Vec<_> = (0..3).map(|_| subscriber.recv_timeout(LONG).unwrap().to_vec()).collect();
        assert_eq!(got, [[0], [1], [2]]);
        eventually("the publisher is gone", || subscriber.publisher_count() == 0);
        match subscriber.recv_timeout(Duration::from_millis(50)) {
            Err(Error::Timeout { .. }) => {}
            Err(error) => assert!(role == "drops" && is_lost(&error), "{error}"),
            Ok(sample) => panic!("{role}: {sample:?}"),
        }
    }
}

#[test]
fn stopped_publisher_leaves_no_will_until_it_dies() {
    let net = Net::new("stopped");
    let node = net.node("survivor");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "three");
    child.expect("ready");
    for _ in 0..3 {
        assert!(!subscriber.recv_timeout(LONG).unwrap().is_last_will());
    }
    child.stop();
    let nothing = subscriber.recv_timeout(Duration::from_millis(300)).unwrap_err();
    assert!(matches!(nothing, Error::Timeout { .. }), "{nothing}");
    child.kill();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"gone");
    assert!(is_lost(&subscriber.recv_timeout(LONG).unwrap_err()));
}

#[test]
fn publisher_killed_after_open_leaves_its_will_or_was_never_seen() {
    let net = Net::new("opened");
    let node = net.node("survivor");
    let mut wills = 0;
    for _ in 0..10 {
        let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
        Child::spawn(&net, "opens").ended();
        eventually("the node is removed", || net.inspect().nodes.len() == 1);
        match subscriber.recv_timeout(Duration::from_millis(200)) {
            Ok(will) => {
                assert!(will.is_last_will() && &*will == b"gone");
                wills += 1;
                assert!(is_lost(&subscriber.recv_timeout(LONG).unwrap_err()));
            }
            Err(Error::Timeout { .. }) => {}
            Err(error) => panic!("it was matched and left no will: {error}"),
        }
    }
    println!("{wills} of 10 were seen");
}

#[test]
fn will_is_changed_atomically() {
    for round in 0..10 {
        let net = Net::new("changed");
        let node = net.node("survivor");
        let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
        let mut child = Child::spawn(&net, "changes");
        child.expect("ready");
        std::thread::sleep(Duration::from_micros(round * 700)); // sleep: so that it dies at another point
        child.kill();
        let will = subscriber.recv_timeout(LONG).unwrap();
        assert!(will.is_last_will());
        let byte = will.first().copied().unwrap_or(0);
        let whole = vec![byte; usize::from(byte) * 16];
        assert!(*will == *whole || &*will == b"gone", "{:?}", &*will);
    }
}

#[test]
fn withdrawn_will_is_not_delivered() {
    let net = Net::new("cleared");
    let node = net.node("survivor");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "cleared");
    child.expect("ready");
    child.kill();
    let (got, error) = all(&mut subscriber);
    assert!(got.is_empty() && is_lost(&error), "{got:?} {error}");
}

#[test]
fn wills_have_the_type_of_their_publisher() {
    let net = Net::new("typed");
    let node = net.node("survivor");
    let mut speed = node.subscriber::<Speed>("/speed").open().unwrap();
    let mut poses = node.subscriber::<Dynamic>("/pose").schema(&pose()).open().unwrap();
    let mut child = Child::spawn(&net, "typed");
    child.expect("ready");
    child.kill();
    assert_eq!(*speed.recv_timeout(LONG).unwrap(), STOP);
    let will = poses.recv_timeout(LONG).unwrap();
    assert!(will.is_last_will());
    let expected = posed(r#"{"x": 1.5, "frame": "map"}"#);
    assert_eq!(format!("{:?}", *will), format!("{expected:?}"));
}

#[test]
fn invalid_will_is_refused_at_open() {
    let net = Net::new("refused");
    let node = net.node("node");
    let speeds = || node.publisher::<Speed>("/speed");
    let other = speeds().last_will(&Other { a: 1, b: 2 }).open().map(drop).unwrap_err();
    assert!(matches!(other, Error::BadValue { .. }), "{other}");
    assert!(other.to_string().contains("/speed"), "{other}");
    let short = speeds().last_will(&b"short"[..]).open().map(drop).unwrap_err();
    assert!(matches!(short, Error::BadValue { .. }), "{short}");
    let long = node.publisher::<[u8]>("/t").last_will(&[0_u8; 4097][..]);
    let long = long.open().map(drop).unwrap_err();
    let said = "bad value for last will on /t: it has 4097 bytes; a last will has at most 4096, regardless of the \
                message limit: shorten it";
    assert_eq!(long.to_string(), said);
    let mut without = node.publisher::<[u8]>("/t").open().unwrap();
    let refused = without.set_last_will(b"late").unwrap_err();
    assert!(refused.to_string().contains("opened without a last will"), "{refused}");
    let will = [7_u8; 4096];
    let mut with = node.publisher::<[u8]>("/longest").last_will(&will[..]).open().unwrap();
    let refused = with.set_last_will(&[0; 5000]).unwrap_err();
    let said =
        "bad value for last will on /longest: it has 5000 bytes; a last will has at most 4096";
    assert!(refused.to_string().starts_with(said), "{refused}");
    assert_eq!(net.inspect().publishers.len(), 2);
}

#[test]
fn latest_of_a_dead_publisher_is_its_will() {
    let net = Net::new("latest");
    let node = net.node("survivor");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "three");
    child.expect("ready");
    child.kill();
    eventually("the publisher is gone", || subscriber.publisher_count() == 0);
    let newest = subscriber.latest_timeout(LONG).unwrap();
    assert!(newest.is_last_will() && &*newest == b"gone");
    drop(newest);
    assert_eq!(subscriber.stats()[0].skipped, 3);
    assert!(is_lost(&subscriber.recv_timeout(LONG).unwrap_err()));
}

#[test]
fn callbacks_and_wait_sets_get_it_on_both_lanes() {
    for role in ["three 2", "urgent 2"] {
        let net = Net::new("callback");
        let node = net.node("survivor");
        let (tell, receiver) = mpsc::channel();
        let lane = if role == "urgent 2" { Lane::Urgent } else { Lane::Bulk };
        let subscriber = node.subscriber::<[u8]>("/t").lane(lane).open().unwrap();
        let _callback = subscriber
            .on(move |sample| tell.send((sample.to_vec(), sample.is_last_will())).unwrap());
        let mut waited = node.subscriber::<[u8]>("/t").lane(lane).open().unwrap();
        let mut set = WaitSet::new(&node);
        let mut child = Child::spawn(&net, role);
        child.expect("ready");
        let next = || receiver.recv_timeout(LONG).unwrap();
        (0..3_u8).for_each(|number| assert_eq!(next(), (vec![number], false)));
        child.kill();
        assert_eq!(next(), (b"gone".to_vec(), true));
        let mut got = Vec::new();
        while got.last().is_none_or(|last: &Vec<u8>| last != b"gone") {
            assert!(set.wait_timeout(&mut [&mut waited], LONG).unwrap());
            got.extend(waited.try_recv().unwrap().map(|sample| sample.to_vec()));
        }
        assert_eq!(got.len(), 4);
    }
}

#[test]
fn many_publishers_that_die_at_once_leave_all_wills() {
    let net = Net::new("many");
    let node = net.node("survivor");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut children: Vec<_> =
        (0..MANY.0).map(|number| Child::spawn(&net, &format!("many {number}"))).collect();
    children.iter_mut().for_each(|child| child.expect("ready"));
    children.iter_mut().for_each(Child::kill);
    let (mut wills, mut lost) = (Vec::new(), 0);
    while lost < MANY.0 * MANY.1 {
        match subscriber.recv_timeout(LONG) {
            Ok(sample) => {
                assert!(sample.is_last_will());
                wills.push(String::from_utf8(sample.to_vec()).unwrap());
            }
            Err(Error::PeerLost { .. }) => lost += 1,
            Err(error) => panic!("{error}"),
        }
    }
    wills.sort();
    let all =
        (0..MANY.0).flat_map(|number| (0..MANY.1).map(move |each| format!("{number} {each}")));
    assert_eq!(wills, all.collect::<Vec<_>>());
}

#[test]
fn stopped_reader_gets_the_will_after_others_have_swept() {
    let net = Net::new("swept");
    let mut publisher = Child::spawn(&net, "three");
    let mut reader = Child::spawn(&net, "reads");
    reader.expect("matched");
    publisher.expect("ready");
    reader.stop();
    publisher.kill();
    let node = net.node("sweeper");
    eventually("the folder is swept", || {
        let nodes = net.inspect_path().join("nodes");
        std::fs::read_dir(nodes).unwrap().count() == 2
    });
    drop(node);
    reader.resume();
    let gone = format!("{:?}", b"gone");
    let subscriber = reader.hear();
    assert!(subscriber.ends_with(&format!("{gone}] true")), "{subscriber}");
}

#[test]
fn subscriber_that_joins_after_the_death_gets_no_will() {
    let net = Net::new("late");
    let node = net.node("survivor");
    let mut early = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "three");
    child.expect("ready");
    child.kill();
    let (got, _) = all(&mut early);
    assert_eq!(got.len(), 4);
    let mut late = node.subscriber::<[u8]>("/t").transient_local().open().unwrap();
    let nothing = late.recv_timeout(Duration::from_millis(50)).unwrap_err();
    assert!(matches!(nothing, Error::Timeout { .. }), "{nothing}");
}

#[test]
fn forked_child_neither_delays_nor_changes_the_will() {
    let net = Net::new("forked");
    let node = net.node("survivor");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "forks");
    child.expect("forked");
    child.kill();
    let (got, error) = all(&mut subscriber);
    assert_eq!(got, [(b"gone".to_vec(), true)]);
    assert!(is_lost(&error), "{error}");
}

/// Whatever the state word and the slots contain, the reader continues.
#[test]
fn corrupt_will_area_harms_no_reader() {
    let seeds = [0, 1, 4097, 4098, 0xffff, 1 << 16, (1 << 16) | 9, u64::MAX, 0x8000_0000_0001_0005];
    for word in seeds {
        let net = Net::new("hostile will");
        let node = net.node("survivor");
        let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
        let mut child = Child::spawn(&net, "three");
        child.expect("ready");
        let nodes = std::fs::read_dir(net.inspect_path().join("nodes")).unwrap().flatten();
        let folder = nodes.map(|entry| entry.path()).find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("victim"))
        });
        let path = folder.unwrap().join("p0");
        let bytes = std::fs::read(&path).unwrap();
        let log_at = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let will_at = log_at - 12288;
        std::os::unix::fs::FileExt::write_all_at(&file, &[0xa5; 12288], will_at).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &word.to_le_bytes(), will_at).unwrap();
        child.kill();
        let (got, error) = all(&mut subscriber);
        assert!(is_lost(&error), "{error}");
        let len = (word & 0xffff) as usize;
        let expected = if (1..=4097).contains(&len) { Some(vec![0xa5; len - 1]) } else { None };
        let wills: Vec<_> = got.into_iter().filter(|(_, will)| *will).collect();
        assert_eq!(wills.len(), usize::from(expected.is_some()), "{word:#x}");
        assert!(wills.iter().all(|(bytes, _)| Some(bytes) == expected.as_ref()), "{word:#x}");
    }
}

#[test]
fn live_publisher_that_marks_a_message_as_last_will_is_not_lost() {
    let net = Net::new("speaks");
    let mut hears = net.node("hears").subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "three");
    child.expect("ready");
    (0..3).for_each(|number| assert_eq!(&*hears.recv_timeout(LONG).unwrap(), [number]));
    let speaks = net.node("speaks");
    let mut speaks = speaks.publisher::<[u8]>("/t").open().unwrap();
    hears.wait_for_publishers_timeout(2, LONG).unwrap();
    speaks.wait_for_subscribers_timeout(1, LONG).unwrap();
    speaks.send_with(&b"false"[..], rnet::Meta::default().as_last_will()).unwrap();
    speaks.send(b"alive").unwrap();
    let mut next = || hears.recv_timeout(LONG).map(|got| (got.to_vec(), got.is_last_will()));
    assert_eq!(next().unwrap(), (b"false".to_vec(), true));
    assert_eq!(next().unwrap(), (b"alive".to_vec(), false));
    // The will of the other publisher is unchanged.
    child.kill();
    assert_eq!(next().unwrap(), (b"gone".to_vec(), true));
    assert!(is_lost(&next().unwrap_err()));
}
