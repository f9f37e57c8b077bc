//! `rnet topic …`.

pub mod args;
mod delay;
mod echo;
mod info;
mod interest;
mod list;
pub mod listen;
mod payload;
pub mod publish;
mod rates;

use args::TopicCommand;

use crate::context::Context;
use crate::failure::Outcome;

pub fn run(context: &mut Context, command: TopicCommand) -> Outcome {
    match command {
        TopicCommand::List(args) => list::run(context, args),
        TopicCommand::Info(args) => info::run(context, args),
        TopicCommand::Type { topic } => list::type_of(context, topic.as_str()),
        TopicCommand::Find { name } => list::find_by_type(context, &name),
        TopicCommand::Echo(args) => echo::run(context, args),
        TopicCommand::Hz(args) => rates::hz(context, args),
        TopicCommand::Bw(args) => rates::bw(context, args),
        TopicCommand::Delay(args) => delay::run(context, args),
        TopicCommand::Pub(args) => publish::run(context, args),
    }
}
