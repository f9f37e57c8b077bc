//! The demo: a simulated robot of ten processes, one of which is killed and restarted.
//!
//! An arm of two links is driven at 1 kHz. In the middle of the run its controller is killed with SIGKILL:
//! the motors hold the arm, the safety monitor raises an urgent stop, and the next controller takes over. At
//! the end, the numbers in the messages must show that each receiver has received each sent message or
//! counted it as lost.
//!
//! The processes are workers like those of `rnet bench`, and exit with this one.

mod arm;
mod endpoints;
pub(crate) mod node;
mod node_logic;
pub(crate) mod robot;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::worker::{Order, Process};
use node::{DemoReport, QUIET_PHASE};
use robot::{CONTROLLER, DemoJob, NODES, SIMULATION};
use serde::Serialize;
use serde_json::{Value, json};

use crate::measure::BenchDir;
use crate::measure::figure::{Latencies, Percentiles};
use crate::measure::worker::Role;
use crate::measure::worker_link::{COLLECT_PHASE, SEND_PHASE};
use crate::measure::workers::{NamedRole, Workers};
use rnet_format::units;
use rnet_format::{Failure, Outcome};

/// The model of the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// MuJoCo if it is installed, otherwise the embedded model.
    Auto,
    /// The embedded model.
    Embedded,
    /// MuJoCo.
    Mujoco,
}

/// The domain, in a private directory.
const OWN_DOMAIN: &str = "demo";
/// Duration without a controller; less in a short run.
const OUTAGE: Duration = Duration::from_secs(3);
/// Time limit for a Python to import MuJoCo.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// A prepared demo.
pub struct Demo {
    bench_dir: BenchDir,
    dir: PathBuf,
    domain: String,
    python: Option<PathBuf>,
}

impl Demo {
    /// Prepares a demo in `domain` of the directory `base`, or in a private domain.
    ///
    /// # Errors
    /// `base` cannot be used, or the model is not installed.
    pub fn new(base: &Path, domain: Option<String>, model: Model) -> Outcome<Demo> {
        // The Python model runs in another folder.
        let base = std::path::absolute(base)
            .map_err(|e| Failure::Usage(format!("cannot use --dir: {e}")))?;
        let bench_dir = BenchDir::new(&base)?;
        let python = python(model, bench_dir.path())?;
        let (dir, domain) = match domain {
            Some(domain) => (base, domain),
            None => (bench_dir.path().to_owned(), OWN_DOMAIN.to_owned()),
        };
        Ok(Demo { bench_dir, dir, domain, python })
    }

    fn model(&self) -> &'static str {
        if self.python.is_some() { "MuJoCo" } else { "embedded" }
    }

    /// The model and the number of processes, and how to inspect the robot.
    pub fn heading(&self) -> String {
        let Demo { dir, domain, .. } = self;
        format!(
            "a robot of {} processes, model: {}; inspect it with: rnet --dir {} --domain {domain} topic list",
            NODES.len(),
            self.model(),
            dir.display()
        )
    }

    /// Runs the demo, and calls `on_step` with the text of each step of the scenario.
    ///
    /// # Errors
    /// A process failed, or `should_stop` returned `true`.
    pub fn run(
        &self,
        seconds: Duration,
        should_stop: fn() -> bool,
        on_step: &mut dyn FnMut(&str),
    ) -> Outcome<Summary> {
        let Demo { bench_dir, dir, domain, python } = self;
        let node_roles = (0..NODES.len()).map(|node| node_role(node, python.clone())).collect();
        let workers =
            Workers::start(bench_dir, dir.clone(), domain.clone(), should_stop, node_roles)?;
        let (timeline, reports) = run_scenario(workers, seconds, on_step)?;
        Ok(Summary::of(&timeline, &reports))
    }

    /// The result as JSON.
    pub fn document(&self, summary: &Summary) -> Value {
        let count = NODES.len();
        let demo = json!({ "version": rnet::VERSION, "model": self.model(), "processes": count });
        json!({ "demo": demo, "result": summary })
    }
}

