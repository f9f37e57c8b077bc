//! Services: calls, their outcomes, and failures of either side.

use crate::common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use common::{Child, LONG, Net, block_on, eventually, role, tell};
use rnet::msgs::{CallStatus, Twist};
use rnet::{CallOptions, Client, Error, HandlerError, Meta, Node, OnFull, Service};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
struct N {
    x: u64,
}

impl PartialEq<u64> for N {
    fn eq(&self, x: &u64) -> bool {
        self.x == *x
    }
}

fn n(x: u64) -> N {
    N { x }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, rnet::Plain)]
struct F {
    x: f64,
}

fn options() -> CallOptions {
    CallOptions::new().timeout(LONG)
}

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    match role.as_str() {
        // Receives a call and never answers it.
        "server" => {
            let node = net.node("victim");
            let _service = node
                .service::<N, N>("/plan")
                .serve(move |_| -> Result<N, HandlerError> {
                    tell("called");
                    loop {
                        std::thread::park();
                    }
                })
                .unwrap();
            tell("ready");
            let _ = orders.recv();
        }
        // Makes a call that is never answered.
        "client" => {
            let node = net.node("victim");
            let client = node.client::<N, N>("/plan").open().unwrap();
            let _ = client.call_timeout(&n(1), LONG);
        }
        _ => panic!("unknown role: {role}"),
    }
}

fn double(node: &Node) -> Service {
    node.service::<N, N>("/double").serve(|x| Ok(n(2 * x.x))).unwrap()
}

/// A handler that blocks until the test opens the gate, and records its calls.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    bell: Condvar,
    begun: AtomicU32,
}

impl Gate {
    fn pass(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let mut open = self.open.lock().unwrap();
        while !*open {
            open = self.bell.wait(open).unwrap();
        }
    }
    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.bell.notify_all();
    }
    fn begun(&self) -> u32 {
        self.begun.load(Ordering::SeqCst)
    }
}

/// A service behind a gate that returns its request.
fn gated(node: &Node, backlog: usize) -> (Arc<Gate>, Service) {
    let gate = Arc::new(Gate::default());
    let at = gate.clone();
    let echo = move |x: &N| {
        at.pass();
        Ok(*x)
    };
    (gate, node.service::<N, N>("/echo").backlog(backlog).serve(echo).unwrap())
}

#[test]
fn a_call_gets_its_reply() {
    let net = Net::new("reply");
    let (a, b) = (net.node("a"), net.node("b"));
    let service = double(&a);
    let client = b.client::<N, N>("double").open().unwrap();
    for x in 0..100 {
        assert_eq!(*client.call_timeout(&n(x), LONG).unwrap(), 2 * x);
    }
    assert_eq!((client.name(), client.server_count()), ("/double", 1));
    assert_eq!((service.stats().calls, client.stats().calls, client.stats().late), (100, 100, 0));
    assert_eq!(client.stats().open, 0);
    // Bytes and protobuf messages, small and large, and a one-shot call.
    let large = vec![7_u8; 300_000];
    let echo = a.service::<[u8], [u8]>("/bytes").serve(|bytes| Ok(bytes.to_vec())).unwrap();
    assert_eq!(&*b.call_timeout::<[u8], [u8]>("/bytes", &large, LONG).unwrap(), &large[..]);
    let twist = a.service::<Twist, Twist>("/twist").serve(|twist| Ok(*twist)).unwrap();
    let given =
        Twist { linear: Some(rnet::msgs::Vector3 { x: 1.5, y: 0.0, z: 0.0 }), ..Twist::default() };
    assert_eq!(
        b.call_timeout::<Twist, Twist>("/twist", &given, LONG).unwrap().into_message(),
        given
    );
    drop((echo, twist));
}

