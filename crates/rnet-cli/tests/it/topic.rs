//! `rnet topic list|info|echo`.

use crate::util;

use rnet::bridge::{BridgePublisherBuilder, BridgeSubscriberBuilder, ProxySubscription};
use rnet::{Lane, OnFull};
use util::{BackgroundPublisher, POSE, Pose, TEST_TIMEOUT, TestEnv};

#[test]
fn list_shows_names_types_and_counts() {
    let env = TestEnv::new();
    let (a, b) = (env.node("a"), env.node("b"));
    let _poses = a.publisher::<Pose>("/pose").open().unwrap();
    let _bytes = a.publisher::<[u8]>("/bytes").open().unwrap();
    let _heard = b.subscriber::<[u8]>("/pose").open().unwrap();
    let _more = b.subscriber::<Pose>("/pose").open().unwrap();
    let _lonely = b.subscriber::<Pose>("/wanted").open().unwrap();
    assert_eq!(rnet!(env, "topic", "list").ok(), "/bytes\n/pose\n/wanted\n");
    let typed = rnet!(env, "topic", "list", "-t").ok();
    assert_eq!(typed, "/bytes [raw]\n/pose [Pose]\n/wanted [Pose]\n");
    assert_eq!(
        rnet!(env, "topic", "list", "-v").ok(),
        "TOPIC    TYPE  PUBLISHERS  SUBSCRIBERS\n\
         /bytes   raw            1            0\n\
         /pose    Pose           1            2\n\
         /wanted  Pose           0            1\n"
    );
    let json = rnet!(env, "topic", "list", "--json").json();
    let pose = &json["topics"][1];
    assert_eq!(pose["topic"], "/pose");
    assert_eq!(pose["types"], serde_json::json!(["Pose"]));
    assert_eq!((&pose["publishers"], &pose["subscribers"]), (&1.into(), &2.into()));
}

#[test]
fn proxies_are_shown_as_their_remote_publishers() {
    let env = TestEnv::new();
    let (link, arm) = (env.node("link"), rnet::Proxy::new("robot2", "arm", 7).unwrap());
    let proxy = link.subscriber::<Pose>("/pose").proxy(arm.clone(), 3).open().unwrap();
    let _poses = link.publisher::<Pose>("/pose").proxy(arm).open().unwrap();
    assert_eq!(rnet!(env, "node", "list").ok(), "/link\n@robot2/arm\n");
    let json = rnet!(env, "node", "list", "--json").json();
    assert_eq!(json["nodes"][0]["publishes"], serde_json::json!([]));
    let remote = serde_json::json!([
        {"node": "@robot2/arm", "publishes": ["/pose"], "subscribes": ["/pose"]}
    ]);
    assert_eq!(json["remote"], remote);
    let brief = rnet!(env, "topic", "info", "/pose").ok();
    assert_eq!(brief, "Type: Pose\nPublisher count: 1\nSubscription count: 3\n");
    proxy.set_endpoint_count(5).unwrap();
    let full = rnet!(env, "topic", "info", "/pose", "-v").ok();
    assert_eq!(full.matches("Node name: @robot2/arm\n").count(), 2, "{full}");
    for part in
        ["Subscription count: 5", "Proxy: in /link\n", "Proxy: in /link, for 5 subscriptions\n"]
    {
        assert!(full.contains(part), "{part:?} is missing:\n{full}");
    }
    let listed = rnet!(env, "topic", "list", "-v").ok();
    assert!(listed.contains("/pose  Pose           1            5  robot2\n"), "{listed}");
}

