//! `rnet_sample`: a received message.

use std::ffi::{CString, c_char};

use rnet::{Meta, OwnedSample, Received, Sample};

use crate::border::{enter, free, give, given};
use crate::bytes::rnet_bytes;
use crate::error::{c_text, invalid, rnet_code, rnet_error};

/// A longer message is read in its publisher's memory: see rnet_sample.
pub const RNET_MAX_INLINE_LEN_BYTES: usize = 4096;

const _: () = assert!(RNET_MAX_INLINE_LEN_BYTES == rnet::limits::MAX_INLINE_LEN_BYTES);

/// A received message: its bytes and its metadata.
///
/// A *borrowed* sample belongs to a subscriber or a callback: it is valid until the next receive from the
/// subscriber, or until the callback returns, and is never freed by the user. An *owned* sample, from
/// rnet_sample_keep() or a function that says so, is valid until rnet_sample_free(), also after its subscriber is
/// closed and freed. Any thread may read an owned sample. The samples of calls have no metadata.
///
/// Bytes are at least 8-byte aligned. Those of at most 4096 are a private copy. Longer ones are in the publisher's
/// memory, which is not reused while the sample is valid; but a faulty publisher could still write to it, so that a
/// decoder of such bytes must be given a copy of them.
pub struct rnet_sample {
    source: Source,
    /// Set at the first call of rnet_sample_topic() or rnet_sample_node().
    names: Option<(CString, CString)>,
}

enum Source {
    /// `'static` stands for "until the next receive": `Received` drops it before.
    Borrowed(Sample<'static, [u8]>),
    Owned(OwnedSample<[u8]>),
    /// A message of a call, which has no metadata.
    Received(Received<[u8]>),
    /// It was kept.
    Moved,
}

impl rnet_sample {
    /// # Safety
    /// It is dropped before the subscriber that the sample borrows is used again.
    #[inline]
    pub(crate) unsafe fn borrowed(sample: Sample<'_, [u8]>) -> rnet_sample {
        // SAFETY: the lifetime is the only difference, and the caller keeps to it.
        let sample =
            unsafe { std::mem::transmute::<Sample<'_, [u8]>, Sample<'static, [u8]>>(sample) };
        rnet_sample { source: Source::Borrowed(sample), names: None }
    }

    /// A sample that the user reads like a borrowed one, although its subscriber is used meanwhile.
    pub(crate) fn unbound(sample: Sample<'_, [u8]>) -> rnet_sample {
        let names = Some((c_text(sample.topic()), c_text(sample.node())));
        rnet_sample { source: Source::Owned(sample.into_owned()), names }
    }

    pub(crate) fn owned(sample: OwnedSample<[u8]>) -> rnet_sample {
        rnet_sample { source: Source::Owned(sample), names: None }
    }

    pub(crate) fn received(message: Received<[u8]>) -> rnet_sample {
        rnet_sample { source: Source::Received(message), names: None }
    }

    /// Makes it owned.
    pub(crate) fn keep(&mut self) -> Option<rnet_sample> {
        match std::mem::replace(&mut self.source, Source::Moved) {
            Source::Borrowed(sample) => Some(rnet_sample::owned(sample.into_owned())),
            Source::Owned(sample) => Some(rnet_sample::owned(sample)),
            Source::Received(message) => Some(rnet_sample::received(message)),
            Source::Moved => None,
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match &self.source {
            Source::Borrowed(sample) => sample.bytes(),
            Source::Owned(sample) => sample.bytes(),
            Source::Received(message) => message,
            Source::Moved => &[],
        }
    }

    fn meta(&self) -> Meta {
        match &self.source {
            Source::Borrowed(sample) => sample.meta(),
            Source::Owned(sample) => sample.meta(),
            Source::Received(_) | Source::Moved => Meta::default(),
        }
    }

    /// Publisher, number, time of sending, time of receipt.
    #[inline]
    fn stamp(&self) -> [u64; 4] {
        match &self.source {
            Source::Borrowed(s) => [s.publisher(), s.seq(), s.sent_ns(), s.taken_ns()],
            Source::Owned(s) => [s.publisher(), s.seq(), s.sent_ns(), s.taken_ns()],
            Source::Received(_) | Source::Moved => [0; 4],
        }
    }

    fn names(&mut self) -> &(CString, CString) {
        self.names.get_or_insert_with(|| match &self.source {
            Source::Borrowed(sample) => (c_text(sample.topic()), c_text(sample.node())),
            _ => Default::default(),
        })
    }
}

/// The value that `get` reads from a sample; 0 if the sample is null.
#[inline]
unsafe fn read<T: Default>(sample: *const rnet_sample, get: impl FnOnce(&rnet_sample) -> T) -> T {
    // SAFETY: the callers' callers promise that it is null or valid.
    unsafe { sample.as_ref() }.map(get).unwrap_or_default()
}

/// The bytes of the message, valid as long as the sample. Empty if `sample` is null.
///
/// # Safety
/// `sample` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_data(sample: *const rnet_sample) -> rnet_bytes {
    // SAFETY: as promised by the caller.
    unsafe { sample.as_ref() }.map_or(rnet_bytes::EMPTY, |sample| rnet_bytes::of(sample.bytes()))
}

/// The id of its publisher, the same for all messages of one. 0 if `sample` is null.
///
/// # Safety
/// `sample` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_publisher(sample: *const rnet_sample) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe { read(sample, |sample| sample.stamp()[0]) }
}

