//! Key-value stores: state, and study 1's get and set.

use super::{Choice, Context, Job, PhasePlan, Workload};
use bench_harness::Result;
use bench_harness::spec::{Call, KeyValueLoad, Role};

const VALUE_LEN: usize = 22;

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
            about: "1 and 4 clients, each with a key of its own, one kind of call at a time.",
            systems: Choice::Stores,
            jobs: state,
        },
    ]
}

fn load(call: Call, key: &str, seconds: f64) -> KeyValueLoad {
    KeyValueLoad { call, key: key.into(), len: VALUE_LEN, seconds }
}

fn phase(label: &str, seconds: f64) -> PhasePlan {
    let len = Some(VALUE_LEN);
    PhasePlan { label: label.into(), len, rate_hz: None, limited_to: None, seconds }
}

fn study1(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let seconds = 0.5 * context.scale;
    let client =
        |client, call| Role::KeyValue { client, loads: vec![load(call, "hello", seconds)] };
    let job = |readers: usize| {
        let mut processes = vec![("setter 0".to_owned(), client(0, Call::Set))];
        processes.extend((1..=readers).map(|i| (format!("getter {i}"), client(i, Call::Get))));
        Job {
            variant: format!("1->{readers}"),
            processes,
            phases: vec![phase("set and get", seconds)],
        }
    };
    Ok(vec![job(1), job(4)])
}

fn state(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let seconds = 0.4 * context.scale;
    let client = |client: usize| {
        let key = format!("arm{client}");
        let loads = vec![load(Call::Set, &key, seconds), load(Call::Get, &key, seconds)];
        (format!("client {client}"), Role::KeyValue { client, loads })
    };
    let job = |clients: usize| Job {
        variant: if clients == 1 { "1 client".into() } else { format!("{clients} clients") },
        processes: (0..clients).map(client).collect(),
        phases: vec![phase("set", seconds), phase("get", seconds)],
    };
    Ok(vec![job(1), job(4)])
}
