//! Tests of the checker: right histories, histories that are wrong in one known way, a simulated state with
//! faults, and an exhaustive search.

mod by_hand;
mod naive;
mod sim;

use rnet_state_tests::check::{Verdict, check, search};
use rnet_state_tests::history::{Operation, Reply};
use rnet_survival::rng::Rng;

use sim::{FAULTS, Fault, Sim};

/// Steps that a search of a short history may take.
const STEPS: u64 = 3_000_000;

#[test]
fn histories_of_a_right_state_are_accepted() {
    for seed in 0..200 {
        let history = Sim::run(Fault::None, seed, 4, 120, 60);
        let verdict = check(&history);
        assert!(verdict.is_right(), "seed {seed}: {verdict:?}");
    }
}

#[test]
fn long_history_with_many_dead_processes_is_checked() {
    let history = Sim::run(Fault::None, 7, 6, 8000, 300);
    let dead = history.iter().filter(|op| op.reply.is_none()).count();
    assert!(dead > 50, "only {dead} operations were not answered");
    assert_eq!(check(&history), Verdict::Linearizable);
}

#[test]
fn each_fault_is_detected() {
    for fault in FAULTS {
        let mut found = 0;
        for seed in 0..60 {
            let lives = if fault == Fault::FinishedTwice { 10 } else { 60 };
            let history = Sim::run(fault, seed, 4, 120, lives);
            found += u32::from(matches!(check(&history), Verdict::Wrong(_)));
        }
        println!("{fault:?}: found in {found} of 60 histories");
        assert!(found >= 20, "{fault:?} was found in {found} of 60 histories");
    }
}

/// Changes one reply of a history.
fn spoil(history: &mut [Operation], rng: &mut Rng) {
    let at = rng.below(history.len() as u64) as usize;
    let other = history[rng.below(history.len() as u64) as usize].reply.clone();
    match (&mut history[at].reply, other) {
        (Some((Reply::Got(seen), _)), Some((Reply::Got(other), _))) => *seen = other,
        (Some((Reply::Sum(sum), _)), _) => *sum += 1,
        (Some((Reply::Done { revision, .. }, _)), _) => *revision = None,
        (Some((Reply::Conflict { found, .. }, _)), _) => *found = None,
        (Some((Reply::Snapshot { revision, .. }, _)), _) => *revision += 1,
        (reply, _) => *reply = None,
    }
}

#[test]
fn search_agrees_with_exhaustive_search() {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let fault = if seed % 3 == 0 { Fault::None } else { FAULTS[seed as usize % FAULTS.len()] };
        let mut history = Sim::run(fault, seed, 3, 7, 60);
        if seed % 2 == 0 {
            spoil(&mut history, &mut rng);
        }
        let expected = naive::is_linearizable(&history);
        let verdict = search(&history, STEPS);
        assert_eq!(verdict.is_right(), expected, "seed {seed}: {verdict:?}\n{history:#?}");
        *(if expected { &mut right } else { &mut wrong }) += 1;
    }
    println!("{right} right, {wrong} wrong");
    assert!(right > 200 && wrong > 200, "{right} right, {wrong} wrong");
}

#[test]
fn failure_of_a_key_is_a_failure_of_the_history() {
    for seed in 0..60 {
        let history = Sim::run(Fault::StaleRead, seed, 3, 40, 60);
        if let Verdict::Wrong(stuck) = check(&history) {
            assert_ne!(search(&history, STEPS), Verdict::Linearizable, "seed {seed}: {stuck}");
        }
    }
}
