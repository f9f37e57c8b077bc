//! Messages as a Parquet file, a column for each value.
//!
//! The columns are those of the CSV, but typed: numbers as numbers, times as times, lists of numbers and texts as lists.
//! What has no columns of its own (lists of messages, maps) is JSON. The crate's low-level writer is enough for that:
//! Arrow's own types would double what is built.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use rnet::schema::prost_reflect::{Kind, Value};
use rnet::schema::{Columns, Held};
use rnet::{FieldType, PlainType, Prim};
use rnet_record::{names, read};

use super::cat::document;
use crate::failure::{Failure, Outcome};
use crate::value::Message;

/// A row group ends at so many rows, or bytes.
const GROUP_ROWS: usize = 100_000;
const GROUP_BYTES: usize = 64 << 20;

/// What stands before the fields.
const HEAD: [(&str, Cell); 4] = [
    ("received_ns", Cell::Time),
    ("sent_ns", Cell::Time),
    ("node", Cell::Text),
    ("seq", Cell::U32),
];

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    Bool,
    Int {
        bits: i8,
        signed: bool,
    },
    U32,
    F32,
    F64,
    Time,
    Text,
    /// Of a value of an enum.
    Name,
    Json,
    Bytes,
}

/// A value of a row.
enum Put {
    Int(i64),
    Float(f64),
    Bytes(Vec<u8>),
}

enum Values {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<ByteArray>),
}

/// A column of the row group that is being filled. Levels are those of the format: of a list 0 is none, 1 an empty one,
/// 2 an element; of others 0 is none and 1 a value.
struct Column {
    name: String,
    cell: Cell,
    is_list: bool,
    /// Whether its values are the words of a CSV.
    is_words: bool,
    defined: Vec<i16>,
    repeated: Vec<i16>,
    values: Values,
}

/// Where the fields of a message are.
enum Fields {
    Protobuf(Columns),
    /// Offset, type, and elements of an array; and whether bytes of any number follow.
    Plain(Vec<(usize, Prim, Option<usize>)>, Option<usize>),
    Json,
    Bytes,
}

/// The file, and what it is made of.
pub struct Table {
    writer: Option<SerializedFileWriter<BufWriter<File>>>,
    file: Option<BufWriter<File>>,
    fields: Option<Fields>,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

impl Table {
    pub fn new(file: File) -> Table {
        let file = Some(BufWriter::new(file));
        Table { writer: None, file, fields: None, columns: Vec::new(), rows: 0, bytes: 0 }
    }

    /// A row. The first says which columns there are; a message with others is an error.
    pub fn row(&mut self, message: &read::Message, shown: &Message<'_>, to: &Path) -> Outcome {
        let (fields, columns) = described(message, shown)?;
        if self.fields.is_none() {
            self.columns = columns;
            self.fields = Some(fields);
        } else if !self.columns.iter().map(Column::kind).eq(columns.iter().map(Column::kind)) {
            return Err(Failure::Failed(format!(
                "a message of {} has other fields than those before it, and {} is one table; write .jsonl",
                message.channel.topic,
                to.display()
            )));
        }
        let node = message.channel.metadata.get(names::NODE_KEY).cloned().unwrap_or_default();
        let head = [
            Put::Int(message.log_ns() as i64),
            Put::Int(message.publish_ns() as i64),
            Put::Bytes(node.into_bytes()),
            Put::Int(message.sequence().into()),
        ];
        for (column, value) in self.columns.iter_mut().zip(head) {
            column.one(Some(value));
        }
        let rest = &mut self.columns[HEAD.len()..];
        match (self.fields.as_ref(), shown) {
            (Some(Fields::Protobuf(paths)), Message::Protobuf(decoded, _)) => {
                for (at, column) in rest.iter_mut().enumerate() {
                    match column.is_words {
                        true => column.one(paths.cell(at, decoded).map(|t| Put::Bytes(t.into()))),
                        false => column.value(paths.value(at, decoded).as_deref()),
                    }
                }
            }
            (Some(Fields::Plain(places, tail)), Message::Plain(_, bytes, _)) => {
                for (column, place) in rest.iter_mut().zip(places) {
                    column.plain(bytes, *place);
                }
                if let (Some(from), Some(column)) = (tail, rest.last_mut()) {
                    column.one(bytes.get(*from..).map(|bytes| Put::Bytes(bytes.to_vec())));
                }
            }
            (Some(Fields::Json), _) => {
                let text = document(message, shown)?["data"].to_string();
                rest[0].one(Some(Put::Bytes(text.into_bytes())));
            }
            _ => rest[0].one(Some(Put::Bytes(message.data().to_vec()))),
        }
        self.rows += 1;
        self.bytes += message.data().len();
        if self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.flush().map_err(|error| failed(to, &error))?;
        }
        Ok(())
    }

