//! The arguments of `rnet param …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use rnet::NodeName;

use crate::shared_args::NodeArg;

#[derive(Debug, Subcommand)]
pub enum ParamCommand {
    /// List parameters with their values
    List(ListArgs),
    /// Print the value of a parameter
    Get(GetArgs),
    /// Set a parameter
    Set(SetArgs),
    /// Reset a parameter to its default
    ///
    /// Removes the stored value. A parameter that no node has declared has no default; delete it instead.
    Reset(ParamArgs),
    /// Delete a parameter that no node has declared
    ///
    /// This undoes `set --undeclared`. A declared parameter is reset instead.
    Delete(ParamArgs),
    /// Show type, bounds, unit and description of parameters, as declared by their node
    Describe(DescribeArgs),
    /// Write parameters as YAML, for `rnet param load`
    Dump(DumpArgs),
    /// Set the parameters of a YAML file
    Load(LoadArgs),
}

/// List parameters with their values.
///
/// Prints value, unit and origin of the parameters of all nodes, or of NODE, running or not. A stored
/// value that the node refused is marked.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only parameters of this node
    pub node: Option<NodeName>,
    #[command(flatten)]
    pub target: HostArg,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// Whose nodes are meant.
#[derive(Debug, Args)]
pub struct HostArg {
    /// Nodes of this other host [default: of this host]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
}

/// `rnet param get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    #[command(flatten)]
    pub param: ParamArgs,
    #[command(flatten)]
    pub target: HostArg,
}

/// `rnet param get`, `reset` and `delete`.
#[derive(Debug, Args)]
pub struct ParamArgs {
    /// The node; or node and parameter as one name, such as /arm/pid/gain
    pub node: NodeName,
    /// The parameter, such as pid/gain or pid.gain
    pub name: Option<String>,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// Set a parameter.
///
/// VALUE has the type that the node declared; write a list as [1, 2]. Exit 1 without a change if VALUE is not valid,
/// or if no node has declared the parameter. --undeclared sets the parameter before the first start of its node: the
/// type is inferred as in a YAML file, and the node checks the value when it declares the parameter.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The node; or node and parameter as one name, followed by VALUE
    pub node: NodeName,
    /// The parameter, such as pid/gain or pid.gain
    #[arg(allow_negative_numbers = true)]
    pub name: String,
    /// The value
    #[arg(allow_hyphen_values = true, required = false)]
    pub value: Option<String>,
    /// Set the parameter even if no node has declared it
    #[arg(long)]
    pub undeclared: bool,
    #[command(flatten)]
    pub target: HostArg,
    #[command(flatten)]
    pub own_node: NodeArg,
}

#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// The node; or node and parameter as one name, such as /arm/pid/gain
    pub node: NodeName,
    /// The parameter [default: all]
    pub name: Option<String>,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// Write parameters as YAML, for `rnet param load`.
///
/// Values that were set are written as data, defaults as comments. A later change of a default in the
/// program therefore takes effect.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Only parameters of this node
    pub node: Option<NodeName>,
    /// Also write defaults as data
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// Set the parameters of a YAML file.
///
/// All or nothing: if a value is not valid, its line is reported and nothing is changed. ROS 2 parameter files
/// (ros__parameters, /** for all nodes) are accepted.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// The file (- for stdin)
    pub file: PathBuf,
    /// Also set parameters that their node did not declare, even if it declared others
    #[arg(long)]
    pub undeclared: bool,
    #[command(flatten)]
    pub own_node: NodeArg,
}