#[test]
fn info_counts_and_describes() {
    let env = TestEnv::new();
    let (a, b) = (env.node("a"), env.node("b"));
    let mut publisher = a
        .publisher::<Pose>("/pose")
        .reliable(OnFull::Refuse)
        .transient_local(3)
        .urgent()
        .last_will(&POSE)
        .open()
        .unwrap();
    let mut subscriber =
        b.subscriber::<Pose>("/pose").keep_last(5).lane(Lane::Urgent).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    publisher.send(&POSE).unwrap();
    subscriber.recv_timeout(TEST_TIMEOUT).unwrap();
    let brief = rnet!(env, "topic", "info", "/pose").ok();
    assert_eq!(brief, "Type: Pose\nPublisher count: 1\nSubscription count: 1\n");
    let full = rnet!(env, "topic", "info", "pose", "-v").ok();
    for part in [
        "Node name: /a",
        "Endpoint type: PUBLISHER",
        "Reliability: RELIABLE (when full: refuse)",
        "Durability: TRANSIENT_LOCAL (depth 3)",
        "Lane: urgent",
        "Type layout: 40 bytes, aligned to 8",
        "  24  legs: struct Leg (8 bytes)[2]",
        "    24  force: f32",
        "Last will: 40 bytes\n",
        "Sent: 1 messages, 40 B; served subscribers: 1",
        "Node name: /b",
        "Endpoint type: SUBSCRIPTION",
        "KEEP_LAST (5)",
        "FROM  RECEIVED  SKIPPED  LOST  BEHIND\n/a           1        0  0     0\n",
    ] {
        assert!(full.contains(part), "{part} is not in:\n{full}");
    }
    let json = rnet!(env, "--json", "topic", "info", "/pose").json();
    assert_eq!(json["publishers"][0]["sent"], 1);
    assert_eq!(json["publishers"][0]["last_will_len"], 40);
    assert_eq!(json["publishers"][0]["type"]["name"], "Pose");
    assert_eq!(json["subscribers"][0]["channels"][0]["received"], 1);
    assert_eq!(json["subscribers"][0]["qos"]["history"]["keep_last"], 5);
}

#[test]
fn info_shows_skipped_messages_and_lagging_subscribers() {
    let env = TestEnv::new();
    let (a, b) = (env.node("a"), env.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    for _ in 0..30 {
        publisher.send(b"tick").unwrap();
    }
    let poll = || {
        let text = rnet!(env, "topic", "info", "/t", "-v").ok();
        let json = rnet!(env, "--json", "topic", "info", "/t").json();
        (text, json["subscribers"][0].clone())
    };
    let (text, json) = poll();
    assert!(text.contains("KEEP_LAST (10)"), "{text}");
    assert!(text.contains("\n/a           0        0  0     30, the oldest "), "{text}");
    assert_eq!(json["qos"]["history"]["keep_last"], 10);
    assert_eq!(json["channels"][0]["behind"]["messages"], 30);
    assert!(json["channels"][0]["behind"]["age_ns"].as_u64().unwrap() > 0);
    subscriber.recv_timeout(TEST_TIMEOUT).unwrap();
    let (text, json) = poll();
    assert!(text.contains("\n/a           1       20  0     9, the oldest "), "{text}");
    let channel = &json["channels"][0];
    assert_eq!((&channel["skipped"], &channel["lost"]["overrun"]), (&20.into(), &0.into()));
    assert_eq!(channel["behind"]["messages"], 9);
}

#[test]
fn info_of_a_missing_topic_suggests_a_similar_one() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _publisher = node.publisher::<[u8]>("/joint_states").open().unwrap();
    let said = rnet!(env, "topic", "info", "/joint_state").fails(1);
    assert!(
        said.contains("topic /joint_state not found") && said.contains("/joint_states?"),
        "{said}"
    );
    let said = rnet!(env, "topic", "info", "/camera").fails(1);
    assert!(said.contains("rnet topic list"), "{said}");
}

