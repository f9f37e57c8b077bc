//! Which commands give way to the nodes of a robot: those that only look on (docs/design/observers.md).

use rnet::inspect::PriorityChange;

use crate::args::Command;
use crate::blackbox::BlackBoxCommand;
use crate::command::args::CommandCommand;
use crate::domain::DomainCommand;
use crate::node::args::NodeCommand;
use crate::topic::args::TopicCommand;

/// Has this thread, and so all of this program, give way if the command only looks on.
pub fn apply(command: &Command) {
    if let Some(change) = priority_change(command) {
        rnet::inspect::lower_priority(change);
    }
}

/// `None` for a command that takes part, or starts what does. Those of the dashboard and of Foxglove operate a robot:
/// there only the threads that look give way.
fn priority_change(command: &Command) -> Option<PriorityChange> {
    match command {
        // It is there all day, and draws what there is when it comes round.
        Command::Top(_) => Some(PriorityChange::Lowest),
        // What some of these do not read in time is lost to them; for others somebody waits, a probe perhaps.
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
        // It speaks for programs that are started from the same shell.
        Command::Doctor(args) => (!args.realtime).then_some(PriorityChange::Batch),
        _ => None,
    }
}
