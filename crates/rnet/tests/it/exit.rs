//! Processes that end without dropping their nodes, and callbacks that panic.

use crate::common;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::{Error, MatchEvent, Node, NodeEvent, OnFull, PublisherOptions, SubscriberOptions};

/// Dropped by nobody.
static KEPT: OnceLock<Node> = OnceLock::new();

thread_local!(static HELD: RefCell<Option<Node>> = const { RefCell::new(None) });

/// A node whose threads are busy: callbacks of both lanes, under a flood.
fn busy(net: &Net) -> Node {
    let node = net.node("victim");
    let got = Arc::new(AtomicUsize::new(0));
    for topic in ["/bulk", "/urgent"] {
        let counted = got.clone();
        node.subscriber::<[u8]>(topic)
            .unwrap()
            .on(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
            })
            .detach();
    }
    let theirs = node.clone();
    std::thread::spawn(move || {
        let mut bulk = theirs.publisher::<[u8]>("/bulk").unwrap();
        let urgent = PublisherOptions::new().urgent();
        let mut urgent = theirs.publisher_with::<[u8]>("/urgent", urgent).unwrap();
        // Until the process ends.
        loop {
            bulk.send(&[1; 10_000]).and_then(|()| urgent.send(&[1])).unwrap();
        }
    });
    eventually("callbacks run", || got.load(Ordering::Relaxed) > 100);
    node
}

/// The roles of the children: ways to end.
#[test]
#[ignore = "played by the children of the other tests"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    if role == "exec" {
        use std::os::unix::process::CommandExt;
        let node = net.node("victim");
        let mut publisher = node.publisher::<[u8]>("/t").unwrap();
        publisher.wait_for_subscribers(1, LONG).unwrap();
        publisher.send(b"the last word").unwrap();
        tell("ready");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        // Ends with the parent, who holds the other end of its input.
        panic!("{}", std::process::Command::new("cat").exec());
    }
    // Ends with the parent, whatever it is doing: the roles below wait for a line.
    let orders = common::orders();
    if role == "thread_local" {
        let net = net.same();
        let thread = std::thread::spawn(move || {
            HELD.with(|held| *held.borrow_mut() = Some(net.node("victim")));
        });
        thread.join().unwrap();
        tell("ready");
        drop(orders.recv());
        return;
    }
    let node = busy(&net);
    tell("ready");
    drop(orders.recv());
    match role.as_str() {
        "static" => drop(KEPT.set(node)),
        "leak" => std::mem::forget(node),
        "exit" => std::process::exit(0),
        // SAFETY: ends the process.
        "_exit" => unsafe { libc::_exit(0) },
        "abort" => {
            common::no_core();
            std::process::abort()
        }
        other => panic!("no such role: {other}"),
    }
}

#[test]
fn peers_see_the_end_of_a_process_however_it_ends() {
    let net = Net::new("ends");
    let node = net.node("survivor");
    let (tell, events) = mpsc::channel();
    node.on_node(move |event| tell.send(event.clone()).unwrap());
    let next = || events.recv_timeout(LONG.unwrap()).unwrap();
    let nodes = net.inspect_path().join("nodes");
    for way in ["static", "leak", "exit", "_exit", "abort"] {
        for _ in 0..5 {
            let mut subscriber = node.subscriber::<[u8]>("/bulk").unwrap();
            let mut child = Child::spawn(&net, way);
            assert_eq!(next(), NodeEvent::Joined("/victim".to_owned()), "{way}");
            child.expect("ready");
            // Of one that had gone before it was met nothing would be told.
            subscriber.wait_for_publishers(1, LONG).unwrap();
            child.say("end");
            let status = child.ended();
            // No crash and no hang on the way out.
            assert!(status.success() || way == "abort", "{way}: {status}");
            assert_eq!(next(), NodeEvent::Died("/victim".to_owned()), "{way}");
            let (_, error) = common::until_error(&mut subscriber);
            assert!(matches!(error, Error::PeerLost { .. }), "{way}: {error:?}");
            eventually("the dead are swept", || std::fs::read_dir(&nodes).unwrap().count() == 1);
        }
    }
}

#[test]
fn a_node_may_be_dropped_by_the_end_of_a_thread() {
    let net = Net::new("thread local");
    let mut child = Child::spawn(&net, "thread_local");
    child.expect("ready");
    assert!(net.inspect().nodes.is_empty());
    let names = net.inspect_path().join("names");
    assert_eq!(std::fs::read_dir(names).unwrap().count(), 0, "it did not say goodbye");
    child.say("end");
    assert!(child.ended().success());
}

/// Of two hooks the one that panics is not called again, and the other does not notice.
#[test]
fn a_hook_that_panics_is_called_no_more_and_the_others_go_on() {
    let net = Net::new("panicking hooks");
    let node = net.node("node");
    let calls = Arc::new(AtomicUsize::new(0));
    let panics = || {
        let calls = calls.clone();
        move || {
            calls.fetch_add(1, Ordering::SeqCst);
            panic!("on purpose");
        }
    };
    let publisher = node.publisher::<[u8]>("/t").unwrap();
    let (on_node, on_match) = (panics(), panics());
    node.on_node(move |_| on_node());
    publisher.on_match(move |_| on_match());
    let (tell, events) = mpsc::channel();
    let tell_node = tell.clone();
    node.on_node(move |event| drop(tell_node.send(format!("{event:?}"))));
    publisher.on_match(move |event| {
        if let MatchEvent::Matched(peer) = event {
            tell.send(peer.node.clone()).unwrap();
        }
    });
    for name in ["/one", "/two", "/three"] {
        let guest = net.node(name);
        let _subscriber = guest.subscriber::<[u8]>("/t").unwrap();
        let heard: Vec<String> =
            (0..2).map(|_| events.recv_timeout(LONG.unwrap()).unwrap()).collect();
        assert!(heard.contains(&name.to_owned()), "{heard:?}");
        assert!(heard.contains(&format!("Joined({name:?})")), "{heard:?}");
        drop(_subscriber);
        drop(guest);
        assert_eq!(events.recv_timeout(LONG.unwrap()).unwrap(), format!("Left({name:?})"));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2, "each once");
}

