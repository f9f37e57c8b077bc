//! Actions: goals, feedback, goal policies and results.

use crate::common;

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Child, LONG, Net, block_on, eventually, role, tell};
use futures_core::Stream;
use rnet::{
    ActionClient, ActionContext, CallOptions, CancelReason, Error, Goal, GoalPolicy, HandlerError,
    Node, Service,
};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
struct N {
    x: u64,
}

fn n(x: u64) -> N {
    N { x }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, rnet::Plain)]
struct F {
    x: f64,
}

type Actions = ActionClient<N, N, N>;

fn client(node: &Node) -> Actions {
    node.action_client("/navigate").open().unwrap()
}

fn send(client: &Actions, x: u64) -> Goal<N, N> {
    client.send(&n(x), CallOptions::new()).unwrap()
}

/// Handler that runs until the test sends a result or the goal is cancelled. Records the received goals and
/// their outcomes.
fn work(
    goal: &N,
    context: &mut ActionContext<'_, N>,
    said: &Sender<(u64, &'static str)>,
    results: &Mutex<Receiver<u64>>,
) -> Result<N, HandlerError> {
    said.send((goal.x, "begun"))?;
    // A goal that is already cancelled is reported below.
    let _ = context.feedback(goal);
    loop {
        if let Some(reason) = context.cancel_reason() {
            said.send((goal.x, reason.name()))?;
            return Ok(n(0));
        }
        if let Ok(x) = results.lock().unwrap().recv_timeout(Duration::from_millis(1)) {
            said.send((goal.x, "reached"))?;
            return Ok(n(x));
        }
    }
}

struct Worker {
    service: Service,
    said: Receiver<(u64, &'static str)>,
    results: Sender<u64>,
}

impl Worker {
    fn open(node: &Node, policy: GoalPolicy) -> Worker {
        let (say, said) = mpsc::channel();
        let (results, give) = mpsc::channel();
        let give = Mutex::new(give);
        let handler =
            move |goal: &N, context: &mut ActionContext<'_, N>| work(goal, context, &say, &give);
        let service = node.action::<N, N, N>("/navigate").policy(policy).serve(handler).unwrap();
        Worker { service, said, results }
    }

    fn expect(&self, goal: u64, what: &str) {
        assert_eq!(self.said.recv_timeout(LONG).unwrap(), (goal, what));
    }
}

fn reason(error: &Error) -> CancelReason {
    match error {
        Error::Cancelled { topic, reason } if topic == "/navigate" => *reason,
        other => panic!("{other}"),
    }
}

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let node = net.node("victim");
    match role.as_str() {
        "server" => {
            let (say, _said) = mpsc::channel();
            let (_results, give) = mpsc::channel();
            let give = Mutex::new(give);
            let handler = move |goal: &N, context: &mut ActionContext<'_, N>| {
                tell("called");
                work(goal, context, &say, &give)
            };
            let _service = node.action::<N, N, N>("/navigate").serve(handler).unwrap();
            tell("ready");
            let _ = common::orders().recv();
        }
        "client" => {
            let _ = send(&client(&node), 1).result_timeout(LONG);
        }
        _ => panic!("unknown role: {role}"),
    }
}

