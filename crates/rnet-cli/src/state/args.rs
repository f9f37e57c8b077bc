//! The words of `rnet state …`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use rnet::NodeName;

use crate::args::seconds;
use crate::types::args::ProtoArgs;
use crate::value::field::FieldPath;

#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Print the value of a key
    ///
    /// Texts and JSON are printed as they are, lists and sets with an element on each line, messages
    /// by field, bytes as a hex dump. --json tells the type, the revision and who wrote it, too. Exit
    /// 1 if there is no such key.
    Get(GetArgs),
    /// Set a key
    ///
    /// Without --type, VALUE is of the type that the key has. In a new key it is what it looks like:
    /// true and false, a number, JSON if it begins with { or [, else text; which it was is said on
    /// stderr. A message type is a built-in one (foxglove.Pose, or Imu) or one of --proto.
    Set(SetArgs),
    /// Set a key if nobody has written it since
    ///
    /// `set --if-revision` as one word: exit 1 and nothing is changed if the key is not at REVISION,
    /// which `get --json` and `list --long` tell. VALUE is as for `set`.
    Cas(CasArgs),
    /// Add to a number
    ///
    /// The sum is printed. However many do it at once, each is counted. A new key begins at zero, as an
    /// int, or as a float if BY is one.
    Add(AddArgs),
    /// Delete keys
    ///
    /// Exit 1 if one of them does not exist; the others are deleted.
    Del(DelArgs),
    /// List keys
    ///
    /// All, or those under PREFIX: /arm means /arm and all of /arm/…, and not /army.
    List(ListArgs),
    /// Print what keys hold, and then each change
    ///
    /// A line per key and change, in order. Of a key that changes faster than can be printed the newest
    /// value comes, and how many were left out is said. --json has a document on each line.
    Watch(WatchArgs),
    /// Write keys with all that belongs to them, for `rnet state load`
    ///
    /// All of one revision, as JSON lines: values, types, message types with their descriptions, whether
    /// they are durable and when they end. Last wills are left out: they belong to nodes that live.
    Dump(DumpArgs),
    /// Set what `rnet state dump` has written
    ///
    /// The file is read and checked before anything is changed. A key that exists with another value
    /// ends it, unless --replace is given. Up to 1024 keys are set at once, all or none; more of them
    /// in parts of so many. What has expired since is left out.
    Load(LoadArgs),
}

/// Under which name a command takes part.
#[derive(Debug, Args)]
pub struct NodeArg {
    /// Name of the node that does it, and owns what it sets [default: /rnet_state_PID]
    #[arg(short = 'n', long, value_name = "NAME")]
    pub node_name: Option<NodeName>,
}

/// `rnet state get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// The key
    #[arg(value_parser = key)]
    pub key: String,
    /// Print only this field of a message or of JSON, such as pose.x or legs[2].force
    #[arg(long, value_name = "PATH")]
    pub field: Option<FieldPath>,
    /// Write bytes, and those of a message, as they are
    #[arg(long, conflicts_with_all = ["field", "json"])]
    pub raw: bool,
    /// Longest array (in elements) or hex dump (in bytes) that is printed in full
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub truncate_length: usize,
    /// Print everything in full
    #[arg(short, long)]
    pub full_length: bool,
    #[command(flatten)]
    pub node: NodeArg,
}

/// A value as it stands on the command line.
#[derive(Debug, Args)]
pub struct ValueArgs {
    /// The value, of the type of --type
    #[arg(allow_hyphen_values = true, required_unless_present = "file")]
    pub value: Option<String>,
    /// Read it from this file (- for stdin); without --type and in a new key it is bytes
    #[arg(long, value_name = "PATH", conflicts_with = "value")]
    pub file: Option<PathBuf>,
    /// bool, int, float, str, bytes (as hex), json, list or set (a JSON array), or a message type
    /// with JSON such as '{"x": 1}' [default: that of the key, else what VALUE looks like]
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    pub type_name: Option<String>,
    /// Let the key change its type
    #[arg(long)]
    pub change_type: bool,
    /// The key is gone after this many seconds, unless it is set again
    #[arg(long, value_name = "S", value_parser = lifetime)]
    pub ttl: Option<Duration>,
    /// Keep the key on disk; the command ends when it is there [default: as the key is, else no]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub durable: Option<bool>,
    #[command(flatten)]
    pub files: ProtoArgs,
    #[command(flatten)]
    pub node: NodeArg,
}

/// `rnet state set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The key
    #[arg(value_parser = key)]
    pub key: String,
    #[command(flatten)]
    pub value: ValueArgs,
    /// Only if the key is still at this revision; 0: only if there is no such key
    #[arg(long, value_name = "REVISION")]
    pub if_revision: Option<u64>,
}

/// `rnet state cas`.
#[derive(Debug, Args)]
pub struct CasArgs {
    /// The key
    #[arg(value_parser = key)]
    pub key: String,
    /// The revision that it must be at; 0: there must be no such key
    pub revision: u64,
    #[command(flatten)]
    pub value: ValueArgs,
}

/// `rnet state add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The key
    #[arg(value_parser = key)]
    pub key: String,
    /// How much; may be negative
    #[arg(default_value = "1", allow_hyphen_values = true)]
    pub by: String,
    #[command(flatten)]
    pub node: NodeArg,
}

/// `rnet state del`.
#[derive(Debug, Args)]
pub struct DelArgs {
    /// The keys
    #[arg(required = true, value_name = "KEY", value_parser = key)]
    pub keys: Vec<String>,
    /// Only if the key is still at this revision
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(u64).range(1..))]
    pub if_revision: Option<u64>,
    #[command(flatten)]
    pub node: NodeArg,
}

/// `rnet state list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only keys under this name
    #[arg(default_value = "", hide_default_value = true, value_parser = prefix)]
    pub prefix: String,
    /// Show type, value, revision, who wrote it and when, how long it lives, whether it is durable
    #[arg(short, long)]
    pub long: bool,
    #[command(flatten)]
    pub node: NodeArg,
}

/// `rnet state watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Only keys under this name; /arm means /arm and all of /arm/…
    #[arg(default_value = "", hide_default_value = true, value_parser = prefix)]
    pub prefix: String,
    /// Leave out what the keys hold at the beginning
    #[arg(long)]
    pub changes: bool,
    /// End after the first line
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// End after this many lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this many seconds; exit 124 if fewer lines came than were asked for
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub node: NodeArg,
}

/// `rnet state dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Only keys under this name
    #[arg(default_value = "", hide_default_value = true, value_parser = prefix)]
    pub prefix: String,
    #[command(flatten)]
    pub node: NodeArg,
}

/// `rnet state load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// The file [default: stdin]
    pub file: Option<PathBuf>,
    /// Overwrite keys that exist, of whatever type they are
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub node: NodeArg,
}

/// A key in its absolute form.
fn key(text: &str) -> Result<String, rnet::Error> {
    Ok(rnet::key_name(text)?.into_owned())
}

/// The beginning of keys: whole names, with or without a slash behind.
fn prefix(text: &str) -> Result<String, rnet::Error> {
    match text.strip_suffix('/') {
        _ if text.is_empty() => Ok(String::new()),
        Some("") => Ok("/".to_owned()),
        Some(name) => Ok(format!("{}/", key(name)?)),
        None => key(text),
    }
}

fn lifetime(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        Duration::ZERO => Err("a key lives longer than that; to delete it, use del".to_owned()),
        long => Ok(long),
    }
}
