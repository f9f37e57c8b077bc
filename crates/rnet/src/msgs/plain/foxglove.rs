//! The protobuf messages of the same meaning, for recorders and viewers, and the way back.
//!
//! docs/design/plain-messages.md has the tables, field by field.

use std::borrow::Cow;
use std::sync::LazyLock;

use rnet_core::{Error, PlainHeader, Result};
use rnet_schema::Schema;

use super::header::{self, bad_header, data_len_of, read};
use super::{DataHeader, Image, ImageView, NumberType, PointCloud, PointCloudView, PointField};
use crate::msgs::foxglove;
use crate::msgs::{Timestamp, timestamp_from_ns, timestamp_to_ns};
use crate::{Message, MessageType};

/// Of images and of point clouds. A recorder asks for each message of any plain type.
static NAMES: LazyLock<[String; 2]> =
    LazyLock::new(|| [Image::header_type().name, PointCloud::header_type().name]);

/// A plain message as the protobuf message of the same meaning: its type, and its bytes. `None` if there is none for this type, which is
/// to be recorded as it is.
///
/// `type_name` is that of the publisher's type: `rnet.msgs.Image`.
///
/// # Errors
/// `BadValue` if the message is not of this type, with the field and the value that cannot be.
///
/// ```
/// use rnet::msgs::plain::{Image, to_protobuf};
/// let mut message = Image::new(1, 1, "mono8")?.header_bytes().to_vec();
/// message.push(9);
/// let (schema, bytes) = to_protobuf("rnet.msgs.Image", &message)?.expect("there is one");
/// let image = rnet::schema::Dynamic::decode(&schema, &bytes).expect("its own bytes");
/// assert_eq!((schema.name(), bytes.len()), ("foxglove.RawImage", 25));
/// assert!(to_protobuf("rnet.msgs.Tensor", &message)?.is_none());
/// # drop(image);
/// # Ok::<(), rnet::Error>(())
/// ```
pub fn to_protobuf(type_name: &str, message: &[u8]) -> Result<Option<(Schema, Vec<u8>)>> {
    let [image, cloud] = &*NAMES;
    if type_name == image {
        let (header, data) = read::<Image>(message)?;
        return encoded(&header.with_data(data).to_foxglove()).map(Some);
    }
    if type_name == cloud {
        let (header, data) = read::<PointCloud>(message)?;
        return encoded(&header.with_data(data).to_foxglove()).map(Some);
    }
    Ok(None)
}

fn encoded<M: Message + prost::Message>(message: &M) -> Result<(Schema, Vec<u8>)> {
    match M::message_type()? {
        MessageType::Protobuf(schema) => Ok((schema, message.encode_to_vec())),
        other => {
            Err(Error::bad_value("type of a built-in message", format!("it is {}", other.desc())))
        }
    }
}

fn to_timestamp(timestamp_ns: i64) -> Option<Timestamp> {
    (timestamp_ns != 0).then(|| timestamp_from_ns(timestamp_ns))
}

fn from_timestamp<T: PlainHeader>(timestamp: Option<&Timestamp>) -> Result<i64> {
    let Some(timestamp) = timestamp else { return Ok(0) };
    timestamp_to_ns(timestamp)
        .ok_or_else(|| bad_header::<T>(format!("{timestamp:?} does not fit into 64 bits of ns")))
}

impl ImageView<'_> {
    /// The image as `foxglove.RawImage`. Nothing is lost.
    pub fn to_foxglove(&self) -> foxglove::RawImage {
        let image = self.header;
        // No more than twice the data, and as long as a message may be, at most: the check of the header saw to that.
        let len = u64::from(image.height) * u64::from(image.row_stride);
        let mut data = self.data[..self.data.len().min(len as usize)].to_vec();
        data.resize(len as usize, 0);
        foxglove::RawImage {
            timestamp: to_timestamp(image.timestamp_ns),
            frame_id: image.frame_id().to_owned(),
            width: image.width,
            height: image.height,
            encoding: image.encoding().to_owned(),
            step: image.row_stride,
            data,
        }
    }
}

