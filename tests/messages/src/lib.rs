//! What a user's crate has: one line.

rnet::include_protos!();

/// The Rust of the guide compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/messages.md")]
pub struct Guide;

/// That of the page of what messages carry.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/metadata.md")]
pub struct Metadata;

/// And that of the page of parameters.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/parameters.md")]
pub struct Parameters;

/// And that of the page of errors.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/errors.md")]
pub struct Errors;
