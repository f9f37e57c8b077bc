//! Tools that create files from other files.

use crate::files;

use std::time::Duration;

use files::{Dir, START_NS, STEP_NS, chunked, times, write};
use rnet_record::mcap::Compression;
use rnet_record::read::{Recording, Select, check};
use rnet_record::ros2::to_ros2;
use rnet_record::tools::{SplitAt, ToolError, filter, merge, recover, split};

fn open(dir: &Dir, name: &str, messages: u32) -> Recording {
    let bytes = write(chunked(Some(Compression::Zstd)), messages);
    Recording::open(&dir.write(name, &bytes)).unwrap()
}

fn none(path: &std::path::Path, problem: &rnet_record::read::ReadError) {
    panic!("{}: {problem}", path.display());
}

#[test]
fn filter_writes_selected_messages_with_metadata() {
    let dir = Dir::new();
    let from = open(&dir, "a.mcap", 100);
    let select = Select {
        topics: vec!["/pose".into()],
        start_ns: Some(START_NS + 50 * STEP_NS),
        ..Select::default()
    };
    let remap = [("/pose".to_owned(), "/arm/pose".to_owned())];
    let to = dir.path("b.mcap");
    let written = filter(&from, &to, select.clone(), &remap, &mut none, || false).unwrap();
    assert_eq!((written.messages, written.len_bytes), (25, std::fs::metadata(&to).unwrap().len()));
    assert_eq!(check(&to, &mut |problem| panic!("{problem}")).unwrap().messages, 25);
    let new = Recording::open(&to).unwrap();
    let channel = new.channels().next().unwrap();
    assert_eq!(
        (new.channels().count(), &*channel.topic, channel.type_name()),
        (1, "/arm/pose", "Pose")
    );
    assert_eq!(channel.source().unwrap().node, "/arm");
    assert_eq!((new.profile(), new.library()), ("rnet", "test"));
    assert_eq!(new.metadata("rnet.recording").unwrap()["host"], "robot1");
    assert_eq!(new.metadata("rnet.losses").unwrap()["total"], "0");
    let attachment = new.attachment(new.info().attachments[0]).unwrap();
    assert_eq!(&*attachment.data, b"hello");
    assert!(new.info().compression.contains_key("zstd"));
    let again = filter(&from, &to, select, &remap, &mut none, || false).unwrap_err().to_string();
    assert!(again.contains("File exists"), "{again}");
}

#[test]
fn merges_files_in_order_of_time_and_splits_one() {
    let dir = Dir::new();
    let whole = open(&dir, "whole.mcap", 100);
    let parts = split(
        &whole,
        &dir.path("part.mcap"),
        SplitAt::Time(Duration::from_millis(30)),
        &mut none,
        || false,
    );
    let parts = parts.unwrap();
    let paths: Vec<_> = parts.iter().map(|part| part.path.clone()).collect();
    let names = ["part.mcap", "part_1.mcap", "part_2.mcap", "part_3.mcap"];
    assert_eq!(paths, names.map(|name| dir.path(name)));
    assert_eq!(parts.iter().map(|part| part.messages).collect::<Vec<_>>(), [30, 30, 30, 10]);
    let mut parts: Vec<_> = paths.iter().map(|path| Recording::open(path).unwrap()).collect();
    assert_eq!(
        parts.iter().map(|part| part.info().attachments.len()).collect::<Vec<_>>(),
        [1, 0, 0, 0]
    );
    // In any order, and one of them twice.
    parts.reverse();
    parts.push(open(&dir, "again.mcap", 10));
    let to = dir.path("merged.mcap");
    let written = merge(&parts, &to, &mut none, || false).unwrap();
    assert_eq!(written.messages, 110);
    let merged = times(&to);
    assert!(merged.is_sorted());
    assert_eq!(merged.len(), 110);
    assert_eq!(Recording::open(&to).unwrap().channels().count(), 2, "the same channels are one");
    let by_size =
        split(&whole, &dir.path("size.mcap"), SplitAt::Bytes(200), &mut none, || false).unwrap();
    assert!(by_size.len() > 4);
    assert_eq!(by_size.iter().map(|part| part.messages).sum::<u64>(), 100);
}

