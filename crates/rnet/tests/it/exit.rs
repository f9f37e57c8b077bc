//! Processes that exit without dropping their nodes, and callbacks that panic.

use crate::common;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::msgs::Log;
use rnet::{Error, HandlerError, LogLevel, MatchEvent, Node, NodeEvent, OnFull};

/// Never dropped.
static KEPT: OnceLock<Node> = OnceLock::new();

thread_local!(static HELD: RefCell<Option<Node>> = const { RefCell::new(None) });

/// A node with busy threads: callbacks of both lanes under a flood of messages.
fn busy(net: &Net) -> Node {
    let node = net.node("victim");
    let got = Arc::new(AtomicUsize::new(0));
    for topic in ["/bulk", "/urgent"] {
        let counted = got.clone();
        node.subscriber::<[u8]>(topic)
            .open()
            .unwrap()
            .on(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
            })
            .detach();
    }
    let theirs = node.clone();
    std::thread::spawn(move || {
        let mut bulk = theirs.publisher::<[u8]>("/bulk").open().unwrap();
        let mut urgent = theirs.publisher::<[u8]>("/urgent").urgent().open().unwrap();
        // Until the process ends.
        loop {
            bulk.send(&[1; 10_000]).and_then(|()| urgent.send(&[1])).unwrap();
        }
    });
    eventually("callbacks run", || got.load(Ordering::Relaxed) > 100);
    node
}

/// Entry point of the child processes: each role exits in another way.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    if role == "exec" {
        use std::os::unix::process::CommandExt;
        let node = net.node("victim");
        let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        publisher.send(b"a last message").unwrap();
        tell("ready");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        // Exits with the parent, which holds the other end of its stdin.
        panic!("{}", std::process::Command::new("cat").exec());
    }
    // Exits with the parent: the roles below wait for a line.
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
        // SAFETY: exits the process.
        "_exit" => unsafe { libc::_exit(0) },
        "abort" => {
            common::no_core();
            std::process::abort()
        }
        other => panic!("unknown role: {other}"),
    }
}

#[test]
fn peers_detect_each_kind_of_process_exit() {
    let net = Net::new("ends");
    let node = net.node("survivor");
    let (tell, events) = mpsc::channel();
    node.on_node(move |event| tell.send(event.clone()).unwrap()).detach();
    let next = || events.recv_timeout(LONG).unwrap();
    let nodes = net.inspect_path().join("nodes");
    for way in ["static", "leak", "exit", "_exit", "abort"] {
        for _ in 0..5 {
            let mut subscriber = node.subscriber::<[u8]>("/bulk").open().unwrap();
            let mut child = Child::spawn(&net, way);
            assert_eq!(next(), NodeEvent::Joined("/victim".to_owned()), "{way}");
            child.expect("ready");
            // A node that exits before it is matched is not reported.
            subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
            child.say("end");
            let status = child.ended();
            // The exit must not crash or hang.
            assert!(status.success() || way == "abort", "{way}: {status}");
            assert_eq!(next(), NodeEvent::Died("/victim".to_owned()), "{way}");
            let (_, error) = common::until_error(&mut subscriber);
            assert!(matches!(error, Error::PeerLost { .. }), "{way}: {error:?}");
            eventually("the dead nodes are swept", || {
                std::fs::read_dir(&nodes).unwrap().count() == 1
            });
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
    assert_eq!(std::fs::read_dir(names).unwrap().count(), 0, "it did not close its node");
    child.say("end");
    assert!(child.ended().success());
}

/// The hook that panics is not called again; the other hook is not affected.
#[test]
fn panicking_hook_is_not_called_again_and_others_continue() {
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
    let publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let (on_node, on_match) = (panics(), panics());
    node.on_node(move |_| on_node()).detach();
    publisher.on_match(move |_| on_match()).detach();
    let (tell, events) = mpsc::channel();
    let tell_node = tell.clone();
    node.on_node(move |event| drop(tell_node.send(format!("{event:?}")))).detach();
    publisher
        .on_match(move |event| {
            if let MatchEvent::Matched(peer) = event {
                tell.send(peer.node.clone()).unwrap();
            }
        })
        .detach();
    for name in ["/one", "/two", "/three"] {
        let guest = net.node(name);
        let _subscriber = guest.subscriber::<[u8]>("/t").open().unwrap();
        let received: Vec<String> = (0..2).map(|_| events.recv_timeout(LONG).unwrap()).collect();
        assert!(received.contains(&name.to_owned()), "{received:?}");
        assert!(received.contains(&format!("Joined({name:?})")), "{received:?}");
        drop(_subscriber);
        drop(guest);
        assert_eq!(events.recv_timeout(LONG).unwrap(), format!("Left({name:?})"));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2, "each once");
}

/// Panics when the callback that holds it is dropped, as well.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("on purpose, in a drop");
        }
    }
}

