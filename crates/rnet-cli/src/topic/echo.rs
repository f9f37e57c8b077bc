//! `rnet topic echo`.
//!
//! What a message is was said by its publisher, so each is shown by the type of its own publisher:
//! a protobuf message without its code, a plain one by its layout, bytes as a dump. A message that is
//! none of its type is told on stderr, counted, and passed over.

use std::io::{IsTerminal, Write};

use rnet::inspect::Heard;
use rnet::schema::{self, Columns, Dynamic, JsonOptions, Schema, TextOptions, csv_line};
use rnet::{PlainType, TypeDesc};
use serde_json::{Value, json};

use super::listen::{Go, Listener, listen};
use super::{plain_text, type_name};
use crate::args::EchoArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::render;

/// Bytes of a field of bytes that are shown, unless everything is.
const SHOWN_FIELD_BYTES: usize = 16;
/// Publishers of different types that are told apart without building their tables anew.
const MAX_VIEWS: usize = 16;

pub fn run(context: &mut Context, args: EchoArgs) -> Outcome {
    let topic = args.topic.clone();
    let wanted = if args.once { Some(1) } else { args.count };
    let timeout = args.timeout;
    let limit = if args.full_length { usize::MAX } else { args.truncate_length };
    let mut echo = Echo {
        args,
        wanted,
        seen: 0,
        limit,
        views: Vec::new(),
        header: Vec::new(),
        malformed: Malformed::default(),
        on_terminal: std::io::stdout().is_terminal(),
    };
    listen(context, topic.as_str(), true, timeout, &mut echo)
}

struct Echo {
    args: EchoArgs,
    wanted: Option<u64>,
    seen: u64,
    /// Longest array or dump that is shown in full.
    limit: usize,
    views: Vec<View>,
    /// The header that was printed last.
    header: Vec<String>,
    malformed: Malformed,
    on_terminal: bool,
}

/// What is shown of the messages of one protobuf type.
struct View {
    schema: Schema,
    field: Option<schema::FieldPath>,
    /// With `--csv`.
    columns: Option<Columns>,
}

/// Messages that could not be decoded.
#[derive(Default)]
struct Malformed {
    total: u64,
    /// Those that were not told yet, and why the last of them was none.
    untold: u64,
    last: String,
}

