//! Parameters as text: files of parameters, values on a command line, and what is shown of a parameter.

pub mod settings;
pub mod text;
pub mod update;
pub mod value;
pub mod write;
