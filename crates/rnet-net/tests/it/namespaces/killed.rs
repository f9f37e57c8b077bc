//! Nodes of two hosts with the program `rnet-link`, which is killed repeatedly.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::net::{Host, Net};
use super::peer::{LIMIT, PORT, Peer};

/// A log that holds all messages of a talker in a test: a thousand numbers per second, for minutes.
const LOG_LEN_BYTES: u64 = 64 << 20;

/// Starts a link in the background, as nodes do.
pub fn start(host: &Host, name: &str, connect: Option<&Host>) {
    let listen = format!("tcp/0.0.0.0:{PORT}");
    let other = connect.map(|other| format!("tcp/{}:{PORT}", other.address()));
    let other = other.iter().map(|endpoint| ("RNET_CONNECT", endpoint.as_str()));
    start_with(host, name, [("RNET_LISTEN", listen.as_str())].into_iter().chain(other));
}

/// The same with these settings.
pub fn start_with<'a>(
    host: &Host,
    name: &str,
    settings: impl IntoIterator<Item = (&'a str, &'a str)>,
) {
    let mut command: Command = host.command(env!("CARGO_BIN_EXE_rnet-link"));
    command.arg("start").env("RNET_HOST", name).current_dir("/").envs(settings);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The processes of the link of a host once there are two; the first holds the role.
pub fn both(host: &Host) -> [i32; 2] {
    let begun = Instant::now();
    loop {
        if let [link, standby] = host.processes("rnet-link")[..] {
            return [link, standby];
        }
        assert!(begun.elapsed() < LIMIT, "a link and a standby");
        std::thread::sleep(Duration::from_millis(10)); // sleep: interval between two checks
    }
}

fn kill_links(test: &str, times: usize) {
    let Some(mut net) = Net::new(test) else { return };
    let (one, two) = (net.host(), net.host());
    let listener = Peer::actor(&two, "listen");
    let mut talker = Peer::actor(&one, &format!("talk {LOG_LEN_BYTES}"));
    start(&one, "host1", None);
    start(&two, "host2", Some(&one));
    let more = |count: usize| listener.wait("heard", listener.count("heard") + count).1;
    more(1);
    let (mut times_ms, mut all_killed) = (Vec::new(), BTreeSet::new());
    for turn in 0..times {
        let host = [&one, &two][turn % 2];
        let [link, standby] = both(host);
        let killed = Instant::now();
        host.signal(link, Signal::KILL);
        all_killed.insert(link);
        let received_at = more(2);
        times_ms.push((received_at - killed).as_millis());
        let begun = Instant::now();
        while host.processes("rnet-link").first() != Some(&standby) {
            assert!(begun.elapsed() < LIMIT, "the standby takes over");
            std::thread::sleep(Duration::from_millis(10)); // sleep: interval between two checks
        }
        // One kill per second.
        std::thread::sleep(Duration::from_secs(1).saturating_sub(killed.elapsed())); // sleep: one kill per second
    }
    talker.end_input();
    let sent: u64 = talker.wait("sent", 1).0.parse().unwrap();
    let (counts, _) = listener.wait(&format!("heard {sent}:"), 1);
    let counts: Vec<u64> = counts.split(' ').map(|number| number.parse().unwrap()).collect();
    times_ms.sort_unstable();
    println!(
        "{times} links killed: {sent} sent, {} received, {} lost, PeerLost {}; two hundred more after ms: median {:?} \
         max {:?}",
        counts[0],
        counts[1],
        listener.count("lost"),
        times_ms.get(times / 2),
        times_ms.last()
    );
    // Messages in the log of the publisher are not lost, and a link that changes hands does not count as a
    // death of a node.
    assert_eq!(counts, [sent, 0]);
    assert_eq!((listener.count("twice"), listener.count("lost")), (0, 0));
    assert_eq!(all_killed.len(), times, "each round has killed another process");
}

#[test]
fn links_that_are_killed_lose_nothing_uncounted() {
    kill_links("killed::links_that_are_killed_lose_nothing_uncounted", 5);
}

/// Its standby takes over a second later: after a cut of this length the host would be lost.
#[test]
fn stopped_link_is_replaced_without_a_lost_host() {
    let test = "killed::stopped_link_is_replaced_without_a_lost_host";
    let Some(mut net) = Net::new(test) else { return };
    let (one, two) = (net.host(), net.host());
    let (listener, watcher) = (Peer::actor(&two, "listen"), Peer::actor(&two, "watch"));
    let mut talker = Peer::actor(&one, "talk");
    start(&one, "host1", None);
    start(&two, "host2", Some(&one));
    watcher.wait(&format!("host1 at tcp/{}:{PORT}", one.address()), 1);
    let more = |count: usize| listener.wait("heard", listener.count("heard") + count).1;
    more(1);
    for host in [&one, &two] {
        let [link, standby] = both(host);
        host.signal(link, Signal::STOP);
        host.signal(standby, Signal::STOP);
        std::thread::sleep(Duration::from_secs(1)); // sleep: no process links meanwhile
        host.signal(standby, Signal::CONT);
        more(2);
    }
    assert_eq!(listener.count("lost"), 0);
    talker.end_input();
    let sent: u64 = talker.wait("sent", 1).0.parse().unwrap();
    let (counts, _) = listener.wait(&format!("heard {sent}:"), 1);
    let counts: Vec<u64> = counts.split(' ').map(|number| number.parse().unwrap()).collect();
    println!("{sent} sent, {} received, {} that the log had not kept", counts[0], counts[1]);
    assert_eq!(counts[0] + counts[1], sent);
    assert_eq!(listener.count("twice"), 0);
}

#[test]
#[ignore = "for `make soak`: a minute"]
fn soak_link_is_killed_every_second() {
    kill_links("killed::soak_link_is_killed_every_second", 60);
}
