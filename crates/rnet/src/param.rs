//! Parameters: the settings of a node, which people and other nodes may change while it runs.
//!
//! A parameter is a key of the state, `/params/<node>/<name>`, and so everything that holds for state holds
//! for it: it can be read, set, watched and listed by everybody, and it outlives the node. What makes it a
//! parameter is the description that its node put beside it, under the internal key `!param/<node>/<name>`:
//! type, bounds, choices, unit, words. Every write of state under `/params/` looks for one and obeys it,
//! in the process that writes, so a value that does not fit is refused to whoever sets it, with the
//! reason, and never arrives.

pub use rnet_state::param::{
    MAX_CHOICES, MAX_ITEMS, MAX_TEXT_LEN_BYTES, Param, ParamBuilder, ParamDescription, ParamInfo,
    ParamKind, ParamNumber, ParamText, ParamType, RefusedValue, key,
};