#[test]
fn a_goal_has_its_feedback_in_order_and_then_its_result() {
    let net = Net::new("action");
    let (a, b) = (net.node("a"), net.node("b"));
    let handler = |goal: &N, context: &mut ActionContext<'_, N>| {
        assert_eq!((context.caller(), context.cancelled()), ("/b", false));
        for x in 0..goal.x {
            context.feedback(&n(x))?;
        }
        Ok(n(goal.x))
    };
    let service = a.action::<N, N, N>("/navigate").serve(handler).unwrap();
    let client = client(&b);
    assert_eq!(client.name(), "/navigate");
    for count in [0, 1, 1000] {
        let goal = send(&client, count);
        for x in 0..count {
            assert_eq!(*goal.feedback().unwrap().unwrap(), n(x));
        }
        assert!(goal.feedback().unwrap().is_none());
        assert_eq!(*goal.result_timeout(LONG).unwrap(), n(count));
        assert_eq!(goal.result_timeout(LONG).unwrap_err().code(), "closed");
        assert!(goal.feedback().unwrap().is_none());
    }
    let mut received = Vec::new();
    let goal = send(&client, 100);
    assert_eq!(*goal.result_with_timeout(LONG, |x| received.push(x.x)).unwrap(), n(100));
    assert_eq!(received, (0..100).collect::<Vec<_>>());
    // A caller may wait for the result alone.
    assert_eq!(*send(&client, 7).result_timeout(LONG).unwrap(), n(7));
    assert_eq!(*b.call_timeout::<N, N>("/navigate", &n(3), LONG).unwrap(), n(3));
    let stats = client.stats();
    assert_eq!(
        (stats.calls, stats.late, stats.feedback_skipped, stats.feedback_lost),
        (5, 0, 0, 0)
    );
    eventually("the last goal has ended", || service.stats().running == 0);
    assert_eq!(service.stats().calls, 6);
}

#[test]
fn unread_feedback_is_skipped_and_counted() {
    let net = Net::new("feedback");
    let (a, b) = (net.node("a"), net.node("b"));
    let handler = |goal: &N, context: &mut ActionContext<'_, N>| {
        (0..goal.x).try_for_each(|x| context.feedback(&n(x)))?;
        Ok(n(1))
    };
    let service = a.action::<N, N, N>("/navigate").serve(handler).unwrap();
    let client = client(&b);
    // Nobody reads during the run: the client skips sent messages, and the server does not send what exceeds
    // its log.
    let goal = send(&client, 200_000);
    eventually("the handler has returned", || {
        let stats = service.stats();
        (stats.calls, stats.running, stats.waiting) == (1, 0, 0)
    });
    assert_eq!(*goal.result_timeout(LONG).unwrap(), n(1));
    let mut kept = 0;
    while goal.feedback().unwrap().is_some() {
        kept += 1;
    }
    let stats = client.stats();
    assert_eq!(kept, 1024);
    assert!(stats.feedback_skipped > 0 && stats.feedback_lost > 0, "{stats:?}");
    assert_eq!(kept + stats.feedback_skipped + stats.feedback_lost, 200_000);
}

#[test]
fn async_goals() {
    let net = Net::new("async");
    let (a, b) = (net.node("a"), net.node("b"));
    let client = client(&b);
    let early = send(&client, 5);
    let worker = Worker::open(&a, GoalPolicy::Queue(8));
    worker.expect(5, "begun");
    worker.results.send(6).unwrap();
    assert_eq!(*block_on(early).unwrap(), n(6));
    let mut goal = send(&client, 7);
    worker.expect(5, "reached");
    worker.expect(7, "begun");
    let mut next = || {
        block_on(std::future::poll_fn(|context| {
            Stream::poll_next(std::pin::Pin::new(&mut goal), context)
        }))
    };
    assert_eq!(*next().unwrap().unwrap(), n(7));
    worker.results.send(8).unwrap();
    assert!(next().is_none());
    assert_eq!(*block_on(goal).unwrap(), n(8));
    let short = CallOptions::new().timeout(Duration::from_millis(20));
    let late = client.send(&n(9), short).unwrap();
    worker.expect(7, "reached");
    assert_eq!(block_on(late).unwrap_err().code(), "timeout");
}

