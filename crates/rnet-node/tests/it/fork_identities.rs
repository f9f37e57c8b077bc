//! Identities of forked processes, and calls between them.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::fork::{end_with_parent, fork, wait_for_the_end};
use common::{Child, LONG, Net, role, tell};
use rnet::{CallOptions, OnFull};

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    match role.as_str() {
        "identities" => fork_family(&net, 4, |number| {
            let opened = open_one_of_everything(&net, &format!("child{number}"));
            tell("ready");
            wait_for_the_end();
            drop(opened);
        }),
        "calls" => fork_family(&net, 3, |number| call_and_work(&net, number)),
        other => panic!("unknown role: {other}"),
    }
}

/// One object of each kind that has an identity, and a pending call of each kind.
fn open_one_of_everything(net: &Net, name: &str) -> Box<dyn std::any::Any> {
    type Bytes = [u8];
    let node = net.node(name);
    let serve = node.service::<Bytes, Bytes>(&format!("/{name}/echo"));
    let service = serve.serve(|asked: &[u8]| Ok(asked.to_vec())).unwrap();
    let act = node.action::<Bytes, Bytes, Bytes>(&format!("/{name}/move"));
    let action = act.serve(|goal: &[u8], _| Ok(goal.to_vec())).unwrap();
    let worker = node.pull::<Bytes>(&format!("/{name}/jobs")).open().unwrap();
    // All use the same names: only the identity differs.
    let client = node.client::<Bytes, Bytes>("/echo").open().unwrap();
    let call = client.start(b"a call", CallOptions::new()).unwrap();
    let mover = node.action_client::<Bytes, Bytes, Bytes>("/move").open().unwrap();
    let goal = mover.send(b"a goal", CallOptions::new()).unwrap();
    let jobs = node.push::<Bytes>("/jobs").open().unwrap();
    jobs.push(b"a job").unwrap();
    let publisher = node.publisher::<Bytes>("/t").open().unwrap();
    let subscriber = node.subscriber::<Bytes>("/t").open().unwrap();
    let opened = (service, action, worker, client, call, mover, goal);
    Box::new((opened, jobs, publisher, subscriber, node))
}

/// A parent that has used each source of identities, and the children that it then forks.
fn fork_family(net: &Net, count: usize, mut live: impl FnMut(usize)) {
    let own = open_one_of_everything(net, "parent");
    let children: Vec<_> = (0..count)
        .map(|number| {
            fork(|| {
                end_with_parent();
                live(number);
                wait_for_the_end();
                0
            })
        })
        .collect();
    tell("ready");
    wait_for_the_end();
    drop((own, children));
}

#[test]
fn no_identity_is_used_twice_across_forks() {
    let net = Net::new("fork identities");
    let mut parent = Child::spawn(&net, "identities");
    (0..5).for_each(|_| parent.expect("ready"));
    let snapshot = net.inspect();
    assert_eq!(snapshot.nodes.len(), 5);
    let incarnations: BTreeSet<u64> = snapshot.nodes.iter().map(|node| node.incarnation).collect();
    assert_eq!(incarnations.len(), 5);
    let publishers = snapshot.publishers.iter().map(|end| end.id);
    let subscriptions = snapshot.subscriptions.iter().map(|end| end.id);
    let count = snapshot.publishers.len() + snapshot.subscriptions.len();
    assert_eq!(publishers.chain(subscriptions).collect::<BTreeSet<u64>>().len(), count);
    // Servers see requests and clients replies. A call, a goal and a job carry the identity of their client.
    let mut owners = BTreeMap::<&str, Vec<(&str, &str)>>::new();
    for end in &snapshot.subscriptions {
        let own = ["/request", "/reply"].iter().find_map(|kind| end.topic.strip_suffix(kind));
        if let Some((of, id)) = own.and_then(|own| own.rsplit_once('/')) {
            owners.entry(&id[1..]).or_default().push((end.node.as_str(), of));
        }
    }
    assert_eq!(owners.values().map(Vec::len).sum::<usize>(), 5 * 6, "{owners:?}");
    for (id, owners) in &owners {
        assert_eq!(owners.len(), 1, "{id} is the identity of {owners:?}");
    }
    parent.finish();
}

#[test]
fn forked_clients_get_their_own_answers_and_forked_workers_their_own_jobs() {
    let net = Net::new("fork calls");
    let node = net.node("server");
    let serve = node.service::<[u8], [u8]>("/upper").at_once(4);
    let _service = serve.serve(|asked: &[u8]| Ok(asked.to_ascii_uppercase())).unwrap();
    let mut parent = Child::spawn(&net, "calls");
    for _ in 0..4 {
        let line = parent.hear();
        assert!(matches!(&*line, "ready" | "right"), "{line}");
    }
    let pusher = node.push::<[u8]>("/work").open().unwrap();
    let mut done = node.subscriber::<[u8]>("/done").reliable().open().unwrap();
    done.wait_for_publishers_timeout(3, LONG).unwrap();
    (0..60_u8).for_each(|job| pusher.push(&[job]).unwrap());
    pusher.wait_until_done_timeout(LONG).unwrap();
    let mut jobs = Vec::new();
    while jobs.len() < 60 {
        jobs.push(done.recv_timeout(LONG).unwrap()[0]);
    }
    // A closed worker does no late job.
    drop(pusher);
    let count = |worker: usize| {
        let close = node.client::<[u8], [u8]>(&format!("/close{worker}")).open().unwrap();
        u64::from_ne_bytes((*close.call_timeout(b"", LONG).unwrap()).try_into().unwrap())
    };
    assert_eq!((0..3).map(count).sum::<u64>(), 60, "a job was done twice");
    jobs.sort_unstable();
    assert_eq!(jobs, (0..60).collect::<Vec<u8>>());
    parent.finish();
}

/// Makes calls from forked children, which then do jobs.
fn call_and_work(net: &Net, number: usize) {
    let node = net.node(&format!("child{number}"));
    let client = node.client::<[u8], [u8]>("/upper").open().unwrap();
    let done =
        Mutex::new(node.publisher::<[u8]>("/done").reliable(OnFull::Wait(LONG)).open().unwrap());
    let executed = Arc::new(AtomicU64::new(0));
    let counter = executed.clone();
    let worker = node.pull::<[u8]>("/work").on(move |job, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        done.lock().unwrap().send(job)?;
        Ok(())
    });
    let worker = Mutex::new(Some(worker.unwrap()));
    let close = node.service::<[u8], [u8]>(&format!("/close{number}"));
    let close = close.serve(move |_: &[u8]| {
        drop(worker.lock().unwrap().take());
        Ok(executed.load(Ordering::Relaxed).to_ne_bytes().to_vec())
    });
    let wrong = (0..100).any(|call| {
        let asked = format!("child {number}, call {call}");
        *client.call_timeout(asked.as_bytes(), LONG).unwrap() != *asked.to_uppercase().as_bytes()
    });
    tell(if wrong { "an answer of another child" } else { "right" });
    wait_for_the_end();
    drop(close);
}
