//! Watches: blocking, by callback, async.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use rnet::Error;
use rnet::state::{Change, ChangeStream, State, Watch};

use super::{int, refusal};
use crate::common::{LONG, Net, block_on, eventually};

/// More changes than a journal holds for so few keys.
const MANY: i64 = 100_000;

fn key_and_int(change: &Change) -> (&str, Option<i64>) {
    (&change.key, change.entry.as_ref().map(|entry| entry.value.as_int().unwrap()))
}

fn drain(watch: &mut Watch) -> Vec<Change> {
    std::iter::from_fn(|| watch.try_recv().unwrap()).collect()
}

#[test]
fn existing_keys_come_first_then_each_change_in_order() {
    let net = Net::new("existing_keys_come_first_then_each_change_in_order");
    let (a, b) = (net.node("a").state().unwrap(), net.node("b").state().unwrap());
    for (key, value) in [("/arm/y", 1), ("/army", 2), ("/arm/x", 3)] {
        a.set(key, value).unwrap();
    }
    let mut watch = b.watch("/arm").unwrap();
    a.set("/arm/y", 4).unwrap();
    a.set("/army", 5).unwrap();
    a.set("/arm", 6).unwrap();
    a.delete("/arm/x").unwrap();
    a.set("/arm/x", 7).unwrap();
    let changes = drain(&mut watch);
    let seen: Vec<_> = changes.iter().map(key_and_int).collect();
    assert_eq!(
        seen,
        [
            ("/arm/x", Some(3)),
            ("/arm/y", Some(1)),
            ("/arm/y", Some(4)),
            ("/arm", Some(6)),
            ("/arm/x", None),
            ("/arm/x", Some(7)),
        ]
    );
    assert_eq!(changes.iter().filter(|change| change.initial).count(), 2);
    assert!(changes[1..].is_sorted_by_key(|change| change.revision));
    assert!(
        changes.iter().all(|change| change.skipped == Some(0) && change.expired == Some(false))
    );
    let entry = changes[2].entry.as_ref().unwrap();
    assert_eq!((entry.owner.node.as_str(), entry.version), ("/a", 2));
    assert_eq!(watch.try_recv().unwrap(), None);
    assert_eq!(drain(&mut b.watch("/none").unwrap()), []);
}

#[test]
fn wait_ends_with_a_change_a_timeout_or_an_interrupt() {
    let net = Net::new("wait_ends_with_a_change_a_timeout_or_an_interrupt");
    let (a, b) = (net.node("a").state().unwrap(), net.node("b").state().unwrap());
    let mut watch = b.watch("/k").unwrap();
    let error = watch.recv_timeout(Duration::from_millis(5)).unwrap_err();
    assert!(
        error.to_string().starts_with("timed out after 5 ms waiting for a change under /k; "),
        "{error}"
    );
    let interrupter = watch.interrupter();
    interrupter.interrupt();
    assert_eq!(watch.recv_timeout(LONG).unwrap_err(), Error::Interrupted);
    let (ask, asked) = mpsc::channel();
    let (tell, receiver) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        for timeout in asked {
            let change = match timeout {
                Some(timeout) => watch.recv_timeout(timeout),
                None => watch.recv(),
            };
            tell.send(change).unwrap();
        }
    });
    for n in 0..50 {
        ask.send(None).unwrap();
        a.set("/k", n).unwrap();
        assert_eq!(key_and_int(&receiver.recv().unwrap().unwrap()), ("/k", Some(n)));
        ask.send(Some(LONG)).unwrap();
        a.set("/other", n).unwrap();
        interrupter.interrupt();
        assert_eq!(receiver.recv().unwrap().unwrap_err(), Error::Interrupted);
    }
    drop(ask);
    waiting.join().unwrap();
    let mut watch = b.watch("/k").unwrap();
    let values: Vec<_> = watch.iter().take(1).map(|change| change.unwrap().key).collect();
    assert_eq!(values, ["/k"]);
}

