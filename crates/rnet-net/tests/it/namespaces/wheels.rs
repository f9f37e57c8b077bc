//! `rnet command` with a receiver on another host, as users type it, also while the cable is cut.

use std::thread;
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::msgs::Twist;
use rustix::process::Signal;

use super::killed::start;
use super::net::{Host, Net, Way};
use super::peer::{LIMIT, Peer, rnet, say};

/// Longer than it takes to hear a driver again, so that only the cut ends it.
const DEADLINE: Duration = Duration::from_millis(500);

/// A receiver that prints the applied commands.
pub fn wheels() {
    let node = Node::builder("base").open().unwrap();
    let command = node.command::<Twist>("/cmd_vel").deadline(DEADLINE).fallback_zero();
    let apply = |twist: &Twist| say(&format!("applied {}", twist.linear.map_or(0.0, |v| v.x)));
    let _command = command.apply(apply).unwrap();
    say("ready");
    let _ = std::io::read_to_string(std::io::stdin());
}

/// Runs `rnet command` on a host until its output contains all of this and its exit code matches.
fn says(host: &Host, arguments: &[&str], code: i32, words: &[&str]) {
    let begun = Instant::now();
    loop {
        let output = rnet(host).arg("command").args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(code) && words.iter().all(|word| said.contains(word)) {
            return;
        }
        assert!(begun.elapsed() < LIMIT, "{arguments:?} does not print {words:?}: {output:?}");
        thread::sleep(Duration::from_millis(100)); // sleep: interval between two checks
    }
}

fn take(host: &Host, data: &str, priority: &str) -> Peer {
    Peer::program(host, &["command", "take", "/cmd_vel", data, "--priority", priority])
}

#[test]
fn commands_are_taken_shown_and_released_on_another_host() {
    let test = "wheels::commands_are_taken_shown_and_released_on_another_host";
    let Some(mut net) = Net::new(test) else { return };
    let (one, two) = (net.host(), net.host());
    let wheels = Peer::actor(&one, "wheels");
    // The link of a host stops with its last node.
    let _listener = Peer::actor(&two, "listen");
    start(&one, "host1", None);
    start(&two, "host2", Some(&one));
    let count = |what: &str| wheels.count(what);

    says(&two, &["list"], 0, &["/cmd_vel", "@host1/base", "fallback"]);
    let driver = take(&two, "{linear: {x: 1}}", "10");
    wheels.wait("applied 1", 1);
    for host in [&one, &two] {
        says(
            host,
            &["who", "/cmd_vel"],
            0,
            &["driver: @host2/", "priority: 10", "deadline: 500 ms"],
        );
    }
    says(&two, &["log", "/cmd_vel"], 0, &["granted", "@host2/"]);

    // The cable is cut: the receiver falls back by itself, and the driver gets an error.
    let before = count("applied 0");
    two.lose(100, Way::Both);
    wheels.wait("applied 0", before + 1);
    let said = driver.wait_end();
    assert!(
        said.contains("no authority over /cmd_vel: its receiver in @host1/base is gone"),
        "{said}"
    );
    says(&two, &["who", "/cmd_vel"], 1, &["command /cmd_vel not found"]);
    says(&one, &["who", "/cmd_vel"], 0, &["driver: none"]);
    two.heal();
    says(&two, &["who", "/cmd_vel"], 0, &["receiver: @host1/base", "driver: none"]);
    says(&two, &["log", "/cmd_vel"], 0, &["granted", "lease expired"]);

    // A driver of the receiver's own host is overruled, and loses its authority.
    let driver = take(&one, "{linear: {x: 2}}", "5");
    wheels.wait("applied 2", 1);
    let before = count("applied 0");
    says(&two, &["take", "/cmd_vel", "--for", "0.2"], 1, &["priority 5"]);
    says(&two, &["release", "/cmd_vel"], 0, &["/cmd_vel has no driver"]);
    let said = driver.wait_end();
    assert!(said.contains("took it with priority"), "{said}");
    wheels.wait("applied 0", before + 1);

    // An interrupted driver releases the authority.
    let driver = take(&two, "{linear: {x: 3}}", "5");
    wheels.wait("applied 3", 1);
    let before = count("applied 0");
    let [process] = two.processes("rnet")[..] else { panic!("one drives") };
    two.signal(process, Signal::INT);
    wheels.wait("applied 0", before + 1);
    drop(driver);
    says(&two, &["who", "/cmd_vel"], 0, &["driver: none"]);
}
