//! The words of `rnet type …`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use rnet::TopicName;

#[derive(Debug, Subcommand)]
pub enum TypeCommand {
    /// List message types, with the first sentence of their comments
    List(TypeListArgs),
    /// Show a message type: fields, comments, units
    Show(TypeShowArgs),
    /// May nodes of an old and a new version of a type talk with each other?
    Check(TypeCheckArgs),
    /// List all that changed from an old to a new version of a type
    Diff(TypeDiffArgs),
}

/// Where types are found beside those that are built in.
#[derive(Debug, Default, Args)]
pub struct ProtoArgs {
    /// A .proto file, a folder of them, or a descriptor set (.bin, .binpb, .pb, .desc)
    #[arg(long, value_name = "FILE")]
    pub proto: Vec<PathBuf>,
    /// Folder in which imports are looked for, behind the file's own
    #[arg(short = 'I', long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
}

/// List message types, with the first sentence of their comments.
///
/// Those that are built in, or with --proto those of the files. --in-use lists the types of the
/// domain's topics.
#[derive(Debug, Args)]
pub struct TypeListArgs {
    /// Only types whose name or comment has this word in it
    pub word: Option<String>,
    #[command(flatten)]
    pub files: ProtoArgs,
    /// The types of the domain's topics; so does --domain
    #[arg(long, conflicts_with_all = ["proto", "include"])]
    pub in_use: bool,
}

/// Show a message type: fields, comments, units.
///
/// NAME is a full name (foxglove.LaserScan), or a short one (LaserScan) where only one type has it.
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
    /// Show the types that it needs, too
    #[arg(long)]
    pub all: bool,
    /// Write it as a FileDescriptorSet with comments to this file (- for stdout), and print nothing
    #[arg(long, value_name = "FILE")]
    pub descriptor_set: Option<PathBuf>,
}

/// Who writes, and who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// Old nodes and recordings write, new nodes read
    OldWrites,
    /// New nodes write, old nodes read
    NewWrites,
    /// Both at once, as on a robot that is updated node by node
    Both,
}

/// What `check` and `diff` compare.
#[derive(Debug, Args)]
pub struct SidesArgs {
    /// A .proto file, a folder of them, or a descriptor set (.bin, .binpb, .pb, .desc)
    pub old: PathBuf,
    /// The same, as it is now
    pub new: PathBuf,
    /// Compare only this type; a type of an import, too
    #[arg(long = "type", value_name = "NAME")]
    pub types: Vec<String>,
    /// Folder in which the imports of both are looked for, behind their own
    #[arg(short = 'I', long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
}

/// May nodes of an old and a new version of a type talk with each other?
///
/// Each message type of both is compared by the rules by which nodes compare them when they meet.
/// A type that is gone counts as a break. Exit 0 if all are compatible, 1 if not or if a file
/// cannot be read, 2 for wrong use.
#[derive(Debug, Args)]
pub struct TypeCheckArgs {
    #[command(flatten)]
    pub sides: SidesArgs,
    /// Which messages must be understood
    #[arg(long, value_enum, default_value_t = Direction::Both)]
    pub direction: Direction,
}

/// List all that changed from an old to a new version of a type.
///
/// Stricter than check, which sees only a writer and a reader: an enum value that was removed and a
/// number that was reserved and is used again break, too, and a field that was removed without
/// reserving its number is a warning. Exit 0 if nothing breaks, 1 if something does or if a file
/// cannot be read, 2 for wrong use.
#[derive(Debug, Args)]
pub struct TypeDiffArgs {
    #[command(flatten)]
    pub sides: SidesArgs,
}
