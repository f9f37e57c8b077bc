//! `rnet bag …`: works on recording files, without a domain.

pub mod args;
mod cat;
mod check;
mod convert;
pub mod file;
mod info;
mod plot;
mod recover;
mod rewrite;

use args::BagCommand;

use crate::context::Context;
use crate::failure::Outcome;

pub fn run(context: &mut Context, command: BagCommand) -> Outcome {
    match command {
        BagCommand::Info(args) => info::info(context, &args),
        BagCommand::Ls(args) => info::ls(context, &args),
        BagCommand::Cat(args) => cat::run(context, args),
        BagCommand::Check(args) => check::check(context, &args),
        BagCommand::Filter(args) => rewrite::write_filtered(context, &args),
        BagCommand::Merge(args) => rewrite::write_merged(context, &args),
        BagCommand::Split(args) => rewrite::write_split(context, &args),
        BagCommand::Convert(args) => convert::run(context, &args),
        BagCommand::Plot(args) => plot::run(context, &args),
        BagCommand::Recover(args) => recover::recover(context, &args),
    }
}
