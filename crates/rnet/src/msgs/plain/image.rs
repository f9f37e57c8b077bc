//! Images: rows of pixels.

use std::fmt;

use rnet_core::limits::MAX_MESSAGE_LEN_BYTES;
use rnet_core::{Error, Result};

use super::header::{
    self, DataHeader, DataLayout, bad_header, check_rows, check_text, common_header, data_len_of,
    row_of, set_text, text,
};
use super::number::{Number, NumberType, numbers};

/// The header of an image; its rows follow.
///
/// ```
/// use rnet::msgs::plain::{Image, DataHeader};
/// let image = Image::new(640, 480, "rgb8")?.with_frame_id("camera")?.with_timestamp_ns(1);
/// assert_eq!((image.row_stride(), image.data_len_bytes()), (1920, 921_600));
/// let data = vec![0; image.data_len_bytes()];
/// let pixels = image.with_data(&data);
/// assert_eq!(pixels.pixels::<u8>()?.at(639, 479), Some(&[0, 0, 0][..]));
/// # Ok::<(), rnet::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, crate::Plain)]
#[plain(name = "rnet.msgs.Image", tail)]
#[repr(C)]
pub struct Image {
    pub(super) timestamp_ns: i64,
    pub(super) data_offset: u64,
    pub(super) data_len: u64,
    _reserved0: u64,
    pub(super) frame_id: [u8; 64],
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) row_stride: u32,
    _reserved1: u32,
    pub(super) encoding: [u8; 32],
    _reserved2: [u8; 48],
}

/// What a pixel of an encoding is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pixel {
    element: NumberType,
    channels: u32,
}

impl Pixel {
    fn of(encoding: &str) -> Option<Self> {
        let (element, channels) = match encoding {
            "mono8" | "8UC1" | "bayer_rggb8" | "bayer_bggr8" | "bayer_gbrg8" | "bayer_grbg8" => {
                (NumberType::U8, 1)
            }
            "mono16" | "16UC1" => (NumberType::U16, 1),
            "32FC1" => (NumberType::F32, 1),
            "rgb8" | "bgr8" | "8UC3" => (NumberType::U8, 3),
            "rgba8" | "bgra8" => (NumberType::U8, 4),
            "yuv422" | "uyvy" | "yuv422_yuy2" | "yuyv" => (NumberType::U8, 2),
            _ => return None,
        };
        Some(Self { element, channels })
    }

    fn bytes(self) -> u64 {
        self.element.size() as u64 * u64::from(self.channels)
    }
}

impl Image {
    /// An image without gaps between its rows. Its data is to be `height` rows of `width` pixels.
    ///
    /// # Errors
    /// `BadValue`: an encoding that is not in the table of docs/design/plain-messages.md ([`Image::with_rows`] takes any), or more data
    /// than a message may have.
    pub fn new(width: u32, height: u32, encoding: &str) -> Result<Self> {
        let pixel = Pixel::of(encoding).ok_or_else(|| {
            bad_header::<Self>(format!(
                "the pixel size of encoding {encoding:?} is unknown; specify the row length"
            ))
        })?;
        let row = u64::from(width) * pixel.bytes();
        let row_stride = u32::try_from(row).map_err(|_| {
            bad_header::<Self>(format!("a row of {row} bytes; at most {} fit", u32::MAX))
        })?;
        Self::with_rows(width, height, encoding, row_stride)
    }

    /// An image whose rows start every `row_stride` bytes. Its data is to be `height` times `row_stride` bytes long.
    ///
    /// # Errors
    /// `BadValue`: an encoding of more than 32 bytes, rows that are shorter than their pixels, more data than a message may have.
    pub fn with_rows(width: u32, height: u32, encoding: &str, row_stride: u32) -> Result<Self> {
        let mut image = Self {
            width,
            height,
            row_stride,
            encoding: set_text::<Self, 32>("encoding", encoding)?,
            ..rnet_shm::plain::zeroed_header()
        };
        image.data_offset = size_of::<Self>() as u64;
        image.data_len = data_len_of::<Self>(u128::from(height) * u128::from(row_stride))?;
        image.check_own().map_err(bad_header::<Self>)?;
        Ok(image)
    }

    /// Pixels in a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// From the start of a row to that of the next, in bytes.
    pub fn row_stride(&self) -> u32 {
        self.row_stride
    }

    /// What a pixel is, by the names of `foxglove.RawImage`.
    pub fn encoding(&self) -> &str {
        text(&self.encoding)
    }

