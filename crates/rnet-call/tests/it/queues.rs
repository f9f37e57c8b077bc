//! Work queues: each job is done by one worker, and the outcome of jobs whose workers or pushers die.

use crate::common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::{Error, HandlerError, Node, PushBuilder, Undelivered};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
struct N {
    x: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, rnet::Plain)]
struct F {
    x: f64,
}

fn n(x: u64) -> N {
    N { x }
}

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    match role.as_str() {
        // Receives a job and never acknowledges it.
        "worker" => {
            let node = net.node(&format!("worker{}", std::process::id()));
            let jobs = node.pull::<N>("/jobs").open().unwrap();
            tell("ready");
            let job = jobs.recv().unwrap();
            tell(&format!("job {} {}", job.x, job.context().redelivered()));
            let _ = orders.recv();
        }
        // Has pushed a job when it is killed.
        "pusher" => {
            let node = net.node("victim");
            let jobs = node.push::<N>("/jobs").open().unwrap();
            jobs.push(&n(1)).unwrap();
            jobs.push(&n(2)).unwrap();
            let _ = orders.recv();
        }
        _ => panic!("unknown role: {role}"),
    }
}

type UndeliveredJobs = mpsc::Receiver<(u64, Error)>;

/// A pusher, and its undelivered jobs.
fn pusher(node: &Node) -> (PushBuilder<N>, UndeliveredJobs) {
    let (tell, back) = mpsc::channel();
    let undelivered = move |undelivered: Undelivered<N>| {
        let _ = tell.send((undelivered.job.x, undelivered.error));
    };
    (node.push::<N>("/jobs").on_undelivered(undelivered), back)
}

fn handed_back(back: &UndeliveredJobs) -> (u64, Error) {
    back.recv_timeout(LONG).expect("a job is handed back")
}

#[test]
fn each_job_goes_to_one_worker() {
    let net = Net::new("each");
    let (a, b) = (net.node("a"), net.node("b"));
    let done = Arc::new(Mutex::new(Vec::new()));
    let jobs = b.push::<N>("/jobs").open().unwrap();
    // Before a worker exists.
    jobs.push(&n(0)).unwrap();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let done = done.clone();
            let work = move |job: &N, context: &rnet::JobContext| {
                assert_eq!((context.pusher(), context.redelivered()), ("/b", false));
                done.lock().unwrap().push(job.x);
                Ok(())
            };
            a.pull::<N>("/jobs").on(work).unwrap()
        })
        .collect();
    (1..300).for_each(|x| jobs.push(&n(x)).unwrap());
    jobs.wait_until_done_timeout(LONG).unwrap();
    let mut done = std::mem::take(&mut *done.lock().unwrap());
    done.sort_unstable();
    assert_eq!(done, (0..300).collect::<Vec<_>>());
    let stats = jobs.stats();
    assert_eq!((stats.pushed, stats.done, stats.redelivered, stats.open), (300, 300, 0, 0));
    drop(workers);
}

#[test]
fn a_busy_worker_gets_no_second_job() {
    let net = Net::new("busy");
    let (a, b) = (net.node("a"), net.node("b"));
    let slow = a.pull::<N>("/jobs").open().unwrap();
    let jobs = b.push::<N>("/jobs").open().unwrap();
    jobs.push(&n(0)).unwrap();
    let held = slow.recv_timeout(LONG).unwrap().unwrap();
    let free = a.pull::<N>("/jobs").open().unwrap();
    for x in 1..20 {
        jobs.push(&n(x)).unwrap();
        let job = free.recv_timeout(LONG).unwrap().unwrap();
        assert_eq!(job.x, x);
        job.ack();
    }
    // Another pusher's jobs wait for the worker that this one keeps busy.
    let others = a.push::<N>("/jobs").open().unwrap();
    let busy = {
        jobs.push(&n(20)).unwrap();
        free.recv_timeout(LONG).unwrap().unwrap()
    };
    others.push(&n(21)).unwrap();
    assert!(others.wait_until_done_timeout(Duration::from_millis(50)).is_err());
    held.ack();
    let job = slow.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!((job.x, job.context().pusher()), (21, "/a"));
    job.ack();
    busy.ack();
    others.wait_until_done_timeout(LONG).unwrap();
    jobs.wait_until_done_timeout(LONG).unwrap();
}

