//! Commands: a topic whose receiver accepts one driver at a time, and applies a safe fallback when that
//! driver falls silent (docs/design/commands.md).

mod authority;
mod builder;
mod driver;
mod fallback_reason;
mod receiver;
mod receiver_wait;
mod shared;
mod status_reporter;

use std::time::Duration;

use rnet_core::{Error, Result, TopicName};

pub use builder::{Command, CommandBuilder};
pub use driver::{DriveBuilder, Driver, HIGHEST_PRIORITY};
pub use fallback_reason::FallbackReason;
pub use receiver::CommandStats;
#[doc(hidden)]
pub use receiver::StillValid;

const MIN_TIME: Duration = Duration::from_millis(1);
const MAX_COMMAND_TIME: Duration = Duration::from_secs(3600);

/// The service with which drivers request authority.
fn authority_of(topic: &str) -> Result<TopicName> {
    TopicName::new(&format!("{topic}{AUTHORITY_SUFFIX}"))
}

/// The command whose authority this service grants; `None` for another service.
#[doc(hidden)]
pub fn command_of_authority(service: &str) -> Option<&str> {
    service.strip_suffix(AUTHORITY_SUFFIX).filter(|command| !command.is_empty())
}

const AUTHORITY_SUFFIX: &str = "/authority";
const COMMAND_ROOT: &str = "/_rnet/command";
const STATUS_TOPIC_SUFFIX: &str = "/status";
const LOG_TOPIC_SUFFIX: &str = "/log";

/// The topic on which the receiver of a command publishes the current driver, as
/// [`crate::msgs::CommandStatus`].
pub fn command_status_topic(topic: &str) -> String {
    format!("{COMMAND_ROOT}{topic}{STATUS_TOPIC_SUFFIX}")
}

/// The audit trail of a command: [`crate::msgs::CommandEvent`].
pub fn command_log_topic(topic: &str) -> String {
    format!("{COMMAND_ROOT}{topic}{LOG_TOPIC_SUFFIX}")
}

/// The command with this [`command_status_topic`].
pub fn command_of_status(topic: &str) -> Option<&str> {
    let command = topic.strip_prefix(COMMAND_ROOT)?.strip_suffix(STATUS_TOPIC_SUFFIX)?;
    (!command.is_empty()).then_some(command)
}

/// The command with this status or audit trail.
#[doc(hidden)]
pub fn command_of_report(topic: &str) -> Option<&str> {
    let of_log = || topic.strip_prefix(COMMAND_ROOT)?.strip_suffix(LOG_TOPIC_SUFFIX);
    command_of_status(topic).or_else(of_log).filter(|command| !command.is_empty())
}

fn check_time(what: &str, time: Duration) -> Result<()> {
    if (MIN_TIME..=MAX_COMMAND_TIME).contains(&time) {
        return Ok(());
    }
    let why = format!("it is {time:?}; it must be 1 ms to 1 h");
    Err(Error::bad_value(format!("{what} of a command"), why))
}
