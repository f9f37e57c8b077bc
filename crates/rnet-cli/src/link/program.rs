//! The program `rnet-link`.

use std::process::Command;

use super::LinkOptions;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// A command of the program for the domain of the context.
///
/// # Errors
/// The program is not installed.
pub fn command(context: &Context, word: &str, options: &LinkOptions) -> Outcome<Command> {
    let program = rnet::link::find_program(None).map_err(Failure::Failed)?;
    let mut command = Command::new(program);
    command.arg(word);
    let global = context.global();
    if let Some(domain) = &global.domain {
        command.args(["--domain", domain.as_str()]);
    }
    if let Some(dir) = &global.dir {
        command.arg("--dir").arg(dir);
    }
    if let Some(config) = &options.config {
        command.arg("--config").arg(config);
    }
    let words = [
        ("--group", &global.group),
        ("--network", &options.network),
        ("--host", &options.host),
        ("--listen", &options.listen),
        ("--connect", &options.connect),
        ("--interfaces", &options.interfaces),
        ("--lost-after-ms", &options.lost_after_ms),
    ];
    for (option, value) in words {
        if let Some(value) = value {
            command.args([option, value]);
        }
    }
    Ok(command)
}