/// The Python with MuJoCo and this version of rnet, if it is to be used: next to this program, as in a
/// virtual environment, or the one in `PATH`. It is tried in `bench_dir`, because Python imports modules of
/// its current folder.
fn python(model: Model, bench_dir: &Path) -> Outcome<Option<PathBuf>> {
    if model == Model::Embedded {
        return Ok(None);
    }
    let beside = std::env::current_exe().ok().map(|program| program.with_file_name("python3"));
    let fits = |python: &PathBuf| {
        let probe =
            format!("import sys, rnet.demo; sys.exit(rnet.__version__ != {:?})", rnet::VERSION);
        let mut command = Command::new(python);
        command
            .args(["-c", &probe])
            .current_dir(bench_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A Python that takes longer is killed.
        let ended =
            Process::start(&mut command).and_then(|mut probe| probe.wait_timeout(PROBE_TIMEOUT));
        ended.is_ok_and(|status| status.is_some_and(|status| status.success()))
    };
    let found = beside.into_iter().chain([PathBuf::from("python3")]).find(fits);
    if found.is_none() && model == Model::Mujoco {
        let why = "no Python with rnet and MuJoCo was found, or its rnet has another version; install the \
                   robot-net wheel with its demo extra, pip install 'rnet-….whl[demo]', or omit --model";
        return Err(Failure::Failed(why.to_owned()));
    }
    Ok(found)
}

/// The role of a node; `python` is for the node with the model.
fn node_role(node: usize, python: Option<PathBuf>) -> NamedRole {
    let python = python.filter(|_| node == SIMULATION);
    (NODES[node].name.to_owned(), Role::Demo(DemoJob::of(node, python)))
}

/// The times of the steps, by [`rnet::now_ns`].
struct Timeline {
    begin_ns: u64,
    killed_ns: u64,
    restarted_ns: u64,
    end_ns: u64,
}

/// Runs the scenario; returns the reports of the nodes that were not killed, by name.
fn run_scenario(
    mut workers: Workers,
    seconds: Duration,
    on_step: &mut dyn FnMut(&str),
) -> Outcome<(Timeline, BTreeMap<String, DemoReport>)> {
    let outage = OUTAGE.min(seconds.mul_f64(0.3));
    let half = (seconds - outage) / 2;
    let begin_ns = rnet::now_ns();
    let passed = || (rnet::now_ns() - begin_ns) as f64 * 1e-9;
    workers.order(0..NODES.len(), Order::phase(SEND_PHASE))?;
    workers.run_for(half)?;
    on_step(&format!("{:5.1} s  the controller is killed (SIGKILL)", passed()));
    let killed_ns = workers.kill(CONTROLLER)?;
    workers.run_for(outage)?;
    on_step(&format!("{:5.1} s  the controller is started again", passed()));
    let restarted_ns = rnet::now_ns();
    workers.add(false, vec![node_role(CONTROLLER, None)])?;
    workers.order([NODES.len()], Order::phase(SEND_PHASE))?;
    workers.run_for(half)?;
    let living = || (0..=NODES.len()).filter(|&number| number != CONTROLLER);
    let end_ns = rnet::now_ns();
    workers.order(living(), Order::phase(QUIET_PHASE))?;
    workers.wait_until_sent(NODES.len() + 1, Duration::ZERO)?;
    workers.order(living(), Order::phase(COLLECT_PHASE))?;
    let mut reports = BTreeMap::new();
    for number in living() {
        reports.insert(workers.name(number).to_owned(), workers.report(number, Duration::ZERO)?);
    }
    workers.stop_all()?;
    Ok((Timeline { begin_ns, killed_ns, restarted_ns, end_ns }, reports))
}

#[derive(Debug, Default, Serialize)]
struct Topic {
    topic: String,
    rate_hz: f64,
    sent: u64,
    received: u64,
    /// Counted by rnet's own counters.
    lost: u64,
    /// Messages sent that were neither received nor counted as lost.
    unseen: u64,
    out_of_order: u64,
    latency: Percentiles,
}

/// The result of a demo.
#[derive(Debug, Serialize)]
pub struct Summary {
    seconds: f64,
    topics: Vec<Topic>,
    /// From a state to its torques and back.
    round_trip: Percentiles,
    killed_at_s: f64,
    down_s: f64,
    /// From the kill until the motors held the arm by themselves.
    held_after_ms: Option<f64>,
    /// From the start of the next controller's process until the motors followed it.
    closed_after_ms: Option<f64>,
    /// When the safety monitor raised (`true`) and cleared the urgent stop, in s.
    stops: Vec<(f64, bool)>,
}

impl Summary {
    fn of(timeline: &Timeline, reports: &BTreeMap<String, DemoReport>) -> Summary {
        let mut names: Vec<&str> = NODES.iter().flat_map(|spec| spec.publishes).copied().collect();
        names.sort_unstable();
        let since = |ns: u64| ns.saturating_sub(timeline.begin_ns) as f64 * 1e-9;
        let seconds = since(timeline.end_ns);
        let topic = |topic: &&str| Topic::of(topic, seconds, reports);
        let changes = |name: &str| reports.get(name).map_or(&[][..], |report| &report.changes);
        let driven = changes("simulation");
        let was_driven = driven.iter().rfind(|(ns, _)| *ns < timeline.killed_ns);
        let first = |from_ns: u64, wanted: bool| {
            let mut later = driven.iter().filter(|(ns, _)| *ns >= from_ns);
            later.find(|(_, driven)| *driven == wanted).map(|(ns, _)| (ns - from_ns) as f64 * 1e-6)
        };
        // On a busy machine the motors may have held before the kill.
        let held = was_driven.filter(|(_, driven)| !driven).map(|_| 0.0);
        let trips = reports.get("simulation").map(|report| report.round_trips.percentiles());
        Summary {
            seconds,
            topics: names.iter().map(topic).collect(),
            round_trip: trips.unwrap_or_default(),
            killed_at_s: since(timeline.killed_ns),
            down_s: (timeline.restarted_ns - timeline.killed_ns) as f64 * 1e-9,
            held_after_ms: held.or_else(|| first(timeline.killed_ns, false)),
            closed_after_ms: first(timeline.restarted_ns, true),
            stops: changes("safety").iter().map(|(ns, active)| (since(*ns), *active)).collect(),
        }
    }

    fn sum(&self, of: fn(&Topic) -> u64) -> u64 {
        self.topics.iter().map(of).sum()
    }

    /// Titles and rows of the table of topics. A title that ends with a space marks right-aligned cells.
    pub fn topics(&self) -> ([&'static str; 7], Vec<Vec<String>>) {
        let titles = ["TOPIC", "RATE (Hz) ", "P50 ", "P99 ", "MAX ", "LOST ", "MESSAGES "];
        let cells = |topic: &Topic| {
            let latency = topic.latency;
            let mut cells = vec![topic.topic.clone(), format!("{:.1}", topic.rate_hz)];
            cells.extend([latency.p50_ns, latency.p99_ns, latency.max_ns].map(units::latency));
            cells.extend([topic.lost, topic.sent].map(|count| count.to_string()));
            cells
        };
        (titles, self.topics.iter().map(cells).collect())
    }

    /// The times of the scenario and the messages of all topics, as lines of text.
    pub fn text(&self) -> String {
        let trip = self.round_trip;
        let mut text = format!(
            "loop        from state to torque and back: p50 {}, p99 {}",
            units::latency(trip.p50_ns),
            units::latency(trip.p99_ns)
        );
        let after = |ms: Option<f64>| {
            ms.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.0} ms later"))
        };
        text += &format!(
            "\ncontroller  killed at {:.1} s, the motors held the arm {};\n            started again after \
             {:.1} s, the loop was closed {}",
            self.killed_at_s,
            after(self.held_after_ms),
            self.down_s,
            after(self.closed_after_ms)
        );
        for (at_s, active) in &self.stops {
            let what = if *active { "raised" } else { "cleared" };
            text += &format!("\nstop        {what} at {at_s:.2} s");
        }
        text += &format!(
            "\nmessages    {} sent; {} received by all subscribers together, {} lost and counted, {} lost unseen",
            self.sum(|topic| topic.sent),
            self.sum(|topic| topic.received),
            self.sum(|topic| topic.lost),
            self.sum(|topic| topic.unseen)
        );
        text
    }

    /// Returns an error if the robot or robot-net failed.
    ///
    /// # Errors
    /// Messages were lost without being counted or arrived out of order, the arm was not held, or the loop
    /// did not recover.
    pub fn verdict(&self) -> Outcome {
        let (unseen, disorder) =
            (self.sum(|topic| topic.unseen), self.sum(|topic| topic.out_of_order));
        let report = "please report it, with the output of --json";
        let busy = "try again with a longer run or on a less busy machine";
        let what = if unseen > 0 {
            format!("{unseen} messages were lost without being counted; {report}")
        } else if disorder > 0 {
            format!("{disorder} messages arrived out of order; {report}")
        } else if self.held_after_ms.is_none() {
            format!("the motors did not hold the arm after the controller was killed; {busy}")
        } else if self.closed_after_ms.is_none() {
            format!("the control loop did not recover; {busy}")
        } else {
            return Ok(());
        };
        Err(Failure::Failed(what))
    }
}

impl Topic {
    fn of(topic: &str, seconds: f64, reports: &BTreeMap<String, DemoReport>) -> Topic {
        let mut received_topics = Vec::new();
        for (node, report) in reports {
            let here = report.heard.iter().filter(|input| input.topic == topic);
            received_topics.extend(here.map(|input| (node == NODES[CONTROLLER].name, input)));
        }
        // A killed publisher reports nothing: the subscriber that received most knows what it sent.
        let mut sent = BTreeMap::<u64, u64>::new();
        for (publisher, tally) in received_topics.iter().flat_map(|(_, input)| &input.tallies) {
            let count = sent.entry(*publisher).or_default();
            *count = (*count).max(tally.next);
        }
        for own in reports.values().flat_map(|r| &r.sent).filter(|sent| sent.topic == topic) {
            sent.insert(own.publisher, own.count);
        }
        let sent: u64 = sent.values().sum();
        let rate_hz = sent as f64 / seconds;
        let mut sum = Topic { topic: topic.to_owned(), rate_hz, sent, ..Topic::default() };
        let mut latencies = Latencies::default();
        for (came_later, input) in received_topics {
            let received: u64 = input.tallies.values().map(|tally| tally.received).sum();
            let known = received + input.counted_lost;
            sum.received += received;
            sum.lost += input.counted_lost;
            sum.unseen += match input.first {
                // It may also count messages lost before its first one. On a busy machine it receives none in
                // time, and the loop does not recover.
                first if came_later => {
                    first.map_or(0, |first| (sent - first).saturating_sub(known))
                }
                // Counting a message that was not lost is as wrong as not counting a lost one.
                _ => sent.abs_diff(known),
            };
            sum.out_of_order += input.tallies.values().map(|tally| tally.out_of_order).sum::<u64>();
            latencies.add(&input.latencies);
        }
        sum.latency = latencies.percentiles();
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::endpoints::{ReceivedTopic, Sent};
    use super::robot::{STATE, TORQUE};
    use super::*;
    use crate::measure::message::SequenceCounter;

    const TIMELINE: Timeline =
        Timeline { begin_ns: 0, killed_ns: 1_000, restarted_ns: 2_000, end_ns: 3_000 };

    /// The report of a node that has received the messages with these numbers from publisher 7.
    fn report(topic: &str, numbers: &[u64], counted_lost: u64) -> DemoReport {
        let mut tally = SequenceCounter::default();
        numbers.iter().for_each(|number| {
            tally.count(*number);
        });
        let heard = ReceivedTopic {
            topic: topic.to_owned(),
            first: numbers.first().copied(),
            tallies: BTreeMap::from([(7, tally)]),
            counted_lost,
            latencies: Latencies::default(),
        };
        DemoReport { sent: Vec::new(), heard: vec![heard], ..DemoReport::default() }
    }

    /// The summary of a run in which 5 states were sent and the node of that name received these.
    fn summary(node: &str, heard: DemoReport) -> Summary {
        let sent = Sent { topic: STATE.to_owned(), publisher: 7, count: 5 };
        let changes = vec![(500, true), (1_500, false), (2_500, true)];
        let simulation = DemoReport { sent: vec![sent], changes, ..DemoReport::default() };
        let reports = [("simulation", simulation), (node, heard)];
        let reports = reports.map(|(name, report)| (name.to_owned(), report)).into();
        Summary::of(&TIMELINE, &reports)
    }

    fn verdict_of(summary: &Summary) -> String {
        summary.verdict().map_or_else(|failure| failure.to_string(), |()| "well".to_owned())
    }

    #[test]
    fn lost_messages_must_be_counted() {
        let all = &[0, 1, 2, 3, 4];
        for (node, numbers, counted_lost, word) in [
            ("logger", &all[..], 0, "well"),
            ("logger", &[0, 1, 3, 4], 1, "well"),
            ("logger", &[0, 1, 3, 4], 0, "1 messages were lost"),
            ("logger", &[0, 1, 2, 3], 0, "1 messages were lost"),
            ("logger", &[2, 3, 4], 0, "2 messages were lost"),
            ("logger", all, 1, "1 messages were lost"),
            ("logger", &[0, 1, 2, 2, 3, 4], 0, "out of order"),
            // The controller was started in the middle of the run.
            ("controller", &[2, 3, 4], 0, "well"),
            ("controller", &[2, 4], 0, "1 messages were lost"),
            ("controller", &[], 0, "well"),
        ] {
            let verdict = verdict_of(&summary(node, report(STATE, numbers, counted_lost)));
            assert!(verdict.contains(word), "{node} {numbers:?} {counted_lost}: {verdict}");
        }
    }

    #[test]
    fn all_subscribers_of_a_killed_publisher_receive_the_same() {
        let hears = |numbers: &[u64]| report(TORQUE, numbers, 0);
        let reports = [("safety", hears(&[0, 1, 2])), ("battery", hears(&[0, 1]))];
        let reports = reports.map(|(name, report)| (name.to_owned(), report)).into();
        let topic = Topic::of(TORQUE, 1.0, &reports);
        assert_eq!((topic.sent, topic.received, topic.unseen), (3, 5, 1));
    }

    #[test]
    fn motors_must_hold_arm_and_loop_must_recover() {
        let run = |changes: &[(u64, bool)]| {
            let simulation = DemoReport { changes: changes.to_vec(), ..DemoReport::default() };
            let reports = BTreeMap::from([("simulation".to_owned(), simulation)]);
            Summary::of(&TIMELINE, &reports)
        };
        let good = run(&[(500, true), (1_500, false), (2_700, true)]);
        assert_eq!((good.held_after_ms, good.closed_after_ms), (Some(0.0005), Some(0.0007)));
        assert_eq!(verdict_of(&good), "well");
        assert!(verdict_of(&run(&[(500, true)])).contains("did not hold"));
        assert!(verdict_of(&run(&[(500, true), (1_500, false)])).contains("did not recover"));
        // The arm was already held.
        let held = run(&[(500, true), (900, false), (2_700, true)]);
        assert_eq!((held.held_after_ms, verdict_of(&held).as_str()), (Some(0.0), "well"));
    }
}