/// A message, as far as it is known what it is.
enum Shown<'a> {
    Raw,
    Plain(&'a PlainType),
    Protobuf(Dynamic, &'a View),
}

impl Listener for Echo {
    fn message(&mut self, context: &mut Context, heard: &Heard<'_>, bytes: &[u8]) -> Outcome<Go> {
        let view = match heard.schema.filter(|_| !self.args.raw) {
            Some(schema) => Some(self.view(schema)?),
            None => None,
        };
        let shown = match (view.map(|at| &self.views[at]), heard.type_desc) {
            (Some(view), _) => match Dynamic::decode(&view.schema, bytes) {
                Ok(message) => Shown::Protobuf(message, view),
                Err(error) => {
                    let why = error.to_string();
                    self.malformed.add(context, heard, why);
                    return Ok(Go::On);
                }
            },
            (None, TypeDesc::Plain(plain)) if !self.args.raw => Shown::Plain(plain),
            _ if self.args.field.is_some() => {
                let what = "the messages are raw bytes, which have no fields; leave out --field";
                return Err(Failure::Failed(what.to_owned()));
            }
            _ => Shown::Raw,
        };
        if self.args.info && !context.json() {
            let (seq, node, len) = (heard.stamp.seq, heard.node, bytes.len());
            context.line(format_args!("# {seq} from {node}, {len} bytes"))?;
        }
        if context.json() {
            self.json(context, heard, bytes, &shown)?;
        } else if self.args.csv {
            let (header, cells) = self.csv(heard, bytes, &shown)?;
            self.print_row(context, header, &cells)?;
        } else {
            self.text(context, bytes, &shown)?;
        }
        self.seen += 1;
        Ok(if Some(self.seen) == self.wanted { Go::Enough } else { Go::On })
    }

    fn second(&mut self, context: &mut Context) -> Outcome<Go> {
        self.malformed.tell(context);
        Ok(Go::On)
    }

    fn finish(&mut self, context: &mut Context) -> Outcome {
        self.malformed.tell(context);
        let Malformed { total, .. } = self.malformed;
        if total > 0 {
            let (s, all) = (if total == 1 { "" } else { "s" }, total + self.seen);
            context.say(format_args!("{total} message{s} of {all} could not be decoded"));
        }
        Ok(())
    }

    fn satisfied(&self) -> bool {
        self.seen >= self.wanted.unwrap_or(1)
    }
}

impl Malformed {
    /// The first is told at once, those that follow once a second: a flood of them must not be one of words.
    fn add(&mut self, context: &Context, heard: &Heard<'_>, why: String) {
        self.total += 1;
        self.untold += 1;
        self.last =
            format!("message {} from {}: {}", heard.stamp.seq, heard.node, render::tame(&why));
        if self.total == 1 {
            self.tell(context);
        }
    }

    fn tell(&mut self, context: &Context) {
        match std::mem::take(&mut self.untold) {
            0 => {}
            1 => context.say(format_args!("cannot decode {}", self.last)),
            n => context.say(format_args!("cannot decode {n} messages, the last: {}", self.last)),
        }
    }
}

impl Echo {
    /// Which view shows messages of this type.
    fn view(&mut self, schema: &Schema) -> Outcome<usize> {
        if let Some(at) = self.views.iter().position(|view| view.schema == *schema) {
            return Ok(at);
        }
        let failed = |e: schema::ValueError| Failure::Failed(e.to_string());
        let text = self.args.field.as_ref().map(render::FieldPath::text);
        let field = text.map(|text| schema::FieldPath::parse(schema, text)).transpose();
        let field = field.map_err(failed)?;
        let columns = match (self.args.csv, &field) {
            (false, _) => None,
            (true, Some(path)) => Some(Columns::within(path).map_err(failed)?),
            (true, None) => Some(Columns::all(schema).map_err(failed)?),
        };
        if self.views.len() == MAX_VIEWS {
            self.views.clear();
        }
        self.views.push(View { schema: schema.clone(), field, columns });
        Ok(self.views.len() - 1)
    }

    /// Of a plain message, the field that is asked for.
    fn plain(&self, message: Value) -> Outcome<Value> {
        match &self.args.field {
            Some(path) => path.pick(&message).cloned().map_err(Failure::Failed),
            None => Ok(message),
        }
    }

    fn json(
        &self,
        context: &mut Context,
        heard: &Heard<'_>,
        bytes: &[u8],
        shown: &Shown<'_>,
    ) -> Outcome {
        let mut line = json!({
            "topic": self.args.topic.as_str(),
            "node": heard.node,
            "publisher": heard.stamp.publisher.to_string(),
            "seq": heard.stamp.seq,
            "sent_ns": heard.stamp.sent_ns,
            "type": type_name(heard.type_desc),
            "len": bytes.len(),
        });
        match shown {
            Shown::Raw => line["hex"] = render::hex(bytes).into(),
            Shown::Plain(plain) => line["data"] = self.plain(plain.format(bytes))?,
            Shown::Protobuf(message, view) => {
                let options = json_options();
                line["data"] = match &view.field {
                    Some(path) => message.get_json(path, &options).unwrap_or(Value::Null),
                    None => message.to_json(&options),
                };
            }
        }
        context.json_line(&line)
    }

    fn text(&self, context: &mut Context, bytes: &[u8], shown: &Shown<'_>) -> Outcome {
        let out = context.out();
        match shown {
            Shown::Raw => render::hex_dump(out, bytes, self.limit)?,
            Shown::Plain(plain) => {
                let value = self.plain(plain_text::readable(plain, bytes))?;
                render::by_field(out, &value, self.limit)?;
            }
            Shown::Protobuf(message, view) => {
                let max_bytes = match self.args.full_length {
                    true => usize::MAX,
                    false => self.limit.min(SHOWN_FIELD_BYTES),
                };
                let options = TextOptions { max_elements: self.limit, max_bytes };
                let text = match &view.field {
                    Some(path) => message.get_text(path, &options),
                    None => Some(message.to_text_with(&options)),
                };
                match text {
                    Some(text) => out.write_all(text.as_bytes())?,
                    // An element or entry that this message does not have.
                    None => out.write_all(b"null\n")?,
                }
            }
        }
        context.line(format_args!("---"))
    }

    /// The header of the table, and the cells of this message.
    fn csv(
        &self,
        heard: &Heard<'_>,
        bytes: &[u8],
        shown: &Shown<'_>,
    ) -> Outcome<(Vec<String>, Vec<String>)> {
        Ok(match shown {
            Shown::Raw => (vec!["hex".to_owned()], vec![render::hex(bytes)]),
            Shown::Plain(plain) => {
                let name = self.args.field.as_ref().map_or("", render::FieldPath::text);
                let value = self.plain(plain.format(bytes))?;
                render::cells(name, &value).into_iter().unzip()
            }
            Shown::Protobuf(message, view) => {
                // One list is what the row is about: its elements are the cells.
                let list =
                    view.field.as_ref().and_then(|path| message.get_json(path, &json_options()));
                if let (Some(Value::Array(items)), Some(path)) = (&list, &view.field)
                    && !items.iter().any(|item| item.is_object() || item.is_array())
                {
                    let name = path.to_string();
                    let value = Value::Array(items.clone());
                    return Ok(render::cells(&name, &value).into_iter().unzip());
                }
                let Some(columns) = &view.columns else {
                    let what = format!("{} has no columns", type_name(heard.type_desc));
                    return Err(Failure::Failed(what));
                };
                (columns.header(), columns.row(message))
            }
        })
    }

    fn print_row(
        &mut self,
        context: &mut Context,
        header: Vec<String>,
        cells: &[String],
    ) -> Outcome {
        if self.args.header && header != self.header {
            context.line(format_args!("{}", csv_line(header.iter().map(String::as_str))))?;
            self.header = header;
        }
        let line = csv_line(cells.iter().map(String::as_str));
        // A program gets the text as it is; a terminal would do what it says.
        let line = if self.on_terminal { render::tame(&line).into_owned() } else { line };
        context.line(format_args!("{line}"))
    }
}

/// Names as in the `.proto` file, and each field that has a value: scripts look for them.
fn json_options() -> JsonOptions {
    JsonOptions {
        proto_names: true,
        defaults: true,
        plain_integers: true,
        ..JsonOptions::default()
    }
}
