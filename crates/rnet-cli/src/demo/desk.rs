//! A node's endpoints: what it sent, what it heard, and what it missed.

use std::collections::BTreeMap;
use std::time::Duration;

use rnet::{
    Error, Message, MessageType, Node, OnFull, Publisher, PublisherOptions, Subscriber,
    SubscriberOptions, WaitSet, Waitable,
};
use serde::{Deserialize, Serialize};

use super::robot::{IMAGE, STOP, Seat, Signal, hearers, is_reliable};
use crate::bench::figure::Latencies;
use crate::bench::message::Tally;
use crate::bench::worker_link::MEET;
use crate::failure::Outcome;

/// A picture of 640 x 480 pixels, a byte for each of red, green and blue; its number takes the place of the first.
pub const WIDTH: usize = 640;
pub const HEIGHT: usize = 480;
const IMAGE_LEN_BYTES: usize = WIDTH * HEIGHT * 3;
/// For so long a reader that stands still may hold up a sender.
const STALL: Duration = Duration::from_millis(50);

/// What was sent on a topic.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sent {
    pub topic: String,
    pub publisher: u64,
    pub count: u64,
}

/// What was heard of a topic.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Heard {
    pub topic: String,
    /// The number of the first message.
    pub first: Option<u64>,
    /// By publisher, and by the numbers in the messages.
    pub tallies: BTreeMap<u64, Tally>,
    /// By rnet.
    pub counted_lost: u64,
    pub latencies: Latencies,
}

struct Ear {
    subscriber: Subscriber<[u8]>,
    heard: Heard,
    /// The newest signal, and whether it is new.
    newest: (Signal, bool),
}

impl Ear {
    fn new(node: &Node, seat: &Seat, topic: &str) -> Outcome<Ear> {
        // Nothing is left out by choice: so what is not received is lost.
        let mut options = SubscriberOptions::new().keep_all().message_type(type_of(topic)?);
        if is_reliable(topic) && seat.name == "logger" || topic == STOP {
            options = options.reliable();
        }
        if topic == STOP {
            options = options.transient_local();
        }
        let subscriber = node.subscriber_with::<[u8]>(topic, options)?;
        let heard = Heard { topic: topic.to_owned(), ..Heard::default() };
        Ok(Ear { subscriber, heard, newest: Default::default() })
    }

    /// Takes all that is there.
    fn drain(&mut self) -> Outcome {
        loop {
            match self.subscriber.try_recv() {
                Ok(Some(sample)) => {
                    self.heard.latencies.record(sample.latency().as_nanos() as u64);
                    self.newest = (Signal::of(&sample), true);
                    let number = self.newest.0.number;
                    self.heard.first.get_or_insert(number);
                    self.heard.tallies.entry(sample.publisher()).or_default().count(number);
                }
                Ok(None) => return Ok(()),
                // The controller, that was killed; and what this node was too slow for, which is counted as lost.
                Err(Error::PeerLost { .. } | Error::Detached { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn report(self) -> Heard {
        Heard { counted_lost: self.subscriber.lost().total(), ..self.heard }
    }
}

/// The type of a topic's messages: a picture is bytes.
fn type_of(topic: &str) -> rnet::Result<MessageType> {
    if topic == IMAGE { Ok(MessageType::Raw) } else { <Signal as Message>::message_type() }
}

pub struct Desk {
    set: WaitSet,
    publishers: Vec<(Publisher<[u8]>, Sent)>,
    ears: Vec<Ear>,
    _node: Node,
}

impl Desk {
    /// Opens all that the node sends and hears, and waits until it has met its peers.
    pub fn open(node: Node, seat: &Seat) -> Outcome<Desk> {
        let mut publishers = Vec::new();
        for topic in seat.sends {
            let mut options = PublisherOptions::new().message_type(type_of(topic)?);
            if is_reliable(topic) {
                options = options.reliable(OnFull::Detach { stall: STALL });
            }
            if *topic == STOP {
                options = options.urgent().transient_local(1);
            }
            let sent = Sent { topic: (*topic).to_owned(), publisher: 0, count: 0 };
            publishers.push((node.publisher_with::<[u8]>(topic, options)?, sent));
        }
        let ears = seat.hears.iter().map(|topic| Ear::new(&node, seat, topic));
        let mut ears = ears.collect::<Outcome<Vec<_>>>()?;
        for (publisher, sent) in &mut publishers {
            publisher.wait_for_subscribers(hearers(&sent.topic), Some(MEET))?;
            sent.publisher = publisher.id();
        }
        for ear in &mut ears {
            ear.subscriber.wait_for_publishers(1, Some(MEET))?;
        }
        Ok(Desk { set: WaitSet::new(&node), publishers, ears, _node: node })
    }

    /// Waits until something is heard or the time is over, and takes all that is there.
    pub fn listen(&mut self, time: Duration) -> Outcome {
        let ears = self.ears.iter_mut().map(|ear| &mut ear.subscriber as &mut dyn Waitable);
        self.set.wait(&mut ears.collect::<Vec<_>>(), Some(time))?;
        self.ears.iter_mut().try_for_each(Ear::drain)
    }

    /// The newest of a topic that this node hears, and whether it has come since the last call.
    pub fn newest(&mut self, topic: &str) -> (Signal, bool) {
        let ear = self.ears.iter_mut().find(|ear| ear.heard.topic == topic);
        ear.map_or_else(Default::default, |ear| {
            let (signal, is_new) = &mut ear.newest;
            (*signal, std::mem::take(is_new))
        })
    }

    /// Its values, if it is new.
    pub fn news(&mut self, topic: &str) -> Option<Signal> {
        let (signal, is_new) = self.newest(topic);
        is_new.then_some(signal)
    }

    pub fn send(&mut self, topic: &str, read_ns: u64, values: [f64; 4]) -> Outcome {
        for (publisher, sent) in self.publishers.iter_mut().filter(|(_, sent)| sent.topic == topic)
        {
            publisher.send(&Signal { number: sent.count, read_ns, values }.bytes())?;
            sent.count += 1;
        }
        Ok(())
    }

    /// Sends a picture, drawn where its readers will read it.
    pub fn send_image(&mut self, draw: impl FnOnce(&mut [u8])) -> Outcome {
        let image = self.publishers.iter_mut().find(|(_, sent)| sent.topic == IMAGE);
        let Some((publisher, sent)) = image else { return Ok(()) };
        let mut image = publisher.loan(IMAGE_LEN_BYTES)?;
        draw(&mut image);
        image[..8].copy_from_slice(&sent.count.to_le_bytes());
        image.send().map_err(|(_, error)| error)?;
        sent.count += 1;
        Ok(())
    }

    pub fn report(self) -> (Vec<Sent>, Vec<Heard>) {
        let sent = self.publishers.into_iter().map(|(_, sent)| sent);
        (sent.collect(), self.ears.into_iter().map(Ear::report).collect())
    }
}
