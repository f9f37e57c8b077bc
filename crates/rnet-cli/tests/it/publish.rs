//! `rnet topic pub`.

use crate::util;

use rnet::Lane;
use util::{POSE, Pose, TEST_TIMEOUT, TestEnv};

#[test]
fn once_waits_for_a_subscriber_and_sends_one_message() {
    let env = TestEnv::new();
    let mut publish = env.spawn(&["topic", "pub", "/t", "--hex", "00 ff:1a", "--once"]);
    let node = env.node("hearer");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    assert_eq!(&*subscriber.recv_timeout(TEST_TIMEOUT).unwrap(), [0, 255, 26]);
    publish.wait_for_stderr("published 1 message on /t to 1 subscriber");
    assert_eq!(publish.wait().code, Some(0));
}

#[test]
fn all_messages_reach_a_subscriber_that_takes_its_time() {
    let env = TestEnv::new();
    let node = env.node("hearer");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let big = env.dir.join("big");
    std::fs::write(&big, vec![9u8; 50_000]).unwrap();
    let publish = env.spawn(&[
        "topic",
        "pub",
        "/t",
        "--file",
        big.to_str().unwrap(),
        "--count",
        "5",
        "--rate",
        "1000",
        "--json",
    ]);
    for _ in 0..5 {
        let message = subscriber.recv_timeout(TEST_TIMEOUT).unwrap();
        assert!(message.len() == 50_000 && message.iter().all(|b| *b == 9));
    }
    let report = publish.wait().json();
    assert_eq!((&report["sent"], &report["subscribers"]), (&5.into(), &1.into()));
    assert_eq!((&report["type"], &report["len"]), (&"raw".into(), &50_000.into()));
}

#[test]
fn plain_types_are_taken_from_the_topic() {
    let env = TestEnv::new();
    let node = env.node("hearer");
    let mut subscriber = node.subscriber::<Pose>("/pose").open().unwrap();
    let data =
        r#"{"x": 1.5, "q": [0, 0, 0.1, 1], "legs": [{"force": 10, "contact": 1}, {"force": 20}]}"#;
    rnet!(env, "topic", "pub", "/pose", data, "--once").ok();
    assert_eq!(*subscriber.recv_timeout(TEST_TIMEOUT).unwrap(), POSE);
    rnet!(env, "topic", "pub", "/pose", "Pose", data, "--once").ok();
    assert_eq!(*subscriber.recv_timeout(TEST_TIMEOUT).unwrap(), POSE);
    rnet!(env, "topic", "pub", "/pose", "--raw", "--hex", "00".repeat(40), "--once").ok();
    assert_eq!(subscriber.recv_timeout(TEST_TIMEOUT).unwrap().x, 0.0);
    let said = rnet!(env, "topic", "pub", "/pose", "Twist", data, "--once").fails(1);
    assert!(said.contains("Pose, not Twist"), "{said}");
    let said = rnet!(env, "topic", "pub", "/pose", r#"{"y": 1}"#, "--once").fails(2);
    assert!(said.contains("`y`") && said.contains("x, q, legs"), "{said}");
    let said = rnet!(env, "topic", "pub", "/pose", "--text", "short", "--raw", "--once").fails(1);
    assert!(said.contains("40 bytes") && said.contains("5 bytes"), "{said}");
}

#[test]
fn built_in_plain_messages_are_sent_and_shown_by_name() {
    let env = TestEnv::new();
    let node = env.node("hearer");
    let mut images = node.subscriber::<rnet::msgs::Image>("/image").open().unwrap();
    let data = r#"{"timestamp_ns": 1500000000, "frame_id": "camera", "width": 2, "height": 1, "row_stride": 2,
        "encoding": "mono8", "_data": [7, 255]}"#;
    rnet!(env, "topic", "pub", "/image", "Image", data, "--once").ok();
    let image = images.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(
        (image.frame_id(), image.encoding(), image.data()),
        ("camera", "mono8", &[7, 255][..])
    );
    let zeros = data.replace("\"_data\": [7, 255]", "\"data_len\": 5");
    rnet!(env, "topic", "pub", "/image", zeros, "--once").ok();
    assert_eq!(images.recv_timeout(TEST_TIMEOUT).unwrap().data(), [0; 5]);
    for (from, to, why) in [
        ("[7, 255]", "[7, 256]", "`_data[1]`: 256 is not a byte"),
        ("[7, 255]", "\"\"", "`_data`: \"\" is not an array of bytes"),
        ("[7, 255]", "[7, 255], \"_data_len\": 3", "`_data_len`: 3, but _data has 2 bytes"),
        ("[7, 255]", "[]", "pass the data as \"_data\""),
        ("\"row_stride\": 2,", "", "row_stride is 0, but the pixels of a row have 2 bytes"),
        ("camera", &"c".repeat(65), "`frame_id`: the text has 65 bytes; at most 64 fit"),
        ("camera", "c\\u0000", "`frame_id`: the text contains a zero byte"),
    ] {
        assert!(data.contains(from), "{from}");
        let said = rnet!(env, "topic", "pub", "/image", data.replace(from, to), "--once").fails(2);
        assert!(said.contains(why), "{said}");
    }

    let tensor = r#"{"dtype_code": 2, "dtype_bits": 32, "dtype_lanes": 1, "shape": [2, 3], "strides": [12, 4], "_data_len": 24}"#;
    let cloud = r#"{"timestamp_ns": 1500000000, "width": 1, "height": 1, "point_stride": 4, "row_stride": 4,
        "fields": [{"name": "x", "type": 7}], "_data": [0, 0, 0, 63]}"#;
    for (name, data, shown) in [
        (
            "Image",
            data,
            "timestamp_ns: 1500000000  # 1970-01-01T00:00:01.500Z\ndata_offset: 192\ndata_len: 2\nframe_id: \"camera\"\n\
            width: 2\nheight: 1\nrow_stride: 2\nencoding: \"mono8\"\ndata: 2 bytes\n---\n",
        ),
        (
            "Tensor",
            tensor,
            "timestamp_ns: 0\ndata_offset: 256\ndata_len: 24\nframe_id: \"\"\ndtype_code: 2\ndtype_bits: 32\n\
            dtype_lanes: 1\nndim: 2\nshape: [2, 3]\nstrides: [12, 4]\ndata: 24 bytes\n---\n",
        ),
        (
            "rnet.msgs.PointCloud",
            cloud,
            "field_count: 1\nflags: 0\nposition: [0.0, 0.0, 0.0]\norientation: [0.0, 0.0, 0.0, 0.0]\n\
            fields:\n  -\n    name: \"x\"\n    offset: 0\n    type: 7\ndata: 4 bytes\n---\n",
        ),
    ] {
        let topic = format!("/{}", name.to_lowercase().replace('.', "_"));
        let publish = env.spawn(&["topic", "pub", &topic, name, data, "--rate", "100"]);
        let text = rnet!(env, "topic", "echo", topic, "--once").ok();
        assert!(text.ends_with(shown), "{text}");
        publish.signal("INT");
        publish.wait().fails(130);
    }
}