#[test]
fn every_topic_command_suggests_a_similar_topic() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _publisher = node.publisher::<[u8]>("/scan").open().unwrap();
    for command in ["info", "type"] {
        let said = rnet!(env, "topic", command, "/scna").fails(1);
        assert!(
            said.contains("topic /scna not found") && said.contains("did you mean /scan?"),
            "{said}"
        );
    }
    for command in ["echo", "hz", "bw", "delay"] {
        let mut waits = env.spawn(&["topic", command, "/scna"]);
        waits.wait_for_stderr(
            "topic /scna not found in domain clitest; did you mean /scan? (waiting for it)",
        );
    }
}

#[test]
fn types_are_found_by_topic_and_topics_by_type() {
    let env = TestEnv::new();
    let (a, b) = (env.node("a"), env.node("b"));
    let _poses = [
        a.publisher::<Pose>("/pose").open().unwrap(),
        a.publisher::<Pose>("/goal").open().unwrap(),
    ];
    let _other = b.subscriber::<[u8]>("/bytes").open().unwrap();
    assert_eq!(rnet!(env, "topic", "type", "/pose").ok(), "Pose\n");
    assert_eq!(rnet!(env, "topic", "type", "/bytes").ok(), "raw\n");
    assert_eq!(rnet!(env, "topic", "find", "Pose").ok(), "/goal\n/pose\n");
    assert_eq!(rnet!(env, "topic", "find", "raw").ok(), "/bytes\n");
    let json = rnet!(env, "--json", "topic", "find", "Pose").json();
    assert_eq!(json["topics"], serde_json::json!(["/goal", "/pose"]));
    assert_eq!(rnet!(env, "--json", "topic", "type", "/pose").json()["types"][0], "Pose");
    let said = rnet!(env, "topic", "find", "Poes").fails(1);
    assert!(said.contains("has the type Poes; did you mean Pose?"), "{said}");
}

#[test]
fn piped_tables_do_not_truncate_names() {
    let env = TestEnv::new();
    let long = format!("/front/{}/image", "camera_".repeat(20));
    let (a, b) = (env.node(&long), env.node("b"));
    let publisher = a.publisher::<Pose>(&long).open().unwrap();
    let _subscriber = b.subscriber::<Pose>(&long).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    for args in [&["topic", "list", "-v"][..], &["node", "list", "-v"]] {
        let text = env.run(args).ok();
        assert!(text.contains(&format!("\n{long} ")), "{text}");
    }
    assert_eq!(rnet!(env, "topic", "list", "--json").json()["topics"][0]["topic"], *long);
}

#[test]
fn echo_shows_raw_bytes_as_hex() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _pump = BackgroundPublisher::start(
        node.publisher::<[u8]>("/t").open().unwrap(),
        b"hello, robot\0\xff".to_vec().into(),
    );
    let dump =
        "00000000  68 65 6c 6c 6f 2c 20 72  6f 62 6f 74 00 ff        |hello, robot..|\n---\n";
    assert_eq!(rnet!(env, "topic", "echo", "/t", "--count", "2").ok(), dump.repeat(2));
    let csv = rnet!(env, "topic", "echo", "/t", "--once", "--csv").ok();
    assert_eq!(csv, "68656c6c6f2c20726f626f7400ff\n");
    let ran = rnet!(env, "--json", "topic", "echo", "/t", "--count", "3");
    let lines = ran.json_lines();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["hex"], "68656c6c6f2c20726f626f7400ff");
    assert_eq!((&lines[0]["node"], &lines[0]["len"]), (&"/a".into(), &14.into()));
    let seqs: Vec<u64> = lines.iter().map(|l| l["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|w| w[1] == w[0] + 1), "{seqs:?}");
    let said = rnet!(env, "topic", "echo", "/t", "--once", "--field", "x").fails(1);
    assert!(said.contains("no fields"), "{said}");
}

#[test]
fn echo_shows_plain_types_by_field() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _pump =
        BackgroundPublisher::start(node.publisher::<Pose>("/pose").open().unwrap(), Box::new(POSE));
    let echo = |args: &[&str]| env.run(&[&["topic", "echo", "/pose", "--once"], args].concat());
    assert_eq!(
        echo(&[]).ok(),
        "x: 1.5\nq: [0.0, 0.0, 0.1, 1.0]\nlegs:\n  -\n    force: 10.0\n    contact: 1\n  -\n    \
         force: 20.0\n    contact: 0\n---\n"
    );
    assert_eq!(echo(&["--csv"]).ok(), "1.5,0.0,0.0,0.1,1.0,10.0,1,20.0,0\n");
    assert_eq!(echo(&["--field", "legs[1].force"]).ok(), "20.0\n---\n");
    assert_eq!(echo(&["--field", "q", "--csv"]).ok(), "0.0,0.0,0.1,1.0\n");
    assert_eq!(echo(&["--field", "q", "--truncate-length", "1"]).ok(), "[0.0, ...]\n---\n");
    assert!(echo(&["--raw"]).ok().starts_with("00000000  00 00 00 00 00 00 f8 3f  "));
    assert!(echo(&["--info", "--csv"]).ok().contains(" from /a, 40 bytes\n1.5,"));
    let json = echo(&["--json"]).json_lines();
    assert_eq!(json[0]["data"]["legs"][0]["contact"], 1);
    assert_eq!(json[0]["type"], "Pose");
    let said = echo(&["--field", "legs[1].torque"]).fails(1);
    assert!(said.contains("torque") && said.contains("force, contact"), "{said}");
}