#[test]
fn two_threads_wait_for_feedback_and_for_the_result() {
    let net = Net::new("threads");
    let (a, b) = (net.node("a"), net.node("b"));
    let handler = |_: &N, context: &mut ActionContext<'_, N>| {
        for x in 0..500 {
            context.feedback(&n(x))?;
        }
        Ok(n(1))
    };
    let _service =
        a.action::<N, N, N>("/navigate").policy(GoalPolicy::Queue(64)).serve(handler).unwrap();
    let client = client(&b);
    for _ in 0..20 {
        let goal = Arc::new(send(&client, 1));
        let other = goal.clone();
        let hears = std::thread::spawn(move || {
            let mut received = 0;
            while other.feedback().unwrap().is_some() {
                received += 1;
            }
            received
        });
        assert_eq!(*goal.result_timeout(LONG).unwrap(), n(1));
        assert_eq!(hears.join().unwrap(), 500);
    }
}

#[test]
fn rejected_goal_names_the_running_goal() {
    let net = Net::new("reject");
    let (a, b, c) = (net.node("a"), net.node("b"), net.node("c"));
    let worker = Worker::open(&a, GoalPolicy::default());
    let (first, second) = (client(&b), client(&c));
    let goal = send(&first, 1);
    worker.expect(1, "begun");
    let error = send(&second, 2).result_timeout(LONG).unwrap_err();
    let Error::Refused { node, running, .. } = &error else { panic!("{error}") };
    assert_eq!((&**node, &**running), ("/a", "/b"));
    assert!(error.to_string().contains("/b"), "{error}");
    assert_eq!(worker.service.stats().refused, 1);
    worker.results.send(5).unwrap();
    assert_eq!(*goal.result_timeout(LONG).unwrap(), n(5));
    worker.expect(1, "reached");
    // After a result arrives, the server accepts the next goal immediately.
    for x in 10..200 {
        worker.results.send(x).unwrap();
        assert_eq!(*send(&second, x).result_timeout(LONG).unwrap(), n(x));
        worker.expect(x, "begun");
        worker.expect(x, "reached");
    }
}

#[test]
fn queued_goals_run_in_order() {
    let net = Net::new("queue");
    let (a, b) = (net.node("a"), net.node("b"));
    let zero = a.action::<N, N, N>("/zero").policy(GoalPolicy::Queue(0)).serve(|g, _| Ok(*g));
    assert_eq!(zero.err().map(|e| e.code()), Some("bad_value"));
    let worker = Worker::open(&a, GoalPolicy::Queue(2));
    let client = client(&b);
    let first = send(&client, 1);
    worker.expect(1, "begun");
    let (second, third) = (send(&client, 2), send(&client, 3));
    eventually("two wait", || worker.service.stats().waiting == 2);
    let error = send(&client, 4).result_timeout(LONG).unwrap_err();
    assert!(matches!(&error, Error::Refused { backlog: 2, .. }), "{error}");
    // A cancel removes the queued goal while the first one keeps running.
    second.cancel().unwrap();
    assert_eq!(reason(&second.result_timeout(LONG).unwrap_err()), CancelReason::Caller);
    assert!(second.feedback().unwrap().is_none());
    assert_eq!((worker.service.stats().waiting, worker.service.stats().running), (1, 1));
    worker.results.send(11).unwrap();
    assert_eq!(*first.result_timeout(LONG).unwrap(), n(11));
    worker.expect(1, "reached");
    worker.expect(3, "begun");
    worker.results.send(13).unwrap();
    assert_eq!(*third.result_timeout(LONG).unwrap(), n(13));
}

