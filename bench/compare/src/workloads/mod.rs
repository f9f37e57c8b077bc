//! The workloads: which processes, which messages, in which phases.

mod calls;
mod cpp;
mod hosts;
mod key_value;
mod latency;
mod memory;
mod state;
mod studies;
mod throughput;
mod topology;

use crate::hosts::Cable;
use crate::registry::{Kind, Registry};
use bench_harness::spec::{Call, Expect, Load, PublishSpec, Role, SubscribeSpec};
use bench_harness::{Lane, Profile, Result, Topic};
use std::path::PathBuf;

/// The default size of a plain message: a pose with a header, a motor command.
const SMALL_LEN: usize = 64;
const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Parameters of the workloads.
pub struct Context {
    /// Durations are multiplied by this.
    pub scale: f64,
    /// How many repetitions there will be.
    pub repeat: usize,
    /// The topology of the robot.
    pub topology: PathBuf,
}

/// A workload.
pub struct Workload {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its description.
    pub about: &'static str,
    /// The systems that take part unless others are asked for.
    pub systems: Choice,
    /// The jobs of a repetition.
    pub jobs: fn(&Context, usize) -> Result<Vec<Job>>,
}

/// Which systems take part in a workload.
pub enum Choice {
    /// All that publish and subscribe, in Rust.
    All,
    /// All that publish and subscribe, in Rust and C++.
    Compiled,
    /// These.
    These(&'static [&'static str]),
    /// All that call, and robot-net's messages there and back.
    Calls,
    /// All key-value stores.
    Stores,
    /// All in Python.
    Python,
}

impl Choice {
    /// Their ids, in the order of the report.
    pub fn ids(&self, registry: &Registry) -> Vec<String> {
        let chosen = |id: &String| {
            let entry = &registry.entries[id];
            match self {
                Self::All => entry.kind == Kind::Pubsub && entry.language == "rust",
                Self::Compiled => entry.kind == Kind::Pubsub && entry.language != "python",
                Self::These(ids) => ids.contains(&id.as_str()),
                Self::Calls => entry.kind == Kind::Call || id == calls::REFERENCE_SYSTEM,
                Self::Stores => entry.kind == Kind::KeyValue,
                Self::Python => entry.kind == Kind::Pubsub && entry.language == "python",
            }
        };
        registry.order.iter().filter(|id| chosen(id)).cloned().collect()
    }
}

/// One run's worth of work, the same for every system.
#[derive(Clone)]
pub struct Job {
    /// The variant of the workload.
    pub variant: String,
    /// The processes: name and role.
    pub processes: Vec<(String, Role)>,
    /// The phases.
    pub phases: Vec<PhasePlan>,
    /// Values are to be on disk before their writers are answered.
    pub durable: bool,
    /// Where it needs two hosts, what joins them: the first has the processes that publish.
    pub cable: Option<Cable>,
}

/// A phase, as it is announced.
#[derive(Clone)]
pub struct PhasePlan {
    /// Its name.
    pub label: String,
    /// Bytes of each message.
    pub len: Option<usize>,
    /// Messages per second and publisher.
    pub rate_hz: Option<f64>,
    /// The rate is this share of what the slowest reader received in an earlier phase.
    pub limited_to: Option<(usize, f64)>,
    /// How long it takes when all goes well.
    pub seconds: f64,
}

impl Job {
    /// How long it takes when all goes well, with starting and stopping.
    pub fn seconds(&self) -> f64 {
        0.15 + self.phases.iter().map(|p| p.seconds + 0.02).sum::<f64>()
    }

    /// Every key-value call of the job.
    pub fn calls(&self) -> impl Iterator<Item = Call> {
        let loads = self.processes.iter().filter_map(|(_, role)| match role {
            Role::KeyValue { loads, .. } => Some(loads),
            _ => None,
        });
        loads.flatten().map(|load| load.call)
    }

    /// Every topic of the job.
    pub fn topics(&self) -> Vec<&Topic> {
        fn of(role: &Role) -> Vec<&Topic> {
            match role {
                Role::Peer { publishes, subscribes } => publishes
                    .iter()
                    .map(|p: &PublishSpec| &p.topic)
                    .chain(subscribes.iter().map(|s: &SubscribeSpec| &s.topic))
                    .collect(),
                Role::Pinger { there, back, .. } | Role::Echo { there, back } => vec![there, back],
                Role::KeyValue { .. } => Vec::new(),
            }
        }
        self.processes.iter().flat_map(|(_, role)| of(role)).collect()
    }
}

/// All workloads, in the order of the report.
pub fn all() -> Vec<Workload> {
    let mut all = studies::workloads();
    all.extend(latency::workloads());
    all.extend(throughput::workloads());
    all.extend(cpp::workloads());
    all.extend(calls::workloads());
    all.extend(topology::workloads());
    all.extend(hosts::workloads());
    all.extend(memory::workloads());
    all.extend(key_value::workloads());
    all.extend(state::workloads());
    all
}

#[cfg(test)]
pub use state::counting_job;

/// A phase in which each publisher of the one topic has the same load.
#[derive(Clone)]
struct Step {
    label: String,
    load: Load,
    limited_to: Option<(usize, f64)>,
}

impl Step {
    fn flood(label: &str, len: usize, count: u64, seconds: f64) -> Self {
        let load = Load { len, count, seconds, rate_hz: None, filled: false };
        Self { label: label.into(), load, limited_to: None }
    }

    fn paced(label: &str, len: usize, rate_hz: f64, seconds: f64) -> Self {
        let load = Load { len, count: u64::MAX, seconds, rate_hz: Some(rate_hz), filled: false };
        Self { label: label.into(), load, limited_to: None }
    }
}

/// Publishers and subscribers of one topic, a process for each.
fn one_topic(
    variant: &str,
    profile: Profile,
    publishers: usize,
    subscribers: usize,
    steps: &[Step],
) -> Job {
    one_topic_in(Lane::Bulk, variant, profile, publishers, subscribers, steps)
}

/// The same in a lane.
fn one_topic_in(
    lane: Lane,
    variant: &str,
    profile: Profile,
    publishers: usize,
    subscribers: usize,
    steps: &[Step],
) -> Job {
    let max_len = steps.iter().map(|s| s.load.len).max().unwrap_or(0).max(16);
    let topic = |index| Topic {
        name: "stream".into(),
        profile,
        lane,
        max_len,
        publishers,
        subscribers,
        index,
    };
    let loads: Vec<_> = steps.iter().map(|s| Some(s.load.clone())).collect();
    let expects: Vec<_> =
        steps.iter().map(|s| Expect { len: s.load.len, ..Expect::default() }).collect();
    let publish = |index| Role::Peer {
        publishes: vec![PublishSpec { topic: topic(index), loads: loads.clone() }],
        subscribes: Vec::new(),
    };
    let subscribe = |index| Role::Peer {
        publishes: Vec::new(),
        subscribes: vec![SubscribeSpec { topic: topic(index), expects: expects.clone() }],
    };
    let durable = false;
    let publishing = (0..publishers).map(|i| (format!("publisher {i}"), publish(i)));
    let subscribing = (0..subscribers).map(|i| (format!("subscriber {i}"), subscribe(i)));
    let phases = steps
        .iter()
        .map(|s| PhasePlan {
            label: s.label.clone(),
            len: Some(s.load.len),
            rate_hz: s.load.rate_hz,
            limited_to: s.limited_to,
            seconds: s.load.seconds,
        })
        .collect();
    let processes = publishing.chain(subscribing).collect();
    Job { variant: variant.into(), processes, phases, durable, cable: None }
}
