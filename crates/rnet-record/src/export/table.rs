//! The messages of a topic as a table. Its publishers may have several versions of one type: the table has the columns of
//! all of them, and a cell is empty where a message has no such field.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::message::{ChannelTypes, json_text};
use crate::names;
use crate::read::{self, Channel, Recording, Select};
use rnet::MessageType;
use rnet::schema::{self, Columns, csv_line};
use rnet_format::value::FieldPath;
use rnet_format::value::Message;
use rnet_format::value::fields::cells;
use rnet_format::value::hex::hex;
use rnet_format::{Failure, Outcome};

/// What stands before the fields of each row.
const FIXED_COLUMNS: [&str; 4] = ["received_ns", "sent_ns", "node", "seq"];

/// Names of the columns, and which of them a channel fills.
pub struct Table {
    titles: Vec<String>,
    column_indexes: HashMap<String, usize>,
    protobuf: HashMap<u16, (Columns, Vec<usize>)>,
}

impl Table {
    /// The table of what is selected, with these fields or, if none is named, all.
    ///
    /// # Errors
    /// The messages are of several topics or types, none has a field that is named, or there are too many columns.
    pub fn new(
        recording: &Recording,
        select: &Select,
        fields: &[FieldPath],
        types: &mut ChannelTypes,
        to: &Path,
    ) -> Outcome<Table> {
        let taken: Vec<_> =
            recording.channels().filter(|channel| select.includes(channel)).collect();
        check_one_type(&taken, to)?;
        let is_empty = taken.is_empty();
        let (mut titles, mut found) = (Vec::new(), vec![Err(String::new()); fields.len()]);
        let mut protobuf = HashMap::new();
        for channel in taken {
            let names = match types.of(channel) {
                Some(MessageType::Protobuf(schema)) => {
                    let columns = columns(schema, fields, &mut found)?;
                    let names = columns.header();
                    protobuf.insert(channel.id, columns);
                    names
                }
                ty => select_names(names_of(recording, select, channel, ty)?, fields, &mut found),
            };
            merge_columns(&mut titles, names);
        }
        check_all_found(&found, is_empty)?;
        let column_indexes: HashMap<String, usize> =
            titles.iter().enumerate().map(|(place, name)| (name.clone(), place)).collect();
        let place = |columns: Columns| {
            let of: Vec<usize> = columns.header().iter().map(|name| column_indexes[name]).collect();
            (columns, of)
        };
        let protobuf = protobuf.into_iter().map(|(id, columns)| (id, place(columns))).collect();
        Ok(Table { titles, column_indexes, protobuf })
    }

    /// The first line.
    pub fn header(&self) -> String {
        csv_line(FIXED_COLUMNS.into_iter().chain(self.titles.iter().map(String::as_str)))
    }

    /// The line of a message.
    ///
    /// # Errors
    /// It cannot be shown.
    pub fn row(&self, message: &read::Message, shown: &Message<'_>) -> Outcome<String> {
        let mut row = vec![String::new(); self.titles.len()];
        let mut put = |all: Vec<(String, String)>| {
            for (name, cell) in all {
                self.column_indexes
                    .get(&name)
                    .into_iter()
                    .for_each(|place| row[*place].clone_from(&cell));
            }
        };
        match shown {
            Message::Protobuf(decoded, _) => {
                if let Some((columns, column_indexes)) = self.protobuf.get(&message.channel.id) {
                    let cells = columns.row(decoded).into_iter();
                    column_indexes.iter().zip(cells).for_each(|(place, cell)| row[*place] = cell);
                }
            }
            Message::Plain(..) => put(cells("", &shown.json()?)),
            Message::Raw(bytes) => match json_text(message) {
                Some(data) => put(cells("", &data)),
                None => put(vec![("hex".to_owned(), hex(bytes))]),
            },
        }
        let node = message.channel.metadata.get(names::NODE_KEY).cloned().unwrap_or_default();
        let first = [
            message.log_ns().to_string(),
            message.publish_ns().to_string(),
            node,
            message.sequence().to_string(),
        ];
        Ok(csv_line(first.iter().chain(&row).map(String::as_str)))
    }
}

/// Checks that each field is in a type of what is selected.
///
/// # Errors
/// One that is in none of them, with the names that there are.
pub fn check_fields(
    recording: &Recording,
    select: &Select,
    fields: &[FieldPath],
    types: &mut ChannelTypes,
) -> Outcome {
    let (mut found, mut is_empty) = (vec![Err(String::new()); fields.len()], true);
    for channel in recording.channels().filter(|channel| select.includes(channel)) {
        is_empty = false;
        match types.of(channel) {
            Some(MessageType::Protobuf(schema)) => drop(field_paths(schema, fields, &mut found)),
            ty => drop(select_names(names_of(recording, select, channel, ty)?, fields, &mut found)),
        }
    }
    check_all_found(&found, is_empty)
}

/// Where nothing is selected, no field is missed.
fn check_all_found(found: &[Result<(), String>], is_empty: bool) -> Outcome {
    match found.iter().find_map(|one| one.as_ref().err()) {
        Some(why) if !is_empty => Err(Failure::Failed(why.clone())),
        _ => Ok(()),
    }
}

