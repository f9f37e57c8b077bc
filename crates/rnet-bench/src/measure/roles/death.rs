//! Processes that are killed, and processes that notice it.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::worker::Order;
use rnet::{
    Error, MatchEvent, Node, NodeEvent, OnFull, Publisher, PublisherOptions, Subscriber,
    SubscriberOptions, limits::MIN_LOG_LEN_BYTES,
};

use crate::measure::worker_link::{Event, Link, MATCH_TIMEOUT, SEND_PHASE, WAIT_LIMIT, WorkerNode};
use rnet_format::{CommandError, Outcome};

/// What the victim publishes, and the watchers receive.
const VICTIM_TOPIC: &str = "/death/heard";
/// What the watchers publish, and the victim never reads.
const FULL_TOPIC: &str = "/death/held";
const MESSAGE: [u8; 1024] = [0; 1024];

/// The ways in which a watcher notices a death.
pub const DETECTION_METHODS: [&str; 4] =
    ["receive: PeerLost", "on_match: Lost", "on_node: Died", "held send goes on"];
/// When it noticed one in each of them, by [`rnet::now_ns`].
pub type DetectionTimes = [u64; DETECTION_METHODS.len()];

/// Meets all watchers and waits for its end.
pub fn die(node: &WorkerNode, watchers: usize, link: &Link) -> Outcome {
    let node = node.open()?;
    let publisher = node.publisher::<[u8]>(VICTIM_TOPIC)?;
    let mut holder =
        node.subscriber_with::<[u8]>(FULL_TOPIC, SubscriberOptions::new().reliable())?;
    publisher.wait_for_subscribers(watchers, Some(MATCH_TIMEOUT))?;
    holder.wait_for_publishers(watchers, Some(MATCH_TIMEOUT))?;
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
                // Nobody listens any more when the watcher has failed.
                let _ = tell.send(rnet::now_ns());
            }
        });
        let options = PublisherOptions::new()
            .reliable(OnFull::Wait(WAIT_LIMIT))
            .log_len_bytes(MIN_LOG_LEN_BYTES);
        let publisher = node.publisher_with::<[u8]>(FULL_TOPIC, options)?;
        let (tell, matches) = channel();
        publisher.on_match(move |event| {
            if matches!(event, MatchEvent::Lost(_)) {
                let _ = tell.send(rnet::now_ns());
            }
        });
        let subscriber = node.subscriber::<[u8]>(VICTIM_TOPIC)?;
        Ok(Watcher { subscriber, publisher, nodes, matches })
    }

    /// Meets the victim, and sends until it blocks the next message.
    fn fill_until_blocked(&mut self) -> Outcome {
        self.subscriber.wait_for_publishers(1, Some(MATCH_TIMEOUT))?;
        self.publisher.wait_for_subscribers(1, Some(MATCH_TIMEOUT))?;
        while self.publisher.try_send(&MESSAGE)? {}
        Ok(())
    }

    fn wait_for_detection(&mut self) -> Outcome<DetectionTimes> {
        let Watcher { subscriber, publisher, nodes, matches } = self;
        let (lost_ns, sent_ns) = thread::scope(|scope| {
            let held = scope.spawn(|| publisher.send(&MESSAGE).map(|()| rnet::now_ns()));
            let lost = match subscriber.recv(Some(WAIT_LIMIT)).map(drop) {
                Err(Error::PeerLost { .. }) => Ok(rnet::now_ns()),
                Err(error) => Err(error.into()),
                Ok(()) => Err(CommandError::Failed("the victim does not send messages".to_owned())),
            };
            let sent =
                held.join().map_err(|_| CommandError::Failed("a watcher panicked".to_owned()));
            Ok::<_, CommandError>((lost?, sent??))
        })?;
        let silent =
            |_| CommandError::TimedOut("a callback was not called after a death".to_owned());
        let called = |at: &Receiver<u64>| at.recv_timeout(WAIT_LIMIT).map_err(silent);
        Ok([lost_ns, called(matches)?, called(nodes)?, sent_ns])
    }
}
