//! Processes that are killed, and processes that detect the death.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::worker::Order;
use rnet::{
    Error, MatchEvent, Node, NodeEvent, OnFull, Publisher, Subscriber, limits::MIN_LOG_LEN_BYTES,
};

use crate::measure::worker_link::{Event, Link, MATCH_TIMEOUT, SEND_PHASE, WAIT_LIMIT, WorkerNode};
use rnet_format::{Failure, Outcome};

/// The topic that the victim publishes and the watchers receive.
const VICTIM_TOPIC: &str = "/death/heard";
/// The topic that the watchers publish and the victim never reads.
const FULL_TOPIC: &str = "/death/held";
const MESSAGE: [u8; 1024] = [0; 1024];

/// The ways in which a watcher detects a death.
pub const DETECTION_METHODS: [&str; 4] =
    ["receive: PeerLost", "on_match: Lost", "on_node: Died", "blocked send continues"];
/// Time of detection by each method, by [`rnet::now_ns`].
pub type DetectionTimes = [u64; DETECTION_METHODS.len()];

/// Meets all watchers and waits to be killed.
pub fn die(node: &WorkerNode, watchers: usize, link: &Link) -> Outcome {
    let node = node.open()?;
    let publisher = node.publisher::<[u8]>(VICTIM_TOPIC).open()?;
    let mut holder = node.subscriber::<[u8]>(FULL_TOPIC).reliable().open()?;
    publisher.wait_for_subscribers_timeout(watchers, MATCH_TIMEOUT)?;
    holder.wait_for_publishers_timeout(watchers, MATCH_TIMEOUT)?;
    link.send_event(&Event::Ready)?;
    link.wait_for(Order::stop());
    Ok(())
}

struct Watcher {
    subscriber: Subscriber<[u8]>,
    publisher: Publisher<[u8]>,
    nodes: Receiver<u64>,
    matches: Receiver<u64>,
}

pub fn watch(node: &WorkerNode, kills: u32, link: &Link) -> Outcome {
    let node = node.open()?;
    let mut watcher = Watcher::new(&node)?;
    link.send_event(&Event::Ready)?;
    for _ in 0..kills {
        link.wait_for(Order::phase(SEND_PHASE));
        watcher.fill_until_blocked()?;
        link.send_report(&())?;
        link.send_report(&watcher.wait_for_detection()?)?;
    }
    link.wait_for(Order::stop());
    Ok(())
}

impl Watcher {
    fn new(node: &Node) -> Outcome<Watcher> {
        let (tell, nodes) = channel();
        node.on_node(move |event| {
            if matches!(event, NodeEvent::Died(_)) {
                // The receiver is dropped if the watcher has failed.
                let _ = tell.send(rnet::now_ns());
            }
        })
        .detach();
        let publisher = node
            .publisher::<[u8]>(FULL_TOPIC)
            .reliable(OnFull::Wait(WAIT_LIMIT))
            .log_len_bytes(MIN_LOG_LEN_BYTES)
            .open()?;
        let (tell, matches) = channel();
        publisher
            .on_match(move |event| {
                if matches!(event, MatchEvent::Lost(_)) {
                    let _ = tell.send(rnet::now_ns());
                }
            })
            .detach();
        let subscriber = node.subscriber::<[u8]>(VICTIM_TOPIC).open()?;
        Ok(Watcher { subscriber, publisher, nodes, matches })
    }

    /// Meets the victim, and sends until the next message would block.
    fn fill_until_blocked(&mut self) -> Outcome {
        self.subscriber.wait_for_publishers_timeout(1, MATCH_TIMEOUT)?;
        self.publisher.wait_for_subscribers_timeout(1, MATCH_TIMEOUT)?;
        while self.publisher.try_send(&MESSAGE)? {}
        Ok(())
    }

    fn wait_for_detection(&mut self) -> Outcome<DetectionTimes> {
        let Watcher { subscriber, publisher, nodes, matches } = self;
        let (lost_ns, sent_ns) = thread::scope(|scope| {
            let held = scope.spawn(|| publisher.send(&MESSAGE).map(|()| rnet::now_ns()));
            let lost = match subscriber.recv_timeout(WAIT_LIMIT).map(drop) {
                Err(Error::PeerLost { .. }) => Ok(rnet::now_ns()),
                Err(error) => Err(error.into()),
                Ok(()) => Err(Failure::Failed("the victim does not send messages".to_owned())),
            };
            let sent = held.join().map_err(|_| Failure::Failed("a watcher panicked".to_owned()));
            Ok::<_, Failure>((lost?, sent??))
        })?;
        let silent = |_| Failure::TimedOut("a callback was not called after a death".to_owned());
        let called = |at: &Receiver<u64>| at.recv_timeout(WAIT_LIMIT).map_err(silent);
        Ok([lost_ns, called(matches)?, called(nodes)?, sent_ns])
    }
}
