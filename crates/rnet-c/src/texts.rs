//! Lists of texts, from C and to C.

use std::ffi::{CString, c_char};

use crate::border::given;
use crate::bytes::text;
use crate::error::{Outcome, c_text};

/// The texts of an array that C passes.
///
/// # Errors
/// `InvalidArgument` if the array or one of its texts is null, or one is not UTF-8.
///
/// # Safety
/// `texts` is null, or refers to `count` strings that live as long as the result is used.
pub(crate) unsafe fn texts<'a>(
    texts: *const *const c_char,
    count: usize,
    what: &str,
) -> Outcome<Vec<&'a str>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: as promised by the caller.
    let first = unsafe { given(texts, what) }?;
    // SAFETY: not null, and as promised by the caller.
    let all = unsafe { std::slice::from_raw_parts(first, count) };
    // SAFETY: as promised by the caller.
    all.iter().map(|one| unsafe { text(*one, what) }).collect()
}

/// Owns the texts that structs of the library point to.
#[derive(Default)]
pub(crate) struct Texts {
    texts: Vec<CString>,
    lists: Vec<Box<[*const c_char]>>,
}

impl Texts {
    /// A text, valid as long as this.
    pub(crate) fn add(&mut self, text: &str) -> *const c_char {
        let text = c_text(text);
        let pointer = text.as_ptr();
        self.texts.push(text);
        pointer
    }

    /// As [`Texts::add`]; null for none.
    pub(crate) fn add_optional(&mut self, text: Option<&str>) -> *const c_char {
        text.map_or(std::ptr::null(), |text| self.add(text))
    }

    /// An array of texts and its length, valid as long as this.
    pub(crate) fn add_all<T: AsRef<str>>(
        &mut self,
        texts: impl IntoIterator<Item = T>,
    ) -> (*const *const c_char, usize) {
        let list: Box<[_]> = texts.into_iter().map(|text| self.add(text.as_ref())).collect();
        let found = (list.as_ptr(), list.len());
        self.lists.push(list);
        found
    }
}

/// An element of a list of the library, null after the last one.
pub(crate) fn element<T>(list: &[T], at: usize) -> *const T {
    list.get(at).map_or(std::ptr::null(), std::ptr::from_ref)
}