#[test]
fn newer_goal_preempts_the_older() {
    let net = Net::new("replace");
    let (a, b, c) = (net.node("a"), net.node("b"), net.node("c"));
    let (go, gate) = mpsc::channel::<()>();
    let (say, said) = mpsc::channel();
    let gate = Mutex::new(gate);
    // A handler that is slow to stop.
    let handler = move |goal: &N, context: &mut ActionContext<'_, N>| {
        say.send((goal.x, "begun"))?;
        gate.lock().unwrap().recv()?;
        say.send((goal.x, context.cancel_reason().map_or("reached", CancelReason::name)))?;
        Ok(*goal)
    };
    let replace = a.action::<N, N, N>("/navigate").policy(GoalPolicy::Replace);
    let service = replace.serve(handler).unwrap();
    let expect = |goal: u64, what: &str| {
        assert_eq!(said.recv_timeout(LONG).unwrap(), (goal, what));
    };
    let (one, other) = (client(&b), client(&c));
    let first = send(&one, 1);
    expect(1, "begun");
    let second = send(&other, 2);
    eventually("the second goal is queued", || service.stats().waiting == 1);
    let third = send(&one, 3);
    // The second goal never started, so it ends at once. The first ends when its handler has returned.
    assert_eq!(reason(&second.result_timeout(LONG).unwrap_err()), CancelReason::Preempted);
    assert_eq!(first.result_within(Duration::ZERO).unwrap_err(), Error::Interrupted);
    assert!(said.try_recv().is_err());
    go.send(()).unwrap();
    expect(1, "preempted");
    assert_eq!(reason(&first.result_timeout(LONG).unwrap_err()), CancelReason::Preempted);
    expect(3, "begun");
    go.send(()).unwrap();
    expect(3, "reached");
    assert_eq!(*third.result_timeout(LONG).unwrap(), n(3));
    assert_eq!((service.stats().calls, service.stats().refused), (3, 0));
}

#[test]
fn a_goal_is_cancelled_in_each_state() {
    let net = Net::new("cancel");
    let (a, b) = (net.node("a"), net.node("b"));
    let client = client(&b);
    // Without a server.
    let goal = send(&client, 1);
    goal.cancel().unwrap();
    assert_eq!(reason(&goal.result_timeout(LONG).unwrap_err()), CancelReason::Caller);
    let worker = Worker::open(&a, GoalPolicy::default());
    // Running: the caller receives the result once the handler has returned.
    let goal = send(&client, 2);
    worker.expect(2, "begun");
    assert_eq!(*goal.feedback().unwrap().unwrap(), n(2));
    goal.cancel().unwrap();
    goal.cancel().unwrap();
    assert_eq!(reason(&goal.result_timeout(LONG).unwrap_err()), CancelReason::Caller);
    worker.expect(2, "caller");
    // Dropped client handle.
    let goal = send(&client, 3);
    worker.expect(3, "begun");
    drop(goal);
    worker.expect(3, "caller");
    eventually("the handler has returned", || worker.service.stats().running == 0);
    // Timed out.
    let short = CallOptions::new().timeout(Duration::from_millis(20));
    let goal = client.send(&n(4), short).unwrap();
    assert_eq!(goal.result_timeout(LONG).unwrap_err().code(), "timeout");
    let ended = std::iter::from_fn(|| worker.said.recv_timeout(LONG).ok());
    let ended = ended.take_while(|said| *said != (4, "timed_out")).count();
    assert!(ended <= 1, "{ended}");
    eventually("the handler has returned", || worker.service.stats().running == 0);
    // The caller's wait ends, and the goal continues.
    let goal = send(&client, 5);
    worker.expect(5, "begun");
    let error = goal.result_timeout(Duration::from_millis(10)).unwrap_err();
    assert!(matches!(&error, Error::Timeout { what, .. } if what.contains("result")), "{error}");
    let error = goal.result_with_timeout(Duration::from_millis(10), |_| ()).unwrap_err();
    assert_eq!(error.code(), "timeout");
    worker.results.send(50).unwrap();
    assert_eq!(*goal.result_timeout(LONG).unwrap(), n(50));
    worker.expect(5, "reached");
    // Finished: a cancel has no effect.
    goal.cancel().unwrap();
    assert_eq!(goal.result_timeout(LONG).unwrap_err().code(), "closed");
    // The server closes.
    let goal = send(&client, 6);
    worker.expect(6, "begun");
    let waits = std::thread::spawn(move || goal.result_timeout(LONG).unwrap_err());
    drop(worker.service);
    let error = waits.join().unwrap();
    assert!(
        matches!(
            error,
            Error::Cancelled { reason: CancelReason::ServerClosing, .. } | Error::ServerLost { .. }
        ),
        "{error}"
    );
    assert_eq!(worker.said.recv_timeout(LONG).unwrap(), (6, "server_closing"));
}