    /// Bytes of the pixels of a row; where nothing is known of the pixels, all of its bytes.
    fn row_len(&self) -> u64 {
        match Pixel::of(self.encoding()) {
            Some(pixel) => u64::from(self.width) * pixel.bytes(),
            None => u64::from(self.row_stride),
        }
    }

    /// How many rows, bytes of the pixels of one, and from one to the next.
    fn rows(&self) -> (u32, u64, u32) {
        (self.height, self.row_len(), self.row_stride)
    }

    fn check_own(&self) -> std::result::Result<(), String> {
        check_text("encoding", &self.encoding)?;
        let row_stride = self.row_stride;
        let rows = u128::from(self.height) * u128::from(row_stride);
        if rows > MAX_MESSAGE_LEN_BYTES as u128 {
            return Err(format!(
                "{} rows of row_stride {row_stride}; a message has at most {MAX_MESSAGE_LEN_BYTES} bytes",
                self.height
            ));
        }
        check_rows(self.rows(), self.data_len, "pixels")?;
        // Of several rows the data holds the first one whole, and it has to hold a single one: a header alone must not become a
        // row of a gigabyte elsewhere.
        if self.height > 0 && u64::from(row_stride) > self.data_len {
            return Err(format!(
                "row_stride is {row_stride}, but data_len is {}: less than one row",
                self.data_len
            ));
        }
        Ok(())
    }
}

/// An image and its rows.
#[derive(Clone, Copy)]
pub struct ImageView<'a> {
    pub(super) header: &'a Image,
    pub(super) data: &'a [u8],
}

common_header!(Image, ImageView, 192);

impl<'a> ImageView<'a> {
    /// The bytes of the pixels of row `y`, counted from 0 at the top; where nothing is known of the pixels, all bytes of the row.
    /// `None` beyond the last.
    pub fn row(&self, y: u32) -> Option<&'a [u8]> {
        row_of(self.data, y, self.header.rows())
    }

    /// The rows, from the top.
    pub fn rows(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let view = *self;
        (0..self.header.height).map_while(move |y| view.row(y))
    }

    /// The pixels in place, as numbers. Where nothing is known of them, each byte of a row is one.
    ///
    /// # Errors
    /// `BadValue`: the encoding has other numbers than `T`, or they do not start where such a number may.
    pub fn pixels<T: Number>(&self) -> Result<Pixels<'a, T>> {
        let wrong = |why: String| Error::bad_value("pixels of an image", why);
        let (image, encoding) = (self.header, self.header.encoding());
        let known = Pixel::of(encoding);
        let pixel = known.unwrap_or(Pixel { element: NumberType::U8, channels: 1 });
        if T::TYPE != Some(pixel.element) {
            return Err(wrong(format!(
                "those of {encoding:?} are {:?}, but {} was requested",
                pixel.element,
                std::any::type_name::<T>()
            )));
        }
        if !(image.row_stride as usize).is_multiple_of(size_of::<T>()) && image.height > 1 {
            return Err(wrong(format!(
                "row_stride {} is not a multiple of the {} bytes of one",
                image.row_stride,
                size_of::<T>()
            )));
        }
        Ok(Pixels {
            numbers: numbers("pixels of an image", self.data)?,
            width: if known.is_some() { image.width } else { image.row_stride } as usize,
            height: image.height as usize,
            channels: pixel.channels as usize,
            stride: image.row_stride as usize / size_of::<T>(),
        })
    }
}

/// The pixels of an image in place.
#[derive(Clone, Copy)]
pub struct Pixels<'a, T> {
    numbers: &'a [T],
    width: usize,
    height: usize,
    channels: usize,
    stride: usize,
}

impl<'a, T> Pixels<'a, T> {
    /// Height, width, channels.
    pub fn shape(&self) -> [usize; 3] {
        [self.height, self.width, self.channels]
    }

    /// The numbers of row `y`: width times channels.
    pub fn row(&self, y: usize) -> Option<&'a [T]> {
        if y >= self.height {
            return None;
        }
        let start = y * self.stride;
        self.numbers.get(start..start + self.width * self.channels)
    }

    /// The channels of one pixel.
    pub fn at(&self, x: usize, y: usize) -> Option<&'a [T]> {
        if x >= self.width {
            return None;
        }
        self.row(y)?.get(x * self.channels..(x + 1) * self.channels)
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DataLayout { data_len, .. } = self.layout();
        write!(
            f,
            "Image({} x {} {}, {data_len} bytes, frame {:?}, {} ns)",
            self.width,
            self.height,
            self.encoding(),
            self.frame_id(),
            self.timestamp_ns
        )
    }
}
