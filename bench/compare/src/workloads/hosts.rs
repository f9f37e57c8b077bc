//! The work between two hosts.

use super::latency::event_beside;
use super::{Choice, Context, Job, KIB, MIB, SMALL_LEN, Step, Workload, one_topic};
use crate::hosts::Cable;
use bench_harness::spec::Load;
use bench_harness::{Profile, Result};

const SYSTEMS: Choice =
    Choice::These(&["rnet-adaptive", "zenoh-tcp", "cyclonedds", "zmq-tcp", "nats"]);
/// 640 × 480 pixels of three bytes.
const IMAGE_LEN: usize = 640 * 480 * 3;
/// Of what the cable can carry in the time: so much is sent, so that it is never idle.
const OVERLOAD: f64 = 1.5;

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload {
            name: "hosts-throughput",
            title: "Between two hosts: as fast as possible",
            about: "22 B, 1 KiB and 1 MiB from one host to another: network namespaces, joined by \
                    veth of an MTU of 1500. robot-net has an rnet-link process on each; the server of \
                    NATS is on the publisher's host.",
            systems: SYSTEMS,
            jobs: throughput,
        },
        Workload {
            name: "hosts-latency",
            title: "Between two hosts: one-way latency and CPU",
            about: "64 B and 1 KiB at 1 kHz from one host to another. Both share one clock.",
            systems: SYSTEMS,
            jobs: latency,
        },
        Workload {
            name: "hosts-readers",
            title: "Between two hosts: one and ten subscribers",
            about: "1 KiB at 1 kHz to one subscriber on the other host, and to ten, each a process. \
                    Bytes are those on the cable, both ways, as the kernel counts \
                    them: of TCP before it is cut into frames.",
            systems: SYSTEMS,
            jobs: readers,
        },
        Workload {
            name: "hosts-urgent",
            title: "Between two hosts: an urgent event beside images",
            about: "A 64-byte event at 100 Hz, by each system's best means for urgent messages, \
                    first alone, then while the same two processes move images of 900 KiB as fast \
                    as they go, half as many again as the cable can carry in the time. The cable is \
                    shaped (tbf) to 20 Mbit/s and to 1 Gbit/s.",
            systems: SYSTEMS,
            jobs: urgent,
        },
    ]
}

fn on_two_hosts(job: Job) -> Job {
    Job { cable: Some(Cable::default()), ..job }
}

fn throughput(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let step = |label, len| Step::flood(label, len, u64::MAX, 0.8 * context.scale);
    let steps = [step("22 B", 22), step("1 KiB", KIB), step("1 MiB", MIB)];
    Ok(vec![on_two_hosts(one_topic("1->1", Profile::Throughput, 1, 1, &steps))])
}

fn latency(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let step = |label, len| Step::paced(label, len, 1000.0, 1.5 * context.scale);
    let steps = [step("64 B", SMALL_LEN), step("1 KiB", KIB)];
    Ok(vec![on_two_hosts(one_topic("1->1", Profile::Latency, 1, 1, &steps))])
}

fn readers(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let steps = [Step::paced("1 kHz", KIB, 1000.0, context.scale)];
    let job = |n| on_two_hosts(one_topic(&format!("1->{n}"), Profile::Latency, 1, n, &steps));
    Ok(vec![job(1), job(10)])
}

fn urgent(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let seconds = [1.5 * context.scale, 2.0 * context.scale];
    let job = |title: &str, mbit_per_s: u32| {
        let fits = f64::from(mbit_per_s) * 1e6 / 8.0 * seconds[1] / IMAGE_LEN as f64;
        let count = (OVERLOAD * fits).ceil() as u64;
        let images =
            Load { len: IMAGE_LEN, count, seconds: seconds[1], rate_hz: None, filled: false };
        let cable = Some(Cable { mbit_per_s: Some(mbit_per_s) });
        Job { cable, ..event_beside(title, seconds, images) }
    };
    Ok(vec![job("20 Mbit/s", 20), job("1 Gbit/s", 1000)])
}