#[test]
fn echo_truncates_long_dumps_by_default() {
    let env = TestEnv::new();
    let node = env.node("a");
    let image = vec![7u8; 100_000];
    let _pump =
        BackgroundPublisher::start(node.publisher::<[u8]>("/image").open().unwrap(), image.into());
    let cut = rnet!(env, "topic", "echo", "/image", "--once").ok();
    assert_eq!(cut.lines().count(), 10);
    assert!(cut.contains("... (99872 more bytes)"), "{cut}");
    let full = rnet!(env, "topic", "echo", "/image", "--once", "-f").ok();
    assert_eq!(full.lines().count(), 100_000 / 16 + 1);
}

#[test]
fn echo_waits_for_the_topic_and_follows_new_publishers_whole() {
    let env = TestEnv::new();
    let mut echo = env.spawn(&["topic", "echo", "/t", "--csv", "--count", "4"]);
    echo.wait_for_stderr("topic /t not found in domain");
    let first = env.node("first");
    let mut publisher = first.publisher::<[u8]>("/t").open().unwrap();
    // Both are received from the first message on, although they were found later.
    publisher.send(&[1]).unwrap();
    publisher.send(&[2]).unwrap();
    echo.wait_for_stdout("02");
    drop(publisher);
    echo.wait_for_stderr("/first is gone");
    let second = env.node("second");
    let mut publisher = second.publisher::<[u8]>("/t").open().unwrap();
    publisher.send(&[3]).unwrap();
    publisher.send(&[4]).unwrap();
    assert_eq!(echo.wait().ok(), "01\n02\n03\n04\n");
}

#[test]
fn echo_first_shows_what_is_kept_for_late_joiners() {
    let env = TestEnv::new();
    let node = env.node("a");
    let mut publisher = node.publisher::<[u8]>("/map").transient_local(2).open().unwrap();
    for i in 1..=5 {
        publisher.send(&[i]).unwrap();
    }
    assert_eq!(rnet!(env, "topic", "echo", "/map", "--count", "2", "--csv").ok(), "04\n05\n");
}

#[test]
fn echo_without_messages_times_out() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _silent = node.publisher::<[u8]>("/t").open().unwrap();
    let said = rnet!(env, "topic", "echo", "/t", "--timeout", "0.2").fails(124);
    assert!(said.contains("timed out") && said.contains("/t"), "{said}");
    let _pump =
        BackgroundPublisher::start(node.publisher::<[u8]>("/u").open().unwrap(), vec![1].into());
    let received = rnet!(env, "topic", "echo", "/u", "--timeout", "0.5", "--csv").ok();
    assert!(received.starts_with("01\n"), "{received}");
}

