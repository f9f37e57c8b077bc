//! How waiting changes the attributes of the waiting thread: undone, refused or disabled.

use crate::common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use common::{LONG, Net, eventually, not_run};
use rnet::{Node, OnFull, Subscriber, Wait};
use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};

const SHORT: Duration = Duration::from_millis(5);
const URGENT_NS: u64 = 100_000;
const BULK_NS: u64 = 200_000;

/// `struct sched_attr` in its first version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    slice_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

fn attributes(thread: Pid) -> Attributes {
    let mut of = Attributes::default();
    let (id, size) = (Pid::as_raw(Some(thread)), size_of::<Attributes>() as u32);
    // SAFETY: the kernel writes at most `size` bytes to a structure of that size.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, id, &raw mut of, size, 0) };
    assert_eq!(got, 0, "the thread exists");
    of
}

fn set_attributes(mut to: Attributes) {
    to.size = size_of::<Attributes>() as u32;
    // SAFETY: the kernel reads at most `size` bytes of the structure.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const to, 0) };
    assert_eq!(set, 0, "{to:?}");
}

/// All thread attributes that tuning could change.
#[derive(Debug, PartialEq, Eq)]
struct State {
    attributes: Attributes,
    cpus: CpuSet,
    slack: Option<String>,
}

fn state(thread: Pid) -> State {
    let slack = format!("/proc/{}/timerslack_ns", Pid::as_raw(Some(thread)));
    State {
        attributes: attributes(thread),
        cpus: sched_getaffinity(Some(thread)).unwrap(),
        slack: std::fs::read_to_string(slack).ok(),
    }
}

/// Whether this kernel supports slices, and this process has the default slice and all processors. Tuning
/// leaves a thread alone if its user chose either, `taskset` on the tests included.
fn has_slices() -> bool {
    let has = attributes(gettid()).slice_ns > BULK_NS && has_all_cpus();
    if !has {
        not_run("slices: this needs Linux 6.12 and a process with default slice and processors");
    }
    has
}

/// The slice of a thread that waits on an endpoint that shortens it to `short_ns`. A thread with a nice value
/// keeps its own slice (decision 0023), so these tests also run under `nice`.
fn slice_of_waiting(short_ns: u64) -> u64 {
    let own = attributes(gettid());
    if own.nice == 0 { short_ns } else { own.slice_ns }
}

/// Returns when the process knows the kernel's defaults for threads: the control thread reads them before it
/// matches anything. A niced thread shows no change.
fn await_defaults(net: &Net, node: &Node) {
    let _subscriber = node.subscriber::<[u8]>("/defaults").open().unwrap();
    let other = net.node("defaults");
    let publisher = other.publisher::<[u8]>("/defaults").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
}

/// Waits in the calling thread until its slice is `slice_ns`. Until then it must be unchanged.
fn wait_until_slice(slice_ns: u64, mut wait: impl FnMut()) {
    let before = attributes(gettid()).slice_ns;
    loop {
        wait();
        let now = attributes(gettid()).slice_ns;
        if now == slice_ns {
            return;
        }
        assert_eq!(now, before);
    }
}

fn has_all_cpus() -> bool {
    let all = || {
        let chosen = sched_getaffinity(None).unwrap();
        let mut all = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
        sched_setaffinity(None, &all).unwrap();
        sched_getaffinity(None).unwrap() == chosen
    };
    // A separate thread, because it changes its processors.
    thread::spawn(all).join().unwrap()
}

/// A thread that receives until the test stops it, and returns its subscribers.
struct Receiving {
    id: Pid,
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Vec<Subscriber<[u8]>>>,
}

impl Receiving {
    fn start(
        mut subscribers: Vec<Subscriber<[u8]>>,
        before: impl FnOnce() + Send + 'static,
    ) -> Receiving {
        let (tell, receiver) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            before();
            let mut first = Some(tell);
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                for subscriber in &mut subscribers {
                    let _ = subscriber.recv_timeout(SHORT);
                }
                // Once each of them has waited.
                if let Some(tell) = first.take() {
                    tell.send(gettid()).unwrap();
                }
            }
            subscribers
        });
        Receiving { id: receiver.recv().unwrap(), stop, thread }
    }

    fn has_slice(&self, slice_ns: u64) {
        let is = || attributes(self.id).slice_ns == slice_ns;
        if attributes(self.id).nice != 0 {
            assert!(is(), "{:?}", attributes(self.id));
        }
        eventually(&format!("the slice is {slice_ns} ns"), is);
    }

    fn end(self) -> Vec<Subscriber<[u8]>> {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}

