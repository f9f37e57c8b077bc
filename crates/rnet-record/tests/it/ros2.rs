//! ROS 2: converted messages survive a round trip, and hostile bytes are reported.

use crate::files;

use std::collections::BTreeMap;
use std::io::Cursor;

use files::Dir;
use mcap::records::MessageHeader;
use prost::Message as _;
use rnet::msgs::foxglove::{PackedElementField, PointCloud, packed_element_field};
use rnet::msgs::{BatteryState, Imu, LaserScan, Quaternion, Vector3};
use rnet::schema::Dynamic;
use rnet::{Message, MessageType};
use rnet_record::mcap;
use rnet_record::play::{
    ExistingEndpoints, PlayOptions, PlaybackCommand, PlaybackController, Position, play,
};
use rnet_record::read::{Recording, Select};
use rnet_record::ros2::to_ros2;

/// A file of one message on each topic.
fn file(dir: &Dir, messages: &[(&str, &rnet::schema::Schema, Vec<u8>)]) -> Recording {
    let mut writer = mcap::Writer::new(Cursor::new(Vec::new())).unwrap();
    for (topic, schema, bytes) in messages {
        let id = writer.add_schema(schema.name(), "protobuf", schema.descriptor_set()).unwrap();
        let channel = writer.add_channel(id, topic, "protobuf", &BTreeMap::new()).unwrap();
        let header =
            MessageHeader { channel_id: channel, sequence: 7, log_time: 5, publish_time: 4 };
        writer.write_to_known_channel(&header, bytes).unwrap();
    }
    writer.finish().unwrap();
    Recording::open(&dir.write("ours.mcap", &writer.into_inner().into_inner())).unwrap()
}

fn schema<M: Message + ?Sized>() -> rnet::schema::Schema {
    match M::message_type().unwrap() {
        MessageType::Protobuf(schema) => schema,
        _ => panic!("it is protobuf"),
    }
}

#[test]
fn converts_built_in_messages_to_standard_ones_and_reads_them() {
    let dir = Dir::new();
    let vector = |x| Some(Vector3 { x, y: -x, z: f64::MIN_POSITIVE });
    let imu = Imu {
        frame_id: "imu".into(),
        timestamp: Some(rnet::msgs::timestamp_now()),
        orientation: Some(Quaternion { x: 0.0, y: 0.0, z: 0.6, w: 0.8 }),
        angular_velocity: vector(1.25),
        linear_acceleration: vector(9.81),
        linear_acceleration_covariance: (0..9).map(f64::from).collect(),
        ..Default::default()
    };
    let stamp = imu.timestamp.unwrap();
    let battery = BatteryState {
        voltage: Some(24.5),
        charge: Some(7200.0),
        technology: rnet::msgs::battery_state::Technology::LiPo.into(),
        ..Default::default()
    };
    let scan = LaserScan {
        start_angle: -1.0,
        end_angle: 1.0,
        ranges: vec![0.5, 1.5, 2.5],
        ..Default::default()
    };
    let all = [
        ("/imu", &schema::<Imu>(), imu.encode_to_vec()),
        ("/battery", &schema::<BatteryState>(), battery.encode_to_vec()),
        ("/scan", &schema::<LaserScan>(), scan.encode_to_vec()),
        ("/mode", &schema::<rnet::msgs::RobotMode>(), Vec::new()),
    ];
    let ours = file(&dir, &all);
    let to = dir.path("ros2.mcap");
    let (written, left_out) =
        to_ros2(&ours, &to, Select::default(), &mut |_, problem| panic!("{problem}"), || false)
            .unwrap();
    assert_eq!(written.messages, 3);
    assert_eq!((left_out.len(), &*left_out[0].topic), (1, "/mode"));
    let read = Recording::open(&to).unwrap();
    assert_eq!(read.profile(), "ros2");
    let mut shown = BTreeMap::new();
    for message in read.messages(Select::default()) {
        let message = message.unwrap();
        assert_eq!((message.sequence(), message.log_ns(), message.publish_ns()), (7, 5, 4));
        let MessageType::Protobuf(schema) = message.channel.message_type().unwrap() else {
            panic!("it is read as protobuf")
        };
        let decoded = Dynamic::decode(&schema, &message.content().unwrap()).unwrap();
        let text = decoded.to_json(&Default::default());
        shown.insert(message.channel.topic.clone(), (schema.name().to_owned(), text));
    }
    let (name, imu) = &shown["/imu"];
    assert_eq!(name, "sensor_msgs.msg.Imu");
    assert_eq!(imu["header"]["stamp"]["sec"], stamp.seconds);
    assert_eq!(imu["header"]["stamp"]["nanosec"], stamp.nanos);
    assert_eq!(imu["header"]["frameId"], "imu");
    assert_eq!(imu["linearAcceleration"]["y"], -9.81);
    assert_eq!(imu["angularVelocity"]["z"], f64::MIN_POSITIVE);
    assert_eq!(imu["linearAccelerationCovariance"][8], 8.0);
    assert_eq!(imu["orientationCovariance"].as_array().unwrap().len(), 9);
    let (_, battery) = &shown["/battery"];
    assert_eq!((&battery["voltage"], &battery["charge"]), (&24.5.into(), &2.0.into()));
    assert_eq!(battery["powerSupplyTechnology"], 3);
    assert_eq!(battery["current"], "NaN");
    assert_eq!(battery["present"], true);
    let (_, scan) = &shown["/scan"];
    assert_eq!(scan["angleIncrement"], 1.0);
    assert_eq!(scan["ranges"], serde_json::json!([0.5, 1.5, 2.5]));
    // Fields over time, as of any other file.
    let series = read.series("/imu", &["linear_acceleration.x"], Select::default()).unwrap();
    assert_eq!(series.columns[0].to_f64(), [9.81]);
}

