//! Actions: malformed messages on their topics, and lost messages.

use crate::common;

use std::sync::{Mutex, mpsc};

use common::{LONG, Net, eventually};
use rnet::msgs::{CallControl, CallStatus};
use rnet::{
    ActionClient, ActionContext, CallOptions, Error, Goal, Message, Meta, Node, OnFull, Publisher,
};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
struct N {
    x: u64,
}

fn n(x: u64) -> N {
    N { x }
}

type Actions = ActionClient<N, N, N>;

fn client(node: &Node) -> Actions {
    node.action_client("/navigate").open().unwrap()
}

/// A reliable publisher of bytes as messages of this type, which has a subscriber.
fn forged<T: Message>(node: &Node, topic: &str) -> Publisher<[u8]> {
    let publisher = node.publisher::<[u8]>(topic).reliable(OnFull::Refuse);
    let publisher = publisher.message_type(T::message_type().unwrap()).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher
}

fn send(client: &Actions, x: u64) -> Goal<N, N> {
    client.send(&n(x), CallOptions::new()).unwrap()
}

#[test]
fn hostile_messages_on_the_topics_are_counted() {
    let net = Net::new("hostile");
    let (a, b, evil) = (net.node("a"), net.node("b"), net.node("evil"));
    let (say, said) = mpsc::channel();
    let (results, give) = mpsc::channel();
    let give = Mutex::new(give);
    let handler = move |goal: &N, context: &mut ActionContext<'_, N>| {
        context.feedback(goal)?;
        say.send(())?;
        Ok(n(give.lock().unwrap().recv()?))
    };
    let service = a.action::<N, N, N>("/navigate").serve(handler).unwrap();
    let client = client(&b);
    let goal = send(&client, 5);
    said.recv_timeout(LONG).unwrap();
    assert_eq!(*goal.feedback().unwrap().unwrap(), n(5));
    let domain = net.inspect();
    let topic = |at: &str, end: &str| {
        let named = |name: &&str| name.contains(at) && name.ends_with(end);
        domain.topics().into_iter().find(named).expect("the server is found").to_owned()
    };
    let name = topic("/navigate/c", "/feedback");
    let id = name.rsplit('/').nth(1).unwrap()[1..].to_owned();
    let word = |number: u64| u64::from_str_radix(&id, 16).unwrap() << 32 | number;
    // Feedback with a foreign node, an unknown goal, or without a number.
    let mut feedback = forged::<N>(&evil, &name);
    for number in [0, 1, 2, 3 << 30 | 1, 3 << 30 | 2, u64::from(u32::MAX)] {
        let meta = Meta::default().with_correlation(word(number));
        feedback.send_with(&[9; 8], meta).unwrap();
    }
    feedback.send(&[9; 8]).unwrap();
    let mut status = forged::<CallStatus>(&evil, &topic("/navigate/c", "/status"));
    let done =
        [&b"\x08\x04\x4a\x01x"[..], b"\x08\x01\x38\xff\xff\xff\xff\x0f", b"\xff", b"", b"\x30\x63"];
    for bytes in done {
        let meta = Meta::default().with_correlation(word(3 << 30 | 1));
        status.send_with(bytes, meta).unwrap();
    }
    let mut control = forged::<CallControl>(&evil, &topic("/navigate/s", "/control"));
    for bytes in [&b"\x08\x01"[..], b"\x08\x02", b"\x08\x63", b"\xff\xff"] {
        let meta = Meta::default().with_correlation(word(3 << 30 | 1));
        control.send_with(bytes, meta).unwrap();
    }
    eventually("the server counts them", || service.stats().malformed >= 2);
    results.send(6).unwrap();
    assert_eq!(*goal.result_timeout(LONG).unwrap(), n(6));
    assert!(goal.feedback().unwrap().is_none());
    eventually("the client has read all", || {
        results.send(7).unwrap();
        assert_eq!(*send(&client, 7).result_timeout(LONG).unwrap(), n(7));
        client.stats().late >= 12
    });
    // An invalid goal: raw bytes whose length does not match the type.
    let mut request = forged::<N>(&evil, &topic("/navigate/s", "/request"));
    let refused = request.send_with(&[1; 3], Meta::default().with_correlation(word(3 << 30 | 9)));
    assert!(refused.is_err());
    assert_eq!(service.stats().cancelled, 0);
}

/// A hand-written server that loses the messages that the test selects.
#[test]
fn lost_replies_end_goals_and_lost_feedback_does_not() {
    let net = Net::new("gaps");
    let (a, b) = (net.node("a"), net.node("b"));
    let client = client(&b);
    let own = "/_rnet/call/navigate/s0000002a";
    let mut requests = a.subscriber::<N>(&format!("{own}/request")).reliable().open().unwrap();
    let mut control =
        a.subscriber::<CallControl>(&format!("{own}/control")).reliable().open().unwrap();
    let goals: Vec<_> = (0..2).map(|x| send(&client, x)).collect();
    let mut word = 0;
    for x in 0..2 {
        let request = requests.recv_timeout(LONG).unwrap();
        assert_eq!(*request, n(x));
        word = request.correlation().unwrap();
    }
    let theirs = format!("/_rnet/call/navigate/c{:08x}", word >> 32);
    let mut feedback = forged::<N>(&a, &format!("{theirs}/feedback"));
    let mut reply = forged::<N>(&a, &format!("{theirs}/reply"));
    let mut status = forged::<CallStatus>(&a, &format!("{theirs}/status"));
    let meta = || Meta::default().with_correlation(word);
    // Two of three feedback messages are lost: the goal completes without them.
    feedback.publish_gap(rnet::LossCause::Link, 2).unwrap();
    feedback.send_with(&3_u64.to_ne_bytes(), meta()).unwrap();
    reply.send_with(&4_u64.to_ne_bytes(), meta()).unwrap();
    // Done: one reply, three feedback messages.
    status.send_with(b"\x08\x01\x10\x01\x38\x03", meta()).unwrap();
    let mut received = Vec::new();
    assert_eq!(*goals[1].result_with_timeout(LONG, |x| received.push(x.x)).unwrap(), n(4));
    assert!(
        received.len() <= 1 && client.stats().feedback_lost == 2,
        "{received:?} {:?}",
        client.stats()
    );
    // A lost reply ends the other goal.
    reply.publish_gap(rnet::LossCause::Link, 1).unwrap();
    let error = goals[0].result_timeout(LONG).unwrap_err();
    assert!(matches!(&error, Error::CallLost { node, lost: 1, .. } if node == "/a"), "{error}");
    let reported = control.recv_timeout(LONG).unwrap();
    assert_eq!(reported.correlation().unwrap(), word - 1);
    // A lost status also ends the goal, and wakes a sleeping caller.
    let goal = send(&client, 5);
    requests.recv_timeout(LONG).unwrap();
    let waits = std::thread::spawn(move || goal.result_timeout(LONG).unwrap_err());
    status.publish_gap(rnet::LossCause::Link, 7).unwrap();
    let error = waits.join().unwrap();
    assert!(matches!(error, Error::CallLost { lost: 7, .. }), "{error}");
}