#[test]
fn panicking_callback_is_not_called_again_and_others_continue() {
    let net = Net::new("panicking callback");
    let node = net.node("node");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let bomb = Bomb;
    let bad = node.subscriber::<[u8]>("/t").open().unwrap().on(move |_| {
        let _held = &bomb;
        counted.fetch_add(1, Ordering::SeqCst);
        panic!("on purpose");
    });
    let dropped = node.subscriber::<[u8]>("/t").open().unwrap().on({
        let bomb = Bomb;
        move |_| {
            let _held = &bomb;
        }
    });
    let (tell, receiver) = mpsc::channel();
    let _good = node
        .subscriber::<[u8]>("/t")
        .open()
        .unwrap()
        .on(move |sample| tell.send(sample[0]).unwrap());
    publisher.wait_for_subscribers_timeout(3, LONG).unwrap();
    for n in 0..10 {
        publisher.send(&[n]).unwrap();
        assert_eq!(receiver.recv_timeout(LONG).unwrap(), n);
        if n == 5 {
            eventually("its subscription is dropped", || publisher.subscriber_count() == 2);
        }
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    drop((bad, dropped));
    publisher.send(&[10]).unwrap();
    assert_eq!(receiver.recv_timeout(LONG).unwrap(), 10);
}

#[test]
fn errors_of_callbacks_are_counted_and_reported() {
    let net = Net::new("callback errors");
    let (node, other) = (net.node("node"), net.node("other"));
    let count = || net.inspect().node("/node").unwrap().callback_errors;
    assert_eq!((node.callback_errors(), count()), (0, 0));
    let mut lines = other.subscriber::<Log>(rnet::LOG_TOPIC).transient_local().open().unwrap();
    let mut reported = |error: u64, callback: &str| {
        eventually(callback, || node.callback_errors() == error);
        assert_eq!(count(), error, "{callback}");
        let line = loop {
            match lines.recv_timeout(LONG) {
                Ok(line) => break line.into_message(),
                Err(Error::PeerLost { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!((&*line.name, line.level), ("/node", LogLevel::Error as i32));
        let expected = format!("{callback} failed: it panicked: on purpose");
        assert_eq!(line.message, expected);
    };
    let mut publisher = other.publisher::<[u8]>("/t").open().unwrap();
    let _message = node.subscriber::<[u8]>("/t").open().unwrap().on(|_| panic!("on purpose"));
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"x").unwrap();
    reported(1, "the callback of /t");
    let _timer = node.timer(Duration::from_millis(1)).on(|_| panic!("on purpose")).unwrap();
    reported(2, "a timer of the bulk lane");
    node.on_node(|_| panic!("on purpose")).detach();
    let guest = net.node("guest");
    reported(3, "a callback of the bulk lane");
    drop(guest);
    let state = node.state().unwrap();
    let _change = state.watch("/key").unwrap().on(|_| panic!("on purpose"));
    state.set("/key", 1).unwrap();
    reported(4, "the callback of the keys under /key");
    let serve = node.service::<[u8], [u8]>("/serve");
    let _service = serve.serve(|_: &[u8]| -> Result<Vec<u8>, _> { panic!("on purpose") }).unwrap();
    assert!(other.call_timeout::<[u8], [u8]>("/serve", b"x", LONG).is_err());
    reported(5, "the handler of /serve");
    let command = node.command::<[u8]>("/cmd").deadline(Duration::from_secs(3600));
    let _command = command.fallback_handler(|_| ()).apply(|_| panic!("on purpose")).unwrap();
    let mut driver = other.drive::<[u8]>("/cmd").timeout(LONG).take().unwrap();
    driver.send(b"x").unwrap();
    reported(6, "the command receiver of /cmd");
    // Each error is counted, and one per second is reported.
    for call in 7..17 {
        assert!(other.call_timeout::<[u8], [u8]>("/serve", b"x", LONG).is_err());
        assert_eq!(node.callback_errors(), call);
    }
    assert_eq!(other.callback_errors(), 0);
}

#[test]
fn errors_that_handlers_return_are_reported_but_not_counted() {
    let net = Net::new("handler errors");
    let (node, other) = (net.node("node"), net.node("other"));
    let mut lines = other.subscriber::<Log>(rnet::LOG_TOPIC).transient_local().open().unwrap();
    let fail = |_: &[u8]| -> Result<Vec<u8>, _> { Err(HandlerError::new("NoPath", "a wall")) };
    let _service = node.service::<[u8], [u8]>("/serve").serve(fail).unwrap();
    for _ in 0..20 {
        let error = other.call_timeout::<[u8], [u8]>("/serve", b"x", LONG).unwrap_err();
        let text = "/serve failed in /node: NoPath: a wall; see rnet log --node /node";
        assert_eq!(error.to_string(), text);
    }
    let line = lines.recv_timeout(LONG).unwrap().into_message();
    assert_eq!(line.message, "the handler of /serve failed: NoPath: a wall");
    assert_eq!(line.level, LogLevel::Error as i32);
    assert_eq!(node.callback_errors(), 0);
}

/// A loan or a sample that unwinds releases its memory: the pool has capacity for very few.
#[test]
fn panic_with_a_held_loan_or_sample_leaks_no_memory() {
    let net = Net::new("panic with sample");
    let node = net.node("node");
    let publisher = node.publisher::<[u8]>("/t").reliable(OnFull::Wait(LONG));
    let mut publisher = publisher.pool_limit_bytes(512 << 10).open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for n in 0..50_u8 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _loan = publisher.loan(100_000).unwrap();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        publisher.send(&[n; 100_000]).unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let sample = subscriber.recv_timeout(LONG).unwrap();
            assert_eq!(*sample, [n; 100_000]);
            let _kept = sample.into_owned();
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
    survivor.on_node(move |event| tell.send(event.clone()).unwrap()).detach();
    let next = || events.recv_timeout(LONG).unwrap();
    let mut publisher = survivor.publisher::<[u8]>("/t").open().unwrap();
    let node = net.node("guest");
    assert_eq!(next(), NodeEvent::Joined("/guest".to_owned()));
    let handle = Arc::new(Mutex::new(None));
    let theirs = handle.clone();
    node.subscriber::<[u8]>("/t")
        .open()
        .unwrap()
        .on(move |_| drop(theirs.lock().unwrap().take()))
        .detach();
    *handle.lock().unwrap() = Some(node);
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"end").unwrap();
    assert_eq!(next(), NodeEvent::Left("/guest".to_owned()));
    drop(net.node("guest"));
}

/// The process executes another program, so its exit is not visible.
#[test]
fn node_whose_process_execs_another_program_has_died() {
    let net = Net::new("exec");
    // This process has several nodes: one of them detects the end, and all are notified.
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        let node = net.node(name);
        let (tell, events) = mpsc::channel();
        node.on_node(move |event| {
            let _ = tell.send(event.clone());
        })
        .detach();
        all.push((node, events));
    }
    let next_of_victim = |events: &mpsc::Receiver<NodeEvent>| loop {
        match events.recv_timeout(LONG).unwrap() {
            NodeEvent::Joined(name) if name != "/victim" => {}
            event => return event,
        }
    };
    let mut subscriber = all[0].0.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "exec");
    child.expect("ready");
    for (_, events) in &all {
        assert_eq!(next_of_victim(events), NodeEvent::Joined("/victim".to_owned()));
    }
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), *b"a last message");
    child.say("go");
    for (_, events) in &all {
        assert_eq!(next_of_victim(events), NodeEvent::Died("/victim".to_owned()));
    }
    assert!(matches!(subscriber.recv_timeout(LONG), Err(Error::PeerLost { .. })));
    let program = std::fs::read_to_string(format!("/proc/{}/comm", child.pid())).unwrap();
    assert_eq!(program.trim(), "cat", "the process must still run");
    // Its leftovers are swept, and its name is free.
    eventually("the folder is gone", || net.inspect().nodes.len() == 3);
    drop(net.node("victim"));
}
