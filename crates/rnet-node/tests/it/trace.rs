//! A topic is traced exactly while its trace has a subscriber, in each form of receiving.

use crate::common;

use std::sync::mpsc;
use std::time::Duration;

use common::{Child, LONG, Net, eventually, orders, role, tell};
use rnet::trace::{MAX_TRACED_PER_S, TraceRecord, trace_topic};
use rnet::{Node, Publisher, Subscriber, TopicName};

fn tracer(node: &Node, topic: &str) -> Subscriber<[u8]> {
    let topic = trace_topic(&TopicName::new(topic).unwrap()).unwrap();
    node.subscriber(topic.as_str())
        .keep_all()
        .message_type(TraceRecord::plain_type())
        .open()
        .unwrap()
}

fn next(tracer: &mut Subscriber<[u8]>) -> TraceRecord {
    let record = TraceRecord::from_bytes(&tracer.recv_timeout(LONG).unwrap()).unwrap();
    assert!(record.is_consistent(), "{record:?}");
    record
}

fn publisher(node: &Node, topic: &str, subscribers: usize) -> Publisher<[u8]> {
    let publisher = node.publisher(topic).open().unwrap();
    publisher.wait_for_subscribers_timeout(subscribers, LONG).unwrap();
    publisher
}

/// Whether the topic has a trace publisher.
fn is_traced(net: &Net, topic: &str) -> bool {
    let trace = trace_topic(&TopicName::new(topic).unwrap()).unwrap();
    net.inspect().publishers.iter().any(|p| p.topic == trace.as_str())
}

#[test]
fn a_callback_is_traced_from_the_send_to_its_end() {
    let net = Net::new("trace callback");
    let (a, b, c) = (net.node("a"), net.node("b"), net.node("c"));
    let (tell, receiver) = mpsc::channel();
    let pause = Duration::from_millis(5);
    let subscription = b.subscriber::<[u8]>("/imu").open().unwrap().on(move |message| {
        std::thread::sleep(pause); // sleep: the trace must show the callback's duration
        tell.send(message.len()).unwrap();
    });
    let mut imu = publisher(&a, "/imu", 1);
    imu.send(b"before").unwrap();
    assert_eq!(receiver.recv().unwrap(), 6);
    assert!(!is_traced(&net, "/imu"), "no tracer exists");
    let mut trace = tracer(&c, "/imu");
    trace.wait_for_publishers_timeout(1, LONG).unwrap();
    for n in 1..=3_u64 {
        let before_ns = rnet::now_ns();
        imu.send(&[0; 20]).unwrap();
        receiver.recv().unwrap();
        let record = next(&mut trace);
        assert_eq!((record.publisher, record.seq), (imu.id(), n));
        assert_eq!((record.len_bytes, record.received), (20, n + 1));
        assert!(record.sent_ns >= before_ns && record.written_ns <= rnet::now_ns());
        assert!(record.ended_ns - record.began_ns >= 5_000_000, "{record:?}");
        assert_eq!(record.message(), (imu.id(), n));
    }
    drop(trace);
    eventually("tracing ends with the tracer", || !is_traced(&net, "/imu"));
    imu.send(b"after").unwrap();
    assert_eq!(receiver.recv().unwrap(), 5);
    drop(subscription);
}

#[test]
fn a_receive_lasts_until_the_next() {
    let net = Net::new("trace recv");
    let (a, b, c) = (net.node("a"), net.node("b"), net.node("c"));
    let mut reader = b.subscriber::<[u8]>("/scan").open().unwrap();
    let mut scan = publisher(&a, "/scan", 1);
    let mut trace = tracer(&c, "/scan");
    trace.wait_for_publishers_timeout(1, LONG).unwrap();
    scan.send(b"0").unwrap();
    let _ = reader.recv_timeout(LONG).unwrap();
    let worked_ns = rnet::now_ns();
    scan.send(b"1").unwrap();
    let _ = reader.recv_timeout(LONG).unwrap();
    let record = next(&mut trace);
    assert_eq!(record.seq, 0);
    assert!(record.began_ns <= worked_ns && record.ended_ns >= worked_ns, "{record:?}");
    // `latest` ends it as well, and so does a receive that finds nothing.
    assert!(reader.latest_timeout(Duration::ZERO).is_err());
    assert_eq!(next(&mut trace).seq, 1);
    scan.send(b"2").unwrap();
    reader.latest_timeout(LONG).unwrap();
    assert!(reader.try_recv().unwrap().is_none());
    assert_eq!(next(&mut trace).seq, 2);
}