#[test]
fn sixty_four_workers_share_the_jobs() {
    let net = Net::new("many");
    let (a, b) = (net.node("a"), net.node("b"));
    let sum = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..64)
        .map(|_| {
            let sum = sum.clone();
            let work = move |job: &N, _: &rnet::JobContext| {
                sum.fetch_add(job.x, Ordering::SeqCst);
                Ok(())
            };
            a.pull::<N>("/jobs").on(work).unwrap()
        })
        .collect();
    let jobs = b.push::<N>("/jobs").open().unwrap();
    eventually("all workers are there", || jobs.worker_count() == 64);
    (0..640).for_each(|x| jobs.push(&n(x)).unwrap());
    jobs.wait_until_done_timeout(LONG).unwrap();
    assert_eq!(sum.load(Ordering::SeqCst), 639 * 640 / 2);
    drop(workers);
}

#[test]
fn job_of_a_killed_worker_is_redelivered_once() {
    let net = Net::new("killed");
    let node = net.node("a");
    let mut first = Child::spawn(&net, "worker");
    first.expect("ready");
    let (builder, back) = pusher(&node);
    let jobs = builder.open().unwrap();
    jobs.push(&n(7)).unwrap();
    first.expect("job 7 false");
    let rescuer = node.pull::<N>("/jobs").open().unwrap();
    first.kill();
    let job = rescuer.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!((job.x, job.context().redelivered()), (7, true));
    job.ack();
    jobs.wait_until_done_timeout(LONG).unwrap();
    let stats = jobs.stats();
    assert_eq!((stats.done, stats.redelivered, stats.undelivered), (1, 1, 0));
    assert!(back.try_recv().is_err());
}

#[test]
fn a_job_whose_second_worker_dies_too_is_handed_back() {
    let net = Net::new("both");
    let node = net.node("a");
    let mut first = Child::spawn(&net, "worker");
    first.expect("ready");
    let (builder, back) = pusher(&node);
    let jobs = builder.open().unwrap();
    jobs.push(&n(7)).unwrap();
    first.expect("job 7 false");
    let mut second = Child::spawn(&net, "worker");
    second.expect("ready");
    first.kill();
    second.expect("job 7 true");
    let pid = second.pid();
    second.kill();
    let (job, error) = handed_back(&back);
    assert_eq!((job, error.code()), (7, "server_lost"));
    assert!(error.to_string().contains(&format!("/worker{pid}")), "{error}");
    jobs.wait_until_done_timeout(LONG).unwrap();
    assert_eq!((jobs.stats().redelivered, jobs.stats().undelivered), (1, 1));
}

#[test]
fn a_stopped_worker_loses_its_job_after_the_limit() {
    let net = Net::new("stopped");
    let node = net.node("a");
    let mut stopped = Child::spawn(&net, "worker");
    stopped.expect("ready");
    let (builder, back) = pusher(&node);
    let jobs = builder.ack_within(Duration::from_secs(2)).open().unwrap();
    jobs.push(&n(7)).unwrap();
    stopped.expect("job 7 false");
    stopped.stop();
    // Not again to the stopped worker, although it has the fewest jobs.
    let rescuer = node.pull::<N>("/jobs").open().unwrap();
    let job = rescuer.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!((job.x, job.context().redelivered()), (7, true));
    job.ack();
    jobs.wait_until_done_timeout(LONG).unwrap();
    assert!(back.try_recv().is_err());
    stopped.resume();
}

#[test]
fn a_job_past_its_limit_waits_for_another_worker() {
    let net = Net::new("past-limit");
    let node = net.node("a");
    let (builder, back) = pusher(&node);
    let limit = Duration::from_secs(2);
    let jobs = builder.ack_within(limit).open().unwrap();
    let stuck = node.pull::<N>("/jobs").open().unwrap();
    jobs.push(&n(7)).unwrap();
    let held = stuck.recv_timeout(LONG).unwrap().unwrap();
    eventually("its time limit has passed", || jobs.stats().redelivered == 1);
    std::thread::sleep(limit + limit / 2); // sleep: the limit passes once more without another worker
    assert!(back.try_recv().is_err() && jobs.stats().undelivered == 0, "{:?}", jobs.stats());
    // A job that waits for another worker delays no other job.
    drop(held);
    jobs.push(&n(8)).unwrap();
    let other = stuck.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!(other.x, 8);
    other.ack();
    let rescuer = node.pull::<N>("/jobs").open().unwrap();
    let job = rescuer.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!((job.x, job.context().redelivered()), (7, true));
    job.ack();
    jobs.wait_until_done_timeout(LONG).unwrap();
}

