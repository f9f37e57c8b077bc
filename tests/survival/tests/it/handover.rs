//! Kills a process at each step of the hand-over of authority from one driver to another of a higher
//! priority: the two are never in force at the same time, and the remaining one is obeyed.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::msgs::command_status::State;
use rnet_survival::callers::{COMMAND, DEADLINE, drive, read_order};
use rnet_survival::{LONG, roles};

/// The directory of a domain, and its victims.
struct World(PathBuf);

impl World {
    fn new(name: &str) -> World {
        let dir = PathBuf::from(format!("/dev/shm/rnet-handover-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        World(dir)
    }

    fn node(&self, name: &str) -> Node {
        roles::node(&self.0, name).unwrap()
    }

    fn victim(&self, role: &str, point: &str) -> Child {
        Command::new(Path::new(env!("CARGO_BIN_EXE_survival")))
            .args([role.as_ref(), self.0.as_os_str(), role.as_ref()])
            .env("RNET_FAIL_POINT", point)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < until, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(1)); // sleep: interval between two checks
    }
}

fn dies(point: &str, victim: &mut Child) {
    let mut ended = None;
    eventually(&format!("it passes {point}"), || {
        ended = victim.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.signal()), Some(libc::SIGKILL), "{point}");
}

/// The applied commands in order: the driver, and its authority.
type Applied = Arc<Mutex<Vec<(String, u64)>>>;

fn receive(node: &Node, applied: &Applied) -> rnet::Command {
    let applied = applied.clone();
    let command = node.command::<[u8]>(COMMAND).deadline(DEADLINE).fallback(b"stop 0");
    command.apply(move |bytes| applied.lock().unwrap().push(read_order(bytes))).unwrap()
}

/// Checks that authority never goes back, and that each has one driver.
fn assert_one_at_a_time(point: &str, applied: &Applied) {
    let applied = applied.lock().unwrap();
    let orders: Vec<_> = applied.iter().filter(|(name, _)| name != "stop").collect();
    for pair in orders.windows(2) {
        let [(before, was), (after, is)] = pair else { unreachable!("windows of two") };
        assert!(was < is || was == is && before == after, "{point}: {pair:?} in {orders:?}");
    }
}

/// Drives with a low priority until it is dropped.
struct Low {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Low {
    fn new(node: Node) -> Low {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            drive(&node, "low", 1, || stopped.load(Ordering::Relaxed)).unwrap();
        });
        Low { stop, thread: Some(thread) }
    }
}

impl Drop for Low {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "the low driver failed");
    }
}

/// The newcomer dies with its request in flight, with authority that it has not used yet, or in the middle
/// of its commands. The lease is far longer than the test, so only its death ends its authority.
#[test]
fn new_driver_may_be_killed_at_any_step() {
    for point in ["call.requested@1", "command.taken@1", "notify.begin@40"] {
        let world = World::new(&point.replace(['.', '@'], "-"));
        let applied = Applied::default();
        let survivor = world.node("survivor");
        let command = receive(&survivor, &applied);
        let low = Low::new(world.node("low"));
        let of_low = || {
            let applied = applied.lock().unwrap();
            applied.iter().filter(|(name, _)| name == "low").map(|(_, number)| *number).max()
        };
        eventually("the low driver is obeyed", || of_low().is_some());
        let first = of_low().unwrap();
        let mut victim = world.victim("taker", point);
        dies(point, &mut victim);
        // A newcomer that dies with its request in flight may never have had authority.
        let preempted = point != "call.requested@1";
        let before = applied.lock().unwrap().len();
        eventually("the low driver is obeyed again", || {
            let applied = applied.lock().unwrap();
            applied[before..]
                .iter()
                .any(|(name, number)| name == "low" && (*number > first || !preempted))
        });
        eventually("it is reported as in force", || {
            let status = command.status();
            status.state() == State::InForce && status.holder.ends_with("low")
        });
        drop(low);
        assert_one_at_a_time(point, &applied);
    }
}

/// The receiver dies when the previous driver has lost authority and the next has none yet, when the next
/// has it and no driver was informed, or when it was informed. The next receiver obeys only drivers that
/// take authority there.
#[test]
fn receiver_may_be_killed_at_any_step_of_the_hand_over() {
    for point in ["command.preempted@1", "command.granted@2", "command.answered@2"] {
        let world = World::new(&point.replace(['.', '@'], "-"));
        let mut victim = world.victim("receiver", point);
        let mut subscriber = world.node("watcher").subscriber::<[u8]>(COMMAND).open().unwrap();
        let low = Low::new(world.node("low"));
        // The low driver drives before the high one comes.
        subscriber.recv_timeout(LONG).unwrap();
        let mut high = world.victim("taker", "no.such_point");
        dies(point, &mut victim);
        let applied = Applied::default();
        let survivor = world.node("survivor");
        let command = receive(&survivor, &applied);
        eventually("the high driver is obeyed", || {
            applied.lock().unwrap().iter().any(|(name, _)| name == "taker")
        });
        assert!(command.status().holder.ends_with("taker"), "{point}");
        high.kill().unwrap();
        high.wait().unwrap();
        let before = applied.lock().unwrap().len();
        eventually("the low driver is obeyed", || {
            applied.lock().unwrap()[before..].iter().any(|(name, _)| name == "low")
        });
        drop(low);
        assert_one_at_a_time(point, &applied);
    }
}
