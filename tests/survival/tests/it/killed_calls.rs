//! Kills a process at every fail point of calls, replies, goals, jobs and commands; the remaining processes
//! continue.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rnet::msgs::command_status::State;
use rnet::{CallOptions, Error, Node};
use rnet_survival::callers::{ACTION, COMMAND, LEASE, QUEUE, SERVICE, serve};
use rnet_survival::{LONG, points, roles};

/// Points that a victim passes when it calls, sends goals, pushes and drives. At the others a server dies.
const OF_CALLERS: [&str; 6] = [
    "call.server_half_open",
    "call.requested",
    "call.cancelling",
    "queue.started",
    "command.taken",
    "command.released",
];

struct World {
    dir: PathBuf,
}

impl World {
    fn new(point: &str) -> World {
        let dir = PathBuf::from(format!("/dev/shm/rnet-calls-{}-{point}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        World { dir }
    }

    fn node(&self, name: &str) -> Node {
        roles::node(&self.dir, name).unwrap()
    }

    /// A victim, which is killed when it passes the point for the `pass`th time.
    fn victim(&self, role: &str, point: &str, pass: u32) -> Child {
        Command::new(Path::new(env!("CARGO_BIN_EXE_survival")))
            .args([role.as_ref(), self.dir.as_os_str(), "victim".as_ref()])
            .env("RNET_FAIL_POINT", format!("{point}@{pass}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < until, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(1)); // sleep: interval between two checks
    }
}

/// Whether the fail point has killed it; any other exit is a failure.
fn was_killed(point: &str, victim: &mut Child) -> bool {
    let Some(status) = victim.try_wait().unwrap() else { return false };
    assert_eq!(
        status.signal(),
        Some(libc::SIGKILL),
        "{point}: the victim exited by itself: {status}"
    );
    true
}

/// The points at which a server dies: clients get an error meanwhile, and none waits for the time-out.
fn a_server_dies(point: &str, pass: u32) {
    let world = World::new(point);
    let survivor = world.node("survivor");
    let client = survivor.client::<[u8], [u8]>(SERVICE).open().unwrap();
    let goals = survivor.action_client::<[u8], [u8], [u8]>(ACTION).open().unwrap();
    let jobs = survivor.push::<[u8]>(QUEUE).open().unwrap();
    let mut victim = world.victim("server", point, pass);
    let mut pushed = 0;
    let allowed = |error: &Error| {
        matches!(error, Error::ServerLost { .. } | Error::NotInForce { .. } | Error::Interrupted)
            || matches!(error, Error::Timeout { what, .. } if !what.contains("reply"))
    };
    let until = Instant::now() + 2 * LONG;
    let short = Duration::from_millis(300);
    while !was_killed(point, &mut victim) {
        assert!(Instant::now() < until, "{point}: no process passes it");
        if client.server_count() > 0 {
            let called = client.call_timeout(b"\0", LONG).map(drop);
            assert!(
                called.as_ref().is_ok() || called.as_ref().is_err_and(allowed),
                "{point}: {called:?}"
            );
        }
        if goals.server_count() > 0 {
            let goal = goals.send(b"\0", CallOptions::new().timeout(LONG)).unwrap();
            let reached = goal.result().map(drop);
            assert!(
                reached.as_ref().is_ok() || reached.as_ref().is_err_and(allowed),
                "{point}: {reached:?}"
            );
        }
        if jobs.worker_count() > 0 {
            pushed += 1;
            jobs.push(b"job").unwrap();
            let _ = jobs.wait_until_done_timeout(short);
        }
        // Authority granted by a receiver that dies meanwhile ends with it.
        if let Ok(mut driver) = survivor.drive::<[u8]>(COMMAND).lease(LEASE).timeout(short).take() {
            let sent = driver.send(b"go");
            assert!(sent.is_ok() || sent.as_ref().is_err_and(allowed), "{point}: {sent:?}");
            let _ = driver.release();
        }
    }
    // Its names are free at once, for the next server, which serves the clients whose calls have failed.
    let next = world.node("next");
    let served = serve(&next).unwrap_or_else(|error| panic!("{point}: {error}"));
    let worker = next.pull::<[u8]>(QUEUE).on(|_, _| Ok(())).unwrap();
    eventually("the next server is seen", || client.server_count() == 1);
    assert_eq!(&*client.call_timeout(b"\0", LONG).unwrap(), b"\0", "{point}");
    let goal = goals.send(b"\0", CallOptions::new().timeout(LONG)).unwrap();
    assert_eq!(&*goal.result().unwrap(), b"\0", "{point}");
    jobs.wait_until_done_timeout(LONG).unwrap_or_else(|error| panic!("{point}: {error}"));
    let stats = jobs.stats();
    assert_eq!(
        (stats.pushed, stats.done, stats.undelivered),
        (pushed, pushed, 0),
        "{point}: {stats:?}"
    );
    let mut driver = survivor.drive::<[u8]>(COMMAND).lease(LEASE).timeout(LONG).take().unwrap();
    driver.send(b"go").unwrap();
    eventually("it is applied", || served.command.stats().applied == 1);
    drop((driver, worker, served));
}

/// The points at which a client dies: its requests are cancelled, and others are served.
fn a_caller_dies(point: &str, pass: u32) {
    let world = World::new(point);
    let survivor = world.node("survivor");
    let served = serve(&survivor).unwrap();
    let worker = survivor.pull::<[u8]>(QUEUE).on(|_, _| Ok(())).unwrap();
    let mut victim = world.victim("caller", point, pass);
    let until = Instant::now() + 2 * LONG;
    while !was_killed(point, &mut victim) {
        assert!(Instant::now() < until, "{point}: no process passes it");
        std::thread::sleep(Duration::from_millis(1)); // sleep: interval between two checks
    }
    eventually("no handler runs", || {
        served.service.stats().running + served.action.stats().running + worker.stats().running == 0
    });
    eventually("no driver has authority", || served.command.status().holder.is_empty());
    eventually("it has fallen back", || served.command.status().state() == State::Fallback);
    let other = world.node("other");
    assert_eq!(&*other.call_timeout::<[u8], [u8]>(SERVICE, b"\0", LONG).unwrap(), b"\0", "{point}");
    let before = served.command.stats().applied;
    let mut driver = other.drive::<[u8]>(COMMAND).lease(LEASE).timeout(LONG).take().unwrap();
    driver.send(b"go").unwrap();
    eventually("another one is obeyed", || served.command.stats().applied == before + 1);
}

fn the_points(of_callers: bool) -> Vec<String> {
    // Not passed with one driver at a time: tests/handover.rs.
    let found = points::all()
        .into_iter()
        .filter(|point| points::is_of_calls(point) && point != "command.preempted");
    found.filter(|point| OF_CALLERS.contains(&point.as_str()) == of_callers).collect()
}

#[test]
fn server_may_be_killed_at_any_step() {
    let points = the_points(false);
    assert!(points.len() >= 10, "{points:?}");
    for point in points {
        // Points that are passed once while it opens are not passed again.
        let opening =
            ["command.status_opened", "command.receiver_started"].contains(&point.as_str());
        for pass in if opening { 1..2 } else { 1..3 } {
            a_server_dies(&point, pass);
        }
    }
}

#[test]
fn client_may_be_killed_at_any_step() {
    let points = the_points(true);
    assert_eq!(points.len(), OF_CALLERS.len());
    for point in points {
        for pass in 1..3 {
            a_caller_dies(&point, pass);
        }
    }
}

/// A victim reports that it runs; without that a point that is never passed would look like one that is.
#[test]
fn victims_without_a_fail_point_survive() {
    let world = World::new("none");
    for role in ["server", "caller"] {
        let served = (role == "caller").then(|| {
            let survivor = world.node("survivor");
            let served = serve(&survivor).unwrap();
            let worker = survivor.pull::<[u8]>(QUEUE).on(|_, _| Ok(())).unwrap();
            (served, worker)
        });
        let mut victim = world.victim(role, "no.such_point", 1);
        let mut said = String::new();
        BufReader::new(victim.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        if let Some((served, _)) = &served {
            eventually("it calls", || served.command.stats().applied > 2);
        }
        assert!(victim.try_wait().unwrap().is_none());
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
}
