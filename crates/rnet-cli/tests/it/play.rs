//! `rnet play`.

use crate::util;

use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rnet::inspect::Location;
use rnet::msgs::command_event::Kind;
use rnet::msgs::{CommandEvent, Twist, Vector3};
use rnet::{Lane, Meta, OnFull, Origin, Subscriber};
use rnet_record::mcap::records::MessageHeader;
use rnet_record::mcap::{WriteOptions, Writer};
use rnet_record::{RecordOptions, Recorder, names};
use rustix::process::Signal;
use util::processes::until;
use util::recording::{POSE, START_NS, kibibytes, recording};
use util::terminal::{self, Terminal};
use util::{DOMAIN, RunningCommand, TEST_TIMEOUT, TestEnv};

fn hear(env: &TestEnv, topic: &str) -> (rnet::Node, Subscriber<[u8]>) {
    let node = env.node("listener");
    let subscriber = node.subscriber::<[u8]>(topic).reliable().keep_all().open().unwrap();
    (node, subscriber)
}

fn x_of(bytes: &[u8]) -> f64 {
    f64::from_le_bytes(bytes.try_into().unwrap())
}

#[test]
fn a_recording_is_published_as_it_was_with_its_types_and_origins() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let (_node, mut subscriber) = hear(&env, "/arm/pose");
    let played = rnet!(env, "play", file, "--rate", "max", "--json").json();
    assert_eq!(
        (&played["messages"], &played["failed"], &played["late"]),
        (&11.into(), &0.into(), &().into())
    );
    for n in (0..=10u32).filter(|n| *n != 4) {
        let sample = subscriber.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!(x_of(sample.bytes()), f64::from(n));
        assert_eq!(sample.type_desc().name(), Some("Pose"));
        assert!(sample.node().starts_with("/rnet_play_"), "{}", sample.node());
        let origin = sample.origin().unwrap();
        assert_eq!((origin.host, origin.publisher, origin.seq), (0, 7, n.into()));
        let sent = START_NS + u64::from(n) * 100_000_000;
        assert_eq!(sample.source_ns(), Some(sent as i64));
    }
}

#[test]
fn messages_come_at_their_times_and_late_ones_are_counted() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let begun = Instant::now();
    let played =
        rnet!(env, "play", file, "--start", "0.5", "--rate", "2", "--topic", "/arm/**", "--json");
    assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
    let played = played.json();
    assert_eq!(played["messages"], 6);
    assert!(played["late"]["p50_ns"].as_u64().is_some(), "{played}");
    let text = rnet!(env, "play", file, "--rate", "100").ok();
    assert!(text.starts_with("played 11 messages, 85 B, in "), "{text}");
    assert!(text.contains("delay behind schedule: p50 "), "{text}");
    let without =
        rnet!(env, "play", file, "--rate", "max", "--exclude", "/arm/**", "--json").json();
    let raw = rnet!(env, "play", file, "--rate", "max", "--topic", "/raw", "--json").json();
    assert_eq!(without["messages"], raw["messages"]);
    assert!(raw["messages"].as_u64().is_some_and(|messages| (1..11).contains(&messages)), "{raw}");
}

#[test]
fn a_topic_that_a_node_publishes_is_refused_unless_it_is_forced_or_renamed() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let node = env.node("arm");
    let _living = node.publisher::<util::Pose>("/arm/pose").open().unwrap();
    let refused = rnet!(env, "play", file, "--rate", "max").fails(1);
    assert!(refused.contains("/arm/pose is already published by /arm;"), "{refused}");
    rnet!(env, "play", file, "--rate", "max", "--force").ok();
    rnet!(env, "play", file, "--rate", "max", "--topic", "/raw").ok();
    let (_node, mut subscriber) = hear(&env, "/again");
    rnet!(env, "play", file, "--rate", "max", "--remap", "/arm/pose:=/again").ok();
    assert_eq!(x_of(subscriber.recv_timeout(TEST_TIMEOUT).unwrap().bytes()), 0.0);
    rnet!(env, "play", file, "--remap", "/arm/pose").fails(2);
    let refused = rnet!(env, "play", file, "--remap", "/arm/pase:=/again").fails(1);
    assert!(refused.contains("topic /arm/pase not found"), "{refused}");
    rnet!(env, "play", file, "--rate", "0").fails(2);
}

