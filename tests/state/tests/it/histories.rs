//! Four processes use the state at random and are killed: what they were told must be explained by one
//! order of what they did. `make soak` does so for as long as one likes.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rnet_state_tests::round::{self, Plan, Report};

fn run(plan: &Plan) -> Report {
    let binary = Path::new(env!("CARGO_BIN_EXE_rnet-state-tests"));
    let (report, _) = round::run(binary, plan).expect("the round can be run");
    assert!(report.killed > 0, "nobody was killed: {report:?}");
    judge(plan, report)
}

fn judge(plan: &Plan, report: Report) -> Report {
    println!("{plan:?}: {report:?}");
    for wrong in &report.wrong {
        println!("VIOLATION {wrong}");
    }
    assert_eq!(report.wrong.len(), 0, "seed {}; see the lines VIOLATION above", plan.seed);
    assert!(report.operations > 100, "hardly anything was done: {report:?}");
    assert!(report.told > 0, "the watches were told nothing: {report:?}");
    report
}

fn seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
    now.as_nanos() as u64
}

#[test]
fn what_the_threads_of_a_process_do_to_the_state_is_linearizable() {
    let life = Duration::ZERO;
    let plan = Plan { seed: seed(), lives: 1, life, operations: 1500, points: Vec::new() };
    let (report, _) = round::run_threads(&plan).expect("the round can be run");
    judge(&plan, report);
}

#[test]
fn what_killed_processes_did_to_the_state_is_linearizable() {
    let life = Duration::from_millis(25);
    let plan = Plan { seed: seed(), lives: 8, life, operations: 1500, points: Vec::new() };
    let report = run(&plan);
    assert!(report.open > 0, "nobody was killed in the middle of anything: {report:?}");
    assert!(report.wills > 0, "no last will was carried out: {report:?}");
}

#[cfg(debug_assertions)]
#[test]
fn what_processes_killed_at_fail_points_did_is_linearizable() {
    let points = rnet_state_tests::points::of_state();
    assert!(!points.is_empty(), "the state names no fail points");
    let mut killed = 0;
    for round in 0..3 {
        let life = Duration::from_millis(30);
        let seed = seed() ^ round;
        let plan = Plan { seed, lives: 12, life, operations: 2000, points: points.clone() };
        killed += run(&plan).at_points;
    }
    assert!(killed > 0, "no fail point killed anybody");
}
