//! The screen of `rnet top`: figures of a domain as a table or on a canvas of characters.
//!
//! - `rows`: figures as cells of tables;
//! - `model`: what is shown, and what keys do to it;
//! - `screen`: how it is drawn, on a `canvas` of characters;
//! - `tests`: the screen of the guide, which a test compares with what is drawn.

mod canvas;
mod key;
mod model;
pub mod rows;
mod screen;
#[cfg(test)]
mod tests;

pub use canvas::Canvas;
pub use key::{Key, take_keys};
pub use model::Model;
pub use screen::draw;
