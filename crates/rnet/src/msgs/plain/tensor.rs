//! Tensors: numbers along up to eight dimensions.

use std::fmt;

use rnet_core::{Error, Result};

use super::header::{self, DataHeader, DataLayout, bad_header, common_header, data_len_of};
use super::number::{Number, numbers};

/// Most dimensions.
const MAX_DIMS: usize = 8;

/// What the elements of a tensor are, as in DLPack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DType {
    /// 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool.
    pub code: u8,
    /// Bits of one element.
    pub bits: u8,
}

impl DType {
    /// IEEE 754 half.
    pub const F16: Self = Self { code: 2, bits: 16 };
    /// The upper half of an `f32`.
    pub const BF16: Self = Self { code: 4, bits: 16 };
    /// Two `f32`.
    pub const COMPLEX64: Self = Self { code: 5, bits: 64 };
    /// Two `f64`.
    pub const COMPLEX128: Self = Self { code: 5, bits: 128 };
    /// One byte, 0 or 1.
    pub const BOOL: Self = Self { code: 6, bits: 8 };

    /// That of a number of Rust's.
    pub const fn of<T: Number>() -> Self {
        Self { code: T::DLPACK_CODE, bits: (size_of::<T>() * 8) as u8 }
    }

    fn is_known(self) -> bool {
        matches!(self.code, 0 | 1 | 2 | 4 | 5 | 6) && matches!(self.bits, 8 | 16 | 32 | 64 | 128)
    }

    /// Size of one element, in bytes.
    pub const fn size(self) -> usize {
        self.bits as usize / 8
    }
}

/// The header of a tensor; its elements follow.
///
/// ```
/// use rnet::msgs::plain::{DType, DataHeader, Tensor};
/// let tensor = Tensor::new(DType::of::<u8>(), &[2, 3])?;
/// assert_eq!(tensor.strides(), [3, 1]);
/// let view = tensor.with_data(&[1, 2, 3, 4, 5, 6]);
/// assert_eq!((view.as_slice::<u8>()?[5], view.at::<u8>(&[1, 0])?), (6, Some(4)));
/// # Ok::<(), rnet::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, crate::Plain)]
#[plain(name = "rnet.msgs.Tensor", tail)]
#[repr(C)]
pub struct Tensor {
    pub(super) timestamp_ns: i64,
    pub(super) data_offset: u64,
    pub(super) data_len: u64,
    _reserved0: u64,
    pub(super) frame_id: [u8; 64],
    pub(super) dtype_code: u8,
    pub(super) dtype_bits: u8,
    pub(super) dtype_lanes: u16,
    pub(super) ndim: u32,
    pub(super) shape: [i64; MAX_DIMS],
    pub(super) strides: [i64; MAX_DIMS],
    _reserved1: [u64; 3],
}

impl Tensor {
    /// A tensor without gaps, the last dimension fastest.
    ///
    /// # Errors
    /// `BadValue`: an unknown type, more than 8 dimensions, more data than a message may have.
    pub fn new(dtype: DType, shape: &[usize]) -> Result<Self> {
        let mut strides = vec![0; shape.len()];
        let mut stride = dtype.size() as u128;
        for (slot, len) in strides.iter_mut().zip(shape).rev() {
            *slot = usize::try_from(stride).unwrap_or(usize::MAX);
            // A dimension without elements ends the data, not the strides.
            stride = stride.saturating_mul((*len).max(1) as u128);
        }
        Self::with_strides(dtype, shape, &strides)
    }

    /// A tensor whose elements along each dimension are so many bytes apart; 0 repeats the same.
    ///
    /// # Errors
    /// As [`Tensor::new`]; and for strides and dimensions that are not as many.
    pub fn with_strides(dtype: DType, shape: &[usize], strides: &[usize]) -> Result<Self> {
        if shape.len() > MAX_DIMS || strides.len() != shape.len() {
            return Err(bad_header::<Self>(format!(
                "{} dimensions and {} strides; use the same number of each, at most {MAX_DIMS}",
                shape.len(),
                strides.len()
            )));
        }
        let mut tensor = Self {
            dtype_code: dtype.code,
            dtype_bits: dtype.bits,
            dtype_lanes: 1,
            ndim: shape.len() as u32,
            ..rnet_shm::plain::zeroed_header()
        };
        for (slot, len) in tensor.shape.iter_mut().zip(shape) {
            *slot = number(*len)?;
        }
        for (slot, stride) in tensor.strides.iter_mut().zip(strides) {
            *slot = number(*stride)?;
        }
        tensor.data_offset = size_of::<Self>() as u64;
        tensor.data_len = data_len_of::<Self>(tensor.extent())?;
        tensor.check_own().map_err(bad_header::<Self>)?;
        Ok(tensor)
    }

    /// What the elements are.
    pub fn dtype(&self) -> DType {
        DType { code: self.dtype_code, bits: self.dtype_bits }
    }

    /// Elements along each dimension.
    pub fn shape(&self) -> &[i64] {
        &self.shape[..(self.ndim as usize).min(MAX_DIMS)]
    }

