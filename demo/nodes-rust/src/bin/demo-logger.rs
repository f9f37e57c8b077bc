//! The logger: receives all messages, counts them by the senders' own numbers, and writes a line per second
//! to the file given as its argument. With a second argument, `one-life`, each sender exists for the whole
//! run, so its numbers continue across a link that is lost and returns as another publisher.
//!
//! Messages that must be in the log are received reliably; the two fast streams best_effort, because a logger
//! must not block a sensor.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rnet::{History, Message, Node, Reliability, Sample, SubscriberQos, Subscription};
use rnet_demo::messages::{
    BatteryState, BodyEstimate, BodyPose, Counted, DriveCommand, FootForces, JointTorques,
    RobotState, StopEvent, stop_reason,
};
use rnet_demo::process::{self, Command, Process};
use rnet_demo::tally::Tally;
use serde_json::{Value, json};

type Tallies = Arc<Mutex<BTreeMap<&'static str, Tally>>>;

fn main() -> ExitCode {
    process::run(logger)
}

/// A log skips nothing by choice.
fn keep_all() -> SubscriberQos {
    SubscriberQos { history: History::KeepAll, ..SubscriberQos::default() }
}

fn lock(tallies: &Tallies) -> MutexGuard<'_, BTreeMap<&'static str, Tally>> {
    tallies.lock().unwrap_or_else(PoisonError::into_inner)
}

fn logger(process: &Process) -> rnet::Result<()> {
    let node = Node::new("logger")?;
    let mut first = node.subscriber::<RobotState>("/robot/state").open()?;
    first.wait_for_publishers_timeout(1, Duration::from_secs(10))?;
    process.joined();
    drop(first);

    let one_life = std::env::args().nth(2).is_some_and(|word| word == "one-life");
    let log = LogSubscriptions { node, tallies: Tallies::default(), one_life };
    let events = Arc::new(Mutex::new(Vec::new()));
    let stops = events.clone();
    let kept = SubscriberQos {
        reliability: Reliability::Reliable,
        transient_local: true,
        ..SubscriberQos::default()
    };
    let _subscriptions: Vec<Subscription> = vec![
        log.count_topic::<RobotState>("/robot/state", true)?,
        // Commands are best_effort, and a driver that has lost its authority returns as another publisher.
        log.count_topic_with::<JointTorques>("/robot/torque", keep_all(), |torque| {
            (Some(torque.publisher()), torque.count)
        })?,
        log.count_topic::<BodyEstimate>("/robot/estimate", true)?,
        log.count_topic::<FootForces>("/robot/force", false)?,
        log.count_topic::<BodyPose>("/camera/shutter", false)?,
        log.count_topic::<BatteryState>("/battery/state", true)?,
        log.count_topic::<DriveCommand>("/operator/drive", true)?,
        log.count_topic_with::<[u8]>("/camera/image", keep_all(), |image| {
            (Some(image.publisher()), image.seq())
        })?,
        log.count_topic_with::<StopEvent>("/safety/stop", kept, move |event| {
            let line = json!({
                "stop": event.active == 1,
                "reason": stop_reason(event.reason),
                "at_ns": event.raised_ns,
            });
            stops.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            (None, event.count)
        })?,
    ];
    let mut file = std::env::args().nth(1).and_then(|path| open(&path));
    loop {
        match process.next(Duration::from_secs(1)) {
            None => {}
            Some(Command::Quiet) => process::report_quiet(&[]),
            Some(Command::Other(what)) if what == "tally" => {
                process::report(json!({"event": "tally", "topics": summary(&log.tallies)}));
            }
            Some(Command::Stop) => return Ok(()),
            Some(_) => continue,
        }
        let events = std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner));
        let line =
            json!({"at_ns": rnet::now_ns(), "topics": summary(&log.tallies), "events": events});
        if let Some(open) = &mut file
            && let Err(error) = writeln!(open, "{line}")
        {
            eprintln!("cannot write the log: {error}");
            file = None;
        }
    }
}

fn open(path: &str) -> Option<File> {
    File::create(path).map_err(|error| eprintln!("cannot open the log file {path}: {error}")).ok()
}

fn summary(tallies: &Tallies) -> Value {
    let topics = lock(tallies).clone();
    let line = |tally: Tally| {
        json!({
            "received": tally.received,
            "missing": tally.missing,
            "disordered": tally.disordered,
        })
    };
    topics.into_iter().map(|(topic, tally)| (topic.to_owned(), line(tally))).collect()
}

struct LogSubscriptions {
    node: Node,
    tallies: Tallies,
    one_life: bool,
}

impl LogSubscriptions {
    /// Counts a topic by the numbers in its messages.
    fn count_topic<T: Counted>(
        &self,
        topic: &'static str,
        reliable: bool,
    ) -> rnet::Result<Subscription> {
        let reliability = if reliable { Reliability::Reliable } else { Reliability::BestEffort };
        let qos = SubscriberQos { reliability, ..keep_all() };
        self.count_topic_with::<T>(topic, qos, |message| (None, message.count()))
    }

    fn count_topic_with<T: Message + ?Sized>(
        &self,
        topic: &'static str,
        qos: SubscriberQos,
        // The sender that numbers the messages, if it is not the publisher, and the number.
        mut number: impl FnMut(&Sample<'_, T>) -> (Option<u64>, u64) + Send + 'static,
    ) -> rnet::Result<Subscription> {
        lock(&self.tallies).insert(topic, Tally::default());
        let (tallies, one_life) = (self.tallies.clone(), self.one_life);
        let subscriber = self.node.subscriber::<T>(topic).qos(qos).open()?;
        Ok(subscriber.on(move |sample| {
            let (by, number) = number(&sample);
            let publisher = by.unwrap_or(if one_life { 0 } else { sample.publisher() });
            lock(&tallies).entry(topic).or_default().note(publisher, number);
        }))
    }
}
