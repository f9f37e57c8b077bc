//! `rnet-link start` by hand: what it prints, when the link exits, and the address of a host on the same machine.

use crate::folder;

use std::time::{Duration, Instant};

use folder::{Folder, LONG, eventually, free_port};
use rnet::msgs::LinkStatus;
use rnet::msgs::link_status::State;
use rustix::process::{Pid, Signal};

/// Stops what runs in the folder.
struct Started(Folder);

impl Drop for Started {
    fn drop(&mut self) {
        for role in ["link", "link-standby"] {
            if let Some(pid) = holder(&self.0, role) {
                kill(pid);
            }
        }
    }
}

fn kill(pid: u32) {
    let _ = rustix::process::kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
}

fn holder(place: &Folder, role: &str) -> Option<u32> {
    place.location().role(role).unwrap().holder().unwrap()
}

fn start(place: &Folder) -> String {
    let ran = place.command(&["start"]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// Starts a link without nodes; returns what was printed and its process.
fn start_alone(place: &Folder) -> (String, u32) {
    place.configure(&format!("[network]\nlisten = [\"tcp/127.0.0.1:{}\"]", free_port()));
    let said = start(place);
    eventually("a standby waits", || holder(place, "link-standby").is_some());
    (said, holder(place, "link").expect("the standby has a link"))
}

fn wait_for_the_end(place: &Folder) -> Duration {
    let begun = Instant::now();
    eventually("no process is left", || {
        holder(place, "link").or(holder(place, "link-standby")).is_none()
    });
    begun.elapsed()
}

#[test]
fn link_without_nodes_says_when_it_exits() {
    let place = Started(Folder::new("linkalone"));
    let (said, link) = start_alone(&place.0);
    let expected = format!(
        "started the link of domain linkalone, process {link}; it exits with the last node of the domain, or after \
         10 s without a node\n"
    );
    assert_eq!(said, expected);
    let took = wait_for_the_end(&place.0).as_secs();
    assert!((7..30).contains(&took), "{took}");
}

#[test]
fn standby_of_a_killed_link_without_nodes_exits() {
    let place = Started(Folder::new("linkkilled"));
    let (_, link) = start_alone(&place.0);
    kill(link);
    let took = wait_for_the_end(&place.0).as_secs();
    assert!(took < 5, "the standby waited for the first node: {took} s");
}

#[test]
fn status_shows_the_address_of_a_host_on_the_same_machine() {
    let (one, two) = (Started(Folder::new("linkpair")), Started(Folder::new("linkpair")));
    let port = free_port();
    let at = format!("[\"tcp/127.0.0.1:{port}\"]");
    one.0.configure(&format!("[network]\nhost = \"one\"\nlisten = {at}"));
    two.0.configure(&format!("[network]\nhost = \"two\"\nconnect = {at}"));
    let nodes = [&one.0, &two.0].map(Folder::node);
    start(&one.0);
    start(&two.0);
    for node in &nodes {
        let mut statuses =
            node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
        let mut last = None;
        eventually("the address is known", || {
            last = statuses.latest_timeout(LONG).ok().map(|status| status.clone());
            let peers = last.iter().flat_map(|status| &status.peers);
            let mut connected = peers.filter(|peer| peer.state() == State::Connected);
            connected.next().is_some_and(|peer| peer.address == "127.0.0.1")
        });
    }
}
