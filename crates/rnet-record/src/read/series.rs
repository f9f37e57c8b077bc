//! Fields of a topic over time, as columns of numbers for plots, tables and numpy.
//!
//! Reads the chunks with messages of the topic one after the other, and keeps only the fields and times of
//! each message. So the columns determine the memory use.

use std::collections::BTreeMap;

use rnet::Prim;

use super::channels::{Channel, TypeError};
use super::error::ReadError;
use super::field::{FieldError, FieldReader};
use super::messages::Select;
use super::recording::Recording;

/// Maximum number of problems that are kept; further ones are counted.
const MAX_PROBLEMS: usize = 100;

/// Fields of the messages of a topic, in the order of log time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Receive time of each message, in ns since 1970 UTC.
    pub log_ns: Vec<u64>,
    /// Send time of each message, in ns since 1970 UTC.
    pub publish_ns: Vec<u64>,
    /// The fields, in the requested order.
    pub columns: Vec<Column>,
    /// The first hundred problems: unreadable chunks, whose messages are all missing, and messages without a
    /// row.
    pub problems: Vec<String>,
    /// Number of further problems.
    pub more_problems: u64,
}

/// One field of all messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The requested field.
    pub field: String,
    /// Type of the numbers.
    pub prim: Prim,
    /// Dimensions of the array in each message, the outer one first; empty for a single number.
    pub shape: Vec<usize>,
    /// The values of all messages in order, little endian. Zeros for a message without a value.
    pub values: Vec<u8>,
    /// Rows without a value: an optional field that is not set, a missing element, or a field that only
    /// another version of the type has.
    pub absent: Vec<usize>,
}

impl Column {
    /// The values as `f64`, NaN for a message without one. Integers beyond 2^53 are rounded.
    pub fn to_f64(&self) -> Vec<f64> {
        let size = self.prim.size();
        let per_row: usize = self.shape.iter().product();
        let numbers = self.values.chunks_exact(size).map(|bytes| number(self.prim, bytes));
        let mut numbers: Vec<f64> = numbers.collect();
        for row in &self.absent {
            numbers[row * per_row..(row + 1) * per_row].fill(f64::NAN);
        }
        numbers
    }
}

/// A number of this type, converted to `f64`.
pub(super) fn number(prim: Prim, bytes: &[u8]) -> f64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match prim {
        Prim::F64 => f64::from_bits(bits),
        Prim::F32 => f32::from_bits(bits as u32).into(),
        Prim::I8 => f64::from(bits as i8),
        Prim::I16 => f64::from(bits as i16),
        Prim::I32 => f64::from(bits as i32),
        Prim::I64 => bits as i64 as f64,
        Prim::Bool => f64::from(u8::from(bits != 0)),
        Prim::U8 | Prim::U16 | Prim::U32 | Prim::U64 => bits as f64,
    }
}

/// Why a series cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// The file does not have the topic.
    #[error("{}", no_topic(topic, known))]
    NoTopic {
        /// The topic.
        topic: String,
        /// The topics of the file.
        known: Vec<String>,
    },
    /// The type of its messages cannot be read.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The field does not exist, or is not a number.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Two channels of the topic have different types for the field.
    #[error("field {field:?} of {topic} is {} in one channel and {} in another; exclude one of them", .types.0, .types.1)]
    TypeMismatch {
        /// The topic.
        topic: String,
        /// The field.
        field: String,
        /// The two types.
        types: (String, String),
    },
}

fn no_topic(topic: &str, known: &[String]) -> String {
    const MAX_LISTED: usize = 20;
    let mut listed: Vec<&str> = known.iter().take(MAX_LISTED).map(String::as_str).collect();
    let more = format!("and {} more", known.len().saturating_sub(MAX_LISTED));
    if known.len() > MAX_LISTED {
        listed.push(&more);
    }
    match listed.is_empty() {
        true => format!("the recording has no topic {topic}: it does not contain any topics"),
        false => format!("the recording has no topic {topic}; it has {}", listed.join(", ")),
    }
}

