//! `rnet doctor` on hosts that do not hear each other, with the links and the `robot.toml` of users: it
//! names the cause and the remedy.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::net::{Host, Net};
use super::peer::{LIMIT, PORT, Peer, rnet};

/// The settings of the link that listens, and of the one that connects to 10.77.0.1.
const LISTENS: &str = "listen = [\"tcp/0.0.0.0:7450\"]\n";
const CONNECTS: &str = "connect = [\"tcp/10.77.0.1:7450\"]\n";
const LAN: &str = "mode = \"lan\"\n";
const _: () = assert!(PORT == 7450, "the settings above contain the port");

/// A host with a directory that holds its `robot.toml`, in which all its programs run.
struct Robot {
    host: Host,
    dir: PathBuf,
}

impl Robot {
    /// A host with these settings of the network, and the text after them.
    fn new(host: Host, name: &str, test: &str, network: &str) -> Robot {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{name}"));
        fs::create_dir_all(&dir).unwrap();
        let text = format!("[network]\nhost = \"{name}\"\n{network}");
        fs::write(dir.join("robot.toml"), text).unwrap();
        Robot { host, dir }
    }

    /// Runs `rnet` with these arguments, as a user in that directory.
    fn run(&self, arguments: &[&str]) -> String {
        let output = rnet(&self.host).args(arguments).current_dir(&self.dir).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }

    fn link(&self) {
        self.run(&["link", "start"]);
    }

