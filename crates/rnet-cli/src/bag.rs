//! `rnet bag …`: works on recording files, without a domain.

pub mod args;
mod cat;
mod convert;
pub mod file;
mod info;
mod plot;
mod repair;
mod rewrite;

use args::BagCommand;

use crate::context::Context;
use crate::failure::Outcome;

pub fn run(context: &mut Context, command: BagCommand) -> Outcome {
    match command {
        BagCommand::Info(args) => info::info(context, &args),
        BagCommand::Ls(args) => info::ls(context, &args),
        BagCommand::Cat(args) => cat::run(context, args),
        BagCommand::Check(args) => repair::check(context, &args),
        BagCommand::Filter(args) => rewrite::write_filtered(context, &args),
        BagCommand::Merge(args) => rewrite::write_merged(context, &args),
        BagCommand::Split(args) => rewrite::write_split(context, &args),
        BagCommand::Convert(args) => convert::run(context, &args),
        BagCommand::Plot(args) => plot::run(context, &args),
        BagCommand::Recover(args) => repair::recover(context, &args),
    }
}
