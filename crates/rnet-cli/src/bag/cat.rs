//! `rnet bag cat`: messages as `rnet topic echo` prints them.

use std::collections::HashMap;

use rnet::MessageType;
use rnet::schema::Dynamic;
use rnet_record::names;
use rnet_record::read;
use serde_json::{Value, json};

use super::args::CatArgs;
use super::file;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use rnet_format::text::escape_controls;
use rnet_format::value::hex::hex;
use rnet_format::value::{Limits, Message};

pub fn run(context: &mut Context, args: CatArgs) -> Outcome {
    let recording = file::open(context, &args.file)?;
    let select = file::select(&recording, &args.select)?;
    let start_ns = recording.info().times.map_or(0, |times| times.0);
    let limits = Limits::of(args.limits.truncate_length, args.limits.full_length);
    let mut cat = MessagePrinter { start_ns, limits, types: ChannelTypes::default() };
    let mut broken = recording.info().is_damaged();
    let mut left = args.count.unwrap_or(u64::MAX);
    for message in recording.messages(select) {
        if left == 0 {
            break;
        }
        match message {
            Ok(message) => {
                cat.print(context, &message)?;
                left -= 1;
            }
            Err(problem) => {
                broken = true;
                file::report_problem(context, &args.file, &problem);
            }
        }
    }
    match broken {
        false => Ok(()),
        true => Err(Failure::Failed(format!(
            "{} is damaged; unreadable messages are not printed; see rnet bag check",
            args.file.display()
        ))),
    }
}

struct MessagePrinter {
    start_ns: u64,
    limits: Limits,
    types: ChannelTypes,
}

/// Types by id of the channel; `None` of one that cannot be read.
#[derive(Default)]
pub struct ChannelTypes(HashMap<u16, Option<MessageType>>);

impl ChannelTypes {
    /// The type of a channel; `None` of one that cannot be read, which is told.
    pub fn of(&mut self, context: &Context, channel: &read::Channel) -> Option<&MessageType> {
        let ty = self.0.entry(channel.id).or_insert_with(|| {
            let ty = channel.message_type();
            if let Err(error) = &ty {
                let error = error.to_string();
                context.eprintln(format_args!(
                    "{}; its messages are printed as bytes",
                    escape_controls(&error)
                ));
            }
            ty.ok()
        });
        ty.as_ref()
    }

    /// A message by the type of its channel.
    ///
    /// # Errors
    /// In words, why it is not of its type.
    pub fn decode<'a>(
        &'a mut self,
        context: &Context,
        message: &'a read::Message,
    ) -> Result<Message<'a>, String> {
        let bytes = message.data();
        Ok(match self.of(context, &message.channel) {
            Some(MessageType::Protobuf(schema)) => {
                let decoded = Dynamic::decode(schema, &message.content()?);
                Message::Protobuf(decoded.map_err(|error| error.to_string())?, None)
            }
            Some(MessageType::Plain(plain)) => Message::Plain(plain, bytes, None),
            _ => Message::Raw(bytes),
        })
    }

    /// The same; what is not of its type is bytes.
    pub fn decode_or_raw<'a>(
        &'a mut self,
        context: &Context,
        message: &'a read::Message,
    ) -> Message<'a> {
        self.decode(context, message).unwrap_or(Message::Raw(message.data()))
    }
}

/// A message that is JSON as it is.
pub fn json_text(message: &read::Message) -> Option<Value> {
    match message.channel.message_encoding == names::JSON {
        true => serde_json::from_slice(message.data()).ok(),
        false => None,
    }
}

impl MessagePrinter {
    fn print(&mut self, context: &mut Context, message: &read::Message) -> Outcome {
        let channel = &message.channel;
        let bytes = message.data();
        let shown = self.types.decode_or_raw(context, message);
        match context.json() {
            true => context.json_line(&document(message, &shown)?),
            false => {
                let at = message.log_ns().saturating_sub(self.start_ns) as f64 / 1e9;
                let node = channel.metadata.get(names::NODE_KEY);
                let from = node.map(|node| format!(", from {node}")).unwrap_or_default();
                let (topic, seq, len) = (&channel.topic, message.sequence(), bytes.len());
                let line = format!("# {topic} {seq} at {at:.6} s{from}, {len} bytes");
                context.line(format_args!("{}", escape_controls(&line)))?;
                match json_text(message) {
                    Some(value) => context.json_line(&value)?,
                    None => shown.print(context.out(), self.limits)?,
                }
                context.line(format_args!("---"))
            }
        }
    }
}

/// A message as JSON.
pub fn document(message: &read::Message, shown: &Message<'_>) -> Outcome<Value> {
    let channel = &message.channel;
    let of = |key: &str| channel.metadata.get(key).map(String::as_str);
    let mut line = json!({
        "topic": channel.topic,
        "node": of(names::NODE_KEY),
        "publisher": of(names::PUBLISHER_KEY),
        "seq": message.sequence(),
        "sent_ns": message.publish_ns(),
        "received_ns": message.log_ns(),
        "type": channel.type_name(),
        "len": message.data().len(),
    });
    match (json_text(message), shown) {
        (Some(value), _) => line["data"] = value,
        (None, Message::Raw(bytes)) => line["hex"] = hex(bytes).into(),
        (None, typed) => line["data"] = typed.json()?,
    }
    Ok(line)
}
