//! The arguments of `rnet state …`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use rnet::state::split_host;

use crate::shared_args::{LimitArgs, NodeArg, seconds};
use crate::types::args::ProtoArgs;
use rnet_format::value::FieldPath;

#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Print the value of a key
    ///
    /// Strings and JSON are printed unchanged, lists and sets with one element per line, messages by field, bytes as
    /// a hex dump. --json adds the type, the revision and the node that wrote the value. Exit 1 if the key does not
    /// exist.
    Get(GetArgs),
    /// Set a key
    ///
    /// Without --type, VALUE has the type of the key. For a new key the type is inferred from VALUE: a bool for true
    /// and false, a number, JSON if it begins with { or [, else a string. The type is printed on stderr. JSON, lists
    /// and messages may be written as YAML, such as '{x: 1.0}'. A message type is a built-in one (foxglove.Pose, or
    /// Imu) or one of --proto.
    Set(SetArgs),
    /// Set a key if it is still at a given revision
    ///
    /// Same as `set --if-revision`. Exit 1 without a change if the key is not at REVISION. `get --json`
    /// and `list --long` print the revision. VALUE is as for `set`.
    Cas(CasArgs),
    /// Add to a number
    ///
    /// Prints the sum. Concurrent additions are all counted. A new key starts at zero: an int, or a
    /// float if BY is one.
    Add(AddArgs),
    /// Delete keys
    ///
    /// To delete all keys under a name, use flush. Exit 1 if one of the keys does not exist; the others are still
    /// deleted.
    Del(DelArgs),
    /// Delete all keys, or all under a name
    ///
    /// Prints the number of keys and asks for confirmation; without a terminal --yes is required. Parameters return
    /// to their defaults.
    Flush(FlushArgs),
    /// List keys
    ///
    /// All keys, or those under PREFIX: /arm means /arm and all of /arm/…, but not /army.
    List(ListArgs),
    /// Print the values of keys, then each change
    ///
    /// One line per key and change, in order. When a key changes faster than the output, the newest value
    /// is printed with the number of omitted changes. --json prints one document per line.
    Watch(WatchArgs),
    /// Write keys with their values and attributes, for `rnet state load`
    ///
    /// All keys as of one revision, as JSON lines: value, type, description of the message type,
    /// durability and expiry. Last wills are omitted, because they belong to running nodes.
    Dump(DumpArgs),
    /// Set the keys of a file written by `rnet state dump`
    ///
    /// The whole file is checked before any key is changed. A key that exists with another value is an
    /// error unless --replace is given. Up to 1024 keys are set in one transaction, more in several.
    /// Keys that have expired since the dump are skipped.
    Load(LoadArgs),
}

/// `rnet state get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// The key; for a key of another host, @host/key
    #[arg(value_parser = key_or_remote)]
    pub key: String,
    /// Print only this field of a message or of JSON, such as pose.x or legs[2].force
    #[arg(long, value_name = "PATH")]
    pub field: Option<FieldPath>,
    /// Write the bytes of the value unchanged
    #[arg(long, conflicts_with_all = ["field", "json"])]
    pub raw: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// A value on the command line.
#[derive(Debug, Args)]
pub struct ValueArgs {
    /// The value, of the type given by --type
    #[arg(allow_hyphen_values = true, required_unless_present = "file")]
    pub value: Option<String>,
    /// Read the value from this file (- for stdin); the type of a new key is bytes unless --type is given
    #[arg(long, value_name = "PATH", conflicts_with = "value")]
    pub file: Option<PathBuf>,
    /// bool, int, float, str, bytes (as hex), json, list or set (such as [1, 2]), or a message type
    /// with fields such as '{x: 1}' [default: the type of the key, else inferred from VALUE]
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    pub type_name: Option<String>,
    /// Allow a change of the key's type
    #[arg(long)]
    pub change_type: bool,
    /// The key expires after this many seconds unless it is set again
    #[arg(long, value_name = "S", value_parser = lifetime)]
    pub ttl: Option<Duration>,
    /// Keep the key on disk; the command returns when it is stored [default: as the key was, else false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub durable: Option<bool>,
    /// Value that the key gets when this command exits, for whatever reason; the command runs until Ctrl-C, or until
    /// another writer sets the key
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub last_will: Option<String>,
    /// Like --last-will, but delete the key
    #[arg(long, conflicts_with = "last_will")]
    pub last_will_delete: bool,
    #[command(flatten)]
    pub files: ProtoArgs,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// `rnet state set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The key; for a key of another host, @host/key
    #[arg(value_parser = key_or_remote)]
    pub key: String,
    #[command(flatten)]
    pub value: ValueArgs,
    /// Set the key only if it is still at this revision; 0: only if it does not exist
    #[arg(long, value_name = "REVISION")]
    pub if_revision: Option<u64>,
}

