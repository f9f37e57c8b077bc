//! A generated type and its schema.

use rnet::Message;
use rnet::protobuf::prost;
use rnet::schema::{Dynamic, Schema};

/// The schema that travels with messages of this type.
pub fn schema_of<T: Message>() -> Schema {
    let message_type = T::message_type().expect("rnet-build made it");
    message_type.schema().expect("a protobuf message").clone()
}

/// Encoded by prost, decoded and encoded again without the code, decoded by prost.
#[allow(dead_code)]
pub fn through_dynamic<T: Message + prost::Message + Default>(message: &T) -> T {
    let dynamic = Dynamic::decode(&schema_of::<T>(), &prost::Message::encode_to_vec(message));
    <T as prost::Message>::decode(&*dynamic.expect("prost made it").encode())
        .expect("Dynamic made it")
}
