//! Workloads beyond get and set: shared counters, durable values, watched keys.

use super::key_value::{load, number_of, phase};
use super::{Choice, Context, Job, SMALL_LEN, Step, Workload, one_topic_in};
use bench_harness::spec::{Call, Role};
use bench_harness::{Lane, Profile, Result};

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload {
            name: "state-cas",
            title: "State: counting together",
            about: "1 and 4 clients add one to the same key as fast as possible: by one call, and \
                    by compare-and-set (read the number, write the next on condition that nobody \
                    else has, begin again when somebody has). Then each reads the number, and a \
                    run in which it is not the sum of all that succeeded has failed.",
            systems: Choice::These(&[
                "rnet-state",
                "rnet-cell",
                "redis-kv",
                "redis-kv-tcp",
                "nats-kv",
            ]),
            jobs: counting,
        },
        Workload {
            name: "state-durable",
            title: "State: durable set",
            about: "1 and 4 clients, each with a key of its own; a set returns when its value is \
                    on disk. All keep their files in the same folder, on the disk that the \
                    section Machine names.",
            systems: Choice::These(&["rnet-state", "redis-kv", "redis-kv-async", "nats-kv"]),
            jobs: durable,
        },
        Workload {
            name: "state-watch",
            title: "State: from a set to its watcher",
            about: "One process sets a key to 64 stamped bytes, another watches it, at 1 kHz and \
                    10 kHz. Beside them the same bytes as an urgent message and as publish and \
                    subscribe. Lost: values that the watcher did not see because a newer one \
                    was there.",
            systems: Choice::These(&[
                "rnet-watch",
                "rnet-adaptive",
                "redis-keyspace",
                "redis-pubsub-unix",
                "nats-kv-watch",
                "nats",
            ]),
            jobs: watch,
        },
    ]
}

/// Additions to one key, then its number.
fn counting(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let seconds = 0.4 * context.scale;
    let job = |call: Call, text: &str, clients: usize| {
        let loads = vec![load(call, "/count", seconds), load(Call::Total, "/count", 0.0)];
        let client =
            |client| (format!("client {client}"), Role::KeyValue { client, loads: loads.clone() });
        Job {
            variant: format!("{text}, {}", number_of(clients)),
            processes: (0..clients).map(client).collect(),
            phases: vec![phase("count", seconds), phase("total", 0.01)],
            durable: false,
            cable: None,
        }
    };
    let calls = [(Call::Add, "add"), (Call::CompareAndSet, "compare and set")];
    Ok(calls.iter().flat_map(|(call, text)| [1, 4].map(|n| job(*call, text, n))).collect())
}

fn durable(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let seconds = context.scale;
    let client = |client: usize| {
        let loads = vec![load(Call::Set, &format!("/arm{client}"), seconds)];
        (format!("client {client}"), Role::KeyValue { client, loads })
    };
    let job = |clients: usize| Job {
        variant: number_of(clients),
        processes: (0..clients).map(client).collect(),
        phases: vec![phase("set", seconds)],
        durable: true,
        cable: None,
    };
    Ok(vec![job(1), job(4)])
}

fn watch(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let step = |label, rate_hz| Step::paced(label, SMALL_LEN, rate_hz, 0.5 * context.scale);
    let steps = [step("1 kHz", 1e3), step("10 kHz", 1e4)];
    Ok(vec![one_topic_in(Lane::Urgent, "1->1", Profile::Latency, 1, 1, &steps)])
}

/// A job in which four clients count.
#[cfg(test)]
pub fn counting_job() -> Job {
    let context = Context { scale: 1.0, repeat: 1, topology: Default::default() };
    counting(&context, 0).expect("always made").pop().expect("there are four")
}
