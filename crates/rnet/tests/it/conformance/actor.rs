//! An actor: one side of a topic that executes the steps of a test. The same code runs in a thread and in a
//! child process.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rnet::{
    Backlog, Error, LossCounts, MatchEvent, Meta, Node, OwnedSample, Publisher, PublisherQos,
    Result, SampleStream, Subscriber, SubscriberQos, Subscription,
};
use serde::{Deserialize, Serialize};

use super::content::{content, digest};
pub use super::forms::Form;
use super::forms::{self, Received};
use super::keys::{KeyStep, Keys, SeenChange, SeenEntry, Val};
use super::parts::{Part, Parts};
use super::talk::{Talk, Talks};
use super::typed::{Typed, TypedStep};
use crate::common::{LONG, Net};

/// A step that an actor executes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Step {
    Publish {
        topic: String,
        qos: PublisherQos,
    },
    Subscribe {
        topic: String,
        qos: SubscriberQos,
    },
    Watch,
    Events {
        at_least: usize,
    },
    WaitSubscribers {
        n: usize,
        timeout_ms: u64,
    },
    WaitPublishers {
        n: usize,
        timeout_ms: u64,
    },
    Count,
    /// Sends messages `from..from + count` of the stream `tag`.
    Send {
        tag: u64,
        from: u64,
        count: u64,
        len: usize,
    },
    LoanAndDrop {
        len: usize,
    },
    LoanAndTruncate {
        tag: u64,
        index: u64,
        len: usize,
        to: usize,
    },
    /// Loans, fills and sends until refused. Reports whether the content came back, then drops it.
    LoanUntilRefused {
        tag: u64,
        from: u64,
        len: usize,
    },
    Receive {
        count: usize,
        timeout_ms: u64,
        hold: bool,
    },
    /// Receives until this many messages are received, skipped or lost, earlier ones included.
    MessageCounts {
        accounted: u64,
        pause_us: u64,
    },
    TryReceive,
    /// Receives this many messages by one form and asserts that no more arrive.
    ReceiveBy {
        form: Form,
        count: usize,
    },
    Backlog,
    /// Turns the subscriber into a callback or a stream, whose events are recorded.
    Become {
        form: Form,
    },
    Latest {
        timeout_ms: u64,
    },
    CheckHeld,
    DropHeld {
        leave: usize,
    },
    CloseEndpoints,
    CloseNode,
    /// A step for calls, actions, commands or work queues.
    Part(Part),
    /// A step for the log, last wills or pairs of topics.
    Talk(Talk),
    /// A step for the state or for parameters.
    Key(KeyStep),
    /// A step for typed messages.
    Typed(TypedStep),
}

/// Outcome of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    Done,
    Failed {
        code: String,
        text: String,
        after: u64,
    },
    ReceivedMessage(Vec<ReceivedMessage>),
    Count(usize),
    Events(Vec<String>),
    MessageCounts(MessageCounts),
    /// Messages that a form received, and the subscriber's statistics afterwards.
    Taken {
        got: Vec<ReceivedMessage>,
        skipped: u64,
        lost: LossCounts,
        behind: Backlog,
    },
    /// As the subscriber reports it, and as inspection tools see it a moment later.
    Backlog {
        own: Backlog,
        seen: Backlog,
    },
    Digests(Vec<u64>),
    /// Outcome in words.
    Said(Vec<String>),
    /// The value of a key; `None`: it is absent.
    Value(Option<Val>),
    Entry(Option<SeenEntry>),
    Changes(Vec<SeenChange>),
    Refused {
        sent: u64,
        intact: bool,
    },
}

/// One received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedMessage {
    pub publisher: u64,
    pub seq: u64,
    pub len: usize,
    pub digest: u64,
}

/// Statistics of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageCounts {
    pub received: u64,
    pub lost: LossCounts,
    pub skipped: u64,
    /// Messages out of order or with wrong content.
    pub wrong: u64,
    pub errors: Vec<String>,
}

