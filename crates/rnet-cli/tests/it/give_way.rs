//! Programs that look on give way to the nodes of a robot, and what operates the robot does not.

use crate::util;

use std::collections::BTreeMap;
use std::fs;

use rnet_record::read::Recording;
use util::processes::{processes_of, until};
use util::terminal::Terminal;
use util::{Place, Pump, Running};

/// Policy and nice value of each thread of a process, by name; of threads of one name the least polite.
fn threads(pid: u32) -> BTreeMap<String, (i32, i32)> {
    let mut found = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let Ok(stat) = fs::read_to_string(task.path().join("stat")) else { continue };
        let (name, rest) = stat.rsplit_once(") ").unwrap();
        let name = name.split_once('(').unwrap().1.to_owned();
        // From the third field of proc_pid_stat(5) on: the nice value is the 19th, the policy the 41st.
        let fields: Vec<i32> =
            rest.split(' ').map(|field| field.trim().parse().unwrap_or(0)).collect();
        let is = (fields[41 - 3], fields[19 - 3]);
        let least = found.entry(name).or_insert(is);
        *least = is.min(*least);
    }
    found
}

const ORDINARY: (i32, i32) = (libc::SCHED_OTHER, 0);
const LATE: (i32, i32) = (libc::SCHED_BATCH, 0);
const RARE: (i32, i32) = (libc::SCHED_BATCH, 19);

/// The one process that was started in the place.
fn only_process(place: &Place) -> u32 {
    let processes = processes_of(place);
    let [pid] = processes[..] else { panic!("{processes:?}") };
    pid
}

#[test]
fn top_takes_nothing_that_a_node_wants_and_is_drawn_all_the_same() {
    let place = Place::new();
    let imu = place.node("imu");
    let pump = Pump::start(imu.publisher::<[u8]>("/angles").unwrap(), Box::from(*b"1"));
    let mut terminal = Terminal::start(&place, &["top", "--interval", "0.2"]);
    terminal.until("/angles");
    let threads = threads(only_process(&place));
    assert!(threads.values().all(|is| *is == RARE), "{threads:?}");
    terminal.type_in("q");
    assert_eq!(terminal.end(), Some(0));
    drop(pump);
}

#[test]
fn a_recorder_waits_for_its_turn_and_records_all() {
    let place = Place::new();
    let imu = place.node("imu");
    let file = place.dir.join("run.mcap");
    let mut recorder = place.spawn(&["record", "--json", "--output", file.to_str().unwrap()]);
    recorder.until_stdout("progress");
    let mut angles = imu.publisher::<[u8]>("/angles").unwrap();
    angles.send(b"0.25").unwrap();
    let found = threads(only_process(&place));
    for thread in ["rnet-rec-follow", "rnet-rec-write", "rnet-rec-sync"] {
        assert_eq!(found.get(thread), Some(&LATE), "{thread}: {found:?}");
    }
    // One that is told to stop before it has found the publisher records nothing of it.
    recorder.until_stdout("\"messages\":1,");
    recorder.signal("INT");
    let end = recorder.wait().json_lines().pop().unwrap();
    assert_eq!((&end["messages"], &end["missing"]), (&1.into(), &0.into()), "{end}");
    assert_eq!(Recording::open(&file).unwrap().channels().count(), 1);
}

#[test]
fn what_takes_part_does_not_give_way_and_a_word_keeps_all_as_they_are() {
    let place = Place::new();
    let publisher = place.spawn(&["topic", "pub", "/note", "--text", "hello", "--no-wait"]);
    let ordinary = |pid: u32| {
        let found = threads(pid);
        assert!(found.values().all(|is| *is == ORDINARY), "{found:?}");
    };
    until("it publishes", || {
        processes_of(&place).iter().any(|pid| threads(*pid).contains_key("rnet-control"))
    });
    ordinary(only_process(&place));
    drop(publisher);

    let mut command = place.command();
    command.args(["record", "--json", "--output"]).arg(place.dir.join("run.mcap"));
    command.env("RNET_TUNE_THREADS", "0");
    let mut recorder = Running::start(command);
    recorder.until_stdout("progress");
    ordinary(only_process(&place));
}