/// Subscribers that join while the topic is traced are traced as well, also in the tracer's own process.
#[test]
fn later_subscribers_are_traced() {
    let net = Net::new("trace later");
    let (a, c) = (net.node("a"), net.node("c"));
    let mut trace = tracer(&c, "/imu");
    let (tell, receiver) = mpsc::channel();
    let b = net.node("b");
    let _of_b = b.subscriber::<[u8]>("/imu").open().unwrap().on({
        let tell = tell.clone();
        move |_| tell.send(()).unwrap()
    });
    let _of_c = c.subscriber::<[u8]>("/imu").open().unwrap().on(move |_| tell.send(()).unwrap());
    trace.wait_for_publishers_timeout(2, LONG).unwrap();
    let mut imu = publisher(&a, "/imu", 2);
    imu.send(b"x").unwrap();
    let both = [next(&mut trace), next(&mut trace)];
    assert_ne!(both[0].subscription, both[1].subscription);
    receiver.recv().unwrap();
    // A trace cannot be traced.
    let deeper = "/_rnet/trace/_rnet/trace/imu";
    let mut of_trace = c.subscriber::<[u8]>(deeper).open().unwrap();
    imu.send(b"y").unwrap();
    next(&mut trace);
    next(&mut trace);
    assert_eq!(of_trace.publisher_count(), 0);
}

#[test]
fn two_tracers_share_a_trace_and_the_last_one_ends_it() {
    let net = Net::new("trace two");
    let (a, b, c, d) = (net.node("a"), net.node("b"), net.node("c"), net.node("d"));
    let _heard = b.subscriber::<[u8]>("/imu").open().unwrap().on(|_| ());
    let mut imu = publisher(&a, "/imu", 1);
    let (mut one, mut other) = (tracer(&c, "/imu"), tracer(&d, "/imu"));
    one.wait_for_publishers_timeout(1, LONG).unwrap();
    other.wait_for_publishers_timeout(1, LONG).unwrap();
    imu.send(b"x").unwrap();
    assert_eq!(next(&mut one), next(&mut other));
    drop(one);
    imu.send(b"y").unwrap();
    assert_eq!(next(&mut other).seq, 1);
    drop((other, d));
    eventually("tracing ends", || !is_traced(&net, "/imu"));
}

/// More messages than are traced per second: untraced ones leave gaps in the numbers, and no message is lost.
#[test]
fn a_flood_is_traced_in_part() {
    const MESSAGES: u64 = 200_000;
    let net = Net::new("trace flood");
    let (a, c) = (net.node("a"), net.node("c"));
    let mut flood =
        a.publisher::<[u8]>("/flood").reliable(rnet::OnFull::Wait(LONG)).open().unwrap();
    let mut subscriber = a.subscriber::<[u8]>("/flood").reliable().open().unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    flood.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut trace = tracer(&c, "/flood");
    trace.wait_for_publishers_timeout(1, LONG).unwrap();
    let began_ns = rnet::now_ns();
    let sender = std::thread::spawn(move || {
        (0..MESSAGES).for_each(|n| flood.send(&n.to_le_bytes()).unwrap());
        flood
    });
    for n in 0..MESSAGES {
        assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), n.to_le_bytes());
    }
    let took_s = (rnet::now_ns() - began_ns) as f64 / 1e9;
    drop(sender.join().unwrap());
    assert!(subscriber.try_recv().is_ok_and(|none| none.is_none()));
    let mut records = Vec::new();
    while let Some(message) = trace.try_recv().unwrap() {
        records.push(TraceRecord::from_bytes(&message).unwrap());
    }
    // A burst at first, of at most the saved-up budget.
    let most = (MAX_TRACED_PER_S as f64 * took_s) as usize + 65;
    assert!((1..=most).contains(&records.len()), "{} in {took_s} s", records.len());
    assert!(records.is_sorted_by_key(|record| record.received));
    assert!(records.iter().all(|record| record.received == record.seq + 1));
}

