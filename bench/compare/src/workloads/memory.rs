//! Memory of many topics with little traffic.

use super::{Choice, Context, Job, PhasePlan, Workload};
use bench_harness::spec::{Expect, Load, PublishSpec, Role, SubscribeSpec};
use bench_harness::{Lane, Profile, Result, Topic};

/// Processes that publish, and as many that subscribe.
const PROCESSES: usize = 10;
/// Topics of each process; with a scale below 1, fewer.
const TOPICS: usize = 100;
const LEN: usize = 100;
const RATE_HZ: f64 = 10.0;
const SECONDS: f64 = 5.0;

pub fn workloads() -> Vec<Workload> {
    vec![Workload {
        name: "memory",
        title: "Memory of many topics",
        about: "100 bytes at 10 Hz on each of 1,000 topics: ten processes with 100 writers each, ten \
                with 100 readers each. Beside it the same processes with one topic each, which is what \
                the processes themselves take. Measured at the end of the phase, in the first \
                repetition only. Sockets' buffers are the kernel's and in no figure.",
        systems: Choice::These(&[
            "unix",
            "rnet-adaptive",
            "iceoryx2-event",
            "zmq-tcp",
            "zmq-ipc",
            "zenoh-tcp",
            "cyclonedds",
            "redis-pubsub",
            "nats",
        ]),
        jobs,
    }]
}

fn jobs(context: &Context, repetition: usize) -> Result<Vec<Job>> {
    if repetition > 0 {
        return Ok(Vec::new());
    }
    let many = (TOPICS as f64 * context.scale.min(1.0)).ceil() as usize;
    Ok([1, many.max(2)].map(|each| job(each, (SECONDS * context.scale).max(1.0))).into())
}

fn job(each: usize, seconds: f64) -> Job {
    let topic = |process: usize, number: usize| Topic {
        name: format!("stream_{process}_{number}"),
        profile: Profile::Latency,
        lane: Lane::Bulk,
        max_len: LEN,
        publishers: 1,
        subscribers: 1,
        index: 0,
    };
    let rate_hz = Some(RATE_HZ);
    let load = Load { len: LEN, count: u64::MAX, seconds, rate_hz, filled: false };
    let expect = Expect { len: LEN, ..Expect::default() };
    let publish = |process| Role::Peer {
        publishes: (0..each)
            .map(|n| PublishSpec { topic: topic(process, n), loads: vec![Some(load.clone())] })
            .collect(),
        subscribes: Vec::new(),
    };
    let subscribe = |process| Role::Peer {
        publishes: Vec::new(),
        subscribes: (0..each)
            .map(|n| SubscribeSpec { topic: topic(process, n), expects: vec![expect.clone()] })
            .collect(),
    };
    let publishing = (0..PROCESSES).map(|i| (format!("publisher {i}"), publish(i)));
    let subscribing = (0..PROCESSES).map(|i| (format!("subscriber {i}"), subscribe(i)));
    Job {
        variant: format!("{} topics", PROCESSES * each),
        processes: publishing.chain(subscribing).collect(),
        phases: vec![PhasePlan {
            label: "10 Hz each".into(),
            len: Some(LEN),
            rate_hz,
            limited_to: None,
            seconds,
        }],
        durable: false,
        cable: None,
    }
}