#[test]
fn server_may_start_late_and_restart() {
    let net = Net::new("late");
    let (a, b) = (net.node("a"), net.node("b"));
    let client = b.client::<N, N>("/double").open().unwrap();
    let waiting = client.clone();
    let first = std::thread::spawn(move || *waiting.call_timeout(&n(1), LONG).unwrap());
    eventually("the call is pending", || client.stats().open == 1);
    let service = double(&a);
    assert_eq!(first.join().unwrap(), 2);
    drop(service);
    eventually("the server is gone", || client.server_count() == 0);
    let again = double(&a);
    assert_eq!(*client.call_timeout(&n(2), LONG).unwrap(), 4);
    drop(again);
}

#[test]
fn call_without_a_server_times_out() {
    let net = Net::new("none");
    let node = net.node("a");
    let error = node.call_timeout::<N, N>("/none", &n(1), Duration::from_millis(20)).unwrap_err();
    assert_eq!(error.code(), "timeout");
    assert!(error.to_string().contains("a server of /none"), "{error}");
    assert_eq!(node.client::<N, N>("/a b").open().err().map(|e| e.code()), Some("bad_name"));
    assert_eq!(
        node.client::<N, N>(&"a".repeat(201)).open().err().map(|e| e.code()),
        Some("bad_name")
    );
    let bad = node.service::<N, N>("/x").at_once(0).serve(|x| Ok(*x));
    assert_eq!(bad.err().map(|e| e.code()), Some("bad_value"));
}

#[test]
fn timed_out_call_is_cancelled_and_blocks_no_other() {
    let net = Net::new("dropped");
    let (a, b) = (net.node("a"), net.node("b"));
    let (gate, service) = gated(&a, 8);
    let client = b.client::<N, N>("/echo").open().unwrap();
    let call = client.start(&n(1), CallOptions::new().timeout(Duration::from_millis(50))).unwrap();
    assert_eq!(call.wait().unwrap_err().code(), "timeout");
    // After the timeout the call was cancelled, whether queued or running.
    gate.open();
    eventually("the call has ended", || {
        let stats = service.stats();
        stats.calls <= 1 && stats.running == 0 && stats.waiting == 0
    });
    assert_eq!(*client.call_timeout(&n(2), LONG).unwrap(), 2);
}

#[test]
fn sixty_four_clients_are_served() {
    let net = Net::new("many");
    let (a, b) = (net.node("a"), net.node("b"));
    let service = double(&a);
    let clients: Vec<Client<N, N>> = (0..64).map(|_| b.client("/double").open().unwrap()).collect();
    std::thread::scope(|scope| {
        for (x, client) in (0..).zip(&clients) {
            scope.spawn(move || assert_eq!(*client.call_timeout(&n(x), LONG).unwrap(), 2 * x));
        }
    });
    assert_eq!(service.stats().calls, 64);
}

#[test]
fn async_calls() {
    let net = Net::new("async");
    let (a, b) = (net.node("a"), net.node("b"));
    let client = b.client::<N, N>("/double").open().unwrap();
    let short = CallOptions::new().timeout(Duration::from_millis(20));
    let error = block_on(client.start(&n(1), short).unwrap()).unwrap_err();
    assert_eq!(error.code(), "timeout");
    let early = client.start(&n(7), options()).unwrap();
    let service = double(&a);
    assert_eq!(*block_on(early).unwrap(), 14);
    for x in 0..50 {
        assert_eq!(*block_on(client.start(&n(x), options()).unwrap()).unwrap(), 2 * x);
        assert_eq!(*client.call_timeout(&n(x), LONG).unwrap(), 2 * x);
    }
    let waits = client.start(&n(9), options()).unwrap();
    assert_eq!(*block_on(waits).unwrap(), 18);
    drop(service);
}

