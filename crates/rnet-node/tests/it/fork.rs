//! A process forks after it has joined: the child has a copy of everything, and owns nothing of it.

use crate::common;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::schema::compile_text;
use rnet::state::Watch;
use rnet::{
    Command, Driver, Dynamic, Error, NodeEvent, OnFull, OwnedLoan, OwnedSample, Publisher, Rate,
    SampleStream, Subscriber, Subscription, Timer, WaitSet, WaitSetEntry,
};

/// Ends this process when the parent exits; the parent waits for it meanwhile.
pub fn end_with_parent() {
    let kill = rustix::process::Signal::KILL;
    rustix::process::set_parent_process_death_signal(Some(kill)).unwrap();
}

/// Forks; the child runs `act` and exits with its code, bypassing the test harness.
pub fn fork(act: impl FnOnce() -> libc::c_int) -> libc::pid_t {
    // SAFETY: the child only runs calls that this library supports after a fork, and then exits.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "cannot fork");
    if pid == 0 {
        // No child outlives the run: it exits with its parent, or waits for the end of the test.
        let code = catch_unwind(AssertUnwindSafe(act)).unwrap_or(111);
        // SAFETY: exits the process.
        unsafe { libc::_exit(code) };
    }
    pid
}

/// Returns the exit status of a child.
fn wait_for(pid: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: our own child; the call writes the status.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}

/// Waits until the test closes its end of the pipe. Not through std, whose lock a thread may hold.
pub fn wait_for_the_end() {
    let mut byte = 0_u8;
    // SAFETY: the buffer is valid.
    while unsafe { libc::read(0, (&raw mut byte).cast(), 1) } > 0 {}
}

/// Descriptors of files whose path contains `part`.
fn descriptors(part: &str) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    links
        .filter(|link| {
            std::fs::read_link(link.path()).is_ok_and(|to| to.to_string_lossy().contains(part))
        })
        .count()
}

fn is_closed<T>(what: &str, result: Result<T, Error>) {
    match result {
        Err(error @ Error::Closed { .. }) => {
            assert!(error.to_string().contains("before this process was forked"), "{error}");
        }
        Err(other) => panic!("{what}: {other}"),
        Ok(_) => panic!("{what} worked on an object of the parent"),
    }
}

/// One object of each kind, matched with each other.
struct OneOfEach {
    node: rnet::Node,
    publisher: Publisher<[u8]>,
    subscriber: Subscriber<[u8]>,
    stream: SampleStream<[u8]>,
    subscription: Subscription,
    timer: Timer,
    sample: OwnedSample<[u8]>,
    loan: OwnedLoan,
    set: WaitSet,
    attached: (WaitSetEntry<Subscriber<[u8]>>, WaitSetEntry<Watch>, WaitSetEntry<Rate>),
    command: (Command, Driver<[u8]>),
}

impl OneOfEach {
    fn new(net: &Net) -> OneOfEach {
        let node = net.node("victim");
        let mut publisher = node
            .publisher::<[u8]>("/t")
            .reliable(OnFull::Wait(LONG))
            .pool_limit_bytes(256 << 10)
            .open()
            .unwrap();
        let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
        let mut stream = node.subscriber::<[u8]>("/t").open().unwrap().into_stream();
        stream.fd().unwrap();
        let subscription = node.subscriber::<[u8]>("/t").open().unwrap().on(|_| ());
        let timer = node.timer(Duration::from_millis(1)).on(|_| ()).unwrap();
        publisher.wait_for_subscribers_timeout(3, LONG).unwrap();
        publisher.send(&[7; 10_000]).unwrap();
        let sample = subscriber.recv_timeout(LONG).unwrap().into_owned();
        let loan = publisher.loan_owned(10_000).unwrap();
        let set = WaitSet::new(&node);
        let attached = (
            set.attach(node.subscriber::<[u8]>("/other").open().unwrap()).unwrap(),
            set.attach(node.state().unwrap().watch("/").unwrap()).unwrap(),
            set.attach(node.rate(1.0).unwrap()).unwrap(),
        );
        let hour = Duration::from_secs(3600);
        let command = node.command::<[u8]>("/cmd").deadline(hour).fallback(b"stop");
        let command = command.apply(|_| ()).unwrap();
        let driver = node.drive::<[u8]>("/cmd").lease(hour).timeout(LONG).take().unwrap();
        let command = (command, driver);
        OneOfEach {
            node,
            publisher,
            subscriber,
            stream,
            subscription,
            timer,
            sample,
            loan,
            set,
            attached,
            command,
        }
    }

