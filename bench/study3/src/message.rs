//! The study's message.

/// Its topic. The study's code uses a word like this; robot-net allows no `-` in it.
pub const TOPIC: &str = "test_topic";

/// The study's message: a protobuf message with one text, "nats pubsub" for all systems. The study encodes it
/// again for each message, as part of the measurement; so does this. The study does it with prost. Here it is
/// done by hand, to the same bytes, as there is one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestMessage {
    /// Field 1.
    pub content: String,
}

impl TestMessage {
    /// The message that all functions publish.
    pub fn new() -> Self {
        Self { content: "nats pubsub".into() }
    }

    /// The message in protobuf's wire format: key, length, text.
    pub fn encode_to_vec(&self) -> Vec<u8> {
        let text = self.content.as_bytes();
        let mut bytes = Vec::with_capacity(text.len() + 11);
        // Field 1 of wire type 2, "length-delimited".
        bytes.push(1 << 3 | 2);
        let mut len = text.len();
        while len >= 0x80 {
            bytes.push(len as u8 | 0x80);
            len >>= 7;
        }
        bytes.push(len as u8);
        bytes.extend_from_slice(text);
        bytes
    }
}

impl Default for TestMessage {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_protobuf() {
        assert_eq!(TestMessage::new().encode_to_vec(), b"\x0a\x0bnats pubsub");
        let long = TestMessage { content: "x".repeat(300) };
        assert_eq!(long.encode_to_vec()[..4], [0x0a, 0xac, 0x02, b'x']);
    }
}
