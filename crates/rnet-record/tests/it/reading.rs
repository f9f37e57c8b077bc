//! Reads valid files.

use crate::files;

use files::{Dir, START_NS, STEP_NS, chunked, times, write};
use mcap::records::{MessageHeader, op};
use mcap::{Compression, WriteOptions, Writer};
use rnet::MessageType;
use rnet_record::mcap;
use rnet_record::read::{CheckReport, Recording, Select, check};

#[test]
fn reading_by_index_equals_scanning() {
    let dir = Dir::new();
    for (name, options) in [
        ("none", chunked(None)),
        ("zstd", chunked(Some(Compression::Zstd))),
        ("lz4", chunked(Some(Compression::Lz4))),
        ("loose", WriteOptions::new().use_chunks(false)),
        ("no_message_index", chunked(None).emit_message_indexes(false)),
        ("no_channels", chunked(None).repeat_channels(false).repeat_schemas(false)),
    ] {
        let path = dir.write(name, &write(options, 100));
        let by_index = Recording::open(&path).unwrap();
        let whole = Recording::open_without_index(&path).unwrap();
        let has_no_index = ["loose", "no_channels"].contains(&name);
        assert_eq!(
            by_index.info().scan_reason,
            has_no_index.then_some("it has no index"),
            "{name}"
        );
        assert_eq!(by_index.info().problems.len(), 0, "{name}");
        for recording in [&by_index, &whole] {
            let found = recording.info();
            assert_eq!(found.counts, [(1, 50), (2, 50)].into(), "{name}");
            assert_eq!(found.times, Some((START_NS, START_NS + 99 * STEP_NS)));
            assert_eq!(found.attachments.len(), 1);
            let attachment = recording.attachment(found.attachments[0]).unwrap();
            assert_eq!((&*attachment.name, &*attachment.data), ("note", &b"hello"[..]));
            assert_eq!(recording.metadata("rnet.losses").unwrap()["total"], "0");
            assert_eq!((recording.profile(), recording.library()), ("rnet", "test"));
            let messages: Vec<_> =
                recording.messages(Select::default()).collect::<Result<_, _>>().unwrap();
            for (n, message) in messages.iter().enumerate() {
                assert_eq!(message.log_ns(), START_NS + n as u64 * STEP_NS);
                assert_eq!(message.sequence() as usize, n / 2);
                let wanted = match n % 2 {
                    0 => (n as f64).to_le_bytes().to_vec(),
                    _ => format!("message {n}").into_bytes(),
                };
                assert_eq!(message.data(), wanted);
            }
            assert_eq!(messages.len(), 100, "{name}");
            let source = messages[0].channel.source().unwrap();
            assert_eq!(
                (&*source.node, &*source.host, &*source.type_name),
                ("/arm", "robot1", "Pose")
            );
            let MessageType::Plain(plain) = messages[0].channel.message_type().unwrap() else {
                panic!("a plain type");
            };
            assert_eq!(plain.name, "Pose");
            assert_eq!(messages[1].channel.message_type().unwrap(), MessageType::Raw);
        }
        let mut problems = Vec::new();
        let checked = check(&path, &mut |problem| problems.push(problem.to_string())).unwrap();
        assert_eq!(problems, <[String; 0]>::default(), "{name}");
        let chunks = by_index.info().chunks;
        assert_eq!(checked, CheckReport { messages: 100, chunks, ..CheckReport::default() });
    }
}

