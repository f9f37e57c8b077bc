//! The time of a node that follows `/clock`, and the functions that use it.

use crate::common;

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::msgs::Clock;
use rnet::{Error, Node, Publisher};

const S: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;

fn simulated(net: &Net, name: &str) -> Node {
    net.builder(name).sim_time(true).open().unwrap()
}

fn clock(node: &Node) -> Publisher<Clock> {
    let clock = node.publisher("/clock").open().unwrap();
    clock.wait_for_subscribers_timeout(1, LONG).unwrap();
    clock
}

fn say(clock: &mut Publisher<Clock>, time_ns: i64) {
    clock.send(&Clock { time_ns }).unwrap();
}

/// Publishes the time, and waits until the node has it.
fn set(clock: &mut Publisher<Clock>, node: &Node, time_ns: i64) {
    say(clock, time_ns);
    eventually("the node has the time", || node.now() == time_ns as u64);
}

#[test]
fn the_time_of_a_node_is_that_of_its_host_unless_it_follows_the_clock() {
    let net = Net::new("the_time_of_a_node");
    let (host, sim) = (net.node("host"), simulated(&net, "sim"));
    let mut clock = clock(&host);
    assert_eq!(sim.now(), 0, "no time was published");
    set(&mut clock, &sim, 5 * S);
    let (before, now, after) = (rnet::now_ns(), host.now(), rnet::now_ns());
    assert!(before <= now && now <= after);
    assert!(sim.is_sim_time() && !host.is_sim_time());
    // Backwards, and to the limits of the message type.
    for time_ns in [2 * S, i64::MAX, 0, 7 * S] {
        set(&mut clock, &sim, time_ns);
    }
    // An invalid time has no effect; the message after it proves that it was read.
    say(&mut clock, -1);
    say(&mut clock, i64::MIN);
    set(&mut clock, &sim, 8 * S);
    drop(clock);
    assert_eq!(sim.now(), 8 * S as u64, "the time pauses when its publisher is gone");
}

#[test]
fn other_type_on_the_topic_is_not_a_clock() {
    let net = Net::new("another_type_on_the_topic");
    let (host, sim) = (net.node("host"), simulated(&net, "sim"));
    let mut bytes = host.publisher::<[u8]>("/clock").open().unwrap();
    let mut clock = clock(&host);
    bytes.send(&[0xff; 9]).unwrap();
    set(&mut clock, &sim, S);
    drop(clock);
    bytes.send(&[8, 1]).unwrap();
    let mut again = host.publisher::<Clock>("/clock").open().unwrap();
    again.wait_for_subscribers_timeout(1, LONG).unwrap();
    // The node may not have noticed yet that the first publisher is gone.
    eventually("the next publisher is followed", || {
        say(&mut again, 2 * S);
        sim.now() == 2 * S as u64
    });
}

#[test]
fn the_first_of_two_publishers_is_followed_until_it_is_gone() {
    let net = Net::new("the_first_of_two_publishers");
    let (host, sim) = (net.node("host"), simulated(&net, "sim"));
    let (mut first, mut second) = (clock(&host), clock(&host));
    set(&mut first, &sim, 10 * S);
    let timer = sim.timer(Duration::from_secs(1)).on(|_| ()).unwrap();
    for n in 0..100 {
        say(&mut second, n * S);
        set(&mut first, &sim, (11 + n) * S);
    }
    // Each step from the second publisher's time to the first's would be 11 s.
    let ticks = || timer.ticks() + timer.missed();
    eventually("100 s have passed", || ticks() >= 100);
    assert_eq!(ticks(), 100);
    drop(first);
    eventually("the second publisher is followed", || {
        say(&mut second, S);
        sim.now() == S as u64
    });
}

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    match role.as_str() {
        "clock" => {
            let mut clock = clock(&net.node("player"));
            say(&mut clock, 3 * S);
            tell("said");
            drop(orders.recv());
        }
        "threads" | "environment" => {
            let sim = if role == "threads" { simulated(&net, "sim") } else { net.node("sim") };
            let mut rate = sim.rate(1.0).unwrap();
            let before = sim.is_sim_time();
            eventually("its thread runs", || clock_threads() == usize::from(before));
            drop(sim);
            let after = clock_threads();
            if before {
                assert!(matches!(rate.sleep(), Err(Error::Closed { .. })));
            }
            tell(&format!("{before} then {after}"));
        }
        other => panic!("role {other}"),
    }
}