#[test]
fn cancel_unseen_by_the_handler_keeps_the_result() {
    let net = Net::new("reached");
    let (a, b) = (net.node("a"), net.node("b"));
    let (go, gate) = mpsc::channel::<()>();
    let (say, said) = mpsc::channel();
    let gate = Mutex::new(gate);
    let handler = move |goal: &N, context: &mut ActionContext<'_, N>| {
        say.send(context.context())?;
        gate.lock().unwrap().recv()?;
        match goal.x {
            0 => Err(HandlerError::new("Stuck", "blocked by a wall")),
            1 => Ok(*goal),
            _ => {
                let cancelled = context.feedback(goal).unwrap_err();
                Err(cancelled.into())
            }
        }
    };
    let _service = a.action::<N, N, N>("/navigate").serve(handler).unwrap();
    let client = client(&b);
    let cancelled = |x| {
        let goal = send(&client, x);
        let context = said.recv_timeout(LONG).unwrap();
        goal.cancel().unwrap();
        if x == 2 {
            eventually("the server knows the goal", || context.cancel_reason().is_some());
        }
        go.send(()).unwrap();
        goal.result_timeout(LONG)
    };
    assert_eq!(*cancelled(1).unwrap(), n(1));
    assert_eq!(reason(&cancelled(2).unwrap_err()), CancelReason::Caller);
    let goal = send(&client, 0);
    said.recv_timeout(LONG).unwrap();
    go.send(()).unwrap();
    let error = goal.result_timeout(LONG).unwrap_err();
    assert!(
        matches!(&error, Error::CallFailed { failure, .. } if failure.kind == "Stuck"),
        "{error}"
    );
}

#[test]
fn operator_cancel_ends_goals_of_all_clients() {
    let net = Net::new("operator");
    let (a, b, c) = (net.node("a"), net.node("b"), net.node("c"));
    let worker = Worker::open(&a, GoalPolicy::Queue(8));
    let (first, second) = (client(&b), client(&c));
    let running = send(&first, 1);
    worker.expect(1, "begun");
    let waiting = send(&first, 2);
    eventually("a goal is queued", || worker.service.stats().waiting == 1);
    eventually("the server is found", || second.server_count() == 1);
    assert_eq!(second.cancel_all().unwrap(), 1);
    worker.expect(1, "operator");
    for goal in [running, waiting] {
        assert_eq!(reason(&goal.result_timeout(LONG).unwrap_err()), CancelReason::Operator);
    }
}

#[test]
fn goal_of_a_dead_or_stopped_server() {
    let net = Net::new("lost");
    let node = net.node("a");
    let client = client(&node);
    let mut child = Child::spawn(&net, "server");
    child.expect("ready");
    let goal = send(&client, 1);
    child.expect("called");
    assert_eq!(*goal.feedback().unwrap().unwrap(), n(1));
    let waits =
        std::thread::spawn(move || (goal.feedback().unwrap().is_none(), goal.result_timeout(LONG)));
    let killed = Instant::now();
    child.kill();
    let (ended, result) = waits.join().unwrap();
    println!("{:?} from SIGKILL to the error of the goal", killed.elapsed());
    let error = result.unwrap_err();
    assert!(ended);
    assert!(matches!(&error, Error::ServerLost { node, .. } if node == "/victim"), "{error}");
    // If the server is stopped, a goal waits until its timeout. The server handles the cancel after it
    // resumes.
    let mut child = Child::spawn(&net, "server");
    child.expect("ready");
    eventually("the server is found", || client.server_count() == 1);
    let goal = send(&client, 2);
    child.expect("called");
    child.stop();
    goal.cancel().unwrap();
    let error = goal.result_timeout(Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.code(), "timeout");
    child.resume();
    assert_eq!(reason(&goal.result_timeout(LONG).unwrap_err()), CancelReason::Caller);
}