#[test]
fn echo_is_interrupted_by_ctrl_c_and_keeps_its_output() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _pump =
        BackgroundPublisher::start(node.publisher::<[u8]>("/t").open().unwrap(), vec![1].into());
    for signal in ["INT", "TERM"] {
        let mut echo = env.spawn(&["topic", "echo", "/t", "--csv"]);
        echo.wait_for_stdout("01");
        echo.signal(signal);
        assert_eq!(echo.wait().code, Some(130));
    }
}

#[test]
fn observer_is_not_counted_as_a_reader() {
    let env = TestEnv::new();
    let node = env.node("a");
    let publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let pump = BackgroundPublisher::start(publisher, vec![1].into());
    let mut echo = env.spawn(&["topic", "echo", "/t", "--csv"]);
    let mut hz = env.spawn(&["topic", "hz", "/t"]);
    echo.wait_for_stdout("01");
    hz.wait_for_stdout("average rate");
    // Both run, and neither the publisher nor the domain knows of them.
    let mut domain =
        rnet::inspect::Domain::open(Some(util::DOMAIN), Some(env.dir.clone()), None).unwrap();
    let seen = domain.snapshot().unwrap();
    assert_eq!((seen.publishers[0].readers, seen.subscriptions.len()), (0, 0));
    assert_eq!(seen.nodes.len(), 1);
    drop(pump);
}

#[test]
fn echo_shows_the_header_of_large_messages_and_how_much_data_follows() {
    let env = TestEnv::new();
    let node = env.node("camera");
    let json = r#"{"kind":"plain","name":"Frame","size":16,"align":8,"tail":true,"fields":[
        {"name":"width","offset":0,"type":"u32"},{"name":"encoding","offset":8,"type":{"array":{"of":"u8","len":8}}}]}"#;
    let frame = rnet::TypeDesc::from_json(json).unwrap().as_plain().unwrap().clone();
    let mut message =
        frame.encode(&serde_json::json!({"width": 640, "_data_len": 10_000})).unwrap();
    message[8..12].copy_from_slice(b"rgb8");
    let _pump = BackgroundPublisher::start(
        node.publisher::<[u8]>("/image").message_type(frame).open().unwrap(),
        message.into(),
    );
    let echo = |args: &[&str]| env.run(&[&["topic", "echo", "/image", "--once"], args].concat());
    assert_eq!(echo(&[]).ok(), "width: 640\nencoding: \"rgb8\"\ndata: 10000 bytes\n---\n");
    assert_eq!(echo(&["--field", "encoding"]).ok(), "\"rgb8\"\n---\n");
    let line = &echo(&["--json"]).json_lines()[0];
    assert_eq!((&line["len"], &line["data"]["_data_len"]), (&10_016.into(), &10_000.into()));
    let shown = rnet!(env, "type", "show", "Frame").ok();
    assert!(
        shown.starts_with("plain type Frame: 16 bytes, aligned to 8, followed by data\n"),
        "{shown}"
    );
    let said = rnet!(env, "topic", "pub", "/image", "--raw", "--text", "short", "--once").fails(1);
    assert!(said.contains("16 bytes or more"), "{said}");
}

#[test]
fn topics_of_an_unknown_host_are_an_error() {
    let env = TestEnv::new();
    let _angles = env.node("imu").publisher::<[u8]>("/angles").open().unwrap();
    let own = rnet!(env, "topic", "list", "--json").json()["topics"][0]["hosts"][0].clone();
    let own = own.as_str().unwrap();
    assert_eq!(rnet!(env, "topic", "list", "--host", own).ok(), "/angles\n");
    let why = rnet!(env, "topic", "list", "--host", "nowhere").fails(1);
    assert!(why.contains("host nowhere is not known"), "{why}");
}
