//! Fields of a topic over time.

use crate::files;

use std::io::Cursor;

use files::{Dir, START_NS, chunked, metadata};
use mcap::records::MessageHeader;
use mcap::{Compression, WriteOptions, Writer};
use rnet::Prim;
use rnet::schema::{Dynamic, compile_text};
use rnet_record::mcap;
use rnet_record::read::{Recording, Select, Series, SeriesError};
use serde_json::json;

const POSE: &str = r#"{"kind":"plain","name":"Pose","size":40,"align":8,"fields":[
    {"name":"x","offset":0,"type":"f64"},
    {"name":"at","offset":8,"type":{"struct":{"name":"At","size":8,"align":4,"fields":[
        {"name":"n","offset":0,"type":"i16"},{"name":"_pad","offset":2,"type":"u16"},{"name":"on","offset":4,"type":"bool"}]}}},
    {"name":"q","offset":16,"type":{"array":{"of":"f32","len":3}}},
    {"name":"legs","offset":28,"type":{"array":{"of":{"struct":{"name":"Leg","size":4,"align":4,"fields":[
        {"name":"force","offset":0,"type":"f32"}]}},"len":2}}},
    {"name":"_end","offset":36,"type":"u32"}]}"#;
const IMU: &str = r#"syntax = "proto3"; package t; message V { double x = 1; optional int32 n = 2; }
    message Imu { V acceleration = 1; repeated float ranges = 2; string name = 3; uint64 count = 4; }"#;

type File = Writer<Cursor<Vec<u8>>>;

fn file(options: WriteOptions) -> File {
    Writer::with_options(Cursor::new(Vec::new()), options).unwrap()
}

fn end(mut file: File) -> Vec<u8> {
    file.finish().unwrap();
    file.into_inner().into_inner()
}

fn put(file: &mut File, channel_id: u16, n: u32, log_time: u64, data: &[u8]) {
    let header = MessageHeader { channel_id, sequence: n, log_time, publish_time: log_time - 1 };
    file.write_to_known_channel(&header, data).unwrap();
}

