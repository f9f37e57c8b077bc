//! What the benchmarks of robot-net share: those of the command `rnet bench`, and the comparison with other
//! systems.
#![forbid(unsafe_code)]

pub mod topology;
pub mod worker;
