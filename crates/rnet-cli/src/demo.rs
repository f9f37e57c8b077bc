//! `rnet demo`: a simulated robot of ten processes, one of which is killed and started again.
//!
//! An arm of two links is driven at 1 kHz. In the middle its controller is killed with SIGKILL: the motors hold the
//! arm, the safety monitor raises an urgent stop, and the next controller takes over. At the end each message that was
//! sent has to have been received or counted as lost, at each of its receivers, by the numbers in the messages.
//!
//! The processes are workers as those of `rnet bench`, and end with this one.

mod arm;
mod endpoints;
pub mod node;
mod node_logic;
pub mod robot;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};
use node::{DemoReport, QUIET_PHASE};
use rnet_bench::worker::{Order, Process};
use robot::{CONTROLLER, DemoJob, NODES, SIMULATION};
use serde::Serialize;
use serde_json::json;

use crate::bench::bench_dir::BenchDir;
use crate::bench::figure::{Latencies, Percentiles};
use crate::bench::worker::Role;
use crate::bench::worker_link::{COLLECT_PHASE, SEND_PHASE};
use crate::bench::workers::{NamedRole, Workers};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::table;

/// Run a simulated robot of ten processes, kill one, and print delivery counts.
///
/// The robot runs in its own domain, or in the domain given by --domain, which must not have nodes. Exit 1 if a
/// message was lost without being counted, if messages arrived out of order, if the motors did not hold the arm after
/// the controller was killed, or if the control loop did not recover.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Duration of the run, in seconds: 2 to 3600
    #[arg(long, value_name = "S", default_value = "20", value_parser = seconds)]
    pub seconds: Duration,
    /// Simulation model of the arm: MuJoCo, if robot-net's Python wheel is installed with its `demo` extra, or the
    /// embedded model
    #[arg(long, value_enum, default_value_t = Model::Auto)]
    pub model: Model,
}

/// What moves the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Model {
    Auto,
    Embedded,
    Mujoco,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let given = text.parse::<f64>().ok().filter(|seconds| (2.0..=3600.0).contains(seconds));
    given.map(Duration::from_secs_f64).ok_or_else(|| "must be from 2 to 3600 seconds".to_owned())
}

/// The domain, in a directory of its own.
const OWN_DOMAIN: &str = "demo";
/// For so long there is no controller, or less in a short run.
const OUTAGE: Duration = Duration::from_secs(3);
/// How long a Python may take to import MuJoCo.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

pub fn run(context: &mut Context, args: &DemoArgs) -> Outcome {
    let global = context.global();
    if global.group.is_some() {
        let why = "the demo cannot share its domain with a group: omit --group";
        return Err(Failure::Usage(why.to_owned()));
    }
    // The model in Python runs in another folder.
    let base = std::path::absolute(context.domains_dir())
        .map_err(|e| Failure::Usage(format!("cannot use --dir: {e}")))?;
    if let Some(domain) = &global.domain {
        let location = context.location()?.sibling(domain.clone(), None)?;
        if let Some(node) = location.living_nodes().first() {
            let why = format!("the demo needs a domain without nodes, but {node} runs in {domain}");
            return Err(Failure::Usage(format!("{why}; omit --domain, or use another one")));
        }
    }
    let bench_dir = BenchDir::new(&base)?;
    let python = python(args.model, bench_dir.path())?;
    let model = if python.is_some() { "MuJoCo" } else { "embedded" };
    let (dir, domain) = match &global.domain {
        Some(domain) => (base, domain.to_string()),
        None => (bench_dir.path().to_owned(), OWN_DOMAIN.to_owned()),
    };
    let count = NODES.len();
    context.eprintln(format_args!(
        "a robot of {count} processes, model: {model}; inspect it with: rnet --dir {} --domain {domain} topic list",
        dir.display()
    ));
    let node_roles = (0..count).map(|node| node_role(node, python.clone())).collect();
    let (timeline, reports) =
        run_scenario(context, Workers::start_in(&bench_dir, dir, domain, node_roles)?, args)?;
    let summary = Summary::of(&timeline, &reports);
    if context.json() {
        let demo = json!({ "version": rnet::VERSION, "model": model, "processes": count });
        context.document(&json!({ "demo": demo, "result": summary }))?;
    } else {
        summary.print(context)?;
    }
    summary.verdict()
}

