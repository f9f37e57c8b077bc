//! `rnet param …`: the parameters of nodes.
//!
//! Parameters are state with a description, so these commands take part, as `rnet state` does. This process
//! rejects a forbidden value by the same rule as every other writer.

pub mod args;
mod dump;
mod find;
mod load;
mod set;
mod show;

use args::ParamCommand;
pub use rnet_monitor::documents::param as document;
pub use show::row;

use crate::context::Context;
use crate::failure::Outcome;
use crate::shared_args::NodeArg;

pub fn run(context: &mut Context, command: ParamCommand) -> Outcome {
    match command {
        ParamCommand::List(args) => show::list(context, &args),
        ParamCommand::Get(args) => show::get(context, &args),
        ParamCommand::Set(args) => set::run(context, &args),
        ParamCommand::Reset(args) => set::reset(context, &args),
        ParamCommand::Delete(args) => set::delete(context, &args),
        ParamCommand::Describe(args) => show::describe(context, &args),
        ParamCommand::Dump(args) => dump::run(context, &args),
        ParamCommand::Load(args) => load::run(context, &args),
    }
}

/// The parameters of a present node; empty if the domain has no state.
pub fn of_node(context: &Context, node: &str) -> Outcome<Vec<find::NodeParam>> {
    let mut all = find::list_params(context, &NodeArg::default())?;
    all.retain(|(of, ..)| of == node);
    Ok(all)
}