#[test]
fn selects_topics_and_times() {
    let dir = Dir::new();
    let path = dir.write("a", &write(chunked(None), 100));
    let recording = Recording::open(&path).unwrap();
    let count = |select| recording.messages(select).map(Result::unwrap).count();
    assert_eq!(count(Select { topics: vec!["/pose".into()], ..Select::default() }), 50);
    assert_eq!(count(Select { topics: vec!["/none".into()], ..Select::default() }), 0);
    let start_ns = Some(START_NS + 10 * STEP_NS);
    let end_ns = Some(START_NS + 20 * STEP_NS);
    assert_eq!(count(Select { start_ns, ..Select::default() }), 90);
    assert_eq!(count(Select { end_ns, ..Select::default() }), 20);
    assert_eq!(count(Select { start_ns, end_ns, ..Select::default() }), 10);
    let excluded_channels = [1].into();
    assert_eq!(count(Select { excluded_channels, ..Select::default() }), 50);
}

#[test]
fn reads_overlapping_chunks_in_order_of_time() {
    let dir = Dir::new();
    let mut writer = Writer::with_options(
        std::io::Cursor::new(Vec::new()),
        WriteOptions::new().compression(None).chunk_size(Some(300)),
    )
    .unwrap();
    let id = writer.add_channel(0, "/t", "bytes", &Default::default()).unwrap();
    // Each message is up to 12 places away from its sorted position.
    for n in 0..200u64 {
        let log_time = 1000 + (n / 13) * 13 + 12 - n % 13;
        let header =
            MessageHeader { channel_id: id, sequence: n as u32, log_time, publish_time: 0 };
        writer.write_to_known_channel(&header, b"some bytes").unwrap();
    }
    writer.finish().unwrap();
    let bytes = writer.into_inner().into_inner();
    assert!(files::records(&bytes).iter().filter(|record| record.0 == op::CHUNK).count() > 10);
    let times = times(&dir.write("a", &bytes));
    assert_eq!(times.len(), 200);
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn omits_messages_of_the_recorder_itself() {
    let dir = Dir::new();
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new())).unwrap();
    for topic in ["/t", "/_rnet/recording/state", "/_rnet/log"] {
        let id = writer.add_channel(0, topic, "json", &Default::default()).unwrap();
        let header = MessageHeader { channel_id: id, sequence: 0, log_time: 1, publish_time: 1 };
        writer.write_to_known_channel(&header, b"{}").unwrap();
    }
    writer.finish().unwrap();
    let path = dir.write("a", &writer.into_inner().into_inner());
    let recording = Recording::open(&path).unwrap();
    let topics = |select| -> Vec<String> {
        recording.messages(select).map(|message| message.unwrap().channel.topic.clone()).collect()
    };
    assert_eq!(topics(Select::default()), ["/t", "/_rnet/log"]);
    assert_eq!(topics(Select { with_reserved: true, ..Select::default() }).len(), 3);
    let named = Select { topics: vec!["/_rnet/recording/state".into()], ..Select::default() };
    assert_eq!(topics(named).len(), 1);
}

#[test]
fn empty_recording_is_not_damaged() {
    let dir = Dir::new();
    let path = dir.write("a", &write(WriteOptions::new(), 0));
    let recording = Recording::open(&path).unwrap();
    assert_eq!((recording.info().times, recording.info().messages()), (None, 0));
    assert_eq!(recording.info().problems.len(), 0);
    assert_eq!(check(&path, &mut |problem| panic!("{problem}")).unwrap().problems, 0);
}

#[test]
fn rejects_later_versions_and_other_files() {
    let dir = Dir::new();
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new())).unwrap();
    writer.write_metadata(&files::metadata("rnet.recording", &[("version", "2")])).unwrap();
    writer.finish().unwrap();
    let path = dir.write("later", &writer.into_inner().into_inner());
    let error = Recording::open(&path).unwrap_err().to_string();
    assert!(error.contains("version 2") && error.contains("up to version 1"), "{error}");
    for (name, bytes) in [("empty", &b""[..]), ("text", b"hello, this is text\n")] {
        let error = Recording::open(&dir.write(name, bytes)).unwrap_err().to_string();
        assert!(error.contains("not an MCAP file"), "{error}");
    }
    let error = Recording::open(&dir.path("none")).unwrap_err().to_string();
    assert!(error.contains("No such file"), "{error}");
}