fn urgent(node: &Node) -> Subscriber<[u8]> {
    node.subscriber("/urgent").lane(rnet::Lane::Urgent).wait(Wait::Block).open().unwrap()
}

#[test]
fn slice_is_short_while_a_waiting_subscriber_exists() {
    if !has_slices() {
        return;
    }
    let net = Net::new("lease");
    let node = net.node("reader");
    await_defaults(&net, &node);
    let (bulk_ns, urgent_ns) = (slice_of_waiting(BULK_NS), slice_of_waiting(URGENT_NS));
    let (bulk, urgent) = (node.subscriber::<[u8]>("/bulk").open().unwrap(), urgent(&node));
    let (say, said) = mpsc::channel::<()>();
    let (tell, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        let (mut bulk, mut urgent) = (bulk, urgent);
        let id = gettid();
        let before = state(id);
        wait_until_slice(bulk_ns, || assert!(bulk.recv_timeout(SHORT).is_err()));
        wait_until_slice(urgent_ns, || assert!(urgent.recv_timeout(SHORT).is_err()));
        // The other subscriber has at least the slice that it needs.
        assert!(bulk.recv_timeout(SHORT).is_err());
        assert_eq!(attributes(id).slice_ns, urgent_ns);
        drop(urgent);
        assert_eq!(attributes(id).slice_ns, bulk_ns);
        // The last subscriber is dropped in another thread.
        tell.send((id, bulk)).unwrap();
        said.recv().unwrap();
        assert_eq!(state(id), before);
    });
    let (id, bulk) = receiver.recv().unwrap();
    assert_eq!(attributes(id).slice_ns, bulk_ns);
    drop(bulk);
    say.send(()).unwrap();
    thread.join().unwrap();
}

#[test]
fn a_subscriber_takes_its_slice_along_to_another_thread() {
    if !has_slices() {
        return;
    }
    let net = Net::new("along");
    let node = net.node("reader");
    await_defaults(&net, &node);
    let bulk_ns = slice_of_waiting(BULK_NS);
    let first = Receiving::start(vec![node.subscriber("/t").open().unwrap()], || ());
    first.has_slice(bulk_ns);
    let subscribers = first.end();
    // Its thread has ended, and its id may have been reused.
    let second = Receiving::start(subscribers, || ());
    second.has_slice(bulk_ns);
    drop(second.end());
}

#[test]
fn watch_shortens_the_slice_like_an_urgent_subscriber() {
    if !has_slices() {
        return;
    }
    let net = Net::new("watch");
    let node = net.node("reader");
    await_defaults(&net, &node);
    let mut watch = node.state().unwrap().watch("/arm").unwrap();
    let before = state(gettid());
    let urgent_ns = slice_of_waiting(URGENT_NS);
    wait_until_slice(urgent_ns, || assert!(watch.recv_timeout(SHORT).is_err()));
    drop(watch);
    assert_eq!(state(gettid()), before);
}

#[test]
fn thread_with_user_settings_is_left_alone() {
    let has = has_slices();
    let net = Net::new("chosen");
    let node = net.node("reader");
    if has {
        // From here on the node knows the kernel's defaults.
        await_defaults(&net, &node);
        let other = Receiving::start(vec![node.subscriber("/other").open().unwrap()], || ());
        other.has_slice(slice_of_waiting(BULK_NS));
        drop(other.end());
    }
    // Only the administrator may lower it.
    let own = attributes(gettid());
    let nice = Attributes { nice: own.nice.max(5), ..own };
    let batch = Attributes { policy: libc::SCHED_BATCH as u32, ..own };
    let slice = Attributes { slice_ns: 1_500_000, ..own };
    let pin = || {
        let cpus = sched_getaffinity(None).unwrap();
        let mut only = CpuSet::new();
        only.set((0..CpuSet::MAX_CPU).find(|&cpu| cpus.is_set(cpu)).unwrap());
        sched_setaffinity(None, &only).unwrap();
        cpus.count() > 1
    };
    let mut choices: Vec<Box<dyn FnOnce() + Send>> =
        vec![Box::new(move || set_attributes(nice)), Box::new(move || set_attributes(batch))];
    if has {
        choices.push(Box::new(move || set_attributes(slice)));
    }
    if sched_getaffinity(None).unwrap().count() > 1 {
        choices.push(Box::new(move || assert!(pin())));
    }
    for choose in choices {
        let (mut bulk, mut urgent) =
            (node.subscriber::<[u8]>("/bulk").open().unwrap(), urgent(&node));
        let mut watch = node.state().unwrap().watch("/arm").unwrap();
        let wait = move || {
            choose();
            let chosen = state(gettid());
            assert!(bulk.recv_timeout(SHORT).is_err());
            assert!(urgent.recv_timeout(SHORT).is_err());
            assert!(watch.recv_timeout(SHORT).is_err());
            assert_eq!(state(gettid()), chosen);
            drop((bulk, urgent, watch));
            assert_eq!(state(gettid()), chosen);
        };
        thread::spawn(wait).join().unwrap();
    }
}

