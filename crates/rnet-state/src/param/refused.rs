//! A value that a node found when it declared a parameter, and could not take.

use serde_json::{Value as Json, json};

/// What stood at a parameter when its node declared it and did not fit: the node goes on with the
/// default. It stays written beside the parameter until somebody sets another value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The value, as people write it.
    pub value: String,
    /// Why it did not fit, in words that follow the value.
    pub why: String,
    /// The node that had set it.
    pub set_by: String,
}

impl Refused {
    pub(crate) fn to_json(&self) -> Json {
        json!({"value": self.value, "why": self.why, "set_by": self.set_by})
    }

    pub(crate) fn from_json(json: &Json) -> Result<Refused, String> {
        let text = |word: &str| {
            let text = json.get(word).and_then(Json::as_str).map(str::to_owned);
            text.ok_or_else(|| format!("\"refused\" has no text {word:?}"))
        };
        Ok(Refused { value: text("value")?, why: text("why")?, set_by: text("set_by")? })
    }
}