    /// In the child: each use is refused, nothing waits, and dropping them has no effect.
    fn are_the_parents(mut self) {
        let OneOfEach {
            node,
            publisher,
            subscriber,
            stream,
            subscription,
            timer,
            sample,
            loan,
            set,
            attached,
            command,
        } = &mut self;
        is_closed("command", command.1.send(b"go"));
        is_closed("renew", command.1.renew());
        assert!(!command.1.in_force());
        let receive = node.command::<[u8]>("/other").fallback_hold().apply(|_| ());
        is_closed("a receiver", receive.map(drop));
        is_closed(
            "a driver",
            node.drive::<[u8]>("/cmd").priority(1).timeout(LONG).take().map(drop),
        );
        is_closed("an attached subscriber", attached.0.try_recv());
        is_closed("an attached watch", attached.1.try_recv());
        is_closed("an attached rate", attached.2.try_tick());
        is_closed("attach", set.attach(Rate::new(1.0).unwrap()));
        set.handle().interrupt();
        assert_eq!(timer.period(), Duration::from_millis(1));
        assert_eq!(**sample, [7; 10_000]);
        is_closed("send", publisher.send(&[1]));
        is_closed("send large", publisher.send(&[1; 10_000]));
        assert_eq!(publisher.try_send(&[1]), Ok(false));
        is_closed("loan", publisher.loan(10_000).map(drop));
        assert!(publisher.loaned(loan).is_empty(), "the parent's memory could be written");
        is_closed("wait_for_subscribers", publisher.wait_for_subscribers_timeout(1, LONG));
        assert!(publisher.subscribers().is_empty() && publisher.incompatible().is_empty());
        publisher.on_match(|_| ()).detach();
        is_closed("try_recv", subscriber.try_recv().map(drop));
        is_closed("recv", subscriber.recv_timeout(LONG).map(drop));
        is_closed("latest", subscriber.latest_timeout(LONG).map(drop));
        is_closed("wait_for_publishers", subscriber.wait_for_publishers_timeout(1, LONG));
        let batch = subscriber.recv_batch_timeout(1, LONG, |_| std::ops::ControlFlow::Continue(()));
        is_closed("recv_batch", batch);
        assert!(subscriber.iter().next().is_none());
        is_closed("wait set", set.wait_timeout(&mut [subscriber], LONG));
        subscriber.interrupter().interrupt();
        assert_eq!(subscriber.publisher_count(), 0);
        is_closed("fd", stream.fd().map(drop));
        let mut context = Context::from_waker(Waker::noop());
        match pin!(stream.recv()).poll(&mut context) {
            Poll::Ready(result) => is_closed("stream", result.map(drop)),
            Poll::Pending => panic!("the stream waits for a thread that is not here"),
        }
        assert!(subscription.stats().is_empty());
        is_closed("publisher", node.publisher::<[u8]>("/u").open().map(drop));
        is_closed("subscriber", node.subscriber::<[u8]>("/u").open().map(drop));
        is_closed("rate", node.rate(1.0).map(drop));
        is_closed("timer", node.timer(Duration::from_millis(1)).on(|_| ()).map(drop));
        node.on_node(|_| ()).detach();
        let OneOfEach { mut publisher, subscriber, loan, .. } = self;
        match publisher.send_loan(loan) {
            Err((loan, error)) => {
                is_closed::<()>("send_loan", Err(error));
                publisher.drop_loan(loan);
            }
            Ok(()) => panic!("the parent's loan was sent"),
        }
        drop(subscriber.into_stream());
        drop(publisher);
    }