#[test]
fn nodes_with_simulated_time_follow_the_clock_of_a_recording() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let node = rnet::Node::builder("sim").dir(&env.dir).domain(DOMAIN).sim_time(true);
    let node = node.open().unwrap();
    assert_eq!(node.now(), 0);
    rnet!(env, "play", file, "--rate", "10", "--clock", "--clock-rate", "10").ok();
    // The last published time: that of the last message.
    let end = START_NS + 1_000_000_000;
    until("the time is set", || node.now() == end);
}

#[test]
fn a_loop_goes_on_until_it_is_stopped() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    // It was published best_effort, and is played so.
    let node = env.node("listener");
    let mut subscriber = node.subscriber::<[u8]>("/raw").keep_all().open().unwrap();
    let playing = env.spawn(&["play", file.to_str().unwrap(), "--loop", "--rate", "100", "--json"]);
    for _ in 0..3 {
        assert_eq!(subscriber.recv_timeout(TEST_TIMEOUT).unwrap().bytes(), b"hello");
    }
    playing.signal("INT");
    let ran = playing.wait();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.json()["rounds"].as_u64() >= Some(2), "{ran:#?}");
}

#[test]
fn damaged_and_invalid_recordings_are_reported() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 3]).unwrap();
    let ran = rnet!(env, "play", file.to_str().unwrap(), "--rate", "max");
    assert!(ran.stderr.contains("was read completely"), "{ran:#?}");
    assert!(ran.ok().starts_with("played "));
    // If bits are flipped, the remaining data is played, and the command fails.
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 6] ^= 1;
    std::fs::write(&file, &flipped).unwrap();
    let ran = rnet!(env, "play", file.to_str().unwrap(), "--rate", "max", "--json");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(said["damaged"].as_u64() >= Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("run.mcap: "), "{ran:#?}");
    assert!(ran.stderr.contains("unreadable data was not played"), "{ran:#?}");
    assert!(rnet!(env, "play", "/dev/null").fails(1).contains("not an MCAP file"));
}

/// With two clocks, the time of following nodes would jump back and forth.
#[test]
fn second_clock_is_refused_unless_it_is_forced() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let simulator = env.node("simulator");
    let _clock = simulator.publisher::<rnet::msgs::Clock>("/clock").open().unwrap();
    let refused = rnet!(env, "play", file, "--clock", "--rate", "max").fails(1);
    assert!(refused.contains("/clock is already published by /simulator"), "{refused}");
    rnet!(env, "play", file, "--clock", "--rate", "max", "--force").ok();
    rnet!(env, "play", file, "--rate", "max").ok();
}

