//! One-way latency: over rate, size, number of readers and of writers, and under load.

use super::{Choice, Context, Job, KIB, MIB, PhasePlan, SMALL_LEN, Step, Workload, one_topic};
use bench_harness::spec::{Expect, Load, PublishSpec, Role, SubscribeSpec};
use bench_harness::{Lane, Profile, Result, Topic};

const EVENT_HZ: f64 = 100.0;
const BULK_LEN: usize = 64 * KIB;

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload {
            name: "latency",
            title: "One-way latency over rate",
            about: "64 bytes, one writer, one reader, at 10 kHz, 1 kHz, 100 Hz and 1 Hz; the last \
                    is each message after a second of silence.",
            systems: Choice::All,
            jobs: rates,
        },
        Workload {
            name: "sizes",
            title: "One-way latency over size",
            about: "16 bytes to 4 MiB at 100 Hz, one writer, one reader.",
            systems: Choice::All,
            jobs: sizes,
        },
        Workload {
            name: "readers",
            title: "One-way latency over the number of readers",
            about: "64 bytes at 1 kHz, one writer; 1, 2, 4 and 8 readers, each a process.",
            systems: Choice::These(&[
                "unix",
                "tcp",
                "rnet-adaptive",
                "rnet-block",
                "iceoryx2-event",
                "zmq-tcp",
                "zmq-ipc",
                "nng",
                "zenoh-tcp",
                "cyclonedds",
                "redis-pubsub",
                "nats",
                "lcm",
            ]),
            jobs: readers,
        },
        Workload {
            name: "publishers",
            title: "Ten publishers on one topic",
            about: "64 bytes at 100 Hz each; ten writers and one reader, each a process.",
            systems: Choice::These(&[
                "tcp",
                "rnet-adaptive",
                "rnet-block",
                "iceoryx2-event",
                "zmq-tcp",
                "zmq-ipc",
                "nng",
                "zenoh-tcp",
                "cyclonedds",
                "redis-pubsub",
                "nats",
                "lcm",
            ]),
            jobs: publishers,
        },
        Workload {
            name: "urgent",
            title: "An urgent event under bulk load",
            about: "A 64-byte event at 100 Hz, by each system's best means for urgent messages, \
                    first alone, then while the same two processes move 64 KiB messages as fast \
                    as they go.",
            systems: Choice::All,
            jobs: urgent,
        },
    ]
}

fn rates(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let step = |label, rate_hz, seconds: f64| {
        Step::paced(label, SMALL_LEN, rate_hz, (seconds * context.scale).max(2.0 / rate_hz))
    };
    let steps = [
        step("10 kHz", 1e4, 0.3),
        step("1 kHz", 1e3, 0.4),
        step("100 Hz", 100.0, 0.4),
        step("1 Hz", 1.0, 2.0),
    ];
    Ok(vec![one_topic("1->1", Profile::Latency, 1, 1, &steps)])
}

fn sizes(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let steps = [
        ("16 B", 16),
        ("1 KiB", KIB),
        ("16 KiB", 16 * KIB),
        ("64 KiB", 64 * KIB),
        ("256 KiB", 256 * KIB),
        ("1 MiB", MIB),
        ("4 MiB", 4 * MIB),
    ]
    .map(|(label, len)| Step::paced(label, len, 100.0, (0.16 * context.scale).max(0.05)));
    Ok(vec![one_topic("1->1", Profile::Latency, 1, 1, &steps)])
}

fn readers(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let steps = [Step::paced("1 kHz", SMALL_LEN, 1000.0, 0.3 * context.scale)];
    Ok([1, 2, 4, 8].map(|n| one_topic(&format!("1->{n}"), Profile::Latency, 1, n, &steps)).into())
}

fn publishers(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let steps = [Step::paced("100 Hz each", SMALL_LEN, 100.0, 0.5 * context.scale)];
    Ok(vec![one_topic("10->1", Profile::Latency, 10, 1, &steps)])
}

fn urgent(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let seconds = [0.5 * context.scale, 0.8 * context.scale];
    let (count, rate_hz) = (u64::MAX, None);
    let bulk = Load { len: BULK_LEN, count, seconds: seconds[1], rate_hz, filled: false };
    Ok(vec![event_beside("1->1", seconds, bulk)])
}

/// An event, alone for so many seconds, then for so many beside a load of bulk.
pub fn event_beside(variant: &str, seconds: [f64; 2], load: Load) -> Job {
    let topic = |name: &str, profile, lane, max_len| Topic {
        name: name.into(),
        profile,
        lane,
        max_len,
        publishers: 1,
        subscribers: 1,
        index: 0,
    };
    let event = topic("event", Profile::Latency, Lane::Urgent, SMALL_LEN);
    let bulk = topic("bulk", Profile::Throughput, Lane::Bulk, load.len);
    let events = seconds.map(|seconds| {
        let (count, rate_hz) = (u64::MAX, Some(EVENT_HZ));
        Some(Load { len: SMALL_LEN, count, seconds, rate_hz, filled: false })
    });
    let writer = Role::Peer {
        publishes: vec![
            PublishSpec { topic: event.clone(), loads: events.into() },
            PublishSpec { topic: bulk.clone(), loads: vec![None, Some(load)] },
        ],
        subscribes: Vec::new(),
    };
    let subscribe = |topic| SubscribeSpec { topic, expects: vec![Expect::default(); 2] };
    let reader =
        Role::Peer { publishes: Vec::new(), subscribes: vec![subscribe(event), subscribe(bulk)] };
    let phase = |label: &str, seconds| PhasePlan {
        label: label.into(),
        len: Some(SMALL_LEN),
        rate_hz: Some(EVENT_HZ),
        limited_to: None,
        seconds,
    };
    Job {
        variant: variant.into(),
        processes: vec![("publisher 0".into(), writer), ("subscriber 0".into(), reader)],
        phases: vec![phase("unloaded", seconds[0]), phase("loaded", seconds[1])],
        durable: false,
        cable: None,
    }
}