    /// In the parent: everything continues unaffected.
    fn go_on(&mut self) {
        for n in 0..100_u8 {
            self.publisher.send(&[n; 10_000]).unwrap();
            assert_eq!(*self.subscriber.recv_timeout(LONG).unwrap(), [n; 10_000]);
        }
        self.command.1.send(b"go").unwrap();
        assert_eq!(self.command.0.status().holder, "/victim", "a child has released it");
        assert_eq!(*self.sample, [7; 10_000], "a sample of the parent was overwritten");
        self.publisher.loaned(&mut self.loan).fill(9);
    }
}

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    match role.as_str() {
        // Forks, and waits like its child.
        "parent" => {
            let things = OneOfEach::new(&net);
            assert_eq!((descriptors("/names/"), descriptors("/ctl")), (1, 1));
            let child = fork(|| {
                assert_eq!((descriptors("/names/"), descriptors("/ctl")), (0, 0));
                let grandchild = fork(|| {
                    wait_for_the_end();
                    0
                });
                tell(&format!("grandchild {grandchild}"));
                wait_for_the_end();
                0
            });
            tell(&format!("child {child}"));
            wait_for_the_end();
            drop(things);
        }
        "types" => types_of_a_parent(&net),
        // Forks children that exit in each way, and continues.
        "endings" => {
            common::no_core();
            let mut things = Some(OneOfEach::new(&net));
            type End = fn() -> libc::c_int;
            let endings: [(&str, End, libc::c_int); 4] = [
                ("_exit", || 7, 7 << 8),
                // SAFETY: exits the process.
                ("exit", || unsafe { libc::exit(7) }, 7 << 8),
                ("std exit", || std::process::exit(7), 7 << 8),
                ("abort", || std::process::abort(), libc::SIGABRT),
            ];
            for (name, end, status) in endings {
                let child = fork(|| {
                    end_with_parent();
                    // Its own node works beside its parent's, under any other name.
                    things.take().unwrap().are_the_parents();
                    let own = net.node("child");
                    let mut back = own.publisher::<[u8]>("/back").open().unwrap();
                    back.wait_for_subscribers_timeout(1, LONG).unwrap();
                    back.send(b"from the child").unwrap();
                    drop(back);
                    if name != "std exit" {
                        drop(own);
                    }
                    end()
                });
                // If the kernel pipes core dumps to a program, it ignores the core limit.
                assert_eq!(wait_for(child) & !0x80, status, "{name}");
                things.as_mut().unwrap().go_on();
                tell(name);
            }
        }
        // Forks while its threads repeatedly take each lock.
        "busy" => {
            let mut things = OneOfEach::new(&net);
            static STOP: AtomicBool = AtomicBool::new(false);
            let node = things.node.clone();
            let busy = std::thread::spawn(move || {
                while !STOP.load(Ordering::Relaxed) {
                    let publisher = node.publisher::<[u8]>("/busy").open().unwrap();
                    let subscriber = node.subscriber::<[u8]>("/busy").open().unwrap();
                    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
                    drop(subscriber.on(|_| ()));
                }
            });
            for n in 0..30 {
                let mut own = Some(things);
                let child = fork(|| {
                    end_with_parent();
                    own.take().unwrap().are_the_parents();
                    drop(net.node(&format!("child{n}")));
                    0
                });
                assert_eq!(wait_for(child), 0, "child {n}");
                things = own.take().unwrap();
            }
            STOP.store(true, Ordering::Relaxed);
            busy.join().unwrap();
            things.go_on();
            tell("done");
        }
        // Forks while a simulated time is paused, which no process sets in the child.
        "simulated" => {
            let sim = net.builder("victim").sim_time(true).open().unwrap();
            let mut rate = sim.rate(1000.0).unwrap();
            let child = fork(|| {
                end_with_parent();
                is_closed("sleep_for", rate.sleep_for(Duration::from_secs(1)).map(drop));
                is_closed("sleep", rate.sleep().map(drop));
                0
            });
            assert_eq!(wait_for(child), 0);
            let stood = rate.sleep_for(Duration::from_millis(1));
            assert!(matches!(stood, Err(Error::Timeout { .. })), "{stood:?}");
            tell("done");
        }
        // Forks, and then another node becomes the leader in its process.
        "led" => {
            let inotify = || descriptors("inotify");
            let mut nodes = vec![net.node("first")];
            eventually("the first node leads", || inotify() == 1);
            let child = fork(|| {
                wait_for_the_end();
                0
            });
            // The random suffix of the folder's name determines the next leader.
            let lot = |name: &str| {
                let folders = std::fs::read_dir(net.inspect_path().join("nodes")).unwrap();
                let folders = folders.flatten().map(|f| f.file_name().into_string().unwrap());
                let mut lots = folders.filter_map(|folder| {
                    folder
                        .split_once('@')
                        .filter(|(stem, _)| stem.contains(name))
                        .map(|(_, lot)| lot.to_owned())
                });
                lots.next().expect("its folder is there")
            };
            let first = lot("first");
            while nodes.len() == 1 || lot(&format!("other{}", nodes.len())) > first {
                nodes.push(net.node(&format!("other{}", nodes.len() + 1)));
            }
            // Names are released by closing nodes and by failed starts.
            for _ in 0..20 {
                drop(net.node("guest"));
            }
            let cpu_time = || {
                // SAFETY: all zeros are a valid value, and the call writes it.
                let mut spent: libc::timespec = unsafe { std::mem::zeroed() };
                // SAFETY: as above.
                unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut spent) };
                Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
            };
            // Lets short-lived work finish: load that remains after one second does not end.
            std::thread::sleep(Duration::from_secs(1)); // sleep: the orphan checks take 210 ms
            let before = cpu_time();
            std::thread::sleep(Duration::from_secs(1)); // sleep: the time over which is measured
            tell(&format!("{}", (cpu_time() - before).as_millis()));
            wait_for_the_end();
            let _ = child;
        }
        // Forks in a callback and returns from it.
        "callback" => {
            let node = net.node("victim");
            static CHILD: AtomicU32 = AtomicU32::new(0);
            static CALLS: AtomicU32 = AtomicU32::new(0);
            let parent = std::process::id();
            let keeps_all = || node.subscriber::<[u8]>("/t").keep_all().open().unwrap();
            let beside = || {
                // SAFETY: exits the process.
                let end = || unsafe { libc::_exit(9) };
                let call = move |_: rnet::Sample<'_, [u8]>| {
                    if std::process::id() != parent {
                        end();
                    }
                };
                keeps_all().on(call)
            };
            let _before = beside();
            let subscription = keeps_all().on(|_| {
                if CALLS.fetch_add(1, Ordering::SeqCst) == 0 {
                    // SAFETY: the child requests its exit and returns.
                    let pid = unsafe { libc::fork() };
                    if pid == 0 {
                        end_with_parent();
                    }
                    CHILD.store(pid.cast_unsigned(), Ordering::SeqCst);
                }
            });
            let _after = beside();
            let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
            publisher.wait_for_subscribers_timeout(3, LONG).unwrap();
            for _ in 0..100 {
                publisher.send(b"x").unwrap();
            }
            eventually("all are called", || CALLS.load(Ordering::SeqCst) == 100);
            let status = wait_for(CHILD.load(Ordering::SeqCst).cast_signed());
            tell(&format!("{status} {}", subscription.stats()[0].received));
        }
        other => panic!("unknown role: {other}"),
    }
}