#[test]
fn wait_for_a_reply_can_be_resumed_and_interrupted() {
    let net = Net::new("parts");
    let (a, b) = (net.node("a"), net.node("b"));
    let (gate, service) = gated(&a, 8);
    let types = || <N as rnet::Message>::message_type().unwrap();
    let client = b.client::<[u8], [u8]>("/echo").message_types(types(), types()).open().unwrap();
    let first = client.start(&1_u64.to_le_bytes(), options()).unwrap();
    for limit in [Duration::ZERO, Duration::from_millis(5)] {
        assert_eq!(first.next_within(limit).unwrap_err(), Error::Interrupted);
    }
    let second = Arc::new(client.start(&2_u64.to_le_bytes(), options()).unwrap());
    let waits = second.clone();
    let waiting = std::thread::spawn(move || waits.next_within(LONG).unwrap_err().code());
    second.cancel();
    assert_eq!(waiting.join().unwrap(), "cancelled");
    gate.open();
    let reply = loop {
        match first.next_within(Duration::from_millis(5)) {
            Err(Error::Interrupted) => {}
            reply => break reply.unwrap().unwrap(),
        }
    };
    assert_eq!(*reply, 1_u64.to_le_bytes());
    let wrong = b.client::<[u8], F>("/echo").message_types(types(), types()).open();
    assert_eq!(wrong.err().map(|e| e.code()), Some("bad_value"));
    drop(service);
}

#[test]
fn a_stream_has_all_replies_in_order() {
    let net = Net::new("stream");
    let (a, b) = (net.node("a"), net.node("b"));
    let count = |count: &N, responder: &mut rnet::Responder<'_, N>| {
        for i in 0..count.x {
            responder.send(&n(i))?;
        }
        Ok(())
    };
    let service = a.service::<N, N>("/count").serve_stream(count).unwrap();
    let client = b.client::<N, N>("/count").open().unwrap();
    for count in [0, 1, 1000] {
        let mut stream = client.stream(&n(count), options()).unwrap();
        for i in 0..count {
            assert_eq!(*stream.next().unwrap().unwrap(), i);
        }
        assert!(stream.next().unwrap().is_none());
        assert!(stream.next().unwrap().is_none());
    }
    // A call needs one reply; zero replies are an error.
    assert_eq!(*client.call_timeout(&n(5), LONG).unwrap(), 0);
    let error = client.call_timeout(&n(0), LONG).unwrap_err();
    assert!(
        matches!(&error, Error::CallFailed { failure, .. } if failure.kind == "no_reply"),
        "{error}"
    );
    drop(service);
    // A stream from a service with one reply.
    let one = double(&a);
    let mut stream = b.client::<N, N>("/double").open().unwrap().stream(&n(4), options()).unwrap();
    assert_eq!(*stream.next().unwrap().unwrap(), 8);
    assert!(stream.next().unwrap().is_none());
    drop(one);
}

#[test]
fn a_handler_sees_that_it_is_cancelled() {
    let net = Net::new("cancel");
    let (a, b) = (net.node("a"), net.node("b"));
    let (say, said) = mpsc::channel();
    let service = a
        .service::<N, N>("/forever")
        .serve_stream(move |_, responder| {
            say.send(responder.caller().to_owned()).unwrap();
            while !responder.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1)); // sleep: polling interval
            }
            Ok(())
        })
        .unwrap();
    let client = b.client::<N, N>("/forever").open().unwrap();
    // The second call is in the backlog and is cancelled there.
    let (first, second) =
        (client.start(&n(1), options()).unwrap(), client.start(&n(2), options()).unwrap());
    assert_eq!(said.recv_timeout(LONG).unwrap(), "/b");
    eventually("the second call is queued", || service.stats().waiting == 1);
    drop(second);
    first.cancel();
    eventually("both calls have ended", || service.stats().cancelled == 2);
    // A stream whose reader is dropped, and a client that is dropped.
    let stream = client.stream(&n(3), options()).unwrap();
    assert_eq!(said.recv_timeout(LONG).unwrap(), "/b");
    drop(client);
    assert_eq!(service.stats().running, 1);
    drop(stream);
    eventually("the third call has ended", || service.stats().cancelled == 3);
}

