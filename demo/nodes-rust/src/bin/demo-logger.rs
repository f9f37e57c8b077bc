//! The logger: hears everything, counts it by the senders' own numbers, and writes a line per second
//! to the file given as its argument. With a second argument, `one-life`, each sender lives for the whole
//! run, so its numbers go on through a link that is lost and comes back as another publisher.
//!
//! What must not be missing from a log is heard reliably; the two fast streams best_effort, because
//! a logger must not hold a sensor up.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rnet::{Message, Node, Sample, SubscriberOptions, Subscription};
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

fn lock(tallies: &Tallies) -> MutexGuard<'_, BTreeMap<&'static str, Tally>> {
    tallies.lock().unwrap_or_else(PoisonError::into_inner)
}

fn logger(process: &Process) -> rnet::Result<()> {
    let node = Node::new("logger")?;
    let mut first = node.subscriber::<RobotState>("/robot/state")?;
    first.wait_for_publishers(1, Some(Duration::from_secs(10)))?;
    process.joined();
    drop(first);

    let one_life = std::env::args().nth(2).is_some_and(|word| word == "one-life");
    let ears = LogSubscriptions { node, tallies: Tallies::default(), one_life };
    let events = Arc::new(Mutex::new(Vec::new()));
    let stops = events.clone();
    let kept = SubscriberOptions::new().reliable().transient_local();
    let _heard: Vec<Subscription> = vec![
        ears.hear::<RobotState>("/robot/state", true)?,
        // Commands are best_effort, and a driver that has lost its authority comes back as another publisher.
        ears.hear_with::<JointTorques>(
            "/robot/torque",
            SubscriberOptions::new().keep_all(),
            |torque| (Some(torque.publisher()), torque.count),
        )?,
        ears.hear::<BodyEstimate>("/robot/estimate", true)?,
        ears.hear::<FootForces>("/robot/force", false)?,
        ears.hear::<BodyPose>("/camera/shutter", false)?,
        ears.hear::<BatteryState>("/battery/state", true)?,
        ears.hear::<DriveCommand>("/operator/drive", true)?,
        ears.hear_with::<[u8]>("/camera/image", SubscriberOptions::new().keep_all(), |image| {
            (Some(image.publisher()), image.seq())
        })?,
        ears.hear_with::<StopEvent>("/safety/stop", kept, move |event| {
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
                process::report(json!({"event": "tally", "topics": summary(&ears.tallies)}));
            }
            Some(Command::Stop) => return Ok(()),
            Some(_) => continue,
        }
        let events = std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner));
        let line =
            json!({"at_ns": rnet::now_ns(), "topics": summary(&ears.tallies), "events": events});
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
    fn hear<T: Counted>(&self, topic: &'static str, reliable: bool) -> rnet::Result<Subscription> {
        // A record leaves nothing out by choice.
        let options = SubscriberOptions::new().keep_all();
        let options = if reliable { options.reliable() } else { options };
        self.hear_with::<T>(topic, options, |message| (None, message.count()))
    }

    fn hear_with<T: Message + ?Sized>(
        &self,
        topic: &'static str,
        options: SubscriberOptions,
        // By whom its messages are numbered, if not by their node, and the number.
        mut number: impl FnMut(&Sample<'_, T>) -> (Option<u64>, u64) + Send + 'static,
    ) -> rnet::Result<Subscription> {
        lock(&self.tallies).insert(topic, Tally::default());
        let (tallies, one_life) = (self.tallies.clone(), self.one_life);
        let subscriber = self.node.subscriber_with::<T>(topic, options)?;
        Ok(subscriber.on(move |sample| {
            let (by, number) = number(&sample);
            let publisher = by.unwrap_or(if one_life { 0 } else { sample.publisher() });
            lock(&tallies).entry(topic).or_default().note(publisher, number);
        }))
    }
}
