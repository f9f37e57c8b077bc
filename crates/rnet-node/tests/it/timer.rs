//! Timers run on the dispatch threads, in one order with the messages of their lane; a rate paces a loop.

use crate::common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use common::{LONG, Net, eventually};
use rnet::{Error, Rate, Tick, Timer, TimerBuilder};

const MS: Duration = Duration::from_millis(1);

/// Starts a timer that sends its ticks to a channel.
fn ticking(timer: TimerBuilder) -> (Timer, Receiver<Tick>) {
    let (tell, receiver) = mpsc::channel();
    (timer.on(move |tick| _ = tell.send(tick)).unwrap(), receiver)
}

#[test]
fn ticks_are_due_at_multiples_of_the_period() {
    let net = Net::new("multiples");
    let node = net.node("beat");
    let (timer, receiver) = ticking(node.timer(2 * MS));
    let ticks: Vec<Tick> = (0..50).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
    let start_ns = ticks[0].due_ns - ticks[0].number * 2_000_000;
    let mut before = 0;
    for tick in &ticks {
        assert_eq!(tick.due_ns, start_ns + tick.number * 2_000_000, "no drift");
        assert_eq!(
            tick.number,
            before + 1 + tick.missed,
            "each tick is received, or counted as missed"
        );
        before = tick.number;
    }
    assert!(timer.ticks() >= 50);
    assert_eq!(timer.period(), 2 * MS);
}

/// While a callback runs, a timer and two messages become due: the timer runs before the next message. Of two
/// timers, the one that was due first runs first.
#[test]
fn timers_that_are_due_go_before_the_next_message() {
    let net = Net::new("one order");
    let (node, other) = (net.node("robot"), net.node("other"));
    let mut publisher = other.publisher::<[u8]>("/scan").open().unwrap();
    let (log, receiver) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let tell = log.clone();
    let subscriber = node.subscriber::<[u8]>("/scan").keep_all().open().unwrap();
    let _calls = subscriber.on(move |sample| {
        tell.send(format!("message {}", sample.seq())).unwrap();
        if sample.seq() == 0 {
            let _ = released.recv();
        }
    });
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let hear = || receiver.recv_timeout(LONG).unwrap();
    publisher.send(b"").unwrap();
    assert_eq!(hear(), "message 0");
    let once = |name: &'static str, delay| {
        let tell = log.clone();
        node.timer(delay).once().on(move |_| tell.send(name.to_owned()).unwrap()).unwrap()
    };
    let timers = [once("second timer", 3 * MS), once("first timer", MS)];
    publisher.send(b"").unwrap();
    publisher.send(b"").unwrap();
    std::thread::sleep(10 * MS); // sleep: both timers become due before the callback returns
    drop(release);
    let order: Vec<String> = (0..4).map(|_| hear()).collect();
    assert_eq!(order, ["first timer", "second timer", "message 1", "message 2"]);
    drop(timers);
}

#[test]
fn a_timer_of_a_busy_lane_runs_between_any_two_messages() {
    let net = Net::new("between");
    let (node, other) = (net.node("robot"), net.node("other"));
    let mut publisher = other.publisher::<[u8]>("/scan").open().unwrap();
    let ticks = Arc::new(AtomicU64::new(0));
    let (tell, receiver) = mpsc::channel();
    let seen = ticks.clone();
    let subscriber = node.subscriber::<[u8]>("/scan").keep_all().open().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let _calls = subscriber.on(move |sample| {
        if sample.seq() == 0 {
            let _ = released.recv();
        }
        tell.send(seen.load(Ordering::Relaxed)).unwrap();
        std::thread::sleep(2 * MS); // sleep: longer than the period of the timer
    });
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    (0..10).for_each(|_| publisher.send(b"").unwrap());
    let timer = node.timer(MS).on(move |_| _ = ticks.fetch_add(1, Ordering::Relaxed)).unwrap();
    drop(release);
    let seen: Vec<u64> = (0..10).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
    // All ten would be one turn of their subscriber; the timer does not wait for its end.
    assert!(seen[1..].windows(2).all(|two| two[0] < two[1]), "{seen:?}");
    eventually("skipped ticks are counted", || timer.missed() > 0);
}