impl Image {
    /// The header of a `foxglove.RawImage`, whose `data` is that of the image.
    ///
    /// # Errors
    /// `BadValue`: texts that are too long, rows that do not fit into the data.
    pub fn from_foxglove(image: &foxglove::RawImage) -> Result<Self> {
        let mut plain: Self = rnet_shm::plain::zeroed_header();
        plain.timestamp_ns = from_timestamp::<Self>(image.timestamp.as_ref())?;
        plain.data_offset = size_of::<Self>() as u64;
        plain.data_len = data_len_of::<Self>(image.data.len() as u128)?;
        (plain.width, plain.height, plain.row_stride) = (image.width, image.height, image.step);
        plain.encoding = header::set_text::<Self, 32>("encoding", &image.encoding)?;
        let plain = plain.with_frame_id(&image.frame_id)?;
        plain.check().map_err(bad_header::<Self>)?;
        Ok(plain)
    }
}

impl<'a> PointCloudView<'a> {
    /// The cloud as `foxglove.PointCloud`. Lost is that its points stood in rows, and whether some are NaN.
    pub fn to_foxglove(&self) -> foxglove::PointCloud {
        let cloud = self.header;
        let (position, orientation) = cloud.pose();
        let [x, y, z] = position;
        let position = Some(foxglove::Vector3 { x, y, z });
        let [x, y, z, w] = orientation;
        let orientation = Some(foxglove::Quaternion { x, y, z, w });
        let fields = cloud.fields().iter().map(|field| foxglove::PackedElementField {
            name: field.name().to_owned(),
            offset: field.offset(),
            r#type: field.r#type as i32,
        });
        foxglove::PointCloud {
            timestamp: to_timestamp(cloud.timestamp_ns),
            frame_id: cloud.frame_id().to_owned(),
            pose: Some(foxglove::Pose { position, orientation }),
            point_stride: cloud.point_stride,
            fields: fields.collect(),
            data: self.packed().into_owned(),
        }
    }

    /// The points without what lies between the rows.
    fn packed(&self) -> Cow<'a, [u8]> {
        let (cloud, row) = (self.header, self.header.row_len());
        if u64::from(cloud.row_stride) == row || cloud.height == 1 {
            let len = u64::from(cloud.height) * row;
            return Cow::Borrowed(self.data.get(..len as usize).unwrap_or_default());
        }
        // Rows of nothing are many and give nothing.
        let rows = if row == 0 { 0 } else { cloud.height };
        let rows = (0..rows).map_while(|y| self.row(y));
        let mut packed = Vec::with_capacity((u64::from(cloud.height) * row) as usize);
        rows.for_each(|row| packed.extend_from_slice(row));
        Cow::Owned(packed)
    }
}

impl PointCloud {
    /// The header of a `foxglove.PointCloud`, whose `data` is that of the cloud: one row of points.
    ///
    /// # Errors
    /// `BadValue`: no or more than 16 fields, texts that are too long, fields outside of the point, data that is no whole number of
    /// points.
    pub fn from_foxglove(cloud: &foxglove::PointCloud) -> Result<Self> {
        let mut fields = Vec::with_capacity(cloud.fields.len());
        for field in &cloud.fields {
            let ty = u32::try_from(field.r#type).ok().and_then(NumberType::from_value);
            let ty = ty.ok_or_else(|| {
                let (name, ty) = (&field.name, field.r#type);
                bad_header::<Self>(format!("field {name:?} has type {ty}; 1 to 8 are supported"))
            })?;
            fields.push(PointField::new(&field.name, field.offset, ty)?);
        }
        let len = cloud.data.len();
        let stride = cloud.point_stride as usize;
        if stride == 0 || !len.is_multiple_of(stride) {
            return Err(bad_header::<Self>(format!(
                "{len} bytes of data are not a whole number of points of {stride} bytes"
            )));
        }
        let width = u32::try_from(len / stride).map_err(|_| {
            bad_header::<Self>(format!("{} points in one row exceed the limit", len / stride))
        })?;
        let mut plain = Self::with_layout(width, 1, &fields, cloud.point_stride)?
            .with_frame_id(&cloud.frame_id)?;
        plain.timestamp_ns = from_timestamp::<Self>(cloud.timestamp.as_ref())?;
        // Unset is not shifted and not turned, in each of its parts, too.
        if let Some(pose) = &cloud.pose {
            let at = pose.position.unwrap_or_default();
            let turn = pose.orientation.unwrap_or_default();
            let turn = [turn.x, turn.y, turn.z, turn.w];
            let turn = if turn == [0.0; 4] { [0.0, 0.0, 0.0, 1.0] } else { turn };
            plain = plain.with_pose([at.x, at.y, at.z], turn);
        }
        Ok(plain)
    }
}
