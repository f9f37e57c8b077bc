//! Kernel limits of a process or a user: open files, address space, maps, threads.

use std::os::fd::AsRawFd;
use std::time::Duration;

use rnet::bridge::{BridgeSubscriberBuilder, ProxySubscription};
use rnet::inspect::{Domain, FollowEvent, Follower};
use rnet::{EndpointEvent, Error, Node, OnFull, Proxy, PublisherBuilder, Subscriber};

use super::{is_limit, is_out_of_memory, play, refused};
use crate::common::{Child, LONG, Net, eventually, orders, tell};

const LARGE: usize = 100_000;

/// Sets a soft limit until it is dropped.
pub(crate) struct Limited {
    what: libc::__rlimit_resource_t,
    before: libc::rlimit,
}

impl Limited {
    pub(crate) fn to(what: libc::__rlimit_resource_t, limit: u64) -> Limited {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the call writes the given struct.
        assert_eq!(unsafe { libc::getrlimit(what, &raw mut before) }, 0);
        let limited = Limited { what, before };
        limited.set(libc::rlimit { rlim_cur: limit.min(before.rlim_max), ..before });
        limited
    }

    fn set(&self, limit: libc::rlimit) {
        // SAFETY: the call reads the given struct.
        assert_eq!(unsafe { libc::setrlimit(self.what, &raw const limit) }, 0);
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        self.set(self.before);
    }
}

