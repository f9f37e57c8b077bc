//! The words of `rnet param …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use rnet::NodeName;

#[derive(Debug, Subcommand)]
pub enum ParamCommand {
    /// List parameters and what they are
    List(ListArgs),
    /// Print the value of a parameter
    Get(GetArgs),
    /// Set a parameter
    Set(SetArgs),
    /// Make a parameter its default
    Reset(ResetArgs),
    /// Type, bounds, unit and meaning of parameters, as their node declared them
    Describe(DescribeArgs),
    /// Write parameters as YAML, for `rnet param load`
    Dump(DumpArgs),
    /// Set what a YAML file says
    Load(LoadArgs),
}

/// Under which name a command takes part.
#[derive(Debug, Args)]
pub struct NodeArg {
    /// Name of the node that does it, and owns what it sets [default: /rnet_param_PID]
    #[arg(short = 'n', long, value_name = "NAME")]
    pub node_name: Option<NodeName>,
}

/// List parameters and what they are.
///
/// Those of all nodes, or of NODE, running or not: value, unit, and who set it. A parameter whose
/// stored value its node could not take says so.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only parameters of this node
    pub node: Option<NodeName>,
    #[command(flatten)]
    pub me: NodeArg,
}

#[derive(Debug, Args)]
pub struct GetArgs {
    /// The node
    pub node: NodeName,
    /// The parameter
    pub name: String,
    #[command(flatten)]
    pub me: NodeArg,
}

/// Set a parameter.
///
/// VALUE is of the type that the node declared; of a list it is JSON, such as [1, 2]. Before the node
/// has ever run it is what it looks like, as in a YAML file, and is checked when the node declares it.
/// Exit 1 and nothing is changed if it does not fit.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The node
    pub node: NodeName,
    /// The parameter
    pub name: String,
    /// The value
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// Also if the node has declared others, but not this one
    #[arg(long)]
    pub undeclared: bool,
    #[command(flatten)]
    pub me: NodeArg,
}

#[derive(Debug, Args)]
pub struct ResetArgs {
    /// The node
    pub node: NodeName,
    /// The parameter
    pub name: String,
    #[command(flatten)]
    pub me: NodeArg,
}

#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// The node
    pub node: NodeName,
    /// The parameter [default: all]
    pub name: Option<String>,
    #[command(flatten)]
    pub me: NodeArg,
}

/// Write parameters as YAML, for `rnet param load`.
///
/// What was set is data, what is still its default is a comment: a program that changes a default
/// later on is not held back by the file.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Only parameters of this node
    pub node: Option<NodeName>,
    /// Write defaults as data, too
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub me: NodeArg,
}

/// Set what a YAML file says.
///
/// All or nothing: if one line does not fit, each line that does not is told, and nothing is changed. Files
/// of ROS 2 (ros__parameters, /** for all nodes) are read, too.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// The file (- for stdin)
    pub file: PathBuf,
    /// Also set what a node that has declared others did not declare
    #[arg(long)]
    pub undeclared: bool,
    #[command(flatten)]
    pub me: NodeArg,
}
