//! Runs a node with calls again. The node is this program: see `the_node`.

use crate::common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use common::{LONG, Net, folder, options};
use rnet::inspect::Location;
use rnet::{Client, Node, OnFull, Publisher};
use rnet_record::Recorder;
use rnet_record::read::Recording;
use rnet_record::rerun::{RerunError, RerunOptions, RerunReport, rerun};

/// Variable with the behavior of the node.
const ROLE: &str = "RERUN_CALLS_ROLE";
/// Messages of the recording, how many of them make the node call, and at how many it is called.
const COUNT: u64 = 40;
const ASKED: u64 = COUNT / 4;
const GAINS: u64 = COUNT / 10;

/// Longer than any pause of a busy machine.
const LEASE: Duration = Duration::from_secs(600);

type Number = [u8];

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

fn bytes(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// A node that serves and calls: the answers that it gets determine its outputs.
struct Calls {
    scale: [Client<Number, Number>; 2],
    scaled: Publisher<Number>,
    at_start: u64,
    _served: rnet::Service,
}

impl Calls {
    fn open(node: &Node, role: &str) -> Calls {
        let off = u64::from(role == "answers_otherwise");
        let gain = node.service::<Number, Number>("/own/gain");
        let gain = gain.serve(move |asked| Ok(bytes(2 * number(asked) + off).to_vec())).unwrap();
        let scale = [0; 2].map(|_| node.client::<Number, Number>("/scale").open().unwrap());
        let times = if role == "asks_twice" { 2 } else { 1 };
        let at_start =
            (0..times).map(|_| number(&scale[0].call_timeout(&bytes(100), LONG).unwrap())).sum();
        let scaled = node.publisher::<Number>("/scaled").open().unwrap();
        Calls { scale, scaled, at_start, _served: gain }
    }

    fn take(&mut self, role: &str, at: u64) {
        let asked = bytes(at + u64::from(role == "asks_otherwise" && at == 11));
        let reply = match at % 8 {
            3 => self.scale[0].call_timeout(&asked, LONG),
            7 => self.scale[1].call_timeout(&asked, LONG),
            1 if role == "asks_more" && at == 33 => self.scale[0].call_timeout(&asked, LONG),
            _ => return,
        };
        let scaled = reply.map_or(0, |reply| number(&reply) + self.at_start);
        self.scaled.send(&bytes(scaled)).unwrap();
    }
}

#[test]
#[ignore = "run by the other tests as the node"]
fn the_node() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let node = Node::builder("arm").open().unwrap();
    let calls = !matches!(role.as_str(), "serves_nothing" | "drives_alone");
    let mut calls = calls.then(|| Calls::open(&node, &role));
    // With a lease that expires unless it is renewed by the clock.
    let take = || node.drive::<Number>("/wheel").lease(LEASE).timeout(LONG).take().unwrap();
    let mut driver = role.starts_with("drives").then(take);
    let mut angles = node.subscriber::<Number>("/angle").reliable().keep_all().open().unwrap();
    let mut torques =
        node.publisher::<Number>("/torque").reliable(OnFull::Wait(LONG)).open().unwrap();
    while let Ok(angle) = angles.recv_timeout(LONG) {
        let at = number(&angle);
        if let Some(calls) = &mut calls {
            calls.take(&role, at);
        }
        if let Some(driver) = &mut driver {
            if at.is_multiple_of(8) && role == "drives" {
                driver.renew().unwrap();
            }
            driver.send(&bytes(at)).unwrap();
        }
        torques.send(&bytes(at)).unwrap();
    }
}

fn the_node_as(role: &str, location: &Location) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["rerun_calls::the_node", "--exact", "--ignored", "--nocapture"]).env(ROLE, role);
    command.env("RNET_DIR", location.base()).env("RNET_DOMAIN", location.id().as_str());
    command.env("RNET_NETWORK", "off").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A recording of the working node, from its start.
fn recorded(net: &Net, role: &str) -> PathBuf {
    recorded_from(net, role, 0)
}

/// The same, beginning with a message; with 0, from the start of the node.
fn recorded_from(net: &Net, role: &str, from: u64) -> PathBuf {
    let file = folder(net).join("run.mcap");
    let node = net.node("body");
    let _wheel = node.command::<Number>("/wheel").fallback(&bytes(0)).apply(|_| {}).unwrap();
    // Another answer each time.
    let (scale, times) = (node.service::<Number, Number>("/scale"), AtomicU32::new(0));
    let scaled = move |by: &[u8]| 10 * number(by) + u64::from(times.fetch_add(1, Relaxed));
    let _scale = scale.serve(move |by| Ok(bytes(scaled(by)).to_vec())).unwrap();
    let mut angles =
        node.publisher::<Number>("/angle").reliable(OnFull::Wait(LONG)).open().unwrap();
    let mut torques = node.subscriber::<Number>("/torque").reliable().keep_all().open().unwrap();
    let gains = [0; 2].map(|_| node.client::<Number, Number>("/own/gain").open().unwrap());
    let start = || Recorder::start(&file, options(net)).unwrap();
    let mut recorder = (from == 0).then(start);
    let location = options(net).location.unwrap();
    let mut process = the_node_as(role, &location).spawn().unwrap();
    angles.wait_for_subscribers_timeout(1, LONG).unwrap();
    torques.wait_for_publishers_timeout(1, LONG).unwrap();
    for at in 0..COUNT {
        if at == from && at > 0 {
            recorder = Some(start());
        }
        if at % 10 == 5 && role != "drives_alone" {
            let gain = gains[(at / 10 % 2) as usize].call_timeout(&bytes(at), LONG).unwrap();
            assert_eq!(number(&gain), 2 * at);
        }
        angles.send(&bytes(at)).unwrap();
        assert_eq!(number(&torques.recv_timeout(LONG).unwrap()), at);
    }
    assert_eq!(recorder.unwrap().stop().unwrap().losses.total(), 0);
    process.kill().unwrap();
    process.wait().unwrap();
    file
}

