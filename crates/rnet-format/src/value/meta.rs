//! The metadata of messages as JSON.

use rnet::Meta;
use serde_json::{Map, Value as Json, json};

/// The metadata of a message; `None` if it has none. Ids are text, because JSON readers round large numbers.
pub fn meta_json(meta: &Meta) -> Option<Map<String, Json>> {
    let mut fields = Map::new();
    if let Some(origin) = meta.origin {
        let (host, publisher) = (origin.host.to_string(), origin.publisher.to_string());
        let origin = json!({"host": host, "publisher": publisher, "seq": origin.seq});
        fields.insert("origin".to_owned(), origin);
    }
    if let Some(source_ns) = meta.source_ns {
        fields.insert("source_ns".to_owned(), source_ns.into());
    }
    if let Some(correlation) = meta.correlation {
        fields.insert("correlation".to_owned(), correlation.to_string().into());
    }
    if let Some(gap) = meta.gap {
        fields.insert("gap".to_owned(), json!({"cause": gap.cause.name(), "size": gap.size}));
    }
    (!fields.is_empty()).then_some(fields)
}