    /// Waits until doctor reports all of these findings: the level of each, words of the finding and of the
    /// advice.
    fn finds(&self, findings: &[&[&str]]) {
        let begun = Instant::now();
        loop {
            let said = self.run(&["doctor"]);
            let found: Vec<String> =
                said.replace("\n         -> ", " -> ").lines().map(str::to_owned).collect();
            let is_there = |words: &[&str]| {
                let is_it = |line: &&String| {
                    line.starts_with(words[0]) && words.iter().all(|word| line.contains(word))
                };
                found.iter().find(is_it).is_some()
            };
            let missing: Vec<_> = findings.iter().filter(|words| !is_there(words)).collect();
            if missing.is_empty() {
                return;
            }
            assert!(begun.elapsed() < LIMIT, "{missing:#?} not found:\n{said}");
            thread::sleep(Duration::from_millis(100)); // sleep: interval between two checks
        }
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Two hosts of a net, each with a node that keeps the link, and these settings.
struct RobotPair {
    one: Robot,
    two: Robot,
    _nodes: [Peer; 2],
    _net: Net,
}

impl RobotPair {
    /// The second one in this domain, if it is another.
    fn new(test: &str, settings: [&str; 2], domain: Option<&str>) -> Option<RobotPair> {
        let mut net = Net::new(&format!("doctor::{test}"))?;
        let (one, mut two) = (net.host(), net.host());
        domain.iter().for_each(|domain| two.set_domain(domain));
        let nodes = [Peer::actor(&one, "talk"), Peer::actor(&two, "listen")];
        let one = Robot::new(one, "host1", test, settings[0]);
        let two = Robot::new(two, "host2", test, settings[1]);
        Some(RobotPair { one, two, _nodes: nodes, _net: net })
    }

    fn link(&self) {
        self.one.link();
        self.two.link();
    }

    /// Removes all obstacles; both report the other one as connected.
    fn meet(&self) {
        self.one.host.heal();
        self.two.host.heal();
        self.one.finds(&[&["ok", "host host2 (10.77.0.2) is connected"]]);
        self.two.finds(&[&["ok", "host host1 (tcp/10.77.0.1:7450) is connected"]]);
    }
}

const LOWER: &str = "its urgent lane is connected, but its bulk lane, on the next port, is not";
const UPPER: &str = "its bulk lane is connected, but its urgent lane, on the port below, is not";

#[test]
fn the_port_of_the_bulk_lane_is_closed() {
    let test = "the_port_of_the_bulk_lane_is_closed";
    let Some(all) = RobotPair::new(test, [LISTENS, CONNECTS], None) else { return };
    all.one.host.refuse("tcp dport 7451");
    all.link();
    let closed = "tcp/10.77.0.1:7450 answers, but the next higher port does not: no answer";
    let advice = "-> the link needs both ports: open the higher one";
    all.two.finds(&[
        &["PROBLEM", closed, advice],
        &["PROBLEM", "host 10.77.0.1 has been visible for", LOWER, "-> check whether a firewall"],
    ]);
    // The listening host does not know an address to try, and sees the other one connect.
    all.one.finds(&[&[
        "PROBLEM",
        "host 10.77.0.2 has been visible for",
        LOWER,
        "run rnet doctor there",
    ]]);
    all.meet();
    // The port is closed later.
    all.one.host.refuse("tcp dport 7451");
    all.two.finds(&[&["PROBLEM", closed, advice]]);
    all.one.finds(&[&["PROBLEM", "host host2 (10.77.0.2) has been visible for", LOWER]]);
}

#[test]
fn the_port_of_the_urgent_lane_is_closed() {
    let test = "the_port_of_the_urgent_lane_is_closed";
    let Some(all) = RobotPair::new(test, [LISTENS, CONNECTS], None) else { return };
    all.one.host.refuse("tcp dport 7450");
    all.link();
    let closed = "cannot reach tcp/10.77.0.1:7450: no answer; the next higher port answers";
    all.two.finds(&[
        &["PROBLEM", closed, "-> the link needs both ports: open the lower one", "too low by one"],
        &["PROBLEM", "host 10.77.0.1 has been visible for", UPPER],
    ]);
    all.one.finds(&[&["PROBLEM", "host 10.77.0.2 has been visible for", UPPER]]);
    all.meet();
    // Both are closed.
    all.one.host.refuse("tcp dport { 7450, 7451 }");
    all.two.finds(&[
        &[
            "PROBLEM",
            "cannot reach tcp/10.77.0.1:7450: no answer",
            "-> check that the host is on",
            "firewall",
        ],
        &["PROBLEM", "host host1 (tcp/10.77.0.1:7450) was connected and no longer responds"],
    ]);
}

#[test]
fn the_other_host_is_of_another_domain() {
    let test = "the_other_host_is_of_another_domain";
    let Some(all) = RobotPair::new(test, [LISTENS, CONNECTS], Some("other")) else { return };
    all.link();
    let set = "set the same RNET_DOMAIN on both hosts";
    all.one.finds(&[&["PROBLEM", "it is in domain other, this one in domain", set]]);
    all.two.finds(&[
        &["PROBLEM", "it is in domain", "this one in domain other", set],
        &["note", "tcp/10.77.0.1:7450 answers", "its link is in another domain than other"],
    ]);
}

/// Each domain uses its own multicast group: a host cannot distinguish that from a network that blocks
/// multicast.
#[test]
fn lan_hosts_of_two_domains() {
    let test = "lan_hosts_of_two_domains";
    let Some(all) = RobotPair::new(test, [LAN, LAN], Some("other")) else { return };
    all.link();
    let why = "none is on, they use another domain, or the network blocks multicast";
    let advice = "-> run rnet doctor on the other host: its first line shows its domain";
    all.one.finds(&[&["note", "no other host of domain", "was found by multicast", why, advice]]);
    let said = all.two.run(&["doctor"]);
    assert!(said.starts_with("domain other at "), "{said}");
}

#[test]
fn multicast_is_blocked() {
    let test = "multicast_is_blocked";
    let Some(all) = RobotPair::new(test, [LAN, LAN], None) else { return };
    for robot in [&all.one, &all.two] {
        robot.host.refuse("ip daddr 224.0.0.0/4");
    }
    all.link();
    let advice = ["-> run rnet doctor on the other host", "network.listen on one host"];
    all.one.finds(&[&[
        "note",
        "no other host of domain",
        "the network blocks multicast",
        advice[0],
        advice[1],
    ]]);
    // Multicast arrives, and the data of the links does not.
    for robot in [&all.one, &all.two] {
        robot.host.refuse("meta l4proto tcp");
    }
    all.one.finds(&[&[
        "PROBLEM",
        "10.77.0.2 answers multicast, but no link is connected",
        "-> links use TCP",
        "firewall",
    ]]);
    all.one.host.heal();
    all.two.host.heal();
    all.one.finds(&[&["ok", "host host2 (10.77.0.2) is connected"]]);
}

/// The interface of the first host is down; the second is configured for one that it does not have.
const DOWN: &str = "network interface eth0 is down or has no cable";

fn two_without_interface(test: &str) -> Option<RobotPair> {
    let settings = ["eth0", "eth7"].map(|name| format!("{LAN}interfaces = [\"{name}\"]\n"));
    let all = RobotPair::new(test, [&settings[0], &settings[1]], None)?;
    all.one.host.set_interface("down");
    all.link();
    Some(all)
}

/// Sets the interface up, and unplugs its cable.
fn goes_up_and_is_unplugged(all: &RobotPair) {
    all.one.host.set_interface("up");
    all.one.host.unplug();
    all.one.finds(&[&["PROBLEM", DOWN]]);
}

#[test]
fn an_interface_is_missing_or_down() {
    let Some(all) = two_without_interface("an_interface_is_missing_or_down") else { return };
    all.one.finds(&[&["PROBLEM", DOWN, "-> connect the cable, or run: ip link set eth0 up"]]);
    all.two.finds(&[
        &[
            "PROBLEM",
            "network interface eth7 does not exist",
            "-> set network.interfaces to one of eth0",
        ],
        &["PROBLEM", "this host has no network interface \"eth7\"", "retrying until it works"],
    ]);
    let said = all.two.run(&["link", "status"]);
    assert!(said.contains("this host has no network interface \"eth7\""), "{said}");
    goes_up_and_is_unplugged(&all);
}

/// An interface that appears, goes and returns, and a file that is corrected: both links start.
#[test]
fn interface_that_comes_and_goes_keeps_a_link() {
    let test = "interface_that_comes_and_goes_keeps_a_link";
    let Some(all) = two_without_interface(test) else { return };
    all.one.finds(&[&["PROBLEM", DOWN]]);
    goes_up_and_is_unplugged(&all);
    all.one.host.heal();
    // The waiting link reads the file again.
    let file = all.two.dir.join("robot.toml");
    let settings = fs::read_to_string(&file).unwrap().replace("eth7", "eth0");
    fs::write(file, settings).unwrap();
    for (robot, other) in [(&all.one, "host2"), (&all.two, "host1")] {
        robot.finds(&[&["ok", &format!("host {other} (10.77.0."), "is connected"]]);
    }
}

#[test]
fn rules_withhold_a_topic() {
    let test = "rules_withhold_a_topic";
    let rule = "[[network.rule]]\ntopic = \"/numbers\"\nallow = false\n";
    let Some(all) = RobotPair::new(test, [&format!("{LISTENS}{rule}"), CONNECTS], None) else {
        return;
    };
    all.link();
    let rule_of_it = "the rule \"/numbers\" (robot.toml:4)";
    all.one.finds(&[&[
        "note",
        "nothing of /numbers goes to host host2:",
        rule_of_it,
        "forbids it",
    ]]);
    // The other side does not know its name.
    all.two.finds(&[&[
        "note",
        "host host1 (tcp/10.77.0.1:7450): rules in its robot.toml withhold 1 of its topics from this host",
        "-> run rnet link status and rnet doctor on that host",
    ]]);
}

/// A host that denies inbound messages.
#[test]
fn rules_of_the_other_host_withhold_its_subscription() {
    let test = "rules_of_the_other_host_withhold_its_subscription";
    let rule = "[[network.rule]]\ntopic = \"/numbers\"\ndirection = \"in\"\nallow = false\n";
    let Some(all) = RobotPair::new(test, [LISTENS, &format!("{CONNECTS}{rule}")], None) else {
        return;
    };
    all.link();
    all.two.finds(&[&[
        "note",
        "nothing of /numbers comes from host host1:",
        "robot.toml:4",
        "forbids it",
    ]]);
    all.one.finds(&[&["note", "rules in its robot.toml withhold 1 of its topics from this host"]]);
}