impl Recording {
    /// Reads fields of all messages of a topic. A field is a number, a boolean, an enum, or an array of a
    /// fixed length, given by its path: `linear_acceleration.x`, `legs[2].force`. `select` may limit times
    /// and exclude channels; its topics are ignored.
    ///
    /// ```no_run
    /// use rnet_record::read::{Recording, Select};
    ///
    /// let recording = Recording::open("run.mcap".as_ref())?;
    /// let series = recording.series("/imu", &["linear_acceleration.x"], Select::default())?;
    /// for (ns, x) in series.log_ns.iter().zip(series.columns[0].to_f64()) {
    ///     println!("{ns} {x} m/s²");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SeriesError`], which lists the available topics or fields. Unreadable parts of the file are listed
    /// in [`Series::problems`].
    pub fn series(
        &self,
        topic: &str,
        fields: &[&str],
        select: Select,
    ) -> Result<Series, SeriesError> {
        let select = Select { topics: vec![topic.to_owned()], ..select };
        let mut readers: BTreeMap<u16, ChannelReaders<'_>> = BTreeMap::new();
        let mut columns: Vec<Option<Column>> = vec![None; fields.len()];
        let mut missing: Vec<Option<FieldError>> = fields.iter().map(|_| None).collect();
        for channel in self.channels().filter(|channel| select.includes(channel)) {
            let ty = channel.message_type()?;
            let mut of = Vec::new();
            for (n, field) in fields.iter().enumerate() {
                of.push(match FieldReader::new(channel, &ty, field) {
                    Ok(reader) => {
                        let column = columns[n].get_or_insert_with(|| reader.column(field));
                        check_same_type(topic, column, &reader)?;
                        Some(reader)
                    }
                    // Another version of the type may have the field.
                    Err(error) if error.is_missing => {
                        missing[n].get_or_insert(error);
                        None
                    }
                    Err(error) => return Err(error.into()),
                });
            }
            readers.insert(channel.id, (channel, of));
        }
        if readers.is_empty() {
            let topics: std::collections::BTreeSet<_> = self.channels().map(|c| &c.topic).collect();
            let known = topics.into_iter().cloned().collect();
            return Err(SeriesError::NoTopic { topic: topic.to_owned(), known });
        }
        let mut found = Vec::new();
        for (column, missing) in columns.into_iter().zip(missing) {
            match (column, missing) {
                (Some(column), _) => found.push(column),
                (None, Some(error)) => return Err(error.into()),
                (None, None) => unreachable!("each channel has a field or lacks it"),
            }
        }
        let columns = found;
        let mut series = Series { columns, ..Series::default() };
        series.read(self, &select, &readers);
        series.sort();
        Ok(series)
    }
}

/// A channel, and a reader for each field; `None` if its type lacks the field.
type ChannelReaders<'a> = (&'a Channel, Vec<Option<FieldReader>>);

/// Checks that a field has the same type in another channel.
fn check_same_type(topic: &str, column: &Column, reader: &FieldReader) -> Result<(), SeriesError> {
    if (column.prim, &column.shape) == (reader.prim, &reader.shape) {
        return Ok(());
    }
    let name = |prim: Prim, shape: &[usize]| {
        shape.iter().fold(prim.name().to_owned(), |name, len| format!("{name}[{len}]"))
    };
    Err(SeriesError::TypeMismatch {
        topic: topic.to_owned(),
        field: column.field.clone(),
        types: (name(column.prim, &column.shape), name(reader.prim, &reader.shape)),
    })
}

impl FieldReader {
    fn column(&self, field: &str) -> Column {
        Column {
            field: field.to_owned(),
            prim: self.prim,
            shape: self.shape.clone(),
            values: Vec::new(),
            absent: Vec::new(),
        }
    }
}

