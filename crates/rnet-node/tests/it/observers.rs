//! Observers and the nodes that they observe: woken, killed, stopped, 64 of them.

use crate::common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Child, Net, eventually, role};
use rnet::inspect::Follower;

/// Messages that one observer receives until it has received or counted all `wanted` messages.
fn hear(net: &Net, wanted: u64, listening: &AtomicUsize) {
    let mut follow = Follower::new(net.domain(), "/t", false).unwrap();
    let (mut bytes, mut received) = (Vec::new(), 0);
    assert!(follow.poll(&mut bytes).unwrap().is_none());
    listening.fetch_add(1, Ordering::Relaxed);
    while received + follow.missed().total() < wanted {
        match follow.poll(&mut bytes).unwrap() {
            Some(_) => received += 1,
            None => follow.wait(Duration::from_secs(30)),
        }
    }
    assert_eq!(follow.missed().total(), 0);
}

fn files(net: &Net) -> usize {
    std::fs::read_dir(net.inspect_path().join("observers")).map_or(0, Iterator::count)
}

#[test]
fn seventy_observers_receive_from_a_later_publisher() {
    let net = Net::new("seventy observers");
    let node = net.node("p");
    let listening = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // More observers than slots: the others poll.
        let listen = || hear(&net, 100, &listening);
        let threads: Vec<_> = (0..70).map(|_| scope.spawn(listen)).collect();
        eventually("all observe, and the slots are used", || {
            listening.load(Ordering::Relaxed) == 70 && files(&net) >= 128
        });
        let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
        for number in 0..100u64 {
            publisher.send(&number.to_le_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(1)); // sleep: lets the observers fall asleep
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(publisher.subscriber_count(), 0);
    });
    eventually("each has removed its files", || files(&net) == 0);
}

#[test]
fn stopped_or_killed_observer_delays_no_publisher() {
    let net = Net::new("killed observer");
    let node = net.node("p");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "listener");
    child.expect("listens");
    // The publisher knows the observer, whether it sleeps or not.
    for _ in 0..100 {
        publisher.send(&[0; 100]).unwrap();
        std::thread::sleep(Duration::from_millis(1)); // sleep: lets the observer fall asleep
    }
    child.stop();
    for _ in 0..100_000 {
        publisher.send(&[0; 100]).unwrap();
    }
    child.resume();
    assert_eq!(files(&net), 2);
    child.kill();
    (0..1000).for_each(|_| publisher.send(&[0; 100]).unwrap());
    eventually("the node sweeps its files", || files(&net) == 0);
    publisher.send(&[0; 100]).unwrap();
}

/// The process of a pidfd of this process; -1 if it has exited, `None` if the descriptor is closed or of
/// another kind.
fn process_of(fd: &str) -> Option<i64> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    info.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
}

#[test]
fn observer_holds_nothing_of_exited_processes() {
    let net = Net::new("pidfds");
    let mut domain = net.domain();
    let mut children: Vec<Child> = (0..4).map(|_| Child::spawn(&net, "node")).collect();
    children.iter_mut().for_each(|child| child.expect("there"));
    assert_eq!(domain.snapshot().unwrap().nodes.len(), children.len());
    let pids: Vec<i64> = children.iter().map(|child| child.pid().into()).collect();
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let held: Vec<String> = all
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|fd| process_of(fd).is_some_and(|pid| pids.contains(&pid)))
        .collect();
    assert_eq!(held.len(), pids.len(), "one of each");
    children.iter_mut().for_each(Child::kill);
    eventually("it sees that they have exited", || domain.snapshot().unwrap().nodes.is_empty());
    let open: Vec<&String> = held.iter().filter(|fd| process_of(fd) == Some(-1)).collect();
    assert!(open.is_empty(), "still open: {open:?}");
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    if role().as_deref() == Some("node") {
        let _node = Net::of_parent().node(&format!("n{}", std::process::id()));
        common::tell("there");
        loop {
            std::thread::park();
        }
    }
    if role().as_deref() == Some("listener") {
        let net = Net::of_parent();
        let mut follow = Follower::new(net.domain(), "/t", false).unwrap();
        let mut bytes = Vec::new();
        let mut reported = false;
        loop {
            while follow.poll(&mut bytes).unwrap().is_some() {}
            follow.wait(Duration::from_secs(1));
            if !std::mem::replace(&mut reported, true) {
                common::tell("listens");
            }
        }
    }
}