#[test]
fn point_cloud_fields_keep_their_number_types() {
    use packed_element_field::NumericType as Ours;
    // The numbers of sensor_msgs/PointField.
    let types = [
        (Ours::Unknown, 0),
        (Ours::Int8, 1),
        (Ours::Uint8, 2),
        (Ours::Int16, 3),
        (Ours::Uint16, 4),
        (Ours::Int32, 5),
        (Ours::Uint32, 6),
        (Ours::Float32, 7),
        (Ours::Float64, 8),
    ];
    let field = |(ours, _): &(Ours, i32)| PackedElementField {
        name: "x".into(),
        r#type: (*ours).into(),
        ..Default::default()
    };
    let cloud = PointCloud { fields: types.iter().map(field).collect(), ..Default::default() };
    let dir = Dir::new();
    let ours = file(&dir, &[("/cloud", &schema::<PointCloud>(), cloud.encode_to_vec())]);
    let to = dir.path("ros2.mcap");
    to_ros2(&ours, &to, Select::default(), &mut |_, problem| panic!("{problem}"), || false)
        .unwrap();
    let read = Recording::open(&to).unwrap();
    let message = read.messages(Select::default()).next().unwrap().unwrap();
    let MessageType::Protobuf(schema) = message.channel.message_type().unwrap() else {
        panic!("it is read as protobuf")
    };
    let decoded = Dynamic::decode(&schema, &message.content().unwrap()).unwrap();
    let shown = decoded.to_json(&Default::default());
    let theirs: Vec<i64> = shown["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["datatype"].as_i64().unwrap_or(0))
        .collect();
    assert_eq!(theirs, types.map(|(_, theirs)| i64::from(theirs)));
}

#[test]
fn rejects_invalid_cdr_without_allocating() {
    let dir = Dir::new();
    let text = "int32[] a\nstring s\nInner[] inner\nInner[3] fixed\nuint8[] data\nNone[] none\n===\nMSG: x/Inner\n\
                float64[] f\nbool b\n===\nMSG: x/None\n";
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32
    };
    let mut writer = mcap::Writer::new(Cursor::new(Vec::new())).unwrap();
    let id = writer.add_schema("x/msg/Of", "ros2msg", text.as_bytes()).unwrap();
    let channel = writer.add_channel(id, "/x", "cdr", &BTreeMap::new()).unwrap();
    for n in 0..2000u32 {
        let len = random() % 60;
        let mut bytes: Vec<u8> = (0..len).map(|_| (random() % 4) as u8).collect();
        if n % 5 != 0 && bytes.len() >= 4 {
            bytes[..4].copy_from_slice(&[0, (n % 2) as u8, 0, 0]);
        }
        if n % 11 == 0 {
            // Empty everywhere: the shortest message.
            bytes = vec![0; 68];
            bytes[1] = 1;
        } else if n % 7 == 0 {
            bytes.iter_mut().skip(4).for_each(|byte| *byte = 0xff);
        }
        let header =
            MessageHeader { channel_id: channel, sequence: n, log_time: 1, publish_time: 1 };
        writer.write_to_known_channel(&header, &bytes).unwrap();
    }
    writer.finish().unwrap();
    let path = dir.write("hostile.mcap", &writer.into_inner().into_inner());
    let read = Recording::open(&path).unwrap();
    let (mut failed, mut whole) = (0, 0);
    for message in read.messages(Select::default()) {
        let message = message.unwrap();
        match message.content() {
            Ok(content) => {
                whole += 1;
                assert!(content.len() <= 8 * message.data().len() + 64);
                let MessageType::Protobuf(schema) = message.channel.message_type().unwrap() else {
                    panic!("it is read as protobuf")
                };
                Dynamic::decode(&schema, &content).unwrap();
            }
            Err(why) => {
                failed += 1;
                assert!(!why.is_empty());
            }
        }
    }
    assert!(failed > 1000 && whole > 0, "{failed} {whole}");
}