#[test]
fn missed_ticks_are_counted_and_not_bunched() {
    let net = Net::new("missed");
    let node = net.node("late");
    let (tell, receiver) = mpsc::channel();
    let mut first = true;
    let timer = node.timer(MS).on(move |tick| {
        if std::mem::take(&mut first) {
            std::thread::sleep(20 * MS); // sleep: the ticks of this time are the missed ones
        }
        let _ = tell.send(tick);
    });
    let ticks: Vec<Tick> = (0..3).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
    assert!(ticks[1].missed >= 18, "{ticks:?}");
    assert!(ticks[1].due_ns > ticks[0].due_ns && ticks[2].due_ns > ticks[1].due_ns, "{ticks:?}");
    assert!(timer.unwrap().missed() >= 18);
}

#[test]
fn sixty_four_timers_of_both_lanes_tick() {
    let net = Net::new("sixty-four");
    let node = net.node("many");
    let timers: Vec<_> = (0..64)
        .map(|n| {
            let timer = node.timer((n + 1) * MS);
            ticking(if n % 2 == 0 { timer.urgent() } else { timer })
        })
        .collect();
    for (_, reported) in &timers {
        let ticks: Vec<Tick> = (0..5).map(|_| reported.recv_timeout(LONG).unwrap()).collect();
        assert!(ticks.windows(2).all(|two| two[0].due_ns < two[1].due_ns));
    }
    // A timer does not tick after its handle is dropped.
    let reported: Vec<_> = timers.into_iter().map(|(_, reported)| reported).collect();
    for reported in reported {
        while reported.try_recv().is_ok() {}
        assert_eq!(reported.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}

#[test]
fn an_urgent_timer_does_not_wait_for_a_bulk_callback() {
    let net = Net::new("urgent timer");
    let node = net.node("robot");
    let (entered, bulk_entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let bulk = node.timer(Duration::ZERO).once().on(move |_| {
        entered.send(()).unwrap();
        let _ = released.recv();
    });
    bulk_entered.recv_timeout(LONG).unwrap();
    let (_urgent, receiver) = ticking(node.timer(MS).urgent());
    (0..10).for_each(|_| _ = receiver.recv_timeout(LONG).unwrap());
    drop(release);
    drop(bulk);
}

#[test]
fn one_shot_timer_ticks_once() {
    let net = Net::new("once");
    let node = net.node("once");
    let (timer, receiver) = ticking(node.timer(MS).once());
    let tick = receiver.recv_timeout(LONG).unwrap();
    assert_eq!((tick.number, tick.missed), (1, 0));
    // The callback is dropped with the timer, although the handle still exists.
    let end = receiver.recv_timeout(LONG);
    assert_eq!(end, Err(mpsc::RecvTimeoutError::Disconnected));
    assert_eq!(timer.ticks(), 1);
}

#[test]
fn a_callback_ends_its_own_timer() {
    let net = Net::new("ends itself");
    let node = net.node("robot");
    let place = Arc::new(Mutex::new(None::<Timer>));
    let (tell, receiver) = mpsc::channel();
    let own = place.clone();
    let timer = node.timer(MS).on(move |tick| {
        // The handle may not be stored yet at the first tick.
        if own.lock().unwrap().take().is_some() {
            tell.send(tick).unwrap();
        }
    });
    *place.lock().unwrap() = Some(timer.unwrap());
    receiver.recv_timeout(LONG).unwrap();
    let end = receiver.recv_timeout(LONG);
    assert_eq!(end, Err(mpsc::RecvTimeoutError::Disconnected));
}

/// Each ends the other's timer while both run.
#[test]
fn callbacks_of_two_nodes_end_each_other() {
    let net = Net::new("end each other");
    let nodes = [net.node("a"), net.node("b")];
    let timers: Arc<[Mutex<Option<Timer>>; 2]> = Arc::default();
    let (tell, receiver) = mpsc::channel();
    let barrier = Arc::new(Barrier::new(3));
    for (own, node) in nodes.iter().enumerate() {
        let (theirs, barrier, tell) = (timers.clone(), barrier.clone(), tell.clone());
        let timer = node.timer(MS).once().on(move |_| {
            barrier.wait();
            let other = theirs[1 - own].lock().unwrap().take();
            drop(other);
            tell.send(()).unwrap();
        });
        *timers[own].lock().unwrap() = Some(timer.unwrap());
    }
    barrier.wait();
    receiver.recv_timeout(LONG).unwrap();
    receiver.recv_timeout(LONG).unwrap();
}

#[test]
fn a_callback_ends_its_own_node_and_subscriber() {
    let net = Net::new("ends its node");
    let watcher = net.node("watcher");
    let (tell, gone) = mpsc::channel();
    watcher.on_node(move |event| drop(tell.send(event.clone()))).detach();
    let node = net.node("robot");
    // A node that closes before the others scan is not reported.
    assert!(gone.iter().any(|event| event == rnet::NodeEvent::Joined("/robot".to_owned())));
    let subscription = node.subscriber::<[u8]>("/t").open().unwrap().on(|_| {});
    let place = Arc::new(Mutex::new(None));
    let own = place.clone();
    let timer = node.timer(MS).on(move |_| drop(own.lock().unwrap().take())).unwrap();
    timer.detach();
    *place.lock().unwrap() = Some((subscription, node));
    let until_left = |event| event == rnet::NodeEvent::Left("/robot".to_owned());
    assert!(gone.iter().any(until_left));
}

#[test]
fn a_callback_that_panics_is_not_called_again_and_the_others_are() {
    let net = Net::new("panics");
    let node = net.node("robot");
    let calls = Arc::new(AtomicU64::new(0));
    let count = calls.clone();
    let _bad = node.timer(MS).on(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        panic!("this panic is part of the test");
    });
    let (_good, receiver) = ticking(node.timer(MS));
    (0..10).for_each(|_| _ = receiver.recv_timeout(LONG).unwrap());
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn timer_can_publish_to_its_own_node() {
    let net = Net::new("sends");
    let node = net.node("robot");
    let mut publisher = node.publisher::<[u8]>("/beat").urgent().open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/beat").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let _timer = node.timer(MS).urgent().on(move |tick| {
        publisher.send(&tick.number.to_le_bytes()).unwrap();
    });
    for _ in 0..10 {
        assert_eq!(subscriber.recv_timeout(LONG).unwrap().len(), 8);
    }
}

#[test]
fn zero_period_is_refused() {
    let net = Net::new("zero");
    let node = net.node("robot");
    let error = node.timer(Duration::ZERO).on(|_| {}).unwrap_err();
    assert!(matches!(error, Error::BadValue { .. }), "{error:?}");
    for hz in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e9] {
        assert!(matches!(Rate::new(hz), Err(Error::BadValue { .. })), "{hz}");
    }
}

#[test]
fn rate_keeps_its_schedule_and_counts_overruns() {
    let mut rate = Rate::new(500.0).unwrap();
    assert_eq!(rate.period(), 2 * MS);
    let first = rate.sleep().unwrap();
    std::thread::sleep(11 * MS); // sleep: the loop takes longer than its period
    let late = rate.sleep().unwrap();
    assert!(late.missed >= 4 && late.due_ns == first.due_ns + (late.missed + 1) * 2_000_000);
    assert!(rate.overruns() >= 1 && rate.missed() >= 4, "{rate:?}");
    let ticks: Vec<Tick> = rate.by_ref().take(20).collect();
    assert!(
        ticks
            .windows(2)
            .all(|two| { two[1].due_ns - two[0].due_ns == (two[1].missed + 1) * 2_000_000 })
    );
    let mut slow = Rate::every(Duration::from_secs(3600)).unwrap();
    assert!(matches!(slow.sleep_for(MS), Err(Error::Timeout { after_ms: 1, .. })));
}
