//! A server of another host that dies during a call: its caller gets an error and does not wait for its
//! time-out.

use std::io::Read;
use std::thread;
use std::time::Duration;

use rnet::{Error, Node};
use rustix::process::Signal;

use super::killed::start;
use super::net::Net;
use super::peer::{ACTOR_LIMIT, Peer, say};
use super::runs::step_note;
use super::traffic::common_ns;

const LONG: Duration = ACTOR_LIMIT;
/// How many servers die.
const TRIALS: usize = 24;

/// Prints when it is called, and does not answer. Its node has a topic as well.
pub fn serve(name: &str) {
    let node = Node::builder(name).open().unwrap();
    let mut alive = node.publisher::<[u8]>("/alive").open().unwrap();
    let service = node.service::<[u8], [u8]>("/wait").serve(|_| -> Result<Vec<u8>, _> {
        say("asked");
        loop {
            thread::park();
        }
    });
    let _service: rnet::Service = service.unwrap();
    say("ready");
    alive.wait_for_subscribers_timeout(1, LONG).unwrap();
    alive.send(b"x").unwrap();
    say(&format!("process {}", std::process::id()));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Calls on request; prints when the call has ended, and when the link has reported that the node is lost.
pub fn call() {
    let node = Node::builder("caller").open().unwrap();
    let mut alive = node.subscriber::<[u8]>("/alive").open().unwrap();
    let client = node.client::<[u8], [u8]>("/wait").open().unwrap();
    thread::spawn(move || {
        loop {
            match alive.recv_timeout(LONG) {
                Ok(_) => {}
                Err(Error::PeerLost { node, .. }) => say(&format!("lost {} {node}", common_ns())),
                Err(error) => say(&format!("the topic ends: {error}")),
            }
        }
    });
    say("ready");
    for _ in std::io::stdin().lines().map_while(Result::ok) {
        let called = client.call_timeout(b"", LONG).map(|answer| answer.len());
        let ended_ns = common_ns();
        match called {
            Err(Error::ServerLost { node, host, .. }) => {
                say(&format!("ended {ended_ns} {node} on {host}"))
            }
            other => say(&format!("ended {ended_ns} {other:?}")),
        }
    }
}

#[test]
fn death_of_a_remote_server_is_an_error_at_its_caller() {
    let test = "servers::death_of_a_remote_server_is_an_error_at_its_caller";
    let Some(mut net) = Net::new(test) else { return };
    let (one, two) = (net.host(), net.host());
    let mut caller = Peer::actor(&two, "call");
    // The link of a host stops with its last node.
    let _node = Peer::actor(&one, "listen");
    start(&one, "host1", None);
    start(&two, "host2", Some(&one));
    let (mut calls_ns, mut notices_ns) = (Vec::new(), Vec::new());
    for trial in 1..=TRIALS {
        let name = format!("server{trial}");
        let server = Peer::actor(&one, &format!("serve {name}"));
        let process = server.wait("process", 1).0.parse().unwrap();
        caller.tell("call");
        server.wait("asked", 1);
        let killed_ns = common_ns();
        one.signal(process, Signal::KILL);
        let after = |line: (String, _)| {
            let (at, what) = line.0.split_once(' ').expect(&line.0);
            (at.parse::<i64>().unwrap() - killed_ns, what.to_owned())
        };
        let (ended_ns, how) = after(caller.wait("ended", trial));
        let (lost_ns, node) = after(caller.wait("lost", trial));
        assert_eq!(node, format!("@host1/{name}"));
        assert_eq!(how, format!("{node} on host1"));
        calls_ns.push(ended_ns);
        notices_ns.push(lost_ns);
    }
    let pairs = calls_ns.iter().zip(&notices_ns);
    let within = pairs.filter(|(call, notice)| **call <= 2 * **notice).count();
    let figures = |mut all: Vec<i64>| {
        all.sort_unstable();
        let ms = |ns: i64| ns as f64 / 1e6;
        format!("median {:.1} ms, max {:.1} ms", ms(all[all.len() / 2]), ms(all[all.len() - 1]))
    };
    step_note(&format!(
        "ServerLost on another host after SIGKILL, {TRIALS} trials: {}; PeerLost of the same deaths: {}; {within} within \
         twice that",
        figures(calls_ns),
        figures(notices_ns)
    ));
    // Compared with the notice of the same death, and not with the clock: a busy machine delays both.
    assert!(2 * within > TRIALS, "only {within} of {TRIALS} within twice the notice");
}
