//! Large messages without encoding: a header with a fixed layout, and the data, read and written in place.
//!
//! docs/design/plain-messages.md draws the headers and specifies the checks of a reader, in order.
//!
//! - `header`: the common parts of all of them: the trait [`DataHeader`], reading an untrusted header;
//! - `image`, `point_cloud`, `tensor`: one file per message, its header and the view of its data;
//! - `number`: the number types of elements, and bytes as slices of them;
//! - `codec`: sending and receiving them;
//! - `foxglove`: the equivalent protobuf messages;
//! - `header_description`: the meaning of their fields, for tools.

mod codec;
mod foxglove;
mod header;
mod header_description;
mod image;
mod number;
mod point_cloud;
mod tensor;

pub use foxglove::to_protobuf;
pub use header::{DataHeader, DataLayout, read};
pub use header_description::{FieldDoc, FieldForm, HeaderDescription};
pub use image::{Image, ImageView, Pixels};
pub use number::{Number, NumberType};
pub use point_cloud::{PointCloud, PointCloudView, PointField};
pub use tensor::{DType, Tensor, TensorView};

pub use rnet_node::typed::data_loan::DataLoan;

#[cfg(test)]
mod tests;
