//! Checks that the comparison is not empty, and that the fields of the options exist. Otherwise a comparison
//! could pass or fail because of a wrong name.

use rnet::MessageType;
use rnet::schema::FieldPath;

use super::{Comparison, TopicResult};
use crate::read::find_plain_field;
use crate::rerun::error::RerunError;

impl TopicResult {
    /// The topic, or the service or action of these requests or replies.
    fn name(&self) -> &str {
        self.topic.split(' ').next().unwrap_or_default()
    }

    fn is_of_call(&self) -> bool {
        self.name() != self.topic
    }

    /// Whether it has no message that tests the node.
    fn is_empty(&self) -> bool {
        let is_unrecorded = self.unrecorded > 0 && !self.allows_unrecorded;
        self.compared == 0 && self.missing == 0 && !is_unrecorded
    }
}

impl Comparison<'_> {
    /// Checks that the messages have the fields of the options, in the recording or in the re-run, as a field
    /// may be new.
    pub fn check_fields(&self, results: &[TopicResult]) -> Result<(), RerunError> {
        let recorded = self.channels.iter().map(|c| (c.topic.as_str(), c.message_type().ok()));
        let observed =
            self.published_types.values().map(|(topic, ty)| (topic.as_str(), Some(ty.clone())));
        let types: Vec<(&str, Option<MessageType>)> = recorded.chain(observed).collect();
        // The fields of an unreadable type are unknown.
        let has =
            |ty: &Option<MessageType>, field| ty.as_ref().is_none_or(|ty| has_field(ty, field));
        let refused = |field: &str, by: &str, topics: Vec<&str>| {
            let topics = topics.join(", ");
            let text = format!("{by} {field}: messages of {topics} have no field {field:?}");
            RerunError::failed("no_field", text)
        };
        let topics = || results.iter().map(|result| result.topic.as_str());
        for (field, by) in self.options.tolerances.named() {
            if !types.iter().any(|(_, ty)| has(ty, field)) {
                return Err(refused(field, by, topics().collect()));
            }
        }
        let Some(key) = &self.options.key else { return Ok(()) };
        // Calls are paired without the key.
        for topic in results.iter().filter(|of| !of.is_of_call()).map(TopicResult::name) {
            if !types.iter().any(|(of, ty)| *of == topic && has(ty, key)) {
                return Err(refused(key, "--key", vec![topic]));
            }
        }
        Ok(())
    }

    /// Checks that something was compared: on each topic of the options, or on any topic.
    pub fn check_compared(&self, results: &[TopicResult]) -> Result<(), RerunError> {
        let named = &self.options.outputs;
        let lacking: Vec<&str> = match named.is_empty() {
            false => {
                let has =
                    |topic: &str| results.iter().any(|of| of.name() == topic && !of.is_empty());
                let is_lacking = |topic: &&String| !has(topic);
                named.iter().filter(is_lacking).map(String::as_str).collect()
            }
            true if results.iter().all(TopicResult::is_empty) => vec!["any topic"],
            true => Vec::new(),
        };
        if lacking.is_empty() {
            return Ok(());
        }
        let (node, topics, known) =
            (&self.node, lacking.join(", "), self.topics_of_node.join(", "));
        let text = format!(
            "nothing was compared on {topics}: {node} published nothing there after its first input, \
             neither in the recording nor now; in the recording it publishes on {known}"
        );
        Err(RerunError::failed("nothing_compared", text))
    }
}

/// Whether messages of a type have a field of this path, `pose.x` or `legs[2].force`. The keys of a map are
/// unknown.
fn has_field(ty: &MessageType, path: &str) -> bool {
    match ty {
        MessageType::Plain(plain) => {
            path.parse().is_ok_and(|path| find_plain_field(plain, &path).is_ok())
        }
        MessageType::Protobuf(schema) => {
            let at = |end: usize| FieldPath::parse(schema, &path[..end]);
            let mut dots = path.match_indices('.');
            at(path.len()).is_ok() || dots.any(|(dot, _)| at(dot).is_ok_and(|at| at.is_map()))
        }
        MessageType::Raw => false,
    }
}

#[cfg(test)]
mod tests {
    use rnet::schema::compile_text;

    use super::*;

    #[test]
    fn finds_fields_by_path() {
        let text = "syntax = \"proto3\"; message Leg { double force = 1; } \
                    message Robot { repeated Leg legs = 1; Leg tail = 2; map<string, Leg> more = 3; }";
        let ty = MessageType::Protobuf(
            compile_text("robot.proto", text).unwrap().schema("Robot").unwrap(),
        );
        for path in ["legs", "legs[2]", "legs[2].force", "tail.force", "more.any.force"] {
            assert!(has_field(&ty, path), "{path}");
        }
        for path in ["", "leg", "legs[x]", "legs[2].f", "tail.force.x", "tail[0]"] {
            assert!(!has_field(&ty, path), "{path}");
        }
    }
}
