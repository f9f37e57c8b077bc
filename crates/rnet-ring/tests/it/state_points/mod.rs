//! Tests the algorithms of the state at each pass of each fail point: a process slot dies there, or is
//! suspended while another one executes an operation, and then continues.
//!
//! loom does this for small programs. These tests have fewer interleavings but complete operations: one
//! operation of another process slot runs between any two steps of the first. Results and final content must
//! equal those of a sequential execution, and nothing may be left over from the dead process slot.

mod harness;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use rnet_ring::failpoint;
use rnet_ring::state::layout::Geometry;
use rnet_ring::state::{LocalBlocks, Region};

use harness::{OTHER, Operation, Outcome, SWEEPER, StateView, VICTIM, Words};
use harness::{fill_and_empty, nothing_is_left_over, perform, picture, sweep};

/// Tested passes of one fail point in one operation.
const PASSES: usize = 12;

/// Called at a fail point.
type Hook = Box<dyn FnMut(&'static str)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// How a process slot dies in a test: it unwinds, and its private lists are dropped.
struct Killed;

fn pass(name: &'static str) {
    // Not while the hook itself runs.
    let hook = HOOK.with(|at| at.borrow_mut().take());
    if let Some(mut hook) = hook {
        hook(name);
        HOOK.with(|at| *at.borrow_mut() = Some(hook));
    }
}

/// Runs something with a hook at each fail point; `None` if it was killed.
fn hooked<T>(hook: Hook, what: impl FnOnce() -> T) -> Option<T> {
    failpoint::install(pass);
    HOOK.with(|at| *at.borrow_mut() = Some(hook));
    let outcome = catch_unwind(AssertUnwindSafe(what));
    HOOK.with(|at| at.borrow_mut().take());
    match outcome {
        Ok(out) => Some(out),
        Err(payload) if payload.is::<Killed>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// A hook that kills at the given pass of a point.
fn kill_at(point: &'static str, at: usize) -> Hook {
    let mut passed = 0;
    Box::new(move |name| {
        if name == point {
            passed += 1;
            if passed == at {
                resume_unwind(Box::new(Killed));
            }
        }
    })
}

/// The fail points that an operation passes, each with its number of passes.
fn passes(what: impl FnOnce()) -> Vec<(&'static str, usize)> {
    let all: std::rc::Rc<RefCell<Vec<(&'static str, usize)>>> = Default::default();
    let list = all.clone();
    let note: Hook = Box::new(move |name| {
        let mut list = list.borrow_mut();
        let before = list.iter().filter(|(n, _)| *n == name).count();
        list.push((name, before + 1));
    });
    hooked(note, what).expect("the hook does not kill");
    let all = all.borrow().clone();
    all.into_iter().filter(|(_, at)| *at <= PASSES).collect()
}

fn set(key: &'static str, byte: u8) -> (&'static str, Option<(u8, usize)>) {
    (key, Some((byte, 40)))
}

/// Operations of a victim; their values begin at `byte`. The keys /a/1, /a/2, /b exist, at the revisions 141,
/// 142, 143.
fn acts(byte: u8) -> Vec<Operation> {
    let all =
        |writes: &[(&'static str, Option<(u8, usize)>)]| Operation::Commit(writes.to_vec(), vec![]);
    vec![
        all(&[set("/a/1", byte)]),
        all(&[set("/a/new", byte)]),
        all(&[("/a/1", None)]),
        all(&[("/none", None)]),
        all(&[set("/none", byte)]),
        all(&[("/a/2", Some((byte, 700)))]),
        all(&[("/large", Some((byte, 100_000)))]),
        Operation::If("/a/1", Some((byte, 40)), 141),
        Operation::If("/a/1", None, 141),
        Operation::If("/a/new", Some((byte, 40)), 0),
        all(&[set("/a/1", byte), set("/a/2", byte), set("/b", byte)]),
        all(&[set("/b", byte), ("/a/1", None), set("/a/new", byte)]),
        all(&[("/a/1", None), ("/a/2", None)]),
        // So many that some of them share a slot.
        all(&["/a/k0", "/a/k1", "/a/k2", "/a/k3", "/a/k4", "/a/k5", "/a/k6", "/a/k7"]
            .map(|key| set(key, byte))),
        Operation::Commit(vec![set("/b", byte)], vec![("/a/1", 141)]),
        Operation::Commit(vec![set("/a/1", byte), set("/b", byte)], vec![("/none", 0)]),
        Operation::Commit(vec![set("/a/1", byte)], vec![("/b", 7)]),
        Operation::Commit(vec![], vec![("/a/1", 141), ("/b", 143)]),
        Operation::Get("/a/1"),
        Operation::Snapshot,
        Operation::Burst("/a/2", 3),
    ]
}

/// Both results, and the final content.
type OutcomePair = (Outcome, Outcome, StateView);

/// Executes both in sequence.
fn in_order(first: &Operation, second: &Operation) -> (Outcome, Outcome, StateView) {
    let words = Words::new();
    let (region, mut victim) = words.begin();
    let mut other = LocalBlocks::new(OTHER);
    let outcomes = (perform(&region, &mut victim, first), perform(&region, &mut other, second));
    (outcomes.0, outcomes.1, picture(&region, SWEEPER).1)
}

/// Executes both in reverse order.
fn in_reverse(first: &Operation, second: &Operation) -> OutcomePair {
    let words = Words::new();
    let (region, mut victim) = words.begin();
    let mut other = LocalBlocks::new(OTHER);
    let second = perform(&region, &mut other, second);
    let first = perform(&region, &mut victim, first);
    (first, second, picture(&region, SWEEPER).1)
}

/// Executes `first`, and all of `second` at a fail point within it.
fn in_between(
    first: &Operation,
    second: &Operation,
    point: &'static str,
    at: usize,
) -> OutcomePair {
    let words = std::rc::Rc::new(Words::new());
    let (region, mut victim) = words.begin();
    let shared = words.clone();
    let outcomes: std::rc::Rc<RefCell<Option<(Outcome, LocalBlocks)>>> = Default::default();
    let (tell, then, mut passed) = (outcomes.clone(), second.clone(), 0);
    let hook: Hook = Box::new(move |name| {
        passed += usize::from(name == point);
        if name == point && passed == at {
            let mut other = LocalBlocks::new(OTHER);
            let done = perform(&shared.region(), &mut other, &then);
            *tell.borrow_mut() = Some((done, other));
        }
    });
    let first =
        hooked(hook, || perform(&region, &mut victim, first)).expect("the hook does not kill");
    let (second, other) = outcomes.borrow_mut().take().expect("the point is passed");
    let (_, after) = picture(&region, SWEEPER);
    nothing_is_left_over(&region, &mut [victim, other], "after both");
    (first, second, after)
}

#[test]
fn operation_between_any_two_steps_of_another() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for first in acts(10) {
        let words = Words::new();
        let (region, mut victim) = words.begin();
        let points = passes(|| drop(perform(&region, &mut victim, &first)));
        for second in acts(20) {
            let right = [in_order(&first, &second), in_reverse(&first, &second)];
            for (point, at) in &points {
                count += 1;
                let run = || in_between(&first, &second, point, *at);
                let what = format!("{first:?}, at {point}@{at} {second:?}");
                match catch_unwind(run) {
                    // A burst is several operations: here it only has to end without leftovers.
                    Ok(outcome) if right.contains(&outcome) || is_burst(&first) => {}
                    Ok(outcome) => {
                        wrong.push(format!("{what}:\n  {outcome:?}\n  not\n  {right:#?}"))
                    }
                    Err(_) => wrong.push(format!("{what}: a panic")),
                }
            }
        }
    }
    println!("{count} interleavings");
    wrong.iter().take(20).for_each(|what| println!("WRONG {what}"));
    assert!(count > 1000, "only {count} interleavings");
    assert_eq!(wrong.len(), 0, "of {count} interleavings");
}

/// A process that is suspended while the journal wraps several times, and then continues with its loaded
/// values, neither corrupts newer entries nor changes the order.
#[test]
fn journal_laps_between_any_two_steps_of_an_operation() {
    let laps = Operation::Burst("/b", 5 << Geometry::SMALL.journal_bits);
    let mut count = 0;
    for first in acts(10) {
        let words = Words::new();
        let (region, mut victim) = words.begin();
        let right = [in_order(&first, &laps), in_reverse(&first, &laps)];
        for (point, at) in passes(|| drop(perform(&region, &mut victim, &first))) {
            count += 1;
            let outcome = in_between(&first, &laps, point, at);
            let fits = right.contains(&outcome) || is_burst(&first);
            assert!(fits, "{first:?}, stopped at {point}@{at}: {outcome:?} not {right:#?}");
        }
    }
    assert!(count > 100, "only {count} interleavings");
}

/// Possible contents after a death within an operation: the one before it, or the one after it.
fn either(act: &Operation) -> [StateView; 2] {
    let words = Words::new();
    let (region, mut victim) = words.begin();
    let (_, before) = picture(&region, SWEEPER);
    perform(&region, &mut victim, act);
    [before, picture(&region, SWEEPER).1]
}

/// Each value of a burst is visible.
fn is_burst(act: &Operation) -> bool {
    matches!(act, Operation::Burst(..))
}

/// The content is unchanged, or the operation of the dead process slot was completed once.
fn same_or_later(first: &StateView, second: &StateView, may: &[StateView; 2], what: &str) {
    let [before, after] = may;
    let later = first == before && second == after;
    let burst = second.get("/a/2").is_some_and(|seen| seen.2 == 200);
    assert!(first == second || later || burst, "{what}: {first:?}, and then {second:?}");
}

fn die(
    region: &Region<'_>,
    victim: &mut LocalBlocks,
    act: &Operation,
    point: &'static str,
    at: usize,
) {
    let done = hooked(kill_at(point, at), || perform(region, victim, act));
    assert!(done.is_none(), "{point}@{at} was not passed");
}

#[test]
fn death_at_any_step_leaves_old_or_new_state() {
    let mut count = 0;
    let mut points_met = BTreeSet::new();
    for act in acts(10) {
        let may = either(&act);
        let words = Words::new();
        let (region, mut victim) = words.begin();
        for (point, at) in passes(|| drop(perform(&region, &mut victim, &act))) {
            count += 1;
            points_met.insert(point);
            let what = format!("{act:?} killed at {point}@{at}");
            let words = Words::new();
            let (region, mut victim) = words.begin();
            die(&region, &mut victim, &act, point, at);
            let (_, first) = picture(&region, OTHER);
            assert!(may.contains(&first) || is_burst(&act), "{what}: {first:?}");
            let mut sweeper = LocalBlocks::new(SWEEPER);
            sweep(&region, &mut sweeper, VICTIM);
            same_or_later(&first, &picture(&region, OTHER).1, &may, &what);
            // Other processes can write the keys as before.
            let mut other = LocalBlocks::new(OTHER);
            for next in acts(20) {
                perform(&region, &mut other, &next);
            }
            nothing_is_left_over(&region, &mut [other, sweeper], &what);
        }
    }
    println!("{count} deaths at {} points: {points_met:?}", points_met.len());
    assert!(count > 100, "only {count} deaths");
    for point in ["state.expanded", "state.installed", "state.retired", "state.visible"] {
        assert!(points_met.contains(point), "{point} was not passed");
    }
}

#[test]
fn death_during_a_sweep_leaves_nothing_over() {
    let mut count = 0;
    for act in acts(10) {
        let may = either(&act);
        let words = Words::new();
        let (region, mut victim) = words.begin();
        for (point, at) in passes(|| drop(perform(&region, &mut victim, &act))) {
            let dead = || {
                let words: Words = Words::new();
                let (region, mut victim) = words.begin();
                die(&region, &mut victim, &act, point, at);
                let (_, first) = picture(&region, OTHER);
                (words, first)
            };
            let (words, first) = dead();
            let region = words.region();
            let mut sweeper = LocalBlocks::new(SWEEPER);
            let steps = passes(|| sweep(&region, &mut sweeper, VICTIM));
            for (step, nth) in steps.into_iter().filter(|(_, nth)| *nth <= 3) {
                count += 1;
                let what = format!("{act:?} killed at {point}@{at}, its sweep at {step}@{nth}");
                let (words, _) = dead();
                let region = words.region();
                let mut sweeper = LocalBlocks::new(SWEEPER);
                let done = hooked(kill_at(step, nth), || sweep(&region, &mut sweeper, VICTIM));
                assert!(done.is_none(), "{what}: not passed");
                let (_, second) = picture(&region, OTHER);
                same_or_later(&first, &second, &may, &what);
                let mut other = LocalBlocks::new(OTHER);
                sweep(&region, &mut other, SWEEPER);
                sweep(&region, &mut other, VICTIM);
                same_or_later(&second, &picture(&region, OTHER).1, &may, &what);
                nothing_is_left_over(&region, &mut [other], &what);
            }
        }
    }
    println!("{count} deaths in sweeps");
    assert!(count > 100, "only {count} deaths");
}

#[test]
fn death_while_reclaiming_slabs_leaves_nothing_over() {
    let act = Operation::Commit(vec![("/other", Some((10, 300)))], vec![]);
    let full = || {
        let words = Words::new();
        let (region, mut first) = words.begin();
        fill_and_empty(&region, &mut first);
        words
    };
    let words = full();
    let points = passes(|| drop(perform(&words.region(), &mut LocalBlocks::new(VICTIM), &act)));
    let empties = points.iter().any(|(point, _)| *point == "state.emptying");
    assert!(empties, "no slab had to be emptied: {points:?}");
    for (point, at) in points {
        let words = full();
        let region = words.region();
        let mut victim = LocalBlocks::new(VICTIM);
        die(&region, &mut victim, &act, point, at);
        let (mut sweeper, mut other) = (LocalBlocks::new(SWEEPER), LocalBlocks::new(OTHER));
        sweep(&region, &mut sweeper, VICTIM);
        let large = Operation::Commit(vec![("/large", Some((10, 100_000)))], vec![]);
        assert!(matches!(perform(&region, &mut other, &large), Outcome::At(1..)), "{point}@{at}");
        assert!(matches!(perform(&region, &mut other, &act), Outcome::At(1..)), "{point}@{at}");
        nothing_is_left_over(&region, &mut [other, sweeper], point);
    }
}
