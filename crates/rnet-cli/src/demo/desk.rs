//! A node's endpoints: what it sent, what it heard, and what it missed.

use std::collections::BTreeMap;
use std::time::Duration;

use rnet::{
    Error, Message, Node, OnFull, Publisher, PublisherOptions, Sample, Subscriber,
    SubscriberOptions, WaitSet, Waitable,
};
use serde::{Deserialize, Serialize};

use super::robot::{IMAGE, STOP, Seat, Signal, hearers, is_reliable};
use crate::bench::figure::Latencies;
use crate::bench::message::Tally;
use crate::bench::roles::MEET;
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

struct Ear<T: Message + ?Sized> {
    subscriber: Subscriber<T>,
    heard: Heard,
}

impl<T: Message + ?Sized> Ear<T> {
    fn new(node: &Node, seat: &Seat, topic: &str) -> Outcome<Ear<T>> {
        // Nothing is left out by choice: so what is not received is lost.
        let mut options = SubscriberOptions::new().keep_all();
        if is_reliable(topic) && seat.name == "logger" || topic == STOP {
            options = options.reliable();
        }
        if topic == STOP {
            options = options.transient_local();
        }
        let subscriber = node.subscriber_with::<T>(topic, options)?;
        Ok(Ear { subscriber, heard: Heard { topic: topic.to_owned(), ..Heard::default() } })
    }

    /// Takes all that is there.
    fn drain(&mut self, mut number: impl FnMut(&Sample<'_, T>) -> u64) -> Outcome {
        loop {
            match self.subscriber.try_recv() {
                Ok(Some(sample)) => {
                    self.heard.latencies.record(sample.latency().as_nanos() as u64);
                    let number = number(&sample);
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

pub struct Desk {
    set: WaitSet,
    signals: Vec<(Publisher<Signal>, Sent)>,
    image: Option<(Publisher<[u8]>, Sent)>,
    ears: Vec<Ear<Signal>>,
    /// In the order of the ears: the newest, and whether it is new.
    newest: Vec<(Signal, bool)>,
    images: Option<Ear<[u8]>>,
    _node: Node,
}

impl Desk {
    /// Opens all that the node sends and hears, and waits until it has met its peers.
    pub fn open(node: Node, seat: &Seat) -> Outcome<Desk> {
        let mut desk = Desk {
            set: WaitSet::new(&node),
            signals: Vec::new(),
            image: None,
            ears: Vec::new(),
            newest: Vec::new(),
            images: None,
            _node: node.clone(),
        };
        for topic in seat.sends {
            let mut options = PublisherOptions::new();
            if is_reliable(topic) {
                options = options.reliable(OnFull::Detach { stall: STALL });
            }
            if *topic == STOP {
                options = options.urgent().transient_local(1);
            }
            let sent = |publisher| Sent { topic: (*topic).to_owned(), publisher, count: 0 };
            if *topic == IMAGE {
                let publisher = node.publisher_with::<[u8]>(topic, options)?;
                desk.image = Some((publisher, sent(0)));
            } else {
                let publisher = node.publisher_with::<Signal>(topic, options)?;
                desk.signals.push((publisher, sent(0)));
            }
        }
        for topic in seat.hears {
            if *topic == IMAGE {
                desk.images = Some(Ear::new(&node, seat, topic)?);
            } else {
                desk.ears.push(Ear::new(&node, seat, topic)?);
                desk.newest.push((Signal::default(), false));
            }
        }
        for (publisher, sent) in &mut desk.signals {
            publisher.wait_for_subscribers(hearers(&sent.topic), Some(MEET))?;
            sent.publisher = publisher.id();
        }
        if let Some((publisher, sent)) = &mut desk.image {
            publisher.wait_for_subscribers(hearers(IMAGE), Some(MEET))?;
            sent.publisher = publisher.id();
        }
        for ear in &mut desk.ears {
            ear.subscriber.wait_for_publishers(1, Some(MEET))?;
        }
        if let Some(ear) = &mut desk.images {
            ear.subscriber.wait_for_publishers(1, Some(MEET))?;
        }
        Ok(desk)
    }

    /// Waits until something is heard or the time is over, and takes all that is there.
    pub fn listen(&mut self, time: Duration) -> Outcome {
        let images = self.images.iter_mut().map(|ear| &mut ear.subscriber as &mut dyn Waitable);
        let ears = self.ears.iter_mut().map(|ear| &mut ear.subscriber as &mut dyn Waitable);
        self.set.wait(&mut ears.chain(images).collect::<Vec<_>>(), Some(time))?;
        for (ear, newest) in self.ears.iter_mut().zip(&mut self.newest) {
            ear.drain(|signal| {
                *newest = (**signal, true);
                signal.number
            })?;
        }
        if let Some(ear) = &mut self.images {
            ear.drain(|image| image.first_chunk().map_or(u64::MAX, |n| u64::from_le_bytes(*n)))?;
        }
        Ok(())
    }

    /// The newest of a topic that this node hears, and whether it has come since the last call.
    pub fn newest(&mut self, topic: &str) -> (Signal, bool) {
        let at = self.ears.iter().position(|ear| ear.heard.topic == topic);
        at.map_or_else(Default::default, |at| {
            let (signal, is_new) = &mut self.newest[at];
            (*signal, std::mem::take(is_new))
        })
    }

    /// Its values, if it is new.
    pub fn news(&mut self, topic: &str) -> Option<Signal> {
        let (signal, is_new) = self.newest(topic);
        is_new.then_some(signal)
    }

    pub fn send(&mut self, topic: &str, read_ns: u64, values: [f64; 4]) -> Outcome {
        for (publisher, sent) in self.signals.iter_mut().filter(|(_, sent)| sent.topic == topic) {
            publisher.send(&Signal { number: sent.count, read_ns, values })?;
            sent.count += 1;
        }
        Ok(())
    }

    /// Sends a picture, drawn where its readers will read it.
    pub fn send_image(&mut self, draw: impl FnOnce(&mut [u8])) -> Outcome {
        let Some((publisher, sent)) = &mut self.image else { return Ok(()) };
        let mut image = publisher.loan(IMAGE_LEN_BYTES)?;
        draw(&mut image);
        image[..8].copy_from_slice(&sent.count.to_le_bytes());
        image.send().map_err(|(_, error)| error)?;
        sent.count += 1;
        Ok(())
    }

    pub fn report(self) -> (Vec<Sent>, Vec<Heard>) {
        let sent = self.signals.into_iter().map(|(_, sent)| sent);
        let image = self.image.into_iter().map(|(_, sent)| sent);
        let heard = self.ears.into_iter().map(Ear::report);
        let images = self.images.into_iter().map(Ear::report);
        (sent.chain(image).collect(), heard.chain(images).collect())
    }
}
