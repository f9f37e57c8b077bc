//! Point clouds: points of named fields, in rows or without order.

use std::fmt;

use rnet_core::{Error, Result};

use super::header::{
    self, DataHeader, DataLayout, bad_header, check_rows, check_text, common_header, data_len_of,
    row_of, set_text, text,
};
use super::number::{Number, NumberType};

/// Most fields of a point.
const MAX_FIELDS: usize = 16;
/// Bit of `flags`: some points are NaN.
const SOME_NAN: u32 = 1;

/// The header of a point cloud; its points follow.
///
/// ```
/// use rnet::msgs::plain::{NumberType, PointCloud, DataHeader};
/// let fields = [("x", NumberType::F32), ("y", NumberType::F32), ("z", NumberType::F32)];
/// let cloud = PointCloud::new(2, 1, &fields)?.with_frame_id("lidar")?;
/// let data: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|n| n.to_le_bytes()).collect();
/// let points = cloud.with_data(&data);
/// assert_eq!(points.values::<f32>("y")?.collect::<Vec<_>>(), [2.0, 5.0]);
/// # Ok::<(), rnet::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, crate::Plain)]
#[plain(name = "rnet.msgs.PointCloud", tail)]
#[repr(C)]
pub struct PointCloud {
    pub(super) timestamp_ns: i64,
    pub(super) data_offset: u64,
    pub(super) data_len: u64,
    _reserved0: u64,
    pub(super) frame_id: [u8; 64],
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) point_stride: u32,
    pub(super) row_stride: u32,
    pub(super) field_count: u32,
    pub(super) flags: u32,
    _reserved1: u64,
    pub(super) position: [f64; 3],
    pub(super) orientation: [f64; 4],
    _reserved2: u64,
    pub(super) fields: [PointField; MAX_FIELDS],
}

/// A field of the points of a [`PointCloud`].
#[derive(Clone, Copy, PartialEq, crate::Plain)]
#[plain(name = "Field")]
#[repr(C)]
pub struct PointField {
    pub(super) name: [u8; 32],
    pub(super) offset: u32,
    pub(super) r#type: u32,
}