    /// Writes what there is as a row group.
    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.writer.is_none()
            && let Some(file) = self.file.take()
        {
            let columns = self.columns.iter().map(Column::described);
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let schema = Type::group_type_builder("messages").with_fields(columns).build()?;
            let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
            let writer =
                SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))?;
            self.writer = Some(writer);
        }
        let Some(writer) = self.writer.as_mut().filter(|_| self.rows > 0) else { return Ok(()) };
        let mut group = writer.next_row_group()?;
        for column in &mut self.columns {
            if let Some(mut out) = group.next_column()? {
                column.write(&mut out)?;
                out.close()?;
            }
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    /// Writes the end of the file. Without a row it has no columns but those of the times.
    pub fn finish(mut self, to: &Path) -> Outcome {
        if self.columns.is_empty() {
            self.columns = head();
        }
        let done = self.flush().and_then(|()| self.writer.map_or(Ok(()), |w| w.close().map(drop)));
        done.map_err(|error| failed(to, &error))
    }
}

fn failed(to: &Path, error: &ParquetError) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", to.display()))
}

fn head() -> Vec<Column> {
    HEAD.into_iter().map(|(name, cell)| Column::new(name.to_owned(), cell, false)).collect()
}

/// The columns of a message's type, and where their values are.
fn described(message: &read::Message, shown: &Message<'_>) -> Outcome<(Fields, Vec<Column>)> {
    let mut columns = head();
    let mut add = |name: String, cell, is_list| columns.push(Column::new(name, cell, is_list));
    let fields = match shown {
        Message::Protobuf(decoded, _) => {
            let paths = Columns::all(decoded.schema());
            let paths = paths.map_err(|error| Failure::Failed(error.to_string()))?;
            for (name, held) in paths.header().into_iter().zip(paths.held()) {
                match held {
                    Held::One(kind) => add(name, of_kind(kind), false),
                    Held::List(Kind::Message(_) | Kind::Enum(_)) | Held::Map => {
                        add(name, Cell::Json, false);
                    }
                    Held::List(kind) => add(name, of_kind(kind), true),
                }
            }
            Fields::Protobuf(paths)
        }
        Message::Plain(plain, ..) => {
            let mut places = Vec::new();
            of_plain(plain, 0, "", &mut |name, place: (usize, Prim, Option<usize>)| {
                add(name, of_prim(place.1), place.2.is_some());
                places.push(place);
            });
            if plain.tail {
                add("data".to_owned(), Cell::Bytes, false);
            }
            Fields::Plain(places, plain.tail.then_some(plain.size))
        }
        Message::Raw(_) if message.channel.message_encoding == names::JSON => {
            add("json".to_owned(), Cell::Json, false);
            Fields::Json
        }
        Message::Raw(_) => {
            add("data".to_owned(), Cell::Bytes, false);
            Fields::Bytes
        }
    };
    Ok((fields, columns))
}

fn of_kind(kind: &Kind) -> Cell {
    match kind {
        Kind::Bool => Cell::Bool,
        Kind::Double => Cell::F64,
        Kind::Float => Cell::F32,
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Cell::Int { bits: 32, signed: true },
        Kind::Uint32 | Kind::Fixed32 => Cell::U32,
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Cell::Int { bits: 64, signed: true },
        Kind::Uint64 | Kind::Fixed64 => Cell::Int { bits: 64, signed: false },
        Kind::String => Cell::Text,
        Kind::Enum(_) => Cell::Name,
        Kind::Bytes => Cell::Bytes,
        Kind::Message(of) if of.full_name() == TIMESTAMP => Cell::Time,
        Kind::Message(_) => Cell::Json,
    }
}

const TIMESTAMP: &str = "google.protobuf.Timestamp";

