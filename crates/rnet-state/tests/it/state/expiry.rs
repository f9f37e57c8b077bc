//! Keys with a time to live, under the test's own clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rnet::state::State;

use super::int;
use crate::common::Net;

const SECOND: u64 = 1_000_000_000;

/// A clock, and the states of two nodes that use it.
fn clocked(net: &Net) -> (Arc<AtomicU64>, State, State) {
    let clock = Arc::new(AtomicU64::new(1_800_000_000 * SECOND));
    let state = |name: &str| {
        let clock = clock.clone();
        rnet::binding::state_with_clocks(
            &net.node(name),
            || 5,
            move || clock.load(Ordering::SeqCst),
            1,
        )
        .unwrap()
    };
    let (a, b) = (state("a"), state("b"));
    (clock, a, b)
}

#[test]
fn key_is_absent_after_expiry() {
    let net = Net::new("key_is_absent_after_expiry");
    let (clock, a, b) = clocked(&net);
    a.put("/k").ttl(Duration::from_secs(10)).set(1).unwrap();
    clock.fetch_add(10 * SECOND - 1, Ordering::SeqCst);
    assert_eq!(int(&b, "/k"), Some(1));
    clock.fetch_add(1, Ordering::SeqCst);
    assert_eq!(int(&b, "/k"), None);
    assert_eq!(b.entry("/k").unwrap(), None);
    assert!(b.list("/").unwrap().is_empty() && b.keys("/").unwrap().is_empty());
    assert_eq!(a.cell::<i64>("/k").unwrap().get().unwrap(), None);
    assert_eq!(a.transaction().get("/k").unwrap(), None);
    // Absent for conditions, types and counters, too.
    b.put("/k").if_absent().ttl(Duration::from_secs(1)).set("text").unwrap();
    clock.fetch_add(SECOND, Ordering::SeqCst);
    assert_eq!(b.add("/k", 5).unwrap(), 5);
    clock.fetch_add(100 * SECOND, Ordering::SeqCst);
    assert_eq!(int(&a, "/k"), Some(5), "it was written without a time");
}

#[test]
fn writing_again_renews_the_time() {
    let net = Net::new("writing_again_renews_the_time");
    let (clock, a, b) = clocked(&net);
    for n in 0..5 {
        a.put("/alive").ttl(Duration::from_secs(2)).set(n).unwrap();
        clock.fetch_add(SECOND, Ordering::SeqCst);
        assert_eq!(int(&b, "/alive"), Some(n));
    }
    clock.fetch_add(SECOND, Ordering::SeqCst);
    assert_eq!(int(&b, "/alive"), None);
    a.put("/ever").ttl(Duration::MAX).set(1).unwrap();
    clock.store(u64::MAX - 1, Ordering::SeqCst);
    assert_eq!(int(&b, "/ever"), Some(1));
}

#[test]
fn every_watch_reports_an_expiry_once() {
    let net = Net::new("every_watch_reports_an_expiry_once");
    let (clock, a, b) = clocked(&net);
    let mut watches = [a.watch("/").unwrap(), b.watch("/k").unwrap(), b.watch("/").unwrap()];
    a.put("/k").ttl(Duration::from_secs(1)).set(1).unwrap();
    a.put("/k2").ttl(Duration::from_secs(3)).set(2).unwrap();
    for watch in &mut watches {
        assert_eq!(watch.try_recv().unwrap().unwrap().entry.unwrap().value, 1.into());
    }
    clock.fetch_add(SECOND, Ordering::SeqCst);
    let mut revisions = Vec::new();
    for watch in &mut watches {
        let gone = loop {
            let change = watch.try_recv().unwrap().unwrap();
            if change.key == "/k" {
                break change;
            }
        };
        assert!(gone.expired == Some(true) && gone.entry.is_none() && gone.skipped == Some(0));
        revisions.push(gone.revision);
        assert_eq!(watch.try_recv().unwrap(), None);
    }
    assert!(
        revisions.iter().all(|revision| *revision == revisions[0]),
        "one change for all watches"
    );
    // A deletion is distinguished from expiry.
    b.delete("/k2").unwrap();
    let gone = watches[0].try_recv().unwrap().unwrap();
    assert!(gone.expired == Some(false) && gone.entry.is_none() && gone.key == "/k2");
    clock.fetch_add(10 * SECOND, Ordering::SeqCst);
    assert_eq!(watches[0].try_recv().unwrap(), None, "the expiry is reported once");
}

#[test]
fn renewed_key_is_not_reported_as_expired() {
    let net = Net::new("renewed_key_is_not_reported_as_expired");
    let (clock, a, b) = clocked(&net);
    let mut watch = b.watch("/k").unwrap();
    a.put("/k").ttl(Duration::from_secs(1)).set(1).unwrap();
    assert!(watch.try_recv().unwrap().is_some());
    a.put("/k").ttl(Duration::from_secs(5)).set(2).unwrap();
    clock.fetch_add(2 * SECOND, Ordering::SeqCst);
    let change = watch.try_recv().unwrap().unwrap();
    assert_eq!(change.entry.unwrap().value, 2.into());
    assert_eq!(watch.try_recv().unwrap(), None);
    assert_eq!(int(&a, "/k"), Some(2));
}

#[test]
fn wait_ends_at_expiry() {
    let net = Net::new("wait_ends_at_expiry");
    // Uses the machine's clock: a sleeper must wake when the time to live ends.
    let state = net.node("n").state().unwrap();
    let mut watch = state.watch("/k").unwrap();
    state.put("/k").ttl(Duration::from_millis(20)).set(1).unwrap();
    assert!(watch.recv_timeout(crate::common::LONG).unwrap().entry.is_some());
    let gone = watch.recv_timeout(crate::common::LONG).unwrap();
    assert!(gone.expired == Some(true) && gone.entry.is_none());
}
