//! What `rnet launch robot.toml` does: starts the nodes of a robot, keeps them running, and stops them.
//!
//! A node is a child of its **keeper**, a small process that the launcher starts and that outlives it. The keeper
//! writes the node's output to its log, says in a file how the node is ([`Record`]), and stops the node
//! when it is told to. The launcher ([`Launcher`]) knows nothing that does not stand in these files: it may be killed and started
//! again at any time. The design page is docs/design/launch.md.

mod control;
mod error;
mod file;
mod identity;
mod keeper;
mod launcher;
mod log;
mod requirements;
mod node;
mod dependency_order;
mod run_folder;
mod policy;
mod record;
mod slot;
mod stop;

pub use control::{LaunchedNode, StopOutcome};
pub use error::LaunchError;
pub use file::{LaunchOptions, Plan, load};
pub use identity::{has_exited, session, signal};
pub use keeper::{KeeperReply, Keeper, KeeperRequest, StopSignals};
pub use launcher::{Launcher, LaunchOutcome, LauncherContext};
pub use node::{Limits, LogLimits, Node, OWN_PROGRAM, ParamValue, Process, Ready, Scheduler};
pub use run_folder::RunFolder;
pub use policy::{ExitHistory, RestartPolicy, RestartDecision, RestartWhen};
pub use record::{End, Record};
pub use slot::NodeStatus;

/// What failed, or what came of it.
pub type Result<T> = std::result::Result<T, LaunchError>;