#[test]
fn a_failed_job_is_reported_and_not_repeated() {
    let net = Net::new("failed");
    let (a, b) = (net.node("a"), net.node("b"));
    let (builder, back) = pusher(&b);
    let jobs = builder.open().unwrap();
    let worker = a
        .pull::<N>("/jobs")
        .on(|job, _| match job.x {
            1 => Err(HandlerError::new("broken", "the gripper is open")),
            2 => panic!("two is too many"),
            _ => Ok(()),
        })
        .unwrap();
    (0..4).for_each(|x| jobs.push(&n(x)).unwrap());
    for (x, text) in [(1, "the gripper is open"), (2, "two is too many")] {
        let (job, error) = handed_back(&back);
        assert_eq!((job, error.code()), (x, "call_failed"));
        assert!(error.to_string().contains(text), "{error}");
    }
    jobs.wait_until_done_timeout(LONG).unwrap();
    drop(worker);
    // A job sent to the old worker would be redelivered.
    eventually("the pusher has removed the worker", || jobs.worker_count() == 0);
    let worker = a.pull::<N>("/jobs").open().unwrap();
    jobs.push(&n(5)).unwrap();
    drop(worker.recv_timeout(LONG).unwrap());
    assert!(handed_back(&back).1.to_string().contains("without acknowledging it"));
    jobs.push(&n(6)).unwrap();
    worker.recv_timeout(LONG).unwrap().unwrap().fail(HandlerError::new("no", "not today"));
    assert!(handed_back(&back).1.to_string().contains("not today"));
    assert_eq!((jobs.stats().done, jobs.stats().redelivered), (2, 0));
}

#[test]
fn a_full_backlog_refuses_by_name_or_waits() {
    let net = Net::new("full");
    let (a, b) = (net.node("a"), net.node("b"));
    let jobs = b.push::<N>("/jobs").backlog(2).open().unwrap();
    (0..2).for_each(|x| jobs.push(&n(x)).unwrap());
    let error = jobs.push(&n(2)).unwrap_err();
    assert_eq!(error.code(), "limit_reached");
    assert!(error.to_string().contains("/jobs"), "{error}");
    assert_eq!((jobs.stats().pushed, jobs.stats().open), (2, 2));
    let least = Duration::from_millis(50);
    let patient = b.push::<N>("/others").backlog(1).wait_for_capacity(least).open().unwrap();
    patient.push(&n(0)).unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(patient.push(&n(1)).unwrap_err().code(), "limit_reached");
    assert!(begun.elapsed() >= least);
    let longer = b.push::<N>("/more").backlog(1).wait_for_capacity(LONG).open().unwrap();
    let worker = a.pull::<N>("/more").on(|_, _| Ok(())).unwrap();
    (0..50).for_each(|x| longer.push(&n(x)).unwrap());
    longer.wait_until_done_timeout(LONG).unwrap();
    drop(worker);
    for backlog in [0, 65_537] {
        let bad = b.push::<N>("/bad").backlog(backlog).open();
        assert_eq!(bad.err().map(|error| error.code()), Some("bad_value"));
    }
}

#[test]
fn closing_pusher_hands_back_unfinished_jobs() {
    let net = Net::new("closes");
    let (a, b) = (net.node("a"), net.node("b"));
    let worker = a.pull::<N>("/jobs").open().unwrap();
    let (builder, back) = pusher(&b);
    let jobs = builder.open().unwrap();
    (0..3).for_each(|x| jobs.push(&n(x)).unwrap());
    let job = worker.recv_timeout(LONG).unwrap().unwrap();
    drop(jobs);
    let mut all: Vec<_> = (0..3).map(|_| handed_back(&back)).collect();
    all.sort_by_key(|(x, _)| *x);
    assert!(all.iter().map(|(x, e)| (*x, e.code())).eq((0..3).map(|x| (x, "closed"))));
    eventually("the worker is notified", || job.context().is_cancelled());
}

#[test]
fn a_killed_pusher_cancels_its_job_and_frees_the_worker() {
    let net = Net::new("pusher");
    let node = net.node("a");
    let worker = node.pull::<N>("/jobs").open().unwrap();
    let mut child = Child::spawn(&net, "pusher");
    let job = worker.recv_timeout(LONG).unwrap().unwrap();
    child.kill();
    eventually("the worker is notified", || job.context().is_cancelled());
    job.ack();
    let jobs = node.push::<N>("/jobs").open().unwrap();
    jobs.push(&n(9)).unwrap();
    let job = worker.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!(job.x, 9);
    job.ack();
    jobs.wait_until_done_timeout(LONG).unwrap();
}

