//! `rnet bag …`: files of recordings, in no domain.

pub mod args;
mod cat;
mod check;
mod convert;
mod csv;
pub mod file;
mod info;
mod ls;
mod make;
mod plot;
mod recover;

use args::BagCommand;

use crate::context::Context;
use crate::failure::Outcome;

pub fn run(context: &mut Context, command: BagCommand) -> Outcome {
    match command {
        BagCommand::Info(args) => info::run(context, &args),
        BagCommand::Ls(args) => ls::run(context, &args),
        BagCommand::Cat(args) => cat::run(context, args),
        BagCommand::Check(args) => check::run(context, &args),
        BagCommand::Filter(args) => make::filtered(context, &args),
        BagCommand::Merge(args) => make::merged(context, &args),
        BagCommand::Split(args) => make::split_up(context, &args),
        BagCommand::Convert(args) => convert::run(context, &args),
        BagCommand::Plot(args) => plot::run(context, &args),
        BagCommand::Recover(args) => recover::run(context, &args),
    }
}
