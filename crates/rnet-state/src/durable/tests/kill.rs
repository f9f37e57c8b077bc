//! A persister process is killed during commits, at random moments.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::store::Commit;
use super::*;

const FOLDER: &str = "RNET_TEST_DURABLE_FOLDER";
const ROUNDS: u64 = 40;
const KEYS: u64 = 5;

/// The child process: commits endlessly, and prints one line per acknowledged commit.
#[test]
#[ignore = "started by a test"]
fn child_entry() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut candidate = PersisterCandidate::new(StateFolder::at(PathBuf::from(folder)), host(3));
    let mut store = acquire(&mut candidate);
    assert_eq!(candidate.take_reports(), []);
    let mut n = contents_of(&store).1;
    // Ends when its output is closed, whatever happens to the parent.
    loop {
        n += 1;
        let value = vec![n as u8; 20 + (n % 7 * 2000) as usize];
        let keys: Vec<_> = (0..KEYS).map(|i| format!("/k{i}")).collect();
        let changes: Vec<_> = keys.iter().map(|key| set(key, &value, n)).collect();
        assert_eq!(store.commit(&changes, n), Ok(Commit::Done));
        let mut out = std::io::stdout().lock();
        if writeln!(out, "\n@@{n}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

#[test]
fn a_killed_persister_leaves_what_it_acknowledged() {
    let place = TestFolder::new();
    let mut rng = TestRng(99);
    let mut last = 0;
    let entry = format!("{}::child_entry", module_path!().split_once("::").unwrap().1);
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &entry, "--ignored", "--nocapture", "--test-threads=1"])
            .env(FOLDER, place.folder().path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let acknowledged =
            BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut acknowledged =
            acknowledged.filter_map(|line| line.strip_prefix("@@")?.parse::<u64>().ok());
        for _ in 0..=rng.next(12) {
            last = acknowledged.next().expect("the child commits");
        }
        // At any moment of a commit, not only at its end.
        let until = std::time::Instant::now() + Duration::from_micros(rng.next(3000));
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        last = acknowledged.last().unwrap_or(last);
        child.wait().unwrap();
        let mut again = candidate(&place, round);
        let store = acquire(&mut again);
        assert_eq!(again.take_reports(), []);
        let (held, revision) = contents_of(&store);
        assert!(revision == last || revision == last + 1, "{revision}, {last} was acknowledged");
        assert_eq!(held.len() as u64, KEYS);
        for (key, (value, of)) in held {
            assert_eq!(of, revision, "{key}: all keys of a commit or none");
            assert!(value.iter().all(|byte| *byte == revision as u8), "{key} is half-written");
        }
    }
    assert!(last > ROUNDS);
}