/// Other recorders have other naming rules.
#[test]
fn topic_with_a_foreign_name_is_omitted_or_renamed() {
    let env = TestEnv::new();
    let file = env.dir.join("others.mcap");
    let mut writer = Writer::new(Cursor::new(Vec::new())).unwrap();
    for topic in ["/image-raw", "/scan"] {
        let channel_id = writer.add_channel(0, topic, names::BYTES, &Default::default()).unwrap();
        let times = (START_NS, START_NS);
        let header =
            MessageHeader { channel_id, sequence: 0, log_time: times.0, publish_time: times.1 };
        writer.write_to_known_channel(&header, topic.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    std::fs::write(&file, writer.into_inner().into_inner()).unwrap();
    let file = file.to_str().unwrap();
    let ran = rnet!(env, "play", file, "--rate", "max", "--json");
    assert!(ran.stderr.contains("/image-raw") && ran.stderr.contains("not played"), "{ran:?}");
    assert_eq!(ran.json()["messages"], 1);
    let renamed = rnet!(env, "play", file, "--rate", "max", "--json", "-m", "/image-raw:=/image");
    assert_eq!(renamed.json()["messages"], 2);
}

#[test]
fn messages_that_cannot_be_published_fail_the_command() {
    let env = TestEnv::new();
    let file = env.dir.join("short.mcap");
    let options = WriteOptions::new().profile(names::PROFILE).library(names::LIBRARY);
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options).unwrap();
    let schema = writer.add_schema("Pose", names::PLAIN, POSE.as_bytes()).unwrap();
    let channel_id =
        writer.add_channel(schema, "/pose", names::PLAIN, &Default::default()).unwrap();
    for (sequence, data) in [&[0; 8][..], &[0; 3]].into_iter().enumerate() {
        let sequence = u32::try_from(sequence).unwrap();
        let header =
            MessageHeader { channel_id, sequence, log_time: START_NS, publish_time: START_NS };
        writer.write_to_known_channel(&header, data).unwrap();
    }
    writer.finish().unwrap();
    std::fs::write(&file, writer.into_inner().into_inner()).unwrap();
    for json in [&[][..], &["--json"]] {
        let args = [&["play", file.to_str().unwrap(), "--rate", "max"], json].concat();
        let ran = env.run(&args);
        assert!(ran.stderr.contains("1 messages could not be published"), "{ran:?}");
        assert_eq!(ran.code, Some(1), "{ran:?}");
    }
}

#[test]
fn a_player_is_stopped_stepped_and_moved_by_its_services() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    // It was published best_effort, and is played so.
    let node = env.node("listener");
    let mut subscriber = node.subscriber::<[u8]>("/arm/pose").keep_all().open().unwrap();
    let file = file.to_str().unwrap();
    let playing = env.spawn(&["play", file, "--paused", "--node-name", "/player", "--json"]);
    subscriber.wait_for_publishers_timeout(1, TEST_TIMEOUT).unwrap();
    let call = |service: &str, data: &[&str]| {
        let args = ["service", "call", service, "--json", "--timeout", "60"];
        let ran = env.run(&[&args[..], data].concat());
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.json()["data"].clone()
    };
    let said = call("/player/step", &[]);
    assert_eq!((&said["seconds"], &said["paused"]), (&0.0.into(), &1.into()), "{said}");
    assert_eq!(x_of(subscriber.recv_timeout(TEST_TIMEOUT).unwrap().bytes()), 0.0);
    // The file has no message at 0.4 s.
    let said = call("/player/seek", &["{seconds: 0.35}"]);
    assert_eq!((&said["seconds"], &said["paused"]), (&0.35.into(), &1.into()), "{said}");
    assert_eq!(call("/player/step", &[])["seconds"], 0.5);
    assert_eq!(x_of(subscriber.recv_timeout(TEST_TIMEOUT).unwrap().bytes()), 5.0);
    // A second pause has no further effect.
    assert_eq!(call("/player/pause", &[])["paused"], 1);
    let said = call("/player/seek", &["{seconds: 1e9}"]);
    assert_eq!(said["seconds"], 1.0, "{said}");
    call("/player/seek", &["{seconds: 0.6}"]);
    assert_eq!(call("/player/resume", &[])["paused"], 0);
    for n in 6..=10 {
        assert_eq!(x_of(subscriber.recv_timeout(TEST_TIMEOUT).unwrap().bytes()), f64::from(n));
    }
    assert_eq!(playing.wait().json()["messages"], 8);
}

#[test]
fn player_on_a_terminal_is_controlled_by_keys() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    // It was published best_effort, and is played so.
    let node = env.node("listener");
    let mut subscriber = node.subscriber::<[u8]>("/arm/pose").keep_all().open().unwrap();
    let mut next = || x_of(subscriber.recv_timeout(TEST_TIMEOUT).unwrap().bytes());
    let mut terminal = Terminal::start(&env, &["play", file.to_str().unwrap(), "--paused"]);
    terminal.until("q: quit");
    assert!(terminal.is_raw());
    // Two at once, as when a key is held down.
    terminal.send_keys("ss");
    assert_eq!((next(), next()), (0.0, 1.0));
    terminal.send_keys("\u{1b}[C");
    terminal.until("seek +5 s");
    terminal.send_keys("s");
    assert_eq!(next(), 10.0, "the end of the recording");
    terminal.send_keys("\u{1b}[D");
    terminal.until("seek -5 s");
    terminal.send_keys("\u{1b}[A");
    terminal.until("rate 1.25");
    terminal.send_keys("\u{1b}[B");
    terminal.until("rate 1.00");
    terminal.send_keys("l");
    terminal.until("looping on");
    terminal.send_keys(" ");
    terminal.until("resumed");
    let round = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10].map(f64::from);
    for x in round.into_iter().chain(round) {
        assert_eq!(next(), x);
    }
    terminal.send_keys(" ");
    terminal.until("paused");
    terminal.send_keys("q");
    terminal.until("played ");
    assert_eq!(terminal.end(), Some(0));
    assert!(!terminal.is_raw());
}

