//! Who dies, and who notices.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rnet::{
    Error, MatchEvent, Node, NodeEvent, OnFull, Publisher, PublisherOptions, Subscriber,
    SubscriberOptions, limits::MIN_LOG_LEN_BYTES,
};
use rnet_bench::worker::Order;
use serde::{Deserialize, Serialize};

use super::{MEET, WAIT_LIMIT};
use crate::bench::job::{Event, GO, WorkerNode};
use crate::bench::link::Link;
use crate::failure::{Failure, Outcome};

/// What the victim publishes, and the watchers hear.
const HEARD: &str = "/death/heard";
/// What the watchers publish, and the victim never reads.
const HELD: &str = "/death/held";
const MESSAGE: [u8; 1024] = [0; 1024];

#[derive(Debug, Serialize, Deserialize)]
pub struct VictimJob {
    pub watchers: u16,
}

/// Meets all watchers and waits for its end.
pub fn die(node: &WorkerNode, role: &VictimJob, link: &Link) -> Outcome {
    let node = node.open()?;
    let publisher = node.publisher::<[u8]>(HEARD)?;
    let mut holder = node.subscriber_with::<[u8]>(HELD, SubscriberOptions::new().reliable())?;
    publisher.wait_for_subscribers(usize::from(role.watchers), Some(MEET))?;
    holder.wait_for_publishers(usize::from(role.watchers), Some(MEET))?;
    link.say(&Event::Ready)?;
    link.until(Order::stop());
    Ok(())
}

#[derive(Debug, Serialize, Deserialize)]
pub struct WatcherJob {
    pub kills: u32,
}

/// When a watcher noticed one death, by each of the ways in which it can, on the clock of
/// [`rnet::now_ns`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Noticed {
    /// A receive ended with `PeerLost`.
    pub peer_lost_ns: u64,
    /// A publisher's `on_match` was called with `Lost`.
    pub match_event_ns: u64,
    /// `on_node` was called with `Died`.
    pub node_event_ns: u64,
    /// A reliable send went on that the dead reader had held back.
    pub freed_ns: u64,
}

struct Watcher {
    subscriber: Subscriber<[u8]>,
    publisher: Publisher<[u8]>,
    nodes: Receiver<u64>,
    matches: Receiver<u64>,
}

pub fn watch(node: &WorkerNode, role: &WatcherJob, link: &Link) -> Outcome {
    let node = node.open()?;
    let mut watcher = Watcher::new(&node)?;
    link.say(&Event::Ready)?;
    for _ in 0..role.kills {
        link.until(Order::phase(GO));
        watcher.be_held_back()?;
        link.done(&())?;
        link.done(&watcher.notice()?)?;
    }
    link.until(Order::stop());
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
        let publisher = node.publisher_with::<[u8]>(HELD, options)?;
        let (tell, matches) = channel();
        publisher.on_match(move |event| {
            if matches!(event, MatchEvent::Lost(_)) {
                let _ = tell.send(rnet::now_ns());
            }
        });
        let subscriber = node.subscriber::<[u8]>(HEARD)?;
        Ok(Watcher { subscriber, publisher, nodes, matches })
    }

    /// Meets the victim, and sends until it holds up the next message.
    fn be_held_back(&mut self) -> Outcome {
        self.subscriber.wait_for_publishers(1, Some(MEET))?;
        self.publisher.wait_for_subscribers(1, Some(MEET))?;
        while self.publisher.try_send(&MESSAGE)? {}
        Ok(())
    }

    fn notice(&mut self) -> Outcome<Noticed> {
        let Watcher { subscriber, publisher, nodes, matches } = self;
        let (peer_lost_ns, freed_ns) = thread::scope(|scope| {
            let held = scope.spawn(|| publisher.send(&MESSAGE).map(|()| rnet::now_ns()));
            let lost = match subscriber.recv(Some(WAIT_LIMIT)).map(drop) {
                Err(Error::PeerLost { .. }) => Ok(rnet::now_ns()),
                Err(error) => Err(error.into()),
                Ok(()) => Err(Failure::Failed("the victim sends nothing".to_owned())),
            };
            let freed = held.join().map_err(|_| Failure::Failed("a watcher panicked".to_owned()));
            Ok::<_, Failure>((lost?, freed??))
        })?;
        let silent =
            |_| Failure::TimedOut("a callback was not told of the victim's death".to_owned());
        Ok(Noticed {
            peer_lost_ns,
            freed_ns,
            node_event_ns: nodes.recv_timeout(WAIT_LIMIT).map_err(silent)?,
            match_event_ns: matches.recv_timeout(WAIT_LIMIT).map_err(silent)?,
        })
    }
}
