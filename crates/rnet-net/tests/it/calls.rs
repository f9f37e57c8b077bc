//! Services between hosts: they are messages on topics, and the link has no code for them.

use crate::common;
use crate::hosts;

use std::sync::mpsc;
use std::time::Duration;

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::{ActionContext, CallOptions, Error, GoalPolicy, HandlerError, Node, Responder, Service};

fn options() -> CallOptions {
    CallOptions::new().timeout(LONG)
}

/// Answers with as many replies as the first byte specifies; for zero, runs until it is cancelled. Reports
/// when it begins.
fn count(node: &Node, begun: mpsc::Sender<()>) -> Service {
    let handler = move |wanted: &[u8], responder: &mut Responder<'_, [u8]>| {
        begun.send(())?;
        if wanted[0] == u8::MAX {
            return Err(HandlerError::new("TooMany", "it counts to 254"));
        }
        for number in 0..wanted[0] {
            responder.send(&[number])?;
        }
        while wanted[0] == 0 && !responder.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1)); // sleep: interval between two checks
        }
        Ok(())
    };
    node.service::<[u8], [u8]>("/count").serve_stream(handler).unwrap()
}

#[test]
fn calls_streams_errors_and_cancellation_cross() {
    let hosts = Hosts::new("calls", 2);
    let (server, home) = (hosts.node(0, "server"), hosts.node(1, "home"));
    let (begun, _calls) = mpsc::channel();
    let service = count(&server, begun);
    let client = home.client::<[u8], [u8]>("/count").open().unwrap();
    assert_eq!(&*client.call_timeout(&[1], LONG).unwrap(), [0]);
    let mut stream = client.stream(&[200], options()).unwrap();
    for number in 0..200 {
        assert_eq!(&*stream.next().unwrap().unwrap(), [number]);
    }
    assert!(stream.next().unwrap().is_none());
    let error = client.call_timeout(&[u8::MAX], LONG).unwrap_err();
    let Error::CallFailed { node, failure, .. } = &error else { panic!("{error}") };
    assert_eq!((&**node, &*failure.kind), ("@host0/server", "TooMany"));
    let waits = client.start(&[0], options()).unwrap();
    eventually("it runs", || service.stats().running == 1);
    waits.cancel();
    eventually("its handler has returned", || service.stats().cancelled == 1);
    assert_eq!((service.stats().calls, client.stats().late), (4, 0));
    // A server on this host is the second one.
    let (begun, _here) = mpsc::channel();
    let other = count(&home, begun);
    eventually("both servers are known", || client.server_count() == 2);
    (0..4).for_each(|_| drop(client.call_timeout(&[1], LONG).unwrap()));
    assert_eq!((service.stats().calls, other.stats().calls), (6, 2));
}

#[test]
fn lost_host_ends_the_calls_of_both_sides() {
    let hosts = Hosts::new("lost calls", 2);
    let (server, home) = (hosts.node(0, "server"), hosts.node(1, "home"));
    let (begun, calls) = mpsc::channel();
    let service = count(&server, begun);
    let client = home.client::<[u8], [u8]>("/count").open().unwrap();
    let waits = client.start(&[0], options()).unwrap();
    calls.recv_timeout(LONG).unwrap();
    hosts.cut(0, 1);
    match waits.wait().unwrap_err() {
        Error::ServerLost { node, host, .. } => {
            assert_eq!((&*node, &*host), ("@host0/server", "host0"));
        }
        other => panic!("{other}"),
    }
    eventually("the call of the lost host is cancelled", || service.stats().cancelled == 1);
    // The server is found again.
    hosts.heal(0, 1);
    assert_eq!(&*client.call_timeout(&[1], LONG).unwrap(), [0]);
}

#[test]
fn goals_feedback_and_reasons_cross() {
    let hosts = Hosts::new("goals", 2);
    let (server, home) = (hosts.node(0, "server"), hosts.node(1, "home"));
    let handler = |goal: &[u8], context: &mut ActionContext<'_, [u8]>| {
        for number in 0..goal[0] {
            context.feedback(&[number])?;
        }
        while goal[0] == 0 && !context.cancelled() {
            std::thread::sleep(Duration::from_millis(1)); // sleep: interval between two checks
        }
        Ok(goal.to_vec())
    };
    let replace = server.action::<[u8], [u8], [u8]>("/count").policy(GoalPolicy::Replace);
    let action = replace.serve(handler).unwrap();
    let client = home.action_client::<[u8], [u8], [u8]>("/count").open().unwrap();
    let send = |count: u8| client.send(&[count], CallOptions::new()).unwrap();
    let mut feedback = Vec::new();
    let result = send(200).result_with_timeout(LONG, |number| feedback.push(number[0])).unwrap();
    assert_eq!((&*result, feedback), (&[200][..], (0..200).collect()));
    let first = send(0);
    eventually("it runs", || action.stats().running == 1);
    let second = send(0);
    let reason = |error: Error| match error {
        Error::Cancelled { reason, .. } => reason.name(),
        other => panic!("{other}"),
    };
    assert_eq!(reason(first.result_timeout(LONG).unwrap_err()), "preempted");
    eventually("the second runs", || action.stats().running == 1);
    second.cancel().unwrap();
    assert_eq!(reason(second.result_timeout(LONG).unwrap_err()), "caller");
    let third = send(0);
    eventually("the third runs", || action.stats().running == 1);
    hosts.cut(0, 1);
    assert!(matches!(third.result_timeout(LONG).unwrap_err(), Error::ServerLost { .. }));
    eventually("it has ended there", || action.stats().cancelled == 3);
}

#[test]
fn jobs_of_a_lost_host_are_done_by_another() {
    let hosts = Hosts::new("jobs", 2);
    let (away, home) = (hosts.node(0, "away"), hosts.node(1, "home"));
    let worker = away.pull::<[u8]>("/jobs").open().unwrap();
    let jobs = home.push::<[u8]>("/jobs").open().unwrap();
    jobs.push(&[1]).unwrap();
    let job = worker.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!((job[0], job.context().redelivered()), (1, false));
    job.ack();
    jobs.wait_until_done_timeout(LONG).unwrap();
    jobs.push(&[2]).unwrap();
    let held = worker.recv_timeout(LONG).unwrap().unwrap();
    let here = home.pull::<[u8]>("/jobs").open().unwrap();
    hosts.cut(0, 1);
    let job = here.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!((job[0], job.context().redelivered()), (2, true));
    job.ack();
    jobs.wait_until_done_timeout(LONG).unwrap();
    eventually("the worker of the lost host is cancelled", || held.context().is_cancelled());
    let stats = jobs.stats();
    assert_eq!((stats.done, stats.redelivered, stats.undelivered), (2, 1, 0));
}
