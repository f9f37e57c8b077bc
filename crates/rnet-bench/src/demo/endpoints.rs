//! A node's endpoints: the messages that it sent, received and missed.

use std::collections::BTreeMap;
use std::time::Duration;

use rnet::{Error, Message, MessageType, Node, OnFull, Publisher, Subscriber, WaitSet, Waitable};
use serde::{Deserialize, Serialize};

use super::robot::{IMAGE, NodeSpec, STOP, Signal, is_reliable, subscriber_count};
use crate::measure::figure::Latencies;
use crate::measure::message::SequenceCounter;
use crate::measure::worker_link::MATCH_TIMEOUT;
use rnet_format::Outcome;

/// A picture of 640 x 480 pixels, with one byte each for red, green and blue; its number replaces the first
/// bytes.
pub const WIDTH: usize = 640;
pub const HEIGHT: usize = 480;
const IMAGE_LEN_BYTES: usize = WIDTH * HEIGHT * 3;
/// How long a stalled reader may block a sender.
const STALL: Duration = Duration::from_millis(50);

/// The messages sent on a topic.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sent {
    pub topic: String,
    pub publisher: u64,
    pub count: u64,
}

/// The messages received on a topic.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReceivedTopic {
    pub topic: String,
    /// The number of the first message.
    pub first: Option<u64>,
    /// By publisher, from the numbers in the messages.
    pub tallies: BTreeMap<u64, SequenceCounter>,
    /// Counted by rnet.
    pub counted_lost: u64,
    pub latencies: Latencies,
}

struct Input {
    subscriber: Subscriber<[u8]>,
    heard: ReceivedTopic,
    /// The newest signal, and whether it is new.
    newest: (Signal, bool),
}

impl Input {
    fn new(node: &Node, spec: &NodeSpec, topic: &str) -> Outcome<Input> {
        // No message is skipped on purpose, so a message that is not received is lost.
        let mut builder = node.subscriber::<[u8]>(topic).keep_all().message_type(type_of(topic)?);
        if is_reliable(topic) && spec.name == "logger" || topic == STOP {
            builder = builder.reliable();
        }
        if topic == STOP {
            builder = builder.transient_local();
        }
        let subscriber = builder.open()?;
        let heard = ReceivedTopic { topic: topic.to_owned(), ..ReceivedTopic::default() };
        Ok(Input { subscriber, heard, newest: Default::default() })
    }

    /// Takes all available messages.
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
                // The killed controller; and messages that this node was too slow for, which are counted as
                // lost.
                Err(Error::PeerLost { .. } | Error::Detached { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn report(self) -> ReceivedTopic {
        ReceivedTopic { counted_lost: self.subscriber.lost().total(), ..self.heard }
    }
}

/// The type of a topic's messages: a picture is raw bytes.
fn type_of(topic: &str) -> rnet::Result<MessageType> {
    if topic == IMAGE { Ok(MessageType::Raw) } else { <Signal as Message>::message_type() }
}

pub struct NodeEndpoints {
    set: WaitSet,
    publishers: Vec<(Publisher<[u8]>, Sent)>,
    inputs: Vec<Input>,
    _node: Node,
}

impl NodeEndpoints {
    /// Opens all endpoints of the node, and waits until they are matched.
    pub fn open(node: Node, spec: &NodeSpec) -> Outcome<NodeEndpoints> {
        let mut publishers = Vec::new();
        for topic in spec.publishes {
            let mut builder = node.publisher::<[u8]>(topic).message_type(type_of(topic)?);
            if is_reliable(topic) {
                builder = builder.reliable(OnFull::Detach { stall: STALL });
            }
            if *topic == STOP {
                builder = builder.urgent().transient_local(1);
            }
            let sent = Sent { topic: (*topic).to_owned(), publisher: 0, count: 0 };
            publishers.push((builder.open()?, sent));
        }
        let inputs = spec.subscribes.iter().map(|topic| Input::new(&node, spec, topic));
        let mut inputs = inputs.collect::<Outcome<Vec<_>>>()?;
        for (publisher, sent) in &mut publishers {
            publisher.wait_for_subscribers_timeout(subscriber_count(&sent.topic), MATCH_TIMEOUT)?;
            sent.publisher = publisher.id();
        }
        for input in &mut inputs {
            input.subscriber.wait_for_publishers_timeout(1, MATCH_TIMEOUT)?;
        }
        Ok(NodeEndpoints { set: WaitSet::new(&node), publishers, inputs, _node: node })
    }

    /// Waits until a message arrives or the time is over, and takes all available messages.
    pub fn listen(&mut self, time: Duration) -> Outcome {
        let inputs = self.inputs.iter_mut().map(|input| &mut input.subscriber as &mut dyn Waitable);
        self.set.wait_timeout(&mut inputs.collect::<Vec<_>>(), time)?;
        self.inputs.iter_mut().try_for_each(Input::drain)
    }

    /// The newest signal of a subscribed topic, and whether it arrived since the last call.
    pub fn newest(&mut self, topic: &str) -> (Signal, bool) {
        let input = self.inputs.iter_mut().find(|input| input.heard.topic == topic);
        input.map_or_else(Default::default, |input| {
            let (signal, is_new) = &mut input.newest;
            (*signal, std::mem::take(is_new))
        })
    }

    /// The newest signal, if it is new.
    pub fn take_new(&mut self, topic: &str) -> Option<Signal> {
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

    /// Sends a picture, drawn in the memory that its readers read.
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

    pub fn report(self) -> (Vec<Sent>, Vec<ReceivedTopic>) {
        let sent = self.publishers.into_iter().map(|(_, sent)| sent);
        (sent.collect(), self.inputs.into_iter().map(Input::report).collect())
    }
}