#[test]
fn settings_changed_later_are_kept() {
    if !has_slices() {
        return;
    }
    let net = Net::new("later");
    let node = net.node("reader");
    await_defaults(&net, &node);
    thread::spawn(move || {
        let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
        let bulk_ns = slice_of_waiting(BULK_NS);
        wait_until_slice(bulk_ns, || assert!(subscriber.recv_timeout(SHORT).is_err()));
        let own = attributes(gettid());
        let chosen = Attributes { nice: own.nice.max(3), slice_ns: 1_500_000, ..own };
        set_attributes(chosen);
        assert!(subscriber.recv_timeout(SHORT).is_err());
        drop(subscriber);
        assert_eq!(attributes(gettid()), chosen);
    })
    .join()
    .unwrap();
}

/// Sends periodic messages until it is dropped, so that their reader learns when to wake.
struct Beat(std::sync::Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Beat {
    fn start(node: Node) -> Beat {
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut publisher =
                node.publisher::<[u8]>("/beat").reliable(OnFull::Refuse).open().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            while !stopped.load(Ordering::Acquire) {
                publisher.send(b"beat").unwrap();
                thread::sleep(Duration::from_millis(1)); // sleep: the period of the messages
            }
        });
        Beat(stop, Some(thread))
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        let _ = self.1.take().map(JoinHandle::join);
    }
}

/// Receives a beat, awake before it is due if possible; a watch and an urgent topic time out. Meanwhile
/// another thread checks the attributes.
fn never_touched(net: &Net, node: &Node) {
    let (subscriber, urgent) = (node.subscriber::<[u8]>("/beat").open().unwrap(), urgent(node));
    let watch = node.state().unwrap().watch("/arm").unwrap();
    let beat = Beat::start(net.node("writer"));
    let (tell, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        let (mut subscriber, mut urgent, mut watch) = (subscriber, urgent, watch);
        tell.send((gettid(), state(gettid()))).unwrap();
        for _ in 0..200 {
            subscriber.recv_timeout(LONG).unwrap();
        }
        assert!(urgent.recv_timeout(SHORT).is_err());
        assert!(watch.recv_timeout(SHORT).is_err());
        tell.send((gettid(), state(gettid()))).unwrap();
        // Its id stays valid until the other thread has stopped checking.
        drop(tell);
        thread::park();
    });
    let (id, before) = receiver.recv().unwrap();
    let after = loop {
        assert_eq!(state(id), before);
        match receiver.try_recv() {
            Ok((_, after)) => break after,
            Err(empty) => assert_eq!(empty, mpsc::TryRecvError::Empty),
        }
    };
    assert_eq!(after, before);
    thread.thread().unpark();
    drop(beat);
    thread.join().unwrap();
}

#[test]
fn without_tuning_no_thread_is_touched() {
    let net = Net::new("untuned");
    never_touched(&net, &net.builder("reader").tune_threads(false).open().unwrap());
}

#[test]
fn the_environment_turns_tuning_off() {
    let net = Net::new("environment");
    let program = std::env::current_exe().unwrap();
    for (value, says) in [("0", "untouched"), ("yes", "refused")] {
        let mut command = common::Child::order(std::process::Command::new(&program), &net, says);
        command.env("RNET_TUNE_THREADS", value);
        common::Child::start(command).expect(says);
    }
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = common::role() else { return };
    let net = Net::of_parent();
    if role == "untouched" {
        never_touched(&net, &net.node("reader"));
    } else {
        let error = net.builder("reader").open().unwrap_err();
        assert_eq!(error.code(), "bad_value");
        assert!(error.to_string().contains("RNET_TUNE_THREADS"), "{error}");
        // The program's setting precedes the environment's.
        net.builder("reader").tune_threads(true).open().unwrap();
    }
    common::tell(&role);
}