fn of_prim(prim: Prim) -> Cell {
    let bits = (prim.size() * 8) as i8;
    match prim {
        Prim::Bool => Cell::Bool,
        Prim::F32 => Cell::F32,
        Prim::F64 => Cell::F64,
        Prim::U32 => Cell::U32,
        Prim::U8 | Prim::U16 | Prim::U64 => Cell::Int { bits, signed: false },
        Prim::I8 | Prim::I16 | Prim::I32 | Prim::I64 => Cell::Int { bits, signed: true },
    }
}

/// The numbers of a struct: arrays of them are lists, however many dimensions they have; structs in arrays have an index
/// in their names.
fn of_plain(
    plain: &PlainType,
    at: usize,
    within: &str,
    add: &mut dyn FnMut(String, (usize, Prim, Option<usize>)),
) {
    for field in plain.fields.iter().filter(|field| !field.is_padding()) {
        of_field(&field.ty, at + field.offset, format!("{within}{}", field.name), add);
    }
}

fn of_field(
    ty: &FieldType,
    at: usize,
    name: String,
    add: &mut dyn FnMut(String, (usize, Prim, Option<usize>)),
) {
    let (mut inner, mut count) = (ty, 1);
    while let FieldType::Array { of, len } = inner {
        (inner, count) = (of, count * *len as usize);
    }
    match (ty, inner) {
        (FieldType::Prim(prim), _) => add(name, (at, *prim, None)),
        (FieldType::Struct(of), _) => of_plain(of, at, &format!("{name}."), add),
        (_, FieldType::Prim(prim)) => add(name, (at, *prim, Some(count))),
        (FieldType::Array { of, len }, _) => {
            for n in 0..*len as usize {
                of_field(of, at + n * of.size(), format!("{name}[{n}]"), add);
            }
        }
    }
}

impl Column {
    fn new(name: String, cell: Cell, is_list: bool) -> Column {
        let values = match cell {
            Cell::Bool => Values::Bool(Vec::new()),
            Cell::Int { bits: 64, .. } | Cell::Time => Values::I64(Vec::new()),
            Cell::Int { .. } | Cell::U32 => Values::I32(Vec::new()),
            Cell::F32 => Values::F32(Vec::new()),
            Cell::F64 => Values::F64(Vec::new()),
            Cell::Text | Cell::Name | Cell::Json | Cell::Bytes => Values::Bytes(Vec::new()),
        };
        let is_words = matches!(cell, Cell::Name | Cell::Json);
        let (defined, repeated) = (Vec::new(), Vec::new());
        Column { name, cell, is_list, is_words, defined, repeated, values }
    }

    fn kind(&self) -> (&str, Cell, bool) {
        (&self.name, self.cell, self.is_list)
    }

    /// In the schema of the file.
    fn described(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self.cell {
            Cell::Bool => (Physical::BOOLEAN, None),
            Cell::Int { bits: 64, signed } => {
                (Physical::INT64, Some(LogicalType::integer(64, signed)))
            }
            Cell::Int { bits, signed } => {
                (Physical::INT32, Some(LogicalType::integer(bits, signed)))
            }
            Cell::U32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Cell::F32 => (Physical::FLOAT, None),
            Cell::F64 => (Physical::DOUBLE, None),
            Cell::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
            Cell::Text | Cell::Name => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cell::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
            Cell::Bytes => (Physical::BYTE_ARRAY, None),
        };
        let one = |name: &str, repetition| {
            let one = Type::primitive_type_builder(name, physical);
            one.with_repetition(repetition).with_logical_type(logical.clone()).build()
        };
        if !self.is_list {
            return Ok(Arc::new(one(&self.name, Repetition::OPTIONAL)?));
        }
        let element = Arc::new(one("element", Repetition::REQUIRED)?);
        let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
        let list = Arc::new(list.with_fields(vec![element]).build()?);
        let outer = Type::group_type_builder(&self.name).with_repetition(Repetition::OPTIONAL);
        let outer = outer.with_logical_type(Some(LogicalType::List)).with_fields(vec![list]);
        Ok(Arc::new(outer.build()?))
    }