#[test]
fn a_slow_watch_gets_the_newest_and_the_count_of_the_rest() {
    let net = Net::new("a_slow_watch_gets_the_newest_and_the_count_of_the_rest");
    let state = net.node("n").state().unwrap();
    for key in ["/a", "/gone", "/still"] {
        state.set(key, 0).unwrap();
    }
    let mut watch = state.watch("/").unwrap();
    assert_eq!(drain(&mut watch).len(), 3);
    state.delete("/gone").unwrap();
    for n in 1..=MANY {
        state.set("/a", n).unwrap();
    }
    state.set("/new", 1).unwrap();
    state.set("/new", 2).unwrap();
    let (mut last, mut counted) = (BTreeMap::new(), BTreeMap::new());
    for change in drain(&mut watch) {
        match change.skipped {
            Some(skipped) => *counted.entry(change.key.clone()).or_insert(0) += 1 + skipped as i64,
            // They may have been reported before, while the journal wrapped.
            None => assert!(["/gone", "/new"].contains(&&*change.key), "{change:?}"),
        }
        last.insert(change.key.clone(), change.entry.map(|entry| entry.value.as_int().unwrap()));
    }
    let expected = [("/a", Some(MANY)), ("/gone", None), ("/new", Some(2))];
    assert_eq!(last, expected.map(|(key, value)| (key.to_owned(), value)).into());
    assert_eq!(counted["/a"], MANY, "reported and skipped add up to all");
    assert_eq!(watch.try_recv().unwrap(), None);
    // The watch continues.
    state.set("/a", -1).unwrap();
    let change = watch.try_recv().unwrap().unwrap();
    assert_eq!((key_and_int(&change), change.skipped), (("/a", Some(-1)), Some(0)));
}

#[test]
fn a_watch_never_misses_the_last_value() {
    let net = Net::new("a_watch_never_misses_the_last_value");
    const KEYS: usize = 5;
    const WRITES: i64 = 4000;
    let reader = net.node("reader").state().unwrap();
    let mut watch = reader.watch("/k").unwrap();
    let write = |n: usize| {
        let state = net.node(&format!("w{n}")).state().unwrap();
        move || {
            for i in 1..=WRITES {
                let key = format!("/k/{n}/{}", i as usize % KEYS);
                if i % 97 == 0 && i < WRITES - 100 {
                    state.delete(&key).unwrap();
                } else {
                    state.set(&key, i).unwrap();
                }
            }
        }
    };
    let writers: Vec<_> = (0..3).map(|n| std::thread::spawn(write(n))).collect();
    let mut picture: BTreeMap<String, i64> = BTreeMap::new();
    let (mut revision, mut reported) = (0, 0);
    let last: Vec<i64> = (0..KEYS as i64).map(|k| WRITES - (WRITES - k) % KEYS as i64).collect();
    let full = |picture: &BTreeMap<String, i64>| {
        (0..3).all(|n| (0..KEYS).all(|k| picture.get(&format!("/k/{n}/{k}")) == last.get(k)))
    };
    while !full(&picture) {
        let change = watch.recv_timeout(LONG).unwrap();
        reported += 1;
        assert!(change.revision >= revision, "in the order of the revisions");
        revision = change.revision;
        match change.entry {
            Some(entry) => picture.insert(change.key, entry.value.as_int().unwrap()),
            None => picture.remove(&change.key),
        };
    }
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(watch.try_recv().unwrap(), None, "the last change arrives last");
    assert!(reported > 0 && reader.keys("/k").unwrap().len() == 3 * KEYS);
}

/// Sets a key and waits until a callback has received it.
fn until_heard(state: &State, received: &AtomicU64, value: u64) {
    state.set("/k", value as i64).unwrap();
    eventually("the callback receives it", || received.load(Ordering::SeqCst) == value);
}

