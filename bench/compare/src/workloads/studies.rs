//! The founding studies' own work. Study 3 is criterion's and has a runner of its own.

use super::{Choice, Context, Job, KIB, PhasePlan, Step, Workload, one_topic};
use bench_harness::spec::{PingLoad, Role};
use bench_harness::{Lane, Profile, Result, Topic};

/// "Hello at 1419140353074".
const STUDY1_LEN: usize = 22;
/// Iterations of study 2.
const STUDY2_COUNT: u64 = 1500;
/// Stride of the sizes of one repetition; five repetitions cover each size once.
const STUDY2_STRIDE: f64 = 5.0;
/// The same at the slower rates; five together do every other.
const STUDY2_SLOW_STRIDE: f64 = 10.0;

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload {
            name: "study1",
            title: "Study 1: 22-byte messages as fast as possible",
            about: "One writer; one or four readers; every process on its own. `flood`: as fast as \
                    the system takes them. `limited`: the writer is limited to 80 % of what the \
                    slowest reader had received per second.",
            systems: Choice::All,
            jobs: study1,
        },
        Workload {
            name: "study2",
            title: "Study 2: round trip of growing messages",
            about: "A message goes to another process and comes back whole; 1,500 sizes from 1 KB \
                    to 1,500 KB, one every 10 ms. Each repetition does every fifth size.",
            systems: Choice::All,
            jobs: study2,
        },
        Workload {
            name: "study2-slow",
            title: "Study 2 at the study's slower rates",
            about: "The same, one every 25 ms and every 50 ms, for the study's two systems and \
                    robot-net. Each repetition does every tenth size.",
            systems: Choice::These(&["rnet-adaptive", "zmq-tcp", "zmq-ipc", "cyclonedds"]),
            jobs: study2_slow,
        },
    ]
}

fn study1(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let mut limited = Step::paced("limited", STUDY1_LEN, 1.0, 0.25 * context.scale);
    limited.limited_to = Some((0, 0.8));
    let steps = [Step::flood("flood", STUDY1_LEN, u64::MAX, 0.4 * context.scale), limited];
    Ok([1, 4]
        .map(|readers| one_topic(&format!("1->{readers}"), Profile::Throughput, 1, readers, &steps))
        .into())
}

fn study2(context: &Context, repetition: usize) -> Result<Vec<Job>> {
    Ok(vec![round_trips(context, repetition, 10.0, STUDY2_STRIDE)])
}

fn study2_slow(context: &Context, repetition: usize) -> Result<Vec<Job>> {
    Ok([25.0, 50.0]
        .map(|period_ms| round_trips(context, repetition, period_ms, STUDY2_SLOW_STRIDE))
        .into())
}

/// Each repetition does every `stride`th size, beginning with another: 1,500 at 10, 25 and 50 ms take two
/// minutes for a system, and five times that is too long. With `--scale` as large as the stride each
/// repetition does all of them.
fn round_trips(context: &Context, repetition: usize, period_ms: f64, stride: f64) -> Job {
    let stride = ((stride / context.scale).round() as u64).max(1);
    let first = repetition as u64 % stride + 1;
    let load = PingLoad {
        first_len: first as usize * KIB,
        step_len: stride as usize * KIB,
        count: (STUDY2_COUNT - first) / stride + 1,
        period_ms,
    };
    let seconds = load.count as f64 * period_ms / 1000.0;
    ping_pong(&format!("{period_ms} ms"), STUDY2_COUNT as usize * KIB, load, seconds)
}

/// A process that sends messages and waits for each to come back from another, for some `seconds`.
pub fn ping_pong(variant: &str, max_len: usize, load: PingLoad, seconds: f64) -> Job {
    let topic = |name: &str| Topic {
        name: name.into(),
        profile: Profile::Latency,
        lane: Lane::Bulk,
        max_len,
        publishers: 1,
        subscribers: 1,
        index: 0,
    };
    let (there, back) = (topic("there"), topic("back"));
    let ping = Role::Pinger { there: there.clone(), back: back.clone(), loads: vec![load] };
    let label = "round trip".into();
    Job {
        variant: variant.into(),
        processes: vec![("pinger".into(), ping), ("echo".into(), Role::Echo { there, back })],
        phases: vec![PhasePlan { label, len: None, rate_hz: None, limited_to: None, seconds }],
        durable: false,
        cable: None,
    }
}