#[test]
fn handler_errors_and_panics_reach_the_caller() {
    let net = Net::new("errors");
    let (a, b) = (net.node("a"), net.node("b"));
    let service = a
        .service::<N, N>("/fail")
        .serve(|x| match x.x {
            0 => Err(HandlerError::new("NoPath", "blocked by a wall")),
            1 => Ok(n("x".parse()?)),
            _ => panic!("three is too many"),
        })
        .unwrap();
    let client = b.client::<N, N>("/fail").open().unwrap();
    let mut failures = Vec::new();
    for x in 0..3 {
        let error = client.call_timeout(&n(x), LONG).unwrap_err();
        assert_eq!(
            (error.code(), error.topic(), error.node()),
            ("call_failed", Some("/fail"), Some("/a"))
        );
        let Error::CallFailed { failure, .. } = error else { unreachable!() };
        failures.push((failure.kind.clone(), failure.text.clone()));
    }
    assert_eq!(failures[0], ("NoPath".to_owned(), "blocked by a wall".to_owned()));
    assert!(failures[1].0.contains("ParseIntError"), "{failures:?}");
    assert_eq!(failures[2], ("panic".to_owned(), "three is too many".to_owned()));
    eventually("both are counted", || service.stats().failed == 3);
}

#[test]
fn full_server_backlog_refuses_calls() {
    let net = Net::new("backlog");
    let (a, b, c) = (net.node("a"), net.node("b"), net.node("c"));
    let (gate, service) = gated(&a, 1);
    let client = b.client::<N, N>("/echo").open().unwrap();
    let first = client.start(&n(1), options()).unwrap();
    eventually("the first call runs", || gate.begun() == 1);
    let second = client.start(&n(2), options()).unwrap();
    eventually("the second call is queued", || service.stats().waiting == 1);
    let error = client.call_timeout(&n(3), LONG).unwrap_err();
    assert!(matches!(&error, Error::Refused { node, backlog: 1, .. } if node == "/a"), "{error}");
    assert_eq!(service.stats().refused, 1);
    // Another server accepts the call that this one refuses.
    let (other, free) = gated(&c, 1);
    other.open();
    eventually("both servers are found", || client.server_count() == 2);
    assert_eq!(*client.call_timeout(&n(4), LONG).unwrap(), 4);
    gate.open();
    assert_eq!((*first.wait().unwrap(), *second.wait().unwrap()), (n(1), n(2)));
    drop((service, free));
}

#[test]
fn the_server_with_the_fewest_calls_is_chosen_and_a_key_sticks() {
    let net = Net::new("choice");
    let (a, b, c) = (net.node("a"), net.node("b"), net.node("c"));
    let ((one, first), (two, second)) = (gated(&a, 64), gated(&b, 64));
    let client = c.client::<N, N>("/echo").open().unwrap();
    eventually("both servers are found", || client.server_count() == 2);
    let calls: Vec<_> = (0..10).map(|x| client.start(&n(x), options()).unwrap()).collect();
    let all = |service: &Service| service.stats().calls;
    eventually("all calls run", || all(&first) + all(&second) == 10);
    assert_eq!((all(&first), all(&second)), (5, 5));
    one.open();
    two.open();
    calls.into_iter().for_each(|call| drop(call.wait().unwrap()));
    for _ in 0..6 {
        let call = client.start(&n(0), options().key("robot-7")).unwrap();
        call.wait().unwrap();
    }
    let counts = [all(&first), all(&second)];
    assert!(counts == [11, 5] || counts == [5, 11], "{counts:?}");
}