fn again(
    net: &Net,
    file: &Path,
    role: &str,
    options: RerunOptions,
) -> Result<RerunReport, RerunError> {
    let recording = Recording::open(file).unwrap();
    let location = Location::new(Some("again"), Some(net.base().to_owned()), None).unwrap();
    let options = RerunOptions { timeout: LONG, ..options };
    rerun(&recording, &location, &mut the_node_as(role, &location), &options)
}

/// For a topic or the calls of a service: compared, differing, missing, unrecorded.
fn counts(done: &RerunReport, topic: &str) -> [u64; 4] {
    let of = done.outputs.iter().find(|of| of.topic == topic);
    let of = of.unwrap_or_else(|| panic!("{topic} is not among {:?}", done.outputs));
    [of.compared, of.differing, of.missing, of.unrecorded]
}

#[test]
fn repeats_calls_and_answers_as_recorded() {
    let net = Net::new("rerun-calls");
    let file = recorded(&net, "works");
    let done = again(&net, &file, "works", RerunOptions::default()).unwrap();
    assert!(done.is_same(), "{:?}", done.outputs);
    assert_eq!(counts(&done, "/torque"), [COUNT, 0, 0, 0]);
    assert_eq!(counts(&done, "/scaled"), [ASKED, 0, 0, 0]);
    assert_eq!(counts(&done, "/scale request"), [ASKED, 0, 0, 0]);
    assert_eq!(counts(&done, "/own/gain reply"), [GAINS, 0, 0, 0]);
    assert_eq!((done.inputs["/scale reply"], done.inputs["/own/gain request"]), (ASKED, GAINS));
    assert!(done.calls.is_empty());

    // A node that sends other requests gets the recorded answers.
    let done = again(&net, &file, "asks_otherwise", RerunOptions::default()).unwrap();
    assert_eq!(counts(&done, "/scale request"), [ASKED, 1, 0, 0]);
    assert_eq!(counts(&done, "/scaled"), [ASKED, 0, 0, 0]);
    let done = again(&net, &file, "answers_otherwise", RerunOptions::default()).unwrap();
    assert_eq!(counts(&done, "/own/gain reply"), [GAINS, GAINS, 0, 0]);
    assert_eq!(counts(&done, "/scale request"), [ASKED, 0, 0, 0]);
}

#[test]
fn reports_unrecorded_calls() {
    let net = Net::new("rerun-calls-told");
    let file = recorded(&net, "works");
    // An additional request takes the next answer, which is awaited, and the last request fails at once.
    let done = again(&net, &file, "asks_more", RerunOptions::default()).unwrap();
    assert_eq!(counts(&done, "/scale request")[3], 1);
    assert_eq!(counts(&done, "/scaled")[3], 1);
    // At its start, it is unknown which request is the additional one.
    let error = again(&net, &file, "asks_twice", RerunOptions::default()).unwrap_err();
    assert_eq!(error.code(), "unrecorded_call", "{error}");
    let error = again(&net, &file, "serves_nothing", RerunOptions::default()).unwrap_err();
    assert_eq!(error.code(), "not_served", "{error}");
    let options = RerunOptions {
        without_calls: true,
        outputs: vec!["/torque".to_owned()],
        ..RerunOptions::default()
    };
    let done = again(&net, &file, "serves_nothing", options).unwrap();
    assert!(done.is_same() && !done.calls.is_empty(), "{:?}", done.outputs);
}

#[test]
fn driving_node_gets_authority_and_its_commands_are_compared() {
    let net = Net::new("rerun-drives");
    let file = recorded(&net, "drives");
    let done = again(&net, &file, "drives", RerunOptions::default()).unwrap();
    assert!(done.is_same(), "{:?}", done.outputs);
    assert_eq!(counts(&done, "/wheel"), [COUNT, 0, 0, 0]);
    assert!(done.outputs.iter().all(|of| !of.topic.contains("authority")), "{:?}", done.outputs);
    let options = RerunOptions {
        without_calls: true,
        outputs: vec!["/wheel".to_owned()],
        ..RerunOptions::default()
    };
    let done = again(&net, &file, "drives_alone", options).unwrap();
    assert!(done.is_same(), "{:?}", done.outputs);
    assert_eq!(counts(&done, "/wheel"), [COUNT, 0, 0, 0]);
}

#[test]
fn reruns_driving_node_from_the_middle() {
    let net = Net::new("rerun-drives-later");
    let from = COUNT / 2;
    let file = recorded_from(&net, "drives_alone", from);
    let done = again(&net, &file, "drives_alone", RerunOptions::default()).unwrap();
    assert!(done.is_same(), "{:?}", done.outputs);
    assert_eq!(counts(&done, "/wheel"), [COUNT - from, 0, 0, 0]);
}
