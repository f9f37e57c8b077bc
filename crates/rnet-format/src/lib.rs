//! Messages, values and types as text, the same for commands, recordings and dashboards.
//!
//! - [`value`]: messages and values of the state as JSON, as text and from text;
//! - [`state_dump`]: a dump of the state; [`params`]: files of parameters;
//! - [`yaml`]: YAML as people write it;
//! - [`types`]: message types by name, of `.proto` files and built in, and as text;
//! - [`units`], [`text`], [`xml`]: numbers with units, and text of others on a terminal and in XML;
//! - [`suggestions`]: names that were probably meant.

#![forbid(unsafe_code)]

mod error;
pub mod params;
pub mod state_dump;
pub mod suggestions;
pub mod text;
pub mod types;
pub mod units;
pub mod value;
pub mod xml;
pub mod yaml;

pub use error::{CommandError, Outcome};