/// The number of the message, counted by its publisher from 0.
///
/// # Safety
/// `sample` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_seq(sample: *const rnet_sample) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe { read(sample, |sample| sample.stamp()[1]) }
}

/// When it was sent, in ns of CLOCK_MONOTONIC.
///
/// # Safety
/// `sample` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_sent_ns(sample: *const rnet_sample) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe { read(sample, |sample| sample.stamp()[2]) }
}

/// When the subscriber took it out of the log, in ns of CLOCK_MONOTONIC. Queued messages are taken together.
///
/// # Safety
/// `sample` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_taken_ns(sample: *const rnet_sample) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe { read(sample, |sample| sample.stamp()[3]) }
}

/// The time of its source in ns since 1970 UTC, if its publisher has set it; otherwise 0.
///
/// # Safety
/// `sample` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_source_ns(sample: *const rnet_sample) -> i64 {
    // SAFETY: as promised by the caller.
    unsafe { read(sample, |sample| sample.meta().source_ns.unwrap_or_default()) }
}

/// Its correlation with another message, if its publisher has set one; otherwise 0.
///
/// # Safety
/// `sample` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_correlation(sample: *const rnet_sample) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe { read(sample, |sample| sample.meta().correlation.unwrap_or_default()) }
}

/// Whether it is its publisher's last will: the process of the publisher has died.
///
/// # Safety
/// `sample` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_is_last_will(sample: *const rnet_sample) -> bool {
    // SAFETY: as promised by the caller.
    unsafe { read(sample, |sample| sample.meta().last_will) }
}

/// The topic of a borrowed sample; "" if it is owned or null. Valid as long as the sample.
///
/// # Safety
/// `sample` is null or valid, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_topic(sample: *const rnet_sample) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { sample.cast_mut().as_mut() }.map_or(c"".as_ptr(), |sample| sample.names().0.as_ptr())
}

/// The node of the publisher of a borrowed sample; "" if it is owned or null. Valid as long as the sample.
///
/// # Safety
/// `sample` is null or valid, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_node(sample: *const rnet_sample) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { sample.cast_mut().as_mut() }.map_or(c"".as_ptr(), |sample| sample.names().1.as_ptr())
}

/// Makes an owned sample of a borrowed one, without copying a large message. The caller frees it. The borrowed
/// sample must not be used afterwards.
///
/// At most 64 large messages of a publisher can be kept at a time; receiving then fails with RNET_TOO_MANY_PINS.
///
/// # Safety
/// `sample` is valid and borrowed, `out` valid for a write, `error` null or valid for a write. Called by the thread
/// that received the sample.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_keep(
    sample: *const rnet_sample,
    out: *mut *mut rnet_sample,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        unsafe { given(sample, "sample") }?;
        // SAFETY: not null; borrowed samples are in memory that this library writes.
        let kept = unsafe { &mut *sample.cast_mut() }.keep();
        let kept = kept.ok_or_else(|| invalid("the sample was already kept"))?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, kept) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees an owned sample. Null is allowed.
///
/// # Safety
/// `sample` is null or an owned sample that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_sample_free(sample: *mut rnet_sample) {
    // SAFETY: as promised by the caller.
    unsafe { free(sample) }
}