#[test]
fn error_names_the_server_that_closed_or_died() {
    let net = Net::new("lost");
    let node = net.node("a");
    let client = node.client::<N, N>("/plan").open().unwrap();
    let mut child = Child::spawn(&net, "server");
    child.expect("ready");
    let (blocking, waiting) = (client.clone(), client.start(&n(2), options()).unwrap());
    let call = std::thread::spawn(move || blocking.call_timeout(&n(1), LONG).unwrap_err());
    child.expect("called");
    child.kill();
    for error in [call.join().unwrap(), block_on(waiting).unwrap_err()] {
        let text = error.to_string();
        assert!(matches!(&error, Error::ServerLost { node, .. } if node == "/victim"), "{text}");
        assert_eq!((error.topic(), error.node()), (Some("/plan"), Some("/victim")));
    }
    // The server closes while a handler of its other node runs.
    let other = net.node("b");
    let (say, said) = mpsc::channel();
    let closing = other
        .service::<N, N>("/plan")
        .serve_stream(move |_, responder| {
            say.send(()).unwrap();
            while !responder.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1)); // sleep: polling interval
            }
            Ok(())
        })
        .unwrap();
    let (running, waits) =
        (client.start(&n(3), options()).unwrap(), client.start(&n(4), options()).unwrap());
    let got = std::thread::spawn(move || (running.wait().unwrap_err(), waits.wait().unwrap_err()));
    said.recv_timeout(LONG).unwrap();
    drop(closing);
    let (running, waits) = got.join().unwrap();
    assert!(matches!(running, Error::ServerLost { .. }), "{running}");
    assert!(matches!(waits, Error::ServerLost { .. }), "{waits}");
}

#[test]
fn calls_of_a_stopped_server_time_out() {
    let net = Net::new("stopped");
    let node = net.node("a");
    let client = node.client::<N, N>("/plan").open().unwrap();
    let mut child = Child::spawn(&net, "server");
    child.expect("ready");
    eventually("the server is found", || client.server_count() == 1);
    child.stop();
    let error = client.call_timeout(&n(1), Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.code(), "timeout");
    let waiting = client.start(&n(2), options()).unwrap();
    child.resume();
    // Both calls were sent to it, and the first was cancelled: its handler may have started before the cancel
    // arrived.
    child.expect("called");
    child.kill();
    assert_eq!(waiting.wait().unwrap_err().code(), "server_lost");
}

#[test]
fn the_death_of_a_caller_cancels_its_calls() {
    let net = Net::new("caller");
    let node = net.node("a");
    let (say, said) = mpsc::channel();
    let service = node
        .service::<N, N>("/plan")
        .serve_stream(move |_, responder| {
            say.send(()).unwrap();
            while !responder.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1)); // sleep: polling interval
            }
            Ok(())
        })
        .unwrap();
    let mut child = Child::spawn(&net, "client");
    said.recv_timeout(LONG).unwrap();
    child.kill();
    eventually("the call has ended", || service.stats().cancelled == 1);
}

#[test]
fn incompatible_service_types_are_reported() {
    let net = Net::new("types");
    let (a, b) = (net.node("a"), net.node("b"));
    let service = double(&a);
    let error = b.call_timeout::<F, N>("/double", &F { x: 1.0 }, LONG).unwrap_err();
    assert_eq!(error.code(), "incompatible_type");
    assert_eq!(error.topic(), Some("/double"));
    let text = error.to_string();
    assert!(
        ["/double", "client has", "server has", "client /b", "server /a"]
            .iter()
            .all(|w| text.contains(w)),
        "{text}"
    );
    let error = b.call_timeout::<N, F>("/double", &n(1), LONG).unwrap_err();
    assert_eq!(error.code(), "incompatible_type");
    assert_eq!(*b.call_timeout::<N, N>("/double", &n(1), LONG).unwrap(), 2);
    drop(service);
}

#[test]
fn error_of_an_incompatible_server_names_its_service() {
    let net = Net::new("unfit");
    let (a, b) = (net.node("a"), net.node("b"));
    // Simulates another release whose request subscriber requires a QoS that no client offers.
    let server = a
        .subscriber::<N>("/_rnet/call/double/s0000002a/request")
        .reliable()
        .transient_local()
        .open()
        .unwrap();
    let error = b.call_timeout::<N, N>("/double", &n(1), LONG).unwrap_err();
    assert_eq!((error.code(), error.topic()), ("incompatible_qos", Some("/double")));
    let text = error.to_string();
    assert!(text.contains("/double") && !text.contains("_rnet"), "{text}");
    drop(server);
}

