//! Writing what can be read of a file into a new one.

use std::collections::BTreeMap;
use std::path::Path;

use mcap::records::Metadata;

use super::copy::{Stop, goes_on};
use super::output::{Output, ToolError};
use crate::names;
use crate::read::{Recording, Select};

/// What was saved.
#[derive(Debug)]
pub struct Recovered {
    /// Messages in the new file.
    pub messages: u64,
    /// Its length in bytes.
    pub len_bytes: u64,
    /// What is wrong with the old one, the first hundred of it.
    pub problems: Vec<crate::read::ReadError>,
    /// Problems beyond those.
    pub more_problems: u64,
}

/// Writes all that can be read of a file, which [`Recording::open_without_index`] has opened, into a new file with index,
/// statistics and CRCs.
///
/// A Metadata record `rnet.recovered` says of what it was made, and why. Messages are in the order of time.
///
/// # Errors
/// The new file exists or cannot be written; `Interrupted`.
pub fn recover(recording: Recording, to: &Path, stop: Stop) -> Result<Recovered, ToolError> {
    let from = recording.path();
    let read = |error| ToolError::Read { path: from.to_owned(), error };
    let found = recording.found();
    let most = found.compression.iter().max_by_key(|(_, (_, bytes))| *bytes);
    let compression = most.map_or("zstd", |(name, _)| name);
    let mut output = Output::create(to, recording.profile(), recording.library(), compression)?;
    let goes_first =
        |metadata: &&Metadata| [names::RECORDING, names::CLOCK].contains(&metadata.name.as_str());
    for metadata in found.metadata.iter().filter(goes_first) {
        output.metadata(metadata)?;
    }
    let mut messages = 0;
    for message in recording.messages(Select { with_reserved: true, ..Select::default() }) {
        goes_on(stop)?;
        output.message(&message.map_err(read)?, None)?;
        messages += 1;
    }
    for place in &found.attachments {
        if let Ok(attachment) = recording.attachment(*place) {
            output.attachment(&attachment)?;
        }
    }
    for metadata in found.metadata.iter().filter(|metadata| !goes_first(metadata)) {
        output.metadata(metadata)?;
    }
    output.metadata(&recovered(from, &recording))?;
    let len_bytes = output.finish()?;
    let Recording { found, .. } = recording;
    let (problems, more_problems) = (found.problems, found.more_problems);
    Ok(Recovered { messages, len_bytes, problems, more_problems })
}

fn recovered(from: &Path, recording: &Recording) -> Metadata {
    let found = recording.found();
    let mut map = BTreeMap::from([
        ("file".to_owned(), from.display().to_string()),
        ("len_bytes".to_owned(), recording.len_bytes().to_string()),
        ("rnet".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    for (number, problem) in found.problems.iter().enumerate() {
        map.insert(format!("problem.{number}"), problem.to_string());
    }
    Metadata { name: names::RECOVERED.to_owned(), metadata: map }
}
