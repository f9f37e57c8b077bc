//! `rnet launch-keeper`, which `rnet launch` starts: the parent of a node.

use std::io::Read;

use rnet_launch::{Keeper, KeeperRequest};

use super::KeeperArgs;
use super::ProcessSignals;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;

pub fn run(context: &mut Context, args: &KeeperArgs) -> Outcome {
    signal::ignore_repeated_signals();
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text)?;
    let request: KeeperRequest = serde_json::from_slice(&text).map_err(|error| {
        Failure::Usage(format!(
            "this command is started by rnet launch; cannot read its instructions for {}: {error}",
            args.node
        ))
    })?;
    let kept = Keeper::run(request, |word| reply_to_launcher(context, word), &ProcessSignals);
    kept.map_err(|why| {
        reply_to_launcher(context, &why);
        Failure::AlreadyReported
    })
}

/// Replies to the launcher, which waits for this reply and for the end of this process's output.
fn reply_to_launcher(context: &mut Context, text: &str) {
    let _ = context.line(format_args!("{text}"));
    let _ = context.flush();
    let null = std::fs::File::options().write(true).open("/dev/null");
    let _ = null.map(rustix::stdio::dup2_stdout);
}
