//! How a large plain message is sent and received.

use prost::bytes::BufMut;
use rnet_core::Result;

use super::header::{self, DataHeader};
use super::{Image, PointCloud, Tensor};
use crate::MessageType;
use rnet_node::message::MessageCodec;

macro_rules! message {
    ($($type:ty),*) => {$(
        /// A header that says of data is not sent by itself: that would be a black image, a tensor of zeros.
        /// [`send_data`](crate::Publisher::send_data) and [`loan_with`](crate::Publisher::loan_with) send it with its data.
        impl MessageCodec for $type {
            type DecodeBuffer = Self;
            const NEEDS_BYTES: bool = true;
            const READS_EACH_BYTE_ONCE: bool = true;

            fn static_type() -> Result<MessageType> {
                Ok(MessageType::Plain(<$type as rnet_core::PlainHeader>::header_type()))
            }
            fn new_buffer(_: &MessageType) -> Self {
                rnet_shm::plain::zeroed_header()
            }
            fn as_bytes(&self) -> Option<&[u8]> {
                None
            }
            fn check(&self, _: &MessageType) -> std::result::Result<(), String> {
                match self.layout().data_len {
                    0 => Ok(()),
                    len => Err(format!(
                        "the header declares {len} bytes of data, but none are given: use send_data or loan_with"
                    )),
                }
            }
            fn encoded_len(&self) -> usize {
                self.data_range().end
            }
            fn encode(&self, out: &mut impl BufMut) {
                let bytes = rnet_shm::plain::bytes_of_header(self);
                out.put_slice(bytes);
                out.put_bytes(0, self.encoded_len() - bytes.len());
            }
            fn decode(bytes: &[u8], buffer: &mut Self) -> std::result::Result<(), String> {
                *buffer = header::header_of(bytes)?;
                Ok(())
            }
            fn view<'a>(_: &'a [u8], buffer: &'a Self) -> &'a Self {
                buffer
            }
            fn take_buffer(buffer: &mut Self) -> Self {
                *buffer
            }
        }
    )*};
}

message!(Image, PointCloud, Tensor);
