//! `rnet type …`: message types, of files, built in, and of topics.

pub mod args;
pub mod catalog;
mod compare;
mod compile;
pub mod layout;
mod list;
pub mod names;
mod proto_text;
mod show;
mod used_types;

use args::TypeCommand;

use crate::context::Context;
use crate::failure::Outcome;

pub fn run(context: &mut Context, command: TypeCommand) -> Outcome {
    match command {
        TypeCommand::List(args) => list::run(context, args),
        TypeCommand::Show(args) => show::run(context, args),
        TypeCommand::Check(args) => compare::check_run(context, args),
        TypeCommand::Diff(args) => compare::diff_run(context, args),
    }
}