#[test]
fn callbacks_are_called_until_their_handle_is_dropped() {
    let net = Net::new("callbacks_are_called_until_their_handle_is_dropped");
    let node = net.node("n");
    let state = node.state().unwrap();
    state.set("/k", 1).unwrap();
    let received: [Arc<AtomicU64>; 2] = Default::default();
    let on = |n: usize, prefix: &str| {
        let received = received[n].clone();
        state.watch(prefix).unwrap().on(move |change| {
            let value = change.entry.unwrap().value.as_int().unwrap();
            received.store(value as u64, Ordering::SeqCst);
        })
    };
    let (first, second) = (on(0, "/k"), on(1, "/"));
    assert_eq!(first.error(), None);
    eventually("both receive the existing keys", || {
        received.iter().all(|received| received.load(Ordering::SeqCst) == 1)
    });
    until_heard(&state, &received[1], 2);
    until_heard(&state, &received[0], 2);
    drop(first);
    until_heard(&state, &received[1], 3);
    assert_eq!(received[0].load(Ordering::SeqCst), 2);
    // A callback that panics is not called again, and affects no other callback.
    let panics = state.watch("/k").unwrap().on(|_| panic!("this panic is part of the test"));
    until_heard(&state, &received[1], 4);
    until_heard(&state, &received[1], 5);
    drop(panics);
    second.detach();
    until_heard(&state, &received[1], 6);
    // A callback may drop its own handle.
    let place = Arc::new(Mutex::new(None));
    let calls = Arc::new(AtomicU64::new(0));
    let handle = state.watch("/self").unwrap().on({
        let (place, calls) = (place.clone(), calls.clone());
        move |_| {
            calls.fetch_add(1, Ordering::SeqCst);
            drop(place.lock().unwrap().take());
        }
    });
    *place.lock().unwrap() = Some(handle);
    state.set("/self", 1).unwrap();
    eventually("the callback is gone", || place.lock().unwrap().is_none());
    state.set("/self", 2).unwrap();
    until_heard(&state, &received[1], 7);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn the_node_ends_with_its_callbacks() {
    let net = Net::new("the_node_ends_with_its_callbacks");
    let other = net.node("other").state().unwrap();
    let node = net.node("n");
    let state = node.state().unwrap();
    let alive = Arc::new(());
    state
        .watch("/")
        .unwrap()
        .on({
            let alive = alive.clone();
            move |_| drop(alive.clone())
        })
        .detach();
    state.put("/k").last_will_delete().set(1).unwrap();
    drop((state, node));
    assert_eq!(Arc::strong_count(&alive), 1, "the callback is gone");
    assert_eq!(other.get("/k").unwrap(), None, "the node is closed with it");
    // The last handle may be dropped inside a callback.
    let node = net.node("n");
    let state = node.state().unwrap();
    let (tell, gone) = mpsc::channel();
    let mut held = Some((node, state.clone()));
    state
        .watch("/go")
        .unwrap()
        .on(move |_| {
            drop(held.take());
            tell.send(()).unwrap();
        })
        .detach();
    drop(state);
    other.set("/go", 1).unwrap();
    gone.recv_timeout(LONG).unwrap();
}

#[test]
fn slow_callback_skips_overwritten_values() {
    let net = Net::new("slow_callback_skips_overwritten_values");
    let state = net.node("n").state().unwrap();
    let (entered, enters) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let _handle = state.watch("/k").unwrap().on_result(move |result| {
        let change = result.unwrap();
        let value = change.entry.unwrap().value.as_int().unwrap();
        entered.send((value, change.skipped)).unwrap();
        let _ = released.recv();
    });
    state.set("/k", 0).unwrap();
    assert_eq!(enters.recv().unwrap(), (0, Some(0)));
    for n in 1..=MANY {
        state.set("/k", n).unwrap();
    }
    drop(release);
    let (mut seen, mut last) = (0, 0);
    while last != MANY {
        let (value, skipped) = enters.recv_timeout(LONG).unwrap();
        seen += 1 + skipped.unwrap() as i64;
        last = value;
    }
    assert_eq!(seen, MANY, "each change was reported or counted");
}

/// Records whether it was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Polls `recv` once, writes, and drops the future when its task is woken, as a timeout does.
#[test]
fn change_future_dropped_after_its_wake_has_taken_nothing() {
    let net = Net::new("a_future_of_a_change_that_is_dropped");
    let (a, b) = (net.node("a").state().unwrap(), net.node("b").state().unwrap());
    let mut stream = b.watch("/k").unwrap().into_stream();
    for n in 0..500 {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        {
            let mut future = pin!(stream.recv());
            assert!(future.as_mut().poll(&mut context).is_pending());
            a.set("/k", n).unwrap();
            while !woken.0.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        assert!(stream.poll_ready(&mut context).is_ready());
        let change = match n % 3 {
            0 => block_on(stream.recv()).unwrap(),
            1 => stream.try_recv().unwrap().unwrap(),
            _ => {
                let mut watch = stream.into_source().unwrap();
                let change = watch.try_recv().unwrap().unwrap();
                stream = watch.into_stream();
                change
            }
        };
        assert_eq!((key_and_int(&change), change.skipped), (("/k", Some(n)), Some(0)));
        assert_eq!(stream.try_recv().unwrap(), None);
    }
}

/// The name of the thread on which a watch calls back.
fn thread_of(watch: Watch) -> String {
    let (tell, receiver) = mpsc::channel();
    let handle = watch.on(move |_| {
        tell.send(std::thread::current().name().unwrap_or_default().to_owned()).unwrap();
    });
    let name = receiver.recv_timeout(LONG).unwrap();
    drop(handle);
    name
}

#[test]
fn a_watch_calls_back_on_the_dispatch_thread_of_its_lane() {
    let net = Net::new("a_watch_calls_back_on_the_dispatch_thread_of_its_lane");
    let node = net.node("a");
    let state = node.state().unwrap();
    state.set("/k", 1).unwrap();
    assert_eq!(thread_of(state.watch("/k").unwrap()), "rnet-bulk");
    assert_eq!(thread_of(state.watch("/k").unwrap().urgent()), "rnet-urgent");
}

#[test]
fn timers_and_changes_of_a_lane_alternate_without_delaying_the_other_lane() {
    let net = Net::new("timers_and_changes_of_a_lane_take_turns");
    let (node, other) = (net.node("a"), net.node("b"));
    let (state, writer) = (node.state().unwrap(), other.state().unwrap());
    let (entered, inside) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let held = state.watch("/held").unwrap().on(move |_| {
        entered.send(()).unwrap();
        wait.recv_timeout(LONG).unwrap();
    });
    writer.set("/held", 1).unwrap();
    inside.recv_timeout(LONG).unwrap();
    // The bulk thread is inside the callback.
    let ticks = Arc::new(AtomicU64::new(0));
    let counted = ticks.clone();
    let timer = node
        .timer(Duration::from_millis(1))
        .on(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    let (tell, receiver) = mpsc::channel();
    let urgent = state.watch("/stop").unwrap().urgent().on(move |change| {
        tell.send(change.revision).unwrap();
    });
    let last = (0..100).fold(0, |_, n| writer.set("/stop", n).unwrap());
    while receiver.recv_timeout(LONG).unwrap() != last {}
    assert_eq!(ticks.load(Ordering::Relaxed), 0, "the timer waits for the callback of its lane");
    go_on.send(()).unwrap();
    eventually("the timer ticks", || ticks.load(Ordering::Relaxed) > 0);
    drop((held, timer, urgent));
}

#[test]
fn endless_changes_delay_no_timer_tick() {
    let net = Net::new("endless_changes_delay_no_timer_tick");
    let node = net.node("a");
    let state = node.state().unwrap();
    let writer = node.state().unwrap();
    // Each change causes the next one.
    let watch = state.watch("/k").unwrap().on(move |change| {
        writer.set("/k", change.revision as i64).unwrap();
    });
    state.set("/k", 0).unwrap();
    let ticks = Arc::new(AtomicU64::new(0));
    let counted = ticks.clone();
    let timer = node
        .timer(Duration::from_millis(1))
        .on(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    eventually("the timer ticks", || ticks.load(Ordering::Relaxed) >= 3);
    drop((watch, timer));
}

#[test]
fn a_stream_that_ends_waits_for_no_callback() {
    let net = Net::new("a_stream_that_ends_waits_for_no_callback");
    let state = net.node("n").state().unwrap();
    let (entered, inside) = mpsc::channel();
    let (ended, wait) = mpsc::channel();
    // Waits for the test thread, like a callback that has another thread close a stream.
    let _handle = state.watch("/held").unwrap().on(move |_| {
        entered.send(None).unwrap();
        entered.send(Some(wait.recv_timeout(LONG))).unwrap();
    });
    type End = fn(ChangeStream);
    let ends: [End; 2] = [drop, |stream| drop(stream.into_source().unwrap())];
    for (n, end) in ends.into_iter().enumerate() {
        let mut stream = state.watch("/k").unwrap().into_stream();
        let waker = Waker::from(Arc::new(Woken::default()));
        assert!(stream.poll_ready(&mut Context::from_waker(&waker)).is_pending());
        state.set("/held", n as i64).unwrap();
        assert_eq!(inside.recv_timeout(LONG).unwrap(), None);
        end(stream);
        ended.send(()).unwrap();
        assert_eq!(inside.recv().unwrap(), Some(Ok(())), "the callback's wait has ended");
    }
}

#[test]
fn streams_wake_their_task() {
    let net = Net::new("streams_wake_their_task");
    let (a, b) = (net.node("a").state().unwrap(), net.node("b").state().unwrap());
    a.set("/k", 0).unwrap();
    let mut stream = b.watch("/k").unwrap().into_stream();
    assert!(block_on(stream.recv()).unwrap().initial);
    let (ask, asked) = mpsc::channel();
    let writer = std::thread::spawn(move || {
        for n in asked {
            a.set("/k", n).unwrap();
        }
    });
    for n in 1..100 {
        ask.send(n).unwrap();
        assert_eq!(key_and_int(&block_on(stream.recv()).unwrap()), ("/k", Some(n)));
    }
    drop(ask);
    writer.join().unwrap();
    // Blocking and async receives alternate, and a change is reported once.
    b.set("/k", 100).unwrap();
    let mut watch = stream.into_source().unwrap();
    assert_eq!(key_and_int(&watch.recv_timeout(LONG).unwrap()), ("/k", Some(100)));
    assert_eq!(watch.try_recv().unwrap(), None);
    let mut stream = watch.into_stream();
    b.put("/k").ttl(Duration::from_millis(20)).set(101).unwrap();
    assert_eq!(key_and_int(&block_on(stream.recv()).unwrap()), ("/k", Some(101)));
    let gone = block_on(stream.recv()).unwrap();
    assert!(gone.expired == Some(true) && gone.entry.is_none());
    let next = futures_core::Stream::poll_next;
    b.set("/k", 5).unwrap();
    let change = block_on(std::future::poll_fn(|cx| next(std::pin::Pin::new(&mut stream), cx)));
    assert_eq!(key_and_int(&change.unwrap().unwrap()), ("/k", Some(5)));
    assert_eq!(int(&b, "/k"), Some(5));
    assert!(refusal(b.watch("a b")).contains("bad key name"));
}
