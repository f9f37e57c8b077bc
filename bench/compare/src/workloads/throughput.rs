//! Messages of more than a few bytes as fast as they go; the work in Python; the check of all drivers.

use super::{Choice, Context, Job, KIB, MIB, SMALL_LEN, Step, Workload, one_topic};
use bench_harness::{Profile, Result};

/// Limit of unread bytes of one size in systems that store them.
const IN_STORE_LEN: usize = 1024 * MIB;

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload {
            name: "throughput",
            title: "Larger messages as fast as possible",
            about: "1 KiB, 64 KiB and 1 MiB, one writer, one reader. `1 MiB filled`: the writer \
                    writes each word, in place where the system lends memory, and the reader sums \
                    all of them.",
            systems: Choice::All,
            jobs: throughput,
        },
        Workload {
            name: "python",
            title: "Python",
            about: "22-byte messages, stamped, packed, received and unpacked one by one: as fast \
                    as possible, then 64 bytes at 1 kHz.",
            systems: Choice::Python,
            jobs: python,
        },
        Workload {
            name: "carry",
            title: "Every driver carries",
            about: "1,000 checked messages of 0 B, 22 B and 1 MiB: no figure, a test.",
            systems: Choice::Compiled,
            jobs: carry,
        },
    ]
}

fn throughput(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let seconds = 0.3 * context.scale;
    let step = |label, len| Step::flood(label, len, (IN_STORE_LEN / len) as u64, seconds);
    let mut filled = step("1 MiB filled", MIB);
    filled.load.filled = true;
    let steps = [step("1 KiB", KIB), step("64 KiB", 64 * KIB), step("1 MiB", MIB), filled];
    Ok(vec![one_topic("1->1", Profile::Throughput, 1, 1, &steps)])
}

fn python(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let flood = [Step::flood("flood", 22, 2_000_000, 0.5 * context.scale)];
    let paced = [Step::paced("1 kHz", SMALL_LEN, 1000.0, 0.5 * context.scale)];
    Ok(vec![
        one_topic("throughput", Profile::Throughput, 1, 1, &flood),
        one_topic("latency", Profile::Latency, 1, 1, &paced),
    ])
}

fn carry(_context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let flood = |label, len| Step::flood(label, len, 1000, 60.0);
    let paced = |label, len, rate_hz, count| {
        let mut step = Step::paced(label, len, rate_hz, 60.0);
        step.load.count = count;
        step
    };
    let floods = [flood("0 B", 0), flood("22 B", 22), flood("1 MiB", MIB)];
    // For systems that by design lose messages that arrive too fast, and for the other profile of all
    // systems.
    let gently = [
        paced("0 B", 0, 2000.0, 1000),
        paced("22 B", 22, 2000.0, 1000),
        paced("1 MiB", MIB, 250.0, 1000),
    ];
    let mut jobs = vec![
        one_topic("flood", Profile::Throughput, 1, 1, &floods),
        one_topic("paced", Profile::Latency, 1, 1, &gently),
    ];
    // They end by count; a second each is what to expect.
    jobs.iter_mut().flat_map(|job| &mut job.phases).for_each(|phase| phase.seconds = 1.0);
    Ok(jobs)
}
