//! `rnet type …`: message types of files, built-in types, and types of topics.

pub mod args;
mod compare;
mod list;
mod show;

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