/// A file of one message in CDR on each topic `/x0`, `/x1`, …
fn cdr_file(dir: &Dir, messages: &[(&str, &str, &[u8])]) -> Recording {
    let mut writer = mcap::Writer::new(Cursor::new(Vec::new())).unwrap();
    for (n, (encoding, text, bytes)) in messages.iter().enumerate() {
        let id = writer.add_schema(&format!("x/msg/Of{n}"), encoding, text.as_bytes()).unwrap();
        let channel = writer.add_channel(id, &format!("/x{n}"), "cdr", &BTreeMap::new()).unwrap();
        let header =
            MessageHeader { channel_id: channel, sequence: 0, log_time: 1, publish_time: 1 };
        writer.write_to_known_channel(&header, bytes).unwrap();
    }
    writer.finish().unwrap();
    Recording::open(&dir.write("types.mcap", &writer.into_inner().into_inner())).unwrap()
}

#[test]
fn unreadable_description_is_reported_and_leaves_bytes() {
    let dir = Dir::new();
    let message: &[u8] = &[0, 1, 0, 0, 1];
    let of = |text| ("ros2msg", text, message);
    let idl = "module x { struct Of4 { wstring w; }; };";
    let whys = [
        ("x/Of0 of", "contains itself"),
        ("int32[", "is not a field"),
        ("int8 a\nwstring w", "w of x/Of2 is a wstring"),
        ("Lost l", "does not define it"),
        (idl, "x/msg/Of4 is described as \"ros2idl\", but only \"ros2msg\" is supported"),
    ];
    let mut messages: Vec<_> = whys.iter().map(|(text, _)| of(*text)).collect();
    messages[4].0 = "ros2idl";
    messages.push(of("uint8 n"));
    let read = cdr_file(&dir, &messages);
    for message in read.messages(Select::default()) {
        let message = message.unwrap();
        let topic = &message.channel.topic;
        let Some((_, why)) = whys.get(topic[2..].parse::<usize>().unwrap()) else { continue };
        let error = message.channel.message_type().unwrap_err().to_string();
        assert!(error.contains(&format!("the type of {topic} ")) && error.contains(why), "{error}");
        assert_eq!(&*message.content().unwrap(), message.data());
    }
    // They are not played and are reported; the other one is played. Requesting one of them is an error.
    let node = rnet::Node::builder("player").dir(dir.path("")).domain("ros2").open().unwrap();
    let mut script = ProblemLog::default();
    let options = PlayOptions { rate: None, ..PlayOptions::default() };
    let played = play(&read, &node, &ExistingEndpoints::default(), &options, &mut script).unwrap();
    assert_eq!((played.messages, played.failed, script.0.len()), (1, 0, 5));
    let said = script.0.join("\n");
    assert!(said.contains("/x2 cannot be read") && said.contains("it is not played"), "{said}");
    let select = Select { topics: vec!["/x4".to_owned()], ..Select::default() };
    let options = PlayOptions { select, ..options };
    let refused =
        play(&read, &node, &ExistingEndpoints::default(), &options, &mut script).unwrap_err();
    assert!(refused.to_string().contains("ros2idl"), "{refused}");
}

/// Collects the reported problems.
#[derive(Default)]
struct ProblemLog(Vec<String>);

impl PlaybackController for ProblemLog {
    fn next_command(&mut self, _: &Position) -> Option<PlaybackCommand> {
        None
    }