type Events = Arc<(Mutex<Vec<String>>, Condvar)>;

/// Fields are dropped in order: samples outlive their subscriber only if a step requires it.
pub struct Actor {
    net: Net,
    publisher: Option<Publisher<[u8]>>,
    subscriber: Option<Subscriber<[u8]>>,
    callback: Option<Subscription>,
    stream: Option<SampleStream<[u8]>>,
    held: Vec<OwnedSample<[u8]>>,
    events: Events,
    parts: Parts,
    talks: Talks,
    keys: Keys,
    typed: Typed,
    node: Option<Node>,
}

fn ms(timeout_ms: u64) -> Duration {
    Duration::from_millis(timeout_ms)
}

/// The number that the original publisher gave a message; a proxy's number may differ.
fn seq(meta: &Meta, seq: u64) -> u64 {
    meta.origin.map_or(seq, |origin| origin.seq)
}

fn got(sample: &OwnedSample<[u8]>) -> ReceivedMessage {
    ReceivedMessage {
        publisher: sample.publisher(),
        seq: seq(&sample.meta(), sample.seq()),
        len: sample.len(),
        digest: digest(sample),
    }
}

fn failed(error: &Error, after: u64) -> Outcome {
    Outcome::Failed { code: error.code().to_owned(), text: error.to_string(), after }
}

fn open(node: &Option<Node>) -> &Node {
    node.as_ref().expect("the node is open")
}

fn outcome(result: Result<Outcome>) -> Outcome {
    result.unwrap_or_else(|error| failed(&error, 0))
}

impl Actor {
    pub fn new(net: Net, node: Node) -> Actor {
        Actor {
            net,
            publisher: None,
            subscriber: None,
            callback: None,
            stream: None,
            held: Vec::new(),
            events: Events::default(),
            parts: Parts::default(),
            talks: Talks::default(),
            keys: Keys::default(),
            typed: Typed::default(),
            node: Some(node),
        }
    }

    pub fn act(&mut self, step: Step) -> Outcome {
        match step {
            Step::Send { tag, from, count, len } => self.send(tag, from, count, len),
            Step::Receive { count, timeout_ms, hold } => self.receive(count, timeout_ms, hold),
            Step::LoanUntilRefused { tag, from, len } => self.loan_until_refused(tag, from, len),
            Step::MessageCounts { accounted, pause_us } => self.tally(accounted, pause_us),
            Step::Events { at_least } => self.wait_for_events(at_least),
            Step::ReceiveBy { form, count } => self.receive_by(form, count),
            Step::Backlog => self.behind(),
            other => outcome(self.simple(other)),
        }
    }

    fn publisher(&mut self) -> &mut Publisher<[u8]> {
        self.publisher.as_mut().expect("a publisher was opened")
    }

    fn subscriber(&mut self) -> &mut Subscriber<[u8]> {
        self.subscriber.as_mut().expect("a subscriber was opened")
    }