impl Series {
    fn read(
        &mut self,
        recording: &Recording,
        select: &Select,
        readers: &BTreeMap<u16, ChannelReaders<'_>>,
    ) {
        // Problems found while opening are repeated here, because the rows do not show gaps.
        let found = recording.info();
        found.problems.iter().for_each(|problem| self.problem(problem.to_string()));
        self.more_problems += found.more_problems;
        let mut channels = found.channels.clone();
        for at in select.blocks(found) {
            let block = &found.blocks[at];
            let contents = match recording.contents(block, &mut channels, select) {
                Ok(contents) => contents,
                Err(problem) => {
                    self.report_unreadable(recording, &problem);
                    continue;
                }
            };
            for (header, data) in &contents.messages {
                let Some((channel, of)) = readers.get(&header.channel_id) else { continue };
                if !select.includes_time(header.log_time) {
                    continue;
                }
                let message = channel.content(&contents.bytes[data.clone()]);
                match message.and_then(|message| self.row(of, &message)) {
                    Ok(()) => {
                        self.log_ns.push(header.log_time);
                        self.publish_ns.push(header.publish_time);
                    }
                    Err(why) => {
                        let (channel, number) = (header.channel_id, header.sequence);
                        let topic = &select.topics[0];
                        self.problem(format!(
                            "message {number} of {topic}, of channel {channel} in the chunk at byte {}: {why}",
                            block.offset
                        ));
                    }
                }
            }
            contents.problem.iter().for_each(|problem| self.report_unreadable(recording, problem));
        }
    }

    /// Appends the row of a message; on an error, no row is added.
    fn row(&mut self, readers: &[Option<FieldReader>], message: &[u8]) -> Result<(), String> {
        let row = self.log_ns.len();
        for (n, reader) in readers.iter().enumerate() {
            let column = &mut self.columns[n];
            let read = match reader {
                Some(reader) => reader.read(message, &mut column.values),
                None => {
                    column.values.resize((row + 1) * column.row_len(), 0);
                    Ok(false)
                }
            };
            match read {
                Ok(true) => {}
                Ok(false) => column.absent.push(row),
                Err(why) => {
                    let field = column.field.clone();
                    self.columns.iter_mut().for_each(|column| column.truncate(row));
                    return Err(format!("{field}: {why}"));
                }
            }
        }
        Ok(())
    }

    /// A scanned file has already reported its problems.
    fn report_unreadable(&mut self, recording: &Recording, problem: &ReadError) {
        if recording.info().scan_reason.is_none() {
            self.problem(problem.to_string());
        }
    }

    fn problem(&mut self, problem: String) {
        match self.problems.len() < MAX_PROBLEMS {
            true => self.problems.push(problem),
            false => self.more_problems += 1,
        }
    }

    /// Sorts by log time; rows of the same time stay in the order of the file.
    fn sort(&mut self) {
        if self.log_ns.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.log_ns.len()).collect();
        order.sort_by_key(|row| self.log_ns[*row]);
        self.log_ns = order.iter().map(|row| self.log_ns[*row]).collect();
        self.publish_ns = order.iter().map(|row| self.publish_ns[*row]).collect();
        for column in &mut self.columns {
            let len = column.row_len();
            let row = |row: &usize| column.values[row * len..(row + 1) * len].iter().copied();
            let values = order.iter().flat_map(row).collect();
            let is_absent: std::collections::BTreeSet<usize> =
                column.absent.iter().copied().collect();
            let absent = order.iter().enumerate().filter(|(_, old)| is_absent.contains(old));
            column.absent = absent.map(|(new, _)| new).collect();
            column.values = values;
        }
    }
}

impl Column {
    /// Bytes of a row.
    fn row_len(&self) -> usize {
        self.prim.size() * self.shape.iter().product::<usize>()
    }

    fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows * self.row_len());
        while self.absent.last().is_some_and(|row| *row >= rows) {
            self.absent.pop();
        }
    }
}
