//! A value that a node found when it declared a parameter, and could not take.

use serde::{Deserialize, Serialize};

/// What stood at a parameter when its node declared it and did not fit: the node goes on with the
/// default. It stays written beside the parameter until somebody sets another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Refused {
    /// The value, as people write it.
    pub value: String,
    /// Why it did not fit, in words that follow the value.
    pub why: String,
    /// The node that had set it.
    pub set_by: String,
}
