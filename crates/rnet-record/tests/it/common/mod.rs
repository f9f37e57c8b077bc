//! Shared code of the recorder's tests: a domain, a recorder in it, and the official MCAP reader.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[allow(unused_imports, reason = "each test binary uses its part")]
pub use crate::shared::{Child, LONG, Net, eventually, not_run, orders, role, tell};
use mcap::records::Record;
use rnet::inspect::Location;
use rnet_record::{Progress, RecordOptions, Recorder, Source, mcap, names};

/// Folder of the recordings of a test's domain.
pub fn folder(net: &Net) -> PathBuf {
    let folder = net.base().join("recordings");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}

pub fn options(net: &Net) -> RecordOptions {
    let mut options = RecordOptions::default();
    let location = Location::new(Some("t"), Some(net.base().to_owned()), None);
    options.location = Some(location.expect("the domain has a place"));
    options.state_dir = Some(net.keep());
    options.host = Some("here".to_owned());
    options
}

pub fn record(net: &Net, options: RecordOptions) -> (PathBuf, Recorder) {
    let file = folder(net).join("run.mcap");
    let recorder = Recorder::start(&file, options).expect("the recorder starts");
    (file, recorder)
}

/// A message stored in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub topic: String,
    pub encoding: String,
    pub schema: Option<(String, String, Vec<u8>)>,
    pub source: Source,
    pub sequence: u32,
    pub publish_time: u64,
    pub log_time: u64,
    pub data: Vec<u8>,
}

/// All messages of a file by its index, including those of the recorder itself. Checks the summary and all
/// checksums.
pub fn stored(file: &Path) -> Vec<Stored> {
    let bytes = std::fs::read(file).expect("the file is there");
    let summary = mcap::Summary::read(&bytes).expect("the summary is right").expect("there is one");
    let stats = summary.stats.clone().expect("there are statistics");
    let mut all = messages(mcap::MessageStream::new(&bytes).expect("the file can be read"));
    assert_eq!(stats.message_count, all.len() as u64);
    let mut by_index = Vec::new();
    for chunk in &summary.chunk_indexes {
        by_index.extend(messages(summary.stream_chunk(&bytes, chunk).expect("the index is right")));
    }
    assert_eq!(by_index, all);
    let metadata = metadata(file);
    for name in [names::RECORDING, names::CLOCK, names::LOSSES, names::UNHEARD, names::NODES] {
        assert!(metadata.contains_key(name), "{name} is missing: {metadata:?}");
    }
    assert_eq!(summary.metadata_indexes.len() as u32, stats.metadata_count);
    all.shrink_to_fit();
    all
}

/// The complete messages of a file that may be truncated.
pub fn stored_in_ruins(file: &Path) -> Vec<Stored> {
    let bytes = std::fs::read(file).expect("the file is there");
    let options = mcap::read::Options::IgnoreEndMagic;
    let stream = mcap::MessageStream::new_with_options(&bytes, options.into()).expect("it begins");
    messages(stream.take_while(Result::is_ok))
}

fn messages<'a>(stream: impl Iterator<Item = mcap::McapResult<mcap::Message<'a>>>) -> Vec<Stored> {
    let messages = stream.map(|message| {
        let message = message.expect("the message can be read");
        let channel = &message.channel;
        let schema = channel.schema.as_ref();
        let schema =
            schema.map(|s| (s.name.clone(), s.encoding.clone(), s.data.clone().into_owned()));
        Stored {
            topic: channel.topic.clone(),
            encoding: channel.message_encoding.clone(),
            schema,
            source: Source::from_metadata(&channel.metadata).expect("the source can be read"),
            sequence: message.sequence,
            publish_time: message.publish_time,
            log_time: message.log_time,
            data: message.data.into_owned(),
        }
    });
    messages.collect()
}

/// Messages of one topic.
pub fn of<'a>(stored: &'a [Stored], topic: &str) -> Vec<&'a Stored> {
    stored.iter().filter(|message| message.topic == topic).collect()
}

/// The metadata records, the last one of each name.
pub fn metadata(file: &Path) -> BTreeMap<String, BTreeMap<String, String>> {
    let bytes = std::fs::read(file).expect("the file is there");
    let options = mcap::read::Options::IgnoreEndMagic;
    let records =
        mcap::read::LinearReader::new_with_options(&bytes, options.into()).expect("it begins");
    let metadata = records.map_while(Result::ok).filter_map(|record| match record {
        Record::Metadata(metadata) => Some((metadata.name, metadata.metadata)),
        _ => None,
    });
    metadata.collect()
}

/// Number of missing messages of a topic in a report.
pub fn lost(report: &Progress, topic: &str) -> u64 {
    report.losses.iter().filter(|(of, ..)| *of == topic).map(|(.., count)| count).sum()
}
