//! Descriptions of the headers, for tools that show them or read them from text. Tests compare the table with
//! the page.

use std::ops::Range;

use rnet_core::{Field, PlainHeader, PlainType, Result};

use super::header::{DataHeader, read};
use super::{Image, PointCloud, Tensor};

/// The description of a header of this module.
#[derive(Clone, Debug)]
pub struct HeaderDescription {
    /// The layout of the header.
    pub plain: PlainType,
    /// The message, described in a sentence.
    pub comment: &'static str,
    /// The description of each field, in the order of the layout; fields of nested structs by their path.
    pub fields: &'static [FieldDoc],
    read: fn(&[u8], &mut [u8]) -> Result<Range<usize>>,
}

/// The meaning of a header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldDoc {
    /// `width`; for a field in a nested struct `fields.name`.
    pub path: &'static str,
    /// For people, with the unit.
    pub meaning: &'static str,
    /// How its value is formatted.
    pub form: FieldForm,
}

/// How the value of a field is formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// As numbers.
    Numbers,
    /// As text, padded with zeros.
    Text,
    /// As a time: ns since 1970 UTC, 0 if unknown.
    TimeNs,
    /// As a list: the field of this name has the number of used elements.
    Counted(&'static str),
}

impl HeaderDescription {
    /// All descriptions, sorted by name.
    pub fn all() -> [HeaderDescription; 3] {
        [
            describe::<Image>("An image: rows of pixels, read in place.", IMAGE),
            describe::<PointCloud>("Points in space, read in place.", POINT_CLOUD),
            describe::<Tensor>("Numbers along up to eight dimensions, read in place.", TENSOR),
        ]
    }

    /// The description of this layout, in this version or a later one.
    ///
    /// ```
    /// use rnet::PlainHeader;
    /// use rnet::msgs::plain::{HeaderDescription, Image};
    /// let image = HeaderDescription::find(&Image::header_type()).unwrap();
    /// assert_eq!(image.field("height").unwrap().meaning, "rows");
    /// ```
    pub fn find(plain: &PlainType) -> Option<HeaderDescription> {
        let visible = |plain: &PlainType| -> Vec<Field> {
            plain.fields.iter().filter(|field| !field.is_padding()).cloned().collect()
        };
        let named = Self::all().into_iter().find(|one| one.plain.name == plain.name)?;
        (plain.tail && visible(plain).starts_with(&visible(&named.plain))).then_some(named)
    }

    /// The description of a field.
    pub fn field(&self, path: &str) -> Option<&'static FieldDoc> {
        self.fields.iter().find(|field| field.path == path)
    }

    /// Checks a message like its readers do.
    ///
    /// # Errors
    /// As [`read`].
    pub fn check(&self, message: &[u8]) -> Result<()> {
        self.read(message, &mut []).map(drop)
    }

    /// Copies the checked header of a message to `header`, which may be shorter, or longer and then ends with
    /// zeros. Returns the range of the message that is its data.
    ///
    /// # Errors
    /// As [`read`].
    pub fn read(&self, message: &[u8], header: &mut [u8]) -> Result<Range<usize>> {
        (self.read)(message, header)
    }
}

fn describe<T: DataHeader>(
    comment: &'static str,
    fields: &'static [FieldDoc],
) -> HeaderDescription {
    let read = |message: &[u8], out: &mut [u8]| {
        let (header, _) = read::<T>(message)?;
        let bytes = rnet_shm::plain::bytes_of_header(&header);
        let len = bytes.len().min(out.len());
        out[..len].copy_from_slice(&bytes[..len]);
        out[len..].fill(0);
        Ok(header.data_range())
    };
    HeaderDescription { plain: <T as PlainHeader>::header_type(), comment, fields, read }
}

const fn doc(path: &'static str, meaning: &'static str) -> FieldDoc {
    FieldDoc { path, meaning, form: FieldForm::Numbers }
}

const fn text(path: &'static str, meaning: &'static str) -> FieldDoc {
    FieldDoc { path, meaning, form: FieldForm::Text }
}

const fn time(meaning: &'static str) -> FieldDoc {
    FieldDoc { path: "timestamp_ns", meaning, form: FieldForm::TimeNs }
}

const fn counted(path: &'static str, by: &'static str, meaning: &'static str) -> FieldDoc {
    FieldDoc { path, meaning, form: FieldForm::Counted(by) }
}

const IMAGE: &[FieldDoc] = &[
    time("middle of the exposure, or the best estimate"),
    doc("data_offset", "where the rows start"),
    doc(
        "data_len",
        "at least (height - 1) row_stride + width times the bytes of a pixel, and, with rows, at least row_stride",
    ),
    text("frame_id", "camera optical frame: x right, y down, z into the picture"),
    doc("width", "pixels in a row"),
    doc("height", "rows"),
    doc("row_stride", "bytes between row starts"),
    text("encoding", "as in foxglove.RawImage"),
];

const POINT_CLOUD: &[FieldDoc] = &[
    time("time of the measurement; for a sweep, its start"),
    doc("data_offset", "where the points start"),
    doc("data_len", "at least (height - 1) row_stride + width times point_stride"),
    text("frame_id", "frame of the points"),
    doc("width", "points in a row; if unordered, all"),
    doc("height", "rows; if unordered, 1"),
    doc("point_stride", "bytes between point starts"),
    doc("row_stride", "bytes between row starts"),
    doc("field_count", "fields in use, 1 to 16"),
    doc("flags", "bit 0: some points are NaN"),
    doc("position", "origin of the points in frame_id, m"),
    doc("orientation", "rotation, x y z w; all zeros: no shift and no rotation"),
    counted("fields", "field_count", "the first field_count in use, the others zero"),
    text("fields.name", "x, y, z, intensity, red, green, blue, alpha, or another"),
    doc("fields.offset", "start within a point"),
    doc("fields.type", "foxglove.PackedElementField.NumericType, 1 to 8"),
];

const TENSOR: &[FieldDoc] = &[
    time("time of the content"),
    doc("data_offset", "where the elements start"),
    doc("data_len", "bytes of the elements"),
    text("frame_id", "its frame; empty if meaningless"),
    doc("dtype_code", "as in DLPack: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool"),
    doc("dtype_bits", "8, 16, 32, 64 or 128"),
    doc("dtype_lanes", "1"),
    doc("ndim", "dimensions, 0 to 8"),
    counted("shape", "ndim", "elements per dimension, at least 0; 0 beyond ndim"),
    counted("strides", "ndim", "bytes between elements per dimension, at least 0; 0 beyond ndim"),
];