#[test]
fn the_death_of_a_caller_cancels_its_goal() {
    let net = Net::new("caller");
    let node = net.node("a");
    let worker = Worker::open(&node, GoalPolicy::default());
    let mut child = Child::spawn(&net, "client");
    worker.expect(1, "begun");
    child.kill();
    worker.expect(1, "caller_gone");
    // The server accepts a goal of another client.
    eventually("the handler has returned", || worker.service.stats().running == 0);
    let goal = send(&client(&node), 2);
    worker.expect(2, "begun");
    drop(goal);
    worker.expect(2, "caller");
}

#[test]
fn sixty_four_clients_are_served() {
    let net = Net::new("many");
    let (a, b) = (net.node("a"), net.node("b"));
    let handler = |goal: &N, context: &mut ActionContext<'_, N>| {
        for x in 0..10 {
            context.feedback(&n(goal.x + x))?;
        }
        Ok(*goal)
    };
    let queue = a.action::<N, N, N>("/navigate").policy(GoalPolicy::Queue(64));
    let service = queue.serve(handler).unwrap();
    let clients: Vec<Actions> = (0..64).map(|_| client(&b)).collect();
    std::thread::scope(|scope| {
        for (x, client) in (0..).zip(&clients) {
            scope.spawn(move || {
                let mut received = Vec::new();
                let goal = send(client, x * 100);
                let result = goal.result_with_timeout(LONG, |one| received.push(one.x)).unwrap();
                assert_eq!((*result, received), (n(x * 100), (x * 100..x * 100 + 10).collect()));
            });
        }
    });
    assert_eq!(service.stats().calls, 64);
    assert!(clients.iter().all(|client| client.stats().late == 0));
}

#[test]
fn incompatible_action_types_are_reported() {
    let net = Net::new("types");
    let (a, b) = (net.node("a"), net.node("b"));
    let worker = Worker::open(&a, GoalPolicy::Queue(8));
    let fails = |result: Result<(), Error>| result.unwrap_err().code();
    let client = b.action_client::<F, N, N>("/navigate").open().unwrap();
    let goal = client.send(&F { x: 1.0 }, CallOptions::new()).unwrap();
    assert_eq!(fails(goal.result_timeout(LONG).map(drop)), "incompatible_type");
    let client = b.action_client::<N, F, N>("/navigate").open().unwrap();
    let goal = client.send(&n(1), CallOptions::new()).unwrap();
    let code = fails(goal.result_timeout(LONG).map(drop));
    assert!(["incompatible_type", "call_failed"].contains(&code), "{code}");
    drop(worker);
}

/// Feedback that arrives faster than it is handled must not extend the wait, and the error names its limit.
#[test]
fn a_wait_with_feedback_ends_in_time() {
    let net = Net::new("endless feedback");
    let (a, b) = (net.node("a"), net.node("b"));
    let handler = |goal: &N, context: &mut rnet::ActionContext<'_, N>| {
        while !context.cancelled() {
            context.feedback(goal)?;
            std::thread::sleep(Duration::from_millis(1)); // sleep: the period of the feedback
        }
        Ok(*goal)
    };
    let _service = a.action::<N, N, N>("/endless").serve(handler).unwrap();
    let client = b.action_client::<N, N, N>("/endless").open().unwrap();
    let goal = client.send(&n(1), CallOptions::new()).unwrap();
    let slow = |_: &N| std::thread::sleep(Duration::from_millis(5)); // sleep: slower than the feedback
    let error = goal.result_with_timeout(Duration::from_millis(50), slow).unwrap_err();
    assert!(matches!(&error, Error::Timeout { after_ms: 50, .. }), "{error}");
}