/// The open files of this process, except the descriptor of this listing.
pub(crate) fn open_files() -> Vec<u64> {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut all: Vec<u64> =
        entries.map(|e| e.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
    let gone = |fd: &u64| std::fs::read_link(format!("/proc/self/fd/{fd}")).is_err();
    all.retain(|fd| !gone(fd));
    all.sort_unstable();
    all
}

/// The open files that did not exist `before`, except the event file that a process keeps after its first
/// node: publishers use it to request the registration of the process.
pub(crate) fn left_open(before: &[u64]) -> Vec<(u64, std::path::PathBuf)> {
    let link = |fd: u64| std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
    let new = open_files().into_iter().filter(|fd| !before.contains(fd));
    let mut left: Vec<_> = new.map(|fd| (fd, link(fd))).collect();
    if let Some(kept) = left.iter().position(|(_, what)| what.ends_with("anon_inode:[eventfd]")) {
        left.remove(kept);
    }
    left
}

fn reader(node: &Node, topic: &str) -> rnet::Result<Subscriber<[u8]>> {
    node.subscriber(topic).reliable().open()
}

fn reliable(node: &Node, topic: &str) -> PublisherBuilder<[u8]> {
    node.publisher(topic)
        .reliable(OnFull::Wait(Duration::from_secs(30)))
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
}

/// Receives a message of `len` bytes. In between, errors name the exhausted resource.
fn receive(subscriber: &mut Subscriber<[u8]>, len: usize, mut short: impl FnMut(&Error)) {
    loop {
        match subscriber.recv_timeout(LONG) {
            Ok(sample) => return assert_eq!(sample.len(), len),
            Err(error @ (Error::LimitReached { .. } | Error::OutOfMemory { .. })) => short(&error),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Raises the limit by one file at a time until everything works: each step works or names the limit.
pub(crate) fn few_files(net: &Net) {
    let orders = orders();
    let check = |error: &Error| is_limit(error, &["open files in this process", "ulimit -n"]);
    // Inherited files may have any numbers, and the limit applies to numbers.
    let highest = open_files().pop().unwrap();
    let plug = || std::fs::File::open("/dev/null").unwrap();
    let _plugs: Vec<_> = std::iter::repeat_with(plug)
        .take_while(|file| (file.as_raw_fd() as u64) < highest)
        .collect();
    let before = open_files();
    let (mut failed, mut worked) = (0, 0);
    for more in 0..40 {
        let limited = Limited::to(libc::RLIMIT_NOFILE, before[before.len() - 1] + 1 + more);
        let node = net.builder("child").open();
        let made = node.as_ref().map_err(Clone::clone).and_then(|node| {
            let subscriber = reader(node, "/down")?;
            Ok((subscriber, reliable(node, "/up").open()?))
        });
        let (mut subscriber, mut publisher) = match made {
            Ok(made) => made,
            Err(error) => {
                check(&error);
                failed += 1;
                drop((node, limited));
                assert_eq!(left_open(&before), [], "with {more} files");
                continue;
            }
        };
        // Whether matched or not, it must resume by itself once descriptors are free.
        let mut limited = Some(limited);
        let mut short = 0;
        let mut lift = |error: &Error| {
            check(error);
            short += 1;
            limited = None;
        };
        loop {
            match subscriber.wait_for_publishers_timeout(1, Duration::from_millis(100)) {
                Ok(()) => break,
                Err(Error::Timeout { .. }) => {}
                Err(error) => lift(&error),
            }
        }
        tell("send");
        receive(&mut subscriber, 1, &mut lift);
        receive(&mut subscriber, LARGE, &mut lift);
        loop {
            match publisher.wait_for_subscribers_timeout(1, LONG) {
                Ok(()) => break,
                Err(error) => lift(&error),
            }
        }
        match publisher.send(&[2; LARGE]) {
            Ok(()) => {}
            Err(error) => {
                lift(&error);
                publisher.send(&[2; LARGE]).unwrap();
            }
        }
        assert_eq!(orders.recv().unwrap(), "got");
        assert_eq!(subscriber.lost().total(), 0);
        worked += u32::from(short == 0);
        drop((subscriber, publisher, node, limited));
        assert_eq!(orders.recv().unwrap(), "gone");
        assert_eq!(left_open(&before), [], "with {more} files");
        if worked == 3 {
            break;
        }
    }
    assert!(failed > 3 && worked == 3, "{failed} {worked}");
    tell("done");
}

#[test]
fn file_descriptors() {
    let net = Net::new("files");
    let node = net.node("parent");
    let mut down = reliable(&node, "/down").open().unwrap();
    let mut up = reader(&node, "/up").unwrap();
    let mut child = Child::spawn(&net, "files");
    while child.hear() == "send" {
        down.wait_for_subscribers_timeout(1, LONG).unwrap();
        down.send(&[1]).unwrap();
        down.send(&[1; LARGE]).unwrap();
        receive(&mut up, LARGE, |error| panic!("{error}"));
        child.say("got");
        eventually("the endpoints of the child are gone", || {
            let _ = up.try_recv().unwrap();
            down.subscriber_count() == 0 && up.publisher_count() == 0
        });
        child.say("gone");
    }
    child.finish();
}

/// An observer also waits for a descriptor instead of skipping a message.
pub(crate) fn an_observer_without_files(net: &Net) {
    let orders = orders();
    let domain = Domain::open(Some("t"), Some(net.base().to_owned()), None).unwrap();
    let mut follow = Follower::new(domain, "/down", false).unwrap();
    let mut bytes = Vec::new();
    eventually("the observer follows the publisher", || {
        let _ = follow.poll(&mut bytes).unwrap();
        follow.publisher_count() == 1
    });
    follow.take_events();
    tell("send");
    assert_eq!(orders.recv().unwrap(), "sent");
    let limited = Limited::to(libc::RLIMIT_NOFILE, 0);
    let reported = std::cell::RefCell::new(Vec::new());
    let mut poll = || {
        // The scan of the domain, ten times a second, fails as well.
        let received = follow.poll(&mut bytes).map_or_else(
            |error| {
                is_limit(&error, &["open files in this process"]);
                false
            },
            |received| received.is_some(),
        );
        reported.borrow_mut().extend(follow.take_events());
        received
    };
    eventually("the error names the limit", || {
        assert!(!poll());
        !reported.borrow().is_empty()
    });
    (0..100).for_each(|_| assert!(!poll()));
    drop(limited);
    eventually("the message is read", &mut poll);
    let reported = reported.into_inner();
    let once = |e: &FollowEvent| {
        matches!(e, FollowEvent::Unreadable(node, why)
        if node == "/parent" && why.contains("open files in this process"))
    };
    assert!(reported.len() == 1 && once(&reported[0]), "{reported:?}");
    assert_eq!((bytes.len(), follow.take_lost()), (LARGE, 0));
    tell("done");
}

#[test]
fn file_descriptors_of_an_observer() {
    let net = Net::new("observer");
    let node = net.node("parent");
    let mut down = reliable(&node, "/down").open().unwrap();
    let mut child = Child::spawn(&net, "observer");
    child.expect("send");
    down.send(&[1; LARGE]).unwrap();
    child.say("sent");
    child.expect("done");
    child.finish();
}

/// Endpoints that cannot be described for lack of descriptors are reported once descriptors are free, in
/// their current state.
pub(crate) fn a_watch_without_files(net: &Net) {
    let orders = orders();
    let node = net.node("child");
    let publisher = node.publisher::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    for changes in [false, true] {
        let (say, events) = std::sync::mpsc::channel();
        let limited = Limited::to(libc::RLIMIT_NOFILE, 0);
        let watch = node.on_endpoint(move |event| say.send(event.clone()).unwrap()).unwrap();
        if changes {
            tell("change");
            assert_eq!(orders.recv().unwrap(), "changed");
        }
        drop(limited);
        let next = || -> EndpointEvent { events.recv_timeout(LONG).unwrap() };
        let expected = if changes { 5 } else { 2 };
        while next().endpoint().endpoint_count != expected {}
        // Later events belong to this endpoint alone.
        drop(node.publisher::<[u8]>("/mark").open().unwrap());
        loop {
            let event = next();
            assert_eq!(event.endpoint().endpoint_count, 1, "{event:?}");
            if matches!(event, EndpointEvent::Closed(_)) {
                break;
            }
        }
        drop(watch);
    }
    tell("done");
}

#[test]
fn file_descriptors_of_a_watch() {
    let net = Net::new("watch");
    let node = net.node("parent");
    let proxy = Proxy::new("robot2", "/arm", 7).unwrap();
    let proxy = node.subscriber::<[u8]>("/t").proxy(proxy, 2).open().unwrap();
    let mut child = Child::spawn(&net, "watch");
    child.expect("change");
    proxy.set_endpoint_count(5).unwrap();
    child.say("changed");
    child.expect("done");
    child.finish();
}

/// Nodes that join while the domain cannot be scanned: a waiting caller gets an error that names the limit,
/// once per shortage, and is matched when it is over. Nodes that wait for nothing get no error.
pub(crate) fn newcomers_without_files(net: &Net) {
    let orders = orders();
    let node = net.node("child");
    let mut publisher = reliable(&node, "/up").open().unwrap();
    let mut subscriber = reader(&node, "/down").unwrap();
    let mut steady = reader(&node, "/steady").unwrap();
    steady.wait_for_publishers_timeout(1, LONG).unwrap();
    let words = ["open files in this process", "ulimit -n"];
    let short = Duration::from_millis(1500);
    for there in 1..=3 {
        let limited = Limited::to(libc::RLIMIT_NOFILE, 1);
        tell("come");
        assert_eq!(orders.recv().unwrap(), "came");
        is_limit(&refused(publisher.wait_for_subscribers_timeout(there, LONG)), &words);
        is_limit(&refused(subscriber.wait_for_publishers_timeout(there, LONG)), &words);
        let again = refused(publisher.wait_for_subscribers_timeout(there, short));
        assert!(matches!(again, Error::Timeout { .. }), "{again}");
        assert_eq!(
            (publisher.incompatible(), subscriber.try_recv().unwrap().is_none()),
            (vec![], true)
        );
        assert_eq!(*steady.recv_timeout(LONG).unwrap(), [there as u8]);
        drop(limited);
        publisher.wait_for_subscribers_timeout(there, LONG).unwrap();
        subscriber.wait_for_publishers_timeout(there, LONG).unwrap();
        publisher.send(&[1]).unwrap();
    }
    tell("done");
}

#[test]
fn file_descriptors_for_newcomers() {
    let net = Net::new("newcomers");
    let node = net.node("parent");
    let mut steady = reliable(&node, "/steady").open().unwrap();
    let mut child = Child::spawn(&net, "newcomers");
    let mut there = Vec::new();
    while child.hear() == "come" {
        let name = format!("comes{}", there.len());
        let node = net.node(&name);
        let down = reliable(&node, "/down").open().unwrap();
        there.push((reader(&node, "/up").unwrap(), down));
        steady.send(&[there.len() as u8]).unwrap();
        child.say("came");
        for (up, _) in &mut there {
            receive(up, 1, |error| panic!("{error}"));
        }
    }
    assert_eq!(there.len(), 3);
    child.finish();
}

/// Callers that already wait, callbacks included, are woken once each, many at once too.
pub(crate) fn those_who_wait_without_files(net: &Net) {
    const EACH: usize = 16;
    let orders = orders();
    let node = net.node("child");
    let publishers: Vec<_> = (0..EACH).map(|_| reliable(&node, "/up").open().unwrap()).collect();
    let mut subscribers: Vec<_> = (0..EACH).map(|_| reader(&node, "/down").unwrap()).collect();
    let callbacks: Vec<_> = (0..EACH).map(|_| reader(&node, "/down").unwrap().on(|_| ())).collect();
    let (say, receiver) = std::sync::mpsc::channel();
    // Each waits until it is matched, and reports the errors until then.
    let wait = |mut wait: Box<dyn FnMut() -> rnet::Result<()> + Send + '_>| {
        let mut errors = Vec::new();
        while let Err(error) = wait() {
            errors.push(error.clone());
            say.send(()).unwrap();
        }
        errors
    };
    std::thread::scope(|scope| {
        let mut waits = Vec::new();
        for publisher in &publishers {
            waits.push(
                scope.spawn(|| wait(Box::new(|| publisher.wait_for_subscribers_timeout(1, LONG)))),
            );
        }
        for subscriber in &mut subscribers {
            waits.push(
                scope.spawn(|| wait(Box::new(|| subscriber.wait_for_publishers_timeout(1, LONG)))),
            );
        }
        for callback in &callbacks {
            waits.push(
                scope.spawn(|| wait(Box::new(|| callback.wait_for_publishers_timeout(1, LONG)))),
            );
        }
        // All of them sleep.
        eventually("all wait", || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            let stat = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("stat"));
            let sleeps =
                |stat: &String| stat.rsplit(") ").next().is_some_and(|s| s.starts_with('S'));
            tasks.filter_map(|task| stat(task).ok()).filter(sleeps).count() >= waits.len()
        });
        let limited = Limited::to(libc::RLIMIT_NOFILE, 1);
        tell("come");
        for _ in 0..waits.len() {
            receiver.recv_timeout(LONG).unwrap();
        }
        assert_eq!(orders.recv().unwrap(), "came");
        drop(limited);
        for wait in waits {
            let errors = wait.join().unwrap();
            assert_eq!(errors.len(), 1, "{errors:?}");
            is_limit(&errors[0], &["open files in this process", "ulimit -n"]);
        }
    });
    tell("done");
}

#[test]
fn file_descriptors_for_waiting_callers() {
    let net = Net::new("waiters");
    let mut child = Child::spawn(&net, "waiters");
    child.expect("come");
    let node = net.node("parent");
    let _down = reliable(&node, "/down").open().unwrap();
    let _up = reader(&node, "/up").unwrap();
    child.say("came");
    child.expect("done");
    child.finish();
}

/// A message that this process cannot map for lack of address space stays unread.
pub(crate) fn little_address_space(net: &Net) {
    let _orders = orders();
    let node = net.node("child");
    let mut subscriber = reader(&node, "/down").unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    let check = |error: &Error, of: &str| is_out_of_memory(error, of, &["ulimit -v"]);
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    let mut limited = Some(Limited::to(libc::RLIMIT_AS, pages * 4096 + (4 << 20)));
    check(&refused(reliable(&node, "/up").log_len_bytes(16 << 20).open()), "/up");
    let mut small = reliable(&node, "/small").open().unwrap();
    check(
        &refused(small.send(&vec![1; 1 << 20]).and_then(|()| small.loan(16 << 20).map(drop))),
        "/small",
    );
    tell("send");
    let mut short = 0;
    receive(&mut subscriber, 32 << 20, |error| {
        check(error, "/down");
        short += 1;
        limited = None;
    });
    assert_eq!((short, subscriber.lost().total()), (1, 0));
    reliable(&node, "/up").log_len_bytes(16 << 20).open().unwrap();
    tell("done");
}

#[test]
fn address_space() {
    let net = Net::new("space");
    let node = net.node("parent");
    let mut down = reliable(&node, "/down").open().unwrap();
    let mut child = Child::spawn(&net, "space");
    child.expect("send");
    down.send(&vec![1; 32 << 20]).unwrap();
    child.expect("done");
    child.finish();
}

/// Uses nearly all maps that a process may have.
pub(crate) fn few_maps(net: &Net) {
    let most: usize =
        std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap().trim().parse().unwrap();
    if most > 300_000 {
        tell(&format!("NOT RUN: {most} maps are allowed, too many to use up"));
        return;
    }
    let node = net.node("child");
    let mut first = reliable(&node, "/first").open().unwrap();
    let mut subscriber = reader(&node, "/first").unwrap();
    // Untouched memory; pages of different protection are separate maps.
    let memory = Vec::<[u8; 4096]>::with_capacity(2 * most + 2);
    let first_page = (memory.as_ptr() as usize).next_multiple_of(4096);
    let protect = |page: usize, pages: usize, prot| {
        let at = (first_page + page * 4096) as *mut libc::c_void;
        // SAFETY: the pages are inside the allocation and hold no data.
        unsafe { libc::mprotect(at, pages * 4096, prot) == 0 }
    };
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let mut split = 0;
    while split < most && protect(2 * split + 1, 1, libc::PROT_READ) {
        split += 1;
    }
    // Each page with the protection of its neighbours again saves two maps.
    for page in split - 6..split {
        assert!(protect(2 * page + 1, 1, both));
    }
    let mut publishers = Vec::with_capacity(64);
    let error = loop {
        match reliable(&node, "/t").open() {
            Ok(publisher) => publishers.push(publisher),
            Err(error) => break error,
        }
    };
    is_limit(&error, &["memory maps in this process", "vm.max_map_count"]);
    is_limit(&refused(first.send(&[1; LARGE])), &["memory maps in this process"]);
    first.send(b"small").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"small");
    assert!(protect(0, 2 * split, both));
    first.send(&[1; LARGE]).unwrap();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [1; LARGE]);
    tell("done");
}

