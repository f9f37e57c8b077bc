//! Tests this server with Foxglove's own client and a JavaScript protobuf library.

use crate::util;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rnet::msgs::{FrameTransform, Vector3};
use rnet_record::{RecordOptions, Recorder};
use util::{LONG, TestDomain};

const NEEDED: &str =
    "needs node and its packages, which `make test-foxglove` installs and runs this with";

/// Runs the client, and fails with its output if it fails.
fn client(what: &str, server: &rnet_foxglove::ServerHandle) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client");
    assert!(folder.join("node_modules").is_dir(), "{NEEDED}");
    let mut command = Command::new("node");
    command.current_dir(folder).args(["client.mjs", what, &format!("ws://{}", server.addr())]);
    let said = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(said.status.success(), "{}{}", text(&said.stdout), text(&said.stderr));
    assert_eq!(text(&said.stdout), "ok\n");
}

#[derive(Clone, Copy, rnet::Plain)]
#[repr(C)]
struct Leg {
    force: f64,
}

#[test]
#[ignore = "needs node and its packages, which `make test-foxglove` installs and runs this with"]
fn foxglove_client_reads_and_controls_robot() {
    let test_domain = TestDomain::new();
    let robot = test_domain.node("robot");
    let mut force = robot.publisher::<Vector3>("/force").transient_local(1).open().unwrap();
    force.send(&Vector3 { x: 1.5, y: 2.5, z: 3.5 }).unwrap();
    let mut tf = robot.publisher::<FrameTransform>("/tf").transient_local(1).open().unwrap();
    let (parent_frame_id, child_frame_id) = ("base".to_owned(), "arm".to_owned());
    tf.send(&FrameTransform { parent_frame_id, child_frame_id, ..Default::default() }).unwrap();
    let mut leg = robot.publisher::<Leg>("/leg").transient_local(1).open().unwrap();
    leg.send(&Leg { force: 2.5 }).unwrap();
    let plan = robot.service::<Vector3, Vector3>("/plan");
    let _plan = plan.serve(|ask| Ok(Vector3 { x: 2.0 * ask.x, ..Vector3::default() })).unwrap();
    let speed = robot.param::<f64>("speed").default(1.0).declare().unwrap();
    let goal = robot.param::<f64>("goal").default(0.0).declare().unwrap();
    let mut goals = robot.subscriber::<Vector3>("/goal").open().unwrap();
    let server = test_domain.server();
    let setter = std::thread::spawn(move || goal.set(goals.recv_timeout(LONG).unwrap().x).unwrap());
    client("live", &server);
    setter.join().unwrap();
    assert_eq!(speed.get().unwrap(), 1.75);
}

#[test]
#[ignore = "needs node and its packages, which `make test-foxglove` installs and runs this with"]
fn foxglove_client_plays_recording() {
    let test_domain = TestDomain::new();
    let robot = test_domain.node("robot");
    let mut force = robot.publisher::<Vector3>("/force").open().unwrap();
    let file = test_domain.0.join("run.mcap");
    let mut options = RecordOptions::default();
    options.location = Some(test_domain.location());
    options.state = false;
    let recorder = Recorder::start(&file, options).unwrap();
    for number in 0..10 {
        force.send(&Vector3 { x: f64::from(number), ..Vector3::default() }).unwrap();
        std::thread::sleep(Duration::from_millis(10)); // sleep: gives the recording a duration.
    }
    assert_eq!(recorder.stop().unwrap().messages, 10);
    let mut options = test_domain.options();
    options.recording = Some(file);
    let server = rnet_foxglove::serve(options).unwrap();
    client("played", &server);
}