impl PointField {
    /// A field that starts `offset` bytes into a point.
    ///
    /// # Errors
    /// `BadValue`: a name of no or more than 32 bytes, or with a zero inside.
    pub fn new(name: &str, offset: u32, ty: NumberType) -> Result<Self> {
        if name.is_empty() {
            return Err(bad_header::<PointCloud>("a field has no name".to_owned()));
        }
        let name = set_text::<PointCloud, 32>("field name", name)?;
        Ok(Self { name, offset, r#type: ty as u32 })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        text(&self.name)
    }

    /// Where it starts within a point, in bytes.
    pub fn offset(&self) -> u32 {
        self.offset
    }

    /// The type of its number; `None` for one of a later version.
    pub fn number_type(&self) -> Option<NumberType> {
        NumberType::from_value(self.r#type)
    }
}

impl PointCloud {
    /// A cloud whose points are these fields one after the other, without gaps. Its data is to be `height` rows of `width` points;
    /// without order `height` is 1.
    ///
    /// # Errors
    /// `BadValue`: none or more than 16 fields, names that do not fit or are there twice, more data than a message may have.
    pub fn new(width: u32, height: u32, fields: &[(&str, NumberType)]) -> Result<Self> {
        let mut placed = Vec::with_capacity(fields.len());
        let mut point_stride = 0_u32;
        for (name, ty) in fields {
            placed.push(PointField::new(name, point_stride, *ty)?);
            point_stride = point_stride.saturating_add(ty.size() as u32);
        }
        Self::with_layout(width, height, &placed, point_stride)
    }

    /// A cloud whose points start every `point_stride` bytes and have these fields.
    ///
    /// # Errors
    /// As [`PointCloud::new`]; and for a field that does not lie within the point.
    pub fn with_layout(
        width: u32,
        height: u32,
        fields: &[PointField],
        point_stride: u32,
    ) -> Result<Self> {
        if fields.is_empty() || fields.len() > MAX_FIELDS {
            let why = format!("{} fields; a point has 1 to {MAX_FIELDS}", fields.len());
            return Err(bad_header::<Self>(why));
        }
        let row = u64::from(width) * u64::from(point_stride);
        let row_stride = u32::try_from(row).map_err(|_| {
            let most = u32::MAX;
            bad_header::<Self>(format!("a row of {row} bytes; at most {most} fit; use more rows"))
        })?;
        let mut cloud = Self {
            width,
            height,
            point_stride,
            row_stride,
            field_count: fields.len() as u32,
            ..rnet_shm::plain::zeroed_header()
        };
        cloud.fields[..fields.len()].copy_from_slice(fields);
        cloud.data_offset = size_of::<Self>() as u64;
        cloud.data_len = data_len_of::<Self>(u128::from(height) * u128::from(row_stride))?;
        cloud.check_own().map_err(bad_header::<Self>)?;
        Ok(cloud)
    }

    /// With the place of the points' origin in `frame_id` (m), and how it is turned (x y z w).
    #[must_use]
    pub fn with_pose(mut self, position: [f64; 3], orientation: [f64; 4]) -> Self {
        (self.position, self.orientation) = (position, orientation);
        self
    }

    /// Says that some points are NaN.
    #[must_use]
    pub fn with_nan(mut self) -> Self {
        self.flags |= SOME_NAN;
        self
    }

    /// Points in a row; of a cloud without order, all.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows; of a cloud without order, 1.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// From a point to the next, in bytes.
    pub fn point_stride(&self) -> u32 {
        self.point_stride
    }

    /// From the start of a row to that of the next, in bytes.
    pub fn row_stride(&self) -> u32 {
        self.row_stride
    }

    /// The fields of a point.
    pub fn fields(&self) -> &[PointField] {
        &self.fields[..(self.field_count as usize).min(MAX_FIELDS)]
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&PointField> {
        self.fields().iter().find(|field| field.name() == name)
    }

    /// Whether some points are NaN.
    pub fn has_nan(&self) -> bool {
        self.flags & SOME_NAN != 0
    }

    /// Where the points' origin lies in `frame_id` (m), and how it is turned (x y z w).
    pub fn pose(&self) -> ([f64; 3], [f64; 4]) {
        if self.orientation == [0.0; 4] {
            return ([0.0; 3], [0.0, 0.0, 0.0, 1.0]);
        }
        (self.position, self.orientation)
    }

    /// Bytes of the points of a row.
    pub(super) fn row_len(&self) -> u64 {
        u64::from(self.width) * u64::from(self.point_stride)
    }

    /// How many rows, bytes of the points of one, and from one to the next.
    fn rows(&self) -> (u32, u64, u32) {
        (self.height, self.row_len(), self.row_stride)
    }

    fn check_own(&self) -> std::result::Result<(), String> {
        let count = self.field_count as usize;
        if count == 0 || count > MAX_FIELDS {
            return Err(format!("field_count is {count}; a point has 1 to {MAX_FIELDS}"));
        }
        for (index, field) in self.fields().iter().enumerate() {
            check_text(&format!("name of field {index}"), &field.name)?;
            let name = field.name();
            if name.is_empty() {
                return Err(format!("field {index} has no name"));
            }
            if self.fields()[..index].iter().any(|before| before.name == field.name) {
                return Err(format!("two fields are named {name:?}"));
            }
            let ty = field.number_type().ok_or_else(|| {
                format!("field {name:?} has type {}; 1 to 8 are supported", field.r#type)
            })?;
            if u64::from(field.offset) + ty.size() as u64 > u64::from(self.point_stride) {
                return Err(format!(
                    "field {name:?} at {} does not lie within point_stride {}",
                    field.offset, self.point_stride
                ));
            }
        }
        check_rows(self.rows(), self.data_len, "points")
    }
}

/// A point cloud and its points.
#[derive(Clone, Copy)]
pub struct PointCloudView<'a> {
    pub(super) header: &'a PointCloud,
    pub(super) data: &'a [u8],
}

common_header!(PointCloud, PointCloudView, 832);

impl<'a> PointCloudView<'a> {
    /// The bytes of the points of row `y`. `None` beyond the last.
    pub fn row(&self, y: u32) -> Option<&'a [u8]> {
        row_of(self.data, y, self.header.rows())
    }

    /// The bytes of each point, row by row.
    pub fn points(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let view = *self;
        // A cloud of no width has no rows to go through, however many it says.
        let rows = if self.header.width == 0 { 0 } else { self.header.height };
        let stride = self.header.point_stride as usize;
        (0..rows).map_while(move |y| view.row(y)).flat_map(move |row| row.chunks_exact(stride))
    }

    /// The values of one field, point by point.
    ///
    /// # Errors
    /// `BadValue`: no such field, or it is of another type than `T`.
    pub fn values<T: Number>(&self, name: &str) -> Result<impl Iterator<Item = T> + use<'a, T>> {
        let at = self.offset_of::<T>(name)?;
        Ok(self.points().map(move |point| T::read(point.get(at..).unwrap_or_default())))
    }

    /// Where the points are, m: the fields `x`, `y` and `z`, which are to be `f32`.
    ///
    /// # Errors
    /// `BadValue`: one of them is not there, or is of another type.
    pub fn xyz(&self) -> Result<impl Iterator<Item = [f32; 3]> + use<'a>> {
        let at =
            [self.offset_of::<f32>("x")?, self.offset_of::<f32>("y")?, self.offset_of::<f32>("z")?];
        let read = |point: &[u8], at: usize| f32::read(point.get(at..).unwrap_or_default());
        Ok(self.points().map(move |point| at.map(|at| read(point, at))))
    }

    fn offset_of<T: Number>(&self, name: &str) -> Result<usize> {
        let wrong = |why: String| Error::bad_value(format!("field {name:?} of a cloud"), why);
        let field = self.header.field(name).ok_or_else(|| {
            let names: Vec<&str> = self.header.fields().iter().map(PointField::name).collect();
            wrong(format!("it has {}", names.join(", ")))
        })?;
        if field.number_type() != T::TYPE {
            let (ours, asked) = (field.number_type(), std::any::type_name::<T>());
            return Err(wrong(format!("it is {ours:?}, but {asked} was requested")));
        }
        Ok(field.offset as usize)
    }
}

impl fmt::Debug for PointField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} of type {}", self.name(), self.offset, self.r#type)
    }
}

impl fmt::Debug for PointCloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DataLayout { data_len, .. } = self.layout();
        write!(
            f,
            "PointCloud({} x {} of {:?}, {data_len} bytes, frame {:?}, {} ns)",
            self.width,
            self.height,
            self.fields(),
            self.frame_id(),
            self.timestamp_ns
        )
    }
}