fn number(line: &str, word: &str) -> libc::pid_t {
    line.strip_prefix(word).and_then(|n| n.trim().parse().ok()).expect("a number")
}

#[test]
fn death_of_a_parent_is_detected_while_its_children_live() {
    let net = Net::new("fork and die");
    let node = net.node("survivor");
    let (tell, events) = std::sync::mpsc::channel();
    node.on_node(move |event| tell.send(event.clone()).unwrap()).detach();
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut parent = Child::spawn(&net, "parent");
    let lines = [parent.hear(), parent.hear()];
    let find = |word: &str| {
        number(
            lines.iter().find(|line| line.starts_with(word)).expect("both processes report"),
            word,
        )
    };
    let family = [find("child "), find("grandchild ")];
    let next = || events.recv_timeout(LONG).unwrap();
    assert_eq!(next(), NodeEvent::Joined("/victim".to_owned()));
    // Not waited for, because that would close the pipe that the children read until the end.
    parent.signal(libc::SIGKILL);
    assert_eq!(next(), NodeEvent::Died("/victim".to_owned()));
    loop {
        match subscriber.recv_timeout(LONG) {
            Ok(_) => {}
            Err(Error::PeerLost { node, .. }) if node == "/victim" => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    // The name is free, and the old contents of the folder are gone.
    let successor = net.node("victim");
    assert_eq!(next(), NodeEvent::Joined("/victim".to_owned()));
    drop(successor);
    assert_eq!(next(), NodeEvent::Left("/victim".to_owned()));
    for pid in family {
        // SAFETY: signal 0 only checks for existence.
        assert_eq!(unsafe { libc::kill(pid, 0) }, 0, "{pid} must still run");
    }
}

#[test]
fn children_exit_in_each_way_and_the_parent_continues() {
    let net = Net::new("fork and end");
    let node = net.node("survivor");
    let mut subscriber = node.subscriber::<[u8]>("/back").open().unwrap();
    let mut parent = Child::spawn(&net, "endings");
    for ending in ["_exit", "exit", "std exit", "abort"] {
        loop {
            match subscriber.recv_timeout(LONG) {
                Ok(sample) => break assert_eq!(*sample, *b"from the child"),
                // Of the previous child, whose node was not dropped.
                Err(Error::PeerLost { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        parent.expect(ending);
    }
    parent.finish();
}

#[test]
fn forks_under_load_do_not_deadlock() {
    let net = Net::new("fork busy");
    let mut parent = Child::spawn(&net, "busy");
    parent.expect("done");
    parent.finish();
    let nodes = net.inspect().nodes;
    assert!(nodes.is_empty(), "{nodes:?}");
}

#[test]
fn forked_child_does_not_wait_for_simulated_time_of_its_parent() {
    let net = Net::new("fork simulated");
    Child::spawn(&net, "simulated").expect("done");
}

#[test]
fn a_fork_in_a_callback_ends_the_child_with_the_callback() {
    let net = Net::new("fork in callback");
    let mut parent = Child::spawn(&net, "callback");
    parent.expect("0 100");
}

#[test]
fn control_thread_does_not_spin_when_a_child_holds_closed_files() {
    let net = Net::new("fork and lead");
    let mut parent = Child::spawn(&net, "led");
    let spent_ms: u64 = parent.hear().parse().unwrap();
    // A spinning thread uses all of a core that it can get.
    assert!(spent_ms < 200, "{spent_ms} ms of CPU time in an idle second");
    parent.kill();
}

/// Opens endpoints with types in a forked child of the process that owns the node.
fn types_of_a_parent(net: &Net) {
    let schema_of = |fields: &str| {
        let text = format!("syntax = \"proto3\"; message Level {{ {fields} }}");
        compile_text("level.proto", &text).unwrap().schema("Level").unwrap()
    };
    let (level, other) = (schema_of("double volt = 1;"), schema_of("float volt = 1;"));
    let node = net.node("victim");
    let publisher = node.publisher::<Dynamic>("/t").schema(&level).open().unwrap();
    let types = || {
        let folders = std::fs::read_dir(net.inspect_path().join("nodes")).unwrap().flatten();
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap().flatten());
        let names = files.map(|file| file.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with('t')).collect::<Vec<_>>()
    };
    let before = types();
    assert_eq!(before, [format!("t{}", level.hash())]);
    let mut all = Some((node, publisher));
    let child = fork(|| {
        end_with_parent();
        let (node, mut publisher) = all.take().unwrap();
        is_closed("a new type", node.publisher::<Dynamic>("/new").schema(&other).open());
        is_closed("a new type", node.subscriber::<Dynamic>("/new").schema(&other).open());
        is_closed("a known one", node.publisher::<Dynamic>("/new").schema(&level).open());
        is_closed("send", publisher.send(&Dynamic::new(&level)));
        drop((publisher, node));
        0
    });
    assert_eq!(wait_for(child), 0);
    assert_eq!(types(), before, "the child took or wrote a type");
    let (node, mut publisher) = all.take().unwrap();
    let peer = net.node("peer");
    let mut subscriber = peer.subscriber::<Dynamic>("/t").schema(&level).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&Dynamic::new(&level)).unwrap();
    subscriber.recv_timeout(LONG).unwrap();
    drop((subscriber, peer, publisher, node));
    assert_eq!(types(), Vec::<String>::new());
    tell("done");
}

#[test]
fn forked_child_does_not_touch_types_of_its_parent() {
    let net = Net::new("fork types");
    let mut child = Child::spawn(&net, "types");
    child.expect("done");
    child.finish();
}