/// Panics when the callback that holds it is dropped, too.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("on purpose, in a drop");
        }
    }
}

#[test]
fn a_callback_that_panics_is_called_no_more_and_the_others_go_on() {
    let net = Net::new("panicking callback");
    let node = net.node("node");
    let mut publisher = node.publisher::<[u8]>("/t").unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let bomb = Bomb;
    let bad = node.subscriber::<[u8]>("/t").unwrap().on(move |_| {
        let _held = &bomb;
        counted.fetch_add(1, Ordering::SeqCst);
        panic!("on purpose");
    });
    let dropped = node.subscriber::<[u8]>("/t").unwrap().on({
        let bomb = Bomb;
        move |_| {
            let _held = &bomb;
        }
    });
    let (tell, heard) = mpsc::channel();
    let _good =
        node.subscriber::<[u8]>("/t").unwrap().on(move |sample| tell.send(sample[0]).unwrap());
    publisher.wait_for_subscribers(3, LONG).unwrap();
    for n in 0..10 {
        publisher.send(&[n]).unwrap();
        assert_eq!(heard.recv_timeout(LONG.unwrap()).unwrap(), n);
        if n == 5 {
            eventually("its subscription ends with it", || publisher.subscriber_count() == 2);
        }
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    drop((bad, dropped));
    publisher.send(&[10]).unwrap();
    assert_eq!(heard.recv_timeout(LONG.unwrap()).unwrap(), 10);
}

/// A loan or a sample that unwinds gives back its memory: the pool has room for very few.
#[test]
fn a_panic_with_a_loan_or_a_sample_in_hand_loses_no_memory() {
    let net = Net::new("panic with sample");
    let node = net.node("node");
    let options =
        PublisherOptions::new().reliable(OnFull::Wait(LONG.unwrap())).pool_limit_bytes(512 << 10);
    let mut publisher = node.publisher_with::<[u8]>("/t", options).unwrap();
    let options = SubscriberOptions::new().reliable();
    let mut subscriber = node.subscriber_with::<[u8]>("/t", options).unwrap();
    publisher.wait_for_subscribers(1, LONG).unwrap();
    for n in 0..50_u8 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _loan = publisher.loan(100_000).unwrap();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        publisher.send(&[n; 100_000]).unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let sample = subscriber.recv(LONG).unwrap();
            assert_eq!(*sample, [n; 100_000]);
            let _kept = sample.to_owned_sample();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
    }
    assert_eq!(subscriber.lost().total(), 0);
    assert_eq!(subscriber.stats()[0].received, 50);
}

#[test]
fn a_callback_may_drop_the_last_handle_of_its_node() {
    let net = Net::new("drop in callback");
    let survivor = net.node("survivor");
    let (tell, events) = mpsc::channel();
    survivor.on_node(move |event| tell.send(event.clone()).unwrap());
    let next = || events.recv_timeout(LONG.unwrap()).unwrap();
    let mut publisher = survivor.publisher::<[u8]>("/t").unwrap();
    let node = net.node("guest");
    assert_eq!(next(), NodeEvent::Joined("/guest".to_owned()));
    let handle = Arc::new(Mutex::new(None));
    let theirs = handle.clone();
    node.subscriber::<[u8]>("/t")
        .unwrap()
        .on(move |_| drop(theirs.lock().unwrap().take()))
        .detach();
    *handle.lock().unwrap() = Some(node);
    publisher.wait_for_subscribers(1, LONG).unwrap();
    publisher.send(b"end").unwrap();
    assert_eq!(next(), NodeEvent::Left("/guest".to_owned()));
    drop(net.node("guest"));
}

/// The process goes on as another program, so that its end tells nothing.
#[test]
fn a_node_whose_process_becomes_another_program_has_died() {
    let net = Net::new("exec");
    // Several in this process: one of them hears, all are told.
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        let node = net.node(name);
        let (tell, events) = mpsc::channel();
        node.on_node(move |event| {
            let _ = tell.send(event.clone());
        });
        all.push((node, events));
    }
    let next_of_victim = |events: &mpsc::Receiver<NodeEvent>| loop {
        match events.recv_timeout(LONG.unwrap()).unwrap() {
            NodeEvent::Joined(name) if name != "/victim" => {}
            event => return event,
        }
    };
    let mut subscriber = all[0].0.subscriber::<[u8]>("/t").unwrap();
    let mut child = Child::spawn(&net, "exec");
    child.expect("ready");
    for (_, events) in &all {
        assert_eq!(next_of_victim(events), NodeEvent::Joined("/victim".to_owned()));
    }
    assert_eq!(*subscriber.recv(LONG).unwrap(), *b"the last word");
    child.say("go");
    for (_, events) in &all {
        assert_eq!(next_of_victim(events), NodeEvent::Died("/victim".to_owned()));
    }
    assert!(matches!(subscriber.recv(LONG), Err(Error::PeerLost { .. })));
    let program = std::fs::read_to_string(format!("/proc/{}/comm", child.pid())).unwrap();
    assert_eq!(program.trim(), "cat", "it was to live on");
    // What it left is swept, and its name is free.
    eventually("the folder is gone", || net.inspect().nodes.len() == 3);
    drop(net.node("victim"));
}