fn pose(n: u32) -> Vec<u8> {
    let mut bytes = f64::from(n).to_le_bytes().to_vec();
    bytes.extend((-(n as i16)).to_le_bytes());
    bytes.extend([9, 9, (n % 2) as u8 * 7, 0, 0, 0]);
    for value in [1.0, 2.0, n as f32, 4.0, 5.0 + n as f32, 0.0] {
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

/// `/pose`, plain, and `/imu`, protobuf, in turns; the poses go backwards in time within tens.
fn written(options: WriteOptions, messages: u32) -> Vec<u8> {
    let mut file = file(options);
    let schema = file.add_schema("Pose", "rnet-plain", POSE.as_bytes()).unwrap();
    let poses = file.add_channel(schema, "/pose", "rnet-plain", &Default::default()).unwrap();
    let imu = compile_text("imu.proto", IMU).unwrap().schema("t.Imu").unwrap();
    let schema = file.add_schema("t.Imu", "protobuf", &imu.descriptor_set_with_docs()).unwrap();
    let imus = file.add_channel(schema, "/imu", "protobuf", &Default::default()).unwrap();
    for n in 0..messages {
        let backwards = n / 10 * 10 + 9 - n % 10;
        put(&mut file, poses, n, START_NS + u64::from(backwards), &pose(backwards));
        let mut message = json!({"count": n, "name": "imu"});
        if n % 2 == 0 {
            message["acceleration"] = json!({"x": f64::from(n) / 4.0});
            message["ranges"] = json!([0.5, n]);
        }
        let bytes = Dynamic::from_json(&imu, &message).unwrap().encode();
        put(&mut file, imus, n, START_NS + u64::from(n), &bytes);
    }
    end(file)
}

fn read(bytes: &[u8], topic: &str, fields: &[&str]) -> Result<Series, SeriesError> {
    let dir = Dir::new();
    let recording = Recording::open(&dir.write("a", bytes)).unwrap();
    recording.series(topic, fields, Select::default())
}

fn refused(topic: &str, field: &str) -> String {
    read(&written(chunked(None), 10), topic, &[field]).unwrap_err().to_string()
}

#[test]
fn reads_plain_fields_as_columns_in_order_of_time() {
    for options in
        [chunked(None), chunked(Some(Compression::Zstd)), WriteOptions::new().use_chunks(false)]
    {
        let fields = ["x", "at.n", "at.on", "q", "q[2]", "legs[1].force"];
        let series = read(&written(options, 200), "/pose", &fields).unwrap();
        assert_eq!((series.problems.len(), series.log_ns.len()), (0, 200));
        assert!(series.log_ns.iter().enumerate().all(|(n, ns)| *ns == START_NS + n as u64));
        assert!(series.log_ns.iter().zip(&series.publish_ns).all(|(log, sent)| log - 1 == *sent));
        let prims: Vec<Prim> = series.columns.iter().map(|column| column.prim).collect();
        assert_eq!(prims, [Prim::F64, Prim::I16, Prim::Bool, Prim::F32, Prim::F32, Prim::F32]);
        let shapes: Vec<&[usize]> = series.columns.iter().map(|column| &*column.shape).collect();
        assert_eq!(shapes, [&[] as &[usize], &[], &[], &[3], &[], &[]]);
        let values: Vec<Vec<f64>> = series.columns.iter().map(|column| column.to_f64()).collect();
        for n in 0..200 {
            let x = n as f64;
            assert_eq!((values[0][n], values[1][n], values[2][n]), (x, -x, (n % 2) as f64));
            assert_eq!(values[3][3 * n..3 * n + 3], [1.0, 2.0, x]);
            assert_eq!((values[4][n], values[5][n]), (x, 5.0 + x));
        }
        assert!(series.columns[2].values.iter().all(|byte| *byte < 2), "a bool is 0 or 1");
    }
}

#[test]
fn reads_protobuf_fields_as_columns_with_absent_rows() {
    let fields = ["acceleration.x", "acceleration.n", "ranges[1]", "count"];
    let series = read(&written(chunked(Some(Compression::Lz4)), 200), "/imu", &fields).unwrap();
    assert_eq!((series.problems.len(), series.log_ns.len()), (0, 200));
    let odd: Vec<usize> = (1..200).step_by(2).collect();
    let absent: Vec<&[usize]> = series.columns.iter().map(|column| &*column.absent).collect();
    assert_eq!(absent, [&odd[..], &(0..200).collect::<Vec<_>>(), &odd, &[]]);
    let (x, range) = (series.columns[0].to_f64(), series.columns[2].to_f64());
    for n in (0..200).step_by(2) {
        assert_eq!((x[n], range[n]), (n as f64 / 4.0, n as f64));
        assert!(x[n + 1].is_nan() && range[n + 1].is_nan());
    }
    assert_eq!(series.columns[3].prim, Prim::U64);
    assert_eq!(series.columns[3].to_f64(), (0..200).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn errors_name_topic_field_and_available_fields() {
    for (topic, field, words) in [
        ("/none", "x", &["/none", "/imu, /pose"][..]),
        ("/pose", "y", &["\"y\"", "/pose", "Pose has x, at, q, legs"]),
        ("/pose", "at.m", &["At has n, on"]),
        ("/pose", "at._pad", &["At has n, on"]),
        ("/pose", "at", &["not a number", "At has n, on"]),
        ("/pose", "legs", &["Leg has force"]),
        ("/pose", "q[3]", &["3 elements"]),
        ("/pose", "q[x]", &["legs[2]"]),
        ("/pose", "q[1]x", &["expected"]),
        ("/pose", "x[0]", &["f64 has no element"]),
        ("/pose", "x.y", &["f64 has no field"]),
        ("/pose", "", &["empty part"]),
        ("/imu", "nothing", &["/imu", "acceleration, ranges, name, count"]),
        ("/imu", "ranges", &["ranges[0]"]),
        ("/imu", "name", &["it is text"]),
    ] {
        let said = refused(topic, field);
        assert!(words.iter().all(|word| said.contains(word)), "{topic} {field}: {said}");
    }
}

#[test]
fn number_fields_lists_all_readable_fields() {
    let dir = Dir::new();
    let recording = Recording::open(&dir.write("a", &written(chunked(None), 10))).unwrap();
    let fields: Vec<Vec<String>> =
        recording.channels().map(|c| c.number_fields().unwrap()).collect();
    assert_eq!(fields[0], ["x", "at.n", "at.on", "q"]);
    assert_eq!(fields[1], ["acceleration.x", "acceleration.n", "count"]);
    for (channel, fields) in recording.channels().zip(&fields) {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        assert_eq!(
            recording.series(&channel.topic, &fields, Select::default()).unwrap().log_ns.len(),
            10
        );
    }
}

#[test]
fn selects_times_and_channels() {
    let dir = Dir::new();
    let recording = Recording::open(&dir.write("a", &written(chunked(None), 100))).unwrap();
    let select =
        Select { start_ns: Some(START_NS + 10), end_ns: Some(START_NS + 20), ..Select::default() };
    let series = recording.series("/pose", &["x"], select).unwrap();
    assert_eq!(series.columns[0].to_f64(), (10..20).map(f64::from).collect::<Vec<_>>());
    let select = Select { excluded_channels: [1].into(), ..Select::default() };
    assert!(matches!(recording.series("/pose", &["x"], select), Err(SeriesError::NoTopic { .. })));
}

#[test]
fn malformed_message_has_no_row_and_is_reported() {
    let mut file = file(chunked(None));
    let schema = file.add_schema("Pose", "rnet-plain", POSE.as_bytes()).unwrap();
    let id = file.add_channel(schema, "/pose", "rnet-plain", &Default::default()).unwrap();
    for n in 0..150 {
        let data = if n % 5 == 0 { pose(n) } else { pose(n)[..39].to_vec() };
        put(&mut file, id, n, START_NS + u64::from(n), &data);
    }
    let series = read(&end(file), "/pose", &["q", "x"]).unwrap();
    assert_eq!(series.columns[1].to_f64(), (0..30).map(|n| f64::from(n * 5)).collect::<Vec<_>>());
    assert_eq!(series.columns[0].values.len(), 30 * 12);
    assert_eq!((series.problems.len(), series.more_problems), (100, 20));
    let said = &series.problems[0];
    assert!(
        ["message 1 of /pose", "39 bytes", "40"].iter().all(|word| said.contains(word)),
        "{said}"
    );
}

#[test]
fn joins_channels_of_a_topic_with_equal_types() {
    let of = |second: &str| {
        let mut file = file(chunked(None));
        let described = |ty: &str| {
            format!(
                r#"{{"kind":"plain","name":"P","size":8,"align":8,"fields":[{{"name":"x","offset":0,"type":"{ty}"}}]}}"#
            )
        };
        for (n, ty) in ["f64", second].into_iter().enumerate() {
            let schema = file.add_schema("P", "rnet-plain", described(ty).as_bytes()).unwrap();
            let of = metadata("", &[("rnet.node", &format!("/n{n}"))]).metadata;
            let id = file.add_channel(schema, "/p", "rnet-plain", &of).unwrap();
            for m in 0..3 {
                let value = (2 * m + n) as u64;
                put(&mut file, id, 0, START_NS + value, &(value as f64).to_le_bytes());
            }
        }
        read(&end(file), "/p", &["x"])
    };
    assert_eq!(of("f64").unwrap().columns[0].to_f64(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let said = of("i64").unwrap_err().to_string();
    assert!(said.contains("f64 in one channel and i64 in another"), "{said}");
}

#[test]
fn unreadable_chunk_loses_only_its_own_rows() {
    let whole = written(chunked(None), 100);
    let chunk = files::records(&whole)
        .into_iter()
        .filter(|record| record.0 == mcap::records::op::CHUNK)
        .nth(3);
    let (_, at, len) = chunk.unwrap();
    let mut damaged = whole.clone();
    damaged[at + len - 1] ^= 1;
    let (all, left) =
        (read(&whole, "/pose", &["x"]).unwrap(), read(&damaged, "/pose", &["x"]).unwrap());
    assert!(left.log_ns.len() < all.log_ns.len() && left.log_ns.len() > 80);
    assert_eq!(left.problems.len(), 1);
    assert!(left.problems[0].contains(&format!("at byte {at}")), "{}", left.problems[0]);
    let cut = read(&whole[..whole.len() / 2], "/pose", &["x"]).unwrap();
    assert!(
        !cut.log_ns.is_empty() && cut.problems[0].contains("the file ends"),
        "{:?}",
        cut.problems
    );
}

#[test]
fn field_added_to_type_is_absent_in_older_messages() {
    let schema = |fields: &str| {
        let text = format!(r#"syntax = "proto3"; package robot; message Grip {{ {fields} }}"#);
        compile_text("grip.proto", &text).unwrap().schema("robot.Grip").unwrap()
    };
    let old = schema("string name = 1; double width = 2;");
    let new = schema("string name = 1; double temp = 4; double width = 2; uint32 count = 5;");
    let mut file = file(chunked(None));
    for (n, of) in [&old, &new].into_iter().enumerate() {
        let id = file.add_schema("robot.Grip", "protobuf", of.descriptor_set()).unwrap();
        let node = format!("/n{n}");
        let node = metadata("", &[("rnet.node", &*node)]).metadata;
        let channel = file.add_channel(id, "/grip", "protobuf", &node).unwrap();
        let mut message = json!({"name": "left", "width": n});
        if n == 1 {
            (message["temp"], message["count"]) = (json!(40.0), json!(3));
        }
        let bytes = Dynamic::from_json(of, &message).unwrap().encode();
        put(&mut file, channel, 0, START_NS + n as u64, &bytes);
    }
    let bytes = end(file);
    let series = read(&bytes, "/grip", &["width", "temp", "count"]).unwrap();
    let columns: Vec<Vec<f64>> = series.columns.iter().map(|column| column.to_f64()).collect();
    assert_eq!(columns[0], [0.0, 1.0]);
    assert!(columns[1][0].is_nan() && columns[2][0].is_nan(), "{columns:?}");
    assert_eq!((columns[1][1], columns[2][1]), (40.0, 3.0));
    assert_eq!((&series.columns[1].absent, &series.columns[0].absent), (&vec![0], &vec![]));
    // A field that no version has is rejected, as is one that is not a number in some version.
    let refused = read(&bytes, "/grip", &["tmep"]).unwrap_err().to_string();
    assert!(refused.contains("no such field"), "{refused}");
    assert!(read(&bytes, "/grip", &["name"]).is_err());
}