    fn on_problem(&mut self, problem: &dyn std::fmt::Display) {
        self.0.push(problem.to_string());
    }

    fn on_finished(&mut self, _: &mut dyn Iterator<Item = (&str, u64)>) {}
}

#[test]
fn reads_cdr2_of_final_types() {
    let dir = Dir::new();
    let text = "uint8 a\nfloat64 b\nstring[] names\nInner[2] inner\nint64[] c\n===\nMSG: x/Inner\nuint8 d\nint64 e\n";
    let mut bytes = vec![0, 7, 0, 0];
    // Numbers of 8 bytes are aligned to 4; collections of non-primitive types have a byte length before them.
    let parts: [&[u8]; 7] = [
        &[1, 0, 0, 0],
        &2.5f64.to_le_bytes(),
        &[17, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, b'h', b'i', 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        &[24, 0, 0, 0],
        &[
            5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            0xff, 0xff,
        ],
        &[1, 0, 0, 0],
        &9i64.to_le_bytes(),
    ];
    bytes.extend(parts.concat());
    let growing = [&[0u8, 9, 0, 0][..], &bytes[4..]].concat();
    let read = cdr_file(&dir, &[("ros2msg", text, &bytes), ("ros2msg", text, &growing)]);
    let mut messages = read.messages(Select::default()).map(Result::unwrap);
    let message = messages.next().unwrap();
    let MessageType::Protobuf(schema) = message.channel.message_type().unwrap() else {
        panic!("it is read as protobuf")
    };
    let decoded = Dynamic::decode(&schema, &message.content().unwrap()).unwrap();
    let expected = serde_json::json!({
        "a": 1, "b": 2.5, "names": ["hi", ""], "inner": [{"d": 5, "e": "6"}, {"d": 7, "e": "-1"}], "c": ["9"],
    });
    assert_eq!(decoded.to_json(&Default::default()), expected);
    let why = messages.next().unwrap().content().unwrap_err();
    assert!(why.contains("0x0009") && why.contains("extensible"), "{why}");
}

#[test]
fn hostile_description_takes_neither_memory_nor_time() {
    let dir = Dir::new();
    // Each type has two of the next: 2^31 of the last one, which is detected at the end of the message.
    let doubled: String =
        (1..32).map(|n| format!("===\nMSG: x/T{n}\nT{0} a\nT{0} b\n", n + 1)).collect();
    let of = |leaf: &str| format!("T1 t\n{doubled}===\nMSG: x/T32\n{leaf}\n");
    let many = |leaf: &str| format!("Z[4294967295] a\n===\nMSG: x/Z\n{leaf}\n");
    let refused = [of("uint8[0] x"), many("uint8[0] x"), many("string[00] x")];
    let ending = [of("uint8 x"), of(""), many("uint8 x"), many(""), many("int64[] x")];
    let all: Vec<(&str, &str, &[u8])> = refused
        .iter()
        .chain(&ending)
        .map(|text| ("ros2msg", text.as_str(), &[0, 1, 0, 0, 0, 0, 0, 0][..]))
        .collect();
    let read = cdr_file(&dir, &all);
    let mut whys = Vec::new();
    for message in read.messages(Select::default()) {
        let message = message.unwrap();
        whys.push(match message.channel.message_type() {
            Err(error) => error.to_string(),
            Ok(_) => message.content().unwrap_err(),
        });
    }
    let (refusals, ended) = whys.split_at(refused.len());
    assert!(refusals.iter().all(|why| why.contains("is not a length")), "{refusals:?}");
    assert_eq!(ended.len(), ending.len());
    assert!(ended.iter().all(|why| why.contains("it ends at byte 4")), "{ended:?}");
    // Data within 32 types grows by two bytes with each of them.
    let nested: String = (1..32).map(|n| format!("===\nMSG: x/T{n}\nT{} a\n", n + 1)).collect();
    let text = format!("T1[] t\n{nested}===\nMSG: x/T32\nuint8 x\n");
    let mut bytes = vec![0, 1, 0, 0];
    bytes.extend(60_000u32.to_le_bytes());
    bytes.resize(8 + 60_000, 1);
    let read = cdr_file(&dir, &[("ros2msg", &text, &bytes)]);
    let message = read.messages(Select::default()).next().unwrap().unwrap();
    assert_eq!(message.content().unwrap().len(), 60_000 * 66);
}
