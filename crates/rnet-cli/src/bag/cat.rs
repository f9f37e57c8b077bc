//! `rnet bag cat`: prints messages as `rnet topic echo` does.

use rnet_record::export::{ChannelTypes, document, json_text};
use rnet_record::names;
use rnet_record::read;

use super::args::CatArgs;
use super::file;
use crate::context::{Context, print_note};
use crate::failure::{Failure, Outcome};
use rnet_format::text::escape_controls;
use rnet_format::value::Limits;

pub fn run(context: &mut Context, args: CatArgs) -> Outcome {
    let recording = file::open(context, &args.file)?;
    let select = file::select(&recording, &args.select)?;
    let start_ns = recording.info().times.map_or(0, |times| times.0);
    let limits = Limits::of(args.limits.truncate_length, args.limits.full_length);
    let mut cat = MessagePrinter { start_ns, limits, types: ChannelTypes::new(print_note) };
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

impl MessagePrinter {
    fn print(&mut self, context: &mut Context, message: &read::Message) -> Outcome {
        let channel = &message.channel;
        let bytes = message.data();
        let shown = self.types.decode_or_raw(message);
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