/// The names of what messages without a schema have.
fn names_of(
    recording: &Recording,
    select: &Select,
    channel: &Channel,
    ty: Option<&MessageType>,
) -> Outcome<Vec<String>> {
    Ok(match ty {
        Some(MessageType::Plain(plain)) => {
            let zeros = vec![0_u8; plain.size];
            let all = cells("", &Message::Plain(plain, &zeros, None).json()?);
            all.into_iter().map(|(name, _)| name).collect()
        }
        _ if channel.message_encoding == names::JSON => json_columns(recording, select, channel),
        _ => vec!["hex".to_owned()],
    })
}

/// That the messages are of one topic and of one type, in whatever versions.
fn check_one_type(channels: &[&std::sync::Arc<Channel>], to: &Path) -> Outcome {
    let topics: BTreeSet<&str> = channels.iter().map(|c| c.topic.as_str()).collect();
    if topics.len() > 1 {
        return Err(Failure::Usage(format!(
            "a CSV table holds one topic, but {} are selected: select one with --topic, or write .jsonl",
            topics.len()
        )));
    }
    let types: BTreeSet<&str> = channels.iter().map(|c| c.type_name()).collect();
    if types.len() > 1 {
        let types: Vec<&str> = types.into_iter().collect();
        return Err(Failure::Failed(format!(
            "messages of {} have the types {}, but {} can hold only one type; write .jsonl",
            channels[0].topic,
            types.join(" and "),
            to.display()
        )));
    }
    Ok(())
}

/// The columns of a protobuf type. Fields that it does not have are left out, with the reason in `found`.
fn columns(
    schema: &schema::Schema,
    fields: &[FieldPath],
    found: &mut [Result<(), String>],
) -> Outcome<Columns> {
    let failed = |error: schema::ValueError| Failure::Failed(error.to_string());
    if fields.is_empty() {
        return Columns::all(schema).map_err(failed);
    }
    Columns::within(&field_paths(schema, fields, found)).map_err(failed)
}

/// The fields that a protobuf type has; why it has not the others is left in `found`.
fn field_paths(
    schema: &schema::Schema,
    fields: &[FieldPath],
    found: &mut [Result<(), String>],
) -> Vec<schema::FieldPath> {
    let mut paths = Vec::new();
    for (field, found) in fields.iter().zip(found) {
        match schema::FieldPath::parse(schema, field.text()) {
            Ok(path) => {
                paths.push(path);
                *found = Ok(());
            }
            Err(error) if found.is_err() => *found = Err(error.to_string()),
            Err(_) => {}
        }
    }
    paths
}

/// The names that are fields, or within fields.
fn select_names(
    names: Vec<String>,
    fields: &[FieldPath],
    found: &mut [Result<(), String>],
) -> Vec<String> {
    if fields.is_empty() {
        return names;
    }
    let mut taken = Vec::new();
    for (field, found) in fields.iter().zip(found) {
        let is_in = |name: &&String| {
            let rest = name.strip_prefix(field.text());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let of: Vec<&String> = names.iter().filter(is_in).collect();
        match of.is_empty() {
            false => *found = Ok(()),
            true if found.is_err() => {
                let (field, known) = (field.text(), names.join(", "));
                *found = Err(format!("unknown field {field}; the fields are {known}"));
            }
            true => {}
        }
        taken.extend(of.into_iter().cloned());
    }
    taken
}

/// What the documents of a channel have, which no type describes.
fn json_columns(recording: &Recording, select: &Select, channel: &Channel) -> Vec<String> {
    let mut names = Vec::new();
    for message in recording.messages(select.clone()).flatten() {
        if message.channel.id == channel.id
            && let Some(data) = json_text(&message)
        {
            let of = cells("", &data).into_iter().map(|(name, _)| name).collect();
            merge_columns(&mut names, of);
        }
    }
    names
}

/// Adds names that are new, each behind the one that stands before it in `more`; at the end if none of `more` is known.
fn merge_columns(all: &mut Vec<String>, more: Vec<String>) {
    let known: HashMap<String, usize> =
        all.iter().enumerate().map(|(place, name)| (name.clone(), place)).collect();
    let topic_matches = more.iter().any(|name| known.contains_key(name));
    let (mut added, mut behind) = (0, if topic_matches { 0 } else { all.len() });
    for name in more {
        match known.get(&name) {
            Some(place) => behind = behind.max(place + added + 1),
            None => {
                all.insert(behind, name);
                (added, behind) = (added + 1, behind + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_versions_keep_the_order_of_their_types() {
        let merged = |versions: &[&str]| {
            let mut all = Vec::new();
            let names = |text: &str| text.split(' ').map(str::to_owned).collect();
            versions.iter().for_each(|text| merge_columns(&mut all, names(text)));
            all.join(" ")
        };
        assert_eq!(merged(&["a b c", "a t b c"]), "a t b c");
        assert_eq!(merged(&["a t b c", "a b c"]), "a t b c");
        assert_eq!(merged(&["a b", "x a y b z"]), "x a y b z");
        assert_eq!(merged(&["a b", "b a c"]), "a b c");
        assert_eq!(merged(&["hex", "a b"]), "hex a b");
    }
}
