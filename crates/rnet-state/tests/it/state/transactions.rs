//! Several keys at once: transactions and snapshots.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rnet::state::Value;
use rnet::{Error, limits};

use super::{int, refusal};
use crate::common::Net;

#[test]
fn a_transaction_writes_all_or_nothing() {
    let net = Net::new("a_transaction_writes_all_or_nothing");
    let state = net.node("n").state().unwrap();
    state.set("/gone", 1).unwrap();
    let mut t = state.transaction();
    assert_eq!(t.get("/a").unwrap(), None);
    t.set("/a", 1).unwrap();
    t.put("b").ttl(Duration::from_secs(100)).last_will(9).set(2).unwrap();
    t.delete("/gone").unwrap();
    // The transaction sees its own writes, and other handles do not.
    assert_eq!(t.get("/a").unwrap(), Some(1.into()));
    assert_eq!(t.get_as::<i64>("/b").unwrap(), Some(2));
    assert_eq!((t.get("/gone").unwrap(), t.get_as::<i64>("/gone").unwrap()), (None, None));
    assert!(refusal(t.get_as::<String>("/a")).contains("/a holds an integer, not a string"));
    assert_eq!((state.get("/a").unwrap(), int(&state, "/gone")), (None, Some(1)));
    let revision = t.commit().unwrap();
    for key in ["/a", "/b"] {
        assert_eq!(state.entry(key).unwrap().unwrap().revision, revision);
    }
    let b = state.entry("/b").unwrap().unwrap();
    assert!(b.expires_boot_ns.is_some() && b.last_will.is_some());
    assert_eq!(state.get("/gone").unwrap(), None);
    let before = state.revision();
    let mut t = state.transaction();
    t.set("/a", 5).unwrap();
    drop(t);
    assert_eq!((int(&state, "/a"), state.revision()), (Some(1), before));
    // One key has another type, so none is written.
    let mut t = state.transaction();
    t.set("/a", 2).unwrap();
    t.set("/b", "text").unwrap();
    assert!(refusal(t.commit()).contains("/b holds an integer, not a string"));
    let mut t = state.transaction();
    t.set("/a", 2).unwrap();
    t.set("/c", Value::Json("{".into())).unwrap();
    assert!(refusal(t.commit()).contains("it is not JSON"));
    assert_eq!((int(&state, "/a"), state.get("/c").unwrap()), (Some(1), None));
    let mut t = state.transaction();
    t.put("/b").change_type().set("text").unwrap();
    t.commit().unwrap();
    assert_eq!(state.get("/b").unwrap(), Some("text".into()));
}

#[test]
fn transaction_fails_if_a_read_value_changed() {
    let net = Net::new("transaction_fails_if_a_read_value_changed");
    let (state, other) = (net.node("n").state().unwrap(), net.node("o").state().unwrap());
    state.set("/read", 1).unwrap();
    state.set("/both", 1).unwrap();
    let conflict = |key: &str, result: Result<u64, Error>| match result {
        Err(Error::Conflict { key: of, .. }) => assert_eq!(of, key),
        other => panic!("{key}: {other:?}"),
    };
    for key in ["/read", "/both", "/absent"] {
        let mut t = state.transaction();
        t.get(key).unwrap();
        t.set("/both", 2).unwrap();
        t.set("/new", 2).unwrap();
        other.set(key, 3).unwrap();
        conflict(key, t.commit());
        assert_eq!(state.get("/new").unwrap(), None);
    }
    // A deletion counts as a write.
    let mut t = state.transaction();
    t.get("/read").unwrap();
    t.set("/new", 2).unwrap();
    other.delete("/read").unwrap();
    conflict("/read", t.commit());
    // If two reads of a key differ, the transaction reports it at once.
    let mut t = state.transaction();
    t.get("/both").unwrap();
    other.set("/both", 4).unwrap();
    conflict("/both", t.get("/both").map(|_| 0));
    // A read-only transaction checks that all reads are of one moment.
    let mut t = state.transaction();
    t.get("/both").unwrap();
    t.commit().unwrap();
    let mut t = state.transaction();
    t.get("/both").unwrap();
    other.set("/both", 5).unwrap();
    conflict("/both", t.commit());
}

