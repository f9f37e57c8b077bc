//! Key-value stores: study 1's get and set, and one kind of call at a time.

use super::{Choice, Context, Job, KIB, MIB, PhasePlan, Workload};
use bench_harness::Result;
use bench_harness::spec::{Call, KeyValueLoad, Role};

/// Bytes of a value, as in the founding study.
pub const VALUE_LEN: usize = 22;

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload {
            name: "study1-kv",
            title: "Study 1: get and set",
            about: "One client sets a key as fast as possible, one or four others get it as fast \
                    as possible. A reader sees a value more than once, or not at all: `distinct` \
                    counts those that it saw.",
            systems: Choice::Stores,
            jobs: study1,
        },
        Workload {
            name: "state",
            title: "State: set and get",
            about: "22 bytes; 1 and 4 clients, each with a key of its own, one kind of call at a \
                    time.",
            systems: Choice::Stores,
            jobs: state,
        },
        Workload {
            name: "state-sizes",
            title: "State: set and get over size",
            about: "22 bytes to 1 MiB, one client, one call in flight.",
            systems: Choice::These(&[
                "rnet-state",
                "rnet-cell",
                "redis-kv",
                "redis-kv-tcp",
                "nats-kv",
            ]),
            jobs: sizes,
        },
    ]
}

/// A stretch of calls with values of [`VALUE_LEN`] bytes.
pub fn load(call: Call, key: &str, seconds: f64) -> KeyValueLoad {
    KeyValueLoad { call, key: key.into(), len: VALUE_LEN, seconds, aged: false }
}

/// A phase of such values.
pub fn phase(label: &str, seconds: f64) -> PhasePlan {
    let len = Some(VALUE_LEN);
    PhasePlan { label: label.into(), len, rate_hz: None, limited_to: None, seconds }
}

/// "1 client", "4 clients".
pub fn number_of(clients: usize) -> String {
    if clients == 1 { "1 client".into() } else { format!("{clients} clients") }
}

fn study1(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let seconds = 0.5 * context.scale;
    let client = |client, call| {
        let load = KeyValueLoad { aged: true, ..load(call, "/hello", seconds) };
        Role::KeyValue { client, loads: vec![load] }
    };
    let job = |readers: usize| {
        let mut processes = vec![("setter 0".to_owned(), client(0, Call::Set))];
        processes.extend((1..=readers).map(|i| (format!("getter {i}"), client(i, Call::Get))));
        Job {
            variant: format!("1->{readers}"),
            processes,
            phases: vec![phase("set and get", seconds)],
            durable: false,
            cable: None,
        }
    };
    Ok(vec![job(1), job(4)])
}

fn state(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let seconds = 0.4 * context.scale;
    let client = |client: usize| {
        let key = format!("/arm{client}");
        let loads = vec![load(Call::Set, &key, seconds), load(Call::Get, &key, seconds)];
        (format!("client {client}"), Role::KeyValue { client, loads })
    };
    let job = |clients: usize| Job {
        variant: number_of(clients),
        processes: (0..clients).map(client).collect(),
        phases: vec![phase("set", seconds), phase("get", seconds)],
        durable: false,
        cable: None,
    };
    Ok(vec![job(1), job(4)])
}

fn sizes(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let seconds = 0.2 * context.scale;
    let sizes = [("22 B", VALUE_LEN), ("1 KiB", KIB), ("64 KiB", 64 * KIB), ("1 MiB", MIB)];
    let calls: Vec<_> =
        [Call::Set, Call::Get].into_iter().flat_map(|call| sizes.map(|s| (call, s))).collect();
    let loads = calls.iter().map(|(call, (_, len))| {
        // A key for each size: a get finds what the sets of its size have left.
        KeyValueLoad { len: *len, ..load(*call, &format!("/map{len}"), seconds) }
    });
    let phases = calls.iter().map(|(call, (text, len))| PhasePlan {
        len: Some(*len),
        ..phase(&format!("{} {text}", call.name()), seconds)
    });
    let client = Role::KeyValue { client: 0, loads: loads.collect() };
    Ok(vec![Job {
        variant: number_of(1),
        processes: vec![("client 0".into(), client)],
        phases: phases.collect(),
        durable: false,
        cable: None,
    }])
}
