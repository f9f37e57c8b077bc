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
mod machine;
mod node;
mod order;
mod place;
mod policy;
mod record;
mod slot;
mod stop;

pub use control::{Control, Stopped};
pub use error::LaunchError;
pub use file::{Choices, Plan, load};
pub use identity::{has_ended, session, signal};
pub use keeper::{Answer, Keeper, KeeperOrder, Signals};
pub use launcher::{Launcher, Outcome, Surroundings};
pub use node::{Limits, LogLimits, Node, OWN_PROGRAM, ParamValue, Process, Ready, Scheduler};
pub use place::RunFolder;
pub use policy::{History, Policy, Verdict, When};
pub use record::{End, Record};
pub use slot::Status;

/// What failed, or what came of it.
pub type Result<T> = std::result::Result<T, LaunchError>;