#[test]
fn reports_unreadable_part_and_writes_the_rest() {
    let dir = Dir::new();
    let mut bytes = write(chunked(None), 100);
    let chunks: Vec<_> = files::records(&bytes).into_iter().filter(|r| r.0 == 6).collect();
    let (_, offset, len) = chunks[2];
    bytes[offset + len - 3] ^= 1;
    let from = Recording::open(&dir.write("a.mcap", &bytes)).unwrap();
    let mut reported = Vec::new();
    let to = dir.path("b.mcap");
    let written =
        filter(&from, &to, Select::default(), &[], &mut |_, p| reported.push(p.offset), || false);
    let written = written.unwrap();
    assert_eq!(reported, [offset as u64]);
    assert!((80..100).contains(&written.messages), "{}", written.messages);
    assert_eq!(times(&to).len() as u64, written.messages);
}

/// A recording of one publisher with its own clock: numbers, and a metadata record for each.
fn recorded(dir: &Dir, name: &str, offset_ns: u64, numbers: &[u32]) -> Recording {
    recorded_with_step(dir, name, offset_ns, (u32::MAX, 0), numbers)
}

/// The same with two parts: from a number on, the clock was measured again with an additional offset.
fn recorded_with_step(
    dir: &Dir,
    name: &str,
    offset_ns: u64,
    step: (u32, u64),
    numbers: &[u32],
) -> Recording {
    use rnet_record::mcap::{WriteOptions, records::MessageHeader};
    let mut writer =
        WriteOptions::new().profile("rnet").create(std::io::Cursor::new(Vec::new())).unwrap();
    let clock = files::metadata("rnet.clock", &[("offset_ns", &offset_ns.to_string())]);
    writer.write_metadata(&clock).unwrap();
    let of = [("rnet.node", "/arm"), ("rnet.host", "robot1"), ("rnet.publisher", "7")];
    let of = files::metadata("", &of).metadata;
    let said = writer.add_channel(0, "/_rnet/recording/meta", "json", &Default::default()).unwrap();
    let raw = writer.add_channel(0, "/raw", "bytes", &of).unwrap();
    for (at, number) in numbers.iter().enumerate() {
        let measured_ns = offset_ns + if *number >= step.0 { step.1 } else { 0 };
        let publish_time = measured_ns + u64::from(*number) * STEP_NS;
        let text = format!("{{\"publisher\":\"7\",\"seq\":{number}}}");
        for (channel_id, sequence, data) in
            [(said, at as u32, text.as_bytes()), (raw, *number, b"x")]
        {
            let log_time = publish_time + 1000;
            let header = MessageHeader { channel_id, sequence, log_time, publish_time };
            writer.write_to_known_channel(&header, data).unwrap();
        }
    }
    writer.finish().unwrap();
    Recording::open(&dir.write(name, &writer.into_inner().into_inner())).unwrap()
}

