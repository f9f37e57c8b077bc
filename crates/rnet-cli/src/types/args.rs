//! The arguments of `rnet type …`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use rnet::TopicName;

#[derive(Debug, Subcommand)]
pub enum TypeCommand {
    /// List message types, with the first sentence of their comments
    List(TypeListArgs),
    /// Show a message type: fields, comments, units
    Show(TypeShowArgs),
    /// Check whether an old and a new version of a type are compatible
    Check(TypeCheckArgs),
    /// List all changes from an old to a new version of a type
    Diff(TypeDiffArgs),
}

/// Sources of types beside the built-in ones.
#[derive(Debug, Default, Args)]
pub struct ProtoArgs {
    /// A .proto file, a folder of them, or a descriptor set (.bin, .binpb, .pb, .desc)
    #[arg(long, value_name = "FILE")]
    pub proto: Vec<PathBuf>,
    /// Folder to search for imports, after the folder of the file
    #[arg(short = 'I', long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
}

/// List message types, with the first sentence of their comments.
///
/// Lists the built-in types, or with --proto those of the files. --in-use lists the types of the
/// domain's topics.
#[derive(Debug, Args)]
pub struct TypeListArgs {
    /// Only types whose name or comment contains this word
    pub word: Option<String>,
    #[command(flatten)]
    pub files: ProtoArgs,
    /// The types of the domain's topics; implied by --domain
    #[arg(long, conflicts_with_all = ["proto", "include"])]
    pub in_use: bool,
    /// Only types that nodes of this host use; implies --in-use
    #[arg(long, value_name = "NAME", conflicts_with_all = ["proto", "include"])]
    pub host: Option<String>,
}

/// Show a message type: fields, comments, units.
///
/// NAME is a full name (foxglove.LaserScan), or an unambiguous short name (LaserScan).
#[derive(Debug, Args)]
pub struct TypeShowArgs {
    /// The type
    #[arg(required_unless_present = "topic", conflicts_with = "topic")]
    pub name: Option<String>,
    #[command(flatten)]
    pub files: ProtoArgs,
    /// The type of this topic's messages
    #[arg(long, conflicts_with_all = ["proto", "include"])]
    pub topic: Option<TopicName>,
    /// Also show the types of its fields
    #[arg(long)]
    pub all: bool,
    /// Write it as a FileDescriptorSet with comments to this file (- for stdout), and print nothing
    #[arg(long, value_name = "FILE")]
    pub descriptor_set: Option<PathBuf>,
}

/// The direction of compatibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// Old nodes and recordings write, new nodes read
    OldWrites,
    /// New nodes write, old nodes read
    NewWrites,
    /// Both at once, as on a robot that is updated node by node
    Both,
}

/// The versions that `check` and `diff` compare.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A .proto file, a folder of them, or a descriptor set (.bin, .binpb, .pb, .desc)
    pub old: PathBuf,
    /// The new version of it
    pub new: PathBuf,
    /// Compare only this type, which may come from an import
    #[arg(long = "type", value_name = "NAME")]
    pub types: Vec<String>,
    /// Folder to search for the imports of both, after their own folders
    #[arg(short = 'I', long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
}

/// Check whether an old and a new version of a type are compatible.
///
/// Compares each message type of both with the rules that nodes apply when they match endpoints. A removed type is a
/// breaking change. Exit 0 if all types are compatible, 1 if not or if a file cannot be read, 2 for wrong usage.
#[derive(Debug, Args)]
pub struct TypeCheckArgs {
    #[command(flatten)]
    pub sides: CompareArgs,
    /// Which side must understand the other
    #[arg(long, value_enum, default_value_t = Direction::Both)]
    pub direction: Direction,
}

/// List all changes from an old to a new version of a type.
///
/// Stricter than check, which compares one writer with one reader: a removed enum value and the reuse of a reserved
/// number are breaking changes, and a field removed without reserving its number is a warning. Exit 0 without
/// breaking changes, 1 with a breaking change or if a file cannot be read, 2 for wrong usage.
#[derive(Debug, Args)]
pub struct TypeDiffArgs {
    #[command(flatten)]
    pub sides: CompareArgs,
}
