//! Handwritten histories, each right or wrong for one reason.

use rnet_state_tests::check::{Verdict, check};
use rnet_state_tests::history::{Call, Guard, Key, Operation, Put, Reply, Seen};

fn op(process: u32, called_ns: u64, call: Call, reply: Reply, returned_ns: u64) -> Operation {
    Operation { process, call, called_ns, reply: Some((reply, returned_ns)), part: false }
}

fn dead(process: u32, called_ns: u64, call: Call) -> Operation {
    Operation { process, call, called_ns, reply: None, part: false }
}

fn at(value: i64, revision: u64) -> Option<Seen> {
    Some(Seen { value, revision: Some(revision) })
}

fn set(key: Key, value: i64) -> Call {
    cas(key, value, None)
}

fn cas(key: Key, value: i64, expect: Option<u64>) -> Call {
    let writes = vec![Put { key, value: Some(value), expect }];
    Call::Commit { guards: Vec::new(), writes }
}

fn delete(key: Key) -> Call {
    let writes = vec![Put { key, value: None, expect: None }];
    Call::Commit { guards: Vec::new(), writes }
}

fn get(key: Key) -> Call {
    Call::Get { key }
}

fn done(revision: u64) -> Reply {
    Reply::Done { revision: Some(revision), changed: true }
}

fn refused(key: Key, found: u64) -> Reply {
    Reply::Conflict { key: Some(key), found: Some(found) }
}

fn right(history: &[Operation]) {
    assert_eq!(check(history), Verdict::Linearizable);
}

fn wrong(history: &[Operation]) {
    assert!(matches!(check(history), Verdict::Wrong(_)), "{:?}", check(history));
}

#[test]
fn one_after_the_other() {
    right(&[
        op(1, 0, get(0), Reply::Got(None), 1),
        op(1, 2, set(0, 10), done(1), 3),
        op(2, 4, get(0), Reply::Got(at(10, 1)), 5),
        op(2, 6, cas(0, 20, Some(1)), done(2), 7),
        op(1, 8, cas(0, 30, Some(1)), refused(0, 2), 9),
        op(1, 10, delete(0), done(3), 11),
        op(1, 12, delete(0), Reply::Done { revision: Some(0), changed: false }, 13),
        op(2, 14, get(0), Reply::Got(None), 15),
        op(2, 16, cas(0, 40, Some(0)), done(4), 17),
    ]);
}

#[test]
fn a_stale_read() {
    let history = |called| {
        [
            op(1, 0, set(0, 10), done(1), 1),
            op(1, 2, set(0, 20), done(2), 5),
            op(2, called, get(0), Reply::Got(at(10, 1)), 9),
        ]
    };
    right(&history(4));
    right(&history(5));
    wrong(&history(6));
}

#[test]
fn a_read_goes_back() {
    wrong(&[
        op(1, 0, set(0, 10), done(1), 1),
        op(1, 2, set(0, 20), done(2), 100),
        op(2, 10, get(0), Reply::Got(at(20, 2)), 11),
        op(3, 12, get(0), Reply::Got(at(10, 1)), 13),
    ]);
}

#[test]
fn a_lost_update() {
    let add = |process, called, sum, returned| {
        op(process, called, Call::Add { key: 0, delta: 1 }, Reply::Sum(sum), returned)
    };
    right(&[add(1, 0, 1, 10), add(2, 1, 2, 9)]);
    right(&[add(1, 0, 2, 10), add(2, 1, 1, 9)]);
    wrong(&[add(1, 0, 1, 10), add(2, 1, 1, 9)]);
}

#[test]
fn two_compare_and_sets_win() {
    wrong(&[
        op(1, 0, set(0, 10), done(1), 1),
        op(1, 2, cas(0, 20, Some(1)), done(2), 10),
        op(2, 2, cas(0, 30, Some(1)), done(3), 10),
    ]);
}

#[test]
fn a_dirty_read() {
    wrong(&[
        op(1, 0, set(0, 10), done(1), 1),
        op(2, 2, cas(0, 20, Some(7)), refused(0, 1), 9),
        op(1, 3, get(0), Reply::Got(at(20, 2)), 4),
    ]);
}

#[test]
fn value_that_was_never_written() {
    wrong(&[op(1, 0, get(0), Reply::Got(at(99, 1)), 1)]);
}

#[test]
fn snapshot_is_of_one_moment() {
    let picture = |revision, entries: &[Option<Seen>]| Reply::Snapshot {
        revision,
        entries: entries.to_vec(),
    };
    let history = |reply: Reply| {
        [
            op(1, 0, set(0, 10), done(1), 1),
            op(1, 2, set(0, 20), done(2), 3),
            op(1, 4, set(1, 30), done(3), 5),
            op(2, 0, Call::Snapshot { keys: vec![0, 1] }, reply, 9),
        ]
    };
    right(&history(picture(1, &[at(10, 1), None])));
    right(&history(picture(2, &[at(20, 2), None])));
    right(&history(picture(3, &[at(20, 2), at(30, 3)])));
    wrong(&history(picture(3, &[at(10, 1), at(30, 3)])));
    // The right values under another revision.
    wrong(&history(picture(3, &[at(20, 2), None])));
    wrong(&history(picture(2, &[at(20, 2), at(30, 3)])));
}