/// Number of threads of this process that follow a clock.
fn clock_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.flat_map(|task| std::fs::read_to_string(task.path().join("comm")));
    names.filter(|name| name.trim() == "rnet-clock").count()
}

#[test]
fn the_next_publisher_is_followed_when_the_first_is_killed() {
    let net = Net::new("the_next_publisher_is_followed");
    let (host, sim) = (net.node("host"), simulated(&net, "sim"));
    let mut child = Child::spawn(&net, "clock");
    child.expect("said");
    eventually("the child's time", || sim.now() == 3 * S as u64);
    let mut mine = clock(&host);
    child.kill();
    assert_eq!(sim.now(), 3 * S as u64);
    eventually("the next publisher is followed", || {
        say(&mut mine, 9 * S);
        sim.now() == 9 * S as u64
    });
}

#[test]
fn a_node_that_follows_the_clock_ends_with_its_thread() {
    let net = Net::new("a_node_that_follows_the_clock_ends");
    Child::spawn(&net, "threads").expect("true then 0");
}

#[test]
fn the_environment_says_whether_a_node_follows_the_clock() {
    let net = Net::new("the_environment_says");
    for (value, received) in [("1", "true then 0"), ("0", "false then 0"), ("", "false then 0")] {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.env("RNET_SIM_TIME", value);
        Child::start(Child::order(command, &net, "environment")).expect(received);
    }
}