#[test]
fn terminal_of_a_player_is_restored_at_each_kind_of_exit() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let play = ["play", file.to_str().unwrap(), "--paused"];
    for end in ["Ctrl-C", "SIGTERM", "SIGHUP", "two signals"] {
        let mut terminal = Terminal::start(&env, &play);
        terminal.until("q: quit");
        assert!(terminal.is_raw());
        match end {
            "Ctrl-C" => terminal.send_keys("\u{3}"),
            "SIGTERM" => terminal.signal(Signal::TERM),
            "SIGHUP" => terminal.signal(Signal::HUP),
            _ => {
                // It has no time to act between them.
                let signals = [Signal::STOP, Signal::TERM, Signal::INT, Signal::CONT];
                signals.into_iter().for_each(|signal| terminal.signal(signal));
            }
        }
        assert_eq!(terminal.end(), Some(130), "{end}");
        assert!(!terminal.is_raw(), "{end}");
    }
    let node = env.node("arm");
    let _living = node.publisher::<util::Pose>("/arm/pose").open().unwrap();
    let mut terminal = Terminal::start(&env, &play);
    terminal.until("/arm/pose is already published by /arm;");
    assert_eq!(terminal.end(), Some(1));
    assert!(!terminal.is_raw());
}

#[test]
fn a_player_whose_window_is_closed_ends() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let mut terminal = Terminal::start(&env, &["play", file.to_str().unwrap(), "--paused"]);
    terminal.until("q: quit");
    terminal.hang_up_after("l");
    assert_eq!(terminal.end(), Some(130));
}

/// A terminal that is not its session's controlling terminal sends it no signal.
#[test]
fn a_player_whose_keys_are_gone_plays_on_and_sleeps_meanwhile() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let node = env.node("listener");
    let mut subscriber = node.subscriber::<[u8]>("/arm/pose").keep_all().open().unwrap();
    let (keys, stdin) = terminal::pair();
    let mut command = Command::new("setsid");
    env.set_environment(&mut command);
    command.arg(env.command().get_program());
    command.args(["play", file.to_str().unwrap(), "--paused", "--json", "--node-name", "/player"]);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut playing = RunningCommand::start(command);
    playing.wait_for_stderr("q: quit");
    drop(keys);
    // It has polled for keys many times, and its CPU time must stay small.
    let busy_ns = || thread_ns(playing.pid());
    let (before_ns, began) = (busy_ns(), Instant::now());
    std::thread::sleep(Duration::from_secs(1)); // sleep: the test measures the CPU time meanwhile
    let (used_ns, took) = (busy_ns() - before_ns, began.elapsed());
    assert!(u128::from(used_ns) < took.as_nanos() / 2, "{used_ns} ns of {took:?}");
    rnet!(env, "service", "call", "/player/resume").ok();
    for x in (0..=10).filter(|x| *x != 4) {
        assert_eq!(x_of(subscriber.recv_timeout(TEST_TIMEOUT).unwrap().bytes()), f64::from(x));
    }
    let ran = playing.wait();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(ran.json()["messages"], 11);
}

/// CPU time of the main thread of a playing process.
fn thread_ns(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_player_in_the_background_leaves_the_keys_to_the_shell() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let mut terminal = Terminal::background(&env, &["play", file.to_str().unwrap()]);
    terminal.until("played 11 messages");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_part_of_a_recording_is_played_again_and_again_under_another_name() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let (_node, mut subscriber) = hear(&env, "/again");
    let args =
        ["--start", "0.25", "--end", "0.65", "--topic", "/arm/**", "--remap", "/arm/pose:=/again"];
    let play = ["play", file.to_str().unwrap(), "--loop", "--rate", "max", "--json"];
    let playing = env.spawn(&[&play[..], &args].concat());
    for x in [3.0, 5.0, 6.0, 3.0, 5.0, 6.0, 3.0] {
        assert_eq!(x_of(subscriber.recv_timeout(TEST_TIMEOUT).unwrap().bytes()), x);
    }
    playing.signal("TERM");
    assert_eq!(playing.wait().code, Some(130));
}

/// A recording of robot-net 0.1.0 with messages of each kind. All later versions must play it. Another
/// recording is added when a version changes the format, and none is ever changed.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/must_play_0.1.0.mcap");
const GOLDEN_COUNT: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
#[plain(name = "golden.Wheel")]
struct Wheel {
    speed: f64,
    time_ns: i64,
}

/// The same type in a later version: one more field.
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
#[plain(name = "golden.Wheel")]
struct LaterWheel {
    speed: f64,
    time_ns: i64,
    torque: f64,
}