#[test]
fn a_resurrected_delete() {
    wrong(&[
        op(1, 0, set(0, 10), done(1), 1),
        op(1, 2, delete(0), done(2), 3),
        op(2, 4, get(0), Reply::Got(at(10, 1)), 5),
    ]);
}

#[test]
fn dead_process_may_have_written_and_its_write_persists() {
    let first = op(1, 0, set(0, 10), done(1), 1);
    let killed = dead(2, 2, set(0, 20));
    let old = |called| op(3, called, get(0), Reply::Got(at(10, 1)), called + 1);
    let new = |called| op(3, called, get(0), Reply::Got(at(20, 2)), called + 1);
    right(&[first.clone(), killed.clone(), old(10)]);
    right(&[first.clone(), killed.clone(), new(10)]);
    right(&[first.clone(), killed.clone(), old(10), new(20)]);
    wrong(&[first.clone(), killed.clone(), new(10), old(20)]);
    wrong(&[first, killed, new(0)]);
}

#[test]
fn unread_write_of_a_dead_process_is_inferred() {
    let killed = dead(1, 0, set(0, 20));
    // A delete found the key, so it had existed.
    right(&[killed.clone(), op(2, 5, delete(0), done(2), 6)]);
    wrong(&[op(2, 5, delete(0), done(2), 6)]);
    // It caused another operation's conflict.
    right(&[killed.clone(), op(2, 5, cas(0, 30, Some(0)), refused(0, 1), 6)]);
    wrong(&[op(2, 5, cas(0, 30, Some(0)), refused(0, 1), 6)]);
    let add = op(2, 5, Call::Add { key: 0, delta: 1 }, Reply::Sum(21), 6);
    right(&[killed, add.clone()]);
    wrong(&[add]);
}

#[test]
fn a_transaction_is_all_or_nothing() {
    let both = |value| Call::Commit {
        guards: vec![Guard { key: 2, seen: None }],
        writes: [0, 1].map(|key| Put { key, value: Some(value), expect: None }).to_vec(),
    };
    let read = |called, key, seen| op(9, called, get(key), Reply::Got(seen), called + 1);
    right(&[op(1, 0, both(10), done(1), 9), read(3, 0, at(10, 1)), read(5, 1, at(10, 1))]);
    wrong(&[op(1, 0, both(10), done(1), 9), read(3, 0, at(10, 1)), read(5, 1, None)]);
    right(&[dead(1, 0, both(10)), read(3, 0, at(10, 1)), read(5, 1, at(10, 1))]);
    wrong(&[dead(1, 0, both(10)), read(3, 0, at(10, 1)), read(5, 1, None)]);
    // The values that it had read have changed.
    wrong(&[op(2, 0, set(2, 5), done(1), 1), op(1, 2, both(10), done(2), 9)]);
    right(&[op(2, 0, set(2, 5), done(1), 1), op(1, 2, both(10), refused(2, 1), 9)]);
    wrong(&[
        op(2, 0, set(2, 5), done(1), 1),
        op(1, 2, both(10), refused(2, 1), 9),
        read(20, 0, at(10, 2)),
    ]);
}

#[test]
fn revisions_grow_across_keys() {
    right(&[op(1, 0, set(0, 10), done(1), 1), op(1, 2, set(1, 20), done(2), 3)]);
    wrong(&[op(1, 0, set(0, 10), done(2), 1), op(1, 2, set(1, 20), done(1), 3)]);
    wrong(&[op(1, 0, set(0, 10), done(1), 1), op(1, 2, set(1, 20), done(1), 3)]);
    wrong(&[op(1, 0, set(0, 10), done(2), 1), op(1, 2, Call::Revision, Reply::Revision(1), 3)]);
}

#[test]
fn will_follows_the_last_operation_of_its_process() {
    let will = dead(1, 5, Call::Will { key: 0, of: 10, becomes: Some(99) });
    let first = op(1, 0, set(0, 10), done(1), 1);
    let read = |called, seen| op(2, called, get(0), Reply::Got(seen), called + 1);
    right(&[first.clone(), will.clone(), read(9, at(99, 2))]);
    right(&[first.clone(), will.clone(), read(9, at(10, 1)), read(19, at(99, 2))]);
    wrong(&[first.clone(), will.clone(), read(2, at(99, 2))]);
    // Another process had written there since.
    let other = op(2, 2, set(0, 20), done(2), 3);
    wrong(&[first, other, will, read(9, at(99, 3))]);
}
