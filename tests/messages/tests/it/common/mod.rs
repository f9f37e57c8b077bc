//! A generated type and its schema.

use rnet::Message;
use rnet::protobuf::prost;
use rnet::schema::{Dynamic, Schema};

/// The schema that travels with messages of this type.
pub fn schema_of<T: Message>() -> Schema {
    let message_type = T::message_type().expect("a generated type has a message type");
    message_type.schema().expect("a protobuf message").clone()
}

/// Encodes with prost, decodes and encodes again without the generated code, and decodes with prost.
#[allow(dead_code)]
pub fn through_dynamic<T: Message + prost::Message + Default>(message: &T) -> T {
    let dynamic = Dynamic::decode(&schema_of::<T>(), &prost::Message::encode_to_vec(message));
    <T as prost::Message>::decode(&*dynamic.expect("cannot decode the bytes of prost").encode())
        .expect("cannot decode the bytes of Dynamic")
}
