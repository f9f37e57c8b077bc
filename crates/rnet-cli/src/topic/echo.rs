//! `rnet topic echo`.
//!
//! Publishers declare their message types, so each message is shown with the type of its own publisher: a
//! protobuf message without generated code, a plain one by its layout, bytes as a dump. An invalid message is
//! reported on stderr, counted and skipped.

use std::borrow::Cow;
use std::io::IsTerminal;

use rnet::TypeDesc;
use rnet::inspect::{Follower, ObservedMessage};
use rnet::schema::{self, Columns, Dynamic, Schema, csv_line};
use serde_json::{Value, json};

use super::args::EchoArgs;
use super::listen::{Flow, Listener, listen};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use rnet_format::text::escape_controls;
use rnet_format::value::FieldPath;
use rnet_format::value::fields::cells;
use rnet_format::value::hex::hex;
use rnet_format::value::{Limits, Message, meta_json};
use rnet_monitor::type_name;

/// Maximum number of publisher types whose tables are kept.
const MAX_TYPE_VIEWS: usize = 16;

pub fn run(context: &mut Context, args: EchoArgs) -> Outcome {
    let topic = args.topic.clone();
    let max_messages = if args.once { Some(1) } else { args.count };
    let timeout = args.timeout;
    let limits = Limits::of(args.limits.truncate_length, args.limits.full_length);
    let mut echo = Echo {
        args,
        max_messages,
        seen: 0,
        limits,
        views: Vec::new(),
        header: Vec::new(),
        malformed: MalformedReporter::default(),
        on_terminal: std::io::stdout().is_terminal(),
    };
    listen(context, topic.as_str(), true, timeout, &mut echo)
}

struct Echo {
    args: EchoArgs,
    max_messages: Option<u64>,
    seen: u64,
    limits: Limits,
    views: Vec<TypeView>,
    /// The last printed header.
    header: Vec<String>,
    malformed: MalformedReporter,
    on_terminal: bool,
}

/// The formatting of messages of one protobuf type.
struct TypeView {
    schema: Schema,
    /// The type lacks the requested field: its messages are skipped.
    lacks_field: bool,
    field: Option<schema::FieldPath>,
    /// With `--csv`.
    columns: Option<Columns>,
}

/// Messages that could not be decoded.
#[derive(Default)]
struct MalformedReporter {
    total: u64,
    /// Messages that were not reported yet, and the error of the last one.
    unreported: u64,
    last: String,
}

impl Listener for Echo {
    fn on_message(
        &mut self,
        context: &mut Context,
        heard: &ObservedMessage<'_>,
        bytes: &[u8],
    ) -> Outcome<Flow> {
        let view = match heard.schema.filter(|_| !self.args.raw) {
            Some(schema) => Some(self.view(context, heard.node, schema)?),
            None => None,
        };
        let view = view.map(|at| &self.views[at]);
        if view.is_some_and(|view| view.lacks_field) {
            return Ok(Flow::Continue);
        }
        let shown = match (view, heard.type_desc) {
            (Some(view), _) => match Dynamic::decode(&view.schema, bytes) {
                Ok(message) => Message::Protobuf(message, view.field.as_ref().map(Cow::Borrowed)),
                Err(error) => {
                    let why = error.to_string();
                    self.malformed.add(context, heard, why);
                    return Ok(Flow::Continue);
                }
            },
            (None, TypeDesc::Plain(plain)) if !self.args.raw => {
                Message::Plain(plain, bytes, self.args.field.as_ref())
            }
            _ if self.args.field.is_some() => {
                let what = "the messages are raw bytes, which have no fields; omit --field";
                return Err(Failure::Failed(what.to_owned()));
            }
            _ => Message::Raw(bytes),
        };
        if self.args.info && !context.json() {
            let (seq, node, len) = (heard.stamp.seq, heard.node, bytes.len());
            let meta = match meta_json(&heard.meta) {
                Some(meta) => format!(", {}", Value::Object(meta)),
                None => String::new(),
            };
            context.line(format_args!("# {seq} from {node}, {len} bytes{meta}"))?;
        }
        if context.json() {
            self.json(context, heard, bytes.len(), &shown)?;
        } else if self.args.csv {
            let (header, cells) = self.csv(heard, view, &shown)?;
            self.print_row(context, header, &cells)?;
        } else {
            shown.print(context.out(), self.limits)?;
            context.line(format_args!("---"))?;
        }
        self.seen += 1;
        Ok(if Some(self.seen) == self.max_messages { Flow::Stop } else { Flow::Continue })
    }

    fn on_second(&mut self, context: &mut Context, _: &Follower) -> Outcome<Flow> {
        self.malformed.report(context);
        Ok(Flow::Continue)
    }

    fn on_finish(&mut self, context: &mut Context) -> Outcome {
        self.malformed.report(context);
        let MalformedReporter { total, .. } = self.malformed;
        if total > 0 {
            let (s, all) = (if total == 1 { "" } else { "s" }, total + self.seen);
            context.eprintln(format_args!("{total} message{s} of {all} could not be decoded"));
        }
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.seen >= self.max_messages.unwrap_or(1)
    }
}