    fn push(&mut self, value: Put) {
        let int = |value: &Put| match value {
            Put::Int(int) => *int,
            Put::Float(float) => *float as i64,
            Put::Bytes(_) => 0,
        };
        let float = |value: &Put| match value {
            Put::Float(float) => *float,
            other => int(other) as f64,
        };
        match &mut self.values {
            Values::Bool(values) => values.push(int(&value) != 0),
            Values::I32(values) => values.push(int(&value) as i32),
            Values::I64(values) => values.push(int(&value)),
            Values::F32(values) => values.push(float(&value) as f32),
            Values::F64(values) => values.push(float(&value)),
            Values::Bytes(values) => values.push(match value {
                Put::Bytes(bytes) => bytes.into(),
                _ => ByteArray::from(Vec::new()),
            }),
        }
    }

    fn one(&mut self, value: Option<Put>) {
        self.defined.push(value.is_some().into());
        value.into_iter().for_each(|value| self.push(value));
    }

    fn list(&mut self, values: impl IntoIterator<Item = Put>) {
        let before = self.defined.len();
        for value in values {
            self.repeated.push(i16::from(self.defined.len() > before));
            self.defined.push(2);
            self.push(value);
        }
        if self.defined.len() == before {
            self.repeated.push(0);
            self.defined.push(1);
        }
    }

    fn value(&mut self, value: Option<&Value>) {
        match (value, self.is_list) {
            (Some(Value::List(values)), true) => {
                let cell = self.cell;
                self.list(values.iter().map(|value| put(value, cell)));
            }
            (_, true) => {
                self.repeated.push(0);
                self.defined.push(0);
            }
            (value, false) => {
                let cell = self.cell;
                self.one(value.map(|value| put(value, cell)));
            }
        }
    }

    fn plain(&mut self, message: &[u8], (at, prim, count): (usize, Prim, Option<usize>)) {
        let size = prim.size();
        let read = |n: usize| number(prim, &message[at + n * size..at + (n + 1) * size]);
        match count {
            None => self.one(Some(read(0))),
            Some(count) => self.list((0..count).map(read)),
        }
    }

    fn write(&mut self, out: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let defined = Some(&self.defined[..]);
        let repeated = self.is_list.then_some(&self.repeated[..]);
        macro_rules! write {
            ($ty:ty, $values:expr) => {{
                out.typed::<$ty>().write_batch($values, defined, repeated)?;
                $values.clear();
            }};
        }
        match &mut self.values {
            Values::Bool(values) => write!(BoolType, values),
            Values::I32(values) => write!(Int32Type, values),
            Values::I64(values) => write!(Int64Type, values),
            Values::F32(values) => write!(FloatType, values),
            Values::F64(values) => write!(DoubleType, values),
            Values::Bytes(values) => write!(ByteArrayType, values),
        }
        self.defined.clear();
        self.repeated.clear();
        Ok(())
    }
}

fn put(value: &Value, cell: Cell) -> Put {
    match value {
        Value::Bool(truth) => Put::Int((*truth).into()),
        Value::I32(int) => Put::Int((*int).into()),
        Value::I64(int) => Put::Int(*int),
        Value::U32(int) => Put::Int((*int).into()),
        Value::U64(int) => Put::Int(*int as i64),
        Value::F32(float) => Put::Float((*float).into()),
        Value::F64(float) => Put::Float(*float),
        Value::String(text) => Put::Bytes(text.clone().into_bytes()),
        Value::Bytes(bytes) => Put::Bytes(bytes.to_vec()),
        Value::Message(of) if cell == Cell::Time => {
            let of = |name| match of.get_field_by_name(name).as_deref() {
                Some(Value::I64(int)) => *int,
                Some(Value::I32(int)) => (*int).into(),
                _ => 0,
            };
            Put::Int(of("seconds").wrapping_mul(1_000_000_000).wrapping_add(of("nanos")))
        }
        // Those are words.
        _ => Put::Int(0),
    }
}

/// The number, little endian, in `bytes`, of which there are as many as it has.
fn number(prim: Prim, bytes: &[u8]) -> Put {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match prim {
        Prim::F64 => Put::Float(f64::from_bits(bits)),
        Prim::F32 => Put::Float(f32::from_bits(bits as u32).into()),
        Prim::I8 => Put::Int((bits as i8).into()),
        Prim::I16 => Put::Int((bits as i16).into()),
        Prim::I32 => Put::Int((bits as i32).into()),
        Prim::Bool | Prim::U8 | Prim::U16 | Prim::U32 | Prim::U64 | Prim::I64 => {
            Put::Int(bits as i64)
        }
    }
}
