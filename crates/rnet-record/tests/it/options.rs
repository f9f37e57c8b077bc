//! Files with all combinations of writer options: each is valid, whatever it indexes and repeats.

use std::io::Cursor;

use mcap::records::MessageHeader;
use mcap::{Attachment, WriteOptions, Writer};
use rnet_record::mcap;
use rnet_record::read::{Recording, Select, check};
use rnet_record::tools::{SplitAt, filter, merge, recover, split};

use crate::files::{Dir, metadata};

const OPTIONS: usize = 9;
const MESSAGES: u64 = 6;

fn options(bits: usize) -> WriteOptions {
    let is_set = |n: usize| bits & (1 << n) != 0;
    WriteOptions::new()
        .compression(None)
        .chunk_size(Some(60))
        .use_chunks(is_set(0))
        .emit_message_indexes(is_set(1))
        .emit_chunk_indexes(is_set(2))
        .emit_statistics(is_set(3))
        .emit_summary_offsets(is_set(4))
        .repeat_channels(is_set(5))
        .repeat_schemas(is_set(6))
        .emit_attachment_indexes(is_set(7))
        .emit_metadata_indexes(is_set(8))
}

/// Messages of a channel with a schema and of one without, two metadata records and an attachment.
fn file(bits: usize) -> Vec<u8> {
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options(bits)).unwrap();
    writer.write_metadata(&metadata("first", &[("a", "b")])).unwrap();
    let schema = writer.add_schema("Example", "c", &[4, 5, 6]).unwrap();
    let with = writer.add_channel(schema, "example", "a", &Default::default()).unwrap();
    let without = writer.add_channel(0, "/raw", "", &Default::default()).unwrap();
    for log_time in 0..MESSAGES {
        let channel_id = if log_time % 2 == 0 { with } else { without };
        let sequence = log_time as u32;
        let header = MessageHeader { channel_id, sequence, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, &[1, 2, 3]).unwrap();
    }
    let attachment = Attachment {
        log_time: 2,
        create_time: 1,
        name: "note".into(),
        media_type: "text/plain".into(),
        data: b"hello".as_slice().into(),
    };
    writer.attach(&attachment).unwrap();
    writer.write_metadata(&metadata("last", &[("c", "d")])).unwrap();
    writer.finish().unwrap();
    writer.into_inner().into_inner()
}

/// The content of a file: messages, names of metadata, attachments. Checks that it has no problems.
fn whole(path: &std::path::Path) -> (u64, Vec<String>, usize) {
    check(path, &mut |problem| panic!("{}: {problem}", path.display())).unwrap();
    let recording = Recording::open(path).unwrap();
    let found = recording.info();
    assert!(found.problems.is_empty() && !found.is_damaged(), "{:?}", found.problems);
    let messages = recording.messages(Select::default()).map(Result::unwrap).count() as u64;
    assert_eq!(found.messages(), messages);
    assert_eq!(recording.schemas().count(), 1);
    for place in &found.attachments {
        assert_eq!(&*recording.attachment(*place).unwrap().data, b"hello");
    }
    let names = found.metadata.iter().map(|metadata| metadata.name.clone()).collect();
    (messages, names, found.attachments.len())
}

#[test]
fn files_of_all_writer_options_are_valid() {
    let dir = Dir::new();
    for bits in 0..1 << OPTIONS {
        let path = dir.write("a.mcap", &file(bits));
        let all = (MESSAGES, vec!["first".to_owned(), "last".to_owned()], 1);
        assert_eq!(whole(&path), all, "options {bits:#b}");
    }
}

fn none(path: &std::path::Path, problem: &rnet_record::read::ReadError) {
    panic!("{}: {problem}", path.display());
}

#[test]
fn tools_copy_records_without_index() {
    // With statistics and chunk indexes the file is read by its index.
    for (number, bits) in [0x7f, 0x0f, 0].into_iter().enumerate() {
        let dir = Dir::new();
        let from = Recording::open(&dir.write("a.mcap", &file(bits))).unwrap();
        let to = |name: &str| dir.path(name);
        filter(&from, &to("filter.mcap"), Select::default(), &[], &mut none, || false).unwrap();
        merge(std::slice::from_ref(&from), &to("merge.mcap"), &mut none, || false).unwrap();
        split(&from, &to("split.mcap"), SplitAt::Bytes(1 << 20), &mut none, || false).unwrap();
        let again = Recording::open_without_index(from.path()).unwrap();
        recover(&again, &to("recover.mcap"), || false).unwrap();
        for name in ["filter", "merge", "split", "recover"] {
            let (messages, mut names, attachments) = whole(&to(&format!("{name}.mcap")));
            names.retain(|name| !name.starts_with("rnet."));
            assert_eq!((messages, attachments), (MESSAGES, 1), "{name} {number}");
            assert_eq!(names, ["first", "last"], "{name} {number}");
        }
    }
}