#[test]
fn a_node_calls_itself_and_a_callback_calls() {
    let net = Net::new("itself");
    let node = net.node("a");
    let service = double(&node);
    assert_eq!(*node.call_timeout::<N, N>("/double", &n(1), LONG).unwrap(), 2);
    // On the bulk dispatch thread, from a client that has not found a server yet.
    let (say, said) = mpsc::channel();
    let mut numbers = node.publisher::<N>("/numbers").open().unwrap();
    let caller = node.clone();
    let subscription = node.subscriber::<N>("/numbers").open().unwrap().on(move |number| {
        say.send(*caller.call_timeout::<N, N>("/double", &number, LONG).unwrap()).unwrap();
    });
    numbers.wait_for_subscribers_timeout(1, LONG).unwrap();
    numbers.send(&n(21)).unwrap();
    assert_eq!(said.recv_timeout(LONG).unwrap(), 42);
    drop((subscription, service));
}

#[test]
fn hostile_messages_on_the_topics_are_counted() {
    let net = Net::new("hostile");
    let (a, b, evil) = (net.node("a"), net.node("b"), net.node("evil"));
    let (gate, service) = gated(&a, 8);
    let client = b.client::<N, N>("/echo").open().unwrap();
    let call = client.start(&n(5), options()).unwrap();
    eventually("the call runs", || gate.begun() == 1);
    let domain = net.inspect();
    let topic = |end: &str| {
        domain
            .topics()
            .into_iter()
            .find(|name| name.ends_with(end))
            .expect("the server is found")
            .to_owned()
    };
    let mut replies =
        evil.publisher::<N>(&topic("/reply")).reliable(OnFull::Refuse).open().unwrap();
    replies.wait_for_subscribers_timeout(1, LONG).unwrap();
    let word = |number: u64| {
        let client = topic("/reply");
        let id = client.rsplit('/').nth(1).unwrap()[1..].to_owned();
        u64::from_str_radix(&id, 16).unwrap() << 32 | number
    };
    for number in 0..10 {
        replies.send_with(&n(99), Meta::default().with_correlation(word(number))).unwrap();
    }
    replies.send(&n(98)).unwrap();
    let status = <CallStatus as rnet::Message>::message_type().unwrap();
    let mut statuses = evil
        .publisher::<[u8]>(&topic("/status"))
        .reliable(OnFull::Refuse)
        .message_type(status)
        .open()
        .unwrap();
    statuses.wait_for_subscribers_timeout(1, LONG).unwrap();
    for bytes in [&b"\xff\xff\xff"[..], b"", b"\x08\x01\x10\x05"] {
        statuses.send_with(bytes, Meta::default().with_correlation(word(1))).unwrap();
    }
    // Requests without a number, and cancels of another client's calls.
    let mut requests =
        evil.publisher::<N>(&topic("/request")).reliable(OnFull::Refuse).open().unwrap();
    requests.wait_for_subscribers_timeout(1, LONG).unwrap();
    requests.send(&n(1)).unwrap();
    let control = <rnet::msgs::CallControl as rnet::Message>::message_type().unwrap();
    let mut cancels = evil
        .publisher::<[u8]>(&topic("/control"))
        .reliable(OnFull::Refuse)
        .message_type(control)
        .open()
        .unwrap();
    cancels.wait_for_subscribers_timeout(1, LONG).unwrap();
    cancels.send_with(b"\x08\x01", Meta::default().with_correlation(word(1))).unwrap();
    cancels.send(b"\xff\xff").unwrap();
    eventually("the server counts them", || service.stats().malformed >= 2);
    gate.open();
    assert_eq!(*call.wait().unwrap(), 5);
    eventually("the client has read all", || {
        client.call_timeout(&n(6), LONG).unwrap();
        client.stats().late >= 13
    });
    assert_eq!(service.stats().cancelled, 0);
}