#[test]
fn memory_maps() {
    let net = Net::new("maps");
    let mut child = Child::spawn(&net, "maps");
    play(&mut child);
    child.finish();
}

/// Limits do not apply to root, so the test changes its user.
pub(crate) fn no_threads(net: &Net) {
    let _orders = orders();
    // SAFETY: changes the whole process, as the C library does it.
    if rustix::process::geteuid().is_root() && unsafe { libc::setuid(65_534) } != 0 {
        tell("NOT RUN: root may not become another user here");
        return;
    }
    let none = || Limited::to(libc::RLIMIT_NPROC, 1);
    let limited = none();
    let words = ["threads of user", "ulimit -u"];
    is_limit(&refused(net.builder("child").open()), &words);
    drop(limited);
    let node = net.node("child");
    let mut publisher = reliable(&node, "/t").open().unwrap();
    let limited = none();
    let subscriber = reader(&node, "/t").unwrap();
    let (say, receiver) = std::sync::mpsc::channel();
    let running = subscriber.on(move |sample| say.send(sample.to_vec()).unwrap());
    is_limit(&running.error().expect("its thread cannot be started"), &words);
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"early").unwrap();
    assert!(receiver.try_recv().is_err());
    // A callback that never ran ends at once.
    drop(reader(&node, "/other").unwrap().on(|_| ()));
    drop(limited);
    // By itself, without another call on the node.
    assert_eq!(receiver.recv_timeout(LONG).unwrap(), b"early");
    assert_eq!(running.error(), None);
    tell("done");
}

#[test]
fn threads() {
    use std::os::unix::fs::PermissionsExt;
    let net = Net::new("threads");
    std::fs::set_permissions(net.base(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let mut child = Child::spawn(&net, "threads");
    play(&mut child);
    child.finish();
}