/// `rnet state cas`.
#[derive(Debug, Args)]
pub struct CasArgs {
    /// The key; for a key of another host, @host/key
    #[arg(value_parser = key_or_remote)]
    pub key: String,
    /// The required revision; 0: the key must not exist
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
    /// The amount; may be negative
    #[arg(default_value = "1", allow_hyphen_values = true)]
    pub by: String,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// `rnet state del`.
#[derive(Debug, Args)]
pub struct DelArgs {
    /// The keys; for a key of another host, @host/key
    #[arg(required = true, value_name = "KEY", value_parser = key_or_remote)]
    pub keys: Vec<String>,
    /// Delete only if the key is still at this revision
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(u64).range(1..))]
    pub if_revision: Option<u64>,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// `rnet state flush`.
#[derive(Debug, Args)]
pub struct FlushArgs {
    /// Only keys under this name; /arm means /arm and all of /arm/…
    #[arg(default_value = "", hide_default_value = true, value_parser = prefix)]
    pub prefix: String,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// `rnet state list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only keys under this name
    #[arg(default_value = "", hide_default_value = true, value_parser = prefix_or_remote)]
    pub prefix: String,
    /// Show type, value, revision, writer, time of the write, remaining time to live, durability
    #[arg(short, long)]
    pub long: bool,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// `rnet state watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Only keys under this name; /arm means /arm and all of /arm/…
    #[arg(default_value = "", hide_default_value = true, value_parser = prefix_or_remote)]
    pub prefix: String,
    /// Omit the values at the start
    #[arg(long)]
    pub changes: bool,
    /// Exit after the first line
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Exit after this many lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Exit after this many seconds; exit code 124 if fewer lines were printed than requested
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// `rnet state dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Only keys under this name
    #[arg(default_value = "", hide_default_value = true, value_parser = prefix)]
    pub prefix: String,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// `rnet state load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// The file [default: stdin]
    pub file: Option<PathBuf>,
    /// Overwrite existing keys, whatever their type
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// A key in its absolute form.
fn key(text: &str) -> Result<String, rnet::Error> {
    if text.starts_with('@') {
        let why =
            "keys of other hosts work only with get, set, cas, del, list and watch".to_owned();
        return Err(rnet::Error::BadName { what: "key", name: text.to_owned(), why });
    }
    Ok(rnet::key_name(text)?.into_owned())
}

/// A key of this host, or `@host/key`.
fn key_or_remote(text: &str) -> Result<String, rnet::Error> {
    match split_host(text) {
        Some((host, there)) => Ok(format!("@{host}{}", key(there)?)),
        None => key(text),
    }
}

/// As [`key_or_remote`], for a prefix of keys.
fn prefix_or_remote(text: &str) -> Result<String, rnet::Error> {
    match split_host(text) {
        Some((host, there)) => Ok(format!("@{host}{}", prefix(there)?)),
        None => prefix(text),
    }
}

/// A prefix of keys: complete names, with or without a trailing slash.
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
        Duration::ZERO => {
            Err("must be above 0 seconds; to delete the key, use rnet state del".to_owned())
        }
        long => Ok(long),
    }
}
