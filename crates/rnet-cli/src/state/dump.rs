//! `rnet state dump`.

use super::args::DumpArgs;
use super::document;
use super::record::{Head, Writer};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::join_to_look;

pub fn run(context: &mut Context, args: &DumpArgs) -> Outcome {
    let session = join_to_look(context, "state", &args.me)?;
    let snapshot = session.map(|session| session.state.snapshot(&args.prefix)).transpose()?;
    let snapshot = snapshot.unwrap_or_default();
    let domain = context.domain()?.id().to_owned();
    let now = document::unix_now_ns();
    context.json_line(&Head::new(&domain, &args.prefix, snapshot.revision, now))?;
    let mut writer = Writer::default();
    let mut left_out = 0;
    for entry in snapshot.entries.values() {
        match writer.lines(entry) {
            Ok(lines) => lines.iter().try_for_each(|line| context.json_line(line))?,
            Err(why) => {
                left_out += 1;
                context.say(format_args!("rnet: {} is left out: {why}", entry.key));
            }
        }
    }
    context.json_line(&writer.end())?;
    context.flush()?;
    let s = |n: usize| if n == 1 { "" } else { "s" };
    let (keys, revision) = (writer.keys(), snapshot.revision);
    context.say(format_args!("dumped {keys} key{} as of revision {revision}", s(keys)));
    match left_out {
        0 => Ok(()),
        n => Err(Failure::Failed(format!("{n} key{} could not be dumped", s(n)))),
    }
}
