//! The commands that run at a lower priority than the nodes of a robot: observers (docs/design/observers.md).

use rnet::inspect::PriorityChange;

use crate::args::Command;
use crate::blackbox::BlackBoxCommand;
use crate::command::args::CommandCommand;
use crate::domain::DomainCommand;
use crate::node::args::NodeCommand;
use crate::topic::args::TopicCommand;

/// Lowers the priority of this thread, and so of the whole program, if the command is an observer.
pub fn apply(command: &Command) {
    if let Some(change) = priority_change(command) {
        rnet::inspect::lower_priority(change);
    }
}

/// `None` for a command that takes part, or starts nodes. The dashboard and Foxglove servers operate a robot:
/// only their observer threads have a lower priority.
fn priority_change(command: &Command) -> Option<PriorityChange> {
    match command {
        // It runs all day, and can draw late.
        Command::Top(_) => Some(PriorityChange::Lowest),
        // Some of these lose what they do not read in time; others are waited for, for example by a probe.
        Command::Graph(_)
        | Command::Log(_)
        | Command::Metrics(_)
        | Command::Status(_)
        | Command::Bag(_)
        | Command::Type(_)
        | Command::Record(_)
        | Command::Trace(_)
        | Command::BlackBox(BlackBoxCommand::Run(_))
        | Command::Topic(
            TopicCommand::List(_)
            | TopicCommand::Info(_)
            | TopicCommand::Type { .. }
            | TopicCommand::Find { .. }
            | TopicCommand::Echo(_)
            | TopicCommand::Hz(_)
            | TopicCommand::Bw(_)
            | TopicCommand::Delay(_),
        )
        | Command::Node(NodeCommand::List(_) | NodeCommand::Info { .. } | NodeCommand::Logs(_))
        | Command::Domain(DomainCommand::List)
        | Command::Drive(
            CommandCommand::List(_) | CommandCommand::Who(_) | CommandCommand::Log(_),
        ) => Some(PriorityChange::Batch),
        // With `--realtime`, it tests the settings of programs that the same shell starts.
        Command::Doctor(args) => (!args.realtime).then_some(PriorityChange::Batch),
        _ => None,
    }
}
