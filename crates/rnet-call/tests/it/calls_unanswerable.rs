//! Requests whose client has no reply endpoints, or not yet: no handler runs for them, and no caller is
//! delayed.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{LONG, Net, eventually};
use rnet::msgs::call_control::Action;
use rnet::msgs::call_status::{Reason, State};
use rnet::msgs::{CallControl, CallStatus};
use rnet::{CallOptions, Error, Message, Meta, Node, OnFull, Publisher};

/// Bits of a call number: the caller wants the outcome, and reads feedback.
const GOAL: u32 = 3 << 30;

/// A publisher to an endpoint of the only server.
fn to_server<T: Message + ?Sized>(net: &Net, node: &Node, end: &str, of: &str) -> Publisher<T> {
    let (begin, end) = (format!("/_rnet/call{of}/s"), format!("/{end}"));
    let domain = net.inspect();
    let named = |name: &&str| name.starts_with(&begin) && name.ends_with(&end);
    let topic = domain.topics().into_iter().find(named).expect("the topic exists").to_owned();
    let publisher = node.publisher::<T>(&topic).reliable(OnFull::Refuse).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher
}

fn word(client: u32, number: u32) -> Meta {
    Meta::default().with_correlation(u64::from(client) << 32 | u64::from(number))
}

/// Sends requests of successive fake clients until it is dropped.
struct Flood {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Flood {
    /// Returns once the server holds the first 64 requests.
    fn begin(mut requests: Publisher<[u8]>) -> Flood {
        let (over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ended, count) = (over.clone(), sent.clone());
        let flood = move || {
            for client in 0u32.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                for number in [1, GOAL | 2] {
                    match requests.send_with(b"false", word(client, number)) {
                        Ok(()) => _ = count.fetch_add(1, Ordering::Relaxed),
                        Err(Error::Full { .. }) => std::thread::yield_now(),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            count.load(Ordering::Relaxed)
        };
        let flood = Flood { over, thread: Some(std::thread::spawn(flood)) };
        eventually("64 are pending", || sent.load(Ordering::Relaxed) >= 64);
        flood
    }

    fn end(mut self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

#[test]
fn unanswerable_flood_delays_no_real_caller_and_is_counted() {
    let net = Net::new("flood");
    let (a, b, evil) = (net.node("a"), net.node("b"), net.node("evil"));
    let ran = Arc::new(AtomicU64::new(0));
    let count = ran.clone();
    let service = a.service::<[u8], [u8]>("/echo").serve(move |text| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(text.to_vec())
    });
    let service = service.unwrap();
    let known = b.client::<[u8], [u8]>("/echo").open().unwrap();
    known.call_timeout(b"0", LONG).unwrap();
    let flood = Flood::begin(to_server(&net, &evil, "request", "/echo"));
    for _ in 0..100 {
        known.call_timeout(b"1", LONG).unwrap();
    }
    // Each real client has its own endpoints, which the server must find meanwhile.
    for _ in 0..20 {
        assert_eq!(&*b.call_timeout::<[u8], [u8]>("/echo", b"2", LONG).unwrap(), b"2");
    }
    let sent = flood.end();
    eventually("each fake request is counted", || service.stats().unanswerable == sent);
    let stats = service.stats();
    assert_eq!((stats.calls, stats.unsent, stats.waiting), (121, 0, 0), "{stats:?}");
    assert_eq!(ran.load(Ordering::Relaxed), 121, "no handler ran for a fake request");
}

#[test]
fn unanswerable_flood_blocks_no_action_or_worker() {
    let net = Net::new("flood_of_goals");
    let (a, b, evil) = (net.node("a"), net.node("b"), net.node("evil"));
    let action = a.action::<[u8], [u8], [u8]>("/move").policy(rnet::GoalPolicy::Replace);
    let action = action.serve(|goal, context| {
        context.feedback(goal)?;
        Ok(goal.to_vec())
    });
    let action = action.unwrap();
    let worker = a.pull::<[u8]>("/jobs").on(|_, _| Ok(())).unwrap();
    let goals = Flood::begin(to_server(&net, &evil, "request", "/move"));
    let jobs = Flood::begin(to_server(&net, &evil, "request", "/jobs"));
    let client = b.action_client::<[u8], [u8], [u8]>("/move").open().unwrap();
    let pusher = b.push::<[u8]>("/jobs").open().unwrap();
    for _ in 0..20 {
        let goal = client.send(b"there", CallOptions::new().timeout(LONG)).unwrap();
        // No fake goal took its place.
        assert_eq!(&*goal.result_timeout(LONG).unwrap(), b"there");
        pusher.push(b"job").unwrap();
    }
    pusher.wait_until_done_timeout(LONG).unwrap();
    let (goals, jobs) = (goals.end(), jobs.end());
    eventually("each fake request is counted", || {
        (action.stats().unanswerable, worker.stats().unanswerable) == (goals, jobs)
    });
    assert_eq!((action.stats().calls, worker.stats().calls), (20, 20));
}

/// As between hosts, where the endpoints and the requests of a client arrive on separate paths.
#[test]
fn client_with_late_reply_endpoints_is_answered() {
    let net = Net::new("later");
    let (a, b) = (net.node("a"), net.node("b"));
    let action = a.action::<[u8], [u8], [u8]>("/move").policy(rnet::GoalPolicy::Queue(8));
    let ran = Arc::new(AtomicU64::new(0));
    let count = ran.clone();
    let action = action.serve(move |goal, context| {
        count.fetch_add(1, Ordering::Relaxed);
        context.feedback(b"in transit")?;
        Ok(goal.to_vec())
    });
    let _action = action.unwrap();
    let mut requests = to_server::<[u8]>(&net, &b, "request", "/move");
    let mut control = to_server::<CallControl>(&net, &b, "control", "/move");
    requests.send_with(b"there", word(42, GOAL | 1)).unwrap();
    requests.send_with(b"back", word(42, GOAL | 2)).unwrap();
    let mut stop = CallControl::default();
    stop.set_action(Action::Stop);
    control.send_with(&stop, word(42, GOAL | 2)).unwrap();
    let own = "/_rnet/call/move/c0000002a";
    let mut status =
        b.subscriber::<CallStatus>(&format!("{own}/status")).reliable().open().unwrap();
    let mut reply = b.subscriber::<[u8]>(&format!("{own}/reply")).reliable().open().unwrap();
    eventually("both endpoints are matched", || {
        let none = status.try_recv().unwrap().is_none() && reply.try_recv().unwrap().is_none();
        assert!(none, "its feedback subscriber is not matched");
        !status.publishers().is_empty() && !reply.publishers().is_empty()
    });
    let mut feedback = b.subscriber::<[u8]>(&format!("{own}/feedback")).reliable().open().unwrap();
    assert_eq!(&*reply.recv_timeout(LONG).unwrap(), b"there");
    assert_eq!(&*feedback.recv_timeout(LONG).unwrap(), b"in transit");
    let mut ends = [(); 2].map(|()| {
        let end = status.recv_timeout(LONG).unwrap();
        (end.correlation().unwrap() as u32 & 3, end.state(), end.reason())
    });
    ends.sort_by_key(|end| end.0);
    assert_eq!(ends[0], (1, State::Done, Reason::Unspecified));
    assert_eq!(ends[1], (2, State::Cancelled, Reason::Caller), "before its handler began");
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[test]
fn requests_of_a_departed_caller_are_counted_when_it_leaves() {
    let net = Net::new("gone");
    let (a, b) = (net.node("a"), net.node("b"));
    let service = a.service::<[u8], [u8]>("/echo").serve(|text| Ok(text.to_vec())).unwrap();
    let mut requests = to_server::<[u8]>(&net, &b, "request", "/echo");
    for number in 0..3 {
        requests.send_with(b"false", word(7, number)).unwrap();
    }
    // The server received the request and looks for the client's endpoints.
    let of_it = "/_rnet/call/echo/c00000007/";
    let is_sought = || net.inspect().topics().iter().any(|name| name.starts_with(of_it));
    eventually("the server looks for the client", is_sought);
    drop(requests);
    eventually("each request is counted", || service.stats().unanswerable == 3);
    let stats = service.stats();
    assert_eq!((stats.calls, stats.unsent, stats.cancelled), (0, 0, 0), "{stats:?}");
    eventually("the search has ended", || !is_sought());
}

#[test]
fn endpoint_search_ends_when_the_caller_cancels() {
    let net = Net::new("cancelled");
    let (a, b) = (net.node("a"), net.node("b"));
    let service = a.service::<[u8], [u8]>("/echo").serve(|text| Ok(text.to_vec())).unwrap();
    let client = b.client::<[u8], [u8]>("/echo").open().unwrap();
    client.call_timeout(b"0", LONG).unwrap();
    let mut requests = to_server::<[u8]>(&net, &b, "request", "/echo");
    for number in 0..3 {
        requests.send_with(b"false", word(7, number)).unwrap();
    }
    client.call_timeout(b"1", LONG).unwrap();
    let mut control = to_server::<CallControl>(&net, &b, "control", "/echo");
    let mut cancel = CallControl::default();
    cancel.set_action(Action::Cancel);
    for number in 0..3 {
        control.send_with(&cancel, word(7, number)).unwrap();
    }
    let of_it = "/_rnet/call/echo/c00000007/";
    eventually("the search has ended", || {
        !net.inspect().topics().iter().any(|name| name.starts_with(of_it))
    });
    let stats = service.stats();
    assert_eq!((stats.calls, stats.cancelled, stats.unanswerable), (2, 3, 0));
}
