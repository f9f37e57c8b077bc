//! Messages of a recording as CSV, one row each, or as JSON, one line each.

mod message;
mod table;

use std::io::{BufWriter, Write};
use std::path::Path;

use rnet_format::value::FieldPath;
use serde_json::{Map, Value};

pub use message::{ChannelTypes, document, json_text};
use table::{Table, check_fields};

use crate::names;
use crate::read::{Message, ReadError, Recording, Select};
use crate::tools::{NewFile, ShouldStop, ToolError, check_stop};

/// Messages that are not of their type, told one by one.
const MAX_REPORTED: u64 = 10;

/// Something that is missing in an exported file.
pub enum Problem<'a> {
    /// The recording cannot be read there.
    Unreadable(&'a ReadError),
    /// A message is not of its type, in words.
    Omitted(&'a str),
    /// So many more messages are not of their types.
    MoreOmitted(u64),
}

/// What was exported.
pub struct Exported {
    /// Messages in the file.
    pub rows: u64,
    /// Whether all messages could be read and written.
    pub is_complete: bool,
}

/// Writes messages to a new file: a CSV table, or a JSON document per line.
///
/// # Errors
/// The file exists or cannot be written, a field does not exist, the messages do not fit in one table, or `Interrupted`.
#[expect(clippy::too_many_arguments, reason = "each is one choice of the caller")]
pub fn export(
    recording: &Recording,
    to: &Path,
    is_table: bool,
    select: Select,
    fields: &[FieldPath],
    mut types: ChannelTypes,
    on_problem: &mut dyn FnMut(Problem<'_>),
    stop: ShouldStop,
) -> Result<Exported, ToolError> {
    let table = match is_table {
        true => Some(Table::new(recording, &select, fields, &mut types, to)?),
        false if fields.is_empty() => None,
        false => {
            check_fields(recording, &select, fields, &mut types)?;
            None
        }
    };
    let failed = |error| ToolError::Write { path: to.to_owned(), error };
    let new = NewFile::create(to).map_err(failed)?;
    let mut out = BufWriter::new(new.file().map_err(failed)?);
    if let Some(table) = &table {
        writeln!(out, "{}", table.header()).map_err(failed)?;
    }
    let (mut rows, mut malformed, mut broken) = (0_u64, 0_u64, recording.info().is_damaged());
    for message in recording.messages(select) {
        check_stop(stop)?;
        let message = match message {
            Ok(message) => message,
            Err(problem) => {
                broken = true;
                on_problem(Problem::Unreadable(&problem));
                continue;
            }
        };
        let line = match &table {
            None => {
                let whole = document(&message, &types.decode_or_raw(&message))?;
                select_fields(whole, fields).to_string()
            }
            Some(table) => match types.decode(&message) {
                Ok(shown) => table.row(&message, &shown)?,
                Err(why) => {
                    malformed += 1;
                    if malformed <= MAX_REPORTED {
                        on_problem(Problem::Omitted(&describe_malformed(&message, &why)));
                    }
                    continue;
                }
            },
        };
        writeln!(out, "{line}").map_err(failed)?;
        rows += 1;
    }
    if malformed > MAX_REPORTED {
        on_problem(Problem::MoreOmitted(malformed - MAX_REPORTED));
    }
    out.flush().map_err(failed)?;
    drop(out);
    new.commit().map_err(failed)?;
    Ok(Exported { rows, is_complete: !broken && malformed == 0 })
}

fn describe_malformed(message: &Message, why: &str) -> String {
    let channel = &message.channel;
    let node = channel.metadata.get(names::NODE_KEY);
    let of = node.map(|node| format!(" of {node}")).unwrap_or_default();
    let (number, topic) = (message.sequence(), &channel.topic);
    format!("message {number}{of} on {topic} was omitted: {why}")
}

/// A line with the fields that are asked for, or with all.
fn select_fields(mut line: Value, fields: &[FieldPath]) -> Value {
    if !fields.is_empty() {
        let data = &line["data"];
        let value = |field: &FieldPath| field.pick(data).cloned().unwrap_or_default();
        let picked: Map<String, Value> =
            fields.iter().map(|field| (field.text().to_owned(), value(field))).collect();
        line["data"] = picked.into();
    }
    line
}