#[test]
fn a_worker_that_closes_gives_its_job_to_another() {
    let net = Net::new("leaves");
    let (a, b) = (net.node("a"), net.node("b"));
    let first = a.pull::<N>("/jobs").open().unwrap();
    let jobs = b.push::<N>("/jobs").open().unwrap();
    jobs.push(&n(1)).unwrap();
    let held = first.recv_timeout(LONG).unwrap().unwrap();
    let second = a.pull::<N>("/jobs").open().unwrap();
    drop(first);
    let job = second.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!((job.x, job.context().redelivered()), (1, true));
    // Too late, and without effect.
    held.ack();
    job.ack();
    jobs.wait_until_done_timeout(LONG).unwrap();
    assert_eq!((jobs.stats().done, jobs.stats().redelivered), (1, 1));
}

#[test]
fn a_job_that_its_closing_worker_has_not_received_counts_as_not_sent() {
    let net = Net::new("unseen");
    let (a, b) = (net.node("a"), net.node("b"));
    let jobs = b.push::<N>("/jobs").open().unwrap();
    // Repeated, because the close may happen at any moment between a job's arrival and its offer.
    for x in 0..50 {
        eventually("the pusher has removed the worker", || jobs.worker_count() == 0);
        let first = a.pull::<N>("/jobs").open().unwrap();
        jobs.push(&n(x)).unwrap();
        eventually("the job has arrived", || first.stats().calls == 1);
        drop(first);
        let second = a.pull::<N>("/jobs").open().unwrap();
        let job = second.recv_timeout(LONG).unwrap().unwrap();
        assert_eq!((job.x, job.context().redelivered()), (x, false));
        job.ack();
        jobs.wait_until_done_timeout(LONG).unwrap();
    }
    assert_eq!((jobs.stats().done, jobs.stats().redelivered), (50, 0));
}

#[test]
fn a_job_of_another_type_is_handed_back() {
    let net = Net::new("types");
    let (a, b) = (net.node("a"), net.node("b"));
    let worker = a.pull::<F>("/jobs").open().unwrap();
    let (builder, back) = pusher(&b);
    let jobs = builder.open().unwrap();
    jobs.push(&n(1)).unwrap();
    let (job, error) = handed_back(&back);
    assert_eq!((job, error.code()), (1, "incompatible_type"));
    drop(worker);
}

#[test]
fn acknowledgements_before_a_close_are_kept() {
    let net = Net::new("said");
    let (a, b) = (net.node("a"), net.node("b"));
    let (builder, back) = pusher(&b);
    let jobs = builder.open().unwrap();
    // Repeated, because the thread that notifies the pusher may be faster.
    for x in 0..50 {
        // A job sent to the previous worker would be redelivered.
        eventually("the pusher has removed the worker", || jobs.worker_count() == 0);
        let worker = a.pull::<N>("/jobs").open().unwrap();
        jobs.push(&n(x)).unwrap();
        let job = worker.recv_timeout(LONG).unwrap().unwrap();
        assert_eq!((job.x, job.context().redelivered()), (x, false));
        match x % 2 {
            0 => job.ack(),
            _ => job.fail(HandlerError::new("no", "not today")),
        }
        drop(worker);
        if x % 2 == 1 {
            let (job, error) = handed_back(&back);
            assert_eq!((job, error.code()), (x, "call_failed"));
        }
        jobs.wait_until_done_timeout(LONG).unwrap();
    }
    let stats = jobs.stats();
    assert_eq!((stats.done, stats.undelivered, stats.redelivered), (25, 25, 0));
}