#[test]
fn transact_retries_until_it_succeeds() {
    let net = Net::new("transact_retries_until_it_succeeds");
    let state = net.node("n").state().unwrap();
    let mut calls = 0;
    let sum = state.transact(|t| {
        calls += 1;
        let n = t.get_as::<i64>("/n")?.unwrap_or(0);
        if calls < 4 {
            state.set("/n", 10 * calls)?;
        }
        t.set("/n", n + 1)?;
        Ok(n + 1)
    });
    assert_eq!((sum.unwrap(), calls, int(&state, "/n")), (31, 4, Some(31)));
    let own = Error::BadValue { what: "mine".into(), why: "so".into() };
    assert_eq!(
        state.transact::<()>(|t| {
            t.set("/n", 0)?;
            Err(own.clone())
        }),
        Err(own)
    );
    assert_eq!(int(&state, "/n"), Some(31));
    let error = state.transact(|t| {
        t.get("/n")?;
        state.add("/n", 1)?;
        t.set("/x", 1)
    });
    let error = error.unwrap_err();
    assert_eq!(error.code(), "limit_reached");
    assert!(error.to_string().contains("10000 transaction attempts"), "{error}");
}

#[test]
fn transaction_size_is_limited() {
    let net = Net::new("transaction_size_is_limited");
    let state = net.node("n").state().unwrap();
    let mut t = state.transaction();
    for n in 0..limits::MAX_TRANSACTION_KEYS / 2 {
        t.get(&format!("/r{n}")).unwrap();
        t.set(&format!("/w{n}"), n as i64).unwrap();
    }
    t.set("/r0", 1).unwrap();
    t.get("/r1").unwrap();
    for error in [refusal(t.set("/more", 1)), refusal(t.get("/more")), refusal(t.delete("/more"))] {
        assert_eq!(
            error,
            "limit reached: 1024 keys in a transaction; split them over several transactions"
        );
    }
    t.commit().unwrap();
    assert_eq!(state.keys("/").unwrap().len(), limits::MAX_TRANSACTION_KEYS / 2 + 1);
}

#[test]
fn snapshot_shows_no_partial_transaction() {
    let net = Net::new("snapshot_shows_no_partial_transaction");
    const ACCOUNTS: usize = 8;
    const SUM: i64 = 8000;
    let bank = net.node("bank").state().unwrap();
    let key = |n: usize| format!("/account/{n}");
    bank.hash("/account").set_many((0..ACCOUNTS).map(|n| (n.to_string(), SUM / 8))).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let clerks: Vec<_> = (0..3_usize)
        .map(|n| {
            let (state, done) = (net.node(&format!("clerk{n}")).state().unwrap(), done.clone());
            std::thread::spawn(move || {
                let mut at = n;
                let mut moved = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    at = (at * 5 + 3 + n) % 64;
                    let (from, to) = (key(at % ACCOUNTS), key(at / ACCOUNTS));
                    let result = state.transact(|t| {
                        let have = t.get_as::<i64>(&from)?.unwrap();
                        t.set(&from, have - 3)?;
                        // If both accounts are the same, the read returns the value just set.
                        let have = t.get_as::<i64>(&to)?.unwrap();
                        t.set(&to, have + 3)
                    });
                    result.unwrap();
                    moved += 1;
                }
                moved
            })
        })
        .collect();
    let mut watch = bank.watch("/account").unwrap();
    let (mut looked, mut last) = (0, 0);
    while looked < 300 {
        let snapshot = bank.snapshot("/account").unwrap();
        let sum: i64 = snapshot.entries.values().map(|e| e.value.as_int().unwrap()).sum();
        assert_eq!((snapshot.entries.len(), sum), (ACCOUNTS, SUM));
        assert!(snapshot.entries.values().all(|entry| entry.revision <= snapshot.revision));
        looked += u64::from(snapshot.revision > last);
        last = snapshot.revision;
    }
    done.store(true, Ordering::Relaxed);
    let moved: u64 = clerks.into_iter().map(|clerk| clerk.join().unwrap()).sum();
    assert!(moved > 0);
    // The watch ends at the same contents.
    let mut reported = std::collections::BTreeMap::new();
    while let Some(change) = watch.try_recv().unwrap() {
        reported.insert(change.key, change.entry.unwrap());
    }
    assert_eq!(reported, bank.snapshot("/account").unwrap().entries);
}
