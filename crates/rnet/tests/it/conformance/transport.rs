//! The transports of the behaviour tests: threads of one node, two nodes of one process, processes.

use std::sync::mpsc;

use rnet::{LossCounts, Node, PublisherQos, SubscriberQos};

use super::actor::{Actor, MessageCounts, Outcome, ReceivedMessage, Step};
use super::talk::Talk;
use crate::common::{self, Child, Net};

/// A place in which actors communicate.
pub trait Transport: Sized {
    fn new(test: &str) -> Self;
    /// `None` where the transport is unavailable, which is reported.
    fn open(test: &str) -> Option<Self> {
        Some(Self::new(test))
    }
    fn actor(&mut self, name: &str) -> Handle;
    /// The name of the actor's node in the domain.
    fn node_name(&self, name: &str) -> String {
        format!("/{name}")
    }
    /// Waits until readers can find what was sent, and senders know what was read.
    fn settle(&mut self) {}
    /// Waits until the next message is newer than all before, by the clock of the component that compares
    /// them.
    fn let_clocks_pass(&mut self) {}
    /// Bytes buffered outside the log before an idle reader stalls its publisher.
    fn room_len_bytes(&self) -> u64 {
        0
    }
    /// If true, a component between the two may stall as well, and is reported like a stalled reader.
    fn has_others_between(&self) -> bool {
        false
    }
    /// Number of messages lost because a reader was slower than its publisher.
    fn overruns(&self, lost: &LossCounts) -> u64 {
        lost.overrun
    }
}

/// Actors that are processes of one host.
pub trait OneHost: Transport {
    /// Removes the domain, after the death of all actors: of the state, only what is on disk remains.
    fn cut_power(&self);
}

fn remove_domain(net: &Net) {
    std::fs::remove_dir_all(net.inspect_path()).expect("the domain exists");
}

/// All actors share one node.
pub struct OneNode {
    node: Node,
    net: Net,
}

impl Transport for OneNode {
    fn new(test: &str) -> Self {
        let net = Net::new(test);
        OneNode { node: net.node("only"), net }
    }
    fn actor(&mut self, _name: &str) -> Handle {
        Handle::thread(self.net.same(), self.node.clone())
    }
    fn node_name(&self, _name: &str) -> String {
        "/only".to_owned()
    }
}

/// Each actor has its own node, all in this process.
pub struct TwoNodes(Net);

impl Transport for TwoNodes {
    fn new(test: &str) -> Self {
        TwoNodes(Net::new(test))
    }
    fn actor(&mut self, name: &str) -> Handle {
        Handle::thread(self.0.same(), self.0.node(name))
    }
}

/// Each actor is a process.
pub struct Processes(Net);

impl Transport for Processes {
    fn new(test: &str) -> Self {
        Processes(Net::new(test))
    }
    fn actor(&mut self, name: &str) -> Handle {
        Handle::process(Child::spawn(&self.0, name))
    }
}

impl OneHost for Processes {
    fn cut_power(&self) {
        remove_domain(&self.0);
    }
}

/// Processes in two languages, in turn: the first actor in the first language. `r` is Rust, `c` C++, `p` Python.
pub struct Languages<const FIRST: char, const SECOND: char> {
    net: Net,
    actors: usize,
}

impl<const FIRST: char, const SECOND: char> Transport for Languages<FIRST, SECOND> {
    fn new(test: &str) -> Self {
        Languages { net: Net::new(test), actors: 0 }
    }
    fn actor(&mut self, name: &str) -> Handle {
        let language = [FIRST, SECOND][self.actors % 2];
        self.actors += 1;
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        Handle::process(match language {
            'c' => Child::program(
                &self.net,
                name,
                &[&format!("{root}/target/c/test/conformance_actor")],
            ),
            'p' => {
                let actor = format!("{root}/python/tests/conformance_actor.py");
                Child::program(&self.net, name, &[&format!("{root}/.venv/bin/python"), &actor])
            }
            _ => Child::spawn(&self.net, name),
        })
    }
}

impl<const FIRST: char, const SECOND: char> OneHost for Languages<FIRST, SECOND> {
    fn cut_power(&self) {
        remove_domain(&self.net);
    }
}

/// Child side of [`Processes`].
pub fn play(name: &str) {
    let net = Net::of_parent();
    let mut actor = Actor::new(net.same(), net.node(name));
    for line in common::orders() {
        let step = serde_json::from_str(&line).expect("a step");
        common::tell(&serde_json::to_string(&actor.act(step)).expect("an outcome"));
    }
}

