//! Writes the readable content of a file into a new one.

use std::collections::BTreeMap;
use std::path::Path;

use mcap::records::Metadata;

use super::copy::{ShouldStop, WrittenFile, copy, end};
use super::output::ToolError;
use crate::names;
use crate::read::{Recording, Select};

/// Writes all readable content of a file, which [`Recording::open_without_index`] has opened, into a new file
/// with index, statistics and CRCs. [`Recording::info`] contains the problems.
///
/// The metadata record `rnet.recovered` contains the path and the problems of the old file. Messages are in
/// the order of time.
///
/// # Errors
/// The new file exists or cannot be written; `Interrupted`.
pub fn recover(
    recording: &Recording,
    to: &Path,
    stop: ShouldStop,
) -> Result<WrittenFile, ToolError> {
    let select = Select { with_reserved: true, ..Select::default() };
    // All problems were found when the file was opened.
    let (mut output, messages) = copy(recording, to, select, &[], &mut |_, _| {}, stop)?;
    output.metadata(&recovered(recording))?;
    end(output, to, messages)
}

fn recovered(recording: &Recording) -> Metadata {
    let found = recording.info();
    let mut map = BTreeMap::from([
        ("file".to_owned(), recording.path().display().to_string()),
        ("len_bytes".to_owned(), recording.len_bytes().to_string()),
        ("rnet".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    for (number, problem) in found.problems.iter().enumerate() {
        map.insert(format!("problem.{number}"), problem.to_string());
    }
    Metadata { name: names::RECOVERED.to_owned(), metadata: map }
}
