//! Parameters: the settings of a node, which users and other nodes may change while it runs.
//!
//! A parameter is a key of the state, `/params/<node>/<name>`, with all properties of state: it can be read,
//! set, watched and listed by all nodes, and it outlives its node. Its node stores a description under the
//! internal key `!param/<node>/<name>`: type, bounds, choices, unit, text. Every write under `/params/`
//! checks the description in the writing process (`rules`). An invalid value is rejected with the reason and
//! never stored.
//!
//! | file | content |
//! |---|---|
//! | `builder`, `handle`, `types` | [`ParamBuilder`], [`Param`], the supported types |
//! | `description`, `kind`, `refused_value` | the description of a parameter, and the check of its values |
//! | `rules` | the setter's side: whether a write is allowed |
//! | `declare` | the node's side: the value after the declaration |
//! | `list` | all parameters of a domain, for tools |
//! | `param_keys`, `records` | keys and bytes |

mod builder;
mod declare;
mod description;
mod handle;
mod kind;
pub(crate) mod list;
pub(crate) mod param_keys;
mod records;
mod refused_value;
pub(crate) mod rules;
mod types;

pub use builder::ParamBuilder;
pub use description::{MAX_CHOICES, MAX_ITEMS, MAX_TEXT_LEN_BYTES, ParamDescription};
pub use handle::Param;
pub use kind::ParamKind;
pub use list::{ParamInfo, key};
pub use refused_value::RefusedValue;
pub use types::{ParamNumber, ParamText, ParamType};