    fn simple(&mut self, step: Step) -> Result<Outcome> {
        match step {
            Step::Publish { topic, qos } => {
                let node = open(&self.node);
                self.publisher = Some(node.publisher(&topic).qos(qos).open()?);
            }
            Step::Subscribe { topic, qos } => {
                let node = open(&self.node);
                self.subscriber = Some(node.subscriber(&topic).qos(qos).open()?);
            }
            Step::Watch => self.watch(),
            Step::WaitSubscribers { n, timeout_ms } => {
                self.publisher().wait_for_subscribers_timeout(n, ms(timeout_ms))?;
            }
            Step::Become { form } => {
                let subscriber = self.subscriber.take().expect("a subscriber was opened");
                match form {
                    Form::Callback => self.callback = Some(subscriber.on(|_| {})),
                    _ => self.stream = Some(subscriber.into_stream()),
                }
                self.watch();
            }
            Step::WaitPublishers { n, timeout_ms } if self.callback.is_some() => {
                let callback = self.callback.as_ref().expect("the publisher is matched");
                callback.wait_for_publishers_timeout(n, ms(timeout_ms))?;
            }
            Step::WaitPublishers { n, timeout_ms } => {
                self.subscriber().wait_for_publishers_timeout(n, ms(timeout_ms))?;
            }
            Step::Count => {
                let subscribers = self.publisher.as_ref().map_or(0, Publisher::subscriber_count);
                let publishers = self.subscriber.as_mut().map_or(0, Subscriber::publisher_count);
                let called = self.callback.as_ref().map_or(0, Subscription::publisher_count);
                let streamed = self.stream.as_ref();
                let streamed = streamed.and_then(|s| s.with_source(Subscriber::publisher_count));
                return Ok(Outcome::Count(
                    subscribers + publishers + called + streamed.unwrap_or(0),
                ));
            }
            Step::LoanAndDrop { len } => {
                let mut loan = self.publisher().loan(len)?;
                loan.fill(0xee);
            }
            Step::LoanAndTruncate { tag, index, len, to } => {
                let mut loan = self.publisher().loan(len)?;
                loan[..to].copy_from_slice(&content(tag, index, to));
                loan.truncate(to);
                loan.send().map_err(|(_, error)| error)?;
            }
            Step::TryReceive => {
                let sample = self.subscriber().try_recv()?;
                return Ok(Outcome::ReceivedMessage(
                    sample.map(|s| got(&s.into_owned())).into_iter().collect(),
                ));
            }
            Step::Latest { timeout_ms } => {
                let sample = self.subscriber().latest_timeout(ms(timeout_ms))?;
                return Ok(Outcome::ReceivedMessage(vec![got(&sample)]));
            }
            Step::CheckHeld => {
                return Ok(Outcome::Digests(self.held.iter().map(|s| digest(s)).collect()));
            }
            Step::DropHeld { leave } => self.held.truncate(leave),
            Step::CloseEndpoints => (self.publisher, self.subscriber) = (None, None),
            Step::CloseNode => self.node = None,
            Step::Part(part) => return Ok(Outcome::Said(self.parts.act(open(&self.node), part)?)),
            Step::Talk(talk) => return Ok(Outcome::Said(self.talks.act(open(&self.node), talk)?)),
            Step::Key(step) => return self.keys.act(open(&self.node), step),
            Step::Typed(step) => return Ok(Outcome::Said(self.typed.act(open(&self.node), step)?)),
            _ => unreachable!("handled by `act`"),
        }
        Ok(Outcome::Done)
    }

    fn send(&mut self, tag: u64, from: u64, count: u64, len: usize) -> Outcome {
        for done in 0..count {
            if let Err(error) = self.publisher().send(&content(tag, from + done, len)) {
                return failed(&error, done);
            }
        }
        Outcome::Done
    }

    fn loan_until_refused(&mut self, tag: u64, from: u64, len: usize) -> Outcome {
        let mut sent = 0;
        loop {
            let bytes = content(tag, from + sent, len);
            let mut loan = match self.publisher().loan(len) {
                Ok(loan) => loan,
                // No loan succeeded, so no content has to come back.
                Err(Error::Full { .. }) => return Outcome::Refused { sent, intact: true },
                Err(error) => return failed(&error, sent),
            };
            loan.copy_from_slice(&bytes);
            match loan.send() {
                Ok(()) => sent += 1,
                Err((loan, Error::Full { .. })) => {
                    return Outcome::Refused { sent, intact: *loan == *bytes };
                }
                Err((_, error)) => return failed(&error, sent),
            }
        }
    }

    fn receive(&mut self, count: usize, timeout_ms: u64, hold: bool) -> Outcome {
        let mut all = Vec::new();
        while all.len() < count {
            match self.subscriber().recv_timeout(ms(timeout_ms)) {
                Ok(sample) => {
                    let sample = sample.into_owned();
                    all.push(got(&sample));
                    if hold {
                        self.held.push(sample);
                    }
                }
                Err(error) => return failed(&error, all.len() as u64),
            }
        }
        Outcome::ReceivedMessage(all)
    }

