//! Writers that are killed repeatedly, in other processes: their memory is freed.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rnet_shm::state::{Region, StoredValue, Write};

use super::{TestDomain, nothing_is_left};

/// Number of killed writers.
const ROUNDS: u64 = 30;
/// The directory in which a killed writer writes.
const DIR: &str = "RNET_STATE_MODEL_DIR";

fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn write<'a>(key: &'a str, bytes: Option<&'a [u8]>) -> Write<'a> {
    let value = bytes.map(|bytes| StoredValue {
        kind: 1,
        type_id: 0,
        bytes,
        will: None,
        expires_boot_ns: 0,
    });
    Write { key, value, expect: None, durable: None }
}

fn commit(region: &Region, writes: &[Write<'_>]) {
    region.commit(writes, &[], &mut |_, _| Ok(())).expect("a write without conditions");
}

/// The writer's side, which the parent kills.
#[test]
#[ignore = "a process of the test below"]
fn writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let domain = TestDomain::of_parent(PathBuf::from(dir));
    let region = domain.region("/victim");
    println!("\nready");
    let buf = vec![7; 300_000];
    for step in 0.. {
        let dice = mix(step);
        let len = match dice % 64 {
            0 => 200_000,
            1..8 => 5_000,
            _ => 60,
        };
        let (one, other) = (format!("/k/{}", dice >> 8 & 63), format!("/k/{}", dice >> 16 & 63));
        let bytes = (dice >> 24 & 3 != 0).then(|| &buf[..len]);
        if one != other && dice >> 32 & 3 == 0 {
            commit(&region, &[write(&one, bytes), write(&other, bytes)]);
        } else {
            commit(&region, &[write(&one, bytes)]);
        }
        if dice >> 40 & 63 == 0 {
            region.snapshot("/k").expect("a snapshot");
        }
    }
}

#[test]
fn writers_that_are_killed_leave_no_garbage() {
    let domain = TestDomain::new();
    let region = domain.region("/sweeper");
    let mut slabs = Vec::new();
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().expect("this binary has a path"))
            .args([
                "--exact",
                "state_model::killed::writes_until_it_is_killed",
                "--ignored",
                "--nocapture",
            ])
            .env(DIR, domain.base())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the writer starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let ready = out.lines().map_while(Result::ok).any(|line| line == "ready");
        assert!(ready, "the writer exited by itself");
        std::thread::sleep(Duration::from_micros(mix(round) % 20_000)); // sleep: the writer's lifetime
        child.kill().expect("the writer can be killed");
        child.wait().expect("the writer can be waited for");
        while region.has_dead() {
            region.sweep_dead();
        }
        let usage = region.usage();
        assert_eq!(usage.transactions, 0, "round {round}: {usage:?}");
        let (_, keys) = region.snapshot("/").expect("a snapshot");
        assert_eq!(usage.leaves, keys.len() as u64, "round {round}: {usage:?}");
        slabs.push(usage.slabs);
    }
    println!("{slabs:?}");
    // More dead writers do not use more memory. The memory of living ones varies.
    let (first, last) = slabs.split_at(slabs.len() / 2);
    let most = |slabs: &[u64]| slabs.iter().max().copied().unwrap_or_default();
    assert!(2 * most(last) <= 3 * most(first), "{slabs:?}");
    let (_, keys) = region.snapshot("/").expect("a snapshot");
    for record in keys {
        commit(&region, &[write(record.key(), None)]);
    }
    drop(region);
    nothing_is_left(&domain);
}