impl MalformedReporter {
    /// Reports the first at once, and later ones once a second, so that a flood of messages does not flood
    /// stderr.
    fn add(&mut self, context: &Context, heard: &ObservedMessage<'_>, why: String) {
        self.total += 1;
        self.unreported += 1;
        self.last =
            format!("message {} from {}: {}", heard.stamp.seq, heard.node, escape_controls(&why));
        if self.total == 1 {
            self.report(context);
        }
    }

    fn report(&mut self, context: &Context) {
        match std::mem::take(&mut self.unreported) {
            0 => {}
            1 => context.eprintln(format_args!("cannot decode {}", self.last)),
            n => context
                .eprintln(format_args!("cannot decode {n} messages, the last: {}", self.last)),
        }
    }
}

impl Echo {
    /// The formatting for messages of this type and node.
    fn view(&mut self, context: &Context, node: &str, schema: &Schema) -> Outcome<usize> {
        if let Some(at) = self.views.iter().position(|view| view.schema == *schema) {
            return Ok(at);
        }
        let failed = |e: schema::ValueError| Failure::Failed(e.to_string());
        let text = self.args.field.as_ref().map(FieldPath::text);
        let parsed = text.map(|text| schema::FieldPath::parse(schema, text)).transpose();
        let lacks_field = parsed.is_err();
        let field = match parsed {
            Ok(field) => field,
            // A publisher with another version of the type may have it.
            Err(error) if self.another_type_has_field(context) => {
                context.eprintln(format_args!(
                    "messages of {node} are not shown: {}",
                    escape_controls(&error.to_string())
                ));
                None
            }
            Err(error) => return Err(failed(error)),
        };
        let columns = match (self.args.csv, &field) {
            (false, _) => None,
            (true, Some(path)) => Some(Columns::within([path]).map_err(failed)?),
            (true, None) => Some(Columns::all(schema).map_err(failed)?),
        };
        if self.views.len() == MAX_TYPE_VIEWS {
            self.views.clear();
        }
        self.views.push(TypeView { schema: schema.clone(), lacks_field, field, columns });
        Ok(self.views.len() - 1)
    }

    /// Whether the type of another publisher, received or present, has the requested field.
    fn another_type_has_field(&self, context: &Context) -> bool {
        let Some(field) = self.args.field.as_ref().map(FieldPath::text) else { return false };
        let has = |schema: &Schema| schema::FieldPath::parse(schema, field).is_ok();
        let seen = context.domain().and_then(|mut domain| {
            let snapshot = domain.topic_snapshot(self.args.topic.as_str())?;
            Ok(snapshot.publishers.iter().any(|one| one.schema.as_ref().is_some_and(has)))
        });
        self.views.iter().any(|view| !view.lacks_field) || seen.unwrap_or(false)
    }

    fn json(
        &self,
        context: &mut Context,
        heard: &ObservedMessage<'_>,
        len: usize,
        shown: &Message<'_>,
    ) -> Outcome {
        let mut line = json!({
            "topic": self.args.topic.as_str(),
            "node": heard.node,
            "publisher": heard.stamp.publisher.to_string(),
            "seq": heard.stamp.seq,
            "sent_ns": heard.stamp.sent_ns,
            "type": type_name(heard.type_desc),
            "len": len,
        });
        if let Some(meta) = meta_json(&heard.meta) {
            line["meta"] = meta.into();
        }
        match shown {
            Message::Raw(bytes) => line["hex"] = hex(bytes).into(),
            typed => line["data"] = typed.json()?,
        }
        context.json_line(&line)
    }

    /// The header of the table, and the cells of this message.
    fn csv(
        &self,
        heard: &ObservedMessage<'_>,
        view: Option<&TypeView>,
        shown: &Message<'_>,
    ) -> Outcome<(Vec<String>, Vec<String>)> {
        Ok(match shown {
            Message::Raw(bytes) => (vec!["hex".to_owned()], vec![hex(bytes)]),
            Message::Plain(..) => {
                let name = self.args.field.as_ref().map_or("", FieldPath::text);
                cells(name, &shown.json()?).into_iter().unzip()
            }
            Message::Protobuf(message, path) => {
                // A single list provides the cells: one per element.
                if let Some(path) = path
                    && let list @ Value::Array(items) = &shown.json()?
                    && !items.iter().any(|item| item.is_object() || item.is_array())
                {
                    return Ok(cells(&path.to_string(), list).into_iter().unzip());
                }
                let Some(columns) = view.and_then(|view| view.columns.as_ref()) else {
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
        // A program gets the text unchanged; a terminal would interpret control characters.
        let line = if self.on_terminal { escape_controls(&line).into_owned() } else { line };
        context.line(format_args!("{line}"))
    }
}