#[test]
fn merge_removes_duplicates_of_two_recorders_and_fills_gaps() {
    let dir = Dir::new();
    // The wall clock was set between the two.
    let first = recorded(&dir, "first.mcap", START_NS, &[0, 1, 2, 5, 6]);
    let second = recorded(&dir, "second.mcap", START_NS + 77, &[1, 2, 3, 4, 5]);
    let to = dir.path("merged.mcap");
    let written = merge(&[first, second], &to, &mut none, || false).unwrap();
    assert_eq!((written.duplicates, written.messages), (3, 2 * 7));
    let merged = Recording::open(&to).unwrap();
    let all = merged.messages(Select { topics: vec!["/raw".into()], ..Select::default() });
    let mut numbers: Vec<u32> = all.map(|message| message.unwrap().sequence()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
    let checked = check(&to, &mut |problem| panic!("{problem}"));
    assert_eq!(checked.unwrap().missing, 0);
}

#[test]
fn interrupted_tool_leaves_no_file() {
    let dir = Dir::new();
    let from = open(&dir, "a.mcap", 10);
    let (to, all, cut) = (dir.path("b.mcap"), Select::default(), SplitAt::Bytes(100));
    let stop = || true;
    let stopped = [
        filter(&from, &to, all.clone(), &[], &mut none, stop).unwrap_err(),
        merge(std::slice::from_ref(&from), &to, &mut none, stop).unwrap_err(),
        split(&from, &to, cut, &mut none, stop).unwrap_err(),
        recover(&Recording::open_without_index(from.path()).unwrap(), &to, stop).unwrap_err(),
        to_ros2(&from, &to, all, &mut none, stop).unwrap_err(),
    ];
    assert!(stopped.iter().all(|error| matches!(error, ToolError::Interrupted)), "{stopped:?}");
    assert_eq!(to.parent().unwrap().read_dir().unwrap().count(), 1);
}

#[test]
fn unheard_record_without_total_keeps_other_totals() {
    let dir = Dir::new();
    let options = chunked(None).profile("rnet");
    let mut writer = options.create(std::io::Cursor::new(Vec::new())).unwrap();
    for pairs in [[("total", "1"), ("followed", "2")], [("total", "x"), ("followed", "5")]] {
        writer.write_metadata(&files::metadata("rnet.unheard", &pairs)).unwrap();
    }
    writer.finish().unwrap();
    let file = dir.write("a.mcap", &writer.into_inner().into_inner());
    let checked = check(&file, &mut |problem| panic!("{problem}")).unwrap();
    assert_eq!((checked.unheard, checked.followed), (Some(1), Some(5)));
}

/// The numbers of `/raw` in the order of time; checks the file.
fn whole(file: &std::path::Path) -> Vec<u32> {
    let checked = check(file, &mut |problem| panic!("{problem}")).unwrap();
    assert_eq!((checked.missing, checked.has_too_many_gaps), (0, false));
    let file = Recording::open(file).unwrap();
    let all = file.messages(Select { topics: vec!["/raw".into()], ..Select::default() });
    all.map(|message| message.unwrap().sequence()).collect()
}

#[test]
fn merge_removes_duplicates_despite_remeasured_clocks() {
    let dir = Dir::new();
    // Two black box files with common parts of the ring, each with the clock offset of its first part.
    let first = recorded_with_step(&dir, "first.mcap", START_NS, (3, 700), &[0, 1, 2, 3, 4, 5]);
    let second = recorded(&dir, "second.mcap", START_NS + 700, &[3, 4, 5, 6, 7]);
    // From another recorder, after the clock was set.
    let hour = 3_600_000_000_000;
    let third = recorded(&dir, "third.mcap", START_NS + hour, &[6, 7, 8]);
    // A recorder that measured the clock again within the common messages.
    let fourth =
        recorded_with_step(&dir, "fourth.mcap", START_NS + 90, (4, 5_000), &[2, 3, 4, 5, 6]);
    let to = dir.path("merged.mcap");
    let all = [first, second, third, fourth];
    let written = merge(&all, &to, &mut none, || false).unwrap();
    assert_eq!(written.duplicates, 3 + 2 + 5);
    assert_eq!(whole(&to), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let [first, second, third, fourth] = all;
    let merged = Recording::open(&to).unwrap();
    let again = dir.path("again.mcap");
    let all = [third, merged, second, first, fourth];
    assert_eq!(merge(&all, &again, &mut none, || false).unwrap().duplicates, 19);
    assert_eq!(whole(&again), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn checks_file_with_many_gaps_in_bounded_memory_and_reports_it() {
    use rnet_record::mcap::records::MessageHeader;
    let dir = Dir::new();
    let mut writer = rnet_record::mcap::WriteOptions::new()
        .profile("rnet")
        .create(std::io::Cursor::new(Vec::new()))
        .unwrap();
    let channel_id = writer.add_channel(0, "/raw", "bytes", &Default::default()).unwrap();
    let mut write = |n: u32| {
        let log_time = START_NS + u64::from(n) * STEP_NS;
        let header =
            MessageHeader { channel_id, sequence: n * 2, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, b"x").unwrap();
    };
    let count = (1 << 16) + 10;
    (0..count).for_each(&mut write);
    write(count - 5);
    writer.finish().unwrap();
    let file = dir.write("a.mcap", &writer.into_inner().into_inner());
    let mut reported = Vec::new();
    let checked = check(&file, &mut |problem| reported.push(problem.to_string())).unwrap();
    assert_eq!((checked.missing, checked.has_too_many_gaps), (u64::from(count) - 1, true));
    // A message near its duplicate is found.
    assert!(reported.len() == 1 && reported[0].contains("is duplicated"), "{reported:?}");
}
