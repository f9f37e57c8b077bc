//! `rnet dashboard` and `rnet foxglove`: servers for browsers and viewers. They account for a fifth of the
//! packages that `rnet` needs. `make demo` builds without them (feature `web`), and the command line is the
//! same.

#[cfg(feature = "web")]
mod access;
#[cfg(feature = "web")]
mod dashboard_server;
#[cfg(not(feature = "web"))]
mod disabled;
#[cfg(feature = "web")]
mod foxglove_server;

mod dashboard_args;
mod foxglove_args;

pub use dashboard_args::DashboardArgs;
#[cfg(feature = "web")]
pub use dashboard_server::run as dashboard;
#[cfg(not(feature = "web"))]
pub use disabled::{dashboard, foxglove};
pub use foxglove_args::FoxgloveArgs;
#[cfg(feature = "web")]
pub use foxglove_server::run as foxglove;
