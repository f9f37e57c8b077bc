//! ROS 2: what is written comes back, and hostile bytes are told.

mod files;

use std::collections::BTreeMap;
use std::io::Cursor;

use files::Dir;
use mcap::records::MessageHeader;
use prost::Message as _;
use rnet::msgs::{BatteryState, Imu, LaserScan, Quaternion, Vector3};
use rnet::schema::Dynamic;
use rnet::{Message, MessageType};
use rnet_record::mcap;
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
fn built_in_messages_become_standard_ones_and_are_read_as_such() {
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
        to_ros2(&ours, &to, Select::default(), &mut |_, problem| panic!("{problem}")).unwrap();
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
    let (_, scan) = &shown["/scan"];
    assert_eq!(scan["angleIncrement"], 1.0);
    assert_eq!(scan["ranges"], serde_json::json!([0.5, 1.5, 2.5]));
    // Fields over time, as of any other file.
    let series = read.series("/imu", &["linear_acceleration.x"], Select::default()).unwrap();
    assert_eq!(series.columns[0].to_f64(), [9.81]);
}

#[test]
fn what_is_no_cdr_is_told_and_takes_no_memory() {
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
            // Nothing of anything: as short as a message gets.
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
    let (mut told, mut whole) = (0, 0);
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
                told += 1;
                assert!(!why.is_empty());
            }
        }
    }
    assert!(told > 1000 && whole > 0, "{told} {whole}");
}

#[test]
fn a_description_that_cannot_be_read_leaves_bytes() {
    let dir = Dir::new();
    let mut writer = mcap::Writer::new(Cursor::new(Vec::new())).unwrap();
    for (n, text) in ["x/Of of", "int32[", "wstring w", "Lost l"].into_iter().enumerate() {
        let id = writer.add_schema("x/msg/Of", "ros2msg", text.as_bytes()).unwrap();
        let topic = format!("/x{n}");
        let channel = writer.add_channel(id, &topic, "cdr", &BTreeMap::new()).unwrap();
        let header =
            MessageHeader { channel_id: channel, sequence: 0, log_time: 1, publish_time: 1 };
        writer.write_to_known_channel(&header, &[0, 1, 0, 0, 1]).unwrap();
    }
    writer.finish().unwrap();
    let path = dir.write("types.mcap", &writer.into_inner().into_inner());
    for message in Recording::open(&path).unwrap().messages(Select::default()) {
        let message = message.unwrap();
        let error = message.channel.message_type().unwrap_err().to_string();
        assert!(error.contains("the type of /x"), "{error}");
        assert_eq!(&*message.content().unwrap(), message.data());
    }
}