/// Sixty-four topics at once; each has its own records.
#[test]
fn many_topics_are_traced_at_once() {
    const TOPICS: usize = 64;
    let net = Net::new("trace many");
    let (a, b, c) = (net.node("a"), net.node("b"), net.node("c"));
    let name = |n: usize| format!("/t{n}");
    let received: Vec<_> =
        (0..TOPICS).map(|n| b.subscriber::<[u8]>(&name(n)).open().unwrap().on(|_| ())).collect();
    let mut traces: Vec<_> = (0..TOPICS).map(|n| tracer(&c, &name(n))).collect();
    traces.iter_mut().for_each(|trace| trace.wait_for_publishers_timeout(1, LONG).unwrap());
    let mut publishers: Vec<_> = (0..TOPICS).map(|n| publisher(&a, &name(n), 1)).collect();
    publishers.iter_mut().for_each(|publisher| publisher.send(b"x").unwrap());
    for (trace, publisher) in traces.iter_mut().zip(&publishers) {
        assert_eq!(next(trace).publisher, publisher.id());
    }
    drop(traces);
    eventually("all tracing ends", || {
        !net.inspect().publishers.iter().any(|p| p.topic.starts_with("/_rnet/trace/"))
    });
    drop(received);
}

#[test]
fn tracing_ends_when_the_tracer_is_killed() {
    let net = Net::new("trace killed");
    let (a, b) = (net.node("a"), net.node("b"));
    let (tell, receiver) = mpsc::channel();
    let _heard = b.subscriber::<[u8]>("/imu").open().unwrap().on(move |_| tell.send(()).unwrap());
    let mut imu = publisher(&a, "/imu", 1);
    let mut child = Child::spawn(&net, "tracer");
    child.expect("traces");
    imu.send(b"x").unwrap();
    child.expect("0");
    child.kill();
    eventually("tracing ends with its process", || !is_traced(&net, "/imu"));
    receiver.recv().unwrap();
    imu.send(b"y").unwrap();
    receiver.recv().unwrap();
}

/// A stopped tracer blocks no publisher, uses no memory beyond its log, and learns how much it missed.
#[test]
fn stopped_tracer_loses_no_message_of_the_topic() {
    const MESSAGES: u64 = 20_000;
    let net = Net::new("trace stopped");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut imu = a.publisher::<[u8]>("/imu").reliable(rnet::OnFull::Wait(LONG)).open().unwrap();
    let (tell, receiver) = mpsc::channel();
    let subscriber = b.subscriber::<[u8]>("/imu").reliable().open().unwrap();
    let subscriber = subscriber.on(move |message| tell.send(message.to_vec()).unwrap());
    imu.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut child = Child::spawn(&net, "tracer");
    child.expect("traces");
    imu.send(&0_u64.to_le_bytes()).unwrap();
    child.expect("0");
    child.stop();
    // At about 2 kHz each message is traced, until the trace's log has wrapped.
    let traced = |net: &Net| {
        let seen = net.inspect();
        let trace = seen.publishers.into_iter().find(|p| p.topic == "/_rnet/trace/imu")?;
        Some((trace.sent, trace.memory_bytes))
    };
    let (mut sent, mut memory_bytes) = (1_u64, 0);
    eventually("more was traced than the tracer's log holds", || {
        for _ in 0..100 {
            imu.send(&sent.to_le_bytes()).unwrap();
            sent += 1;
        }
        let (records, memory) = traced(&net).unwrap();
        memory_bytes = memory_bytes.max(memory);
        records * TraceRecord::LEN_BYTES as u64 > 2 * memory && sent >= MESSAGES
    });
    // It uses the memory of a log of short messages, however long this continues.
    assert!(memory_bytes < 4 << 20, "{memory_bytes}");
    for number in 0..sent {
        assert_eq!(receiver.recv().unwrap(), number.to_le_bytes());
    }
    let counted = net.inspect();
    let imu_of_b = counted.subscriptions.iter().find(|s| s.topic == "/imu" && s.node == "/b");
    assert_eq!(imu_of_b.unwrap().channels[0].lost.total(), 0);
    child.resume();
    child.say("count");
    let lost: u64 = child.hear().parse().unwrap();
    assert!(lost > 0, "it learns how much it missed");
    // A tracer killed while stopped is removed like a running one.
    child.stop();
    child.kill();
    eventually("tracing ends with its process", || !is_traced(&net, "/imu"));
    imu.send(b"after").unwrap();
    assert_eq!(receiver.recv().unwrap(), b"after");
    drop(subscriber);
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    assert_eq!(role, "tracer");
    let orders = orders();
    let net = Net::of_parent();
    let node = net.node("tracer");
    let mut trace = tracer(&node, "/imu");
    trace.wait_for_publishers_timeout(1, LONG).unwrap();
    tell("traces");
    tell(&next(&mut trace).seq.to_string());
    for order in orders {
        assert_eq!(order, "count");
        while trace.try_recv().unwrap().is_some() {}
        tell(&trace.lost().total().to_string());
    }
}
