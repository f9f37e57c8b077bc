//! Four processes use the state at random and are killed: one order of their operations must explain the
//! replies. `make soak` does so for a configured time.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rnet_state_tests::round::{self, Plan, Report};

fn run(plan: &Plan) -> Report {
    let binary = Path::new(env!("CARGO_BIN_EXE_rnet-state-tests"));
    let (report, _) = round::run(binary, plan).expect("cannot run the round");
    assert!(report.killed > 0, "no process was killed: {report:?}");
    judge(plan, report)
}

fn judge(plan: &Plan, report: Report) -> Report {
    println!("{plan:?}: {report:?}");
    for wrong in &report.wrong {
        println!("VIOLATION {wrong}");
    }
    assert_eq!(report.wrong.len(), 0, "seed {}; see the lines VIOLATION above", plan.seed);
    assert!(report.operations > 100, "too few operations were done: {report:?}");
    assert!(report.changes > 0, "the watches reported no changes: {report:?}");
    report
}

fn seed() -> u64 {
    let now =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is before 1970");
    now.as_nanos() as u64
}

#[test]
fn operations_of_threads_are_linearizable() {
    let life = Duration::ZERO;
    let plan = Plan { seed: seed(), lives: 1, life, operations: 1500, points: Vec::new() };
    let (report, _) = round::run_threads(&plan).expect("cannot run the round");
    judge(&plan, report);
}

#[test]
fn operations_of_killed_processes_are_linearizable() {
    let life = Duration::from_millis(25);
    let plan = Plan { seed: seed(), lives: 8, life, operations: 1500, points: Vec::new() };
    let report = run(&plan);
    assert!(report.open > 0, "no process was killed in the middle of an operation: {report:?}");
    assert!(report.wills > 0, "no last will was carried out: {report:?}");
}

#[cfg(debug_assertions)]
#[test]
fn operations_of_processes_killed_at_fail_points_are_linearizable() {
    let points = rnet_state_tests::points::of_state();
    assert!(!points.is_empty(), "the state has no fail points");
    let mut killed = 0;
    for round in 0..3 {
        let life = Duration::from_millis(30);
        let seed = seed() ^ round;
        let plan = Plan { seed, lives: 12, life, operations: 2000, points: points.clone() };
        killed += run(&plan).at_points;
    }
    assert!(killed > 0, "no fail point killed a process");
}