#[test]
fn fields_can_be_read_from_a_file() {
    let env = TestEnv::new();
    let data = env.dir.join("pose.yaml");
    std::fs::write(&data, "position: {x: 2}").unwrap();
    let data = data.to_str().unwrap();
    let node = env.node("hearer");
    let mut subscriber = node.subscriber::<rnet::msgs::Pose>("/pose").open().unwrap();
    rnet!(env, "topic", "pub", "/pose", "Pose", "--file", data, "--once").ok();
    let pose = subscriber.recv_timeout(TEST_TIMEOUT).unwrap().into_message();
    assert_eq!(pose.position.unwrap().x, 2.0);
    std::fs::write(data, [0xff]).unwrap();
    let said = rnet!(env, "topic", "pub", "/pose", "--file", data, "--once").fails(1);
    assert!(said.contains("is not valid UTF-8") && said.contains("--raw"), "{said}");
}

#[test]
fn fields_need_a_type() {
    let env = TestEnv::new();
    let said =
        rnet!(env, "topic", "pub", "/t", r#"{"x": 1}"#, "--once", "--timeout", "0.1").fails(124);
    assert!(said.contains("--proto"), "{said}");
    let node = env.node("hearer");
    let _raw = node.subscriber::<[u8]>("/t").open().unwrap();
    let said = rnet!(env, "topic", "pub", "/t", r#"{"x": 1}"#, "--once").fails(1);
    assert!(said.contains("raw bytes") && said.contains("--text"), "{said}");
    for (data, why) in [
        ("hello", "raw bytes without fields"),
        ("{x: 1", "invalid DATA: invalid YAML"),
        ("x: *y", "invalid DATA"),
    ] {
        let ran = rnet!(env, "topic", "pub", "/t", data, "--once");
        assert!(ran.stderr.contains(why) && ran.stderr.contains("--text"), "{ran:#?}");
        assert_ne!(ran.code, Some(0));
    }
    for (data, why) in [
        ("hello", "DATA is the text \"hello\", but must be the fields of a message"),
        ("Vector3", "rnet topic pub /new Vector3 '{x: 0.0, y: 0.0, z: 0.0}'"),
    ] {
        let said = rnet!(env, "topic", "pub", "/new", data, "--once").fails(2);
        assert!(said.contains(why), "{said}");
    }
    let said = rnet!(env, "topic", "pub", "/new", "Twistt", "{}").fails(2);
    assert!(said.contains("did you mean rnet.msgs.Twist?") && said.contains("--text"), "{said}");
}

#[test]
fn fields_wait_for_the_type_of_a_subscriber_that_starts_later() {
    let env = TestEnv::new();
    let mut publish =
        env.spawn(&["topic", "pub", "/pose", r#"{"x": 1.5}"#, "--once", "--timeout", "60"]);
    publish.wait_for_stderr("/pose has no endpoint yet");
    let node = env.node("hearer");
    let mut subscriber = node.subscriber::<Pose>("/pose").open().unwrap();
    assert_eq!(subscriber.recv_timeout(TEST_TIMEOUT).unwrap().x, 1.5);
    publish.wait().ok();
}

#[test]
fn without_a_subscriber_once_times_out_or_sends_with_no_wait() {
    let env = TestEnv::new();
    let said =
        rnet!(env, "topic", "pub", "/t", "--text", "x", "--once", "--timeout", "0.1").fails(124);
    assert!(said.contains("nothing was sent") && said.contains("--no-wait"), "{said}");
    let mut echo = env.spawn(&["topic", "echo", "/t", "--csv", "--once"]);
    echo.wait_for_stderr("topic /t not found");
    rnet!(env, "topic", "pub", "/t", "raw", "hi", "--once", "--no-wait").ok();
    assert_eq!(echo.wait().ok(), "6869\n");
}

#[test]
fn pub_runs_until_ctrl_c_and_then_exits_cleanly() {
    let env = TestEnv::new();
    let publish =
        env.spawn(&["topic", "pub", "/t", "--text", "tick", "--rate", "200", "-n", "ticker"]);
    let node = env.node("hearer");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    for _ in 0..3 {
        assert_eq!(&*subscriber.recv_timeout(TEST_TIMEOUT).unwrap(), b"tick");
    }
    assert!(rnet!(env, "node", "list").ok().contains("/ticker\n"));
    publish.signal("INT");
    let said = publish.wait().fails(130);
    assert!(said.contains("published"), "{said}");
    assert_eq!(rnet!(env, "node", "list").ok(), "/hearer\n");
}

#[test]
fn the_lane_is_that_of_the_topic_and_any_subscriber_is_served() {
    let env = TestEnv::new();
    let node = env.node("hearer");
    let mut subscriber = node
        .subscriber::<[u8]>("/stop")
        .lane(Lane::Urgent)
        .reliable()
        .transient_local()
        .open()
        .unwrap();
    rnet!(env, "topic", "pub", "/stop", "--text", "now", "--once").ok();
    assert_eq!(&*subscriber.recv_timeout(TEST_TIMEOUT).unwrap(), b"now");
    let said =
        rnet!(env, "topic", "pub", "/stop", "--text", "now", "--once", "--lane", "bulk").fails(1);
    assert!(said.contains("urgent lane"), "{said}");
}

#[test]
fn two_nodes_of_one_name_are_refused() {
    let env = TestEnv::new();
    let _taken = env.node("ticker");
    let said = rnet!(env, "topic", "pub", "/t", "--text", "x", "-n", "/ticker").fails(1);
    assert!(said.contains("node /ticker already exists"), "{said}");
}

#[test]
fn bytes_on_a_typed_topic_are_refused_without_raw() {
    let env = TestEnv::new();
    let node = env.node("hearer");
    let mut poses = node.subscriber::<Pose>("/pose").open().unwrap();
    let mut commands = node.subscriber::<rnet::msgs::Vector3>("/command").open().unwrap();
    let file = env.dir.join("hi");
    std::fs::write(&file, "hi").unwrap();
    let file = file.to_str().unwrap();
    // As protobuf, "hi" is a message with an unknown field, and zeros.
    for data in [&["--text", "hi"][..], &["--hex", "6869"], &["--file", file], &["raw", "hi"]] {
        for (topic, name) in [("/pose", "Pose"), ("/command", "foxglove.Vector3")] {
            let code = if data[0] == "--file" { 2 } else { 1 };
            let said = env.run(&[&["topic", "pub", topic, "--once"], data].concat()).fails(code);
            let example =
                if topic == "/pose" { "'{x: 0.0, " } else { "'{x: 0.0, y: 0.0, z: 0.0}'" };
            // A file may contain fields.
            let words = [name, example, if data[0] == "--file" { "\"hi\"" } else { "--raw" }];
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        }
    }
    env.run(&["topic", "pub", "/command", "--raw", "--text", "hi", "--once"]).ok();
    assert_eq!(commands.recv_timeout(TEST_TIMEOUT).unwrap().x, 0.0);
    assert!(poses.try_recv().unwrap().is_none() && commands.try_recv().unwrap().is_none());
    // Only bytes may be raw.
    env.run(&["topic", "pub", "/command", "--raw", "{}", "--once"]).fails(2);
}

#[test]
fn data_is_yaml_as_ros_users_type_it() {
    let env = TestEnv::new();
    let node = env.node("hearer");
    let mut twists = node.subscriber::<rnet::msgs::Twist>("/cmd_vel").open().unwrap();
    let file = env.dir.join("twist.yaml");
    std::fs::write(&file, "linear:\n  x: 0.5\nangular: {z: -1}\n").unwrap();
    let file = file.to_str().unwrap();
    for data in [
        &["Twist", "{linear: {x: 0.5}, angular: {z: -1}}"][..],
        &["linear:\n  x: 0.5\nangular:\n  z: -1.0\n"],
        &["{\"linear\": {\"x\": 0.5}, \"angular\": {\"z\": -1}}"],
        &["geometry_msgs/msg/Twist", "--file", file],
        &["--file", file],
    ] {
        env.run(&[&["topic", "pub", "--once", "/cmd_vel"], data].concat()).ok();
        let twist = twists.recv_timeout(TEST_TIMEOUT).unwrap();
        let (linear, angular) = (twist.linear.unwrap(), twist.angular.unwrap());
        assert_eq!((linear.x, linear.y, angular.z), (0.5, 0.0, -1.0), "{data:?}");
    }
    for data in ["{linear: {x: 1e999}}", r#"{"linear": {"x": 1e999}}"#] {
        let said = rnet!(env, "topic", "pub", "--once", "/cmd_vel", data).fails(2);
        assert!(said.contains("1e999 does not fit in 64 bits"), "{said}");
    }
    // The error's example shows the input to type.
    let said = rnet!(env, "topic", "pub", "--once", "/cmd_vel", "{linear: {X: 1}}").fails(2);
    let (_, example) = said.split_once("; example: '").unwrap_or_else(|| panic!("{said}"));
    let example = example.trim_end().trim_end_matches('\'');
    assert_eq!(example, "{linear: {x: 0.0, y: 0.0, z: 0.0}, angular: {x: 0.0, y: 0.0, z: 0.0}}");
    rnet!(env, "topic", "pub", "--once", "/cmd_vel", example).ok();
    assert_eq!(twists.recv_timeout(TEST_TIMEOUT).unwrap().linear.unwrap().x, 0.0);
    let mut poses = node.subscriber::<Pose>("/pose").open().unwrap();
    rnet!(env, "topic", "pub", "--once", "/pose", "x: .5").ok();
    assert_eq!(poses.recv_timeout(TEST_TIMEOUT).unwrap().x, 0.5);
    let said = rnet!(env, "topic", "pub", "--once", "/pose", "q: 1").fails(2);
    assert!(said.contains("example: '{x: 0.0, q: [0.0, 0.0, 0.0, 0.0], legs: ["), "{said}");
}

#[test]
fn a_last_will_is_received_when_the_publisher_is_killed_and_not_when_it_ends() {
    let env = TestEnv::new();
    let node = env.node("hearer");
    let mut states = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    let arguments = ["topic", "pub", "/t", "--text", "closed", "--will", "gone"];
    let publish = env.spawn(&arguments);
    assert_eq!(&*states.recv_timeout(TEST_TIMEOUT).unwrap(), b"closed");
    publish.signal("KILL");
    let will = loop {
        let state = states.recv_timeout(TEST_TIMEOUT).unwrap();
        if state.is_last_will() {
            break state.to_vec();
        }
        assert_eq!(&*state, b"closed");
    };
    assert_eq!(will, b"gone");
    assert!(matches!(states.recv_timeout(TEST_TIMEOUT), Err(rnet::Error::PeerLost { .. })));
    rnet!(env, "topic", "pub", "/t", "--text", "open", "--will", "gone", "--once").ok();
    assert_eq!(&*states.recv_timeout(TEST_TIMEOUT).unwrap(), b"open");
    assert!(states.try_recv().unwrap().is_none(), "it has ended by itself");
    // With a type, it accepts fields only.
    let mut poses = node.subscriber::<Pose>("/pose").open().unwrap();
    let said = rnet!(env, "topic", "pub", "/pose", "{x: 1.5}", "--will", "{y: 1}", "--once");
    let said = said.fails(2);
    assert!(said.contains("--will") && said.contains('y'), "{said}");
    let publish = env.spawn(&["topic", "pub", "/pose", "{x: 1.5}", "--will", "{x: 2.5}"]);
    assert_eq!(poses.recv_timeout(TEST_TIMEOUT).unwrap().x, 1.5);
    publish.signal("KILL");
    while poses.recv_timeout(TEST_TIMEOUT).unwrap().x != 2.5 {}
}
