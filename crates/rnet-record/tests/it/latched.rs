//! Messages that transient_local publishers kept at a time: reading from the middle includes them.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use mcap::records::MessageHeader;
use mcap::{WriteOptions, Writer};
use rnet::{Durability, Node};
use rnet_record::play::{
    ExistingEndpoints, PlayOptions, PlaybackCommand, PlaybackController, Position, play,
};
use rnet_record::read::{Recording, Select, check};
use rnet_record::tools::filter;
use rnet_record::{Source, mcap, names};

use crate::files::{Dir, START_NS, STEP_NS};

/// `/map`, which keeps 2, at the steps 0, 1 and 2, each with a metadata record; `/old` of ROS 2, which keeps
/// 1, at step 3; `/scan` at each of 40 steps.
fn recorded(dir: &Dir) -> PathBuf {
    let options = WriteOptions::new().profile("rnet").compression(None);
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options).unwrap();
    let durability = Durability::TransientLocal { depth: 2 };
    let source = Source { publisher: 7, durability, ..Source::default() }.to_metadata();
    let map = writer.add_channel(0, "/map", "bytes", &source).unwrap();
    let offered = "- history: 3\n  depth: 0\n  reliability: 1\n  durability: 1\n";
    let offered = BTreeMap::from([("offered_qos_profiles".to_owned(), offered.to_owned())]);
    let old = writer.add_channel(0, "/old", "bytes", &offered).unwrap();
    let scan = writer.add_channel(0, "/scan", "bytes", &BTreeMap::new()).unwrap();
    let meta = writer.add_channel(0, names::META_TOPIC, "json", &BTreeMap::new()).unwrap();
    for n in 0..40_u32 {
        let log_time = START_NS + u64::from(n) * STEP_NS;
        let mut put = |channel_id, data: &[u8]| {
            let header =
                MessageHeader { channel_id, sequence: n, log_time, publish_time: log_time - 10 };
            writer.write_to_known_channel(&header, data).unwrap();
        };
        if n < 3 {
            put(meta, format!(r#"{{"publisher":"7","seq":{n},"source_ns":{n}}}"#).as_bytes());
            put(map, format!("map {n}").as_bytes());
        }
        if n == 3 {
            put(old, b"old");
        }
        put(scan, b"scan");
        if n % 3 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.finish().unwrap();
    dir.write("run.mcap", &writer.into_inner().into_inner())
}

/// Topic, content, and the steps from the start at which it was logged and sent.
fn read(path: &Path, select: Select) -> Vec<(String, String, u64, u64)> {
    let recording = Recording::open(path).unwrap();
    let messages = recording.messages(select).map(Result::unwrap).map(|message| {
        let text = String::from_utf8(message.data().to_vec()).unwrap();
        let step = |ns: u64| (ns + 10 - START_NS) / STEP_NS;
        let (log, sent) = (step(message.log_ns()), step(message.publish_ns()));
        (message.channel.topic.clone(), text, log, sent)
    });
    messages.collect()
}

#[test]
fn latched_messages_come_first_with_the_start_time() {
    let dir = Dir::new();
    let path = recorded(&dir);
    let start_ns = Some(START_NS + 38 * STEP_NS);
    let select = Select { start_ns, with_latched: true, ..Select::default() };
    let all = read(&path, select.clone());
    let text = |(topic, text, log, sent): &(String, String, u64, u64)| {
        format!("{topic} {text} {log} {sent}")
    };
    let all: Vec<String> = all.iter().map(text).collect();
    let kept = ["/map map 1 38 1", "/map map 2 38 2", "/old old 38 3"];
    assert_eq!(all, [&kept[..], &["/scan scan 38 38", "/scan scan 39 39"]].concat());
    // Unselected topics are not included, and without `with_latched` no latched messages are.
    let topics = vec!["/scan".to_owned(), "/old".to_owned()];
    assert_eq!(read(&path, Select { topics, ..select.clone() }).len(), 3);
    assert_eq!(read(&path, Select { with_latched: false, ..select.clone() }).len(), 2);
    // No message precedes the start of the file; between two messages the first one does.
    let from = |step: u64| Select { start_ns: Some(START_NS + step * STEP_NS), ..select.clone() };
    assert_eq!(read(&path, from(0)).len(), read(&path, Select::default()).len());
    assert_eq!(text(&read(&path, from(1))[0]), "/map map 0 1 0");
}

#[test]
fn filtered_file_has_latched_messages_and_covers_only_its_own_time() {
    let dir = Dir::new();
    let from = Recording::open(&recorded(&dir)).unwrap();
    let to = dir.path("part.mcap");
    let select = Select {
        start_ns: Some(START_NS + 30 * STEP_NS),
        with_latched: true,
        with_reserved: true,
        ..Select::default()
    };
    filter(&from, &to, select, &[], &mut |_, problem| panic!("{problem}"), || false).unwrap();
    check(&to, &mut |problem| panic!("{problem}")).unwrap();
    let part = Recording::open(&to).unwrap();
    assert_eq!(part.info().times.unwrap().0, START_NS + 30 * STEP_NS);
    let meta = Select { topics: vec![names::META_TOPIC.to_owned()], ..Select::default() };
    let beside: Vec<u64> = part.messages(meta).map(|m| m.unwrap().log_ns()).collect();
    assert_eq!(beside, [START_NS + 30 * STEP_NS; 2]);
}

struct Silent;

impl PlaybackController for Silent {
    fn next_command(&mut self, _: &Position) -> Option<PlaybackCommand> {
        None
    }

    fn on_problem(&mut self, problem: &dyn std::fmt::Display) {
        panic!("{problem}");
    }

    fn on_finished(&mut self, _: &mut dyn Iterator<Item = (&str, u64)>) {}
}

#[test]
fn playing_from_the_middle_publishes_latched_messages_at_once() {
    let dir = Dir::new();
    let recording = Recording::open(&recorded(&dir)).unwrap();
    let open = |name: &str| Node::builder(name).dir(dir.path("")).domain("play").open().unwrap();
    let (player, listener) = (open("player"), open("listener"));
    let mut map = listener.subscriber::<[u8]>("/map").keep_all().transient_local().open().unwrap();
    let select = Select { start_ns: Some(START_NS + 35 * STEP_NS), ..Select::default() };
    let options = PlayOptions { select, ..PlayOptions::default() };
    let played =
        play(&recording, &player, &ExistingEndpoints::default(), &options, &mut Silent).unwrap();
    assert_eq!(played.messages, 3 + 5);
    let mut texts = Vec::new();
    while let Some(sample) = map.try_recv().unwrap() {
        texts.push(String::from_utf8(sample.bytes().to_vec()).unwrap());
    }
    assert_eq!(texts, ["map 1", "map 2"]);
}