    /// Each message must match the content that its number and its stream's tag (its first word) define.
    fn tally(&mut self, accounted: u64, pause_us: u64) -> Outcome {
        let mut tally = MessageCounts::default();
        let mut next: std::collections::HashMap<u64, u64> = Default::default();
        loop {
            match self.subscriber().recv_timeout(Duration::from_millis(200)) {
                Ok(sample) => {
                    let tag = u64::from_le_bytes(sample[..8].try_into().expect("8 bytes"));
                    let next = next.entry(sample.publisher()).or_default();
                    let seq = seq(&sample.meta(), sample.seq());
                    let right = seq >= *next && *sample == *content(tag, seq, sample.len());
                    *next = seq + 1;
                    tally.wrong += u64::from(!right);
                }
                Err(Error::Timeout { .. }) => {}
                Err(error) => {
                    tally.errors.push(error.code().to_owned());
                    continue;
                }
            }
            let stats = self.subscriber().stats();
            tally.received = stats.iter().map(|s| s.received).sum();
            tally.skipped = stats.iter().map(|s| s.skipped).sum();
            tally.lost = self.subscriber().lost();
            if tally.received + tally.skipped + tally.lost.total() >= accounted {
                return Outcome::MessageCounts(tally);
            }
            std::thread::sleep(Duration::from_micros(pause_us)); // sleep: simulates a slow reader
        }
    }

    fn receive_by(&mut self, form: Form, count: usize) -> Outcome {
        let node = open(&self.node);
        let subscriber = self.subscriber.take().expect("a subscriber was opened");
        let Received { samples, stats } = forms::receive(node, subscriber, form, count);
        let (mut lost, mut behind) = (LossCounts::default(), Backlog::default());
        stats.iter().for_each(|s| {
            lost.add(&s.lost);
            behind.add(&s.behind);
        });
        let skipped = stats.iter().map(|s| s.skipped).sum();
        Outcome::Taken { got: samples.iter().map(got).collect(), skipped, lost, behind }
    }

    fn behind(&mut self) -> Outcome {
        let own = self.subscriber().behind();
        let of_stats: u64 = self.subscriber().stats().iter().map(|s| s.behind.messages).sum();
        assert_eq!(own.messages, of_stats);
        let topic = self.subscriber().topic().to_owned();
        let mut seen = Backlog::default();
        let ours = self.net.inspect().subscriptions.into_iter().filter(|s| s.topic == topic);
        ours.flat_map(|s| s.channels).for_each(|c| seen.add(&c.behind));
        Outcome::Backlog { own, seen }
    }

    fn watch(&mut self) {
        let events = self.events.clone();
        let note = move |event: &MatchEvent| {
            let word = match event {
                MatchEvent::Matched(peer) => format!("matched {}", peer.node),
                MatchEvent::Unmatched(peer) => format!("unmatched {}", peer.node),
                MatchEvent::Lost(peer) => format!("lost {}", peer.node),
                other => format!("{other:?}"),
            };
            events.0.lock().expect("unpoisoned").push(word);
            events.1.notify_all();
        };
        if let Some(publisher) = &self.publisher {
            publisher.on_match(note.clone()).detach();
        }
        if let Some(subscriber) = &self.subscriber {
            subscriber.on_match(note.clone()).detach();
        }
        if let Some(callback) = &self.callback {
            callback.on_match(note.clone()).detach();
        }
        if let Some(stream) = &self.stream {
            let watch = |subscriber: &mut Subscriber<[u8]>| subscriber.on_match(note).detach();
            let _ = stream.with_source(watch);
        }
    }

    fn wait_for_events(&mut self, at_least: usize) -> Outcome {
        let events = self.events.0.lock().expect("unpoisoned");
        let enough = |events: &mut Vec<String>| events.len() < at_least;
        let (events, _) =
            self.events.1.wait_timeout_while(events, LONG, enough).expect("unpoisoned");
        Outcome::Events(events.clone())
    }
}
