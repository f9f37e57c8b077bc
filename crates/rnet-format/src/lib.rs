//! Messages, values and types as text, the same for commands, recordings and dashboards.
//!
//! - [`value`]: messages and state values as JSON, as text and from text;
//! - [`state_dump`]: a dump of the state; [`params`]: parameter files;
//! - [`yaml`]: YAML as people write it;
//! - [`types`]: message types by name, from `.proto` files and built in, and as text;
//! - [`units`], [`text`], [`xml`]: numbers with units, and untrusted text on a terminal and in XML;
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

pub use error::{Failure, Outcome};
pub use rnet_core::{float_from_json, float_to_json};
