//! The page on one host and a robot on another, connected by the real link: run by `make test-net`.

use crate::util;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rnet::msgs::{Twist, Vector3};
use rnet::{Command, Node};
use serde_json::{Value as Json, json};
use util::{DOMAIN, HANG, Page, TestDomain, what};

const NEEDED: &str = "needs rnet-link, which `make test-net` builds and runs this with";
/// Long, so that it does not expire.
const LEASE: Duration = Duration::from_secs(600);

/// Path of the built program: next to this test, or installed.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).map(Path::to_owned).unwrap();
    let program = built.join("rnet-link");
    assert!(program.is_file(), "{NEEDED}");
    program
}

/// The link of a host, which is killed on drop.
struct Link(Child);

impl Link {
    fn start(place: &TestDomain, host: &str, way: &str, port: u16) -> Link {
        let mut program = Program::new(program());
        program.args(["run", "--domain", DOMAIN, "--host", host, way]);
        program.arg(format!("tcp/127.0.0.1:{port}")).arg("--dir").arg(&place.dir);
        Link(program.env("RNET_STATE_DIR", place.dir.join("state")).spawn().unwrap())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A free port, whose successor is free for the other lane too.
fn port() -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        if port.checked_add(1).is_some_and(|next| TcpListener::bind(("127.0.0.1", next)).is_ok()) {
            return port;
        }
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < HANG, "{what}");
        std::thread::sleep(Duration::from_millis(5)); // sleep: between two checks
    }
}

fn twist(x: f64) -> Twist {
    Twist { linear: Some(Vector3 { x, ..Default::default() }), ..Default::default() }
}

type Applied = Arc<Mutex<Vec<f64>>>;

fn receiver(node: &Node) -> (Command, Applied) {
    let applied = Applied::default();
    let wheels = applied.clone();
    // The last command of the previous driver stays in effect until this deadline.
    let deadline = Duration::from_secs(1);
    let command = node.command::<Twist>("/cmd_vel").deadline(deadline).fallback_zero();
    let apply = move |twist: &Twist| wheels.lock().unwrap().push(twist.linear.map_or(0.0, |v| v.x));
    (command.apply(apply).unwrap(), applied)
}

#[test]
#[ignore = "needs rnet-link, which `make test-net` builds and runs this with"]
fn stop_reaches_receiver_of_another_host_and_resumes_after_network_loss() {
    let (robot, desk) = (TestDomain::new(), TestDomain::new());
    let port = port();
    let _robot_link = Link::start(&robot, "robot", "--listen", port);
    let desk_link = Link::start(&desk, "desk", "--connect", port);
    let (base, pilot) = (robot.node("base"), robot.node("pilot"));
    let (command, applied) = receiver(&base);
    let last = || applied.lock().unwrap().last().copied();
    let drive = || pilot.drive::<Twist>("/cmd_vel").priority(10).lease(LEASE).timeout(HANG).take();
    let mut driver = drive().unwrap();
    driver.send(&twist(1.0)).unwrap();
    until("the receiver follows the pilot", || last() == Some(1.0));

    let dashboard = desk.start();
    let mut page = Page::open(&dashboard);
    let commands = page.sub(what("commands"));
    let row = |data: &Json, word: &str, value: &Json| {
        let row = &data["commands"][0];
        (row["receiver"] == "@robot/base" && row[word] == *value).then_some(())
    };
    page.data(commands, |data| row(data, "driver", &json!("/pilot")));
    let stopped = page.ask(json!({"op": "command.take_all"}));
    assert_eq!(
        (&stopped["held"], &stopped["refused"]),
        (&json!(["/cmd_vel"]), &json!([])),
        "{stopped}"
    );
    let is_stopped = || command.status().holder.starts_with("@desk/rnet_dashboard_");
    assert!(is_stopped(), "{:?}", command.status());
    assert!(driver.send(&twist(2.0)).is_err(), "it may not drive any more");
    page.data_since(commands, |data| row(data, "held", &json!(true)));
    // No commands arrive any more, and the fallback is applied.
    until("the receiver falls back", || last() == Some(0.0));

    // The network is lost: the stop lasts until its lease expires; then no driver has authority until one
    // takes it.
    drop(desk_link);
    until("the lease ends it", || command.status().holder.is_empty());
    let _desk_link = Link::start(&desk, "desk", "--connect", port);
    until("it is stopped again", is_stopped);
    page.data_since(commands, |data| row(data, "held", &json!(true)));
    assert!(!applied.lock().unwrap().contains(&2.0));

    let released = page.ask(json!({"op": "command.release_all"}));
    assert_eq!(released["released"], json!(["/cmd_vel"]), "{released}");
    let mut driver = drive().unwrap();
    driver.send(&twist(3.0)).unwrap();
    until("the receiver follows the pilot again", || last() == Some(3.0));
}

#[test]
#[ignore = "needs rnet-link, which `make test-net` builds and runs this with"]
fn changes_state_and_parameters_of_robot_from_another_host() {
    let (robot, desk) = (TestDomain::new(), TestDomain::new());
    let port = port();
    let _links = [
        Link::start(&robot, "robot", "--listen", port),
        Link::start(&desk, "desk", "--connect", port),
    ];
    let arm = robot.node("arm");
    let state = arm.state().unwrap();
    state.set("/arm/mode", "idle").unwrap();
    let gain = arm.param("/gain").default(1.0).max(10.0).declare().unwrap();
    let dashboard = desk.start();
    let mut page = Page::open(&dashboard);
    let figures = page.sub(what("figures"));
    page.data(figures, |data| {
        let hosts = data["hosts"].as_array()?.iter();
        hosts.clone().any(|row| row["host"] == "robot" && row["state"] == "connected").then_some(())
    });
    let keys = page.sub(json!({"what": "state", "host": "robot", "prefix": "/arm"}));
    let value = |data: &Json| {
        let entry = data["entries"].as_array()?.iter().find(|of| of["key"] == "@robot/arm/mode")?;
        Some(entry["value"].clone())
    };
    page.data(keys, |data| (value(data)? == "idle").then_some(()));
    page.ask(json!({"op": "state.set", "key": "@robot/arm/mode", "value": "run"}));
    assert_eq!(state.get("/arm/mode").unwrap(), Some("run".into()));
    page.data(keys, |data| (value(data)? == "run").then_some(()));
    let params = page.sub(json!({"what": "params", "host": "robot"}));
    page.data(params, |data| (data["params"][0]["node"] == "@robot/arm").then_some(()));
    let set = |value: f64| json!({"op": "param.set", "node": "@robot/arm", "name": "/gain", "value": value});
    assert_eq!(page.ask(set(2.5))["param"]["value"], 2.5);
    assert_eq!(gain.get().unwrap(), 2.5);
    assert_eq!(page.refused(set(11.0)), "refused");
}
