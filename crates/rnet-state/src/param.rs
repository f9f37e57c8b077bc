//! Parameters: the settings of a node, which people and other nodes may change while it runs.
//!
//! A parameter is a key of the state, `/params/<node>/<name>`, and so everything that holds for state holds
//! for it: it can be read, set, watched and listed by everybody, and it outlives the node. What makes it a
//! parameter is the description that its node put beside it, under the internal key `!param/<node>/<name>`:
//! type, bounds, choices, unit, words. Every write of state under `/params/` looks for one and obeys it,
//! in the process that writes (`rules`), so a value that does not fit is refused to whoever sets it, with the
//! reason, and never arrives.
//!
//! | file | what |
//! |---|---|
//! | `builder`, `handle`, `types` | [`ParamBuilder`], [`Param`], the types that it can be |
//! | `description`, `kind`, `refused_value` | what may be said of a parameter, and what follows for its values |
//! | `rules` | the setter's side: is this write allowed? |
//! | `declare` | the node's side: what is its value now? |
//! | `list` | all parameters of a domain, for tools |
//! | `param_keys`, `records` | keys and bytes |

mod builder;
mod declare;
mod description;
mod handle;
mod kind;
pub(crate) mod list;
mod param_keys;
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
