//! C++ beside Rust.

use super::{Choice, Context, Job, KIB, MIB, SMALL_LEN, Step, Workload, one_topic};
use bench_harness::{Profile, Result};

pub fn workloads() -> Vec<Workload> {
    vec![Workload {
        name: "cpp",
        title: "C++",
        about: "22 B, 1 KiB and 1 MiB as fast as possible, one writer, one reader; of 1 MiB the writer \
                writes each word, in place where the system lends memory. Then 64 bytes at 10 kHz. \
                Systems in C++ beside the same in Rust.",
        systems: Choice::These(&[
            "rnet-adaptive",
            "rnet-cpp",
            "zmq-tcp",
            "zmq-cpp",
            "cyclonedds",
            "cyclonedds-cpp",
            "iceoryx2-event",
            "iceoryx2-cpp",
            "ecal-cpp",
        ]),
        jobs,
    }]
}

fn jobs(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let step = |label, len| Step::flood(label, len, u64::MAX, 0.4 * context.scale);
    let mut loaned = step("1 MiB loaned", MIB);
    loaned.load.filled = true;
    let floods = [step("22 B", 22), step("1 KiB", KIB), loaned];
    let paced = [Step::paced("10 kHz", SMALL_LEN, 1e4, context.scale)];
    Ok(vec![
        one_topic("throughput", Profile::Throughput, 1, 1, &floods),
        one_topic("latency", Profile::Latency, 1, 1, &paced),
    ])
}
