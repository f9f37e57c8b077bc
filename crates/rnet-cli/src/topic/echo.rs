//! `rnet topic echo`.

use rnet::inspect::Heard;
use serde_json::{Value, json};

use super::listen::{Go, Listener, listen};
use super::type_name;
use crate::args::EchoArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::render;

pub fn run(context: &mut Context, args: EchoArgs) -> Outcome {
    let topic = args.topic.clone();
    let wanted = if args.once { Some(1) } else { args.count };
    let timeout = args.timeout;
    let limit = if args.full_length { usize::MAX } else { args.truncate_length };
    let mut echo = Echo { args, wanted, seen: 0, limit };
    listen(context, topic.as_str(), true, timeout, &mut echo)
}

struct Echo {
    args: EchoArgs,
    wanted: Option<u64>,
    seen: u64,
    /// Longest array or dump that is shown in full.
    limit: usize,
}

impl Listener for Echo {
    fn message(&mut self, context: &mut Context, heard: &Heard<'_>, bytes: &[u8]) -> Outcome<Go> {
        let plain = heard.type_desc.as_plain().filter(|_| !self.args.raw);
        let value = plain.map(|plain| plain.format(bytes));
        let value = match (&self.args.field, &value) {
            (Some(path), Some(value)) => Some(path.pick(value).map_err(Failure::Failed)?),
            (Some(_), None) => {
                let what = "the messages are raw bytes, which have no fields; leave out --field";
                return Err(Failure::Failed(what.to_owned()));
            }
            (None, value) => value.as_ref(),
        };
        if context.json() {
            self.json(context, heard, bytes, value)?;
        } else {
            self.text(context, heard, bytes, value)?;
        }
        self.seen += 1;
        Ok(if Some(self.seen) == self.wanted { Go::Enough } else { Go::On })
    }

    fn satisfied(&self) -> bool {
        self.seen >= self.wanted.unwrap_or(1)
    }
}

impl Echo {
    fn json(
        &self,
        context: &mut Context,
        heard: &Heard<'_>,
        bytes: &[u8],
        value: Option<&Value>,
    ) -> Outcome {
        let mut line = json!({
            "topic": self.args.topic.as_str(),
            "node": heard.node,
            "publisher": heard.stamp.publisher,
            "seq": heard.stamp.seq,
            "sent_ns": heard.stamp.sent_ns,
            "type": type_name(heard.type_desc),
            "len": bytes.len(),
        });
        match value {
            Some(value) => line["data"] = value.clone(),
            None => line["hex"] = render::hex(bytes).into(),
        }
        context.json_line(&line)
    }

    fn text(
        &self,
        context: &mut Context,
        heard: &Heard<'_>,
        bytes: &[u8],
        value: Option<&Value>,
    ) -> Outcome {
        if self.args.info {
            let (seq, node, len) = (heard.stamp.seq, heard.node, bytes.len());
            context.line(format_args!("# {seq} from {node}, {len} bytes"))?;
        }
        let out = context.out();
        match (value, self.args.csv) {
            (Some(value), true) => render::csv(out, value)?,
            (None, true) => writeln_hex(out, bytes)?,
            (Some(value), false) => render::by_field(out, value, self.limit)?,
            (None, false) => render::hex_dump(out, bytes, self.limit)?,
        }
        if !self.args.csv {
            context.line(format_args!("---"))?;
        }
        Ok(())
    }
}

fn writeln_hex(out: &mut impl std::io::Write, bytes: &[u8]) -> std::io::Result<()> {
    writeln!(out, "{}", render::hex(bytes))
}
