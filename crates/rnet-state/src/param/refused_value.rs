//! A value that a node found when it declared a parameter, and could not take.

use serde::{Deserialize, Serialize};

/// An invalid value that was stored when the node declared the parameter: the node continues with the default. It is
/// kept with the parameter until another value is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusedValue {
    /// The value, as people write it.
    pub value: String,
    /// Why it did not fit, in words that follow the value.
    pub why: String,
    /// The node that had set it.
    pub set_by: String,
}
