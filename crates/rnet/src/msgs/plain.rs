//! Large messages that are not encoded: a header of a fixed layout, and the data itself, read and written in place.
//!
//! docs/design/plain-messages.md draws the headers and says what a reader checks, and in which order.
//!
//! - `header`: what all of them have in common: the trait [`DataHeader`], reading a header that may be hostile;
//! - `image`, `point_cloud`, `tensor`: one file per message, its header and the view of its data;
//! - `number`: the number types of elements, and bytes as slices of them;
//! - `codec`: sending and receiving them;
//! - `foxglove`: the protobuf messages of the same meaning;
//! - `header_description`: what their fields mean, for tools.

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
