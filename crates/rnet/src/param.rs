//! Parameters: the settings of a node, which people and other nodes may change while it runs.
//!
//! A parameter is a key of the state, `/params/<node>/<name>`, so everything that holds for state holds for
//! it: everybody can read, set, watch and list it, and it outlives the node. It is a parameter because its
//! node stored a description under the internal key `!param/<node>/<name>`: type, bounds, choices, unit,
//! text. Every write of state under `/params/` checks the description in the writing process, so an invalid
//! value is rejected with the reason and is not stored.

pub use rnet_state::param::{
    MAX_CHOICES, MAX_ITEMS, MAX_TEXT_LEN_BYTES, Param, ParamBuilder, ParamDescription, ParamInfo,
    ParamKind, ParamNumber, ParamText, ParamType, RefusedValue, key,
};
