//! Checks linearizability by trying every order of every choice of the unanswered operations: slow, and
//! short enough to be trusted.

use rnet_state_tests::history::Operation;
use rnet_state_tests::infer::infer;
use rnet_state_tests::spec::State;

/// Whether one order of the operations explains the history.
pub fn is_linearizable(history: &[Operation]) -> bool {
    let revisions = infer(history).revisions;
    let mut placed = vec![false; history.len()];
    try_all(history, &revisions, &mut placed, &State::default())
}

fn try_all(
    history: &[Operation],
    revisions: &[Option<u64>],
    placed: &mut [bool],
    state: &State,
) -> bool {
    let left = |at: usize, placed: &[bool]| !placed[at] && history[at].reply.is_some();
    if !(0..history.len()).any(|at| left(at, placed)) {
        return true;
    }
    for at in 0..history.len() {
        let called = history[at].called_ns;
        let returned = |other: usize| history[other].reply.as_ref().map_or(u64::MAX, |r| r.1);
        let too_early = |other: usize| left(other, placed) && returned(other) < called;
        if placed[at] || (0..history.len()).any(too_early) {
            continue;
        }
        if let Some(next) = state.step(&history[at], revisions[at]) {
            placed[at] = true;
            let found = try_all(history, revisions, placed, &next);
            placed[at] = false;
            if found {
                return true;
            }
        }
    }
    false
}
