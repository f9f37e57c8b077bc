//! Parameters as text: parameter files, values on a command line, and the display of a parameter.

pub mod settings;
pub mod text;
pub mod update;
pub mod value;
pub mod write;
