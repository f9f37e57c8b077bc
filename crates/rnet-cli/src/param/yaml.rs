//! Files of parameters, in YAML.
//!
//! Two shapes are read. Ours names the node and then its parameters:
//! ```yaml
//! /arm/controller:
//!   gain: 1.5
//!   pid/p: 2.0
//! ```
//! That of ROS 2 has `ros__parameters:` in between, may give the node's name in parts, and joins the parts of
//! a parameter's name by dots. Either may nest instead. What YAML can do beyond that is refused: a parameter
//! file is data that people read, and anchors that multiply, tags that mean types of a language and
//! documents of a thousand levels are no part of it.

pub mod settings;
pub mod tree;
pub mod value;
pub mod write;

/// Something in a file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

impl Problem {
    pub fn new(line: usize, why: impl Into<String>) -> Problem {
        Problem { line, why: why.into() }
    }
}