fn wheel(n: u32) -> Wheel {
    Wheel { speed: f64::from(n) / 4.0, time_ns: i64::from(n) }
}

fn twist(n: u32) -> Twist {
    let linear = Vector3 { x: n.into(), ..Default::default() };
    Twist { linear: Some(linear), ..Default::default() }
}

fn golden_origin(n: u32) -> Origin {
    Origin { host: 9, publisher: 8, seq: n.into() }
}

/// Created once by `/tmp/robot --ignored --exact makes_the_golden_file`, where `/tmp/robot` is a copy of this
/// test program, because the file names the programs of its nodes.
#[test]
#[ignore = "creates a permanent file"]
fn makes_the_golden_file() {
    assert!(!Path::new(GOLDEN).exists(), "{GOLDEN} is there, and is never changed");
    let env = TestEnv::new();
    let node = env.node("/old");
    let mut wheels =
        node.publisher::<Wheel>("/plain").reliable(OnFull::Wait(TEST_TIMEOUT)).open().unwrap();
    let mut twists = node.publisher::<Twist>("/protobuf").open().unwrap();
    let mut raw = node.publisher::<[u8]>("/bytes").transient_local(2).urgent().open().unwrap();
    node.state().unwrap().set("/speed", 3).unwrap();
    std::fs::create_dir_all(Path::new(GOLDEN).parent().unwrap()).unwrap();
    let mut options = RecordOptions::default();
    options.location = Some(Location::new(Some(DOMAIN), Some(env.dir.clone()), None).unwrap());
    options.state_dir = Some(env.dir.join("durable"));
    options.host = Some("robot1".to_owned());
    let recorder = Recorder::start(Path::new(GOLDEN), options).unwrap();
    for n in 0..GOLDEN_COUNT {
        wheels.send(&wheel(n)).unwrap();
        twists.send(&twist(n)).unwrap();
        let meta = Meta::default().with_origin(golden_origin(n)).with_correlation(u64::MAX);
        raw.send_with(format!("bytes {n}").as_bytes(), meta).unwrap();
    }
    let report = recorder.stop().unwrap();
    assert_eq!((report.messages, report.losses.total()), (3 * u64::from(GOLDEN_COUNT), 0));
}

#[test]
fn a_recording_of_an_older_version_plays_into_nodes_of_this_one() {
    let env = TestEnv::new();
    let checked = rnet!(env, "bag", "check", GOLDEN, "--json").json();
    assert_eq!(checked["problems"], serde_json::json!([]));
    let node = env.node("/new");
    let mut wheels = node.subscriber::<Wheel>("/plain").reliable().keep_all().open().unwrap();
    let mut later = node.subscriber::<LaterWheel>("/plain").reliable().keep_all().open().unwrap();
    let mut twists = node.subscriber::<Twist>("/protobuf").reliable().keep_all().open().unwrap();
    let mut raw =
        node.subscriber::<[u8]>("/bytes").reliable().keep_all().lane(Lane::Urgent).open().unwrap();
    let played = rnet!(env, "play", GOLDEN, "--rate", "max", "--json").json();
    let total = 3 * GOLDEN_COUNT;
    assert_eq!((&played["messages"], &played["failed"]), (&total.into(), &0.into()), "{played}");
    for n in 0..GOLDEN_COUNT {
        assert_eq!(*wheels.recv_timeout(TEST_TIMEOUT).unwrap(), wheel(n));
        let Wheel { speed, time_ns } = wheel(n);
        assert_eq!(
            *later.recv_timeout(TEST_TIMEOUT).unwrap(),
            LaterWheel { speed, time_ns, torque: 0.0 }
        );
        assert_eq!(twists.recv_timeout(TEST_TIMEOUT).unwrap().into_message(), twist(n));
        let sample = raw.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!(sample.bytes(), format!("bytes {n}").as_bytes());
        assert_eq!(sample.origin(), Some(golden_origin(n)));
        assert_eq!(sample.correlation(), Some(u64::MAX));
    }
}