    /// Bytes from one element to the next along each dimension.
    pub fn strides(&self) -> &[i64] {
        &self.strides[..(self.ndim as usize).min(MAX_DIMS)]
    }

    /// Where the last element ends, in bytes from the start of the data.
    fn extent(&self) -> u128 {
        if self.shape().contains(&0) {
            return 0;
        }
        let last = self.shape().iter().zip(self.strides()).map(|(len, stride)| {
            u128::from(len.unsigned_abs() - 1) * u128::from(stride.unsigned_abs())
        });
        // Eight products of 126 bits may be more than 128.
        last.fold(self.dtype().size() as u128, u128::saturating_add)
    }

    /// Whether the elements follow each other without gaps, the last dimension fastest.
    fn is_contiguous(&self) -> bool {
        let mut expected = self.dtype().size() as i128;
        self.shape().contains(&0)
            || self.shape().iter().zip(self.strides()).rev().all(|(len, stride)| {
                let fits = *len == 1 || i128::from(*stride) == expected;
                expected = expected.saturating_mul(i128::from(*len));
                fits
            })
    }

    fn check_own(&self) -> std::result::Result<(), String> {
        let DType { code, bits } = self.dtype();
        if !self.dtype().is_known() || self.dtype_lanes != 1 {
            let lanes = self.dtype_lanes;
            return Err(format!(
                "dtype is code {code}, {bits} bits, {lanes} lanes, which is not supported"
            ));
        }
        if self.ndim as usize > MAX_DIMS {
            return Err(format!("ndim is {}; at most {MAX_DIMS} are allowed", self.ndim));
        }
        if let Some(len) = self.shape().iter().find(|len| **len < 0) {
            return Err(format!("shape has {len}"));
        }
        if let Some(stride) = self.strides().iter().find(|stride| **stride < 0) {
            return Err(format!("strides have {stride}"));
        }
        let reach = self.extent();
        if reach > u128::from(self.data_len) {
            return Err(format!(
                "shape {:?} with strides {:?} ends {reach} bytes into the data, but data_len is {}",
                self.shape(),
                self.strides(),
                self.data_len
            ));
        }
        Ok(())
    }
}

fn number(n: usize) -> Result<i64> {
    i64::try_from(n).map_err(|_| bad_header::<Tensor>(format!("{n} exceeds {}", i64::MAX)))
}

/// A tensor and its elements.
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    pub(super) header: &'a Tensor,
    pub(super) data: &'a [u8],
}

common_header!(Tensor, TensorView, 256);

impl<'a> TensorView<'a> {
    /// All elements in place, the last dimension fastest.
    ///
    /// # Errors
    /// `BadValue`: the elements are of another type than `T`, there is room between them or another order, or they do not start where
    /// such a number may.
    pub fn as_slice<T: Number>(&self) -> Result<&'a [T]> {
        self.check_type::<T>()?;
        if !self.header.is_contiguous() {
            return Err(wrong(format!(
                "shape {:?} with strides {:?} is not contiguous; read its elements one by one",
                self.header.shape(),
                self.header.strides()
            )));
        }
        let reach = self.header.extent() as usize;
        numbers(WHAT, self.data.get(..reach).unwrap_or_default())
    }

    /// One element; `None` beyond the shape.
    ///
    /// # Errors
    /// `BadValue`: the elements are of another type than `T`, or `index` has another number of dimensions.
    pub fn at<T: Number>(&self, index: &[usize]) -> Result<Option<T>> {
        self.check_type::<T>()?;
        let (shape, strides) = (self.header.shape(), self.header.strides());
        if index.len() != shape.len() {
            return Err(wrong(format!(
                "{} dimensions, but {} indices were given",
                shape.len(),
                index.len()
            )));
        }
        let mut start = 0_usize;
        for ((i, len), stride) in index.iter().zip(shape).zip(strides) {
            if *i as u64 >= len.unsigned_abs() {
                return Ok(None);
            }
            // Within the data, which was checked: there is no overflow.
            start = start.saturating_add(i.saturating_mul(*stride as usize));
        }
        let element = self.data.get(start..).and_then(|rest| rest.get(..size_of::<T>()));
        Ok(element.map(T::read))
    }

    fn check_type<T: Number>(&self) -> Result<()> {
        let dtype = self.header.dtype();
        if dtype == DType::of::<T>() {
            return Ok(());
        }
        let (DType { code, bits }, asked) = (dtype, std::any::type_name::<T>());
        Err(wrong(format!("they have code {code} and {bits} bits, but {asked} was requested")))
    }
}

const WHAT: &str = "elements of a tensor";

fn wrong(why: String) -> Error {
    Error::bad_value(WHAT, why)
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DataLayout { data_len, .. } = self.layout();
        write!(
            f,
            "Tensor({:?} of {:?}, {data_len} bytes, frame {:?}, {} ns)",
            self.shape(),
            self.dtype(),
            self.frame_id(),
            self.timestamp_ns
        )
    }
}