#[test]
fn a_handler_that_ends_while_its_worker_closes_has_done_its_job() {
    let net = Net::new("ends");
    let (a, b) = (net.node("a"), net.node("b"));
    let jobs = b.push::<N>("/jobs").open().unwrap();
    for checks in [false, true] {
        let (give, worker) = mpsc::channel::<rnet::Service>();
        let worker = Mutex::new(worker);
        let work = move |_: &N, context: &rnet::JobContext| {
            // It closes during the job.
            drop(worker.lock().unwrap().recv());
            assert!(!checks || context.is_cancelled());
            Ok(())
        };
        give.send(a.pull::<N>("/jobs").on(work).unwrap()).unwrap();
        jobs.push(&n(1)).unwrap();
        if checks {
            eventually("the job is handed back", || jobs.stats().redelivered == 1);
            let other = a.pull::<N>("/jobs").open().unwrap();
            other.recv_timeout(LONG).unwrap().unwrap().ack();
        }
        jobs.wait_until_done_timeout(LONG).unwrap();
        assert_eq!(jobs.stats().redelivered, u64::from(checks));
        // The next job must not go to this worker, which exists until its thread ends.
        eventually("the workers are gone", || jobs.worker_count() == 0);
    }
}

#[test]
fn a_job_that_comes_while_the_handler_of_a_closed_worker_runs_goes_to_another() {
    let net = Net::new("runs");
    let (a, b, c) = (net.node("a"), net.node("b"), net.node("c"));
    let (tell, said) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let ends = Mutex::new(ends);
    let worker = a.pull::<N>("/jobs").on(move |_: &N, context: &rnet::JobContext| {
        tell.send("begun").unwrap();
        eventually("the worker closes", || context.is_cancelled());
        tell.send("closes").unwrap();
        let _ = ends.lock().unwrap().recv();
        Ok(())
    });
    let worker = worker.unwrap();
    let jobs = b.push::<N>("/jobs").open().unwrap();
    let known = c.push::<N>("/jobs").open().unwrap();
    eventually("both pushers found the worker", || {
        jobs.worker_count() == 1 && known.worker_count() == 1
    });
    jobs.push(&n(0)).unwrap();
    assert_eq!(said.recv_timeout(LONG), Ok("begun"));
    let closing = std::thread::spawn(move || drop(worker));
    assert_eq!(said.recv_timeout(LONG), Ok("closes"));
    // One pusher that knew it before, and one that finds it while it closes.
    let late = c.push::<N>("/jobs").open().unwrap();
    eventually("the late pusher found the worker", || late.worker_count() == 1);
    known.push(&n(1)).unwrap();
    late.push(&n(2)).unwrap();
    eventually("both jobs are refused", || known.worker_count() == 0 && late.worker_count() == 0);
    let mut other = a.pull::<N>("/jobs").open().unwrap();
    let next = |other: &mut rnet::Puller<N>| {
        let job = other.recv_timeout(LONG).unwrap().expect("the other worker is sent the job");
        let (x, redelivered) = (job.x, job.context().redelivered());
        (job, (x, redelivered))
    };
    let (job, first) = next(&mut other);
    // A pusher that is refused here does not wait for the closing worker.
    eventually("the second job is refused", || other.stats().refused > 0);
    job.ack();
    let (job, second) = next(&mut other);
    job.ack();
    assert_eq!((first.min(second), first.max(second)), ((1, false), (2, false)));
    [&known, &late].iter().for_each(|jobs| jobs.wait_until_done_timeout(LONG).unwrap());
    assert!(!closing.is_finished(), "its handler still runs");
    end.send(()).unwrap();
    closing.join().unwrap();
    // The handler saw the close, so its own job goes to another worker.
    let (job, own) = next(&mut other);
    assert_eq!(own, (0, true));
    job.ack();
    jobs.wait_until_done_timeout(LONG).unwrap();
}

#[test]
fn a_worker_that_is_closed_and_kept_gets_no_jobs() {
    let net = Net::new("kept");
    let (a, b) = (net.node("a"), net.node("b"));
    let kept = a.pull::<N>("/jobs").open().unwrap();
    let jobs = b.push::<N>("/jobs").open().unwrap();
    eventually("the pusher found the worker", || jobs.worker_count() == 1);
    kept.close();
    eventually("the pusher has removed the worker", || jobs.worker_count() == 0);
    let worker = a.pull::<N>("/jobs").open().unwrap();
    (0..10).for_each(|x| {
        jobs.push(&n(x)).unwrap();
        let job = worker.recv_timeout(LONG).unwrap().unwrap();
        assert_eq!((job.x, job.context().redelivered()), (x, false));
        job.ack();
    });
    jobs.wait_until_done_timeout(LONG).unwrap();
    assert_eq!(kept.recv_timeout(Duration::ZERO).unwrap_err().code(), "closed");
    assert_eq!((jobs.stats().done, jobs.stats().redelivered, kept.stats().calls), (10, 0, 0));
}