#[test]
fn calls_and_commands_are_played_only_where_a_pattern_names_them() {
    let env = TestEnv::new();
    let (robot, desk) = (env.node("/robot"), env.node("/desk"));
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let service = robot.service::<[u8], [u8]>("/upper").serve(move |text| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(text.to_ascii_uppercase())
    });
    let service = service.unwrap();
    let command = robot.command::<Twist>("/cmd_vel").deadline(Duration::from_secs(30));
    let command = command.fallback_zero().apply(|_| {}).unwrap();
    let mut raw = robot.publisher::<[u8]>("/raw").open().unwrap();
    let file = env.dir.join("run.mcap");
    let file = file.to_str().unwrap();
    let mut recorder = env.spawn(&["record", "--output", file, "--json"]);
    recorder.wait_for_stdout("progress");
    assert_eq!(
        *desk.call_timeout::<[u8], [u8]>("/upper", b"robot", TEST_TIMEOUT).unwrap(),
        *b"ROBOT"
    );
    let mut driver =
        desk.drive::<Twist>("/cmd_vel").lease(TEST_TIMEOUT).timeout(TEST_TIMEOUT).take().unwrap();
    driver.send(&twist(2)).unwrap();
    until("the command is applied", || command.status().applied == 1);
    raw.send(b"raw").unwrap();
    // The recorder does not record publishers that close before it has found them.
    for topic in ["/raw", "/cmd_vel", "/_rnet/call/upper/*/request"] {
        let cat = ["bag", "cat", file, "--topic", topic, "--json"];
        until("it is recorded", || env.run(&cat).stdout.lines().count() == 1);
    }
    driver.release().unwrap();
    until("it is released", || command.status().holder.is_empty());
    drop((command, service));
    recorder.signal("INT");
    let ran = recorder.wait();
    assert_eq!(ran.json_lines().last().unwrap()["missing"], 0, "{ran:#?}");
    drop((raw, robot, desk));

    let live = env.node("/live");
    let topic = "/_rnet/command/cmd_vel/log";
    let mut log =
        live.subscriber::<CommandEvent>(topic).lane(Lane::Urgent).keep_all().open().unwrap();
    let play = |topic: &str| {
        let ran = rnet!(env, "play", file, "--rate", "max", "--json", "--topic", topic);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.json()["messages"].as_u64().unwrap()
    };
    // Only user topics.
    assert_eq!(rnet!(env, "play", file, "--rate", "max", "--json").json()["messages"], 2);
    assert_eq!(play("/**"), 2);
    assert!(log.try_recv().unwrap().is_none());
    let lines = play("/_rnet/command/**");
    assert!(lines >= 4, "opened, granted, in force, released: {lines}");
    let mut kinds = Vec::new();
    while kinds.last() != Some(&Kind::Released) {
        kinds.push(log.recv_timeout(TEST_TIMEOUT).unwrap().kind());
    }
    assert!(kinds.contains(&Kind::Opened) && kinds.contains(&Kind::Granted), "{kinds:?}");
    let request = play("/_rnet/call/upper/*/request");
    assert_eq!((request, calls.load(Ordering::SeqCst)), (1, 1), "the server it was for has gone");

    let fails = |topic: &str| rnet!(env, "play", file, "--topic", topic).fails(1);
    let said = fails("/_rnet/comand/**");
    assert!(said.contains("topic /_rnet/comand/** not found in "), "{said}");
    let said = fails("/*/command/**");
    assert!(
        said.contains(
            "is internal to robot-net: to play it, use a pattern that starts with /_rnet"
        ),
        "{said}"
    );
    let said = fails("/_rnet/recording/**");
    assert!(said.contains("by the recorder itself"), "{said}");
}

#[test]
fn a_reliable_subscriber_that_pauses_gets_all_of_what_is_played_at_the_highest_rate() {
    const COUNT: u32 = 10_000;
    let env = TestEnv::new();
    let file = env.dir.join("many.mcap");
    kibibytes(&file, COUNT);
    let (_node, mut subscriber) = hear(&env, "/many");
    let playing = env.spawn(&["play", file.to_str().unwrap(), "--rate", "max", "--json"]);
    for n in 0..COUNT {
        let sample = subscriber.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!(sample.bytes().len(), 1024);
        assert_eq!(sample.bytes()[..4], n.to_le_bytes());
        if n % 1000 == 0 {
            // The player has to wait when its log is full.
            std::thread::sleep(Duration::from_millis(200)); // sleep: simulates a stopped subscriber
        }
    }
    let played = playing.wait().json();
    assert_eq!((&played["messages"], &played["failed"]), (&COUNT.into(), &0.into()), "{played}");
    assert!(!matches!(subscriber.try_recv(), Ok(Some(_))), "one too many");
    assert_eq!(subscriber.lost().total(), 0);
}
