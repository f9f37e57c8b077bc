//! A generated type and its schema.

use rnet::protobuf::ProtobufMessage;
use rnet::schema::{Dynamic, Schema};

/// The schema that travels with messages of this type.
pub fn schema_of<T: ProtobufMessage>() -> Schema {
    Schema::from_descriptor_set(T::SET, T::FULL_NAME).expect("rnet-build made it")
}

/// Encoded by prost, decoded and encoded again without the code, decoded by prost.
#[allow(dead_code)]
pub fn through_dynamic<T: ProtobufMessage>(message: &T) -> T {
    let dynamic = Dynamic::decode(&schema_of::<T>(), &message.encode_to_vec());
    T::decode(&*dynamic.expect("prost made it").encode()).expect("Dynamic made it")
}