trait Link {
    fn post(&mut self, step: Step);
    fn answer(&mut self) -> Outcome;
    /// Kills its process; for a thread, the publisher ends as if its process had died.
    fn die(&mut self);
}

impl Link for Child {
    fn post(&mut self, step: Step) {
        self.say(&serde_json::to_string(&step).expect("a step"));
    }
    fn answer(&mut self) -> Outcome {
        serde_json::from_str(&self.hear()).expect("an outcome")
    }
    fn die(&mut self) {
        self.kill();
    }
}

struct Thread {
    steps: Option<mpsc::Sender<Step>>,
    outcomes: mpsc::Receiver<Outcome>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Link for Thread {
    fn post(&mut self, step: Step) {
        self.steps.as_ref().expect("open").send(step).expect("the actor runs");
    }
    fn answer(&mut self) -> Outcome {
        self.outcomes.recv().expect("the actor runs")
    }
    fn die(&mut self) {
        self.post(Step::Talk(Talk::Lose));
        assert_eq!(self.answer(), Outcome::Said(Vec::new()));
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.steps = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The test's handle of an actor.
pub struct Handle(Box<dyn Link>);

impl Handle {
    /// An actor in a thread, with a node of its domain.
    pub fn thread(net: Net, node: Node) -> Handle {
        let (steps, receiver) = mpsc::channel::<Step>();
        let (tell, outcomes) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut actor = Actor::new(net, node);
            for step in receiver {
                if tell.send(actor.act(step)).is_err() {
                    return;
                }
            }
        });
        Handle(Box::new(Thread { steps: Some(steps), outcomes, thread: Some(thread) }))
    }

    /// An actor in a process, which runs [`play`].
    pub fn process(child: Child) -> Handle {
        Handle(Box::new(child))
    }

    /// Starts a step; [`Handle::answer`] returns the outcome.
    pub fn post(&mut self, step: Step) {
        self.0.post(step);
    }

    pub fn answer(&mut self) -> Outcome {
        self.0.answer()
    }

    pub fn act(&mut self, step: Step) -> Outcome {
        self.post(step);
        self.answer()
    }

    /// Ends the actor.
    pub fn die(&mut self) {
        self.0.die();
    }

    #[track_caller]
    pub fn done(&mut self, step: Step) {
        assert_eq!(self.act(step), Outcome::Done);
    }

    #[track_caller]
    pub fn publish(&mut self, topic: &str, qos: PublisherQos) {
        self.done(Step::Publish { topic: topic.to_owned(), qos });
    }

    #[track_caller]
    pub fn subscribe(&mut self, topic: &str, qos: SubscriberQos) {
        self.done(Step::Subscribe { topic: topic.to_owned(), qos });
    }

    #[track_caller]
    pub fn wait_for_subscribers(&mut self, n: usize) {
        self.done(Step::WaitSubscribers { n, timeout_ms: 30_000 });
    }

    #[track_caller]
    pub fn wait_for_publishers(&mut self, n: usize) {
        self.done(Step::WaitPublishers { n, timeout_ms: 30_000 });
    }

    #[track_caller]
    pub fn send(&mut self, tag: u64, from: u64, count: u64, len: usize) {
        self.done(Step::Send { tag, from, count, len });
    }

    #[track_caller]
    pub fn receive(&mut self, count: usize) -> Vec<ReceivedMessage> {
        self.got(Step::Receive { count, timeout_ms: 30_000, hold: false })
    }

    #[track_caller]
    pub fn receive_and_hold(&mut self, count: usize) -> Vec<ReceivedMessage> {
        self.got(Step::Receive { count, timeout_ms: 30_000, hold: true })
    }

    #[track_caller]
    pub fn got(&mut self, step: Step) -> Vec<ReceivedMessage> {
        match self.act(step) {
            Outcome::ReceivedMessage(messages) => messages,
            other => panic!("expected messages, got {other:?}"),
        }
    }

    #[track_caller]
    pub fn tally(&mut self) -> MessageCounts {
        match self.answer() {
            Outcome::MessageCounts(tally) => tally,
            other => panic!("expected a tally, got {other:?}"),
        }
    }

    /// The code of the step's error, and the number of messages before it.
    #[track_caller]
    pub fn fails(&mut self, step: Step) -> (String, u64) {
        match self.act(step) {
            Outcome::Failed { code, after, .. } => (code, after),
            other => panic!("expected an error, got {other:?}"),
        }
    }
}