#[test]
fn timers_run_in_simulated_time_and_pause_with_it() {
    let net = Net::new("timers_run_in_simulated_time");
    let (host, sim) = (net.node("host"), simulated(&net, "sim"));
    let mut clock = clock(&host);
    let (tell, receiver) = mpsc::channel();
    let timer = sim
        .timer(Duration::from_millis(10))
        .urgent()
        .on(move |tick| {
            tell.send(tick).unwrap();
        })
        .unwrap();
    let tick = || receiver.recv_timeout(LONG).unwrap();
    // The first published time counts as a start, not as elapsed time.
    set(&mut clock, &sim, 100 * S);
    set(&mut clock, &sim, 100 * S + 9 * MS);
    set(&mut clock, &sim, 100 * S + 10 * MS);
    let first = tick();
    assert_eq!((first.number, first.due_ns, first.missed), (1, (100 * S + 10 * MS) as u64, 0));
    // The clock is paused, however often it is published; the host's timer shows that host time has passed.
    let ticks = Arc::new(AtomicU64::new(0));
    let counted = ticks.clone();
    let other = host
        .timer(Duration::from_millis(1))
        .on(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    eventually("30 ms of the host", || {
        say(&mut clock, 100 * S + 10 * MS);
        ticks.load(Ordering::Relaxed) >= 30
    });
    assert_eq!(timer.ticks(), 1);
    // Several periods in one step cause one tick.
    say(&mut clock, 100 * S + 45 * MS);
    let late = tick();
    assert_eq!((late.number, late.missed, late.late_ns), (4, 2, 5 * MS as u64));
    // Backwards: the remaining 5 ms stay. Far ahead: the same.
    for from_ns in [20 * S, 90_000 * S] {
        set(&mut clock, &sim, from_ns);
        say(&mut clock, from_ns + 5 * MS);
        assert_eq!(tick().due_ns, (from_ns + 5 * MS) as u64);
        set(&mut clock, &sim, from_ns + 10 * MS);
    }
    drop((timer, other));
    assert!(receiver.try_recv().is_err());
}

#[test]
fn a_tick_that_was_due_before_time_0_was_due_at_0() {
    let net = Net::new("a_tick_that_was_due_before_time_0");
    let (host, sim) = (net.node("host"), simulated(&net, "sim"));
    let mut clock = clock(&host);
    set(&mut clock, &sim, 1_000 * S);
    let mut rate = sim.rate(1.0).unwrap();
    set(&mut clock, &sim, 1_005 * S + 500 * MS);
    set(&mut clock, &sim, 200 * MS);
    let tick = rate.sleep().unwrap();
    assert_eq!((tick.number, tick.due_ns, tick.late_ns), (5, 0, 500 * MS as u64));
    // The next tick is due after the remaining time.
    set(&mut clock, &sim, 700 * MS);
    assert_eq!(rate.sleep().unwrap().due_ns, 700 * MS as u64);
}

#[test]
fn step_away_from_time_0_counts_as_elapsed_time() {
    let net = Net::new("a_step_away_from_time_0");
    let (host, sim) = (net.node("host"), simulated(&net, "sim"));
    let mut clock = clock(&host);
    let mut rate = sim.rate(100.0).unwrap();
    // The first value is not a step; the second one shows that it was read.
    set(&mut clock, &sim, S);
    set(&mut clock, &sim, 0);
    for n in 1..=3 {
        set(&mut clock, &sim, n * 10 * MS);
        let tick = rate.sleep_for(Duration::from_secs(1)).unwrap();
        assert_eq!((tick.number, tick.due_ns), (n as u64, (n * 10 * MS) as u64));
    }
}

#[test]
fn node_closes_while_a_callback_sleeps_in_paused_time() {
    let net = Net::new("a_node_ends_while_a_callback_sleeps");
    let (host, sim) = (net.node("host"), simulated(&net, "sim"));
    let mut rate = sim.rate(1.0).unwrap();
    let (tell, receiver) = mpsc::channel();
    let sleeps = move |_: rnet::Sample<'_, [u8]>| {
        tell.send(None).unwrap();
        tell.send(Some(rate.sleep())).unwrap();
    };
    sim.subscriber::<[u8]>("/go").open().unwrap().on(sleeps).detach();
    let mut go = host.publisher::<[u8]>("/go").open().unwrap();
    go.wait_for_subscribers_timeout(1, LONG).unwrap();
    go.send(b"now").unwrap();
    assert_eq!(receiver.recv_timeout(LONG), Ok(None));
    drop(sim);
    let slept = receiver.recv_timeout(LONG).unwrap();
    assert!(matches!(slept, Some(Err(Error::Closed { .. }))), "{slept:?}");
}

#[test]
fn a_rate_follows_the_node_and_its_limits_follow_the_host() {
    let net = Net::new("a_rate_follows_the_node");
    let (host, sim) = (net.node("host"), simulated(&net, "sim"));
    let mut clock = clock(&host);
    set(&mut clock, &sim, S);
    let mut rate = sim.rate(100.0).unwrap();
    let stood = rate.sleep_for(Duration::from_millis(20));
    assert!(matches!(stood, Err(Error::Timeout { .. })), "{stood:?}");
    std::thread::scope(|scope| {
        let ticks = scope.spawn(move || [rate.sleep().unwrap(), rate.sleep().unwrap()]);
        let mut now = S;
        while !ticks.is_finished() {
            now += 2 * MS;
            set(&mut clock, &sim, now);
        }
        // The clock does not wait for the sleeper, which may wake at a later tick.
        let [first, second] = ticks.join().unwrap();
        for tick in [first, second] {
            assert_eq!(tick.due_ns as i64, S + tick.number as i64 * 10 * MS);
        }
        assert!(second.number > first.number);
    });
    // A wait for messages uses the host clock while the simulated one is paused.
    let mut silent = sim.subscriber::<[u8]>("/silent").open().unwrap();
    let nothing = silent.recv_timeout(Duration::from_millis(5)).map(drop);
    assert!(matches!(nothing, Err(Error::Timeout { .. })), "{nothing:?}");
}
