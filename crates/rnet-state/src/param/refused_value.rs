//! The invalid value that a node found when it declared a parameter.

use serde::{Deserialize, Serialize};

/// An invalid value that was stored when the node declared the parameter: the node continues with the
/// default. It is kept with the parameter until another value is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusedValue {
    /// The value for display.
    pub value: String,
    /// The reason, which follows the value in a sentence.
    pub why: String,
    /// The node that set it.
    pub set_by: String,
}