/// The Python with MuJoCo and this version of rnet, if it is to be used: beside this program, as in a virtual
/// environment, or the one of the `PATH`. It is tried in `bench_dir`: Python imports what stands in its current folder.
fn python(model: Model, bench_dir: &Path) -> Outcome<Option<PathBuf>> {
    if model == Model::Embedded {
        return Ok(None);
    }
    let beside = std::env::current_exe().ok().map(|program| program.with_file_name("python3"));
    let fits = |python: &PathBuf| {
        let look = format!("import sys, rnet.demo; sys.exit(rnet.VERSION != {:?})", rnet::VERSION);
        let mut command = Command::new(python);
        command
            .args(["-c", &look])
            .current_dir(bench_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // One that takes longer is killed.
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

/// The role of a node; `python` is for that of the model.
fn node_role(node: usize, python: Option<PathBuf>) -> NamedRole {
    let python = python.filter(|_| node == SIMULATION);
    (NODES[node].name.to_owned(), Role::Demo(DemoJob::of(node, python)))
}

/// What was done, and when, by [`rnet::now_ns`].
struct Timeline {
    begin_ns: u64,
    killed_ns: u64,
    restarted_ns: u64,
    end_ns: u64,
}

/// The run: returns what the nodes that were not killed report, by name.
fn run_scenario(
    context: &Context,
    mut workers: Workers,
    args: &DemoArgs,
) -> Outcome<(Timeline, BTreeMap<String, DemoReport>)> {
    let outage = OUTAGE.min(args.seconds.mul_f64(0.3));
    let half = (args.seconds - outage) / 2;
    let begin_ns = rnet::now_ns();
    let passed = || (rnet::now_ns() - begin_ns) as f64 * 1e-9;
    workers.order(0..NODES.len(), Order::phase(SEND_PHASE))?;
    workers.run_for(half)?;
    context.eprintln(format_args!("{:5.1} s  the controller is killed (SIGKILL)", passed()));
    let killed_ns = workers.kill(CONTROLLER)?;
    workers.run_for(outage)?;
    context.eprintln(format_args!("{:5.1} s  the controller is started again", passed()));
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
    /// By rnet's own counters.
    lost: u64,
    /// Sent, and neither received nor counted as lost.
    unseen: u64,
    out_of_order: u64,
    latency: Percentiles,
}

#[derive(Debug, Serialize)]
struct Summary {
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
    /// When the safety monitor raised (`true`) and took back the urgent stop, in s.
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
        // A busy machine may have made the motors hold before the kill.
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

    fn print(&self, context: &mut Context) -> Outcome {
        let titles = ["TOPIC", "RATE (Hz) ", "P50 ", "P99 ", "MAX ", "LOST ", "MESSAGES "];
        let cells = |topic: &Topic| {
            let latency = topic.latency;
            let mut cells = vec![topic.topic.clone(), format!("{:.1}", topic.rate_hz)];
            cells.extend([latency.p50_ns, latency.p99_ns, latency.max_ns].map(table::latency));
            cells.extend([topic.lost, topic.sent].map(|count| count.to_string()));
            cells
        };
        table::print(context, &titles, &self.topics.iter().map(cells).collect::<Vec<_>>())?;
        let trip = self.round_trip;
        context.line(format_args!(
            "\nloop        from state to torque and back: p50 {}, p99 {}",
            table::latency(trip.p50_ns),
            table::latency(trip.p99_ns)
        ))?;
        let after = |ms: Option<f64>| {
            ms.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.0} ms later"))
        };
        context.line(format_args!(
            "controller  killed at {:.1} s, the motors held the arm {};\n            started again after \
             {:.1} s, the loop was closed {}",
            self.killed_at_s,
            after(self.held_after_ms),
            self.down_s,
            after(self.closed_after_ms)
        ))?;
        for (at_s, active) in &self.stops {
            let what = if *active { "raised" } else { "taken back" };
            context.line(format_args!("stop        {what} at {at_s:.2} s"))?;
        }
        context.line(format_args!(
            "messages    {} sent; {} received by all subscribers together, {} lost and counted, {} lost unseen",
            self.sum(|topic| topic.sent),
            self.sum(|topic| topic.received),
            self.sum(|topic| topic.lost),
            self.sum(|topic| topic.unseen)
        ))
    }

    /// An error if the robot or robot-net did not do what they are to.
    fn verdict(&self) -> Outcome {
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
        let mut heard = Vec::new();
        for (node, report) in reports {
            let here = report.heard.iter().filter(|heard| heard.topic == topic);
            heard.extend(here.map(|heard| (node == NODES[CONTROLLER].name, heard)));
        }
        // One that was killed reports nothing: it sent what that hearer knows which heard most.
        let mut sent = BTreeMap::<u64, u64>::new();
        for (publisher, tally) in heard.iter().flat_map(|(_, heard)| &heard.tallies) {
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
        for (came_later, heard) in heard {
            let received: u64 = heard.tallies.values().map(|tally| tally.received).sum();
            let known = received + heard.counted_lost;
            sum.received += received;
            sum.lost += heard.counted_lost;
            sum.unseen += match heard.first {
                // What was lost before its first message it may count, too. On a busy machine it hears none in
                // time, and the loop does not close.
                first if came_later => {
                    first.map_or(0, |first| (sent - first).saturating_sub(known))
                }
                // Counted and not lost is as wrong as lost and not counted.
                _ => sent.abs_diff(known),
            };
            sum.out_of_order += heard.tallies.values().map(|tally| tally.out_of_order).sum::<u64>();
            latencies.add(&heard.latencies);
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
    use crate::bench::message::SequenceCounter;

    const TIMELINE: Timeline =
        Timeline { begin_ns: 0, killed_ns: 1_000, restarted_ns: 2_000, end_ns: 3_000 };

    /// That of a node which has heard of publisher 7 the messages with these numbers.
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

    /// Of a run in which 5 states were sent and this was heard by a node of that name.
    fn summary(node: &str, heard: DemoReport) -> Summary {
        let sent = Sent { topic: STATE.to_owned(), publisher: 7, count: 5 };
        let changes = vec![(500, true), (1_500, false), (2_500, true)];
        let simulation = DemoReport { sent: vec![sent], changes, ..DemoReport::default() };
        let reports = [("simulation", simulation), (node, heard)];
        let reports = reports.map(|(name, report)| (name.to_owned(), report)).into();
        Summary::of(&TIMELINE, &reports)
    }

    fn said(summary: &Summary) -> String {
        summary.verdict().map_or_else(|failure| failure.message(), |()| "well".to_owned())
    }

    #[test]
    fn what_is_lost_has_to_be_counted() {
        let all = &[0, 1, 2, 3, 4];
        for (node, numbers, counted_lost, word) in [
            ("logger", &all[..], 0, "well"),
            ("logger", &[0, 1, 3, 4], 1, "well"),
            ("logger", &[0, 1, 3, 4], 0, "1 messages were lost"),
            ("logger", &[0, 1, 2, 3], 0, "1 messages were lost"),
            ("logger", &[2, 3, 4], 0, "2 messages were lost"),
            ("logger", all, 1, "1 messages were lost"),
            ("logger", &[0, 1, 2, 2, 3, 4], 0, "out of order"),
            // It was started in the middle.
            ("controller", &[2, 3, 4], 0, "well"),
            ("controller", &[2, 4], 0, "1 messages were lost"),
            ("controller", &[], 0, "well"),
        ] {
            let told = said(&summary(node, report(STATE, numbers, counted_lost)));
            assert!(told.contains(word), "{node} {numbers:?} {counted_lost}: {told}");
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
    fn the_motors_must_hold_the_arm_and_the_loop_must_recover() {
        let run = |changes: &[(u64, bool)]| {
            let simulation = DemoReport { changes: changes.to_vec(), ..DemoReport::default() };
            let reports = BTreeMap::from([("simulation".to_owned(), simulation)]);
            Summary::of(&TIMELINE, &reports)
        };
        let good = run(&[(500, true), (1_500, false), (2_700, true)]);
        assert_eq!((good.held_after_ms, good.closed_after_ms), (Some(0.0005), Some(0.0007)));
        assert_eq!(said(&good), "well");
        assert!(said(&run(&[(500, true)])).contains("did not hold"));
        assert!(said(&run(&[(500, true), (1_500, false)])).contains("did not recover"));
        // It was held already.
        let held = run(&[(500, true), (900, false), (2_700, true)]);
        assert_eq!((held.held_after_ms, said(&held).as_str()), (Some(0.0), "well"));
    }
}
