//! The implementation of `rnet launch robot.toml`: starts the nodes of a robot, keeps them running, and
//! stops them.
//!
//! A node is a child of its **keeper**, a small process that the launcher starts and that outlives it. The
//! keeper writes the node's output to its log, records the node's state in a file ([`Record`]), and stops
//! the node on request. All state of the launcher ([`Launcher`]) is in these files: it may be killed and
//! restarted at any time. The design page is docs/design/launch.md.
#![forbid(unsafe_code)]

mod control;
mod dependency_order;
mod error;
mod file;
mod identity;
mod keeper;
mod launcher;
mod log;
mod node;
mod record;
mod requirements;
mod restart_policy;
mod run_folder;
mod slot;
mod stop;

pub use control::{LaunchedNode, StopOutcome};
pub use error::LaunchError;
pub use file::{LaunchOptions, Plan, load};
pub use identity::{has_exited, session, signal};
pub use keeper::{Keeper, KeeperReply, KeeperRequest, StopSignals};
pub use launcher::{LaunchOutcome, Launcher, LauncherContext};
pub use node::{Limits, LogLimits, Node, OWN_PROGRAM, ParamValue, Process, Ready, Scheduler};
pub use record::{End, Record};
pub use restart_policy::{ExitHistory, RestartDecision, RestartPolicy, RestartWhen};
pub use run_folder::RunFolder;
pub use slot::NodeStatus;

/// The result of a launch operation.
pub type Result<T> = std::result::Result<T, LaunchError>;
